/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends the dead letters of one session, or of all (""), again: to the topic that they came from, in the order in
 * which they were given up, each once, whatever crashes when. They go without a number: under its old one a record
 * would be taken for a copy of what was done. Every group of the topic gets them: FAILED-GROUP takes the letters of
 * one only, and header `reinjected.group` names it to the others. docs/repair.md has the reasons. Ends when nothing
 * has come for 5 s. One at a time in a group.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unsalt/unsalt.h>
#include "17_seen.h"

enum { QUIET_POLLS = 25, POLL_MS = 200 };

struct job {
    const char *topic, *session, *group; /* session "": all; group "": of whatever group */
    struct seen seen;
};

static volatile sig_atomic_t stop; /* the signal */

static void on_signal(int number) {
    stop = number;
}

/* Is it of the topic, or of a lane topic of it, of the group, and of the session? */
static bool is_wanted(const struct job *job, rd_kafka_headers_t *headers, const rd_kafka_message_t *letter) {
    char topic[256], group[256];
    size_t len = strlen(job->topic);
    seen_header(headers, "unsalt.dead.topic", topic, sizeof topic);
    if (strncmp(topic, job->topic, len) != 0 || (topic[len] && strncmp(topic + len, ".lane-", 6) != 0))
        return false;
    if (job->group[0] && strcmp(job->group, seen_header(headers, "unsalt.dead.group", group, sizeof group)) != 0)
        return false;
    return !job->session[0] ||
           (letter->key_len == strlen(job->session) && memcmp(letter->key, job->session, letter->key_len) == 0);
}

/* Ours, a plain number, and what an earlier repair has said. */
static bool is_kept(const char *name) {
    return strncmp(name, "unsalt.dead.", 12) != 0 && strcmp(name, "seq") != 0 &&
           strcmp(name, "reinjected") != 0 && strcmp(name, "reinjected.group") != 0;
}

/* Here a payload is mended, and a number that stands in it taken out. */
static void repair(const rd_kafka_message_t *letter, unsalt_relay_out_t *out) {
    out->payload = letter->payload;
    out->len = letter->len;
}

static unsalt_relay_res_t send_again(void *opaque, const rd_kafka_message_t *letter, const unsalt_relay_info_t *info,
                                     unsalt_relay_out_t *out) {
    struct job *job = opaque;
    rd_kafka_headers_t *headers = NULL;
    const char *name;
    const void *value;
    char group[256];
    size_t size;
    (void)info;
    rd_kafka_message_headers(letter, &headers);
    if (!is_wanted(job, headers, letter) || seen_is_copy(&job->seen, letter))
        return UNSALT_RELAY_DROP;
    out->headers = rd_kafka_headers_new(8);
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++)
        if (is_kept(name))
            rd_kafka_header_add(out->headers, name, -1, value, (ssize_t)size);
    rd_kafka_header_add(out->headers, "reinjected", -1, "1", 1);
    if (seen_header(headers, "unsalt.dead.group", group, sizeof group)[0])
        rd_kafka_header_add(out->headers, "reinjected.group", -1, group, -1);
    repair(letter, out);
    return UNSALT_RELAY_DONE;
}

static unsalt_relay_t *open_relay(char **argv, struct job *job) {
    char errstr[512] = "a bad number of partitions";
    rd_kafka_conf_t *reads = rd_kafka_conf_new(), *writes = rd_kafka_conf_new();
    unsalt_conf_t *input = unsalt_conf_new(), *result = unsalt_conf_new();
    rd_kafka_conf_set(reads, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(reads, "group.id", argv[2], errstr, sizeof errstr);
    rd_kafka_conf_set(writes, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    unsalt_conf_set(input, "seq.source", "unsalt", errstr, sizeof errstr); /* letters have no such header */
    unsalt_conf_set(input, "relay.threads", "0", errstr, sizeof errstr);   /* one after the other */
    unsalt_conf_set_relay_cb(input, send_again, job);
    unsalt_conf_set(result, "relay.topic", argv[4], errstr, sizeof errstr);
    unsalt_conf_set(result, "lanes", "1", errstr, sizeof errstr);
    unsalt_relay_t *relay = NULL;
    if (!unsalt_conf_set(result, "partitions", argv[5], errstr, sizeof errstr))
        relay = unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = relay ? unsalt_relay_subscribe(relay, topics) : RD_KAFKA_RESP_ERR__INVALID_ARG;
    rd_kafka_topic_partition_list_destroy(topics);
    if (!err)
        return relay;
    fprintf(stderr, "%s\n", relay ? rd_kafka_err2str(err) : errstr);
    unsalt_relay_destroy(relay);
    return NULL;
}

static bool has_partitions(const unsalt_relay_t *relay) {
    rd_kafka_topic_partition_list_t *list = NULL;
    bool has = !rd_kafka_assignment(unsalt_relay_consumer(relay), &list) && list->cnt > 0;
    if (list)
        rd_kafka_topic_partition_list_destroy(list);
    return has;
}

int main(int argc, char **argv) {
    struct job job = {"", "", "", {NULL, false}};
    unsalt_relay_stats_t stats = {0};
    int quiet = 0, status = 0;
    size_t n;
    if (argc < 6 || argc > 8) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP DEAD-LETTER-TOPIC TOPIC PARTITIONS [SESSION [FAILED-GROUP]]\n",
                argv[0]);
        return 2;
    }
    job.topic = argv[4];
    job.session = argc > 6 ? argv[6] : "";
    job.group = argc > 7 ? argv[7] : "";
    job.seen.by_group = job.group[0];
    unsalt_relay_t *relay = NULL;
    if (seen_before(&job.seen, argv[1], argv[2], argv[3], argv[4]))
        relay = open_relay(argv, &job);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (relay && !stop && !status && quiet < QUIET_POLLS) {
        rd_kafka_error_t *error = unsalt_relay_poll(relay, POLL_MS, &n);
        quiet = n || error || !has_partitions(relay) ? 0 : quiet + 1;
        if (error)
            fprintf(stderr, "%s\n", rd_kafka_error_string(error));
        status = error && rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__FATAL;
        rd_kafka_error_destroy(error);
    }
    if (relay)
        unsalt_relay_stats(relay, &stats, sizeof stats);
    printf("%lu sent again, %lu passed over\n", (unsigned long)stats.relayed, (unsigned long)stats.dropped);
    unsalt_relay_destroy(relay);
    if (stop)
        fprintf(stderr, "stopped by signal %d; the same call goes on from here\n", (int)stop);
    return !relay ? 1 : stop ? 128 + stop : status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heavy work on many machines: run as many of these as there are partitions and lanes. Each takes records as they come,
 * works on 32 at a time, and writes results under the numbers of their records, exactly once. 01_minimal_consumer.c
 * with the settings of docs/workers.md on OUTPUT hands them out in order.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* The work: a service that takes a millisecond, and a result of its own. Called by many threads. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    char *result = malloc(message->len + 32);
    (void)opaque;
    (void)info; /* session, epoch and number: what a service may be called with, so that it knows a repetition */
    if (!result)
        return UNSALT_RELAY_FAILED;
    usleep(1000);
    out->len = (size_t)sprintf(result, "seen: %.*s", (int)message->len, (const char *)message->payload);
    out->payload = result;
    out->release = free;
    return UNSALT_RELAY_DONE;
}

static unsalt_relay_t *open_relay(char **argv) {
    char errstr[512];
    rd_kafka_conf_t *reads = rd_kafka_conf_new(), *writes = rd_kafka_conf_new();
    unsalt_conf_t *input = unsalt_conf_new(), *result = unsalt_conf_new();
    rd_kafka_conf_set(reads, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(reads, "group.id", argv[2], errstr, sizeof errstr);
    rd_kafka_conf_set(reads, "session.timeout.ms", "10000", errstr, sizeof errstr); /* when others go on after a kill */
    rd_kafka_conf_set(writes, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    unsalt_conf_set(input, "relay.threads", "32", errstr, sizeof errstr);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_conf_set(result, "relay.topic", argv[4], errstr, sizeof errstr);
    unsalt_conf_set(result, "layout", "hash", errstr, sizeof errstr);
    if (unsalt_conf_set(result, "partitions", argv[5], errstr, sizeof errstr) ||
        unsalt_conf_set(result, "lanes", argv[6], errstr, sizeof errstr)) {
        fprintf(stderr, "%s\n", errstr);
        return NULL;
    }
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr);
    if (!relay) {
        fprintf(stderr, "%s\n", errstr);
        return NULL;
    }
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = unsalt_relay_subscribe(relay, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (err)
        fprintf(stderr, "subscribe: %s\n", rd_kafka_err2str(err));
    return relay;
}

int main(int argc, char **argv) {
    unsalt_relay_stats_t stats;
    bool going = true;
    if (argc != 7) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC OUTPUT PARTITIONS LANES\n", argv[0]);
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    unsalt_relay_t *relay = open_relay(argv);
    if (!relay)
        return 1;
    while (!stop && going) {
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 200, NULL);
        if (error) { /* the batch was aborted, and comes again */
            fprintf(stderr, "%s\n", rd_kafka_error_string(error));
            going = rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__FATAL;
            rd_kafka_error_destroy(error);
        }
    }
    unsalt_relay_stats(relay, &stats, sizeof stats);
    fprintf(stderr, "%lu results in %lu transactions\n", (unsigned long)stats.relayed, (unsigned long)stats.batches);
    unsalt_relay_destroy(relay);
    return going ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of 1 ms a record, which sleeps, so that few processors can show it, by 1, 2 and 4 relays of 8 threads each; one
 * consumer merges the results. Sessions of four lanes in 8 partitions, results likewise. Measured is the time from the
 * first record sent to the last result handed out in order, in rounds of all three in turn; medians. The relays have
 * their partitions before, and have relayed a few batches each: the first transactions of a new group to new topics
 * take a tenth of a second and more. UNSALT_TEST_BOOTSTRAP names the cluster; the topics are made here and deleted.
 */
#include "report.h"
#include "topic.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 3, RECORDS = 30000, WARM = 8000, PARTITIONS = 8, RELAYS_MAX = 4, WAIT_S = 60 };

struct relays {
    pthread_t threads[RELAYS_MAX];
    int count;
    char topic[64], group[64]; /* of the results; of the relays */
    atomic_int ready;          /* relays that have their share of the partitions */
    atomic_bool over;
};

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)info;
    (void)out;
    nap();
    return UNSALT_RELAY_DONE;
}

static void set(unsalt_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    if (unsalt_conf_set(conf, name, value, errstr, sizeof errstr))
        topic_fail(errstr);
}

static rd_kafka_conf_t *client_conf(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", getenv("UNSALT_TEST_BOOTSTRAP"), NULL, 0);
    return conf;
}

/* ---- the relays, each on a thread of its own, as if it were a process */

static unsalt_relay_t *open_relay(const struct relays *relays) {
    rd_kafka_topic_partition_list_t *all = topic_partitions(), *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *reads = client_conf();
    unsalt_conf_t *input = topic_unsalt_conf(), *result = topic_unsalt_conf();
    char errstr[512];
    rd_kafka_conf_set(reads, "group.id", relays->group, NULL, 0);
    rd_kafka_conf_set(reads, "heartbeat.interval.ms", "300", NULL, 0); /* they find together sooner */
    set(input, "relay.threads", "8");
    unsalt_conf_set_relay_cb(input, work, NULL);
    set(result, "relay.topic", relays->topic);
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, client_conf(), result, errstr, sizeof errstr);
    if (!relay)
        topic_fail(errstr);
    rd_kafka_topic_partition_list_add(topics, all->elems[0].topic, RD_KAFKA_PARTITION_UA);
    if (unsalt_relay_subscribe(relay, topics))
        topic_fail("a relay can't subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    rd_kafka_topic_partition_list_destroy(all);
    return relay;
}

static bool has_share(const unsalt_relay_t *relay, const struct relays *relays) {
    rd_kafka_topic_partition_list_t *list = NULL;
    bool has = !rd_kafka_assignment(unsalt_relay_consumer(relay), &list) && list->cnt == PARTITIONS / relays->count;
    if (list)
        rd_kafka_topic_partition_list_destroy(list);
    return has;
}

static void *run_relay(void *arg) {
    struct relays *relays = arg;
    unsalt_relay_t *relay = open_relay(relays);
    bool ready = false;
    while (!relays->over) {
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 50, NULL);
        if (error && rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) /* a new topic */
            topic_fail(rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        if (ready != has_share(relay, relays)) {
            ready = !ready;
            atomic_fetch_add(&relays->ready, ready ? 1 : -1);
        }
    }
    unsalt_relay_destroy(relay);
    return NULL;
}

static void start(struct relays *relays, int count) {
    relays->count = count;
    for (int i = 0; i < count; i++)
        if (pthread_create(&relays->threads[i], NULL, run_relay, relays))
            topic_fail("no thread");
    for (double until = bench_wall() + WAIT_S; relays->ready < count; nap()) {
        if (bench_wall() > until)
            topic_fail("the relays have no partitions");
    }
}

/* ---- the results */

static void admin(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *what) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_S * 1000);
    if (!event || rd_kafka_event_error(event))
        topic_fail(what);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

static void create_result(struct relays *relays) {
    static int number;
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, client_conf(), NULL, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    snprintf(relays->topic, sizeof relays->topic, "bench-results-%ld-%d", (long)time(NULL), ++number);
    snprintf(relays->group, sizeof relays->group, "%.50s-group", relays->topic);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(relays->topic, PARTITIONS, 1, NULL, 0);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    admin(rk, queue, "a topic for results can't be created");
    rd_kafka_NewTopic_destroy(topic);
}

static void delete_result(const struct relays *relays) {
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, client_conf(), NULL, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(relays->topic);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    admin(rk, queue, "a topic of results can't be deleted");
    rd_kafka_DeleteTopic_destroy(topic);
}

static unsalt_t *open_merger(const struct relays *relays) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    unsalt_conf_t *conf = topic_unsalt_conf();
    char errstr[512];
    set(conf, "gap.timeout.ms", "-1");
    set(conf, "seq.source", "unsalt");
    unsalt_t *merger = unsalt_new(topic_consumer_conf(), conf, errstr, sizeof errstr);
    if (!merger)
        topic_fail(errstr);
    for (int i = 0; i < PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, relays->topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    if (unsalt_assign(merger, list))
        topic_fail("the results can't be assigned");
    rd_kafka_topic_partition_list_destroy(list);
    return merger;
}

static void merge(unsalt_t *merger, long records) {
    unsalt_stats_t stats;
    rd_kafka_message_t *messages[500];
    for (long n = 0; n < records;) {
        ssize_t got = unsalt_consume_batch(merger, WAIT_S * 1000, messages, 500);
        if (got <= 0)
            topic_fail("nothing is merged");
        for (ssize_t i = 0; i < got; i++)
            rd_kafka_message_destroy(messages[i]);
        n += got;
    }
    unsalt_stats(merger, &stats, sizeof stats);
    if (stats.state[UNSALT_STATE_RELEASED] != stats.received || stats.state[UNSALT_STATE_HELD] > 0)
        topic_fail("not every result came once and in order");
}

/* ---- */

static void *send_all(void *records) {
    const struct topic_load load = {TRAFFIC_ALL_HOT, FORM_HEADER, "none", 100, 1, *(const long *)records, 0};
    topic_more(&load);
    return NULL;
}

/* Seconds from the first record sent to the last one merged. */
static double work_through(unsalt_t *merger, long records) {
    pthread_t sender;
    double began = bench_wall();
    if (pthread_create(&sender, NULL, send_all, &records))
        topic_fail("no thread");
    merge(merger, records);
    double took = bench_wall() - began;
    pthread_join(sender, NULL);
    return took;
}

static double measure(int count) {
    struct relays relays = {.count = 0};
    const struct topic_load none = {TRAFFIC_ALL_HOT, FORM_HEADER, "none", 100, 1, 0, 0};
    topic_open(NULL, &none);
    create_result(&relays);
    start(&relays, count);
    unsalt_t *merger = open_merger(&relays);
    work_through(merger, WARM);
    double took = work_through(merger, RECORDS);
    relays.over = true;
    for (int i = 0; i < count; i++)
        pthread_join(relays.threads[i], NULL);
    unsalt_consumer_close(merger);
    unsalt_destroy(merger);
    delete_result(&relays);
    topic_close();
    return took;
}

int main(void) {
    static const struct {
        int count;
        const char *name;
    } kinds[] = {{1, "1 worker"}, {2, "2 workers"}, {4, "4 workers"}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    double took[KINDS][ROUNDS], rates[KINDS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < KINDS; k++) {
            took[k][round] = measure(kinds[k].count) * 1e6 / RECORDS;
            rates[k][round] = 1e6 / took[k][round];
        }
    for (int k = 0; k < KINDS; k++) {
        char rate[32];
        snprintf(rate, sizeof rate, "%s, rate", kinds[k].name);
        bench_spread("workers, 1 ms of work", rate, "records/s", rates[k], NULL, NULL, ROUNDS);
        bench_spread("workers, 1 ms of work", kinds[k].name, "us/record", took[k], k ? "1 worker" : NULL,
                     k ? took[0] : NULL, ROUNDS);
    }
    return 0;
}

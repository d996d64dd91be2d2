/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A consumer starts again that has the cursors of 100,000 sessions (FULL=1 in the environment: 1,000,000) in its
 * checkpoint: from unsalt_subscribe() to the first record, against the same without a checkpoint. All of them are of
 * one lane set, so they stand in one partition. And how long the commits take that write them. UNSALT_TEST_BOOTSTRAP
 * names the cluster; the topics are made here.
 */
#include "report.h"
#include "topic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/unsalt.h>

enum { ROUNDS = 3, BATCH = 1000, WAIT_MS = 60000, COMMIT_EACH = 100000 };

static void set(unsalt_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    if (unsalt_conf_set(conf, name, value, errstr, sizeof errstr))
        topic_fail(errstr);
}

/* Like topic_partitions(), by its name alone. */
static rd_kafka_topic_partition_list_t *subscription(void) {
    rd_kafka_topic_partition_list_t *all = topic_partitions();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, all->elems[0].topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_topic_partition_list_destroy(all);
    return list;
}

/* *began: when unsalt_subscribe() was called. */
static unsalt_t *subscribe(const char *checkpoint, double *began) {
    unsalt_conf_t *conf = topic_unsalt_conf();
    rd_kafka_topic_partition_list_t *topics = subscription();
    char errstr[512];
    set(conf, "checkpoint", checkpoint);
    set(conf, "checkpoint.timeout.ms", "60000");
    unsalt_t *consumer = unsalt_new(topic_consumer_conf(), conf, errstr, sizeof errstr);
    if (!consumer)
        topic_fail(errstr);
    *began = bench_wall();
    if (unsalt_subscribe(consumer, topics))
        topic_fail("subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer;
}

static void leave(unsalt_t *consumer) {
    if (unsalt_consumer_close(consumer))
        topic_fail("close");
    unsalt_destroy(consumer);
}

static long take(unsalt_t *consumer) {
    rd_kafka_message_t *messages[BATCH];
    ssize_t n = unsalt_consume_batch(consumer, WAIT_MS, messages, BATCH);
    if (n <= 0)
        topic_fail("nothing comes");
    for (ssize_t i = 0; i < n; i++) {
        if (messages[i]->err)
            topic_fail(rd_kafka_message_errstr(messages[i]));
        rd_kafka_message_destroy(messages[i]);
    }
    return n;
}

/* Reads everything, and commits now and then. Returns the seconds that the commits took. */
static double work(long records) {
    double began, took = 0;
    unsalt_t *consumer = subscribe("topic", &began);
    for (long taken = 0, due = COMMIT_EACH; taken < records;) {
        taken += take(consumer);
        if (taken >= due || taken == records) {
            rd_kafka_message_t *next = unsalt_consumer_poll(consumer, 0); /* the others count as processed */
            taken += next != NULL;
            if (next)
                rd_kafka_message_destroy(next);
            began = bench_wall();
            if (unsalt_commit(consumer, 0))
                topic_fail("commit");
            took += bench_wall() - began;
            due += COMMIT_EACH;
        }
    }
    leave(consumer);
    return took;
}

/* Seconds to the first record. */
static double start(const char *checkpoint, uint64_t cursors) {
    unsalt_stats_t stats;
    double began;
    unsalt_t *consumer = subscribe(checkpoint, &began);
    take(consumer);
    double took = bench_wall() - began;
    unsalt_stats(consumer, &stats, sizeof stats);
    if (stats.cursors_restored < cursors)
        topic_fail("fewer cursors than were committed");
    leave(consumer);
    return took;
}

int main(void) {
    long sessions = bench_full() ? 1000000 : 100000;
    double with[ROUNDS], without[ROUNDS];
    char name[64];
    long records = (long)bench_size((size_t)sessions);
    struct topic_load load = {TRAFFIC_ONCE, FORM_HEADER, "none", 100, 1, records, 0};
    topic_open(NULL, &load);
    double commits = work(records);
    load.records = 8;
    topic_more(&load);
    start("none", 0); /* the group is warm */
    for (int round = 0; round < ROUNDS; round++) {
        with[round] = 1e3 * start("topic", (uint64_t)records);
        without[round] = 1e3 * start("none", 0);
    }
    snprintf(name, sizeof name, "restart, %ld sessions", sessions);
    bench_spread(name, "time_to_first_record", "ms", with, "checkpoint=none", without, ROUNDS);
    bench_figure(name, "time_of_commits_per_session", commits * 1e9 / (double)records, "ns", NULL, 0);
    topic_close();
    return 0;
}

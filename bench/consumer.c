/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unsalt_consumer_poll() against rd_kafka_consumer_poll() with one header read by the application, on a real broker:
 * wall time and processor time per record, from the first record to the last. Both read the same topic from its
 * beginning, with the same configuration, in turns in one process; medians are compared.
 *
 * `one hot`: half of the records are of one session over four lanes. `all hot`: all sessions are spread, so that nearly
 * every record has to wait for others. UNSALT_TEST_BOOTSTRAP names the cluster; the topics are made here and deleted.
 */
#include "report.h"
#include "topic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/unsalt.h>

enum { ROUNDS = 5, RECORDS = 1000000, BATCH = 500 };

struct cost {
    double wall[ROUNDS], cpu[ROUNDS];
};

/* From the first record to the last. */
struct watch {
    double wall, cpu;
    long records;
};

static void tick(struct watch *watch, long records) {
    if (!watch->records && records) {
        watch->wall = bench_wall();
        watch->cpu = bench_cpu();
    }
    watch->records += records;
}

static void stop(const struct watch *watch, struct cost *cost, int round) {
    cost->wall[round] = (bench_wall() - watch->wall) * 1e9 / (double)watch->records;
    cost->cpu[round] = (bench_cpu() - watch->cpu) * 1e9 / (double)watch->records;
}

/* What an application does that must know the number of a record: reads one header. */
static uint64_t read_header(const rd_kafka_message_t *message) {
    rd_kafka_headers_t *headers;
    unsalt_header_t header;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(message, &headers) ||
        rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size) ||
        unsalt_header_read(value, size, &header) != UNSALT_HEADER_OK)
        topic_fail("a record without its header");
    return header.seq;
}

static void read_raw(struct cost *cost, int round) {
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    rd_kafka_conf_t *conf = topic_consumer_conf();
    char errstr[512];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    struct watch watch = {0};
    uint64_t sum = 0;
    if (!rk)
        topic_fail(errstr);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_assign(rk, partitions);
    while (watch.records < RECORDS) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 10000);
        if (!message || message->err)
            topic_fail(message ? rd_kafka_message_errstr(message) : "nothing comes");
        tick(&watch, 1);
        sum += read_header(message);
        rd_kafka_message_destroy(message);
    }
    stop(&watch, cost, round);
    if (!sum)
        topic_fail("no numbers");
    rd_kafka_topic_partition_list_destroy(partitions);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static unsalt_t *open_ordered(void) {
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    unsalt_conf_t *conf = topic_unsalt_conf();
    char errstr[512];
    unsalt_t *consumer;
    unsalt_conf_set(conf, "seq.source", "unsalt", NULL, 0);
    consumer = unsalt_new(topic_consumer_conf(), conf, errstr, sizeof errstr);
    if (!consumer)
        topic_fail(errstr);
    if (unsalt_assign(consumer, partitions))
        topic_fail("the partitions can't be assigned");
    rd_kafka_topic_partition_list_destroy(partitions);
    return consumer;
}

static void close_ordered(unsalt_t *consumer) {
    unsalt_stats_t stats;
    unsalt_stats(consumer, &stats, sizeof stats);
    if (stats.state[UNSALT_STATE_RELEASED] != RECORDS)
        topic_fail("not all records were released in sequence");
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
}

static void read_ordered(struct cost *cost, int round) {
    unsalt_t *consumer = open_ordered();
    struct watch watch = {0};
    while (watch.records < RECORDS) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 10000);
        if (!message || message->err)
            topic_fail(message ? rd_kafka_message_errstr(message) : "nothing comes");
        tick(&watch, 1);
        rd_kafka_message_destroy(message);
    }
    stop(&watch, cost, round);
    close_ordered(consumer);
}

static void read_ordered_batches(struct cost *cost, int round) {
    unsalt_t *consumer = open_ordered();
    rd_kafka_message_t *messages[BATCH];
    struct watch watch = {0};
    while (watch.records < RECORDS) {
        ssize_t i, n = unsalt_consume_batch(consumer, 10000, messages, BATCH);
        if (n <= 0)
            topic_fail("nothing comes");
        tick(&watch, n);
        for (i = 0; i < n; i++)
            rd_kafka_message_destroy(messages[i]);
    }
    stop(&watch, cost, round);
    close_ordered(consumer);
}

static void report(const char *name, struct cost *cost, struct cost *raw) {
    static const char against[] = "rd_kafka_consumer_poll and one header read";
    bench_figure(name, "wall_time_per_record", bench_median(cost->wall, ROUNDS), "ns", against,
                 bench_median(raw->wall, ROUNDS));
    bench_figure(name, "cpu_time_per_record", bench_median(cost->cpu, ROUNDS), "ns", against,
                 bench_median(raw->cpu, ROUNDS));
}

static void compare(enum traffic traffic, const char *poll_name, const char *batch_name) {
    static struct cost raw, poll, batch;
    int round;
    topic_open(traffic, RECORDS);
    for (round = 0; round < ROUNDS; round++) {
        read_raw(&raw, round);
        read_ordered(&poll, round);
        read_ordered_batches(&batch, round);
    }
    report(poll_name, &poll, &raw);
    report(batch_name, &batch, &raw);
    topic_close();
}

int main(void) {
    compare(TRAFFIC_ONE_HOT, "consumer poll, one hot", "consumer batch, one hot");
    compare(TRAFFIC_ALL_HOT, "consumer poll, all hot", "consumer batch, all hot");
    return 0;
}

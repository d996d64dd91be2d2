/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints and the threads behind them: commits that are waited for or not, partitions that are read, begun anew and
 * cancelled while leaders are being asked for the ends of their logs.
 */
#include <kafka/checkpoint_topic_reader.h>
#include <kafka/checkpoint_topic_writer.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PARTITIONS = 4, COMMITS = 20, ROUNDS = 10, PER_COMMIT = 50 };

static atomic_uint wakes;
static unsigned entries, completed;

static void die(const char *why) {
    fprintf(stderr, "%s\n", why);
    abort();
}

static void on_wake(void *opaque) {
    (void)opaque;
    atomic_fetch_add(&wakes, 1);
}

static void on_entry(void *opaque, const struct us_checkpoint_record *entry) {
    (void)opaque;
    entries += entry->key_len > 0;
}

static void on_complete(void *opaque, int32_t partition) {
    (void)opaque;
    (void)partition;
    completed++;
}

static void nap(void) {
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

static void write_all(const struct us_checkpoint_client *client) {
    struct us_checkpoint_writer_settings settings = {.client = *client, .topic = "cp", .transactional_id = "id",
                                                     .transaction_timeout_ms = 10000, .wake = on_wake};
    struct us_checkpoint_writer *writer = us_checkpoint_writer_new(&settings);
    struct us_checkpoint_outcome outcome;
    struct us_checkpoint_record entry = {.key = "k", .key_len = 1, .value = "v", .value_len = 1};
    for (int i = 0; i < COMMITS; i++) {
        if (us_checkpoint_writer_open(writer, 20000, &outcome))
            die(outcome.text);
        for (int k = 0; k < PER_COMMIT; k++) {
            entry.partition = k % PARTITIONS;
            us_checkpoint_writer_put(writer, &entry);
        }
        us_checkpoint_writer_finish(writer, NULL, NULL, i % 2 ? 20000 : 0, &outcome);
        while (us_checkpoint_writer_busy(writer))
            nap();
        if (outcome.result == US_CHECKPOINT_UNKNOWN)
            us_checkpoint_writer_resume(writer, 20000, &outcome);
        if (outcome.result)
            die(outcome.text);
    }
    if (us_checkpoint_writer_open(writer, 20000, &outcome))
        die(outcome.text);
    us_checkpoint_writer_abandon(writer, 0, &outcome);
    us_checkpoint_writer_destroy(writer);
}

static void read_all(const struct us_checkpoint_client *client) {
    struct us_checkpoint_reader_settings settings = {.client = *client, .topic = "cp", .partitions = PARTITIONS,
                                                     .entry = on_entry, .complete = on_complete, .wake = on_wake};
    struct us_checkpoint_reader *reader = us_checkpoint_reader_new(&settings);
    const int32_t all[PARTITIONS] = {0, 1, 2, 3};
    struct us_checkpoint_progress progress;
    char errstr[256] = "";
    for (int i = 0; i < ROUNDS; i++) {
        if (us_checkpoint_reader_begin(reader, all, PARTITIONS, errstr, sizeof errstr))
            die(errstr);
        if (i % 2)
            us_checkpoint_reader_cancel(reader, i % PARTITIONS);
        while (us_checkpoint_reader_loading(reader) > 0) {
            if (!us_checkpoint_reader_step(reader, 64, 5))
                nap();
            us_checkpoint_reader_progress(reader, 0, &progress);
        }
    }
    us_checkpoint_reader_begin(reader, all, PARTITIONS, errstr, sizeof errstr);
    us_checkpoint_reader_destroy(reader);
}

int main(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char errstr[256];
    alarm(120);
    if (rd_kafka_conf_set(conf, "test.mock.num.brokers", "2", errstr, sizeof errstr))
        die(errstr);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    rd_kafka_mock_cluster_t *cluster = rk ? rd_kafka_handle_mock_cluster(rk) : NULL;
    if (!cluster || rd_kafka_mock_topic_create(cluster, "cp", PARTITIONS, 1))
        die("no mock cluster");
    rd_kafka_conf_t *plain = rd_kafka_conf_new();
    struct us_checkpoint_client client = {plain, rd_kafka_mock_cluster_bootstraps(cluster)};
    write_all(&client);
    read_all(&client);
    rd_kafka_conf_destroy(plain);
    rd_kafka_destroy(rk);
    if (entries < COMMITS * PER_COMMIT || completed != ROUNDS * PARTITIONS - ROUNDS / 2 || atomic_load(&wakes) == 0)
        die("something is missing");
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records by the batch, for a store that is quicker with many at once: here a file, flushed once per batch. The batch
 * counts as processed at the next call, so nothing is committed that was not flushed. Each session is in order, also
 * from batch to batch.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unsalt/unsalt.h>

enum { BATCH = 500 };

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* Returns false if the store failed: then the batch must not be acknowledged. */
static bool store(FILE *file, rd_kafka_message_t **messages, ssize_t n) {
    for (ssize_t i = 0; i < n; i++) {
        if (messages[i]->err)
            fprintf(stderr, "%s\n", rd_kafka_message_errstr(messages[i]));
        else
            fprintf(file, "%.*s\n", (int)messages[i]->len, (const char *)messages[i]->payload);
    }
    return fflush(file) == 0;
}

int main(int argc, char **argv) {
    rd_kafka_message_t *messages[BATCH];
    rd_kafka_topic_partition_list_t *topics;
    rd_kafka_conf_t *conf;
    char errstr[512];
    unsalt_t *consumer;
    FILE *file;
    if (argc != 5) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC FILE\n", argv[0]);
        return 2;
    }
    file = fopen(argv[4], "a");
    if (!file) {
        perror(argv[4]);
        return 1;
    }
    conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argv[2], errstr, sizeof errstr);
    consumer = unsalt_new(conf, NULL, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);

    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop) {
        ssize_t n = unsalt_consume_batch(consumer, 200, messages, BATCH); /* what is ready: 1 to BATCH */
        if (n > 0 && !store(file, messages, n)) {
            perror(argv[4]);
            _Exit(1); /* as a crash: this batch comes again */
        }
        for (ssize_t i = 0; i < n; i++)
            rd_kafka_message_destroy(messages[i]);
    }
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    return fclose(file) ? 1 : 0;
}

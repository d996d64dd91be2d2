/* SPDX-License-Identifier: BSD-2-Clause */
/* A plain librdkafka consumer of a salted topic. 03_unsalted_twin.c is the same program with its order restored. */
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static void handle(const rd_kafka_message_t *message) {
    if (message->err)
        fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
    else
        printf("[%d] %.*s: %.*s\n", (int)message->partition, (int)message->key_len, (const char *)message->key,
               (int)message->len, (const char *)message->payload);
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics;
    rd_kafka_conf_t *conf;
    char errstr[512];
    rd_kafka_t *consumer;
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
    }
    conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argv[2], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", errstr, sizeof errstr);
    consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    rd_kafka_poll_set_consumer(consumer);
    topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);

    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 200);
        if (!message)
            continue;
        handle(message);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return 0;
}

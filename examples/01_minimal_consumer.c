/* SPDX-License-Identifier: BSD-2-Clause */
/* The shortest ordered consumer: prints the records of a salted topic, each session in its order. */
#include <signal.h>
#include <stdio.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }

int main(int argc, char **argv) {
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_set(conf, "bootstrap.servers", argc > 1 ? argv[1] : "localhost:9092", errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argc > 2 ? argv[2] : "printer", errstr, sizeof errstr);
    rd_kafka_topic_partition_list_add(topics, argc > 3 ? argv[3] : "orders", RD_KAFKA_PARTITION_UA);
    unsalt_t *consumer = unsalt_new(conf, NULL, errstr, sizeof errstr);
    if (!consumer || unsalt_subscribe(consumer, topics))
        return fprintf(stderr, "%s\n", consumer ? "subscribe failed" : errstr), 1;
    rd_kafka_topic_partition_list_destroy(topics);
    signal(SIGINT, stop);
    while (!stopped) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 200);
        if (!message)
            continue;
        fprintf(message->err ? stderr : stdout, "%.*s\n", (int)message->len, (const char *)message->payload);
        rd_kafka_message_destroy(message);
    }
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    return 0;
}

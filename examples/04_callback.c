/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each record is given to a function: the library destroys it afterwards, and acknowledges it when the function has
 * returned, so a record whose handling was cut off by a crash comes again. Prints session, number and payload.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* `opaque` is what was given to unsalt_consume_callback(). */
static void on_record(rd_kafka_message_t *message, void *opaque) {
    const unsalt_t *consumer = opaque;
    unsalt_message_info_t info = {.size = sizeof info};
    if (message->err) {
        fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
        return;
    }
    /* Records without a number come too, in the order of their partition. */
    if (unsalt_message_info(consumer, message, &info) == 0 && info.seq != UNSALT_NO_SEQ)
        printf("%.*s %" PRIu64 " ", (int)info.session_len, (const char *)info.session, info.seq);
    printf("%.*s\n", (int)message->len, (const char *)message->payload);
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics;
    rd_kafka_conf_t *conf;
    char errstr[512];
    unsalt_t *consumer;
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
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
    while (!stop)
        unsalt_consume_callback(consumer, 200, on_record, consumer);
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    return 0;
}

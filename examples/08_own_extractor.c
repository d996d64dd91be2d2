/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records in a form of one's own: a function tells session and number. Here a payload of fixed layout,
 *   8 bytes device id, 8 bytes number (big-endian), then a measurement as text.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unsalt/unsalt.h>

enum { ID = 8, HEAD = 16 };

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static uint64_t big_endian(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Called once when a record is read, and again by unsalt_message_info(): it must answer the same. */
static unsalt_extract_res_t extract(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *found) {
    const unsigned char *payload = message->payload;
    (void)opaque;
    if (message->len < HEAD) {
        found->fault = "a measurement that is too short"; /* told by an event; the record comes all the same */
        return UNSALT_EXTRACT_MALFORMED;
    }
    found->session = payload; /* points into the record: nothing to free */
    found->session_len = ID;
    found->seq = big_endian(payload + ID);
    return UNSALT_EXTRACT_FOUND;
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    fprintf(stderr, "%s\n", event->text);
}

static void show(const rd_kafka_message_t *message) {
    const unsigned char *payload = message->payload;
    if (message->err)
        fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
    else if (message->len >= HEAD)
        printf("%.*s %" PRIu64 " %.*s\n", ID, (const char *)payload, big_endian(payload + ID),
               (int)(message->len - HEAD), (const char *)payload + HEAD);
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    unsalt_t *consumer;
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
    }
    rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(rk_conf, "group.id", argv[2], errstr, sizeof errstr);
    unsalt_conf_set(conf, "seq.source", "callback", errstr, sizeof errstr);
    unsalt_conf_set_extract_cb(conf, extract, NULL);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    consumer = unsalt_new(rk_conf, conf, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);

    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 200);
        if (!message)
            continue;
        show(message);
        rd_kafka_message_destroy(message);
    }
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    return 0;
}

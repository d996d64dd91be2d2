/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topic as existing producers write it: a JSON payload such as
 *   {"sessionId": "room-7", "globalSeq": 17, "type": "chat", "data": {...}}
 * under a salted key (room-7#3), spread by the client's own partitioner. The producers stay as they are.
 */
#include <signal.h>
#include <stdio.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* What the library decided: a number given up, a copy dropped, a payload without a usable number, ... */
static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    fprintf(stderr, "%s\n", event->text);
}

static unsalt_conf_t *field_conf(const char *lanes) {
    const char *const settings[][2] = {
        {"layout", "hash"},            /* the lanes are partitions of one topic, and we read all of them */
        {"lanes", lanes},              /* over how many lanes a session is spread */
        {"seq.source", "json"},        /* don't look at headers, which costs more than the rest */
        {"seq.json", "globalSeq"},     /* where the number is, */
        {"session.json", "sessionId"}, /* and the session; without it, it is the key less its salt: */
        {"salt.pattern", "#<k>"},      /* also #salt_<k>, _SALT_<k>, ... */
        {"salt.trust", "true"},        /* every key that looks salted is */
    };
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (unsalt_conf_set(conf, settings[i][0], settings[i][1], errstr, sizeof errstr))
            fprintf(stderr, "%s\n", errstr);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    return conf;
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics;
    rd_kafka_conf_t *rk_conf;
    char errstr[512];
    unsalt_t *consumer;
    if (argc != 5) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC LANES\n", argv[0]);
        return 2;
    }
    rk_conf = rd_kafka_conf_new();
    rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(rk_conf, "group.id", argv[2], errstr, sizeof errstr);
    consumer = unsalt_new(rk_conf, field_conf(argv[4]), errstr, sizeof errstr);
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

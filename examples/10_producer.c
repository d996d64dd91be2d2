/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stamping producer: each line of the standard input is `SESSION PAYLOAD`, and becomes a record with the session's
 * next number, spread over LANES lanes. The topic exists, and has PARTITIONS partitions.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/unsalt.h>

static unsigned long delivered, lost;

/* Comes once per record, with what became of it in the end; it is served by poll and flush. */
static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    if (message->err)
        fprintf(stderr, "%.*s: %s\n", (int)message->len, (const char *)message->payload,
                rd_kafka_err2str(message->err));
    *(message->err ? &lost : &delivered) += 1;
}

static bool send_line(unsalt_producer_t *producer, const char *topic, const char *session, const char *payload) {
    rd_kafka_resp_err_t err;
    /* On an error no number was used up, so trying again leaves no hole. */
    while ((err = unsalt_produce(producer, topic, session, strlen(session), payload, strlen(payload), NULL)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL)
        unsalt_producer_poll(producer, 100);
    if (err)
        fprintf(stderr, "%s: %s\n", session, rd_kafka_err2str(err));
    unsalt_producer_poll(producer, 0);
    return !err;
}

static unsalt_producer_t *open_producer(char **argv) {
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    unsalt_producer_t *producer;
    char errstr[512];
    if (rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "partitions", argv[3], errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "lanes", argv[4], errstr, sizeof errstr)) { /* the most there may be */
        fprintf(stderr, "%s\n", errstr);
        return NULL;
    }
    rd_kafka_conf_set_dr_msg_cb(rk_conf, on_delivery);
    producer = unsalt_producer_new(rk_conf, conf, errstr, sizeof errstr);
    if (!producer)
        fprintf(stderr, "%s\n", errstr);
    return producer;
}

int main(int argc, char **argv) {
    char line[4096];
    unsalt_producer_t *producer;
    bool sent = true;
    if (argc != 5) {
        fprintf(stderr, "usage: %s BOOTSTRAP TOPIC PARTITIONS LANES < LINES\n", argv[0]);
        return 2;
    }
    producer = open_producer(argv);
    if (!producer)
        return 1;
    /* S of the topic, at any time: here all lanes; a cold topic is well served by 1. */
    unsalt_producer_set_lanes(producer, argv[2], (uint16_t)atoi(argv[4]));
    while (sent && fgets(line, sizeof line, stdin)) {
        char *payload = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (payload && payload > line) {
            *payload++ = '\0';
            sent = send_line(producer, argv[2], line, payload);
        }
    }
    if (unsalt_producer_flush(producer, 30000))
        fprintf(stderr, "the fate of some records isn't known\n");
    printf("%lu delivered, %lu lost\n", delivered, lost);
    unsalt_producer_destroy(producer);
    return sent && !lost ? 0 : 1;
}

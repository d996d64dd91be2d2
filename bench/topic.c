/* SPDX-License-Identifier: BSD-2-Clause */
#include "topic.h"
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PARTITIONS = 8, PAYLOAD = 100 };

static char name[64];
static long failures;

void topic_fail(const char *why) {
    fprintf(stderr, "bench: consumer: %s\n", why);
    exit(1);
}

static rd_kafka_conf_t *client_conf(void) {
    const char *bootstrap = getenv("UNSALT_TEST_BOOTSTRAP");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char errstr[256];
    if (!bootstrap || !*bootstrap)
        topic_fail("UNSALT_TEST_BOOTSTRAP is not set: use `make bench`");
    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, errstr, sizeof errstr))
        topic_fail(errstr);
    return conf;
}

rd_kafka_conf_t *topic_consumer_conf(void) {
    rd_kafka_conf_t *conf = client_conf();
    rd_kafka_conf_set(conf, "group.id", name, NULL, 0);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", NULL, 0);
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", NULL, 0);
    /* A full queue makes librdkafka wait up to a second before it fetches again: no time of ours. */
    rd_kafka_conf_set(conf, "queued.min.messages", "1000000", NULL, 0);
    rd_kafka_conf_set(conf, "queued.max.messages.kbytes", "1048576", NULL, 0);
    return conf;
}

unsalt_conf_t *topic_unsalt_conf(void) {
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[256] = "out of memory";
    if (!conf || unsalt_conf_set(conf, "partitions", "8", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "lanes", "4", errstr, sizeof errstr))
        topic_fail(errstr);
    return conf;
}

rd_kafka_topic_partition_list_t *topic_partitions(void) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    int i;
    for (i = 0; i < PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, name, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    return list;
}

static void wait_for(rd_kafka_queue_t *queue, const char *what) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    if (!event || rd_kafka_event_error(event))
        topic_fail(event ? rd_kafka_event_error_string(event) : what);
    rd_kafka_event_destroy(event);
}

static void create(rd_kafka_t *rk) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, PARTITIONS, 1, NULL, 0);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    wait_for(queue, "the topic can't be created");
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    failures += message->err != 0;
}

static unsalt_producer_t *open_producer(const char *lanes) {
    rd_kafka_conf_t *conf = client_conf();
    unsalt_conf_t *unsalt_conf = topic_unsalt_conf();
    unsalt_producer_t *producer;
    char errstr[512];
    rd_kafka_conf_set(conf, "linger.ms", "20", NULL, 0);
    rd_kafka_conf_set(conf, "queue.buffering.max.messages", "200000", NULL, 0);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    unsalt_conf_set(unsalt_conf, "lanes", lanes, NULL, 0);
    producer = unsalt_producer_new(conf, unsalt_conf, errstr, sizeof errstr);
    if (!producer)
        topic_fail(errstr);
    return producer;
}

static void send_one(unsalt_producer_t *producer, const char *session) {
    char payload[PAYLOAD];
    rd_kafka_resp_err_t err;
    memset(payload, 'x', sizeof payload);
    while ((err = unsalt_produce(producer, name, session, strlen(session), payload, sizeof payload, NULL)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL)
        unsalt_producer_poll(producer, 5);
    if (err)
        topic_fail(rd_kafka_err2str(err));
}

static void fill(enum traffic traffic, long records, unsalt_producer_t *salted, unsalt_producer_t *cold) {
    char session[32];
    long i;
    for (i = 0; i < records; i++) {
        if (traffic == TRAFFIC_ALL_HOT) {
            snprintf(session, sizeof session, "order-%ld", i % 100);
            send_one(salted, session);
        } else if (i % 2) {
            send_one(salted, "hot");
        } else {
            snprintf(session, sizeof session, "cold-%ld", i / 2 % 1000);
            send_one(cold, session);
        }
        if (i % 1000 == 0) {
            unsalt_producer_poll(salted, 0);
            unsalt_producer_poll(cold, 0);
        }
    }
    if (unsalt_producer_flush(salted, 60000) || unsalt_producer_flush(cold, 60000) || failures)
        topic_fail("the topic can't be filled");
}

void topic_open(enum traffic traffic, long records) {
    unsalt_producer_t *salted, *cold;
    double began = bench_wall();
    snprintf(name, sizeof name, "bench-%d-%ld-%ld", (int)traffic, (long)time(NULL), (long)getpid());
    salted = open_producer("4");
    cold = open_producer("1");
    create(unsalt_producer_handle(salted));
    fill(traffic, records, salted, cold);
    unsalt_producer_destroy(salted);
    unsalt_producer_destroy(cold);
    fprintf(stderr, "bench: %ld records in %d partitions after %.1f s\n", records, PARTITIONS, bench_wall() - began);
}

void topic_close(void) {
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, client_conf(), NULL, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    wait_for(queue, "the topic can't be deleted");
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

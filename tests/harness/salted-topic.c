/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salted-topic BOOTSTRAP TOPIC SESSIONS RECORDS: what a service without unsalt leaves behind. Creates TOPIC with eight
 * partitions and writes RECORDS records of each of SESSIONS sessions into it, salted over four lanes as the Java
 * client does it: the key is `room-S#K`, the partition its murmur2 hash, the number stands in the JSON payload.
 * Lanes are written one after the other, the last one first, so that no plain reader sees the order.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 8, LANES = 4 };

static long unwritten;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "salted-topic: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    if (rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr))
        fail(name, errstr);
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    if (message->err)
        fail("a record was not accepted", rd_kafka_err2str(message->err));
    unwritten--;
}

static void create(rd_kafka_t *rk, const char *topic) {
    char errstr[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, PARTITIONS, 1, errstr, sizeof errstr);
    const rd_kafka_topic_result_t **results;
    rd_kafka_event_t *event;
    size_t n;
    rd_kafka_CreateTopics(rk, &wanted, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, 30000);
    if (!event || rd_kafka_event_error(event))
        fail(topic, event ? rd_kafka_event_error_string(event) : "no answer");
    results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    if (n != 1 || rd_kafka_topic_result_error(results[0]))
        fail(topic, "can't be created");
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
}

static void write_record(rd_kafka_t *rk, const char *topic, int session, int number) {
    char key[32], value[96];
    int key_len = snprintf(key, sizeof key, "room-%d#%d", session, number % LANES);
    int len = snprintf(value, sizeof value, "{\"sessionId\":\"room-%d\",\"globalSeq\":%d,\"text\":\"hello\"}", session,
                       number);
    rd_kafka_resp_err_t err = rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, (size_t)key_len), RD_KAFKA_V_VALUE(value, (size_t)len),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (err)
        fail("a record can't be written", rd_kafka_err2str(err));
    unwritten++;
}

int main(int argc, char **argv) {
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    int lane, session, number;
    if (argc != 5)
        fail("usage", "salted-topic BOOTSTRAP TOPIC SESSIONS RECORDS");
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "partitioner", "murmur2");
    set(conf, "enable.idempotence", "true");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!rk)
        fail("producer", errstr);
    create(rk, argv[2]);
    for (lane = LANES - 1; lane >= 0; lane--) {
        for (number = 1; number <= atoi(argv[4]); number++)
            for (session = 1; number % LANES == lane && session <= atoi(argv[3]); session++)
                write_record(rk, argv[2], session, number);
        if (rd_kafka_flush(rk, 30000) || unwritten)
            fail("flush", "records are left over");
    }
    rd_kafka_destroy(rk);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdkafka's mock cluster for tests of the consumer: one cluster, a producer that writes to it, consumers that read
 * from it, and recorders for what they hand out and say. Everything fails the test by itself if it can't be done.
 *
 * Known limits of the mock: 5 MiB per partition, one batch per partition and fetch, no transactions, a group
 * join takes 3 s: so most tests use unsalt_assign().
 */
#ifndef TESTS_SUPPORT_MOCKCLUSTER_H
#define TESTS_SUPPORT_MOCKCLUSTER_H
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdbool.h>
#include <unsalt/unsalt.h>

struct mock {
    rd_kafka_t *producer; /* owns the cluster */
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstraps;
};

void mock_open(struct mock *mock, int brokers);
void mock_topic(struct mock *mock, const char *topic, int partitions);
void mock_close(struct mock *mock);

/* Writes a record and waits for nothing; mock_flush() waits for all. key may be NULL; header NULL: none. */
void mock_write(struct mock *mock, const char *topic, int32_t partition, const char *key, const void *payload,
                size_t len, const char *header, const void *value, size_t size);
/* A record of a session with an `unsalt` header; lanes >= 1, lane = seq mod lanes, key `session`. */
void mock_send(struct mock *mock, const char *topic, int32_t partition, const char *session, uint64_t seq,
               uint16_t lanes);
/* The same with every field of the header. */
void mock_send_header(struct mock *mock, const char *topic, int32_t partition, const char *session,
                      const unsalt_header_t *header);
void mock_flush(struct mock *mock);

/* ---- what a consumer says */

struct heard {
    pthread_mutex_t lock;
    uint64_t count[UNSALT_EVENT__CNT];
    char text[UNSALT_EVENT__CNT][512]; /* of the newest */
    unsalt_gap_reason_t reason[UNSALT_EVENT__CNT];
    uint64_t first[UNSALT_EVENT__CNT], last[UNSALT_EVENT__CNT];
    int64_t offset[UNSALT_EVENT__CNT];
    uint64_t lines; /* of the log */
};
void heard_init(struct heard *heard);
uint64_t heard_count(struct heard *heard, unsalt_event_type_t type);

/* ---- consumers */

/* A configuration of librdkafka for this cluster: fast fetches, commits by the library switched off. */
rd_kafka_conf_t *mock_rd_conf(const struct mock *mock, const char *group);
void mock_rd_set(rd_kafka_conf_t *conf, const char *name, const char *value);
/* `settings`: "key=value key=value", may be "". heard may be NULL. */
unsalt_conf_t *mock_conf(const char *settings, struct heard *heard);
unsalt_t *mock_consumer(const struct mock *mock, const char *group, const char *settings, struct heard *heard);
/* Takes both configurations. */
unsalt_t *mock_consumer_of(rd_kafka_conf_t *rd_conf, unsalt_conf_t *conf);
/* Assigns partitions 0..n-1 of a topic, from the offset (RD_KAFKA_OFFSET_INVALID: the committed one). */
rd_kafka_resp_err_t mock_assign(unsalt_t *u, const char *topic, int n, int64_t offset);
/* Destroys the consumer. */
void mock_done(unsalt_t *u);
/* The committed offset of a partition, -1001 if there is none; asked through a handle of its own. */
int64_t mock_committed(const struct mock *mock, const char *group, const char *topic, int32_t partition);

/* ---- what a consumer hands out */

struct got {
    char session[64];
    uint64_t seq, epoch, waited_ns;
    int64_t offset;
    int32_t partition, lane;
    unsalt_state_t state;
    rd_kafka_resp_err_t err;
    int after_gap;
    unsalt_token_t token;
};
struct takings {
    struct got *got; /* owned */
    size_t count, capacity;
};
void takings_free(struct takings *takings);
/* Polls until `want` messages were handed out in all, or the time is over. Returns whether they were. */
bool take(unsalt_t *u, struct takings *takings, size_t want, int timeout_ms);
void take_message(const unsalt_t *u, struct takings *takings, const rd_kafka_message_t *message);
/* Polls for this long and checks that nothing comes. */
void take_nothing(unsalt_t *u, int ms);
/* Every session's released numbers are first, first+1, ... without exception. Returns how many records they are. */
size_t check_order(const struct takings *takings, uint64_t first);

uint64_t now_ms(void); /* monotonic */
void sleep_ms(int ms);
#endif

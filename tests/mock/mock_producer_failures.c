/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a send that fails: sent again, marked or abandoned. On the mock cluster. */
#include <kafka/clock.h>
#include <mock/fixture/sent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

#define MOST 64

/* What the application was told, by its opaques, which are 1, 2, 3.. */
struct told {
    int times[MOST];
    rd_kafka_resp_err_t err[MOST];
    rd_kafka_msg_status_t status[MOST];
    char payload[MOST][8];
    bool has_other[MOST]; /* the header `other` */
    int all;
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct told *told = opaque;
    size_t i = (size_t)message->_private;
    rd_kafka_headers_t *headers;
    const void *value;
    size_t size;
    (void)rk;
    if (i == 0 || i >= MOST || message->len >= sizeof told->payload[0])
        return;
    told->all++;
    told->times[i]++;
    told->err[i] = message->err;
    told->status[i] = rd_kafka_message_status(message);
    memcpy(told->payload[i], message->payload, message->len);
    told->has_other[i] = !rd_kafka_message_headers(message, &headers) &&
                         !rd_kafka_header_get_last(headers, "other", &value, &size);
    if (strcmp(rd_kafka_topic_name(message->rkt), "t") != 0)
        told->times[i] += 100;
}

static const char *patience_ms = "300"; /* after which librdkafka gives a record up; each test has its own */

/* A first record, of a topic with more patience, is through: then the producer has its id. It isn't told of. */
static void warm_up(unsalt_producer_t *p) {
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    rd_kafka_topic_conf_set(conf, "message.timeout.ms", "15000", NULL, 0);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(unsalt_producer_handle(p), "warm", conf);
    sent_put(p, "warm", "w", "x");
    sent_flush(p);
    rd_kafka_topic_destroy(topic);
    CHECK(sent_stats(p).acked == 1 && sent_stats(p).resent == 0);
}

/* A cluster with topic t of so many partitions, and a producer of it that has got its id. */
static unsalt_producer_t *start(struct sent_cluster *c, struct told *told, int partitions, const char *settings,
                                const char *queue) {
    *c = sent_open();
    memset(told, 0, sizeof *told);
    sent_add_topic(c, "t", partitions);
    sent_add_topic(c, "warm", partitions);
    rd_kafka_conf_t *conf = sent_client_conf(c);
    rd_kafka_conf_set_opaque(conf, told);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    sent_set(conf, "message.timeout.ms", patience_ms);
    sent_set(conf, "reconnect.backoff.ms", "20");
    sent_set(conf, "reconnect.backoff.max.ms", "50");
    if (queue)
        sent_set(conf, "queue.buffering.max.messages", queue);
    char all[128]; /* unchecked, as the cluster may be away by then */
    snprintf(all, sizeof all, "producer.check.ms=0 partitions=%d %s", partitions, settings);
    unsalt_producer_t *p = sent_producer(conf, all);
    warm_up(p);
    return p;
}

/* Sends records with the opaques and payloads first..last. */
static void put(unsalt_producer_t *p, const char *session, int first, int last) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
    rd_kafka_header_add(headers, "other", -1, "mine", 4);
    for (int i = first; i <= last; i++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%d", i);
        unsalt_record_t r = sent_record_of("t", session, payload);
        r.headers = headers;
        r.timestamp = 1000 + i;
        r.opaque = (void *)(size_t)i;
        CHECK_I64(unsalt_produce_record(p, &r), 0);
    }
    rd_kafka_headers_destroy(headers);
}

/* Each record was told of once, with this error. */
static void check_told(const struct told *told, int first, int last, rd_kafka_resp_err_t err) {
    for (int i = first; i <= last; i++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%d", i);
        CHECK_THAT(told->times[i] == 1, "record %d was told of %d times", i, told->times[i]);
        CHECK_THAT(told->err[i] == err, "record %d: %s", i, rd_kafka_err2name(told->err[i]));
        CHECK_STR(told->payload[i], payload);
        CHECK(told->has_other[i]);
    }
}

#define WAIT_FOR(condition, step)                                                                                     \
    for (uint64_t end_ = us_clock_now() + SENT_PATIENCE_MS * UINT64_C(1000000); !(condition);) {                      \
        CHECK_THAT(us_clock_now() < end_, "waited in vain for %s", #condition);                                       \
        step;                                                                                                         \
    }

TEST(mock_producer_failures, sent_again_with_the_same_number) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 10);
    WAIT_FOR(sent_stats(p).resent >= 20, unsalt_producer_poll(p, 50));
    CHECK_I64(told.all, 0);
    CHECK(unsalt_producer_flush(p, 10) == RD_KAFKA_RESP_ERR__TIMED_OUT);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    sent_flush(p);
    check_told(&told, 1, 10, RD_KAFKA_RESP_ERR_NO_ERROR);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.acked == 11 && stats.stamped == 11 && stats.abandoned == 0 && stats.waiting == 0);
    CHECK(stats.markers == 0);
    put(p, "a", 11, 11);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 4);
    CHECK_U64(sent_count, 11);
    for (size_t i = 0; i < sent_count; i++) {
        const struct sent_record *r = &sent_records[i];
        CHECK_I64(r->timestamp, 1000 + atoi(r->payload));
        CHECK_U64(r->header.seq, (uint64_t)atoi(r->payload));
        CHECK_STR(r->other, "mine");
        CHECK_U64(r->headers, 2);
        CHECK((r->header.flags & UNSALT_F_FIRST) == (r->header.seq == 1 ? UNSALT_F_FIRST : 0));
        CHECK((r->header.flags & UNSALT_F_RESEND) == (r->header.seq <= 10 ? UNSALT_F_RESEND : 0));
        CHECK_U64(r->header.una, r->header.seq == 11 ? 11 : 1);
        CHECK(r->header.since == 1 && r->header.lanes == 2);
    }
    sent_close(&c);
}

/* One marker for all of them, although they lay in two lanes; and `una` passes them. */
TEST(mock_producer_failures, what_is_nowhere_is_marked) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2 producer.resend.max.ms=1", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 10);
    WAIT_FOR(sent_stats(p).resent == 10, unsalt_producer_poll(p, 50));
    WAIT_FOR(told.all == 10, rd_kafka_poll(unsalt_producer_handle(p), 50));
    check_told(&told, 1, 10, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    CHECK_U64(sent_stats(p).waiting, 10);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    sent_flush(p);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.abandoned == 10 && stats.uncertain == 0 && stats.resent == 10 && stats.waiting == 0);
    CHECK_U64(stats.markers, 1);
    CHECK_U64(stats.marked, 10);
    put(p, "a", 11, 11);
    sent_flush(p);
    CHECK_I64(told.all, 11);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 4);
    CHECK_U64(sent_count, 2);
    for (size_t i = 0; i < sent_count; i++) {
        const unsalt_header_t *h = &sent_records[i].header;
        CHECK_U64(h->una, 11);
        CHECK_U64(h->since, 1);
        CHECK(h->seq == 11 || (h->seq == 10 && h->flags == UNSALT_F_MARKER && sent_records[i].payload[0]));
        CHECK(h->flags == 0 || sent_records[i].headers == 1);
        CHECK_STR(sent_records[i].key, h->seq == 11 ? "a#1" : "a#0");
    }
    sent_close(&c);
}

/* The limit counts from the first failure: one more attempt, then the marker, which has as much. */
TEST(mock_producer_failures, the_limit_holds_for_markers_too) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2 producer.resend.max.ms=1", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 4);
    sent_flush(p); /* in the end nothing is open */
    check_told(&told, 1, 4, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.abandoned == 4 && stats.resent == 4 && stats.markers == 0 && stats.waiting == 0);
    unsalt_producer_destroy(p);
    CHECK_I64(told.all, 4);
    sent_close(&c);
}

TEST(mock_producer_failures, what_the_broker_refuses_for_good_is_not_sent_again) {
    struct sent_cluster c;
    struct told told;
    patience_ms = "15000";
    unsalt_producer_t *p = start(&c, &told, 1, "lanes=1", NULL);
    rd_kafka_mock_push_request_errors(c.mock, 0 /* Produce */, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    put(p, "a", 1, 1);
    sent_flush(p);
    check_told(&told, 1, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    put(p, "a", 2, 2);
    sent_flush(p);
    check_told(&told, 2, 2, RD_KAFKA_RESP_ERR_NO_ERROR);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.acked == 2 && stats.abandoned == 1 && stats.resent == 0);
    CHECK(stats.markers == 1 && stats.marked == 1);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 1);
    CHECK_U64(sent_count, 2);
    CHECK_U64(sent_records[0].header.flags, UNSALT_F_MARKER);
    CHECK(sent_records[0].header.since == 1 && sent_records[0].header.seq == 1);
    CHECK(sent_records[1].header.seq == 2 && sent_records[1].header.una == 2);
    sent_close(&c);
}

/*
 * Two requests on their way: the first one is refused, the second one accepted. librdkafka takes that for a proof that
 * the first one was accepted, too (confluentinc/confluent-kafka-go#921, confluentinc/librdkafka#4134).
 */
TEST(mock_producer_failures, an_acknowledgement_without_proof_is_sent_again) {
    struct sent_cluster c;
    struct told told;
    patience_ms = "15000";
    unsalt_producer_t *p = start(&c, &told, 1, "lanes=1", NULL);
    put(p, "a", 1, 1);
    sent_flush(p);
    rd_kafka_mock_broker_set_rtt(c.mock, 1, 500);
    rd_kafka_mock_push_request_errors(c.mock, 0 /* Produce */, 1, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    put(p, "a", 2, 2);
    for (int i = 0; i < 10; i++)
        unsalt_producer_poll(p, 10); /* so that it is a request of its own */
    put(p, "a", 3, 3);
    sent_flush(p);
    check_told(&told, 1, 3, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(sent_stats(p).acked == 4 && sent_stats(p).resent == 1);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 1);
    CHECK_U64(sent_count, 3);
    CHECK(sent_records[1].header.seq == 3 && sent_records[2].header.seq == 2);
    CHECK(sent_records[2].header.flags == UNSALT_F_RESEND && sent_records[2].header.una == 2);
    sent_close(&c);
}

TEST(mock_producer_failures, what_the_application_purges_is_not_sent_again_or_marked) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 10);
    rd_kafka_purge(unsalt_producer_handle(p), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    sent_flush(p);
    CHECK_I64(told.all, 10);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.abandoned == 10 && stats.resent == 0 && stats.waiting == 0 && stats.markers == 0);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

/* A second copy of a record without a number would pass for another record. */
TEST(mock_producer_failures, a_record_without_a_session_is_not_sent_again) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, NULL, 1, 4);
    sent_flush(p);
    check_told(&told, 1, 4, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.abandoned == 4 && stats.resent == 0 && stats.markers == 0 && stats.marked == 0);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

/* ---- what waits */

/* While older records have no room, newer ones are refused: the list is bounded by the queue. */
TEST(mock_producer_failures, what_waits_goes_first) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", "5");
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 5);
    CHECK(unsalt_produce(p, "t", "a", 1, "x", 1, NULL) == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    WAIT_FOR(sent_stats(p).waiting == 5, rd_kafka_poll(unsalt_producer_handle(p), 50));
    CHECK(unsalt_produce(p, "t", "b", 1, "x", 1, NULL) == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    CHECK_U64(sent_stats(p).waiting, 0); /* the call has sent them */
    CHECK_U64(sent_stats(p).resent, 5);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    sent_flush(p);
    check_told(&told, 1, 5, RD_KAFKA_RESP_ERR_NO_ERROR);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

TEST(mock_producer_failures, destroy_reports_what_waits) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 5);
    WAIT_FOR(sent_stats(p).waiting == 5, rd_kafka_poll(unsalt_producer_handle(p), 50));
    CHECK_I64(told.all, 0);
    unsalt_producer_destroy(p);
    CHECK_I64(told.all, 5);
    check_told(&told, 1, 5, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
    for (int i = 1; i <= 5; i++)
        CHECK(told.status[i] == RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    sent_close(&c);
}

TEST(mock_producer_failures, markers_that_wait_are_dropped_at_the_end) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2 producer.resend.max.ms=0", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 5);
    WAIT_FOR(sent_stats(p).waiting == 5, rd_kafka_poll(unsalt_producer_handle(p), 50));
    CHECK_I64(told.all, 5);
    unsalt_producer_destroy(p);
    CHECK_I64(told.all, 5);
    sent_close(&c);
}

TEST(mock_producer_failures, a_fatal_error_ends_it) {
    struct sent_cluster c;
    struct told told;
    unsalt_producer_t *p = start(&c, &told, 4, "lanes=2", NULL);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 5);
    WAIT_FOR(sent_stats(p).waiting == 5, rd_kafka_poll(unsalt_producer_handle(p), 50));
    CHECK_I64(rd_kafka_test_fatal_error(unsalt_producer_handle(p), RD_KAFKA_RESP_ERR__INCONSISTENT, "a test"), 0);
    CHECK(unsalt_produce(p, "t", "b", 1, "x", 1, NULL) == RD_KAFKA_RESP_ERR__FATAL);
    CHECK_I64(told.all, 0); /* no report from within a call to produce */
    sent_flush(p);
    check_told(&told, 1, 5, RD_KAFKA_RESP_ERR__FATAL);
    CHECK(sent_stats(p).abandoned == 5 && sent_stats(p).markers == 0);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

/* The transaction decides. */
TEST(mock_producer_failures, nothing_is_sent_again_in_a_transaction) {
    struct sent_cluster c = sent_open();
    struct told told = {.all = 0};
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    sent_add_topic(&c, "t", 4);
    sent_add_topic(&c, "warm", 4);
    rd_kafka_conf_set_opaque(conf, &told);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    sent_set(conf, "transactional.id", "x");
    sent_set(conf, "message.timeout.ms", "1000");
    sent_set(conf, "transaction.timeout.ms", "1000");
    sent_set(conf, "socket.timeout.ms", "500");
    unsalt_producer_t *p = sent_producer(conf, "partitions=4 lanes=2");
    CHECK(!rd_kafka_init_transactions(unsalt_producer_handle(p), SENT_PATIENCE_MS));
    CHECK(!rd_kafka_begin_transaction(unsalt_producer_handle(p)));
    sent_put(p, "t", "a", "x");
    sent_flush(p);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    put(p, "a", 1, 5);
    WAIT_FOR(told.all == 5, unsalt_producer_poll(p, 50));
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK(stats.abandoned == 5 && stats.resent == 0 && stats.waiting == 0);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

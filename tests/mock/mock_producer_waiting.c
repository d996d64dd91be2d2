/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits to be sent again: who sends it, who is told of it, and how it is purged. Mostly without any broker. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <kafka/clock.h>
#include <kafka/producer.h>
#include <mock/fixture/sent.h>
#include <pthread.h>
#include <string.h>
#include <support/check.h>

#define WAIT_FOR(condition, step)                                                                                     \
    for (uint64_t end_ = us_clock_now() + SENT_PATIENCE_MS * UINT64_C(1000000); !(condition);) {                      \
        CHECK_THAT(us_clock_now() < end_, "waited in vain for %s", #condition);                                       \
        step;                                                                                                         \
    }

/* ---- a producer without a broker: librdkafka gives everything up after a moment */

struct told {
    unsalt_producer_t *p;
    bool polls; /* the callback does */
    int all, depth, deepest;
    rd_kafka_resp_err_t err, flushed; /* the last ones */
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct told *told = opaque;
    (void)rk;
    told->all++;
    told->err = message->err;
    told->depth++;
    told->deepest = told->depth > told->deepest ? told->depth : told->deepest;
    if (told->polls)
        unsalt_producer_poll(told->p, 0);
    told->flushed = told->polls ? unsalt_producer_flush(told->p, 0) : RD_KAFKA_RESP_ERR_NO_ERROR;
    told->depth--;
}

static unsalt_producer_t *start(struct told *told, const char *settings) {
    struct sent_cluster c = sent_open();
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    sent_close(&c); /* it is logged to nobody that there is none */
    memset(told, 0, sizeof *told);
    rd_kafka_conf_set_opaque(conf, told);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    sent_set(conf, "message.timeout.ms", "30");
    told->p = sent_producer(conf, settings);
    return told->p;
}

/* Produces that many, and has librdkafka give them up; nobody sends them again. */
static void make_wait(struct told *told, uint64_t records) {
    rd_kafka_t *rk = unsalt_producer_handle(told->p);
    for (uint64_t i = 0; i < records; i++)
        sent_put(told->p, "t", "a", "x");
    WAIT_FOR(sent_stats(told->p).waiting == records, rd_kafka_poll(rk, 5));
    CHECK_I64(told->all, 0);
}

static const char *const plain = "partitions=4 lanes=2 producer.check.ms=0";

/* ---- callbacks that poll */

/* What a callback sends again while the producer is being destroyed would be lost without a report. */
TEST(mock_producer_waiting, destroy_reports_all_to_a_callback_that_polls) {
    struct told told;
    start(&told, plain);
    make_wait(&told, 10);
    told.polls = true;
    unsalt_producer_destroy(told.p);
    CHECK_I64(told.all, 10);
    CHECK_I64(told.err, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
    CHECK_I64(told.flushed, RD_KAFKA_RESP_ERR__DESTROY);
    CHECK_I64(told.deepest, 1);
}

/* The stack doesn't grow with the number of those that wait. */
TEST(mock_producer_waiting, a_callback_that_polls_is_not_called_within_itself) {
    struct told told;
    start(&told, plain);
    make_wait(&told, 500);
    told.polls = true;
    CHECK_I64(rd_kafka_test_fatal_error(unsalt_producer_handle(told.p), RD_KAFKA_RESP_ERR__INCONSISTENT, "a test"), 0);
    CHECK(unsalt_producer_poll(told.p, -1) >= 500); /* it has served them, so it returns */
    CHECK_I64(told.all, 500);
    CHECK_I64(told.err, RD_KAFKA_RESP_ERR__FATAL);
    CHECK_I64(told.deepest, 1);
    CHECK_U64(sent_stats(told.p).waiting, 0);
    CHECK_I64(unsalt_producer_flush(told.p, 0), 0);
    unsalt_producer_destroy(told.p);
}

/* ---- poll without a time limit */

TEST(mock_producer_waiting, what_is_due_now_is_no_reason_to_sleep) {
    struct told told;
    start(&told, plain);
    CHECK_U64(us_again_due(told.p), UINT64_MAX);
    make_wait(&told, 1);
    CHECK_U64(us_again_due(told.p), 0);
    unsalt_producer_destroy(told.p);
    start(&told, "partitions=4 lanes=2 producer.check.ms=0 producer.resend.max.ms=0");
    sent_put(told.p, "t", "a", "x"); /* a marker will wait, for its neighbours at first */
    WAIT_FOR(sent_stats(told.p).waiting == 1, rd_kafka_poll(unsalt_producer_handle(told.p), 5));
    WAIT_FOR(us_again_due(told.p) == 0, CHECK(us_again_due(told.p) <= 100));
    CHECK(unsalt_producer_poll(told.p, -1) > 0);
    unsalt_producer_destroy(told.p);
}

static void *poll_for_ever(void *arg) {
    struct told *told = arg;
    while (!atomic_load(&told->p->closing))
        unsalt_producer_poll(told->p, -1);
    return NULL;
}

/* Takes the only one that waits, as if librdkafka hadn't reported it yet. */
static struct us_again *unmake_wait(struct unsalt_producer *p) {
    struct us_agains *all = &p->agains;
    pthread_mutex_lock(&all->lock);
    struct us_again *again = all->first;
    all->first = all->last = NULL;
    atomic_fetch_sub(&all->waiting, 1);
    pthread_mutex_unlock(&all->lock);
    return again;
}

/* As when this thread serves a report: nothing wakes the other one, that has nothing to wait for when it begins. */
TEST(mock_producer_waiting, a_thread_that_polls_sends_what_another_was_told_of) {
    struct told told;
    pthread_t thread;
    start(&told, plain);
    make_wait(&told, 1);
    struct us_again *again = unmake_wait(told.p);
    CHECK(pthread_create(&thread, NULL, poll_for_ever, &told) == 0);
    for (uint64_t end = us_clock_now() + UINT64_C(200000000); us_clock_now() < end;)
        sched_yield(); /* by then it sleeps, most likely; if not, nothing is shown, but nothing fails */
    us_again_keep(told.p, again);
    WAIT_FOR(sent_stats(told.p).resent > 0, sched_yield());
    atomic_store(&told.p->closing, true); /* ends the thread's poll */
    pthread_join(thread, NULL);
    unsalt_producer_destroy(told.p);
}

/* ---- purge */

TEST(mock_producer_waiting, purge_reaches_what_waits) {
    struct told told;
    start(&told, plain);
    make_wait(&told, 20);
    CHECK_I64(unsalt_producer_purge(told.p, 64), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_producer_purge(told.p, RD_KAFKA_PURGE_F_INFLIGHT), 0); /* isn't what waits */
    CHECK_I64(unsalt_producer_purge(told.p, RD_KAFKA_PURGE_F_QUEUE), 0);
    CHECK_I64(told.all, 0); /* not from within */
    CHECK_I64(unsalt_produce(told.p, "t", "a", 1, "x", 1, NULL), RD_KAFKA_RESP_ERR__QUEUE_FULL);
    CHECK_I64(told.all, 0);
    sent_flush(told.p);
    CHECK_I64(told.all, 20);
    CHECK_I64(told.err, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
    unsalt_producer_stats_t stats = sent_stats(told.p);
    CHECK(stats.abandoned == 20 && stats.resent == 0 && stats.waiting == 0 && stats.markers == 0);
    sent_put(told.p, "t", "a", "x"); /* a new one is as any: it waits to be sent again */
    WAIT_FOR(sent_stats(told.p).waiting + sent_stats(told.p).resent > 0, unsalt_producer_poll(told.p, 5));
    unsalt_producer_destroy(told.p);
}

/* librdkafka had given it up, or has it on its way, and the report comes only after the purge. */
TEST(mock_producer_waiting, what_fails_after_a_purge_is_not_sent_again) {
    struct told told;
    start(&told, plain);
    sent_put(told.p, "t", "a", "x");
    atomic_fetch_add(&told.p->purges, 1); /* a purge that doesn't find it in the queue */
    sent_flush(told.p);
    CHECK_I64(told.all, 1);
    CHECK_I64(told.err, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    unsalt_producer_stats_t stats = sent_stats(told.p);
    CHECK(stats.abandoned == 1 && stats.resent == 0 && stats.waiting == 0 && stats.markers == 0);
    unsalt_producer_destroy(told.p);
}

TEST(mock_producer_waiting, purge_drops_markers) {
    struct told told;
    start(&told, "partitions=4 lanes=2 producer.check.ms=0 producer.resend.max.ms=0");
    sent_put(told.p, "t", "a", "x");
    WAIT_FOR(sent_stats(told.p).waiting == 1, rd_kafka_poll(unsalt_producer_handle(told.p), 5));
    CHECK_I64(told.all, 1);
    CHECK_I64(unsalt_producer_purge(told.p, RD_KAFKA_PURGE_F_QUEUE), 0);
    sent_flush(told.p);
    CHECK_U64(sent_stats(told.p).waiting, 0);
    CHECK_I64(rd_kafka_outq_len(unsalt_producer_handle(told.p)), 0);
    unsalt_producer_destroy(told.p);
}

/* ---- una */

enum { HOLD_MS = 700 };
static _Thread_local int holds; /* this thread is held when it writes its second header; 0: it isn't */
static atomic_bool held, go;

/* Stands before librdkafka's own: between the moment at which `una` is read and that at which a record is enqueued. */
rd_kafka_resp_err_t rd_kafka_header_remove(rd_kafka_headers_t *headers, const char *name) {
    rd_kafka_resp_err_t (*real)(rd_kafka_headers_t *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_header_remove");
    if (holds && holds++ == 2) {
        uint64_t end = us_clock_now() + HOLD_MS * UINT64_C(1000000);
        atomic_store(&held, true);
        while (!atomic_load(&go) && us_clock_now() < end)
            sched_yield();
    }
    return real(headers, name);
}

static void *send_again(void *arg) {
    holds = 1;
    unsalt_producer_poll(arg, 0);
    return NULL;
}

/*
 * Number 2 is about to be sent again when 1 is acknowledged, so that una rises, and 3 is produced to the same lane: 3
 * must not stand in front of 2 with a higher una. Either 3 has to wait for 2, or 2 takes una when it is enqueued.
 */
TEST(mock_producer_waiting, una_never_goes_back_on_a_lane) {
    struct sent_cluster c = sent_open();
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    pthread_t thread;
    sent_add_topic(&c, "t", 1);
    sent_set(conf, "message.timeout.ms", "300");
    sent_set(conf, "reconnect.backoff.ms", "20");
    sent_set(conf, "reconnect.backoff.max.ms", "50");
    unsalt_producer_t *p = sent_producer(conf, "partitions=1 lanes=1 producer.check.ms=0");
    rd_kafka_t *rk = unsalt_producer_handle(p);
    sent_put(p, "t", "warm", "x");
    sent_flush(p);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    sent_put(p, "t", "a", "1");
    sent_put(p, "t", "a", "2");
    WAIT_FOR(sent_stats(p).waiting == 2, rd_kafka_poll(rk, 5));
    rd_kafka_mock_broker_set_up(c.mock, 1);
    uint64_t acked = sent_stats(p).acked;
    CHECK(pthread_create(&thread, NULL, send_again, p) == 0);
    WAIT_FOR(atomic_load(&held), sched_yield());
    for (int i = 0; i < 100 && sent_stats(p).acked == acked; i++)
        rd_kafka_poll(rk, 5);
    while (unsalt_produce(p, "t", "a", 1, "3", 1, NULL))
        unsalt_producer_poll(p, 5);
    atomic_store(&go, true);
    pthread_join(thread, NULL);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 1);
    uint64_t una = 0;
    for (size_t i = 0; i < sent_count; i++) {
        if (strcmp(sent_records[i].key, "a") != 0)
            continue;
        CHECK_THAT(sent_records[i].header.una >= una, "number %" PRIu64 " has una %" PRIu64 " behind %" PRIu64,
                   sent_records[i].header.seq, sent_records[i].header.una, una);
        una = sent_records[i].header.una;
    }
    sent_close(&c);
}

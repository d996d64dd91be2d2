/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A close in the middle of a rebalance, with librdkafka's question still in the queue. The group may end without an
 * answer, and what its thread still has to do is thrown away then: an answer that comes in this moment, too, and
 * whoever gave it waits for ever (confluentinc/librdkafka#4884, #4041; 2.0.2 to 2.16.0). So the answer has to be given
 * before rd_kafka_consumer_close().
 *
 * If it isn't, it is brought into this very moment: librdkafka says in its debug log, on the thread in question, what
 * it does, and can be held there.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 120)

enum { WAIT_MS = 30000 };

/* A consumer or a relay. */
struct member {
    unsalt_t *u;
    unsalt_relay_t *relay;
    const char *question; /* what the log says of it */
    atomic_bool asked;    /* the question is in the queue */
    atomic_bool closing;  /* by the test .. */
    atomic_bool ending;   /* .. and in rd_kafka_consumer_close() */
    atomic_bool in_time;  /* there was an answer between the two */
    atomic_bool late;     /* there was one behind both */
    atomic_bool ended;    /* the group has ended, and the thread that ended it stands still */
    atomic_bool answers;  /* the late answer is about to be given */
    atomic_bool closed;
};

static bool wait_for(atomic_bool *flag, uint64_t ms) {
    for (uint64_t until = now_ms() + ms; !atomic_load(flag) && now_ms() < until;) {
        sleep_ms(1);
    }
    return atomic_load(flag);
}

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *text) {
    struct member *member = rd_kafka_opaque(rk);
    (void)level;
    (void)fac;
    if (strstr(text, member->question)) {
        atomic_store(&member->asked, true);
    }
    if (strstr(text, "-> term ") && !atomic_load(&member->in_time)) {
        atomic_store(&member->ended, true);
        wait_for(&member->answers, 1000);
        sleep_ms(100); /* the answer gets into the queue that is emptied next */
    }
}

/* Both stand before librdkafka's own. */

rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *rk) {
    rd_kafka_resp_err_t (*real)(rd_kafka_t *);
    struct member *member = rd_kafka_opaque(rk);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_consumer_close");
    atomic_store(&member->ending, true);
    return real(rk);
}

/* The answer. Where the group waits for a late one, it hasn't ended: then some seconds pass in vain. */
rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_resp_err_t (*real)(rd_kafka_t *, const rd_kafka_topic_partition_list_t *);
    struct member *member = rd_kafka_opaque(rk);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_assign");
    if (atomic_load(&member->ending)) {
        atomic_store(&member->late, true);
        wait_for(&member->ended, 3000);
        atomic_store(&member->answers, true);
    } else if (atomic_load(&member->closing)) {
        atomic_store(&member->in_time, true);
    }
    return real(rk, list);
}

static rd_kafka_conf_t *conf_of(struct member *member, const struct mock *mock, const char *question) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    member->question = question;
    mock_rd_set(conf, "debug", "cgrp");
    mock_rd_set(conf, "heartbeat.interval.ms", "100");
    rd_kafka_conf_set_opaque(conf, member);
    rd_kafka_conf_set_log_cb(conf, on_log);
    return conf;
}

static void join_consumer(struct member *member, const struct mock *mock, const char *question) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    member->u = mock_consumer_of(conf_of(member, mock, question), mock_conf("partitions=2", NULL));
    rd_kafka_topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(member->u, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static void join_relay(struct member *member, const struct mock *mock, const char *question) {
    char errstr[512];
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock->bootstraps);
    member->relay = unsalt_relay_new(conf_of(member, mock, question), mock_conf("relay.threads=0", NULL), writes,
                                     mock_conf("relay.topic=out partitions=2 lanes=2", NULL), errstr, sizeof errstr);
    CHECK_THAT(member->relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_relay_subscribe(member->relay, list));
    rd_kafka_topic_partition_list_destroy(list);
}

typedef void join_fn(struct member *member, const struct mock *mock, const char *question);

/* Until it has had a record, and so partitions. */
static void take_one(struct member *member) {
    struct takings takings = {0};
    size_t n = 0;
    if (member->u) {
        CHECK(take(member->u, &takings, 1, WAIT_MS));
    }
    for (uint64_t until = now_ms() + WAIT_MS; member->relay && n == 0 && now_ms() < until;) {
        rd_kafka_error_destroy(unsalt_relay_poll(member->relay, 100, &n));
    }
    CHECK_THAT(member->u || n == 1, "nothing is relayed");
    takings_free(&takings);
}

static void *close_main(void *opaque) {
    struct member *member = opaque;
    if (member->u) {
        unsalt_consumer_close(member->u);
    } else {
        unsalt_relay_destroy(member->relay);
    }
    atomic_store(&member->closed, true);
    return NULL;
}

/* Not on the thread of the test, which must tell that the close doesn't return. */
static void member_close(struct member *member) {
    pthread_t thread;
    atomic_store(&member->closing, true);
    CHECK(pthread_create(&thread, NULL, close_main, member) == 0);
    CHECK_THAT(wait_for(&member->closed, WAIT_MS), "the close waits for ever: its answer to the rebalance was lost");
    CHECK(pthread_join(thread, NULL) == 0);
    if (member->u) {
        mock_done(member->u);
    }
    CHECK_THAT(!atomic_load(&member->late), "the close began with a question that was not answered");
}

static void close_in_a_revoke(join_fn *join) {
    struct member first = {0}, second = {0};
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    mock_topic(&mock, "out", 2);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_flush(&mock);
    join(&first, &mock, "delegating revoke of");
    take_one(&first);
    join(&second, &mock, "delegating assign of");
    CHECK_THAT(wait_for(&first.asked, WAIT_MS), "nothing was revoked");
    member_close(&first);
    CHECK_THAT(atomic_load(&first.in_time), "nothing was left to be answered");
    member_close(&second);
    mock_close(&mock);
}

static void close_in_an_assignment(join_fn *join) {
    struct member member = {0};
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    join(&member, &mock, "delegating assign of");
    CHECK_THAT(wait_for(&member.asked, WAIT_MS), "nothing was assigned");
    member_close(&member);
    CHECK_THAT(atomic_load(&member.in_time), "nothing was left to be answered");
    mock_close(&mock);
}

SLOW_TEST(close_rebalance, with_a_revoke_that_is_not_answered_yet) {
    close_in_a_revoke(join_consumer);
}

SLOW_TEST(close_rebalance, with_an_assignment_that_is_not_answered_yet) {
    close_in_an_assignment(join_consumer);
}

SLOW_TEST(close_rebalance, of_a_relay_with_a_revoke_that_is_not_answered_yet) {
    close_in_a_revoke(join_relay);
}

SLOW_TEST(close_rebalance, of_a_relay_with_an_assignment_that_is_not_answered_yet) {
    close_in_an_assignment(join_relay);
}

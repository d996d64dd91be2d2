/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory for an assignment, or for a partition that is opened again: nobody may be left with partitions that nobody
 * reads. The library's allocator is replaced by one that can be told to fail.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <base/mem.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

/* Of this thread's next allocations, `passing` are served, then `failing` aren't. */
static _Thread_local int passing, failing;

static bool fails(void) {
    if (passing > 0) {
        passing--;
        return false;
    }
    failing -= failing > 0;
    return failing > 0;
}

static void fail(int after, int count) {
    passing = after;
    failing = count + 1;
}

#include <support/mem_that_fails.h>

/* So many of this thread's next calls fail. */
static _Thread_local int refused_unsubscribes, refused_subscribes;
static _Thread_local int subscribes;

rd_kafka_resp_err_t rd_kafka_unsubscribe(rd_kafka_t *rk) {
    rd_kafka_resp_err_t (*real)(rd_kafka_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_unsubscribe");
    return refused_unsubscribes > 0 ? (refused_unsubscribes--, RD_KAFKA_RESP_ERR__TIMED_OUT) : real(rk);
}

rd_kafka_resp_err_t rd_kafka_subscribe(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *topics) {
    rd_kafka_resp_err_t (*real)(rd_kafka_t *, const rd_kafka_topic_partition_list_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_subscribe");
    subscribes++;
    return refused_subscribes > 0 ? (refused_subscribes--, RD_KAFKA_RESP_ERR__TIMED_OUT) : real(rk, topics);
}

/* ---- a partition that is opened again */

/* Both partitions of the topic, to their beginnings. `errs`: what became of each. */
static void seek_both(unsalt_t *u, rd_kafka_resp_err_t errs[2]) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
    for (int32_t i = 0; i < 2; i++) {
        rd_kafka_topic_partition_list_add(list, "t", i)->offset = 0;
    }
    CHECK_I64(unsalt_seek(u, list, 10000), 0);
    errs[0] = list->elems[0].err;
    errs[1] = list->elems[1].err;
    rd_kafka_topic_partition_list_destroy(list);
}

/*
 * A seek closes the partitions, and there is no memory to open one of them, or both: they go on by themselves where the
 * seek has put them, and the rest of the lane set waits meanwhile.
 */
static void reopens(int missing) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    rd_kafka_resp_err_t errs[2];
    unsalt_stats_t stats = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    for (uint64_t seq = 1; seq <= 40; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "a", seq, 2);
    }
    mock_flush(&mock);
    heard_init(&heard);
    unsalt_t *u = mock_consumer(&mock, "g", "partitions=2 gap.timeout.ms=-1", &heard);
    CHECK(!mock_assign(u, "t", 2, 0));
    CHECK(take(u, &takings, 40, 15000));
    errs[0] = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int after = 0; after < 50 && !errs[0]; after++) { /* closing needs memory, too, and tries until it gets it */
        fail(after, missing);
        seek_both(u, errs);
        fail(0, 0);
    }
    CHECK_I64(errs[0], RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
    CHECK_I64(errs[1], missing == 2 ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE : RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_NOT_OPENED), (uint64_t)missing);
    CHECK(!unsalt_stats(u, &stats, sizeof(stats)));
    CHECK_U64(stats.partitions, 2 - (uint64_t)missing);
    CHECK(take(u, &takings, 80, 15000));
    for (size_t i = 40; i < 80; i++) {
        CHECK_U64(takings.got[i].seq, 1 + i - 40);
        CHECK_I64(takings.got[i].state, UNSALT_STATE_RELEASED);
    }
    CHECK(!unsalt_stats(u, &stats, sizeof(stats)));
    CHECK_U64(stats.partitions, 2);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_NOT_OPENED), (uint64_t)missing);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), 0);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(rebalance_memory, a_partition_that_can_not_be_reopened_is_opened_later) {
    reopens(1);
}

TEST(rebalance_memory, so_is_a_whole_lane_set) {
    reopens(2);
}

/* ---- an assignment of the group */

static void send_both(struct mock *mock, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, "t", 0, "a", seq, 1);
        mock_send(mock, "t", 1, "b", seq, 1);
    }
    mock_flush(mock);
}

static int fail_after = -1; /* so many allocations after the next assignment's beginning; -1: none fails */

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)rk;
    (void)list;
    (void)opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && fail_after >= 0) {
        fail(fail_after, 1);
        fail_after = -1;
    }
}

static void joins(const char *strategy, int after, int refused, const char *text) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    send_both(&mock, 1, 10);
    heard_init(&heard);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "partition.assignment.strategy", strategy);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    unsalt_t *u = mock_consumer_of(conf, mock_conf("partitions=2", &heard));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    fail_after = after;
    CHECK(!unsalt_subscribe(u, list));
    refused_subscribes = refused;
    rd_kafka_topic_partition_list_destroy(list);
    for (uint64_t until = now_ms() + 20000; now_ms() < until && !heard_count(&heard, UNSALT_EVENT_NOT_OPENED);) {
        take(u, &takings, 1, 20);
    }
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_NOT_OPENED), 1);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_NOT_OPENED], text), "%s", heard.text[UNSALT_EVENT_NOT_OPENED]);
    CHECK(take(u, &takings, 20, 40000));
    CHECK_U64(check_order(&takings, 1), 20);
    CHECK_I64(refused_unsubscribes + refused_subscribes, 0);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* Not taken at all: the group is joined anew, though that fails too at first. */
Test(rebalance_memory, an_assignment_that_can_not_be_taken_comes_again, .timeout = 60) {
    refused_unsubscribes = 1;
    joins("range", 0, 2, "joins it anew");
    CHECK_I64(subscribes, 4);
}

Test(rebalance_memory, the_same_with_an_incremental_protocol, .timeout = 60) {
    joins("cooperative-sticky", 0, 1, "joins it anew");
    CHECK_I64(subscribes, 3);
}

/* librdkafka has taken it, the core can't. */
Test(rebalance_memory, an_assignment_that_can_not_be_opened_is_opened_later, .timeout = 60) {
    joins("range", 2, 0, "tried again");
    CHECK_I64(subscribes, 1);
}

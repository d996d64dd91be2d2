/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The assignment callback, and what is fenced behind it. Each join costs the mock cluster 3 s. Its commits during a
 * rebalance are refused by 2.0.2, which no broker does, so what a revoke commits isn't looked at here.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/passes.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 60)

struct call {
    unsalt_assignment_t what;
    int count;
    int64_t sum; /* of the offsets */
};

/* What was called, and what the application tried in it. */
struct hook {
    unsalt_t *u;
    struct call calls[64];
    size_t count;
    const struct takings *takings; /* acknowledged in a REVOKING; NULL: nothing is */
    rd_kafka_message_t *message;   /* of the last call; NULL: none */
    bool commits;
    /* the results */
    rd_kafka_resp_err_t poll_err, seek_err, ack_err, commit_err, late_ack_err, late_commit_err;
    int info;
    uint64_t partitions; /* by the statistics of the last one */
};

static void while_revoking(struct hook *hook) {
    unsalt_message_info_t info = {.size = sizeof(info)};
    CHECK(!unsalt_consumer_poll(hook->u, 0));
    hook->poll_err = unsalt_last_error();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    hook->seek_err = unsalt_seek(hook->u, list, 0);
    rd_kafka_topic_partition_list_destroy(list);
    hook->info = hook->message ? unsalt_message_info(hook->u, hook->message, &info) : -2;
    for (size_t i = 0; hook->takings && i < hook->takings->count; i++) {
        rd_kafka_resp_err_t err = unsalt_ack(hook->u, hook->takings->got[i].token);
        hook->ack_err = err ? err : hook->ack_err;
    }
    if (hook->commits) {
        CHECK(!unsalt_commit(hook->u, 1)); /* in flight when the last commit is sent */
        hook->commit_err = unsalt_commit(hook->u, 0);
    }
}

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct hook *hook = opaque;
    unsalt_stats_t stats;
    CHECK(hook->count < 64);
    struct call *call = &hook->calls[hook->count++];
    *call = (struct call){.what = what, .count = partitions->cnt};
    for (int i = 0; i < partitions->cnt; i++) {
        call->sum += partitions->elems[i].offset;
    }
    CHECK(!unsalt_stats(hook->u, &stats, sizeof(stats)));
    hook->partitions = stats.partitions;
    if (what == UNSALT_REVOKING) {
        while_revoking(hook);
    } else if (what == UNSALT_REVOKED && hook->takings) {
        hook->late_ack_err = unsalt_ack(hook->u, hook->takings->got[0].token);
        hook->late_commit_err = unsalt_commit(hook->u, 0);
    }
}

static unsalt_t *member(struct mock *mock, const char *strategy, const char *settings, struct hook *hook,
                        struct heard *heard) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "100");
    mock_rd_set(conf, "partition.assignment.strategy", strategy);
    unsalt_conf_t *mine = mock_conf(settings, heard);
    if (hook) {
        unsalt_conf_set_assignment_cb(mine, on_assignment, hook);
    }
    unsalt_t *u = mock_consumer_of(conf, mine);
    if (hook) {
        hook->u = u;
    }
    return u;
}

static void subscribe(unsalt_t *u, const char *const *topics, int n) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
    for (int i = 0; i < n; i++) {
        rd_kafka_topic_partition_list_add(list, topics[i], RD_KAFKA_PARTITION_UA);
    }
    CHECK(!unsalt_subscribe(u, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static const char *const lanes[] = {"t", "t.lane-1"};

static void send_lanes(struct mock *mock, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, lanes[seq % 2], 0, "a", seq, 2);
        mock_send(mock, lanes[seq % 2], 1, "b", seq, 2);
    }
    mock_flush(mock);
}

#define TOPICS "layout=topics partitions=2 lanes=2 "

/* Each call is followed by one that may follow it; returns whether the last revoke is over. */
static bool check_sequence(const struct hook *hook) {
    bool assigned = false, revoking = false;
    for (size_t i = 0; i < hook->count; i++) {
        const struct call *call = &hook->calls[i];
        CHECK(call->count > 0);
        switch (call->what) {
        case UNSALT_ASSIGNED:
            CHECK(!assigned);
            assigned = true;
            break;
        case UNSALT_REVOKING:
            CHECK(assigned && !revoking);
            revoking = true;
            break;
        case UNSALT_REVOKED:
            CHECK(revoking);
            assigned = revoking = false;
            break;
        default:
            CHECK(assigned);
            assigned = revoking = false;
        }
    }
    return !assigned;
}

/* All four partitions went, and the calls in the callback returned what they should. */
static void check_revoked(const struct hook *hook) {
    CHECK(check_sequence(hook));
    CHECK_I64(hook->calls[hook->count - 2].count, 4);
    CHECK_I64(hook->calls[hook->count - 1].count, 4);
    CHECK_I64(hook->poll_err, RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(hook->seek_err, RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(hook->ack_err, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(hook->commit_err, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(hook->info, 0);
    CHECK_U64(hook->partitions, 0);
    CHECK_I64(hook->late_ack_err, RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(hook->late_commit_err, RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* From the first assignment to the close; what the application may do in the callback, and what not. */
SLOW_TEST(rebalance_hook, tells_of_everything_that_a_group_gives_and_takes) {
    struct mock mock;
    struct hook hook = {0};
    struct takings takings = {0}, more = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, lanes[0], 2);
    mock_topic(&mock, lanes[1], 2);
    send_lanes(&mock, 1, 20);
    unsalt_t *u = member(&mock, "range", TOPICS "ack=manual revoke.timeout.ms=20000", &hook, NULL);
    subscribe(u, lanes, 1);
    CHECK(take(u, &takings, 1, 30000));
    CHECK_U64(hook.count, 1); /* before the first record */
    CHECK_I64(hook.calls[0].what, UNSALT_ASSIGNED);
    CHECK_I64(hook.calls[0].count, 4);
    CHECK_I64(hook.calls[0].sum, 0);
    CHECK_U64(hook.partitions, 4);
    CHECK(take(u, &takings, 39, 30000));
    while (!hook.message) {
        hook.message = unsalt_consumer_poll(u, 1000);
    }
    take_message(u, &takings, hook.message);
    hook.takings = &takings;
    hook.commits = true;
    /* The callback acknowledges everything, so the revoke needn't wait, and commits. */
    CHECK(!unsalt_unsubscribe(u));
    for (uint64_t until = now_ms() + 15000; now_ms() < until && !check_sequence(&hook);) {
        take_nothing(u, 20);
    }
    check_revoked(&hook);
    rd_kafka_message_destroy(hook.message);
    hook.message = NULL;
    hook.takings = NULL;
    for (int i = 0; i < 4; i++) {
        CHECK_I64(mock_committed(&mock, "g", lanes[i % 2], i / 2), 10);
    }
    /* The next assignment begins at the committed offsets, and its end is told by the close. */
    subscribe(u, lanes, 1);
    send_lanes(&mock, 21, 22);
    CHECK(take(u, &more, 4, 30000));
    CHECK_U64(check_order(&more, 21), 4);
    CHECK_I64(hook.calls[hook.count - 1].what, UNSALT_ASSIGNED);
    CHECK_I64(hook.calls[hook.count - 1].sum, 40);
    hook.takings = &more;
    CHECK(!unsalt_consumer_close(u));
    CHECK(check_sequence(&hook));
    CHECK_I64(hook.calls[hook.count - 2].what, UNSALT_REVOKING);
    CHECK_I64(hook.calls[hook.count - 1].what, UNSALT_REVOKED);
    CHECK_I64(hook.poll_err, RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(hook.late_ack_err, RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(mock_committed(&mock, "g", lanes[0], 0), 11);
    takings_free(&takings);
    takings_free(&more);
    mock_done(u);
    mock_close(&mock);
}

/* The application's own assignments are its own business. */
TEST(rebalance_hook, is_silent_about_the_applications_assignments) {
    struct mock mock;
    struct hook hook = {0};
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_flush(&mock);
    unsalt_t *u = member(&mock, "range", "", &hook, NULL);
    CHECK(!mock_assign(u, "t", 1, 0));
    CHECK(take(u, &takings, 1, 15000));
    CHECK(!unsalt_assign(u, NULL));
    CHECK(!mock_assign(u, "t", 1, 0));
    mock_done(u);
    CHECK_U64(hook.count, 0);
    takings_free(&takings);
    mock_close(&mock);
}

/* ack=auto: what the last call handed out counts as processed when the application comes back and meets a revoke. */
SLOW_TEST(rebalance_hook, with_automatic_acknowledgement_all_is_processed_at_a_revoke) {
    struct mock mock;
    struct hook hook = {.commits = true};
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, lanes[0], 2);
    mock_topic(&mock, lanes[1], 2);
    send_lanes(&mock, 1, 10);
    unsalt_t *u = member(&mock, "range", TOPICS, &hook, NULL);
    subscribe(u, lanes, 1);
    CHECK(take(u, &takings, 20, 30000));
    CHECK(!unsalt_unsubscribe(u));
    for (uint64_t until = now_ms() + 15000; now_ms() < until && !check_sequence(&hook);) {
        take_nothing(u, 20);
    }
    CHECK(check_sequence(&hook));
    CHECK_I64(hook.commit_err, RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int i = 0; i < 4; i++) {
        CHECK_I64(mock_committed(&mock, "g", lanes[i % 2], i / 2), 5);
    }
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

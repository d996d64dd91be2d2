/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements and commits: what is committed is what was acknowledged, and nothing above a hole. */
#include <support/check.h>
#include <support/mockcluster.h>

#define OFFSET_COMMIT 8 /* the protocol's number of the request */

static void send_some(struct mock *mock, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, "t", 0, "s", seq, 1);
    }
    mock_flush(mock);
}

static unsalt_t *manual_reader(struct mock *mock, const char *settings) {
    mock_open(mock, 1);
    mock_topic(mock, "t", 1);
    unsalt_t *u = mock_consumer(mock, "g", settings, NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    return u;
}

TEST(ack, any_order_and_nothing_above_a_hole) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = manual_reader(&mock, "ack=manual");
    send_some(&mock, 1, 20);
    CHECK(take(u, &takings, 20, 15000));
    for (int i = 19; i >= 0; i--) {
        if (i != 7) {
            CHECK(!unsalt_ack(u, takings.got[i].token));
        }
    }
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 7);
    CHECK(!unsalt_ack(u, takings.got[7].token));
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 20);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(ack, again_and_unknown_tokens) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    unsalt_t *u = manual_reader(&mock, "ack=manual");
    send_some(&mock, 1, 3);
    CHECK(take(u, &takings, 3, 15000));
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.unacked, 3);
    unsalt_token_t token = takings.got[0].token;
    CHECK(!unsalt_ack(u, token));
    CHECK(!unsalt_ack(u, token));
    take_nothing(u, 50);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.unacked, 2);
    token.ticket += 1000;
    CHECK_I64(unsalt_ack(u, token), RD_KAFKA_RESP_ERR__INVALID_ARG);
    token = takings.got[0].token;
    token.part += 1000;
    CHECK_I64(unsalt_ack(u, token), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_ack(u, (unsalt_token_t){0}), RD_KAFKA_RESP_ERR__INVALID_ARG);
    /* A new assignment: what was handed out before is somebody else's business. */
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK_I64(unsalt_ack(u, takings.got[1].token), RD_KAFKA_RESP_ERR__STATE);
    CHECK(take(u, &takings, 6, 15000));
    CHECK(!unsalt_ack(u, takings.got[3].token));
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(ack, automatic_means_the_next_call) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = manual_reader(&mock, "");
    send_some(&mock, 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 9);
    take_nothing(u, 50);
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* What is held isn't committed, whatever stands above it. */
TEST(ack, a_held_record_holds_the_frontier) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = manual_reader(&mock, "gap.timeout.ms=-1");
    mock_send(&mock, "t", 0, "a", 1, 1);
    mock_send(&mock, "t", 0, "b", 2, 1); /* b 1 is missing */
    mock_send(&mock, "t", 0, "a", 2, 1);
    mock_send(&mock, "t", 0, "a", 3, 1);
    mock_flush(&mock);
    CHECK(take(u, &takings, 3, 15000));
    take_nothing(u, 50);
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* Waits until the group has this offset. */
static void wait_committed(struct mock *mock, unsalt_t *u, int64_t offset) {
    int64_t is = -1;
    for (uint64_t until = now_ms() + 10000; now_ms() < until && is != offset;) {
        take_nothing(u, 50);
        is = mock_committed(mock, "g", "t", 0);
    }
    CHECK_I64(is, offset);
}

static unsigned app_commits;

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)rk;
    (void)list;
    CHECK(!err);
    CHECK_STR((const char *)opaque, "mine");
    app_commits++;
}

TEST(ack, commits_by_itself_if_the_application_left_that_on) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "100");
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    rd_kafka_conf_set_opaque(conf, "mine");
    unsalt_t *u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    /* The start position too: a lane that stays empty must not be skipped after a restart. */
    wait_committed(&mock, u, 0);
    send_some(&mock, 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    wait_committed(&mock, u, 10);
    CHECK(app_commits >= 2);
    unsalt_stats_t stats;
    unsalt_stats(u, &stats, sizeof(stats));
    uint64_t commits = stats.commits;
    take_nothing(u, 500);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.commits, commits);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(ack, does_not_commit_by_itself_otherwise) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = manual_reader(&mock, "");
    send_some(&mock, 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    CHECK(!unsalt_consumer_close(u));
    mock_done(u);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), RD_KAFKA_OFFSET_INVALID);
    takings_free(&takings);
    mock_close(&mock);
}

/* A commit that fails is told, and tried again. */
TEST(ack, a_failed_commit) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", &heard);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    send_some(&mock, 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    take_nothing(u, 20);
    rd_kafka_mock_push_request_errors(mock.cluster, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    CHECK(unsalt_commit(u, 0));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COMMIT_FAILED), 1);
    CHECK_I64(heard.offset[UNSALT_EVENT_COMMIT_FAILED], 10);
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports on librdkafka's mock cluster (docs/past.md): commits that fail, restarts, offsets out of range. */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define OFFSET_COMMIT 8 /* the protocol's number of the request */

static void send_some(struct mock *mock, const char *topic, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, topic, 0, "s", seq, 1);
    }
    mock_flush(mock);
}

static uint64_t commits(unsalt_t *u) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    return stats.commits;
}

/* Polls, without a message, until the group has this offset. */
static void wait_committed(struct mock *mock, unsalt_t *u, int64_t offset) {
    int64_t is = -1;
    for (uint64_t until = now_ms() + 10000; now_ms() < until && is != offset;) {
        take_nothing(u, 50);
        is = mock_committed(mock, "g", "t", 0);
    }
    CHECK_I64(is, offset);
}

/* A member of a group of its own reads `so_far` records, commits, meets the error, and reads five more. */
static void meets(struct mock *mock, rd_kafka_resp_err_t error, size_t so_far) {
    struct heard heard;
    struct takings takings = {0};
    const char *name = rd_kafka_err2name(error);
    heard_init(&heard);
    unsalt_t *u = mock_consumer(mock, name, "", &heard);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, so_far, 15000));
    take_nothing(u, 20);
    rd_kafka_mock_push_request_errors(mock->cluster, OFFSET_COMMIT, 1, error);
    rd_kafka_resp_err_t err = unsalt_commit(u, 0); /* librdkafka sends some of them again itself */
    CHECK_THAT(heard_count(&heard, UNSALT_EVENT_COMMIT_FAILED) == (err ? 1 : 0), "%s: told %" PRIu64 " times", name,
               heard_count(&heard, UNSALT_EVENT_COMMIT_FAILED));
    send_some(mock, "t", so_far + 1, so_far + 5);
    CHECK_THAT(take(u, &takings, so_far + 5, 15000), "after %s nothing is read", name);
    take_nothing(u, 20);
    CHECK_THAT(!unsalt_commit(u, 0), "%s lasts", name);
    CHECK_I64(mock_committed(mock, name, "t", 0), (int64_t)so_far + 5);
    CHECK_U64(check_order(&takings, 1), so_far + 5);
    takings_free(&takings);
    mock_done(u);
}

/*
 * line/decaton#201: a commit in the middle of a rebalance ended the thread that reads. Whatever a commit meets, it is
 * told, the next one tries again, and reading goes on.
 */
TEST(past_commits, an_error_of_a_commit_ends_nothing) {
    static const rd_kafka_resp_err_t errors[] = {
        RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
        RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE};
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    send_some(&mock, "t", 1, 5);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        meets(&mock, errors[i], 5 + 5 * i);
    }
    mock_close(&mock);
}

/*
 * confluentinc/parallel-consumer#203, astubbs/parallel-consumer#248: commits were tried again for ever once a broker
 * had been restarted, by half of the members. After an outage the newest offset is committed, then nothing more. Seen
 * here on librdkafka 2.16: of the commits that an outage had kept waiting an older one came after the newest.
 */
TEST(past_commits, after_an_outage_the_newest_offset_and_rest) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "20");
    mock_rd_set(conf, "reconnect.backoff.max.ms", "100");
    unsalt_t *u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    send_some(&mock, "t", 1, 200);
    CHECK(take(u, &takings, 20, 15000));
    rd_kafka_mock_broker_set_down(mock.cluster, 1);
    for (int i = 0; i < 20; i++) { /* most of these were fetched before; each moves the frontier */
        take(u, &takings, takings.count + 1, 100);
        sleep_ms(20);
    }
    rd_kafka_mock_broker_set_up(mock.cluster, 1);
    for (uint64_t until = now_ms() + 15000; check_order(&takings, 1) < 200 && now_ms() < until;) {
        take(u, &takings, takings.count + 1, 100); /* errors of the outage may come too */
    }
    CHECK_U64(check_order(&takings, 1), 200);
    wait_committed(&mock, u, 200);
    uint64_t before = 0;
    for (uint64_t until = now_ms() + 10000; before != commits(u) && now_ms() < until;) {
        before = commits(u);
        take_nothing(u, 300);
    }
    CHECK_U64(commits(u), before);
    CHECK_THAT(before < 500, "%" PRIu64 " commits", before);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 200);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/*
 * confluentinc/parallel-consumer#894, astubbs/parallel-consumer#121: frequent rebalances on an idle partition
 * committed a wrong offset, which was out of range then.
 */
TEST(past_commits, an_idle_partition_keeps_its_commit_over_many_assignments) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "1");
    unsalt_t *u = mock_consumer_of(conf, NULL);
    send_some(&mock, "t", 1, 5);
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, 5, 15000));
    wait_committed(&mock, u, 5);
    for (int i = 0; i < 60; i++) {
        CHECK(!unsalt_assign(u, NULL));
        CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
        if (i % 4 == 0) {
            take_nothing(u, 1 + i % 16);
        }
    }
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 5);
    CHECK_I64(mock_committed(&mock, "g", "t", 1), 0);
    send_some(&mock, "t", 6, 10);
    CHECK(take(u, &takings, 10, 15000));
    CHECK_U64(check_order(&takings, 1), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* apache/camel#13164: stop and start, in one process: the same result each time, and the next one goes on. */
TEST(past_commits, many_consumers_one_after_the_other) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t round = 1; round <= 30; round++) {
        rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
        mock_rd_set(conf, "enable.auto.commit", "true");
        unsalt_t *u = mock_consumer_of(conf, NULL);
        CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
        send_some(&mock, "t", 3 * round - 2, 3 * round);
        CHECK(take(u, &takings, 3 * round, 15000));
        if (round % 2) {
            CHECK(!unsalt_consumer_close(u));
        }
        mock_done(u);
    }
    CHECK_U64(check_order(&takings, 1), 90);
    takings_free(&takings);
    mock_close(&mock);
}

/*
 * confluentinc/parallel-consumer#409, confluentinc/parallel-consumer#329: retention had removed what was committed.
 * The mock cluster keeps 5 MiB of a partition.
 */
TEST(past_commits, what_was_committed_is_below_the_log) {
    enum { SIZE = 900000, FIRST = 2, LAST = 14 };
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    send_some(&mock, "t", 1, 1);
    CHECK(take(u, &takings, 1, 15000));
    take_nothing(u, 20);
    CHECK(!unsalt_commit(u, 0));
    mock_done(u);
    char *payload = calloc(1, SIZE);
    for (int seq = FIRST; seq <= LAST; seq++) {
        char number[16];
        int length = snprintf(number, sizeof(number), "%d", seq);
        mock_write(&mock, "t", 0, "s", payload, SIZE, "seq", number, (size_t)length);
        mock_flush(&mock);
    }
    free(payload);
    u = mock_consumer(&mock, "g", "gap.timeout.ms=50", &heard);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    size_t first = takings.count;
    do {
        CHECK(take(u, &takings, takings.count + 1, 15000));
    } while (takings.got[takings.count - 1].seq < LAST);
    CHECK_THAT(takings.got[first].seq > FIRST, "nothing was deleted");
    for (size_t i = first + 1; i < takings.count; i++) {
        CHECK_U64(takings.got[i].seq, takings.got[i - 1].seq + 1);
    }
    take_nothing(u, 20);
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), LAST);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_START), 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/producer_fate.h>
#include <support/check.h>

#define NOT RD_KAFKA_MSG_STATUS_NOT_PERSISTED
#define POSSIBLY RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED

static const rd_kafka_resp_err_t passing[] = {
    RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
    RD_KAFKA_RESP_ERR__TRANSPORT,
    RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
    RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
};
static const rd_kafka_resp_err_t lasting[] = {
    RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
    RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
    RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
    RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
    RD_KAFKA_RESP_ERR_INVALID_RECORD,
    RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
    RD_KAFKA_RESP_ERR__FAIL,
};
static const rd_kafka_resp_err_t purged[] = {
    RD_KAFKA_RESP_ERR__PURGE_QUEUE,
    RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
};

#define COUNT(array) (sizeof array / sizeof array[0])

static struct us_attempt attempt(rd_kafka_resp_err_t err, rd_kafka_msg_status_t status, bool maybe) {
    return (struct us_attempt){.err = err, .status = status, .maybe = maybe, .numbered = true, .limit_ms = 1000};
}

/* The same attempt, in every case in which nothing is sent again or marked. */
static void expect_given_up(struct us_attempt a) {
    struct us_attempt other = a;
    other.numbered = false;
    CHECK(us_fate(&other) == US_FATE_GIVE_UP);
    other = a;
    other.ended = true;
    CHECK(us_fate(&other) == US_FATE_GIVE_UP);
    other = a;
    other.transactional = true;
    CHECK(us_fate(&other) == US_FATE_GIVE_UP);
}

static const rd_kafka_msg_status_t statuses[] = {NOT, POSSIBLY};

TEST(producer_fate, what_was_acknowledged_is_acknowledged) {
    for (int bits = 0; bits < 32; bits++) {
        struct us_attempt a = {
            .status = RD_KAFKA_MSG_STATUS_PERSISTED,
            .maybe = bits & 1,
            .numbered = bits & 2,
            .ended = bits & 4,
            .transactional = bits & 8,
            .waited_ms = bits & 16 ? UINT64_MAX : 0,
        };
        CHECK(us_fate(&a) == US_FATE_ACKED);
    }
}

/* confluentinc/confluent-kafka-go#921, confluentinc/librdkafka#4134 */
TEST(producer_fate, an_acknowledgement_without_proof_is_sent_again) {
    struct us_attempt a = attempt(RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_MSG_STATUS_PERSISTED, false);
    a.unproven = true;
    CHECK(us_fate(&a) == US_FATE_RESEND);
    CHECK(us_fate_maybe(&a));
    for (int i = 0; i < 5; i++) {
        /* Where that isn't possible, librdkafka's word must do. */
        struct us_attempt other = a;
        other.numbered = i != 0;
        other.ended = i == 1;
        other.transactional = i == 2;
        other.waited_ms = i == 3 ? 1000 : 0;
        other.limit_ms = i == 4 ? 0 : 1000;
        CHECK(us_fate(&other) == US_FATE_ACKED);
    }
}

TEST(producer_fate, what_may_pass_is_sent_again_until_the_limit) {
    for (size_t i = 0; i < COUNT(passing); i++)
        for (int bits = 0; bits < 4; bits++) {
            struct us_attempt a = attempt(passing[i], statuses[bits & 1], bits & 2);
            CHECK(us_fate_is_passing(passing[i]));
            CHECK(us_fate(&a) == US_FATE_RESEND);
            a.waited_ms = 999;
            CHECK(us_fate(&a) == US_FATE_RESEND);
            expect_given_up(a);
            a.waited_ms = 1000;
            CHECK(us_fate(&a) == (bits ? US_FATE_GIVE_UP : US_FATE_MARK));
            expect_given_up(a);
            a.waited_ms = 0;
            a.limit_ms = 0;
            CHECK(us_fate(&a) == (bits ? US_FATE_GIVE_UP : US_FATE_MARK));
            a.waited_ms = UINT64_MAX / 2;
            a.limit_ms = INT64_MAX;
            CHECK(us_fate(&a) == (a.waited_ms < a.limit_ms ? US_FATE_RESEND : bits ? US_FATE_GIVE_UP : US_FATE_MARK));
        }
}

TEST(producer_fate, what_lasts_is_abandoned_and_marked_only_if_it_is_nowhere) {
    for (size_t i = 0; i < COUNT(lasting); i++)
        for (int bits = 0; bits < 4; bits++) {
            struct us_attempt a = attempt(lasting[i], statuses[bits & 1], bits & 2);
            CHECK(!us_fate_is_passing(lasting[i]));
            CHECK(us_fate(&a) == (bits ? US_FATE_GIVE_UP : US_FATE_MARK));
            expect_given_up(a);
        }
}

TEST(producer_fate, what_was_purged_is_given_up) {
    for (size_t i = 0; i < COUNT(purged); i++)
        for (int bits = 0; bits < 4; bits++) {
            struct us_attempt a = attempt(purged[i], statuses[bits & 1], bits & 2);
            CHECK(us_fate(&a) == US_FATE_GIVE_UP);
        }
}

/* Purged while it waited or was in flight: whatever comes after that is its last attempt, and the truth about it. */
TEST(producer_fate, what_was_produced_before_a_purge_is_not_sent_again) {
    for (int bits = 0; bits < 4; bits++) {
        struct us_attempt a = attempt(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, statuses[bits & 1], bits & 2);
        a.purged = true;
        CHECK(us_fate(&a) == US_FATE_GIVE_UP);
        a.err = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
        CHECK(us_fate(&a) == US_FATE_GIVE_UP);
        a.err = RD_KAFKA_RESP_ERR_NO_ERROR;
        CHECK(us_fate(&a) == US_FATE_ACKED);
        a.unproven = true;
        CHECK(us_fate(&a) == US_FATE_RESEND); /* not a success: it joins what waits, which is purged */
    }
}

TEST(producer_fate, what_may_be_in_a_log) {
    struct us_attempt a = attempt(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, NOT, false);
    CHECK(!us_fate_maybe(&a));
    a.status = POSSIBLY;
    CHECK(us_fate_maybe(&a));
    a.status = NOT;
    a.maybe = true;
    CHECK(us_fate_maybe(&a));
}

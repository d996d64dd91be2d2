/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports on librdkafka's mock cluster (docs/past.md): pauses, back-pressure, groups, topics. */
#include <support/check.h>
#include <support/mockcluster.h>

static rd_kafka_topic_partition_list_t *one(const char *topic, int32_t partition) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = RD_KAFKA_OFFSET_INVALID;
    return list;
}

static void send_run(struct mock *mock, const char *topic, int32_t partition, const char *session, uint64_t from,
                     uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, topic, partition, session, seq, 1);
    }
    mock_flush(mock);
}

static unsalt_stats_t stats_of(unsalt_t *u) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    return stats;
}

/* confluentinc/parallel-consumer#184: a key that was in two topics was never processed. */
TEST(past_reading, the_same_id_in_two_topics) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_topic(&mock, "v", 1);
    send_run(&mock, "t", 0, "s", 1, 5);
    send_run(&mock, "t", 0, "s", 7, 9); /* waits in t for 6, and not in v */
    send_run(&mock, "v", 0, "s", 1, 20);
    unsalt_t *u = mock_consumer(&mock, "g", "gap.timeout.ms=-1", NULL);
    rd_kafka_topic_partition_list_t *list = one("t", 0);
    rd_kafka_topic_partition_list_add(list, "v", 0);
    CHECK(!unsalt_assign(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    CHECK(take(u, &takings, 25, 15000));
    take_nothing(u, 50);
    CHECK_U64(stats_of(u).sessions, 2);
    CHECK_U64(stats_of(u).state[UNSALT_STATE_DUPLICATE], 0);
    send_run(&mock, "t", 0, "s", 6, 6);
    CHECK(take(u, &takings, 29, 15000));
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/*
 * reactor/reactor-kafka#286: back-pressure came and went, and resumed what the application had paused. Back-pressure
 * pauses nothing here, so it resumes nothing.
 */
TEST(past_reading, back_pressure_resumes_nothing_that_the_application_paused) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = mock_consumer(&mock, "g", "budget.records=20 budget.policy=block gap.timeout.ms=-1 read.batch=5",
                                NULL);
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
    rd_kafka_topic_partition_list_t *list = one("t", 1);
    CHECK(!unsalt_pause(u, list));
    send_run(&mock, "t", 1, "paused", 1, 10);
    uint64_t next = 1;
    for (int round = 0; round < 5; round++, next += 21) {
        send_run(&mock, "t", 0, "s", next + 1, next + 20); /* as much as the budget takes */
        send_run(&mock, "t", 0, "s", next, next);
        CHECK(take(u, &takings, takings.count + 21, 15000));
    }
    CHECK(!unsalt_pause(u, list)); /* it is: nothing happens */
    take_nothing(u, 200);
    for (size_t i = 0; i < takings.count; i++) {
        CHECK_I64(takings.got[i].partition, 0);
    }
    CHECK(!unsalt_resume(u, list));
    CHECK(take(u, &takings, 115, 15000));
    CHECK_U64(check_order(&takings, 1), 115);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/*
 * confluentinc/librdkafka#1802, confluentinc/librdkafka#4686, confluentinc/librdkafka#3471: a consumer that was
 * paused went on from its own position after the next assignment, and a resume of what wasn't paused went back.
 */
TEST(past_reading, an_assignment_ends_a_pause_and_starts_at_the_commit) {
    struct mock mock;
    struct takings takings = {0}, again = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    unsalt_t *u = mock_consumer(&mock, "g", "ack=manual revoke.timeout.ms=0", NULL);
    rd_kafka_topic_partition_list_t *list = one("t", 0);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    send_run(&mock, "t", 0, "s", 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    for (int i = 0; i < 5; i++) {
        CHECK(!unsalt_ack(u, takings.got[i].token));
    }
    CHECK(!unsalt_resume(u, list)); /* isn't paused */
    CHECK(!unsalt_commit(u, 0));
    take_nothing(u, 50);
    CHECK(!unsalt_pause(u, list));
    send_run(&mock, "t", 0, "s", 11, 20);
    take_nothing(u, 50);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &again, 15, 15000));
    CHECK_U64(check_order(&again, 6), 15);
    CHECK_U64(stats_of(u).state[UNSALT_STATE_FENCED], 0);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    takings_free(&again);
    mock_done(u);
    mock_close(&mock);
}

/* ---- in a group; a join takes the mock cluster 3 s, which a session must outlast */

static unsalt_t *member(struct mock *mock, const char *settings, struct heard *heard) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "session.timeout.ms", "3200");
    mock_rd_set(conf, "max.poll.interval.ms", "3200");
    mock_rd_set(conf, "heartbeat.interval.ms", "200");
    return mock_consumer_of(conf, mock_conf(settings, heard));
}

static void subscribe(unsalt_t *u) {
    rd_kafka_topic_partition_list_t *topics = one("t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, topics));
    rd_kafka_topic_partition_list_destroy(topics);
}

/*
 * confluentinc/confluent-kafka-dotnet#785, confluentinc/confluent-kafka-dotnet#1155, apache/kafka#10207: everything
 * was paused and nobody polled, or somebody waited longer than max.poll.interval.ms, and the member was thrown out,
 * again and again. A wait for a gap or for room doesn't keep anyone from polling here, so a timeout above that
 * interval is allowed; and one call that waits longer keeps the member in.
 */
TEST(past_reading, a_long_wait_with_a_full_budget_keeps_the_member_in) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = member(&mock, "gap.timeout.ms=60000 budget.records=10 budget.policy=block block.max.ms=60000", NULL);
    subscribe(u);
    send_run(&mock, "t", 0, "s", 1, 1);
    CHECK(take(u, &takings, 1, 15000));
    send_run(&mock, "t", 0, "s", 3, 40); /* more than the budget takes; 2 is missing */
    uint64_t generations = stats_of(u).generations, began = now_ms();
    rd_kafka_message_t *message = unsalt_consumer_poll(u, 4000);
    CHECK_THAT(!message, "a message came after %" PRIu64 " ms: %s", now_ms() - began, rd_kafka_err2str(message->err));
    CHECK(now_ms() - began >= 3900);
    CHECK_U64(stats_of(u).partitions, 2);
    CHECK_U64(stats_of(u).state[UNSALT_STATE_HELD], 10);
    send_run(&mock, "t", 1, "s", 2, 2);
    CHECK(take(u, &takings, 40, 15000));
    CHECK_U64(check_order(&takings, 1), 40);
    CHECK_U64(stats_of(u).generations, generations);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/*
 * scality/backbeat#2740, scality/backbeat#2837: a second rebalance came while the first one still waited for what was
 * in work, and the partitions stayed paused.
 */
TEST(past_reading, a_second_change_while_the_first_one_waits_for_acknowledgements) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = member(&mock, "ack=manual revoke.timeout.ms=20000", NULL);
    subscribe(u);
    send_run(&mock, "t", 0, "s", 1, 6);
    CHECK(take(u, &takings, 6, 15000));
    CHECK(!unsalt_unsubscribe(u));
    take_nothing(u, 100);
    CHECK_U64(stats_of(u).partitions, 2); /* it waits */
    subscribe(u);
    take_nothing(u, 100);
    CHECK(!unsalt_unsubscribe(u));
    subscribe(u);
    take_nothing(u, 100);
    for (size_t i = 0; i < takings.count; i++) {
        unsalt_ack(u, takings.got[i].token);
    }
    send_run(&mock, "t", 0, "s", 7, 12);
    send_run(&mock, "t", 1, "r", 1, 5);
    size_t before = takings.count, wanted = 0;
    for (uint64_t until = now_ms() + 15000; wanted < 11 && now_ms() < until;) {
        take(u, &takings, takings.count + 1, 100);
        wanted = 0; /* numbers 1..6 may come again if their commit was not taken in the middle of all that */
        for (size_t i = before; i < takings.count; i++) {
            wanted += takings.got[i].partition == 1 || takings.got[i].seq > 6;
        }
    }
    CHECK_U64(wanted, 11);
    CHECK_U64(stats_of(u).partitions, 2);
    for (size_t i = before; i < takings.count; i++) {
        CHECK(!unsalt_ack(u, takings.got[i].token));
    }
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of the binding that could once be taken out without any test noticing; tests/mutants/ takes each of them out
 * again. Some can only be seen from inside.
 */
#include <core/engine.h>
#include <kafka/consumer.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define LIST_OFFSETS 2 /* the protocol's numbers of the requests */
#define HEARTBEAT 12
#define LANES 2

struct scene {
    struct mock mock;
    struct heard heard;
    struct takings takings;
    unsalt_t *u;
};

/* Session s with one lane in each of two partitions, of which partition i has leader leaders[i]. */
static void begin(struct scene *s, const char *settings, const int *leaders) {
    memset(s, 0, sizeof(*s));
    heard_init(&s->heard);
    mock_open(&s->mock, 2);
    mock_topic(&s->mock, "t", LANES);
    for (int i = 0; i < LANES; i++) {
        CHECK(!rd_kafka_mock_partition_set_leader(s->mock.cluster, "t", i, leaders[i]));
    }
    s->u = mock_consumer(&s->mock, "g", settings, &s->heard);
    CHECK(!mock_assign(s->u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
}

static const int one_leader[LANES] = {1, 1}, two_leaders[LANES] = {1, 2};

static void end(struct scene *s) {
    mock_done(s->u);
    takings_free(&s->takings);
    mock_close(&s->mock);
}

static void post(struct scene *s, uint64_t seq) {
    mock_send(&s->mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
    mock_flush(&s->mock);
}

static unsalt_stats_t stats_of(const struct scene *s) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(s->u, &stats, sizeof(stats)), 0);
    return stats;
}

/* Polls for this long; errors of dead brokers are no records. */
static void poll_for(struct scene *s, int ms) {
    for (uint64_t until = now_ms() + (uint64_t)ms; now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(s->u, 20);
        if (message) {
            take_message(s->u, &s->takings, message);
            rd_kafka_message_destroy(message);
        }
    }
}

/* An event of a queue that gets lost costs a second, not the record (confluentinc/librdkafka#3276 is a way). */
TEST(rules, data_that_nothing_announced_is_found) {
    struct scene s;
    begin(&s, "", one_leader);
    post(&s, 1);
    CHECK(take(s.u, &s.takings, 1, 15000));
    for (uint32_t i = 0; i < s.u->partition_count; i++) {
        rd_kafka_queue_cb_event_enable(s.u->partitions[i]->queue, NULL, NULL);
    }
    take_nothing(s.u, 100); /* what was announced before */
    post(&s, 2);
    CHECK(take(s.u, &s.takings, 2, 4000));
    CHECK(stats_of(&s).sweep_hits >= 1);
    end(&s);
}

/*
 * The number that session s waits for stands behind 2,000 records of another one; its other lane is older by time, so
 * it would be read first. From half a budget on it isn't read. (A round reads up to 16 batches by one advice, so half a
 * budget must be more than that.)
 */
TEST(rules, a_lane_that_is_ahead_is_left_unread) {
    enum { OURS = 1000, OTHERS = 2000 };
    struct scene s;
    begin(&s, "budget.records=100 gap.timeout.ms=-1 read.batch=1", one_leader);
    mock_done(s.u);
    for (uint64_t seq = 2; seq <= OURS; seq += 2) {
        mock_send(&s.mock, "t", 0, "s", seq, LANES);
    }
    mock_flush(&s.mock);
    for (uint64_t seq = 1; seq <= OTHERS; seq++) {
        mock_send(&s.mock, "t", 1, "other", seq, 1);
    }
    for (uint64_t seq = 1; seq <= OURS; seq += 2) {
        mock_send(&s.mock, "t", 1, "s", seq, LANES);
    }
    mock_flush(&s.mock);
    s.u = mock_consumer(&s.mock, "g", "budget.records=100 gap.timeout.ms=-1 read.batch=1", &s.heard);
    CHECK(!mock_assign(s.u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(s.u, &s.takings, OURS + OTHERS, 20000));
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_BUDGET), 0);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    CHECK_U64(check_order(&s.takings, 1), OURS + OTHERS);
    end(&s);
}

/* The leader of one lane is dead, and the application is busy for longer than a dead leader is waited for. */
TEST(rules, while_the_application_is_busy_no_leader_is_found_dead) {
    struct scene s;
    begin(&s, "gap.timeout.ms=50 gap.stall.max.ms=1500", two_leaders);
    post(&s, 1);
    CHECK(take(s.u, &s.takings, 1, 15000));
    rd_kafka_mock_broker_set_down(s.mock.cluster, 2);
    post(&s, 2);
    post(&s, 4); /* 3 is on the dead leader's lane */
    for (uint64_t until = now_ms() + 10000; now_ms() < until && stats_of(&s).questions == 0;) {
        poll_for(&s, 20);
    }
    CHECK(stats_of(&s).questions > 0);
    sleep_ms(1800);
    poll_for(&s, 50);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    for (uint64_t until = now_ms() + 10000; now_ms() < until && !heard_count(&s.heard, UNSALT_EVENT_GAP);) {
        poll_for(&s, 20);
    }
    CHECK_I64(s.heard.reason[UNSALT_EVENT_GAP], UNSALT_GAP_STALLED);
    rd_kafka_mock_broker_set_up(s.mock.cluster, 2);
    end(&s);
}

/* Nothing of a paused lane is read, for as long as the application likes: that is no dead leader. */
TEST(rules, what_the_application_has_paused_never_stalls) {
    struct scene s;
    begin(&s, "gap.timeout.ms=50 gap.stall.max.ms=500", one_leader);
    post(&s, 1);
    CHECK(take(s.u, &s.takings, 1, 15000));
    rd_kafka_topic_partition_list_t *lane = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(lane, "t", 1);
    CHECK(!unsalt_pause(s.u, lane));
    post(&s, 2);
    post(&s, 3);
    post(&s, 4);
    poll_for(&s, 1200);
    CHECK_U64(s.takings.count, 2);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    CHECK(!unsalt_resume(s.u, lane));
    CHECK(take(s.u, &s.takings, 4, 15000));
    CHECK_U64(check_order(&s.takings, 1), 4);
    rd_kafka_topic_partition_list_destroy(lane);
    end(&s);
}

/* A leader that refuses is asked after 0.1 s, 0.2 s, 0.4 s and so on, not in every round. */
TEST(rules, a_question_that_failed_is_not_repeated_at_once) {
    rd_kafka_resp_err_t errors[400];
    struct scene s;
    begin(&s, "gap.timeout.ms=50", one_leader);
    post(&s, 1);
    CHECK(take(s.u, &s.takings, 1, 15000));
    for (int i = 0; i < 400; i++) {
        errors[i] = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    }
    rd_kafka_mock_push_request_errors_array(s.mock.cluster, LIST_OFFSETS, 400, errors);
    post(&s, 3);
    post(&s, 5);
    poll_for(&s, 1500);
    unsalt_stats_t stats = stats_of(&s);
    CHECK_THAT(stats.question_failures >= 2, "%" PRIu64 " failed", stats.question_failures);
    CHECK_THAT(stats.questions <= 8 * LANES, "%" PRIu64 " questions", stats.questions);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    CHECK(heard_count(&s.heard, UNSALT_EVENT_HORIZON_FAILED) >= 1);
    end(&s);
}

/*
 * With read_committed, the default, a leader answers with the last stable offset: what an open transaction keeps from
 * being read would not be waited for. The mock cluster knows no transactions, so the handle itself is looked at.
 */
TEST(rules, ends_are_asked_for_with_read_uncommitted) {
    struct scene s;
    char value[32] = "";
    size_t size = sizeof(value);
    begin(&s, "gap.timeout.ms=50", one_leader);
    post(&s, 1);
    post(&s, 3);
    CHECK(take(s.u, &s.takings, 2, 15000));
    CHECK(stats_of(&s).answers > 0);
    CHECK(s.u->asker.handle);
    CHECK(rd_kafka_conf_get(rd_kafka_conf(s.u->rk), "isolation.level", value, &size) == RD_KAFKA_CONF_OK);
    CHECK_STR(value, "read_committed");
    size = sizeof(value);
    CHECK(rd_kafka_conf_get(rd_kafka_conf(s.u->asker.handle), "isolation.level", value, &size) == RD_KAFKA_CONF_OK);
    CHECK_STR(value, "read_uncommitted");
    end(&s);
}

static void subscribe(unsalt_t *u) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, topics));
    rd_kafka_topic_partition_list_destroy(topics);
}

/* The topic lacks a partition of what is configured: the group's assignment isn't read, not even held. */
TEST(rules, an_incomplete_assignment_by_the_group_is_not_taken) {
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    post(&s, 1);
    s.u = mock_consumer(&s.mock, "g", "partitions=3", &s.heard);
    subscribe(s.u);
    for (uint64_t until = now_ms() + 20000; now_ms() < until && !heard_count(&s.heard, UNSALT_EVENT_COLOCATION);) {
        take_nothing(s.u, 20);
    }
    CHECK(heard_count(&s.heard, UNSALT_EVENT_COLOCATION) > 0);
    take_nothing(s.u, 200);
    CHECK_U64(stats_of(&s).partitions, 0);
    CHECK_U64(stats_of(&s).received, 0);
    end(&s);
}

/* After a crash, too: where a lane that shows nothing was joined is committed at once, not at close. */
TEST(rules, where_an_idle_lane_was_joined_is_committed_at_once) {
    struct scene s = {0};
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    rd_kafka_conf_t *conf = mock_rd_conf(&s.mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "60000");
    s.u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(s.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    int64_t committed = -1;
    for (uint64_t until = now_ms() + 5000; now_ms() < until && committed != 0;) {
        take_nothing(s.u, 50);
        committed = mock_committed(&s.mock, "g", "t", 1);
    }
    CHECK_I64(committed, 0);
    end(&s);
}

/* A seek drops what was ready; it is counted as revoked, and the ledger sums up. */
TEST(rules, what_was_ready_and_is_dropped_is_counted) {
    enum { ALL = 100 };
    struct scene s;
    begin(&s, "", one_leader);
    for (uint64_t seq = 1; seq <= ALL; seq++) {
        mock_send(&s.mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
    }
    mock_flush(&s.mock);
    do {
        CHECK(take(s.u, &s.takings, s.takings.count + 1, 15000));
    } while (stats_of(&s).state[UNSALT_STATE_READY] == 0 && s.takings.count < ALL - 1);
    unsalt_stats_t stats = stats_of(&s);
    uint64_t received = stats.received;
    CHECK(stats.state[UNSALT_STATE_READY] > 0);
    rd_kafka_topic_partition_list_t *lanes = rd_kafka_topic_partition_list_new(LANES);
    for (int i = 0; i < LANES; i++) {
        rd_kafka_topic_partition_list_add(lanes, "t", i)->offset = RD_KAFKA_OFFSET_END;
    }
    CHECK(!unsalt_seek(s.u, lanes, 5000));
    rd_kafka_topic_partition_list_destroy(lanes);
    stats = stats_of(&s);
    CHECK_U64(stats.state[UNSALT_STATE_RELEASED], s.takings.count);
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], received - s.takings.count);
    CHECK(stats.conserved);
    end(&s);
}

/* Another member may own the partitions already, and may have committed more. */
TEST(rules, a_close_after_the_assignment_was_lost_commits_nothing) {
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    rd_kafka_conf_t *conf = mock_rd_conf(&s.mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "60000");
    mock_rd_set(conf, "heartbeat.interval.ms", "200");
    s.u = mock_consumer_of(conf, mock_conf("", &s.heard));
    subscribe(s.u);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        post(&s, seq);
    }
    CHECK(take(s.u, &s.takings, 10, 20000));
    uint64_t commits = stats_of(&s).commits;
    rd_kafka_mock_push_request_errors(s.mock.cluster, HEARTBEAT, 1, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    for (uint64_t until = now_ms() + 10000; now_ms() < until && !rd_kafka_assignment_lost(s.u->rk);) {
        sleep_ms(10);
    }
    CHECK(rd_kafka_assignment_lost(s.u->rk));
    unsalt_consumer_close(s.u);
    CHECK_U64(stats_of(&s).commits, commits);
    CHECK_THAT(mock_committed(&s.mock, "g", "t", 0) <= 0, "something was committed");
    end(&s);
}

/* Ids come from producers; who knows the seed can make them collide. */
TEST(rules, every_consumer_draws_a_seed) {
    struct scene s;
    begin(&s, "", one_leader);
    unsalt_t *other = mock_consumer(&s.mock, "h", "", NULL);
    CHECK(s.u->core->params.hash_seed != 0);
    CHECK(s.u->core->params.hash_seed != other->core->params.hash_seed);
    mock_done(other);
    end(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stays is not disturbed by what goes: an incremental protocol takes one of two topics, each a lane set of its
 * own, and its revoke waits for acknowledgements. And what becomes of held and of unacknowledged records over
 * assignments.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/passes.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 150)

enum { RECORDS = 3000, PATIENCE_MS = 100000 };

static const char *const topics[] = {"x", "y"};

struct app {
    unsalt_t *u;
    unsigned member;
    struct passes *passes; /* of both members */
    char going[16];        /* topic that is revoking */
    int revoking, revoked, assigned;
    unsalt_token_t kept[RECORDS]; /* not acknowledged */
    size_t kept_count, kept_of[2]; /* of each topic: whichever goes has something to wait for */
    size_t came[2];       /* of each topic */
    uint64_t going_came;  /* of the topic that goes, since its revoke began */
    uint64_t staying_came;
    bool keeps;           /* acknowledges nothing of a topic that goes or may go */
};

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct app *app = opaque;
    app->assigned += what == UNSALT_ASSIGNED;
    app->revoking += what == UNSALT_REVOKING;
    app->revoked += what == UNSALT_REVOKED || what == UNSALT_LOST;
    snprintf(app->going, sizeof(app->going), "%s", what == UNSALT_REVOKING ? partitions->elems[0].topic : "");
}

static void ack_kept(struct app *app) {
    for (size_t i = 0; i < app->kept_count; i++) {
        unsalt_ack(app->u, app->kept[i]);
    }
    app->kept_count = app->kept_of[0] = app->kept_of[1] = 0;
}

/* One message, if one comes: session = topic. */
static void step(struct app *app, int timeout_ms) {
    unsalt_message_info_t info = {.size = sizeof(info)};
    rd_kafka_message_t *message = unsalt_consumer_poll(app->u, timeout_ms);
    CHECK(!unsalt_last_error());
    if (!message) {
        return;
    }
    CHECK_THAT(!message->err, "%s", rd_kafka_err2str(message->err));
    CHECK(!unsalt_message_info(app->u, message, &info));
    const char *topic = rd_kafka_topic_name(message->rkt);
    passes_add(app->passes, app->member, topic, info.seq, info.token.generation, -1, 0);
    app->came[topic[0] == 'y']++;
    if (app->going[0]) {
        app->going_came += strcmp(topic, app->going) == 0;
        app->staying_came += strcmp(topic, app->going) != 0;
    }
    bool goes = app->going[0] ? strcmp(topic, app->going) == 0 : app->keeps;
    if (goes && app->kept_of[topic[0] == 'y'] < 5) {
        app->kept_of[topic[0] == 'y']++;
        app->kept[app->kept_count++] = info.token;
    } else {
        unsalt_ack(app->u, info.token);
    }
    rd_kafka_message_destroy(message);
}

static void open_app(struct app *app, struct mock *mock, unsigned member, struct passes *passes) {
    memset(app, 0, sizeof(*app));
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    unsalt_conf_t *mine = mock_conf("partitions=1 ack=manual revoke.timeout.ms=30000", NULL);
    unsalt_conf_set_assignment_cb(mine, on_assignment, app);
    app->member = member;
    app->passes = passes;
    app->u = mock_consumer_of(conf, mine);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(list, topics[0], RD_KAFKA_PARTITION_UA);
    rd_kafka_topic_partition_list_add(list, topics[1], RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(app->u, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static void send_both(struct mock *mock, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, topics[0], 0, topics[0], seq, 1);
        mock_send(mock, topics[1], 0, topics[1], seq, 1);
    }
    mock_flush(mock);
}

static bool all_came(const struct passes *passes, uint64_t seq) {
    return passes_highest(passes, topics[0]) >= seq && passes_highest(passes, topics[1]) >= seq;
}

static void step_to(struct app app[2], const struct passes *passes, uint64_t seq) {
    for (uint64_t until = now_ms() + PATIENCE_MS; now_ms() < until && !all_came(passes, seq);) {
        step(&app[0], 5);
        step(&app[1], 5);
        ack_kept(&app[0]);
        ack_kept(&app[1]);
    }
    CHECK(all_came(passes, seq));
}

SLOW_TEST(rebalance_stays, what_stays_goes_on_while_a_revoke_waits) {
    struct mock mock;
    static struct app app[2];
    struct passes *passes = passes_new();
    unsalt_stats_t stats;
    mock_open(&mock, 1);
    mock_topic(&mock, topics[0], 1);
    mock_topic(&mock, topics[1], 1);
    send_both(&mock, 1, 40);
    open_app(&app[0], &mock, 0, passes);
    app[0].keeps = true;
    for (uint64_t until = now_ms() + PATIENCE_MS; now_ms() < until && (app[0].came[0] < 20 || app[0].came[1] < 20);) {
        step(&app[0], 50);
    }
    CHECK(app[0].came[0] >= 20 && app[0].came[1] >= 20);
    open_app(&app[1], &mock, 1, passes);
    send_both(&mock, 41, RECORDS);
    /* Slowly, so that much is still in the buffer when the revoke comes. */
    for (uint64_t until = now_ms() + PATIENCE_MS; now_ms() < until && app[0].revoking == 0;) {
        step(&app[0], 10);
        sleep_ms(10);
        step(&app[1], 0);
    }
    CHECK_I64(app[0].revoking, 1);
    CHECK_I64(app[0].revoked, 0);
    CHECK(app[0].came[0] < RECORDS && app[0].came[1] < RECORDS);
    for (uint64_t until = now_ms() + 10000; now_ms() < until && app[0].staying_came < 50;) {
        step(&app[0], 10);
        step(&app[1], 0);
    }
    unsalt_stats(app[0].u, &stats, sizeof(stats));
    CHECK_U64(app[0].going_came, 0);
    CHECK(app[0].staying_came >= 50);
    CHECK_I64(app[0].revoked, 0);
    CHECK_U64(stats.partitions, 2);
    /* The last acknowledgement may not have been taken yet. */
    CHECK(stats.unacked == app[0].kept_count || stats.unacked == app[0].kept_count + 1);
    CHECK(stats.conserved);
    app[0].keeps = false;
    ack_kept(&app[0]);
    step_to(app, passes, RECORDS);
    CHECK(app[0].revoked > 0);
    CHECK(passes->by_member[1] > 0);
    send_both(&mock, RECORDS + 1, RECORDS + 20);
    step_to(app, passes, RECORDS + 20);
    mock_done(app[0].u);
    mock_done(app[1].u);
    free(passes);
    mock_close(&mock);
}

/* ---- held and unacknowledged records */

enum { ROUNDS = 3, HELD = 40 };

struct alone {
    unsalt_t *u;
    struct heard heard;
    struct passes *passes;
    struct takings takings;
    rd_kafka_topic_partition_list_t *topics;
};

/* Takes `n` more records. Returns the place of the first. */
static size_t take_more(struct alone *alone, size_t n) {
    size_t before = alone->takings.count;
    CHECK(take(alone->u, &alone->takings, before + n, 20000));
    for (size_t i = before; i < alone->takings.count; i++) {
        const struct got *got = &alone->takings.got[i];
        passes_add(alone->passes, 0, got->session, got->seq, got->token.generation, -1, 0);
    }
    return before;
}

static unsalt_stats_t stats_of(const struct alone *alone) {
    unsalt_stats_t stats;
    CHECK(!unsalt_stats(alone->u, &stats, sizeof(stats)));
    CHECK(stats.conserved);
    return stats;
}

/* Everything so far comes, since nothing of it was acknowledged; then the partitions go. */
static void come_and_go(struct alone *alone, struct mock *mock, uint64_t round) {
    CHECK(!unsalt_subscribe(alone->u, alone->topics));
    mock_send(mock, "t", 0, "flow", round, 1);
    mock_flush(mock);
    take_more(alone, round);
    unsalt_token_t newest = alone->takings.got[alone->takings.count - 1].token;
    while (stats_of(alone).state[UNSALT_STATE_HELD] < HELD) {
        take_nothing(alone->u, 20);
    }
    CHECK_U64(stats_of(alone).unacked, round);
    CHECK(!unsalt_unsubscribe(alone->u));
    while (stats_of(alone).partitions > 0) {
        take_nothing(alone->u, 20);
    }
    unsalt_stats_t stats = stats_of(alone);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stats.unacked, 0);
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], HELD * round);
    CHECK_I64(unsalt_ack(alone->u, newest), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(mock_committed(mock, "g", "t", 0), 0);
    CHECK_U64(heard_count(&alone->heard, UNSALT_EVENT_OUTSTANDING), round * (round + 1) / 2);
}

/* Of a group's only member, with the first number of a session missing. */
SLOW_TEST(rebalance_stays, held_and_unacknowledged_records_come_again) {
    struct mock mock;
    struct alone alone = {.passes = passes_new(), .topics = rd_kafka_topic_partition_list_new(1)};
    heard_init(&alone.heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    const char *settings = "partitions=2 ack=manual revoke.timeout.ms=20 gap.timeout.ms=-1 start=first";
    alone.u = mock_consumer_of(conf, mock_conf(settings, &alone.heard));
    rd_kafka_topic_partition_list_add(alone.topics, "t", RD_KAFKA_PARTITION_UA);
    for (uint64_t seq = 2; seq <= HELD + 1; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "held", seq, 2);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        come_and_go(&alone, &mock, round);
    }
    mock_send(&mock, "t", 1, "held", 1, 2);
    mock_flush(&mock);
    CHECK(!unsalt_subscribe(alone.u, alone.topics));
    for (size_t i = take_more(&alone, HELD + 1 + ROUNDS); i < alone.takings.count; i++) {
        CHECK(!unsalt_ack(alone.u, alone.takings.got[i].token));
    }
    take_nothing(alone.u, 20);
    CHECK_U64(stats_of(&alone).unacked, 0);
    CHECK_U64(stats_of(&alone).state[UNSALT_STATE_HELD], 0);
    CHECK_U64(passes_highest(alone.passes, "held"), HELD + 1);
    CHECK_U64(passes_highest(alone.passes, "flow"), ROUNDS);
    CHECK(!unsalt_consumer_close(alone.u));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), HELD / 2 + ROUNDS);
    CHECK_I64(mock_committed(&mock, "g", "t", 1), HELD / 2 + 1);
    rd_kafka_topic_partition_list_destroy(alone.topics);
    takings_free(&alone.takings);
    free(alone.passes);
    mock_done(alone.u);
    mock_close(&mock);
}

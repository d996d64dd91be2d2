/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups: joins, revokes, the application's own rebalance callback. Each join costs the mock cluster 3 s, and that of
 * 2.0.2 refuses commits while a group rebalances, which no broker does: there, what a revoke commits isn't looked at.
 * On a busy machine a group may rebalance more often than a test asks for, so nothing rests on how often it does, or
 * on which member has what: records may come again, in passes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/passes.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 60)

static rd_kafka_topic_partition_list_t *topic(const char *name) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, name, RD_KAFKA_PARTITION_UA);
    return list;
}

static void subscribe(unsalt_t *u, const char *name) {
    rd_kafka_topic_partition_list_t *list = topic(name);
    CHECK(!unsalt_subscribe(u, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static void send_lanes(struct mock *mock, const char *const *topics, int lanes, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        int lane = (int)(seq % (unsigned)lanes);
        mock_send(mock, topics[lane], 0, "a", seq, (uint16_t)lanes);
        mock_send(mock, topics[lane], 1, "b", seq, (uint16_t)lanes);
    }
    mock_flush(mock);
}

struct app {
    int assigns, revokes;
};

/* Written as for a plain consumer: it changes offsets, and it assigns. */
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct app *app = opaque;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        app->assigns++;
        for (int i = 0; i < list->cnt; i++) {
            list->elems[i].offset = 5;
        }
        rd_kafka_assign(rk, list);
    } else {
        app->revokes++;
        rd_kafka_assign(rk, NULL);
    }
}

SLOW_TEST(rebalance, the_applications_callback_goes_on_working) {
    struct mock mock;
    struct takings takings = {0};
    struct app app = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        mock_send(&mock, "t", 0, "a", seq, 1);
        mock_send(&mock, "t", 1, "b", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_opaque(conf, &app);
    unsalt_t *u = mock_consumer_of(conf, NULL);
    subscribe(u, "t");
    CHECK(take(u, &takings, 30, 30000));
    CHECK_U64(takings.got[0].seq, 6);
    CHECK(app.assigns >= 1);
    CHECK(!unsalt_consumer_close(u));
    CHECK_I64(app.revokes, app.assigns);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* Hash layout in a group of two: no member has all lanes, which is refused and said. */
static void refuses_half(const char *settings) {
    struct mock mock;
    struct heard heard[2];
    unsalt_t *u[2];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    mock_send(&mock, "t", 0, "a", 1, 1);
    mock_send(&mock, "t", 1, "b", 1, 1);
    mock_flush(&mock);
    for (int i = 0; i < 2; i++) {
        heard_init(&heard[i]);
        u[i] = mock_consumer(&mock, "g", settings, &heard[i]);
        subscribe(u[i], "t");
    }
    for (uint64_t until = now_ms() + 30000; now_ms() < until;) {
        if (heard_count(&heard[0], UNSALT_EVENT_COLOCATION) && heard_count(&heard[1], UNSALT_EVENT_COLOCATION)) {
            break;
        }
        take_nothing(u[0], 50);
        take_nothing(u[1], 50);
    }
    CHECK(heard_count(&heard[0], UNSALT_EVENT_COLOCATION) && heard_count(&heard[1], UNSALT_EVENT_COLOCATION));
    mock_done(u[0]);
    mock_done(u[1]);
    mock_close(&mock);
}

SLOW_TEST(rebalance, an_incomplete_set_is_refused) {
    refuses_half("partitions=2");
}

SLOW_TEST(rebalance, an_incomplete_set_is_refused_when_n_is_not_configured) {
    refuses_half("");
}

static const char *const lanes[] = {"t", "t.lane-1", "t.lane-2"};

static unsalt_t *member(struct mock *mock, const char *settings, struct heard *heard) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "partition.assignment.strategy", "range");
    char all[256];
    snprintf(all, sizeof(all), "layout=topics partitions=2 lanes=3 %s", settings);
    unsalt_t *u = mock_consumer_of(conf, mock_conf(all, heard));
    subscribe(u, "t"); /* the lane topics are added */
    return u;
}

static void open_lanes(struct mock *mock) {
    mock_open(mock, 1);
    for (int lane = 0; lane < 3; lane++) {
        mock_topic(mock, lanes[lane], 2);
    }
}

/* Takes from both members until they have `want` records in all. */
static void take_both(unsalt_t *u[2], struct takings takings[2], size_t want, int timeout_ms) {
    for (uint64_t until = now_ms() + (uint64_t)timeout_ms; now_ms() < until;) {
        if (takings[0].count + takings[1].count >= want) {
            break;
        }
        take(u[0], &takings[0], takings[0].count + 1, 50);
        take(u[1], &takings[1], takings[1].count + 1, 50);
    }
}

static void add_got(struct passes *passes, unsigned member, const struct got *got) {
    passes_add(passes, member, got->session, got->seq, got->token.generation, got->lane * 2 + got->partition,
               got->offset);
}

/* Polls both members until both sessions came up to `seq`. What comes is checked, and acknowledged. */
static bool pass_both(unsalt_t *u[2], struct passes *passes, uint64_t seq, int timeout_ms) {
    struct takings takings[2] = {{0}};
    bool done = false;
    for (uint64_t until = now_ms() + (uint64_t)timeout_ms; now_ms() < until && !done;) {
        for (unsigned i = 0; i < 2; i++) {
            size_t before = takings[i].count;
            if (take(u[i], &takings[i], before + 1, 50)) {
                const struct got *got = &takings[i].got[before];
                add_got(passes, i, got);
                unsalt_ack(u[i], got->token);
            }
        }
        done = passes_highest(passes, "a") >= seq && passes_highest(passes, "b") >= seq;
    }
    takings_free(&takings[0]);
    takings_free(&takings[1]);
    return done;
}

/* Records of the past: of the first member, which had everything so far. */
static struct passes *passed_so_far(const struct takings *takings) {
    struct passes *passes = passes_new();
    for (size_t i = 0; i < takings->count; i++) {
        add_got(passes, 0, &takings->got[i]);
    }
    return passes;
}

static void end_both(struct mock *mock, unsalt_t *u[2], struct takings takings[2]) {
    for (int i = 0; i < 2; i++) {
        mock_done(u[i]);
        takings_free(&takings[i]);
    }
    mock_close(mock);
}

/* A second member comes, and each goes on with its sessions where they were committed. */
SLOW_TEST(rebalance, a_member_comes) {
    struct mock mock;
    struct takings takings[2] = {{0}};
    unsalt_t *u[2];
    open_lanes(&mock);
    send_lanes(&mock, lanes, 3, 1, 60);
    u[0] = member(&mock, "", NULL);
    CHECK(take(u[0], &takings[0], 120, 30000));
    CHECK_U64(check_order(&takings[0], 1), 120);
    struct passes *passes = passed_so_far(&takings[0]);
    take_nothing(u[0], 20);
    CHECK(!unsalt_commit(u[0], 0));
    for (int place = 0; place < 6; place++) {
        passes_commit(passes, place, 20);
    }
    u[1] = member(&mock, "", NULL);
    for (uint64_t seq = 61; seq <= 120 && passes->by_member[1] == 0; seq++) {
        send_lanes(&mock, lanes, 3, seq, seq); /* the second member may come later than a record */
        pass_both(u, passes, seq, 20000);
        pass_both(u, passes, 1000, 300);
    }
    CHECK(passes->by_member[1] > 0);
    uint64_t next = passes_highest(passes, "a") + 1;
    CHECK_U64(passes_highest(passes, "b") + 1, next);
    send_lanes(&mock, lanes, 3, next, next + 60);
    CHECK(pass_both(u, passes, next + 60, 20000));
    pass_both(u, passes, 1000, 500);
    free(passes);
    end_both(&mock, u, takings);
}

/* ack=manual: a revoke waits for what the application holds, over several polls that hand out nothing. */
SLOW_TEST(rebalance, a_revoke_waits_for_acknowledgements) {
    struct mock mock;
    struct heard heard;
    struct takings takings[2] = {{0}};
    unsalt_t *u[2];
    unsalt_stats_t stats;
    heard_init(&heard);
    open_lanes(&mock);
    send_lanes(&mock, lanes, 3, 1, 30);
    u[0] = member(&mock, "ack=manual revoke.timeout.ms=20000", &heard);
    CHECK(take(u[0], &takings[0], 60, 30000));
    u[1] = member(&mock, "", NULL);
    /* The revoke comes in here; the application goes on polling, and acknowledges only then. */
    for (uint64_t until = now_ms() + 4000; now_ms() < until;) {
        take_nothing(u[0], 50);
        take_nothing(u[1], 50);
    }
    unsalt_stats(u[0], &stats, sizeof(stats));
    CHECK_U64(stats.partitions, 6);
    for (size_t i = 0; i < takings[0].count; i++) {
        CHECK(!unsalt_ack(u[0], takings[0].got[i].token));
    }
    struct passes *passes = passed_so_far(&takings[0]);
    for (uint64_t seq = 31; seq <= 90 && passes->by_member[1] == 0; seq++) {
        send_lanes(&mock, lanes, 3, seq, seq);
        CHECK(pass_both(u, passes, seq, 20000));
        pass_both(u, passes, 1000, 300);
    }
    CHECK(passes->by_member[1] > 0);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_OUTSTANDING), 0);
    free(passes);
    end_both(&mock, u, takings);
}

/* The application never acknowledges: after revoke.timeout.ms the partitions go, and it is told what it still has. */
SLOW_TEST(rebalance, a_revoke_does_not_wait_for_ever) {
    struct mock mock;
    struct heard heard;
    struct takings takings[2] = {{0}};
    unsalt_t *u[2];
    heard_init(&heard);
    open_lanes(&mock);
    send_lanes(&mock, lanes, 3, 1, 3);
    u[0] = member(&mock, "ack=manual revoke.timeout.ms=500", &heard);
    CHECK(take(u[0], &takings[0], 6, 30000));
    unsalt_token_t token = takings[0].got[0].token;
    u[1] = member(&mock, "", NULL);
    take_both(u, takings, 12, 20000);
    /* Twice each, or more often: on a busy machine the group may rebalance once more. */
    CHECK(takings[0].count + takings[1].count >= 12);
    CHECK(heard_count(&heard, UNSALT_EVENT_OUTSTANDING) >= 6);
    CHECK_I64(unsalt_ack(u[0], token), RD_KAFKA_RESP_ERR__STATE);
    end_both(&mock, u, takings);
}

static unsalt_t *cooperative_member(struct mock *mock, const char *settings, struct heard *heard) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    unsalt_t *u = mock_consumer_of(conf, mock_conf(settings, heard));
    subscribe(u, "t");
    return u;
}

/* Sessions a, b, .., each in a partition of its own. */
static void send_each(struct mock *mock, int partitions, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        for (int p = 0; p < partitions; p++) {
            char session[2] = {(char)('a' + p), 0};
            mock_send(mock, "t", p, session, seq, 1);
        }
    }
    mock_flush(mock);
}

/* An incremental protocol takes single partitions; what stays goes on without a gap or a copy. */
SLOW_TEST(rebalance, cooperative) {
    struct mock mock;
    struct heard heard;
    struct takings takings[2] = {{0}};
    unsalt_t *u[2];
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 4);
    u[0] = cooperative_member(&mock, "colocation=report partitions=4", &heard);
    send_each(&mock, 4, 1, 20);
    CHECK(take(u[0], &takings[0], 80, 30000));
    take_nothing(u[0], 20);
    CHECK(!unsalt_commit(u[0], 0));
    send_each(&mock, 4, 21, 40);
    /* The first has read everything and committed half of it; then two of four partitions move. */
    CHECK(take(u[0], &takings[0], 160, 30000));
    CHECK_U64(check_order(&takings[0], 1), 160);
    struct passes *passes = passed_so_far(&takings[0]);
    u[1] = cooperative_member(&mock, "colocation=report partitions=4", NULL);
    for (uint64_t seq = 41; seq <= 100 && passes->by_member[1] == 0; seq++) {
        send_each(&mock, 4, seq, seq);
        pass_both(u, passes, seq, 25000);
        pass_both(u, passes, 1000, 300);
    }
    CHECK(passes->by_member[1] > 0);
    uint64_t all = passes_highest(passes, "a") + 20;
    send_each(&mock, 4, all - 19, all);
    CHECK(pass_both(u, passes, all, 20000));
    pass_both(u, passes, 1000, 500);
    CHECK_U64(passes_highest(passes, "c"), all);
    CHECK_U64(passes_highest(passes, "d"), all);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), 0);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_DUPLICATE), 0);
    free(passes);
    end_both(&mock, u, takings);
}

/* Nothing comes as long as this member has but one of the two partitions. */
static void take_if_whole(unsalt_t *u, struct takings *takings, int ms) {
    unsalt_stats_t stats;
    if (take(u, takings, takings->count + 1, ms)) {
        unsalt_stats(u, &stats, sizeof(stats));
        CHECK_U64(stats.partitions, 2);
    }
}

/* One of the two members has had number 2 of a session. */
static bool has(const struct takings takings[2], char session) {
    bool found = false;
    for (size_t i = 0; i < takings[0].count + takings[1].count; i++) {
        const struct got *got = i < takings[0].count ? &takings[0].got[i] : &takings[1].got[i - takings[0].count];
        found |= got->session[0] == session && got->seq == 2;
    }
    return found;
}

/* N is not configured, so what the cluster says counts: who has half of the partitions waits, as the event says. */
SLOW_TEST(rebalance, an_incomplete_set_waits_with_an_incremental_protocol) {
    struct mock mock;
    struct heard heard;
    struct takings takings[2] = {{0}};
    unsalt_t *u[2];
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    mock_send(&mock, "t", 0, "a", 1, 1);
    mock_send(&mock, "t", 1, "b", 1, 1);
    mock_flush(&mock);
    u[0] = cooperative_member(&mock, "", NULL);
    CHECK(take(u[0], &takings[0], 2, 30000));
    u[1] = cooperative_member(&mock, "", &heard);
    for (uint64_t until = now_ms() + 30000; now_ms() < until && !heard_count(&heard, UNSALT_EVENT_COLOCATION);) {
        take_if_whole(u[0], &takings[0], 50);
        take_if_whole(u[1], &takings[1], 50);
    }
    CHECK(heard_count(&heard, UNSALT_EVENT_COLOCATION) > 0);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_COLOCATION], "wait"), "%s", heard.text[UNSALT_EVENT_COLOCATION]);
    mock_send(&mock, "t", 0, "a", 2, 1);
    mock_send(&mock, "t", 1, "b", 2, 1);
    mock_flush(&mock);
    for (int i = 0; i < 20; i++) {
        take_if_whole(u[0], &takings[0], 20);
        take_if_whole(u[1], &takings[1], 20);
    }
    /* The other one leaves, and the set is complete again. */
    mock_done(u[1]);
    for (uint64_t until = now_ms() + 30000; now_ms() < until && !(has(takings, 'a') && has(takings, 'b'));) {
        take(u[0], &takings[0], takings[0].count + 1, 100);
    }
    CHECK(has(takings, 'a') && has(takings, 'b'));
    mock_done(u[0]);
    takings_free(&takings[0]);
    takings_free(&takings[1]);
    mock_close(&mock);
}

SLOW_TEST(rebalance, unsubscribe_gives_everything_back) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    open_lanes(&mock);
    send_lanes(&mock, lanes, 3, 1, 30);
    unsalt_t *u = member(&mock, "", NULL);
    CHECK(take(u, &takings, 60, 30000));
    CHECK(!unsalt_unsubscribe(u));
    for (uint64_t until = now_ms() + 10000; now_ms() < until;) {
        take_nothing(u, 50);
        unsalt_stats(u, &stats, sizeof(stats));
        if (stats.partitions == 0) {
            break;
        }
    }
    CHECK_U64(stats.partitions, 0);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

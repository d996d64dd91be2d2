/* SPDX-License-Identifier: BSD-2-Clause */
/* What the consumer says: events with their texts, log lines, co-location. */
#include <support/check.h>
#include <support/mockcluster.h>

#define LANES 2

struct scene {
    struct mock mock;
    struct heard heard;
    struct takings takings;
    unsalt_t *u;
};

static void begin(struct scene *s, const char *settings) {
    memset(s, 0, sizeof(*s));
    heard_init(&s->heard);
    mock_open(&s->mock, 1);
    mock_topic(&s->mock, "t", LANES);
    s->u = mock_consumer(&s->mock, "g", settings, &s->heard);
    CHECK(!mock_assign(s->u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
}

static void end(struct scene *s) {
    mock_done(s->u);
    takings_free(&s->takings);
    mock_close(&s->mock);
}

static void post(struct scene *s, uint64_t seq) {
    mock_send(&s->mock, "t", (int32_t)(seq % LANES), "m-17", seq, LANES);
    mock_flush(&s->mock);
}

TEST(events, late_record_is_delivered_with_a_flag) {
    struct scene s;
    begin(&s, "gap.timeout.ms=50");
    post(&s, 1);
    post(&s, 3);
    CHECK(take(s.u, &s.takings, 2, 15000));
    post(&s, 2);
    CHECK(take(s.u, &s.takings, 3, 15000));
    CHECK_I64(s.takings.got[2].state, UNSALT_STATE_LATE);
    CHECK_U64(s.takings.got[2].seq, 2);
    CHECK_STR(s.takings.got[2].session, "m-17");
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_LATE), 1);
    const char *text = s.heard.text[UNSALT_EVENT_LATE];
    CHECK_THAT(strstr(text, "late: session \"m-17\" 2 ") && strstr(text, "t [0]"), "%s", text);
    end(&s);
}

TEST(events, late_record_is_dropped_if_told_so) {
    struct scene s;
    unsalt_stats_t stats;
    begin(&s, "gap.timeout.ms=50 late=drop");
    post(&s, 1);
    post(&s, 3);
    CHECK(take(s.u, &s.takings, 2, 15000));
    post(&s, 2);
    take_nothing(s.u, 500);
    unsalt_stats(s.u, &stats, sizeof(stats));
    CHECK_U64(stats.state[UNSALT_STATE_DROPPED], 1);
    CHECK(stats.conserved);
    end(&s);
}

static int dead_letters;

static void on_dead_letter(void *opaque, const struct rd_kafka_message_s *message, const char *reason) {
    CHECK_STR((const char *)opaque, "box");
    CHECK_U64(message->len, 7);
    CHECK(reason && !strcmp(reason, "late"));
    dead_letters++;
}

TEST(events, late_record_goes_to_the_dead_letter_callback) {
    struct scene s = {0};
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    unsalt_conf_t *conf = mock_conf("gap.timeout.ms=50 late=dead-letter", NULL);
    unsalt_conf_set_dead_letter_cb(conf, on_dead_letter, "box");
    s.u = mock_consumer_of(mock_rd_conf(&s.mock, "g"), conf);
    CHECK(!mock_assign(s.u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    post(&s, 1);
    post(&s, 3);
    CHECK(take(s.u, &s.takings, 2, 15000));
    post(&s, 2);
    for (uint64_t until = now_ms() + 10000; dead_letters == 0 && now_ms() < until;) {
        take_nothing(s.u, 50);
    }
    CHECK_I64(dead_letters, 1);
    end(&s);
}

/* A record whose lane nothing tells has none, whatever S is configured. */
TEST(events, lane_of_a_message) {
    struct scene s;
    begin(&s, "lanes=2 gap.timeout.ms=0");
    mock_write(&s.mock, "t", 1, "raw", "x", 1, "seq", "1", 1);
    mock_flush(&s.mock);
    CHECK(take(s.u, &s.takings, 1, 15000));
    mock_write(&s.mock, "t", 1, "salted#1", "x", 1, "seq", "1", 1);
    mock_flush(&s.mock);
    CHECK(take(s.u, &s.takings, 2, 15000));
    CHECK_I64(s.takings.got[0].lane, -1);
    CHECK_I64(s.takings.got[1].lane, 1);
    CHECK_STR(s.takings.got[1].session, "salted");
    end(&s);
}

TEST(events, duplicate) {
    struct scene s;
    begin(&s, "");
    post(&s, 1);
    post(&s, 1);
    post(&s, 2);
    CHECK(take(s.u, &s.takings, 2, 15000));
    take_nothing(s.u, 100);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_DUPLICATE), 1);
    CHECK_U64(s.heard.first[UNSALT_EVENT_DUPLICATE], 1);
    end(&s);
}

/* Every kind of broken header: an event and the record, never a crash or a silent drop. */
TEST(events, malformed_headers) {
    static const unsigned char zero[UNSALT_HEADER_SIZE] = {1};
    unsigned char unknown[UNSALT_HEADER_SIZE] = {9};
    unsigned char lane[UNSALT_HEADER_SIZE] = {1, 0, 0, 5, 0, 2};
    struct scene s;
    unsalt_stats_t stats;
    begin(&s, "");
    mock_write(&s.mock, "t", 0, "k", "x", 1, UNSALT_HEADER_NAME, "short", 5);
    mock_write(&s.mock, "t", 0, "k", "x", 1, UNSALT_HEADER_NAME, unknown, sizeof(unknown));
    mock_write(&s.mock, "t", 0, "k", "x", 1, UNSALT_HEADER_NAME, zero, sizeof(zero));
    mock_write(&s.mock, "t", 0, "k", "x", 1, UNSALT_HEADER_NAME, lane, sizeof(lane));
    mock_write(&s.mock, "t", 0, "k", "x", 1, UNSALT_HEADER_NAME, NULL, 0);
    mock_flush(&s.mock);
    CHECK(take(s.u, &s.takings, 5, 15000));
    for (int i = 0; i < 5; i++) {
        CHECK_I64(s.takings.got[i].offset, i);
        CHECK_I64(s.takings.got[i].state, UNSALT_STATE_UNSEQUENCED);
    }
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_MALFORMED), 5);
    CHECK_THAT(strstr(s.heard.text[UNSALT_EVENT_MALFORMED], "malformed: t [0] offset 4"), "%s",
               s.heard.text[UNSALT_EVENT_MALFORMED]);
    unsalt_stats(s.u, &stats, sizeof(stats));
    CHECK_U64(stats.malformed, 5);
    end(&s);
}

/* The event callback gets all, the log a bounded number of lines per second. */
TEST(events, log_lines_are_limited) {
    struct scene s;
    begin(&s, "seq.source=json");
    for (int i = 0; i < 300; i++) {
        mock_write(&s.mock, "t", 0, "k", "no json", 7, NULL, NULL, 0);
    }
    mock_flush(&s.mock);
    CHECK(take(s.u, &s.takings, 300, 15000));
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_MALFORMED), 300);
    CHECK_THAT(s.heard.lines >= 10 && s.heard.lines < 100, "%" PRIu64 " lines", s.heard.lines);
    end(&s);
}

static void on_event_calls(void *opaque, const unsalt_event_t *event) {
    unsalt_t **u = opaque;
    unsalt_stats_t stats;
    CHECK_U64(event->size, sizeof(*event));
    CHECK_I64(unsalt_stats(*u, &stats, sizeof(stats)), 0);
    CHECK_I64(unsalt_ack(*u, (unsalt_token_t){0}), RD_KAFKA_RESP_ERR__INVALID_ARG);
    unsalt_wakeup(*u);
    CHECK(!unsalt_consumer_poll(*u, 0));
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    unsalt_ack(*u, (unsalt_token_t){0});
}

TEST(events, what_a_callback_may_call) {
    struct mock mock;
    unsalt_t *u = NULL;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    unsalt_conf_t *conf = mock_conf("seq.source=json ack=manual", NULL);
    unsalt_conf_set_event_cb(conf, on_event_calls, &u);
    u = mock_consumer_of(mock_rd_conf(&mock, "g"), conf);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    mock_write(&mock, "t", 0, "k", "no json", 7, NULL, NULL, 0);
    mock_flush(&mock);
    rd_kafka_message_t *message = NULL;
    for (uint64_t until = now_ms() + 10000; !message && now_ms() < until;) {
        message = unsalt_consumer_poll(u, 100);
    }
    CHECK(message);
    rd_kafka_message_destroy(message);
    mock_done(u);
    mock_close(&mock);
}

/* The leader is gone when a gap is due: no verdict, an event; it comes back, and the gap is given up. */
TEST(events, horizon_failed_and_found) {
    struct scene s;
    unsalt_stats_t stats;
    begin(&s, "gap.timeout.ms=1000");
    post(&s, 1);
    post(&s, 3);
    CHECK(take(s.u, &s.takings, 1, 15000));
    do {
        take_nothing(s.u, 20);
        unsalt_stats(s.u, &stats, sizeof(stats));
    } while (stats.state[UNSALT_STATE_HELD] == 0);
    rd_kafka_mock_broker_set_down(s.mock.cluster, 1);
    for (uint64_t until = now_ms() + 15000; !heard_count(&s.heard, UNSALT_EVENT_HORIZON_FAILED) && now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(s.u, 100);
        CHECK_THAT(!message || message->err, "a record was handed out although nobody knows of its gap");
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    CHECK(heard_count(&s.heard, UNSALT_EVENT_HORIZON_FAILED) > 0);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    rd_kafka_mock_broker_set_up(s.mock.cluster, 1);
    for (uint64_t until = now_ms() + 15000; !heard_count(&s.heard, UNSALT_EVENT_GAP) && now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(s.u, 100);
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 1);
    unsalt_stats(s.u, &stats, sizeof(stats));
    CHECK(stats.question_failures > 0);
    end(&s);
}

/* A dead leader with many partitions doesn't keep the question for one of another leader waiting. */
TEST(events, a_dead_leader_does_not_delay_others) {
    enum { DEAD = 16 };
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 2);
    mock_topic(&s.mock, "t", 1);
    mock_topic(&s.mock, "dead", DEAD);
    CHECK(!rd_kafka_mock_partition_set_leader(s.mock.cluster, "t", 0, 1));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(DEAD + 1);
    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    for (int i = 0; i < DEAD; i++) {
        char session[16];
        snprintf(session, sizeof(session), "d%d", i);
        CHECK(!rd_kafka_mock_partition_set_leader(s.mock.cluster, "dead", i, 2));
        rd_kafka_topic_partition_list_add(list, "dead", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
        mock_send(&s.mock, "dead", i, session, 1, 2);
        mock_send(&s.mock, "dead", i, session, 4, 2);
    }
    mock_send(&s.mock, "t", 0, "s", 1, 2);
    mock_flush(&s.mock);
    s.u = mock_consumer(&s.mock, "g", "gap.timeout.ms=1500", &s.heard);
    CHECK(!unsalt_assign(s.u, list));
    rd_kafka_topic_partition_list_destroy(list);
    CHECK(take(s.u, &s.takings, DEAD + 1, 15000));
    rd_kafka_mock_broker_set_down(s.mock.cluster, 2);
    for (uint64_t until = now_ms() + 15000; !heard_count(&s.heard, UNSALT_EVENT_HORIZON_FAILED) && now_ms() < until;) {
        take(s.u, &s.takings, s.takings.count + 1, 50);
    }
    CHECK(heard_count(&s.heard, UNSALT_EVENT_HORIZON_FAILED) > 0);
    mock_send(&s.mock, "t", 0, "s", 4, 2);
    mock_flush(&s.mock);
    uint64_t sent = now_ms();
    while (now_ms() < sent + 15000 && !heard_count(&s.heard, UNSALT_EVENT_GAP)) {
        take(s.u, &s.takings, s.takings.count + 1, 50);
    }
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 1);
    CHECK_THAT(now_ms() - sent < 1500 + 5000, "the verdict took %" PRIu64 " ms", now_ms() - sent);
    end(&s);
}

/* ---- co-location */

TEST(events, an_incomplete_lane_set_is_refused) {
    struct scene s;
    begin(&s, "partitions=2");
    post(&s, 1);
    CHECK_I64(mock_assign(s.u, "t", 1, RD_KAFKA_OFFSET_BEGINNING), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_COLOCATION), 1);
    CHECK_THAT(strstr(s.heard.text[UNSALT_EVENT_COLOCATION], "t [1]"), "%s", s.heard.text[UNSALT_EVENT_COLOCATION]);
    /* Nothing changed: the old assignment goes on. */
    CHECK(take(s.u, &s.takings, 1, 15000));
    end(&s);
}

TEST(events, an_incomplete_lane_set_is_reported) {
    struct scene s;
    begin(&s, "partitions=2 colocation=report");
    CHECK(!mock_assign(s.u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_COLOCATION), 1);
    mock_send(&s.mock, "t", 0, "m", 1, 1);
    mock_flush(&s.mock);
    CHECK(take(s.u, &s.takings, 1, 15000));
    end(&s);
}

/* A topic that is not among the named lane topics has no siblings to wait for. */
TEST(events, a_topic_without_lanes_does_not_wait) {
    struct scene s = {0};
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "c", 1);
    s.u = mock_consumer(&s.mock, "g", "layout=topics partitions=1 lane.topics=a,b", NULL);
    mock_send(&s.mock, "c", 0, "m", 1, 1);
    mock_flush(&s.mock);
    CHECK(!mock_assign(s.u, "c", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(s.u, &s.takings, 1, 15000));
    CHECK_I64(s.takings.got[0].state, UNSALT_STATE_RELEASED);
    end(&s);
}

TEST(events, another_number_of_partitions_than_configured) {
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", 4);
    s.u = mock_consumer(&s.mock, "g", "partitions=2", &s.heard);
    CHECK(!mock_assign(s.u, "t", 2, RD_KAFKA_OFFSET_BEGINNING));
    for (uint64_t until = now_ms() + 15000; now_ms() < until;) { /* the cluster is asked in the background */
        take_nothing(s.u, 20);
        if (heard_count(&s.heard, UNSALT_EVENT_PARTITIONS_CHANGED)) {
            break;
        }
    }
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_PARTITIONS_CHANGED), 1);
    CHECK_THAT(strstr(s.heard.text[UNSALT_EVENT_PARTITIONS_CHANGED], "t has 4 partitions, configured are 2"), "%s",
               s.heard.text[UNSALT_EVENT_PARTITIONS_CHANGED]);
    end(&s);
}

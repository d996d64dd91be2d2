/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why does a session wait, and why does the horizon stand that it waits for? Every answer that there is, on a cluster
 * that makes it true. (googleapis/google-cloud-go#5905: nobody could list what was outstanding.)
 */
#include <stdatomic.h>
#include <stddef.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <unsalt/core.h>

enum { LANES = 2, FETCH = 1 /* the protocol's number of this request */ };

struct scene {
    struct mock mock;
    struct heard heard;
    unsalt_t *u;
    uint64_t came; /* messages without an error */
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
    mock_close(&s->mock);
}

static void post_as(struct scene *s, const char *session, uint64_t epoch, uint64_t seq) {
    const unsalt_header_t header = {.lane = (uint16_t)(seq % LANES), .lanes = LANES, .epoch = epoch, .seq = seq,
                                    .since = 1, .una = 1};
    mock_send_header(&s->mock, "t", (int32_t)(seq % LANES), session, &header);
    mock_flush(&s->mock);
}

static void post(struct scene *s, uint64_t seq) {
    post_as(s, "m-17", 1, seq);
}

static void poll_once(struct scene *s) {
    rd_kafka_message_t *message = unsalt_consumer_poll(s->u, 20);
    if (message) {
        s->came += message->err == 0;
        rd_kafka_message_destroy(message);
    }
}

static void poll_until_held(struct scene *s, uint64_t held) {
    unsalt_stats_t stats;
    uint64_t until = now_ms() + 15000;
    do {
        poll_once(s);
        unsalt_stats(s->u, &stats, sizeof(stats));
        CHECK_THAT(now_ms() < until, "%" PRIu64 " records are held, not %" PRIu64, stats.state[UNSALT_STATE_HELD],
                   held);
    } while (stats.state[UNSALT_STATE_HELD] != held);
}

static unsalt_horizon_info_t horizon_of(struct scene *s, int32_t partition) {
    unsalt_horizon_info_t info = {.size = sizeof(info)};
    rd_kafka_resp_err_t err = unsalt_horizon_info(s->u, "t", partition, &info);
    for (uint64_t until = now_ms() + 15000; err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && now_ms() < until;) {
        poll_once(s); /* the group hasn't given it yet */
        err = unsalt_horizon_info(s->u, "t", partition, &info);
    }
    CHECK_I64(err, 0);
    return info;
}

/* Polls until the horizon of a partition stands for this reason. */
static unsalt_horizon_info_t poll_until(struct scene *s, int32_t partition, unsalt_stand_t stand) {
    unsalt_horizon_info_t info = horizon_of(s, partition);
    for (uint64_t until = now_ms() + 15000; info.stand != (int)stand && now_ms() < until;) {
        poll_once(s);
        info = horizon_of(s, partition);
    }
    CHECK_STR(unsalt_stand_name((unsalt_stand_t)info.stand), unsalt_stand_name(stand));
    CHECK_STR(info.text, unsalt_stand_text(stand));
    return info;
}

static void poll_until_gap(struct scene *s, uint64_t gaps) {
    for (uint64_t until = now_ms() + 15000; heard_count(&s->heard, UNSALT_EVENT_GAP) < gaps && now_ms() < until;) {
        poll_once(s);
    }
    CHECK_U64(heard_count(&s->heard, UNSALT_EVENT_GAP), gaps);
}

static void set_paused(struct scene *s, int32_t partition, bool paused) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", partition);
    CHECK(!(paused ? unsalt_pause(s->u, list) : unsalt_resume(s->u, list)));
    rd_kafka_topic_partition_list_destroy(list);
}

/* Partition 0 is paused with something in it that isn't read: an empty one would have been read to its end. */
static void pause_and_fill(struct scene *s) {
    set_paused(s, 0, true);
    post_as(s, "m-17", 1, 20);
}

/* All of `parts`, separated by '|', stand in the explanation, in this order. */
static void says(struct scene *s, const char *session, const char *parts) {
    char text[2000], part[200];
    const char *at = text;
    int len = unsalt_explain(s->u, session, strlen(session), text, sizeof(text));
    CHECK_I64(len, (int64_t)strlen(text));
    while (*parts) {
        size_t n = strcspn(parts, "|");
        snprintf(part, sizeof(part), "%.*s", (int)n, parts);
        at = strstr(at, part);
        CHECK_THAT(at, "\"%s\" doesn't stand in\n%s", part, text);
        at += n;
        parts += n + (parts[n] == '|');
    }
}

/* ---- each stand */

TEST(explain, nothing_waits) {
    struct scene s;
    begin(&s, "");
    post(&s, 1);
    post(&s, 2);
    for (uint64_t until = now_ms() + 15000; s.came < 2 && now_ms() < until;) {
        poll_once(&s);
    }
    unsalt_horizon_info_t info = poll_until(&s, 0, UNSALT_STAND_NOTHING);
    CHECK_I64(info.age_ms, -1);
    CHECK_I64(info.behind_ms, 0);
    CHECK_I64(info.read, 1);
    CHECK_I64(info.end, -1);
    CHECK_U64(info.waiting, 0);
    CHECK_U64(info.failures, 0);
    says(&s, "m-17", "epoch 1, cursor 3, 0 held (0 bytes)\n");
    end(&s);
}

/* A group that hands partitions over piece by piece, and a topic that has fewer than it should. */
TEST(explain, the_lane_set_is_incomplete) {
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    rd_kafka_conf_t *conf = mock_rd_conf(&s.mock, "g");
    mock_rd_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    s.u = mock_consumer_of(conf, mock_conf("partitions=4 start=seen", &s.heard));
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(s.u, topics));
    rd_kafka_topic_partition_list_destroy(topics);
    post(&s, 3);
    poll_until(&s, 0, UNSALT_STAND_INCOMPLETE);
    says(&s, "m-17", "nothing of it was read yet\n|t [0]|its lane set is not complete here\n");
    end(&s);
}

TEST(explain, paused) {
    struct scene s;
    begin(&s, "gap.timeout.ms=100");
    pause_and_fill(&s);
    post(&s, 1);
    post(&s, 3);
    poll_until_held(&s, 1);
    unsalt_horizon_info_t info = poll_until(&s, 0, UNSALT_STAND_PAUSED);
    CHECK(info.waiting == 1);
    CHECK(info.behind_ms > 0);
    says(&s, "m-17", "cursor 2, 1 held|missing 2 (lane 0); the gap is open for |, due since |t [0]: |"
                     "; the application has paused it\n|t [1]: ");
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    set_paused(&s, 0, false);
    poll_until_gap(&s, 1);
    end(&s);
}

TEST(explain, a_budget_refuses_the_next_record) {
    struct scene s;
    begin(&s, "gap.timeout.ms=100 budget.records=2 budget.policy=block block.max.ms=60000");
    for (uint64_t seq = 3; seq <= 9; seq += 2) {
        post(&s, seq);
    }
    poll_until_held(&s, 2);
    poll_until(&s, 1, UNSALT_STAND_REFUSED);
    says(&s, "m-17", "cursor 1, 2 held|missing 1..2; |t [1]: |; a budget refuses its next record, so it isn't read\n");
    end(&s);
}

/* The broker is gone when the gap falls due. */
TEST(explain, stalled) {
    struct scene s;
    begin(&s, "gap.timeout.ms=500 gap.stall.max.ms=4000");
    post(&s, 1);
    post(&s, 3);
    poll_until_held(&s, 1);
    rd_kafka_mock_broker_set_down(s.mock.cluster, 1);
    unsalt_horizon_info_t info = poll_until(&s, 0, UNSALT_STAND_STALLED);
    CHECK(info.failures > 0);
    poll_until_gap(&s, 1);
    CHECK_STR(unsalt_gap_reason_name(s.heard.reason[UNSALT_EVENT_GAP]), "stalled");
    end(&s);
}

/* Fetches of partition 0 fail, but its leader says where it ends. */
TEST(explain, reading_is_behind_the_end) {
    static rd_kafka_resp_err_t errors[1000];
    struct scene s;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        errors[i] = RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR;
    }
    begin(&s, "gap.timeout.ms=300");
    post(&s, 1);
    post(&s, 3);
    poll_until_held(&s, 1);
    rd_kafka_mock_push_request_errors_array(s.mock.cluster, FETCH, sizeof(errors) / sizeof(errors[0]), errors);
    post(&s, 4);
    unsalt_horizon_info_t info = poll_until(&s, 0, UNSALT_STAND_BEHIND);
    CHECK_I64(info.end, 1);
    CHECK(info.read < 1);
    says(&s, "m-17", "missing 2 (lane 0); |t [0]: horizon unknown, read below 0 of 1; "
                     "reading has not reached the end that its leader told\n");
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_GAP), 0);
    rd_kafka_mock_clear_request_errors(s.mock.cluster, FETCH);
    poll_until_gap(&s, 1);
    CHECK_STR(unsalt_gap_reason_name(s.heard.reason[UNSALT_EVENT_GAP]), "timeout");
    end(&s);
}

/* The leader takes its time to answer. */
TEST(explain, asked) {
    struct scene s;
    begin(&s, "gap.timeout.ms=300");
    post(&s, 1);
    post(&s, 3);
    poll_until_held(&s, 1);
    rd_kafka_mock_broker_set_rtt(s.mock.cluster, 1, 5000);
    poll_until(&s, 0, UNSALT_STAND_ASKED);
    says(&s, "m-17", "due since |t [0]: |; its leader was asked for the end and has not answered yet\n");
    rd_kafka_mock_broker_set_rtt(s.mock.cluster, 1, 0);
    end(&s);
}

/* Questions keep their distance: the second gap has to wait for the next one. */
TEST(explain, to_be_asked) {
    struct scene s;
    begin(&s, "gap.timeout.ms=50 gap.question.min.ms=60000");
    post(&s, 1);
    post(&s, 3);
    poll_until_gap(&s, 1);
    unsalt_horizon_info_t info = horizon_of(&s, 0);
    CHECK_I64(info.stand, UNSALT_STAND_NOTHING);
    CHECK_THAT(info.age_ms >= 0 && info.age_ms < 15000, "read past %" PRId64 " ms ago", info.age_ms);
    post(&s, 5);
    poll_until(&s, 0, UNSALT_STAND_TO_ASK);
    says(&s, "m-17", "missing 4 (lane 0)|t [0]: read past |; its leader will be asked for the end\n");
    end(&s);
}

/* ---- what else a session may wait for */

TEST(explain, a_gap_that_is_not_due) {
    struct scene s;
    begin(&s, "gap.timeout.ms=60000");
    post(&s, 1);
    post(&s, 5);
    poll_until_held(&s, 1);
    says(&s, "m-17", "epoch 1, cursor 2, 1 held (|  missing 2..4; the gap is open for |, due in |"
                     "t [0]: its end was not asked for yet, read below |; not waited for before the gap is due, in |"
                     " ms\n");
    end(&s);
}

TEST(explain, a_gap_that_never_falls_due) {
    struct scene s;
    begin(&s, "gap.timeout.ms=-1");
    post(&s, 2);
    poll_until_held(&s, 1);
    says(&s, "m-17", "missing 1 (lane 1); |, and never falls due\n|; not waited for, as the gap never falls due\n");
    end(&s);
}

TEST(explain, a_later_epoch) {
    struct scene s;
    begin(&s, "gap.timeout.ms=-1");
    pause_and_fill(&s);
    post(&s, 1);
    post(&s, 3);
    poll_until_held(&s, 1);
    post_as(&s, "m-17", 2, 1);
    poll_until_held(&s, 2);
    says(&s, "m-17", "epoch 1, cursor 2, 1 held|, 1 later epochs wait\n|missing 2 (lane 0)|"
                     "the application has paused it\n");
    end(&s);
}

TEST(explain, a_start_that_is_being_found_out) {
    struct scene s;
    begin(&s, "start=seen");
    pause_and_fill(&s);
    post(&s, 5);
    poll_until_held(&s, 1);
    /* What it doesn't know may be on its way; after that the logs count. */
    says(&s, "m-17", "epoch 1, its start is being found out, for |ms numbers may be on their way, 1 held");
    poll_until(&s, 0, UNSALT_STAND_PAUSED);
    says(&s, "m-17", "epoch 1, its start is being found out, 1 held|t [0]: |the application has paused it\n");
    end(&s);
}

/* Two topics that don't belong together know a session of that name. */
TEST(explain, a_session_of_two_topics) {
    struct scene s = {0};
    heard_init(&s.heard);
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "a", 1);
    mock_topic(&s.mock, "b", 1);
    s.u = mock_consumer(&s.mock, "g", "gap.timeout.ms=-1", &s.heard);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(list, "a", 0)->offset = 0;
    rd_kafka_topic_partition_list_add(list, "b", 0)->offset = 0;
    CHECK(!unsalt_assign(s.u, list));
    rd_kafka_topic_partition_list_destroy(list);
    mock_send(&s.mock, "a", 0, "both", 2, 1);
    mock_send(&s.mock, "b", 0, "both", 7, 1);
    mock_send(&s.mock, "b", 0, "one", 3, 1);
    mock_flush(&s.mock);
    poll_until_held(&s, 3);
    says(&s, "both", "missing 1 (lane 0)|a [0]: |missing 1..6|b [0]: ");
    char text[2000];
    CHECK(unsalt_explain(s.u, "one", 3, text, sizeof(text)) > 0);
    CHECK_THAT(!strstr(text, "a [0]") && strstr(text, "missing 1..2"), "%s", text);
    end(&s);
}

/* ---- arguments */

TEST(explain, errors_of_a_horizon) {
    struct scene s;
    begin(&s, "");
    unsalt_horizon_info_t info = {.size = sizeof(info)}, none = {.size = 0}, twin;
    CHECK_I64(unsalt_horizon_info(s.u, NULL, 0, &info), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, NULL), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, &none), RD_KAFKA_RESP_ERR__INVALID_ARG);
    memset(&info, 0x5a, sizeof(info));
    info.size = sizeof(info);
    memcpy(&twin, &info, sizeof(info));
    CHECK_I64(unsalt_horizon_info(s.u, "t", LANES, &info), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    CHECK_I64(unsalt_horizon_info(s.u, "t", -1, &info), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    CHECK_I64(unsalt_horizon_info(s.u, "u", 0, &info), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    CHECK(memcmp(&twin, &info, sizeof(info)) == 0);
    /* An application that was built against a shorter struct. */
    info.size = offsetof(unsalt_horizon_info_t, read);
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, &info), 0);
    CHECK_U64(info.size, offsetof(unsalt_horizon_info_t, read));
    CHECK_I64(info.stand, UNSALT_STAND_NOTHING);
    CHECK(memcmp((char *)&info + info.size, (char *)&twin + info.size, sizeof(info) - info.size) == 0);
    CHECK(!unsalt_assign(s.u, NULL));
    for (uint64_t until = now_ms() + 15000; !unsalt_horizon_info(s.u, "t", 0, &info) && now_ms() < until;) {
        poll_once(&s);
    }
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, &info), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    CHECK(!unsalt_consumer_close(s.u));
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, &info), RD_KAFKA_RESP_ERR__STATE);
    end(&s);
}

static void refused(int result, rd_kafka_resp_err_t err) {
    CHECK_I64(result, -1);
    CHECK_STR(rd_kafka_err2name(unsalt_last_error()), rd_kafka_err2name(err));
}

TEST(explain, errors_of_an_explanation) {
    char text[2000], longest[300], little[20];
    struct scene s;
    begin(&s, "gap.timeout.ms=-1");
    memset(longest, 'x', sizeof(longest));
    refused(unsalt_explain(s.u, NULL, 3, text, sizeof(text)), RD_KAFKA_RESP_ERR__INVALID_ARG);
    refused(unsalt_explain(s.u, "m", 0, text, sizeof(text)), RD_KAFKA_RESP_ERR__INVALID_ARG);
    refused(unsalt_explain(s.u, longest, 257, text, sizeof(text)), RD_KAFKA_RESP_ERR__INVALID_ARG);
    refused(unsalt_explain(s.u, "m", 1, NULL, 1), RD_KAFKA_RESP_ERR__INVALID_ARG);
    /* Nobody knows it. */
    text[0] = 'x';
    CHECK_I64(unsalt_explain(s.u, longest, 256, text, sizeof(text)), 0);
    CHECK_STR(text, "");
    CHECK_I64(unsalt_explain(s.u, "m", 1, NULL, 0), 0);
    /* As snprintf(3): the length is that of the whole text, what doesn't fit is left out. */
    post(&s, 2);
    poll_until_held(&s, 1);
    int len = unsalt_explain(s.u, "m-17", 4, text, sizeof(text));
    CHECK_THAT(len > 50 && (size_t)len == strlen(text), "%d: %s", len, text);
    memset(little, 0x5a, sizeof(little));
    CHECK(unsalt_explain(s.u, "m-17", 4, little, sizeof(little) - 1) > (int)sizeof(little));
    CHECK_U64(strlen(little), sizeof(little) - 2);
    CHECK(strncmp(little, text, sizeof(little) - 2) == 0);
    CHECK_I64(little[sizeof(little) - 1], 0x5a);
    CHECK(unsalt_explain(s.u, "m-17", 4, NULL, 0) > 50);
    CHECK(!unsalt_consumer_close(s.u));
    refused(unsalt_explain(s.u, "m-17", 4, text, sizeof(text)), RD_KAFKA_RESP_ERR__STATE);
    end(&s);
}

/* ---- threads */

struct waiting {
    unsalt_t *u;
    atomic_bool over;
};

/* It may meet the other thread inside, and is refused then. */
static void *wait_inside(void *arg) {
    struct waiting *waiting = arg;
    while (!waiting->over) {
        rd_kafka_message_t *message = unsalt_consumer_poll(waiting->u, 5000);
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    return NULL;
}

TEST(explain, a_second_thread_gets_an_error) {
    struct scene s;
    pthread_t thread;
    unsalt_horizon_info_t info = {.size = sizeof(info)};
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    char text[200];
    begin(&s, "");
    struct waiting waiting = {.u = s.u};
    CHECK(pthread_create(&thread, NULL, wait_inside, &waiting) == 0);
    /* It may not be inside yet. */
    for (uint64_t until = now_ms() + 8000; !err && now_ms() < until; sleep_ms(1)) {
        err = unsalt_horizon_info(s.u, "t", 0, &info);
    }
    CHECK_STR(rd_kafka_err2name(err), "_CONFLICT");
    refused(unsalt_explain(s.u, "m-17", 4, text, sizeof(text)), RD_KAFKA_RESP_ERR__CONFLICT);
    waiting.over = true;
    unsalt_wakeup(s.u);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_I64(unsalt_horizon_info(s.u, "t", 0, &info), 0);
    CHECK_I64(unsalt_explain(s.u, "m-17", 4, text, sizeof(text)), 0);
    end(&s);
}

struct inside {
    unsalt_t *u;
    rd_kafka_resp_err_t horizon, last;
    int explained;
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct inside *inside = opaque;
    unsalt_horizon_info_t info = {.size = sizeof(info)};
    char text[200];
    if (event->type == UNSALT_EVENT_DUPLICATE) {
        inside->horizon = unsalt_horizon_info(inside->u, "t", 0, &info);
        inside->explained = unsalt_explain(inside->u, "m-17", 4, text, sizeof(text));
        inside->last = unsalt_last_error();
    }
}

TEST(explain, a_callback_gets_an_error) {
    struct scene s = {0};
    struct inside inside = {0};
    mock_open(&s.mock, 1);
    mock_topic(&s.mock, "t", LANES);
    unsalt_conf_t *conf = mock_conf("", NULL);
    unsalt_conf_set_event_cb(conf, on_event, &inside);
    inside.u = s.u = mock_consumer_of(mock_rd_conf(&s.mock, "g"), conf);
    CHECK(!mock_assign(s.u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    post(&s, 1);
    post(&s, 1);
    for (uint64_t until = now_ms() + 15000; !inside.explained && now_ms() < until;) {
        poll_once(&s);
    }
    CHECK_I64(inside.horizon, RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(inside.explained, -1);
    CHECK_I64(inside.last, RD_KAFKA_RESP_ERR__CONFLICT);
    end(&s);
}

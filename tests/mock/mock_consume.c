/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll, batch and callback hand out every session in order, whatever way its records took. */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define LANES 4
#define RECORDS 400

/* Whole lanes one after the other, the last lane first: the worst order that fetches can have. */
static void send_skewed(struct mock *mock, const char *topic, const char *session) {
    for (int lane = LANES - 1; lane >= 0; lane--) {
        for (uint64_t seq = 1; seq <= RECORDS; seq++) {
            if (seq % LANES == (uint64_t)lane) {
                mock_send(mock, topic, lane, session, seq, LANES);
            }
        }
        mock_flush(mock);
    }
}

static void check_ledger(const unsalt_t *u, uint64_t received, uint64_t released) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    CHECK(stats.conserved);
    CHECK_U64(stats.received, received);
    CHECK_U64(stats.state[UNSALT_STATE_RELEASED], released);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stats.state[UNSALT_STATE_READY], 0);
}

static unsalt_t *reader(struct mock *mock, const char *settings) {
    mock_open(mock, 1);
    mock_topic(mock, "t", LANES);
    unsalt_t *u = mock_consumer(mock, "g", settings, NULL);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    return u;
}

TEST(consume, poll_in_order) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "");
    send_skewed(&mock, "t", "hot");
    CHECK(take(u, &takings, RECORDS, 15000));
    CHECK_U64(check_order(&takings, 1), RECORDS);
    CHECK_STR(takings.got[17].session, "hot");
    CHECK_U64(takings.got[17].epoch, 1);
    CHECK_I64(takings.got[17].lane, 18 % LANES);
    CHECK_I64(takings.got[17].partition, 18 % LANES);
    check_ledger(u, RECORDS, RECORDS);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, batch_in_order) {
    struct mock mock;
    struct takings takings = {0};
    rd_kafka_message_t *messages[64];
    unsalt_t *u = reader(&mock, "read.batch=50");
    send_skewed(&mock, "t", "hot");
    uint64_t until = now_ms() + 15000;
    while (takings.count < RECORDS && now_ms() < until) {
        ssize_t n = unsalt_consume_batch(u, 100, messages, 64);
        CHECK(n >= 0 && n <= 64);
        for (ssize_t i = 0; i < n; i++) {
            take_message(u, &takings, messages[i]);
        }
        for (ssize_t i = 0; i < n; i++) {
            rd_kafka_message_destroy(messages[i]);
        }
    }
    CHECK_U64(check_order(&takings, 1), RECORDS);
    check_ledger(u, RECORDS, RECORDS);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

struct callback_case {
    unsalt_t *u;
    struct takings takings;
};

static void on_message(rd_kafka_message_t *message, void *opaque) {
    struct callback_case *c = opaque;
    take_message(c->u, &c->takings, message);
}

TEST(consume, callback_in_order) {
    struct mock mock;
    struct callback_case c = {0};
    c.u = reader(&mock, "");
    send_skewed(&mock, "t", "hot");
    uint64_t until = now_ms() + 15000;
    while (c.takings.count < RECORDS && now_ms() < until) {
        size_t before = c.takings.count;
        int n = unsalt_consume_callback(c.u, 100, on_message, &c);
        CHECK_I64(n, c.takings.count - before);
    }
    CHECK_U64(check_order(&c.takings, 1), RECORDS);
    check_ledger(c.u, RECORDS, RECORDS);
    takings_free(&c.takings);
    mock_done(c.u);
    mock_close(&mock);
}

TEST(consume, cold_sessions_beside_a_hot_one) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "");
    send_skewed(&mock, "t", "hot");
    for (uint64_t seq = 1; seq <= 5; seq++) {
        for (int i = 0; i < 50; i++) {
            char session[24];
            snprintf(session, sizeof(session), "cold-%d", i);
            mock_send(&mock, "t", i % LANES, session, seq, 1);
        }
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, RECORDS + 250, 15000));
    CHECK_U64(check_order(&takings, 1), RECORDS + 250);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, layout_topics) {
    static const char *const topics[] = {"t", "t.lane-1", "t.lane-2"};
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(6);
    for (int lane = 2; lane >= 0; lane--) {
        mock_topic(&mock, topics[lane], 2);
        rd_kafka_topic_partition_list_add(list, topics[lane], 0);
        rd_kafka_topic_partition_list_add(list, topics[lane], 1);
        for (uint64_t seq = 1; seq <= 90; seq++) {
            if (seq % 3 == (uint64_t)lane) {
                mock_send(&mock, topics[lane], 0, "a", seq, 3);
                mock_send(&mock, topics[lane], 1, "b", seq, 3);
            }
        }
        mock_flush(&mock);
    }
    unsalt_t *u = mock_consumer(&mock, "g", "layout=topics partitions=2 lanes=3", NULL);
    CHECK(!unsalt_assign(u, list));
    CHECK(take(u, &takings, 180, 15000));
    CHECK_U64(check_order(&takings, 1), 180);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, plain_header) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "seq.source=header lanes=4");
    for (int lane = LANES - 1; lane >= 0; lane--) {
        for (int seq = 1; seq <= 40; seq++) {
            char text[16], key[16];
            snprintf(text, sizeof(text), "%d", seq);
            snprintf(key, sizeof(key), "m#%d", lane);
            if (seq % LANES == lane) {
                mock_write(&mock, "t", lane, key, "x", 1, "seq", text, strlen(text));
            }
        }
        mock_flush(&mock);
    }
    CHECK(take(u, &takings, 40, 15000));
    CHECK_U64(check_order(&takings, 1), 40);
    CHECK_STR(takings.got[0].session, "m");
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* Ids with escapes stand in a buffer of the extractor, so a push is cut there; message_info must still know each. */
TEST(consume, json_with_escapes_and_the_largest_number) {
    static const uint64_t first = UINT64_MAX - 4;
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "seq.source=json seq.first=18446744073709551611");
    for (unsigned i = 0; i < 8; i++) {
        char payload[128];
        snprintf(payload, sizeof(payload), "{\"sessionId\": \"a\\u002d%c\", \"globalSeq\": %" PRIu64 "}", "xy"[i % 2],
                 first + i / 2);
        mock_write(&mock, "t", 0, "key", payload, strlen(payload), NULL, NULL, 0);
    }
    mock_flush(&mock);
    rd_kafka_message_t *messages[8];
    size_t n = 0;
    for (uint64_t until = now_ms() + 10000; n < 8 && now_ms() < until;) {
        ssize_t more = unsalt_consume_batch(u, 100, messages, 8);
        for (ssize_t i = 0; i < more; i++) {
            take_message(u, &takings, messages[i]);
        }
        for (ssize_t i = 0; i < more; i++) {
            rd_kafka_message_destroy(messages[i]);
            n++;
        }
    }
    CHECK_U64(n, 8);
    CHECK_U64(check_order(&takings, first), 8);
    CHECK_STR(takings.got[0].session, "a-x");
    CHECK_STR(takings.got[1].session, "a-y");
    CHECK_U64(takings.got[7].seq, UINT64_MAX - 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, without_a_sequence_in_partition_order) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "");
    for (int i = 0; i < 20; i++) {
        mock_write(&mock, "t", 1, i % 2 ? "key" : NULL, "x", i % 3 ? 1 : 0, NULL, NULL, 0);
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, 20, 15000));
    for (int i = 0; i < 20; i++) {
        CHECK_I64(takings.got[i].offset, i);
        CHECK_I64(takings.got[i].state, UNSALT_STATE_UNSEQUENCED);
        CHECK_U64(takings.got[i].seq, UNSALT_NO_SEQ);
    }
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, duplicates_are_dropped) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    unsalt_t *u = reader(&mock, "");
    for (uint64_t seq = 1; seq <= 60; seq++) {
        for (int copy = 0; copy < 1 + (seq % 3 == 0); copy++) {
            mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        }
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, 60, 15000));
    take_nothing(u, 300);
    CHECK_U64(check_order(&takings, 1), 60);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.received, 80);
    CHECK_U64(stats.state[UNSALT_STATE_DUPLICATE], 20);
    CHECK(stats.conserved);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* A record never comes, and its partitions are idle afterwards: leaders are asked, then the gap is given up. */
TEST(consume, gap_by_horizon) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    unsalt_stats_t stats;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", LANES);
    unsalt_t *u = mock_consumer(&mock, "g", "gap.timeout.ms=100", &heard);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    for (uint64_t seq = 1; seq <= 40; seq++) {
        if (seq != 22) {
            mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        }
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, 39, 15000));
    CHECK_U64(takings.got[20].seq, 21);
    CHECK_I64(takings.got[20].after_gap, 0);
    CHECK_U64(takings.got[21].seq, 23);
    CHECK_I64(takings.got[21].after_gap, 1);
    CHECK(takings.got[21].waited_ns >= 100000000);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), 1);
    CHECK_I64(heard.reason[UNSALT_EVENT_GAP], UNSALT_GAP_TIMEOUT);
    CHECK_U64(heard.first[UNSALT_EVENT_GAP], 22);
    CHECK_U64(heard.last[UNSALT_EVENT_GAP], 22);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_GAP], "gap: session \"s\" 22 given up (timeout) after "), "%s",
               heard.text[UNSALT_EVENT_GAP]);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK(stats.questions > 0 && stats.answers > 0);
    CHECK_U64(stats.gaps[UNSALT_GAP_TIMEOUT], 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, end_of_partition_only_for_who_asked) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    unsalt_t *hidden = mock_consumer(&mock, "g", "", NULL);
    CHECK(!mock_assign(hidden, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(hidden, &takings, 10, 15000));
    take_nothing(hidden, 500);
    takings_free(&takings);
    mock_done(hidden);

    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.partition.eof", "true");
    unsalt_t *shown = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(shown, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(shown, &takings, 11, 15000));
    CHECK_I64(takings.got[10].err, RD_KAFKA_RESP_ERR__PARTITION_EOF);
    CHECK_I64(takings.got[10].offset, 10);
    CHECK_U64(check_order(&takings, 1), 10);
    takings_free(&takings);
    mock_done(shown);
    mock_close(&mock);
}

/* Ten records stand in the topic, one comes later. reset: auto.offset.reset of librdkafka's configuration, or NULL. */
static void check_start(const char *reset, const char *settings, uint64_t first) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    if (reset) {
        mock_rd_set(conf, "auto.offset.reset", reset);
    }
    unsalt_t *u = mock_consumer_of(conf, mock_conf(settings, NULL));
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    mock_send(&mock, "t", 0, "s", 11, 1);
    mock_flush(&mock);
    CHECK(take(u, &takings, 12 - first, 15000));
    CHECK_U64(takings.got[0].seq, first);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, starts_at_the_end_if_the_application_says_latest) {
    check_start("latest", "", 11);
}

TEST(consume, starts_where_offset_reset_says) {
    check_start("latest", "offset.reset=earliest", 1);
    check_start("earliest", "offset.reset=latest", 11);
    check_start(NULL, "offset.reset=latest", 11);
}

TEST(consume, message_info_of_the_last_call_only) {
    struct mock mock;
    unsalt_message_info_t info = {.size = sizeof(info)};
    unsalt_t *u = reader(&mock, "");
    for (uint64_t seq = 1; seq <= 2; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_message_t *first = unsalt_consumer_poll(u, 10000);
    CHECK(first);
    CHECK_I64(unsalt_message_info(u, first, &info), 0);
    CHECK_U64(info.size, sizeof(info));
    /* An older application has a shorter struct: nothing behind it is written. */
    memset(&info, 0xee, sizeof(info));
    info.size = offsetof(unsalt_message_info_t, seq);
    CHECK_I64(unsalt_message_info(u, first, &info), 0);
    CHECK_U64(info.seq, UINT64_C(0xeeeeeeeeeeeeeeee));
    CHECK_U64(info.session_len, 1);
    info.size = 0;
    CHECK_I64(unsalt_message_info(u, first, &info), -1);
    rd_kafka_message_t *second = unsalt_consumer_poll(u, 10000);
    CHECK(second);
    info.size = sizeof(info);
    CHECK_I64(unsalt_message_info(u, first, &info), -1);
    CHECK_I64(unsalt_message_info(u, second, &info), 0);
    CHECK_U64(info.seq, 2);
    CHECK_I64(unsalt_message_info(u, NULL, &info), -1);
    rd_kafka_message_destroy(first);
    rd_kafka_message_destroy(second);
    mock_done(u);
    mock_close(&mock);
}

TEST(consume, waits_as_long_as_it_was_told) {
    struct mock mock;
    unsalt_t *u = reader(&mock, "");
    uint64_t least_0 = UINT64_MAX, least_300 = UINT64_MAX;
    /* The best of several: the machine may have other things to do. */
    for (int i = 0; i < 5; i++) {
        uint64_t began = now_ms();
        CHECK(!unsalt_consumer_poll(u, 0));
        uint64_t took_0 = now_ms() - began;
        began = now_ms();
        CHECK(!unsalt_consumer_poll(u, 300));
        uint64_t took_300 = now_ms() - began;
        CHECK_THAT(took_300 >= 299, "came back after %" PRIu64 " ms", took_300);
        least_0 = took_0 < least_0 ? took_0 : least_0;
        least_300 = took_300 < least_300 ? took_300 : least_300;
    }
    CHECK_THAT(least_0 < 250, "%" PRIu64 " ms", least_0);
    CHECK_THAT(least_300 < 900, "%" PRIu64 " ms", least_300);
    unsalt_wakeup(u);
    uint64_t began = now_ms();
    CHECK(!unsalt_consumer_poll(u, 20000));
    CHECK(now_ms() - began < 12000);
    mock_done(u);
    mock_close(&mock);
}

/* What is ready is handed out even though a session far ahead fills its budget; reading goes to what is owed. */
TEST(consume, a_full_budget_gives_way_and_loses_nothing) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    unsalt_t *u = reader(&mock, "budget.records=50 read.batch=20 gap.timeout.ms=-1");
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        if (seq % LANES != 1) {
            mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        }
    }
    mock_flush(&mock);
    CHECK(!take(u, &takings, RECORDS, 1000));
    for (uint64_t seq = 1; seq <= RECORDS; seq += LANES) {
        mock_send(&mock, "t", 1, "s", seq, LANES);
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, RECORDS, 15000));
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.received, RECORDS);
    CHECK(stats.conserved);
    CHECK(stats.gaps[UNSALT_GAP_OVERFLOW] > 0);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* budget.policy=block: the partition that is ahead waits with its records in hand; nothing is given up. */
TEST(consume, a_full_budget_blocks) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    unsalt_t *u = reader(&mock, "budget.records=50 read.batch=20 gap.timeout.ms=-1 budget.policy=block");
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        if (seq % LANES != 1) {
            mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        }
    }
    mock_flush(&mock);
    CHECK(!take(u, &takings, 1, 1000));
    for (uint64_t seq = 1; seq <= RECORDS; seq += LANES) {
        mock_send(&mock, "t", 1, "s", seq, LANES);
    }
    mock_flush(&mock);
    CHECK(take(u, &takings, RECORDS, 15000));
    CHECK_U64(check_order(&takings, 1), RECORDS);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.gaps[UNSALT_GAP_OVERFLOW], 0);
    check_ledger(u, RECORDS, RECORDS);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* The library frees the parsed headers of a record; an application that wants them finds them all the same. */
TEST(consume, the_application_reads_headers) {
    struct mock mock;
    const void *value = NULL;
    size_t size = 0;
    unsalt_header_t header;
    unsalt_message_info_t info = {.size = sizeof(info)};
    rd_kafka_headers_t *headers = NULL;
    unsalt_t *u = reader(&mock, "");
    mock_send(&mock, "t", 1, "s", 1, LANES);
    mock_flush(&mock);
    rd_kafka_message_t *message = unsalt_consumer_poll(u, 10000);
    CHECK(message);
    for (int i = 0; i < 2; i++) {
        CHECK(!rd_kafka_message_headers(message, &headers));
        CHECK(!rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size));
        CHECK_I64(unsalt_header_read(value, size, &header), UNSALT_HEADER_OK);
        CHECK_U64(header.seq, 1);
    }
    CHECK_I64(unsalt_message_info(u, message, &info), 0);
    CHECK_U64(info.epoch, 1);
    /* What the application got before it asked is still its own. */
    CHECK(!rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size));
    CHECK_I64(unsalt_header_read(value, size, &header), UNSALT_HEADER_OK);
    rd_kafka_message_destroy(message);
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Full budgets as an application sees them: events, dead letters, errors, partitions that it has paused itself. */
#include <pthread.h>
#include <stdio.h>
#include <support/check.h>
#include <support/mockcluster.h>

static unsalt_stats_t stats_of(const unsalt_t *u) {
    unsalt_stats_t stats;
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK(stats.conserved);
    return stats;
}

/* Numbers first..last of the session "hole" in one partition. */
static void send_hole(struct mock *mock, uint64_t first, uint64_t last) {
    for (uint64_t seq = first; seq <= last; seq++)
        mock_send(mock, "t", 0, "hole", seq, 1);
    mock_flush(mock);
}

static void open_topic(struct mock *mock, int partitions) {
    mock_open(mock, 1);
    mock_topic(mock, "t", partitions);
}

static unsalt_t *reader(const struct mock *mock, int partitions, const char *settings, struct heard *heard) {
    heard_init(heard);
    unsalt_t *u = mock_consumer(mock, "g", settings, heard);
    CHECK(!mock_assign(u, "t", partitions, RD_KAFKA_OFFSET_BEGINNING));
    return u;
}

TEST(budget, the_event_names_the_budget_and_what_came_of_it) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    open_topic(&mock, 1);
    send_hole(&mock, 2, 30);
    unsalt_t *u = reader(&mock, 1, "budget.records=10 gap.timeout.ms=-1", &heard);
    CHECK(take(u, &takings, 29, 15000));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_BUDGET), 1);
    CHECK_U64(heard.first[UNSALT_EVENT_BUDGET], UNSALT_BUDGET_RECORDS);
    CHECK_U64(heard.last[UNSALT_EVENT_BUDGET], UNSALT_OUTCOME_GAVE_WAY);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_BUDGET], "records is full with 10 records held: gave_way"), "%s",
               heard.text[UNSALT_EVENT_BUDGET]);
    CHECK_U64(stats_of(u).budget_outcome[UNSALT_BUDGET_RECORDS][UNSALT_OUTCOME_GAVE_WAY], 1);
    CHECK_U64(stats_of(u).gaps[UNSALT_GAP_OVERFLOW], 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* ---- dead letters */

struct letters {
    int64_t offsets[64];
    size_t count;
    bool other_reason;
};

static void on_dead_letter(void *opaque, const rd_kafka_message_t *message, const char *reason) {
    struct letters *letters = opaque;
    letters->other_reason |= strcmp(reason, "budget") != 0;
    if (letters->count < 64)
        letters->offsets[letters->count++] = message->offset;
}

TEST(budget, what_finds_no_room_goes_to_the_dead_letter_callback) {
    struct mock mock;
    struct takings takings = {0};
    struct letters letters = {.count = 0};
    open_topic(&mock, 1);
    send_hole(&mock, 2, 30);
    mock_send(&mock, "t", 0, "hole", 1, 1);
    mock_send(&mock, "t", 0, "hole", 31, 1);
    mock_flush(&mock);
    unsalt_conf_t *conf = mock_conf("budget.records=10 budget.policy=dead-letter gap.timeout.ms=-1", NULL);
    unsalt_conf_set_dead_letter_cb(conf, on_dead_letter, &letters);
    unsalt_t *u = mock_consumer_of(mock_rd_conf(&mock, "g"), conf);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(u, &takings, 12, 15000)); /* 1, and 2..11 that were held, and 31 */
    CHECK_U64(takings.got[10].seq, 11);
    CHECK_U64(takings.got[11].seq, 31);
    CHECK(takings.got[11].after_gap);
    CHECK_U64(letters.count, 19);
    CHECK(!letters.other_reason);
    for (size_t i = 0; i < letters.count; i++)
        CHECK_I64(letters.offsets[i], 10 + i);
    CHECK_U64(stats_of(u).state[UNSALT_STATE_DEAD_LETTERED], 19);
    CHECK_U64(stats_of(u).budget_outcome[UNSALT_BUDGET_RECORDS][UNSALT_OUTCOME_DEAD_LETTERED], 19);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(budget, dead_letters_need_a_callback) {
    struct mock mock;
    char errstr[256] = "";
    open_topic(&mock, 1);
    rd_kafka_conf_t *rd_conf = mock_rd_conf(&mock, "g");
    unsalt_conf_t *conf = mock_conf("budget.policy=dead-letter", NULL);
    CHECK(!unsalt_new(rd_conf, conf, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "unsalt_conf_set_dead_letter_cb"), "%s", errstr);
    rd_kafka_conf_destroy(rd_conf);
    unsalt_conf_destroy(conf);
    mock_close(&mock);
}

/* ---- failing */

static rd_kafka_message_t *next_message(unsalt_t *u, int timeout_ms) {
    rd_kafka_message_t *message = NULL;
    for (uint64_t until = now_ms() + (uint64_t)timeout_ms; !message && now_ms() < until;)
        message = unsalt_consumer_poll(u, 50);
    return message;
}

/* The error message is like one of librdkafka's for everything that one may do with it, even after the consumer. */
static void check_error(const unsalt_t *u, rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof(info)};
    rd_kafka_headers_t *headers;
    rd_kafka_timestamp_type_t type;
    CHECK(message);
    CHECK_I64(message->err, RD_KAFKA_RESP_ERR__QUEUE_FULL);
    CHECK_THAT(strstr(rd_kafka_message_errstr(message), "unsalt_flush_gaps"), "%s", rd_kafka_message_errstr(message));
    CHECK_I64(rd_kafka_message_headers(message, &headers), RD_KAFKA_RESP_ERR__NOENT);
    rd_kafka_message_timestamp(message, &type);
    CHECK_I64(unsalt_message_info(u, message, &info), -1);
}

TEST(budget, fail_tells_once_and_reads_no_further) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    open_topic(&mock, 2);
    send_hole(&mock, 2, 30);
    unsalt_t *u = reader(&mock, 2, "budget.records=10 budget.policy=fail gap.timeout.ms=-1", &heard);
    rd_kafka_message_t *error = next_message(u, 15000);
    check_error(u, error);
    take_nothing(u, 300);
    mock_send(&mock, "t", 1, "other", 1, 1); /* nothing at all is read */
    mock_flush(&mock);
    take_nothing(u, 1500);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_BUDGET), 1);
    CHECK_U64(stats_of(u).budget_outcome[UNSALT_BUDGET_RECORDS][UNSALT_OUTCOME_FAILED], 1);
    CHECK(!unsalt_flush_gaps(u));
    CHECK(take(u, &takings, 30, 15000));
    CHECK_U64(stats_of(u).gaps[UNSALT_GAP_FLUSH], 1);
    CHECK_U64(stats_of(u).gaps[UNSALT_GAP_OVERFLOW], 0);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_LATE), 0);
    for (size_t i = 0, seq = 2; i < takings.count; i++)
        if (strcmp(takings.got[i].session, "hole") == 0)
            CHECK_U64(takings.got[i].seq, seq++);
    takings_free(&takings);
    mock_done(u);
    rd_kafka_message_destroy(error);
    mock_close(&mock);
}

/* A second time is told again; and a consumer that failed can be closed, and its records are read by the next. */
TEST(budget, fail_loses_nothing) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    open_topic(&mock, 1);
    send_hole(&mock, 2, 30);
    unsalt_t *u = reader(&mock, 1, "budget.records=10 budget.policy=fail gap.timeout.ms=-1", &heard);
    rd_kafka_message_t *error = next_message(u, 15000);
    check_error(u, error);
    rd_kafka_message_destroy(error);
    CHECK(!unsalt_flush_gaps(u));
    CHECK(take(u, &takings, 29, 15000));
    send_hole(&mock, 40, 60);
    error = next_message(u, 15000);
    check_error(u, error);
    rd_kafka_message_destroy(error);
    CHECK(!unsalt_commit(u, 0));
    mock_done(u);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 29);
    u = mock_consumer(&mock, "g", "gap.timeout.ms=50", NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    takings.count = 0;
    CHECK(take(u, &takings, 21, 15000));
    CHECK_U64(takings.got[0].seq, 40);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* ---- back-pressure */

/*
 * What the application has paused stays paused while back-pressure comes and goes: reactor/reactor-kafka#286 resumed
 * everything as soon as there was room again. Here back-pressure pauses nothing, so it has nothing to resume.
 */
TEST(budget, what_the_application_paused_stays_paused) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    open_topic(&mock, 3);
    for (uint64_t seq = 1; seq <= 900; seq++)
        mock_send(&mock, "t", (int32_t)(seq % 2), "s", seq, 2);
    mock_flush(&mock);
    unsalt_t *u = reader(&mock, 3, "budget.records=100 read.batch=10 gap.timeout.ms=-1", &heard);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", 2);
    CHECK(!unsalt_pause(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    for (uint64_t seq = 1; seq <= 20; seq++)
        mock_send(&mock, "t", 2, "paused", seq, 1);
    mock_flush(&mock);
    CHECK(take(u, &takings, 900, 20000));
    for (uint64_t seq = 902; seq <= 1100; seq += 2) /* one lane is ahead: above half a budget, and then it comes down */
        mock_send(&mock, "t", 0, "s", seq, 2);
    mock_flush(&mock);
    take_nothing(u, 300);
    CHECK(stats_of(u).state[UNSALT_STATE_HELD] > 50);
    for (uint64_t seq = 901; seq <= 1100; seq += 2)
        mock_send(&mock, "t", 1, "s", seq, 2);
    mock_flush(&mock);
    CHECK(take(u, &takings, 1100, 20000));
    CHECK_U64(check_order(&takings, 1), 1100);
    take_nothing(u, 300);
    CHECK_U64(stats_of(u).budget_full[UNSALT_BUDGET_RECORDS], 0);
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", 2);
    CHECK(!unsalt_resume(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    CHECK(take(u, &takings, 1120, 20000));
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* ---- the window */

struct later_ack {
    unsalt_t *u;
    unsalt_token_t token;
    uint64_t at;
};

static void *ack_later(void *opaque) {
    struct later_ack *later = opaque;
    sleep_ms(200);
    later->at = now_ms();
    unsalt_ack(later->u, later->token);
    return NULL;
}

/* The first record is not acknowledged: reading stops at the window, and goes on at once when it is. */
TEST(budget, a_full_window_waits_for_the_acknowledgement) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    pthread_t thread;
    open_topic(&mock, 1);
    send_hole(&mock, 1, 200);
    unsalt_t *u = reader(&mock, 1, "ack=manual budget.window=50 gap.timeout.ms=-1", &heard);
    CHECK(take(u, &takings, 50, 15000));
    take_nothing(u, 300);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_BUDGET), 1);
    CHECK_U64(heard.first[UNSALT_EVENT_BUDGET], UNSALT_BUDGET_WINDOW);
    CHECK_U64(heard.last[UNSALT_EVENT_BUDGET], UNSALT_OUTCOME_BLOCKED);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_BUDGET], "t [0]"), "%s", heard.text[UNSALT_EVENT_BUDGET]);
    for (size_t i = 1; i < 50; i++)
        CHECK_I64(unsalt_ack(u, takings.got[i].token), RD_KAFKA_RESP_ERR_NO_ERROR);
    take_nothing(u, 100);
    struct later_ack later = {u, takings.got[0].token, 0};
    CHECK(pthread_create(&thread, NULL, ack_later, &later) == 0);
    rd_kafka_message_t *message = unsalt_consumer_poll(u, 10000);
    uint64_t now = now_ms();
    pthread_join(thread, NULL);
    CHECK(message && !message->err);
    CHECK_THAT(now - later.at < 500, "%" PRIu64 " ms after the acknowledgement", now - later.at);
    take_message(u, &takings, message);
    rd_kafka_message_destroy(message);
    CHECK_I64(unsalt_ack(u, takings.got[50].token), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (size_t i = 51; i < 200; i++) {
        CHECK(take(u, &takings, i + 1, 15000));
        CHECK_I64(unsalt_ack(u, takings.got[i].token), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    CHECK_U64(check_order(&takings, 1), 200);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

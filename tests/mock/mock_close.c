/* SPDX-License-Identifier: BSD-2-Clause */
/* Stop and restart. rd_kafka_destroy() waits for ever for a message (confluentinc/librdkafka#1117, #731). */
#include <pthread.h>
#include <support/check.h>
#include <support/mockcluster.h>

static void send_some(struct mock *mock, int32_t partition, const char *session, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, "t", partition, session, seq, 1);
    }
    mock_flush(mock);
}

static unsalt_t *committing_reader(struct mock *mock, const char *settings, struct heard *heard) {
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    unsalt_t *u = mock_consumer_of(conf, mock_conf(settings, heard));
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
    return u;
}

TEST(close, goes_on_where_it_was) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "", NULL);
    send_some(&mock, 0, "s", 1, 30);
    CHECK(take(u, &takings, 20, 15000));
    CHECK(!unsalt_consumer_close(u));
    CHECK(!unsalt_consumer_close(u));
    CHECK(!unsalt_consumer_poll(u, 0));
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(unsalt_commit(u, 0), RD_KAFKA_RESP_ERR__STATE);
    mock_done(u);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 20);

    u = committing_reader(&mock, "gap.timeout.ms=100", NULL);
    CHECK(take(u, &takings, 30, 15000));
    CHECK_U64(check_order(&takings, 1), 30);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* A lane that stayed empty until the restart was never read: without a commit of its start it would be skipped. */
TEST(close, a_lane_that_was_empty_is_read_after_the_restart) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.offset.reset", "latest");
    unsalt_t *u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
    send_some(&mock, 0, "a", 1, 10);
    CHECK(take(u, &takings, 10, 15000));
    mock_done(u);
    send_some(&mock, 1, "b", 1, 50);
    conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "auto.offset.reset", "latest");
    u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, 60, 15000));
    CHECK_U64(check_order(&takings, 1), 60);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(close, names_what_is_outstanding_and_counts_what_is_held) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    unsalt_stats_t stats;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "ack=manual revoke.timeout.ms=0 gap.timeout.ms=-1", &heard);
    send_some(&mock, 0, "s", 1, 5);
    send_some(&mock, 1, "r", 1, 1);
    send_some(&mock, 1, "r", 3, 9); /* held for ever: 2 is missing */
    CHECK(take(u, &takings, 6, 15000));
    for (size_t i = 0; i < 6; i++) {
        if (takings.got[i].partition == 0 && takings.got[i].offset != 3) {
            CHECK(!unsalt_ack(u, takings.got[i].token));
        }
    }
    do {
        take_nothing(u, 20);
        unsalt_stats(u, &stats, sizeof(stats));
    } while (stats.state[UNSALT_STATE_HELD] < 7);
    CHECK(!unsalt_consumer_close(u));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_OUTSTANDING), 2);
    CHECK(strstr(heard.text[UNSALT_EVENT_OUTSTANDING], "outstanding: handed out and not acknowledged"));
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], 7);
    CHECK_U64(stats.received, 13);
    CHECK(stats.conserved);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 3);
    CHECK_I64(mock_committed(&mock, "g", "t", 1), 0);
    CHECK_I64(unsalt_ack(u, takings.got[0].token), RD_KAFKA_RESP_ERR__STATE);
    mock_done(u);
    takings_free(&takings);
    mock_close(&mock);
}

static void *ack_soon(void *opaque) {
    struct {
        unsalt_t *u;
        unsalt_token_t token;
    } *job = opaque;
    sleep_ms(300);
    unsalt_ack(job->u, job->token);
    return NULL;
}

TEST(close, waits_for_acknowledgements_of_other_threads) {
    struct mock mock;
    struct takings takings = {0};
    pthread_t thread;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "ack=manual revoke.timeout.ms=20000", NULL);
    send_some(&mock, 0, "s", 1, 1);
    CHECK(take(u, &takings, 1, 15000));
    struct {
        unsalt_t *u;
        unsalt_token_t token;
    } job = {u, takings.got[0].token};
    pthread_create(&thread, NULL, ack_soon, &job);
    uint64_t began = now_ms();
    CHECK(!unsalt_consumer_close(u));
    CHECK_THAT(now_ms() - began < 10000, "close took %" PRIu64 " ms", now_ms() - began);
    pthread_join(thread, NULL);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 1);
    mock_done(u);
    takings_free(&takings);
    mock_close(&mock);
}

TEST(close, a_message_survives_it) {
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "", NULL);
    send_some(&mock, 0, "s", 1, 3);
    rd_kafka_message_t *message = unsalt_consumer_poll(u, 15000);
    CHECK(message);
    CHECK(!unsalt_consumer_close(u));
    CHECK_U64(message->len, 7);
    CHECK(memcmp(message->payload, "payload", 7) == 0);
    rd_kafka_message_destroy(message);
    mock_done(u);
    mock_close(&mock);
}

struct hostage {
    rd_kafka_message_t *message;
    struct heard *heard;
};

static void *free_when_told(void *opaque) {
    struct hostage *hostage = opaque;
    for (uint64_t until = now_ms() + 20000; now_ms() < until;) {
        if (heard_count(hostage->heard, UNSALT_EVENT_DESTROY_BLOCKED)) {
            break;
        }
        sleep_ms(20);
    }
    rd_kafka_message_destroy(hostage->message);
    return NULL;
}

TEST(close, destroy_says_what_it_waits_for) {
    struct mock mock;
    struct heard heard;
    struct hostage hostage = {.heard = &heard};
    pthread_t thread;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "ack=manual revoke.timeout.ms=0", &heard);
    send_some(&mock, 0, "s", 1, 1);
    hostage.message = unsalt_consumer_poll(u, 15000);
    CHECK(hostage.message);
    pthread_create(&thread, NULL, free_when_told, &hostage);
    unsalt_destroy(u);
    pthread_join(thread, NULL);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_OUTSTANDING), 1);
    /* Once, or on a busy machine once more, after 10 s. */
    CHECK(heard_count(&heard, UNSALT_EVENT_DESTROY_BLOCKED) >= 1);
    CHECK(strstr(heard.text[UNSALT_EVENT_DESTROY_BLOCKED], "destroy waits for "));
    CHECK(strstr(heard.text[UNSALT_EVENT_DESTROY_BLOCKED], "1 were not acknowledged"));
    mock_close(&mock);
}

TEST(close, of_nothing_and_of_a_consumer_that_never_read) {
    struct mock mock;
    unsalt_destroy(NULL);
    mock_open(&mock, 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    mock_done(u);
    u = mock_consumer(&mock, "g", "", NULL);
    CHECK(!unsalt_consumer_close(u));
    mock_done(u);
    mock_close(&mock);
}

/* Unread queues, pending and held records, a full buffer: close drops them and destroy doesn't hang. */
TEST(close, in_the_middle_of_everything) {
    struct mock mock;
    struct takings takings = {0};
    uint64_t began;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    unsalt_t *u = committing_reader(&mock, "budget.records=100 budget.policy=block gap.timeout.ms=-1", NULL);
    send_some(&mock, 0, "s", 2, 3000);
    send_some(&mock, 1, "r", 1, 3000);
    CHECK(take(u, &takings, 100, 15000));
    began = now_ms();
    mock_done(u);
    CHECK_THAT(now_ms() - began < 15000, "it took %" PRIu64 " ms", now_ms() - began);
    takings_free(&takings);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements while a partition goes: NO_ERROR means that the last commit has it, whenever it was said; and what
 * is known of a message lasts until the next poll, whatever is called in between.
 */
#include <support/check.h>
#include <support/mockcluster.h>

#define OFFSET_COMMIT 8 /* the protocol's number of the request */

struct app {
    unsalt_t *u;
    unsalt_token_t token;
    unsalt_event_type_t when; /* it acknowledges in this event */
    unsigned acks;
    rd_kafka_resp_err_t said;
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct app *app = opaque;
    if (event->type == app->when && app->u && app->acks++ == 0) {
        app->said = unsalt_ack(app->u, app->token);
    }
}

/* Has two records in hand, one of them acknowledged, and waits for the other 100 ms at the end. */
static unsalt_t *with_one_in_hand(struct mock *mock, struct app *app, unsalt_event_type_t when) {
    struct takings takings = {0};
    mock_open(mock, 1);
    mock_topic(mock, "t", 1);
    mock_send(mock, "t", 0, "s", 1, 1);
    mock_send(mock, "t", 0, "s", 2, 1);
    mock_flush(mock);
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "enable.auto.commit", "true");
    mock_rd_set(conf, "auto.commit.interval.ms", "3600000");
    unsalt_conf_t *mine = mock_conf("ack=manual revoke.timeout.ms=100", NULL);
    *app = (struct app){.when = when, .said = RD_KAFKA_RESP_ERR_UNKNOWN};
    unsalt_conf_set_event_cb(mine, on_event, app);
    unsalt_t *u = mock_consumer_of(conf, mine);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, 2, 15000));
    for (uint64_t until = now_ms() + 15000; now_ms() < until && mock_committed(mock, "g", "t", 0) != 0;) {
        take_nothing(u, 20); /* where it began is committed by itself: the next commit is the last one */
    }
    CHECK_I64(mock_committed(mock, "g", "t", 0), 0);
    CHECK(!unsalt_ack(u, takings.got[0].token));
    app->u = u;
    app->token = takings.got[1].token;
    takings_free(&takings);
    return u;
}

TEST(ack_late, in_the_event_that_names_it_at_a_close) {
    struct mock mock;
    struct app app;
    unsalt_t *u = with_one_in_hand(&mock, &app, UNSALT_EVENT_OUTSTANDING);
    CHECK(!unsalt_consumer_close(u));
    CHECK_U64(app.acks, 1);
    CHECK_I64(app.said, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 2);
    CHECK_I64(unsalt_ack(u, app.token), RD_KAFKA_RESP_ERR__STATE);
    mock_done(u);
    mock_close(&mock);
}

TEST(ack_late, in_the_event_that_names_it_at_an_assign) {
    struct mock mock;
    struct app app;
    unsalt_t *u = with_one_in_hand(&mock, &app, UNSALT_EVENT_OUTSTANDING);
    CHECK(!unsalt_assign(u, NULL));
    CHECK_U64(app.acks, 1);
    CHECK_I64(app.said, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 2);
    mock_done(u);
    mock_close(&mock);
}

/* While the last commit is under way, as any thread may: it is too late. */
static void too_late(bool close) {
    struct mock mock;
    struct app app;
    unsalt_t *u = with_one_in_hand(&mock, &app, UNSALT_EVENT_COMMIT_FAILED);
    rd_kafka_mock_push_request_errors(mock.cluster, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    if (close) {
        CHECK(unsalt_consumer_close(u));
    } else {
        CHECK(!unsalt_assign(u, NULL));
    }
    CHECK_U64(app.acks, 1);
    CHECK_I64(app.said, RD_KAFKA_RESP_ERR__STATE);
    mock_done(u);
    mock_close(&mock);
}

TEST(ack_late, after_the_last_commit_of_a_close) {
    too_late(true);
}

TEST(ack_late, after_the_last_commit_of_an_assign) {
    too_late(false);
}

/* ---- what is known of a message */

#define SESSION "caf\xc3\xa9-0123456789"

/* A session id that doesn't stand in the message as it is: the library has it in memory of its own. */
static rd_kafka_message_t *poll_escaped(struct mock *mock, unsalt_t **u, unsalt_message_info_t *info) {
    static const char payload[] = "{\"sessionId\":\"caf\\u00e9-0123456789\",\"globalSeq\":1}";
    mock_open(mock, 1);
    mock_topic(mock, "t", 1);
    mock_write(mock, "t", 0, NULL, payload, sizeof payload - 1, NULL, NULL, 0);
    mock_flush(mock);
    *u = mock_consumer(mock, "g", "", NULL);
    CHECK(!mock_assign(*u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    rd_kafka_message_t *message = unsalt_consumer_poll(*u, 15000);
    CHECK(message && !message->err);
    *info = (unsalt_message_info_t){.size = sizeof *info};
    CHECK(!unsalt_message_info(*u, message, info));
    CHECK_BYTES(info->session, info->session_len, SESSION, sizeof SESSION - 1);
    return message;
}

static void still_known(const unsalt_t *u, const rd_kafka_message_t *message, const unsalt_message_info_t *before) {
    unsalt_message_info_t info = {.size = sizeof info};
    CHECK_BYTES(before->session, before->session_len, SESSION, sizeof SESSION - 1);
    CHECK(!unsalt_message_info(u, message, &info));
    CHECK_BYTES(info.session, info.session_len, SESSION, sizeof SESSION - 1);
    CHECK_U64(info.seq, 1);
}

TEST(info, lasts_until_the_next_poll) {
    struct mock mock;
    unsalt_t *u;
    unsalt_message_info_t info;
    rd_kafka_message_t *message = poll_escaped(&mock, &u, &info);
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(u, mock.producer, 1000);
    CHECK(error); /* it isn't a transactional one */
    rd_kafka_error_destroy(error);
    still_known(u, message, &info);
    CHECK(!unsalt_commit(u, 0));
    still_known(u, message, &info);
    CHECK(!unsalt_rewind(u, 5000));
    still_known(u, message, &info);
    CHECK(!unsalt_consumer_close(u));
    still_known(u, message, &info);
    rd_kafka_message_destroy(message);
    mock_done(u);
    mock_close(&mock);
}

/* ---- what an application's own transactions need */

TEST(transaction_conf, reading_must_be_committed) {
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "isolation.level", "read_uncommitted");
    unsalt_t *u = mock_consumer_of(conf, NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(u, mock.producer, 1000);
    CHECK(error);
    CHECK_I64(rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__STATE);
    CHECK(strstr(rd_kafka_error_string(error), "isolation.level=read_uncommitted"));
    CHECK(strstr(rd_kafka_error_string(error), "read_committed is needed"));
    rd_kafka_error_destroy(error);
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The stamping producer beside the application's own: its delivery reports, its configuration. On the mock cluster. */
#include <mock/fixture/sent.h>
#include <string.h>
#include <support/check.h>

#define N 8

/* ---- delivery reports */

struct reports {
    int calls, errors, wrong_opaque;
    uintptr_t sum; /* of the message opaques */
};

static void on_message(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct reports *r = opaque;
    (void)rk;
    r->calls++;
    r->errors += message->err != 0;
    r->sum += (uintptr_t)message->_private;
    r->wrong_opaque += rd_kafka_opaque(rk) != opaque;
}

static void on_payload(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                       void *message_opaque) {
    struct reports *r = opaque;
    (void)rk;
    r->calls++;
    r->errors += err != 0;
    r->sum += (uintptr_t)message_opaque;
    r->wrong_opaque += len != 1 || *(const char *)payload != 'x';
}

static void send_numbered(unsalt_producer_t *p, uintptr_t first, uintptr_t last) {
    for (uintptr_t i = first; i <= last; i++)
        CHECK(unsalt_produce(p, "t", i % 5 ? "a" : NULL, i % 5 ? 1 : 0, "x", 1, (void *)i) ==
              RD_KAFKA_RESP_ERR_NO_ERROR);
}

TEST(mock_producer_reports, the_applications_reports_keep_working) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    for (int older = 0; older < 2; older++) {
        struct reports reports = {0};
        rd_kafka_conf_t *conf = sent_client_conf(&c);
        rd_kafka_conf_set_opaque(conf, &reports);
        if (older)
            rd_kafka_conf_set_dr_cb(conf, on_payload);
        else
            rd_kafka_conf_set_dr_msg_cb(conf, on_message);
        unsalt_producer_t *p = sent_producer(conf, "partitions=8 lanes=2");
        CHECK(rd_kafka_opaque(unsalt_producer_handle(p)) == &reports);
        send_numbered(p, 1, 100);
        sent_flush(p);
        CHECK_I64(reports.calls, 100);
        CHECK_I64(reports.errors + reports.wrong_opaque, 0);
        CHECK_U64(reports.sum, 5050);
        unsalt_producer_destroy(p);
    }
    sent_close(&c);
}

TEST(mock_producer_reports, only_errors_are_reported_if_that_is_wanted) {
    struct sent_cluster c = sent_open();
    struct reports reports = {0};
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    sent_add_topic(&c, "t", N);
    rd_kafka_conf_set_opaque(conf, &reports);
    rd_kafka_conf_set_dr_msg_cb(conf, on_message);
    sent_set(conf, "delivery.report.only.error", "true");
    unsalt_producer_t *p = sent_producer(conf, "partitions=8 lanes=2");
    send_numbered(p, 1, 20);
    sent_flush(p);
    CHECK_U64(sent_stats(p).acked, 20); /* ours must see them all */
    CHECK_I64(reports.calls, 0);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

TEST(mock_producer_reports, destroy_purges_and_reports) {
    struct sent_cluster c = sent_open();
    struct reports reports = {0};
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    sent_add_topic(&c, "t", N);
    rd_kafka_conf_set_opaque(conf, &reports);
    rd_kafka_conf_set_dr_msg_cb(conf, on_message);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    unsalt_producer_t *p = sent_producer(conf, "partitions=8 lanes=2 producer.check.ms=0");
    send_numbered(p, 1, 50);
    unsalt_producer_destroy(p);
    CHECK_I64(reports.calls, 50);
    CHECK_I64(reports.errors, 50);
    CHECK_U64(reports.sum, 1275);
    sent_close(&c);
}

/* ---- creation */

static void check_not_made(rd_kafka_conf_t *rk_conf, const char *settings, const char *wanted) {
    char err[256] = "";
    unsalt_conf_t *conf = sent_unsalt_conf(settings);
    CHECK(!unsalt_producer_new(rk_conf, conf, err, sizeof err));
    CHECK_THAT(strstr(err, wanted), "\"%s\", not \"%s\"", err, wanted);
    unsalt_conf_destroy(conf); /* still ours */
}

TEST(mock_producer_reports, what_cannot_be_made_is_said) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char err[256];
    check_not_made(conf, "lanes=2", "partitions");
    check_not_made(conf, "partitions=2", "lanes");
    check_not_made(NULL, "partitions=2 lanes=2", "both configurations");
    CHECK(!unsalt_producer_new(conf, NULL, err, sizeof err));
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    check_not_made(conf, "partitions=2 lanes=2", "events");
    rd_kafka_conf_destroy(conf);
}

/* librdkafka refuses idempotence with acks=1: the application's configuration must be as it was, and usable. */
TEST(mock_producer_reports, a_refused_configuration_is_as_it_was) {
    struct sent_cluster c = sent_open();
    struct reports reports = {0};
    char err[256], value[64];
    size_t size = sizeof value;
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    sent_add_topic(&c, "t", N);
    rd_kafka_conf_set_opaque(conf, &reports);
    rd_kafka_conf_set_dr_msg_cb(conf, on_message);
    sent_set(conf, "acks", "1");
    check_not_made(conf, "partitions=8 lanes=2", "acks");
    CHECK(rd_kafka_conf_get(conf, "enable.idempotence", value, &size) == RD_KAFKA_CONF_OK);
    CHECK_STR(value, "false");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof err);
    CHECK_THAT(rk, "%s", err);
    CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_OPAQUE((void *)5),
                            RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(rd_kafka_flush(rk, SENT_PATIENCE_MS) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(reports.calls, 1);
    CHECK_U64(reports.sum, 5);
    rd_kafka_destroy(rk);
    sent_close(&c);
}

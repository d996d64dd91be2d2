/* SPDX-License-Identifier: BSD-2-Clause */
/* A topic is checked before its first record: on the mock cluster. */
#include <kafka/clock.h>
#include <mock/fixture/sent.h>
#include <string.h>
#include <support/check.h>

#define UNKNOWN_TOPIC RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
#define UNKNOWN_PARTITION RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION

static char log_line[512];
static int log_lines;

static void on_log(void *opaque, int level, const char *facility, const char *line) {
    (void)opaque;
    (void)facility;
    log_lines += level <= 4;
    strncpy(log_line, line, sizeof log_line - 1);
}

static unsalt_producer_t *start(const struct sent_cluster *c, const char *settings) {
    char err[256];
    unsalt_conf_t *conf = sent_unsalt_conf(settings);
    log_lines = 0;
    unsalt_conf_set_log_cb(conf, on_log, NULL);
    unsalt_producer_t *p = unsalt_producer_new(sent_client_conf(c), conf, err, sizeof err);
    CHECK_THAT(p, "%s", err);
    return p;
}

static rd_kafka_resp_err_t try(unsalt_producer_t *p, const char *topic) {
    return unsalt_produce(p, topic, "a", 1, "x", 1, NULL);
}

static double seconds(void) {
    return (double)us_clock_now() * 1e-9;
}

static void check_line(const char *topic, const char *found, const char *wanted) {
    CHECK_THAT(strstr(log_line, topic) && strstr(log_line, found) && strstr(log_line, wanted), "\"%s\"", log_line);
}

TEST(mock_producer_topics, another_number_of_partitions) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "few", 7);
    sent_add_topic(&c, "many", 9);
    sent_add_topic(&c, "right", 8);
    unsalt_producer_t *p = start(&c, "partitions=8 lanes=2");
    CHECK_I64(try(p, "few"), UNKNOWN_PARTITION);
    check_line("few", "7 partitions", "8");
    CHECK_I64(unsalt_produce(p, "few", NULL, 0, "x", 1, NULL), UNKNOWN_PARTITION);
    CHECK_I64(log_lines, 1);
    CHECK_I64(try(p, "many"), 0); /* it has grown: only the first N are used */
    check_line("many", "9 partitions", "8");
    CHECK_I64(log_lines, 2);
    CHECK_I64(try(p, "right"), 0);
    sent_flush(p);
    CHECK(sent_stats(p).stamped == 2 && sent_stats(p).sessions == 2);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

/* The answer stands for a second, then the cluster is asked again. */
TEST(mock_producer_topics, a_topic_that_is_not_there_yet) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", 8);
    rd_kafka_mock_topic_set_error(c.mock, "t", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    unsalt_producer_t *p = start(&c, "partitions=8 lanes=2");
    double began = seconds();
    CHECK_I64(try(p, "t"), UNKNOWN_TOPIC);
    CHECK_THAT(seconds() - began < 2.5, "%.1f s", seconds() - began); /* of 10 that it may take */
    check_line("t", "doesn't exist", "8");
    rd_kafka_mock_topic_set_error(c.mock, "t", RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_resp_err_t err = UNKNOWN_TOPIC;
    int calls = 0;
    for (began = seconds(); err && seconds() - began < 3; calls++)
        err = try(p, "t");
    CHECK_I64(err, 0);
    CHECK(calls > 1000); /* they came at once */
    CHECK_I64(log_lines, 1);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

TEST(mock_producer_topics, all_lane_topics_must_be_there) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", 8);
    sent_add_topic(&c, "t.lane-1", 8);
    sent_add_topic(&c, "t.lane-2", 4);
    unsalt_producer_t *p = start(&c, "layout=topics partitions=8 lanes=3");
    CHECK_I64(try(p, "t"), UNKNOWN_PARTITION);
    check_line("t.lane-2", "4 partitions", "8");
    unsalt_producer_destroy(p);
    p = start(&c, "layout=topics partitions=8 lanes=2");
    CHECK_I64(try(p, "t"), 0);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

TEST(mock_producer_topics, a_cluster_that_is_not_there) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", 8);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    unsalt_producer_t *p = start(&c, "partitions=8 lanes=2 producer.check.ms=300");
    double began = seconds();
    rd_kafka_resp_err_t err = try(p, "t");
    CHECK_THAT(err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__TIMED_OUT, "%s",
               rd_kafka_err2name(err));
    CHECK_THAT(seconds() - began < 2, "%.1f s", seconds() - began);
    CHECK_I64(log_lines, 1);
    CHECK_I64(try(p, "t"), err);
    unsalt_producer_destroy(p);
    p = start(&c, "partitions=8 lanes=2 producer.check.ms=0");
    CHECK_I64(try(p, "t"), 0); /* not checked */
    unsalt_producer_destroy(p);
    sent_close(&c);
}

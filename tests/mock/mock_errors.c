/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes and misfortunes: each gets an error, none a crash, a hang or a race. */
#include <pthread.h>
#include <support/check.h>
#include <support/mockcluster.h>

static void never(rd_kafka_message_t *message, void *opaque) {
    (void)message;
    (void)opaque;
}

static void rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)rk;
    (void)err;
    (void)list;
    (void)opaque;
}

static void check_value(const rd_kafka_conf_t *conf, const char *name, const char *wanted) {
    char value[64] = "";
    size_t size = sizeof(value);
    rd_kafka_conf_get(conf, name, value, &size);
    CHECK_STR(value, wanted);
}

/* After a failure both configurations are as they were, and can be used. */
TEST(errors, a_failed_new_changes_nothing) {
    struct mock mock;
    char errstr[256] = "", pointer[32];
    mock_open(&mock, 1);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    unsalt_conf_t *mine = mock_conf("ack=manual offset.reset=earliest", NULL);
    CHECK(!unsalt_new(conf, mine, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "group.id"), "%s", errstr);
    mock_rd_set(conf, "group.id", "g");
    mock_rd_set(conf, "bootstrap.servers", mock.bootstraps);
    mock_rd_set(conf, "auto.offset.reset", "latest");
    rd_kafka_conf_set_rebalance_cb(conf, rebalance);
    /* librdkafka refuses this one itself, at the very end. */
    mock_rd_set(conf, "max.poll.interval.ms", "1000");
    mock_rd_set(conf, "session.timeout.ms", "2000");
    CHECK(!unsalt_new(conf, mine, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "max.poll.interval.ms"), "%s", errstr);
    check_value(conf, "enable.partition.eof", "false");
    check_value(conf, "enable.auto.offset.store", "true");
    check_value(conf, "enable.auto.commit", "true");
    check_value(conf, "auto.offset.reset", "largest");
    void (*cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *) = rebalance;
    void *address;
    memcpy(&address, &cb, sizeof(address));
    snprintf(pointer, sizeof(pointer), "%p", address);
    check_value(conf, "rebalance_cb", pointer);
    mock_rd_set(conf, "max.poll.interval.ms", "300000");
    unsalt_t *u = unsalt_new(conf, mine, errstr, sizeof(errstr));
    CHECK_THAT(u, "%s", errstr);
    mock_done(u);
    mock_close(&mock);
}

/* What was forced for the attempt that failed is not taken for the application's choice at the next one. */
TEST(errors, a_repeated_new_reads_from_the_earliest) {
    struct mock mock;
    struct takings takings = {0};
    char errstr[256] = "", value[32];
    size_t size = sizeof(value);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    unsalt_conf_t *bad = mock_conf("layout=topics", NULL);
    CHECK(!unsalt_new(conf, bad, errstr, sizeof(errstr)));
    unsalt_conf_destroy(bad);
    mock_rd_set(conf, "max.poll.interval.ms", "1000"); /* below session.timeout.ms: refused by librdkafka itself */
    CHECK(!unsalt_new(conf, NULL, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "max.poll.interval.ms"), "%s", errstr);
    CHECK_I64(rd_kafka_conf_get(conf, "auto.offset.reset", value, &size), RD_KAFKA_CONF_UNKNOWN);
    mock_rd_set(conf, "max.poll.interval.ms", "300000");
    unsalt_t *u = unsalt_new(conf, NULL, errstr, sizeof(errstr));
    CHECK_THAT(u, "%s", errstr);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, 10, 15000));
    CHECK_U64(check_order(&takings, 1), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* The search for a start has a bound, whatever a leader does. */
TEST(errors, a_dead_leader_does_not_hold_an_assignment) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 2);
    mock_topic(&mock, "t", 2);
    for (int i = 0; i < 2; i++) {
        char session[2] = {(char)('a' + i), 0};
        CHECK(!rd_kafka_mock_partition_set_leader(mock.cluster, "t", i, i + 1));
        mock_send(&mock, "t", i, session, 1, 1);
    }
    mock_flush(&mock);
    rd_kafka_mock_broker_set_down(mock.cluster, 2);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    uint64_t begun = now_ms();
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_BEGINNING));
    CHECK_THAT(now_ms() - begun < 20000, "the assignment took %" PRIu64 " ms", now_ms() - begun);
    CHECK(take(u, &takings, 1, 15000));
    rd_kafka_mock_broker_set_up(mock.cluster, 2);
    for (uint64_t until = now_ms() + 15000; now_ms() < until && takings.count < 2;) {
        take(u, &takings, takings.count + 1, 100);
    }
    CHECK(takings.count >= 2);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(errors, of_new) {
    char errstr[256] = "";
    CHECK(!unsalt_new(NULL, NULL, errstr, sizeof(errstr)));
    CHECK(errstr[0]);
    CHECK(!unsalt_new(NULL, NULL, NULL, 0));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "group.id", "g");
    unsalt_conf_t *mine = mock_conf("layout=topics", NULL);
    CHECK(!unsalt_new(conf, mine, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "partitions"), "%s", errstr);
    unsalt_conf_destroy(mine);
    rd_kafka_conf_set_consume_cb(conf, never);
    CHECK(!unsalt_new(conf, NULL, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "consume_cb"), "%s", errstr);
    rd_kafka_conf_destroy(conf);
}

struct second {
    unsalt_t *u;
    rd_kafka_resp_err_t err;
    bool got_message;
};

static void *second_poll(void *opaque) {
    struct second *second = opaque;
    for (uint64_t until = now_ms() + 10000; now_ms() < until && !second->err;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(second->u, 0);
        second->got_message |= message != NULL; /* checked by the test: Criterion leaks in other threads */
        second->err = unsalt_last_error();
    }
    unsalt_wakeup(second->u);
    return NULL;
}

TEST(errors, a_second_thread) {
    struct mock mock;
    pthread_t thread;
    mock_open(&mock, 1);
    struct second second = {.u = mock_consumer(&mock, "g", "", NULL)};
    pthread_create(&thread, NULL, second_poll, &second);
    rd_kafka_message_t *messages[4];
    while (unsalt_consume_batch(second.u, 10000, messages, 4) < 0) {
        CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    }
    pthread_join(thread, NULL);
    CHECK_I64(second.err, RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK(!second.got_message);
    mock_done(second.u);
    mock_close(&mock);
}

static void calls_back(rd_kafka_message_t *message, void *opaque) {
    unsalt_t *u = opaque;
    (void)message;
    CHECK(!unsalt_consumer_poll(u, 0));
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_consume_callback(u, 0, calls_back, u), -1);
    CHECK_I64(unsalt_commit(u, 0), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_consumer_close(u), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_assign(u, NULL), RD_KAFKA_RESP_ERR__CONFLICT);
}

TEST(errors, a_call_from_a_callback) {
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_flush(&mock);
    int n = 0;
    for (uint64_t until = now_ms() + 10000; n == 0 && now_ms() < until;) {
        n = unsalt_consume_callback(u, 100, calls_back, u);
    }
    CHECK_I64(n, 1);
    mock_done(u);
    mock_close(&mock);
}

static size_t records(const struct takings *takings) {
    size_t n = 0;
    for (size_t i = 0; i < takings->count; i++) {
        n += !takings->got[i].err;
    }
    return n;
}

/* Sets a topic up that doesn't exist yet, and a consumer that looks for it often. */
static unsalt_t *reader_of_nothing(struct mock *mock) {
    mock_open(mock, 1);
    rd_kafka_mock_topic_set_error(mock->cluster, "t", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rd_kafka_conf_t *conf = mock_rd_conf(mock, "g");
    mock_rd_set(conf, "topic.metadata.propagation.max.ms", "0");
    mock_rd_set(conf, "topic.metadata.refresh.interval.ms", "500");
    return mock_consumer_of(conf, NULL);
}

static void make_topic(struct mock *mock) {
    rd_kafka_mock_topic_set_error(mock->cluster, "t", RD_KAFKA_RESP_ERR_NO_ERROR);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(mock, "t", 0, "s", seq, 1);
    }
    mock_flush(mock);
}

static void take_records(unsalt_t *u, struct takings *takings, size_t want, int timeout_ms) {
    for (uint64_t until = now_ms() + (uint64_t)timeout_ms; records(takings) < want && now_ms() < until;) {
        take(u, takings, takings->count + 1, 100);
    }
    CHECK_U64(records(takings), want);
}

/* An unknown topic is told as librdkafka tells it. (2.0.2 by itself often doesn't join when the topic comes later.) */
TEST(errors, a_topic_that_does_not_exist) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader_of_nothing(&mock);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, topics));
    CHECK(take(u, &takings, 1, 20000));
    CHECK_THAT(takings.got[0].err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "%s",
               rd_kafka_err2name(takings.got[0].err));
    rd_kafka_topic_partition_list_destroy(topics);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(errors, an_assigned_topic_that_comes_later) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader_of_nothing(&mock);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    take(u, &takings, 1, 300);
    make_topic(&mock);
    take_records(u, &takings, 10, 20000);
    CHECK_U64(check_order(&takings, 1), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(errors, a_broker_that_comes_later) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_mock_broker_set_down(mock.cluster, 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    uint64_t began = now_ms();
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_INVALID));
    CHECK_THAT(now_ms() - began < 20000, "assign took %" PRIu64 " ms", now_ms() - began);
    take(u, &takings, 1, 300);
    CHECK_U64(records(&takings), 0);
    rd_kafka_mock_broker_set_up(mock.cluster, 1);
    take_records(u, &takings, 10, 15000);
    CHECK_U64(check_order(&takings, 1), 10);
    take(u, &takings, takings.count + 1, 50);
    CHECK(!unsalt_commit(u, 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(errors, empty_arguments) {
    struct mock mock;
    unsalt_stats_t stats;
    rd_kafka_message_t *message;
    mock_open(&mock, 1);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    CHECK_I64(unsalt_subscribe(u, NULL), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK(!unsalt_assign(u, NULL));
    CHECK(!unsalt_commit(u, 0));
    CHECK(!unsalt_commit(u, 1));
    CHECK(!unsalt_flush_gaps(u));
    CHECK_I64(unsalt_consume_batch(u, 0, &message, 0), 0);
    CHECK_I64(unsalt_stats(u, &stats, 0), -1);
    CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    CHECK_U64(stats.received, 0);
    CHECK(unsalt_handle(u));
    mock_done(u);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confluentinc/librdkafka#5511: offsets are sent to a transaction for as long as the group's coordinator is away,
 * whatever time was given. A relay gives the batch up, goes on with another producer once it can, and ends before. The
 * mock cluster has no transactions: what readers see of the first try is a matter of broker/relay_coordinator.c.
 */
#include <stdatomic.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 40000, RECORDS = 20, COORDINATOR = 2 };

static struct mock mock;
static unsalt_relay_t *relay;
static atomic_bool away, gone; /* the coordinator is; the relay is, and nothing may be logged any more */
static atomic_int late;        /* lines that were */

/* The coordinator goes while the first batch is worked on: its offsets can't be sent. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)info;
    (void)out;
    if (!atomic_exchange(&away, true))
        CHECK(!rd_kafka_mock_broker_set_down(mock.cluster, COORDINATOR));
    return UNSALT_RELAY_DONE;
}

static void on_line(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    (void)rk;
    (void)level;
    (void)facility;
    (void)text;
    late += gone;
}

static rd_kafka_conf_t *writes(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "bootstrap.servers", mock.bootstraps);
    mock_rd_set(conf, "transactional.id", "id");
    mock_rd_set(conf, "reconnect.backoff.max.ms", "200");
    rd_kafka_conf_set_log_cb(conf, on_line);
    return conf;
}

/* Of the two brokers one is the group's coordinator, and nothing else. */
static void begin(void) {
    char errstr[512];
    away = gone = false;
    late = 0;
    mock_open(&mock, 2);
    mock_topic(&mock, "in", 1);
    mock_topic(&mock, "out", 1);
    CHECK(!rd_kafka_mock_partition_set_leader(mock.cluster, "in", 0, 1));
    CHECK(!rd_kafka_mock_partition_set_leader(mock.cluster, "out", 0, 1));
    CHECK(!rd_kafka_mock_coordinator_set(mock.cluster, "transaction", "id", 1));
    CHECK(!rd_kafka_mock_coordinator_set(mock.cluster, "group", "relay", COORDINATOR));
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        mock_send(&mock, "in", 0, "room", seq, 1);
    mock_flush(&mock);
    unsalt_conf_t *input = mock_conf("relay.timeout.ms=1000 relay.threads=1", NULL);
    unsalt_conf_set_relay_cb(input, work, NULL);
    relay = unsalt_relay_new(mock_rd_conf(&mock, "relay"), input, writes(),
                             mock_conf("relay.topic=out partitions=1 lanes=1", NULL), errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

/* Polls until the batch is given up. */
static void give_up(void) {
    size_t n = 0;
    rd_kafka_error_t *error = NULL;
    for (uint64_t until = now_ms() + WAIT_MS; !error && now_ms() < until;) {
        error = unsalt_relay_poll(relay, 100, &n);
        CHECK_U64(n, 0);
    }
    CHECK_THAT(error, "nothing is said of a batch that can't be committed");
    CHECK_STR(rd_kafka_err2name(rd_kafka_error_code(error)), "_TIMED_OUT");
    rd_kafka_error_destroy(error);
}

static unsalt_relay_stats_t stats(void) {
    unsalt_relay_stats_t all;
    CHECK_I64(unsalt_relay_stats(relay, &all, sizeof all), 0);
    return all;
}

/* Threads of librdkafka, of all handles. */
static bool threads_fall_below(int count) {
    for (uint64_t until = now_ms() + WAIT_MS; rd_kafka_thread_cnt() >= count && now_ms() < until;)
        sleep_ms(20);
    return rd_kafka_thread_cnt() < count;
}

static void comes_back(void) {
    CHECK(!rd_kafka_mock_broker_set_up(mock.cluster, COORDINATOR));
}

/* Each number is there; what is there of the first try, too, nobody who reads committed records would see. */
static void check_merged(void) {
    struct takings takings = {0};
    unsalt_t *u = mock_consumer(&mock, "merging", "layout=hash partitions=1 lanes=1 gap.timeout.ms=-1", NULL);
    CHECK_I64(mock_assign(u, "out", 1, RD_KAFKA_OFFSET_BEGINNING), 0);
    CHECK(take(u, &takings, RECORDS, WAIT_MS));
    CHECK_U64(check_order(&takings, 1), RECORDS);
    takings_free(&takings);
    mock_done(u);
}

Test(mock_relay_coordinator, a_batch_is_given_up_and_done_again, .timeout = 120) {
    size_t done = 0, n;
    begin();
    give_up();
    CHECK_U64(stats().relayed, 0);
    comes_back();
    for (uint64_t until = now_ms() + WAIT_MS; done < RECORDS && now_ms() < until; done += n)
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, &n));
    CHECK_U64(done, RECORDS);
    CHECK_U64(stats().relayed, RECORDS);
    CHECK_U64(stats().producers, 2);
    check_merged();
    unsalt_relay_destroy(relay);
    mock_close(&mock);
}

/* While it is away a call that is polled comes back, however often; so does the end. */
Test(mock_relay_coordinator, polls_and_the_end_do_not_wait_for_it, .timeout = 120) {
    begin();
    give_up();
    for (int i = 0; i < 3; i++)
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, NULL));
    CHECK_U64(stats().relayed, 0);
    unsalt_relay_destroy(relay);
    gone = true;
    int threads = rd_kafka_thread_cnt();
    comes_back();
    CHECK_THAT(threads_fall_below(threads), "%d threads of librdkafka are there still", threads);
    CHECK_I64(late, 0);
    mock_close(&mock);
}

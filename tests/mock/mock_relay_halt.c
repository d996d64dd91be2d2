/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay whose transformations fail: which record is named and counted, and on which thread results are released. */
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 30000, RECORDS = 8 };

static struct mock mock;
static struct heard heard;
static unsalt_relay_t *relay;
static pthread_t poller;
static atomic_int made, released, elsewhere, tries[RECORDS + 1];
static atomic_bool mended;

static void release(void *payload) {
    released++;
    elsewhere += !pthread_equal(pthread_self(), poller);
    free(payload);
}

/* Whatever becomes of the record, there is something to release. */
static void make_payload(unsalt_relay_out_t *out) {
    char *text = malloc(8);
    if (text) {
        memcpy(text, "result", 7);
        out->payload = text;
        out->len = 6;
        out->release = release;
        out->headers = rd_kafka_headers_new(1);
        made++;
    }
}

static void begin(unsalt_relay_cb *work, const char *settings, uint64_t records) {
    char errstr[512];
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 1);
    mock_topic(&mock, "out", 1);
    for (uint64_t seq = 1; seq <= records; seq++)
        mock_send(&mock, "in", 0, "room", seq, 1);
    mock_flush(&mock);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    unsalt_conf_t *input = mock_conf(settings, &heard);
    unsalt_conf_set_relay_cb(input, work, NULL);
    relay = unsalt_relay_new(mock_rd_conf(&mock, "relay"), input, writes,
                             mock_conf("relay.topic=out partitions=1 lanes=1", NULL), errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    poller = pthread_self();
}

static void end(void) {
    unsalt_relay_destroy(relay);
    CHECK_I64(released, made);
    CHECK_I64(elsewhere, 0);
    mock_close(&mock);
}

static unsalt_relay_stats_t stats_of(void) {
    unsalt_relay_stats_t stats;
    CHECK_I64(unsalt_relay_stats(relay, &stats, sizeof stats), 0);
    return stats;
}

/* Polls until so many are relayed, or there is an error, which it returns. */
static rd_kafka_error_t *run(size_t records) {
    rd_kafka_error_t *error = NULL;
    size_t n;
    for (uint64_t until = now_ms() + WAIT_MS; records > 0 && !error && now_ms() < until; records -= n)
        error = unsalt_relay_poll(relay, 100, &n);
    CHECK(error || records == 0);
    return error;
}

/* Number 2 fails for good while number 1, which comes before it, has failed once and would be tried again. */
static unsalt_relay_res_t two_fails(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                                    unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    make_payload(out);
    if (mended)
        return UNSALT_RELAY_DONE;
    tries[info->seq]++;
    snprintf(info->errstr, info->errstr_size, "no luck with %d", (int)info->seq);
    for (uint64_t until = now_ms() + WAIT_MS; info->seq == 1 && tries[2] < 2 && now_ms() < until;)
        sleep_ms(1);
    return UNSALT_RELAY_FAILED;
}

Test(mock_relay_halt, names_the_record_that_failed_for_good, .timeout = 120) {
    begin(two_fails, "relay.retries=1 relay.retry.ms=3000 relay.batch.records=2 relay.batch.ms=10000 relay.threads=2",
          2);
    rd_kafka_error_t *error = run(2);
    CHECK_I64(rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__APPLICATION);
    CHECK_STR(rd_kafka_error_string(error), "in [0] offset 1 can't be transformed: no luck with 2");
    rd_kafka_error_destroy(error);
    CHECK_I64(tries[1], 1);
    CHECK_I64(tries[2], 2);
    CHECK_U64(stats_of().failed, 1);
    CHECK_U64(stats_of().retries, 1);
    CHECK_U64(stats_of().aborts, 1);
    CHECK_I64(released, 3);
    mended = true;
    error = run(2);
    CHECK(!error);
    CHECK_U64(stats_of().failed, 1);
    end();
}

/* Even numbers are dropped, odd ones done, each at its third attempt. */
static unsalt_relay_res_t third_time(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                                     unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    make_payload(out);
    if (info->attempt < 3)
        return UNSALT_RELAY_FAILED;
    return info->seq % 2 ? UNSALT_RELAY_DONE : UNSALT_RELAY_DROP;
}

static void check_releases(const char *settings) {
    begin(third_time, settings, RECORDS);
    rd_kafka_error_t *error = run(RECORDS);
    CHECK(!error);
    CHECK_I64(made, 3 * RECORDS);
    CHECK_U64(stats_of().relayed, RECORDS / 2);
    CHECK_U64(stats_of().dropped, RECORDS / 2);
    CHECK_U64(stats_of().retries, 2 * RECORDS);
    end();
}

Test(mock_relay_halt, releases_on_its_thread, .timeout = 120) {
    check_releases("relay.retries=2 relay.retry.ms=1 relay.threads=4");
}

Test(mock_relay_halt, releases_on_its_thread_that_works_itself, .timeout = 120) {
    check_releases("relay.retries=2 relay.retry.ms=1 relay.threads=0");
}

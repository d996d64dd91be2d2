/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay's batches one behind the other: work while one is committed, and what an abort or the end takes along. The
 * mock cluster keeps no offsets of transactions: what comes after a rebalance is a matter of broker/relay_revoke.c.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 30000, BATCH = 4 };

static struct mock mock;
static unsalt_relay_t *relay;
static atomic_uint_fast64_t received;  /* so many records are read before the first batch is done */
static atomic_int later_calls, calls[64];
static atomic_bool overlapped, held;

static unsalt_relay_stats_t stats_of(unsalt_relay_t *of) {
    unsalt_relay_stats_t stats;
    CHECK_I64(unsalt_relay_stats(of, &stats, sizeof stats), 0);
    return stats;
}

/* The first batch is not done before the second was read. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)out;
    calls[info->seq]++;
    later_calls += info->seq > BATCH;
    for (uint64_t until = now_ms() + WAIT_MS; info->seq <= BATCH && now_ms() < until;) {
        if (stats_of(relay).received >= received)
            break;
        sleep_ms(1);
    }
    return UNSALT_RELAY_DONE;
}

/* A result of the first transaction is acknowledged, on the thread that commits: it goes on when others work. */
static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)message;
    (void)opaque;
    for (uint64_t until = now_ms() + WAIT_MS; !held && later_calls == 0 && now_ms() < until;)
        sleep_ms(1);
    overlapped = overlapped || (!held && later_calls > 0);
    held = true; /* once */
}

static unsalt_relay_t *open_relay(unsalt_relay_cb *cb, const char *settings, bool watched) {
    char errstr[512];
    rd_kafka_conf_t *reads = mock_rd_conf(&mock, "relay"), *writes = rd_kafka_conf_new();
    mock_rd_set(reads, "heartbeat.interval.ms", "100");
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    if (watched)
        rd_kafka_conf_set_dr_msg_cb(writes, on_delivery);
    unsalt_conf_t *input = mock_conf(settings, NULL);
    unsalt_conf_set_relay_cb(input, cb, NULL);
    unsalt_conf_t *result = mock_conf("relay.topic=out partitions=2 lanes=2", NULL);
    unsalt_relay_t *opened = unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr);
    CHECK_THAT(opened, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(opened, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return opened;
}

static void begin(int partitions, uint64_t records) {
    mock_open(&mock, 1);
    mock_topic(&mock, "in", partitions);
    mock_topic(&mock, "out", 2);
    for (uint64_t seq = 1; seq <= records; seq++)
        mock_send(&mock, "in", (int32_t)(seq % (uint64_t)partitions), "room", seq, 2);
    mock_flush(&mock);
}

/* Polls until a call relays something, or returns an error. */
static size_t next_one(rd_kafka_error_t **error) {
    size_t n = 0;
    *error = NULL;
    for (uint64_t until = now_ms() + WAIT_MS; n == 0 && !*error && now_ms() < until;)
        *error = unsalt_relay_poll(relay, 100, &n);
    return n;
}

/* Each once, in order: nothing was left out, and nothing was produced twice. */
static void check_merged(size_t records) {
    struct takings takings = {0};
    struct heard heard;
    heard_init(&heard);
    unsalt_t *u = mock_consumer(&mock, "merging", "layout=hash partitions=2 lanes=2 gap.timeout.ms=-1", &heard);
    CHECK_I64(mock_assign(u, "out", 2, RD_KAFKA_OFFSET_BEGINNING), 0);
    CHECK(take(u, &takings, records, WAIT_MS));
    CHECK_U64(check_order(&takings, 1), records);
    take_nothing(u, 200);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_DUPLICATE), 0);
    takings_free(&takings);
    mock_done(u);
}

Test(mock_relay_overlap, works_while_it_commits, .timeout = 120) {
    rd_kafka_error_t *error;
    begin(1, 2 * BATCH);
    received = 2 * BATCH;
    relay = open_relay(work, "relay.batch.records=4 relay.batch.ms=60000 relay.threads=2", true);
    CHECK_U64(next_one(&error), BATCH);
    CHECK_THAT(overlapped, "no record of the second batch was worked on while the first was committed");
    CHECK_U64(next_one(&error), BATCH);
    CHECK_U64(stats_of(relay).batches, 2);
    check_merged(2 * BATCH);
    unsalt_relay_destroy(relay);
    mock_close(&mock);
}

/* What is aborted takes along what is worked on behind it, and what is read: all comes again, in order. */
Test(mock_relay_overlap, an_abort_takes_along_what_is_behind, .timeout = 120) {
    rd_kafka_error_t *error;
    size_t done = 0;
    begin(1, 3 * BATCH);
    received = 2 * BATCH;
    relay = open_relay(work, "relay.batch.records=4 relay.batch.ms=500 relay.threads=2", false);
    rd_kafka_mock_push_request_errors(mock.cluster, 24 /* AddPartitionsToTxn */, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    CHECK_U64(next_one(&error), 0);
    CHECK_THAT(error, "the transaction was not aborted");
    rd_kafka_error_destroy(error);
    CHECK_U64(stats_of(relay).aborts, 2);
    CHECK_U64(stats_of(relay).batches, 0);
    received = 0;
    while (done < 3 * BATCH) {
        size_t n = next_one(&error);
        CHECK_THAT(n && !error, "after %d: %s", (int)done, error ? rd_kafka_error_string(error) : "nothing");
        done += n;
    }
    CHECK_U64(done, 3 * BATCH);
    check_merged(3 * BATCH);
    unsalt_relay_destroy(relay);
    mock_close(&mock);
}

static atomic_int made, released;

static void release(void *payload) {
    released++;
    free(payload);
}

static unsalt_relay_res_t make(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    char *text = calloc(1, 8);
    if (text) {
        out->payload = text;
        out->len = 8;
        out->release = release;
        made++;
    }
    return work(opaque, message, info, out);
}

/* What is worked on, and what was read behind it, goes with the relay. */
Test(mock_relay_overlap, ends_with_batches_in_hand, .timeout = 120) {
    rd_kafka_error_t *error;
    begin(1, 3 * BATCH);
    received = 2 * BATCH;
    relay = open_relay(make, "relay.batch.records=4 relay.batch.ms=60000 relay.threads=2", false);
    CHECK_U64(next_one(&error), BATCH);
    CHECK_I64(released, BATCH);
    unsalt_relay_destroy(relay);
    CHECK_I64(released, made);
    mock_close(&mock);
}

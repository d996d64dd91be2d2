/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports on librdkafka's mock cluster (docs/past.md): how the producer spreads a hot key. */
#include <mock/fixture/sent.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>

enum { PARTS = 8, RECORDS = 800, SLOW_MS = 20 };

/* Two brokers, the second one slow; partition i is led by broker 1 + i mod 2. */
static struct sent_cluster open_uneven(void) {
    struct sent_cluster c = sent_open();
    rd_kafka_mock_cluster_destroy(c.mock);
    c.mock = rd_kafka_mock_cluster_new(c.host, 2);
    CHECK(c.mock);
    sent_add_topic(&c, "t", PARTS);
    for (int i = 0; i < PARTS; i++)
        CHECK(!rd_kafka_mock_partition_set_leader(c.mock, "t", i, 1 + i % 2));
    CHECK(!rd_kafka_mock_broker_set_rtt(c.mock, 2, SLOW_MS));
    return c;
}

/* Sends nine of ten records to one session. Returns the busiest partition's share against the mean, in percent. */
static uint64_t busiest_in_percent(const char *settings, uint64_t *hot) {
    struct sent_cluster c = open_uneven();
    uint64_t count[PARTS] = {0}, most = 0;
    char cold[16];
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), settings);
    for (int i = 0; i < RECORDS; i++) {
        snprintf(cold, sizeof cold, "cold-%d", i % 25);
        sent_put(p, "t", i % 10 ? "hot" : cold, "x");
    }
    sent_flush(p);
    unsalt_producer_destroy(p);
    CHECK(!rd_kafka_mock_broker_set_rtt(c.mock, 2, 0));
    sent_read_back(&c, "t", PARTS);
    CHECK_U64(sent_count, RECORDS);
    memset(hot, 0, PARTS * sizeof *hot);
    for (size_t i = 0; i < sent_count; i++) {
        int32_t partition = sent_records[i].partition;
        count[partition]++;
        hot[partition] += strncmp(sent_records[i].key, "hot", 3) == 0;
        most = count[partition] > most ? count[partition] : most;
    }
    sent_close(&c);
    return most * 100 * PARTS / RECORDS;
}

/*
 * getlago/lago-api#6258, PostHog/posthog#51635, PostHog/posthog#12785: teams gave their keys up, and the order with
 * them, to cure a hot partition. Nine of ten records of one key, spread over eight lanes: even, and still numbered.
 *
 * apache/kafka#12049 (KAFKA-10888): batches stick to whoever is slow to take them, so the slow broker gets the most.
 * The lane follows from the number here, so a slow broker gets what any other gets; it gets no less either, which the
 * report would have liked: an order that depended on speed could not be told from a loss.
 */
TEST(past_producer, a_hot_key_is_spread_evenly_also_over_a_slow_broker) {
    uint64_t hot[PARTS];
    uint64_t salted = busiest_in_percent("partitions=8 lanes=8", hot);
    CHECK_THAT(salted < 120, "the busiest has %" PRIu64 " %% of the mean", salted);
    for (int i = 0; i < PARTS; i++)
        CHECK_U64(hot[i], RECORDS * 9 / 10 / PARTS);
    const struct us_lane_map map = sent_map(US_LAYOUT_HASH, PARTS, PARTS);
    CHECK_U64(sent_check_session("hot", PARTS, &map), RECORDS * 9 / 10);
}

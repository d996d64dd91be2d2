/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pause, resume, seek. Before 2.1.0 librdkafka loses records of a batch when a pause comes between
 * (confluentinc/librdkafka#4208), before 2.4.0 resuming what isn't paused goes back (#4637): neither may be seen here.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/prng.h>

#define LANES 4

static rd_kafka_topic_partition_list_t *one(int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", partition)->offset = offset;
    return list;
}

static unsalt_t *reader(struct mock *mock, const char *settings) {
    mock_open(mock, 1);
    mock_topic(mock, "t", LANES);
    unsalt_t *u = mock_consumer(mock, "g", settings, NULL);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    return u;
}

static void send_lanes(struct mock *mock, uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++) {
        mock_send(mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
    }
    mock_flush(mock);
}

TEST(pause, at_random_loses_nothing_and_repeats_nothing) {
    struct mock mock;
    struct takings takings = {0};
    struct prng prng;
    unsalt_stats_t stats;
    prng = prng_start(1);
    unsalt_t *u = reader(&mock, "read.batch=37 gap.timeout.ms=-1");
    uint64_t sent = 0;
    for (int round = 0; round < 60; round++) {
        send_lanes(&mock, sent + 1, sent + 50);
        sent += 50;
        rd_kafka_topic_partition_list_t *list = one((int32_t)prng_below(&prng, LANES), 0);
        CHECK(!unsalt_pause(u, list));
        CHECK_I64(list->elems[0].err, 0);
        take(u, &takings, takings.count + prng_below(&prng, 40), 20);
        CHECK(!unsalt_resume(u, list));
        CHECK(!unsalt_resume(u, list)); /* not paused any more: nothing goes back */
        rd_kafka_topic_partition_list_destroy(list);
    }
    CHECK(take(u, &takings, sent, 20000));
    take_nothing(u, 200);
    CHECK_U64(check_order(&takings, 1), sent);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.received, sent);
    CHECK_U64(stats.offset_jumps, 0);
    CHECK_U64(stats.state[UNSALT_STATE_FENCED], 0);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(pause, a_paused_lane_holds_its_session) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_t *u = reader(&mock, "gap.timeout.ms=-1");
    rd_kafka_topic_partition_list_t *list = one(1, 0);
    CHECK(!unsalt_pause(u, list));
    send_lanes(&mock, 1, 40);
    take_nothing(u, 500);
    CHECK(!unsalt_resume(u, list));
    CHECK(take(u, &takings, 40, 15000));
    CHECK_U64(check_order(&takings, 1), 40);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(pause, of_what_is_not_assigned) {
    struct mock mock;
    unsalt_t *u = reader(&mock, "");
    rd_kafka_topic_partition_list_t *list = one(99, 0);
    CHECK(!unsalt_pause(u, list));
    CHECK_I64(list->elems[0].err, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    CHECK(!unsalt_seek(u, list, 1000));
    CHECK_I64(list->elems[0].err, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    rd_kafka_topic_partition_list_destroy(list);
    mock_done(u);
    mock_close(&mock);
}

static rd_kafka_topic_partition_list_t *all(int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(LANES);
    for (int i = 0; i < LANES; i++) {
        rd_kafka_topic_partition_list_add(list, "t", i)->offset = offset;
    }
    return list;
}

TEST(pause, seek_back_gives_everything_again) {
    struct mock mock;
    struct takings takings = {0}, again = {0};
    unsalt_t *u = reader(&mock, "");
    send_lanes(&mock, 1, 40);
    CHECK(take(u, &takings, 40, 15000));
    rd_kafka_topic_partition_list_t *list = all(RD_KAFKA_OFFSET_BEGINNING);
    CHECK(!unsalt_seek(u, list, 5000));
    CHECK(take(u, &again, 40, 15000));
    CHECK_U64(check_order(&again, 1), 40);
    CHECK_I64(unsalt_ack(u, takings.got[0].token), RD_KAFKA_RESP_ERR__STATE);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    takings_free(&again);
    mock_done(u);
    mock_close(&mock);
}

/* What was held or stood in the buffer is dropped, counted as revoked, and the ledger still sums up. */
TEST(pause, seek_drops_what_is_held) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    unsalt_t *u = reader(&mock, "gap.timeout.ms=-1");
    send_lanes(&mock, 1, 20);
    for (uint64_t seq = 22; seq <= 40; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
    }
    mock_flush(&mock);
    for (uint64_t until = now_ms() + 10000; now_ms() < until && takings.count < 5;) {
        take(u, &takings, 5, 100);
    }
    CHECK_U64(takings.count, 5);
    do {
        unsalt_stats(u, &stats, sizeof(stats));
        take(u, &takings, takings.count + (stats.received < 39), 50);
    } while (stats.received < 39);
    size_t before = takings.count;
    rd_kafka_topic_partition_list_t *list = all(RD_KAFKA_OFFSET_END);
    CHECK(!unsalt_seek(u, list, 5000));
    take_nothing(u, 200);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK_U64(stats.received, 39);
    CHECK_U64(stats.state[UNSALT_STATE_RELEASED], before);
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], 39 - before);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    CHECK(stats.conserved);
    rd_kafka_topic_partition_list_destroy(list);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* ---- a part of a lane set goes */

/* Takes until all 100 are in, of which some stand in the buffer. Returns how many those are. */
static uint64_t fill_buffer(unsalt_t *u, struct takings *takings) {
    unsalt_stats_t stats;
    do {
        CHECK(take(u, takings, takings->count + 1, 15000));
        unsalt_stats(u, &stats, sizeof(stats));
    } while (stats.received < 100 && takings->count < 90);
    CHECK_U64(stats.received, 100);
    return stats.state[UNSALT_STATE_READY];
}

/* No number comes before a lower one that was not handed out yet. Returns how many different ones came. */
static uint64_t check_first_times(const struct takings *takings) {
    uint64_t highest = 0;
    for (size_t i = 0; i < takings->count; i++) {
        CHECK_THAT(takings->got[i].seq <= highest + 1, "%" PRIu64 " after %" PRIu64, takings->got[i].seq, highest);
        highest = takings->got[i].seq > highest ? takings->got[i].seq : highest;
    }
    return highest;
}

/*
 * One lane of two is sought back: what was ready of both is handed out first, in order, then the lane comes again. A
 * repeated read of one lane has gaps, which are given up.
 */
TEST(pause, seek_of_one_lane_keeps_the_order) {
    struct mock mock;
    struct takings takings = {0};
    unsalt_stats_t stats;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_topic(&mock, "t.lane-1", 1);
    for (uint64_t seq = 1; seq <= 100; seq++) {
        mock_send(&mock, seq % 2 ? "t.lane-1" : "t", 0, "s", seq, 2);
    }
    mock_flush(&mock);
    unsalt_t *u = mock_consumer(&mock, "g", "layout=topics partitions=1 lanes=2 ack=manual gap.timeout.ms=50", NULL);
    rd_kafka_topic_partition_list_t *list = one(0, RD_KAFKA_OFFSET_BEGINNING);
    rd_kafka_topic_partition_list_add(list, "t.lane-1", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(!unsalt_assign(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    uint64_t ready = fill_buffer(u, &takings);
    CHECK(ready >= 10);
    size_t before = takings.count;
    list = one(0, RD_KAFKA_OFFSET_BEGINNING);
    CHECK(!unsalt_seek(u, list, 5000));
    rd_kafka_topic_partition_list_destroy(list);
    CHECK(take(u, &takings, 100, 15000));
    CHECK_U64(check_order(&takings, 1), 100);
    for (size_t i = before; i < 100; i++) {
        bool of_sought = takings.got[i].seq % 2 == 0;
        CHECK_I64(unsalt_ack(u, takings.got[i].token),
                  of_sought ? RD_KAFKA_RESP_ERR__STATE : RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK(stats.conserved);
    CHECK(take(u, &takings, 150, 20000)); /* the lane again */
    for (size_t i = 100; i < 150; i++) {
        CHECK_U64(takings.got[i].seq, 2 * (i - 99));
    }
    CHECK_U64(check_first_times(&takings), 100);
    unsalt_stats(u, &stats, sizeof(stats));
    CHECK(stats.conserved);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* The whole set goes: nothing that was ready comes, and everything comes again. */
TEST(pause, seek_of_all_lanes_drops_what_is_ready) {
    struct mock mock;
    struct takings takings = {0}, again = {0};
    unsalt_t *u = reader(&mock, "");
    send_lanes(&mock, 1, 100);
    CHECK(fill_buffer(u, &takings) >= 10);
    rd_kafka_topic_partition_list_t *list = all(RD_KAFKA_OFFSET_BEGINNING);
    CHECK(!unsalt_seek(u, list, 5000));
    rd_kafka_topic_partition_list_destroy(list);
    CHECK(take(u, &again, 100, 15000));
    CHECK_U64(check_order(&again, 1), 100);
    takings_free(&takings);
    takings_free(&again);
    mock_done(u);
    mock_close(&mock);
}

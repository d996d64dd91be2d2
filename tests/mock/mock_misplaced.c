/* SPDX-License-Identifier: BSD-2-Clause */
/* A producer and a consumer that disagree about where lanes live: it is told, and not by gaps alone. */
#include <support/check.h>
#include <support/mockcluster.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 60)

static unsalt_stats_t stats_of(unsalt_t *u) {
    unsalt_stats_t stats;
    unsalt_stats(u, &stats, sizeof stats);
    return stats;
}

/* Reads `want` records of topic t, all of which were sent. */
static unsalt_stats_t read_all(struct mock *mock, const char *settings, struct heard *heard, int partitions,
                               size_t want) {
    struct takings takings = {0};
    unsalt_t *u = mock_consumer(mock, "g", settings, heard);
    CHECK(!mock_assign(u, "t", partitions, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(u, &takings, want, 15000));
    unsalt_stats_t stats = stats_of(u);
    takings_free(&takings);
    mock_done(u);
    return stats;
}

/* The producer spreads over the partitions of one topic, as `hash` does; the consumer takes the topic for lane 0's. */
SLOW_TEST(misplaced, hash_read_as_lane_topics) {
    struct mock mock;
    struct heard heard;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 3);
    for (uint64_t seq = 1; seq <= 30; seq++)
        mock_send(&mock, "t", (int32_t)(seq % 3), "hot", seq, 3);
    mock_flush(&mock);
    unsalt_stats_t stats =
        read_all(&mock, "layout=topics lane.topics=t partitions=3 colocation=report gap.timeout.ms=50", &heard, 3, 30);
    CHECK_U64(stats.misplaced, 30); /* 20 of other lanes, and all of more lanes than one */
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_MISPLACED), 5); /* the 1st, 2nd, 4th, 8th and 16th */
    const char *text = heard.text[UNSALT_EVENT_MISPLACED];
    CHECK_THAT(strstr(text, "session \"hot\"") && strstr(text, "of 3, and was read where") && strstr(text, "t [") &&
                   strstr(text, "16 such records so far") && strstr(text, "layout=topics, partitions=3"), "%s", text);
    mock_close(&mock);
}

/* Blocks of two at the producer, of three here. */
SLOW_TEST(misplaced, blocks_of_another_size) {
    struct mock mock;
    struct heard heard;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 6);
    for (uint64_t seq = 1; seq <= 20; seq++)
        mock_send(&mock, "t", 2 + (int32_t)(seq % 2), "hot", seq, 2);
    mock_send(&mock, "t", 5, "cold", 1, 1); /* may stand anywhere in its block */
    mock_flush(&mock);
    unsalt_stats_t stats = read_all(&mock, "layout=block partitions=6 lanes=3 gap.timeout.ms=50", &heard, 6, 21);
    CHECK_U64(stats.misplaced, 20); /* lane 0 in the third place, lane 1 in the first */
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_MISPLACED), 5);
    const char *text = heard.text[UNSALT_EVENT_MISPLACED];
    CHECK_THAT(strstr(text, "belongs") && strstr(text, "layout=block, partitions=6"), "%s", text);
    mock_close(&mock);
}

SLOW_TEST(misplaced, blocks_of_the_same_size_are_right) {
    struct mock mock;
    struct heard heard;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 6);
    for (uint64_t seq = 1; seq <= 20; seq++)
        mock_send(&mock, "t", 3 + (int32_t)(seq % 2), "hot", seq, 2); /* two lanes of at most three */
    mock_flush(&mock);
    unsalt_stats_t stats = read_all(&mock, "layout=block partitions=6 lanes=3", &heard, 6, 20);
    CHECK_U64(stats.misplaced, 0);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_MISPLACED), 0);
    mock_close(&mock);
}

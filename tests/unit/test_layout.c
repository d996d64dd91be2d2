/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/layout.h>
#include <stdio.h>
#include <support/check.h>

static const struct us_lane_topics four = {NULL, 4};
static const char *const names[] = {"pay", "pay.hot.a", "pay.hot.b"};
static const struct us_lane_topics named = {names, 3};

static void check_topic(const struct us_lane_topics *topics, const char *topic, const char *base, uint16_t lane) {
    struct us_topic_lane at = us_topic_lane(topics, topic);
    CHECK_BYTES(at.base, at.base_len, base, strlen(base));
    CHECK_U64(at.lane, lane);
}

TEST(layout, lane_topics_by_rule) {
    char name[64];
    CHECK_U64(us_lane_topic(&four, "orders", 0, name, sizeof name), 6);
    CHECK_STR(name, "orders");
    CHECK_U64(us_lane_topic(&four, "orders", 3, name, sizeof name), 13);
    CHECK_STR(name, "orders.lane-3");
    CHECK_U64(us_lane_topic(&four, "orders", 3, name, 14), 13);
    CHECK_U64(us_lane_topic(&four, "orders", 3, name, 13), 0);
}

TEST(layout, lane_topics_by_name) {
    char name[64];
    CHECK_U64(us_lane_topic(&named, "whatever", 2, name, sizeof name), 9);
    CHECK_STR(name, "pay.hot.b");
    CHECK_U64(us_lane_topic(&named, "whatever", 3, name, sizeof name), 0);
}

TEST(layout, a_topic_tells_its_lane) {
    check_topic(&four, "orders", "orders", 0);
    check_topic(&four, "orders.lane-1", "orders", 1);
    check_topic(&four, "orders.lane-3", "orders", 3);
    check_topic(&four, "orders.lane-1.lane-2", "orders.lane-1", 2);
    check_topic(&named, "pay", "pay", 0);
    check_topic(&named, "pay.hot.b", "pay", 2);
    check_topic(&named, "pay.lane-1", "pay.lane-1", 0);
}

TEST(layout, what_only_looks_like_a_lane_topic) {
    static const char *const topics[] = {"orders.lane-4",  "orders.lane-0",     "orders.lane-01", "orders.lane-",
                                         "orders.lane-1x", "orders.lane-65537", "orders.lane--1", ".lane-1",
                                         "orders.lane-99999999999"};
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        check_topic(&four, topics[i], topics[i], 0);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

TEST(layout, complete_lane_sets_miss_nothing) {
    static const struct us_owned sorted[] = {{"o", 1}, {"o", 5},        {"o.lane-1", 1}, {"o.lane-1", 5},
                                             {"o.lane-2", 1}, {"o.lane-2", 5}, {"o.lane-3", 1}, {"o.lane-3", 5}};
    static const struct us_owned mixed[] = {{"pay.hot.b", 0}, {"pay", 0}, {"other", 7}, {"pay.hot.a", 0}};
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, 7, sorted, COUNT(sorted), NULL, 0), 0);
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &named, 7, mixed, COUNT(mixed), NULL, 0), 0);
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, 7, NULL, 0, NULL, 0), 0);
}

TEST(layout, a_missing_lane_is_named_once) {
    /* Partition 5 lacks lane 0 and lane 2; the order of the list must not matter. */
    static const struct us_owned owned[] = {{"o.lane-3", 5}, {"o", 1},        {"o.lane-1", 5},
                                            {"o.lane-1", 1}, {"o.lane-3", 1}, {"o.lane-2", 1}};
    struct us_missing missing[4];
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, 7, owned, COUNT(owned), missing, 4), 2);
    CHECK_STR(missing[0].topic, "o");
    CHECK_I64(missing[0].partition, 5);
    CHECK_STR(missing[1].topic, "o.lane-2");
    CHECK_I64(missing[1].partition, 5);
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, 7, owned, COUNT(owned), missing, 1), 2);
}

TEST(layout, hash_needs_every_partition_of_a_topic) {
    static const struct us_owned owned[] = {{"a", 2}, {"b", 0}, {"a", 0}, {"b", 1}, {"b", 2}, {"b", 3}};
    struct us_missing missing[4];
    CHECK_U64(us_layout_missing(US_LAYOUT_HASH, &four, 4, owned, COUNT(owned), missing, 4), 2);
    CHECK_STR(missing[0].topic, "a");
    CHECK_I64(missing[0].partition, 1);
    CHECK_I64(missing[1].partition, 3);
    CHECK_U64(us_layout_missing(US_LAYOUT_HASH, &four, 3, &owned[1], 1, missing, 4), 2);
}

TEST(layout, sorted_and_unsorted_lists_agree) {
    enum { N = 200 };
    static char topics[4][32];
    struct us_owned owned[4 * N], reversed[4 * N];
    size_t n = 0;
    for (uint16_t lane = 0; lane < 4; lane++) {
        us_lane_topic(&four, "t", lane, topics[lane], sizeof topics[lane]);
        for (int32_t p = 0; p < N; p++)
            if ((p + lane) % 7 != 0)
                owned[n++] = (struct us_owned){topics[lane], p};
    }
    for (size_t i = 0; i < n; i++)
        reversed[i] = owned[n - 1 - i];
    size_t missing = 4 * N - n;
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, N, owned, n, NULL, 0), missing);
    CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &four, N, reversed, n, NULL, 0), missing);
    CHECK_U64(us_layout_missing(US_LAYOUT_HASH, &four, N, owned, n, NULL, 0), missing);
    CHECK_U64(us_layout_missing(US_LAYOUT_HASH, &four, N, reversed, n, NULL, 0), missing);
}

TEST(layout, many_partitions_are_checked_quickly) {
    enum { N = 2000, LANES = 16 };
    static char topics[LANES][32];
    static struct us_owned owned[N * LANES];
    const struct us_lane_topics sixteen = {NULL, LANES};
    size_t n = 0;
    for (uint16_t lane = 0; lane < LANES; lane++)
        us_lane_topic(&sixteen, "t", lane, topics[lane], sizeof topics[lane]);
    /* In the order of strcmp(): lane-1, lane-10, .., lane-15, lane-2, .. */
    static const int order[LANES] = {0, 1, 10, 11, 12, 13, 14, 15, 2, 3, 4, 5, 6, 7, 8, 9};
    for (int i = 0; i < LANES; i++)
        for (int32_t p = 0; p < N; p++)
            owned[n++] = (struct us_owned){topics[order[i]], p};
    for (int round = 0; round < 20; round++)
        CHECK_U64(us_layout_missing(US_LAYOUT_TOPICS, &sixteen, N, owned, n, NULL, 0), 0);
}

/* ---- block */

static const struct us_lane_topics three = {NULL, 3};

TEST(layout, a_session_stays_in_its_block) {
    for (uint32_t hash = 0; hash < 1000; hash++) {
        int32_t cold = us_layout_block(hash, 18, 3, 1, 0);
        CHECK(cold >= 0 && cold < 18);
        for (uint16_t lane = 0; lane < 3; lane++) {
            CHECK_I64(us_layout_block(hash, 18, 3, 3, lane), cold - cold % 3 + lane);
            CHECK(lane == 2 || us_layout_block(hash, 18, 3, 2, lane) == cold - cold % 3 + lane);
        }
    }
    CHECK_I64(us_layout_block(INT32_MAX, 1, 1, 1, 0), 0);
}

TEST(layout, cold_sessions_use_all_partitions_of_a_block) {
    unsigned count[18] = {0};
    for (uint32_t hash = 0; hash < 18000; hash++)
        count[us_layout_block(hash * 2654435761u >> 1, 18, 3, 1, 0)]++;
    for (int i = 0; i < 18; i++)
        CHECK_THAT(count[i] > 800 && count[i] < 1200, "partition %d has %u", i, count[i]);
}

static void check_members(int32_t partitions, uint16_t block, const char *wanted) {
    char text[64];
    CHECK_U64(us_layout_block_members(partitions, block, text, sizeof text), strlen(wanted));
    CHECK_STR(text, wanted);
}

TEST(layout, members_that_keep_blocks_whole) {
    char text[8];
    check_members(18, 3, "1, 2, 3, 6");
    check_members(7, 1, "1, 7");
    check_members(4, 4, "1");
    check_members(60, 5, "1, 2, 3, 4, 6, 12");
    CHECK_U64(us_layout_block_members(18, 3, text, sizeof text), 7);
    CHECK_STR(text, "1, 2, 3");
    CHECK_U64(us_layout_block_members(18, 3, text, 1), 0);
    CHECK_STR(text, "");
}

TEST(layout, whole_blocks_miss_nothing) {
    static const struct us_owned owned[] = {{"a", 5}, {"a", 3}, {"a", 4}, {"b", 0}, {"b", 1}, {"b", 2}};
    CHECK_U64(us_layout_missing(US_LAYOUT_BLOCK, &three, 18, owned, COUNT(owned), NULL, 0), 0);
    CHECK_U64(us_layout_missing(US_LAYOUT_BLOCK, &three, 18, NULL, 0, NULL, 0), 0);
    /* The topic has grown: nobody's lanes are there. */
    static const struct us_owned beyond[] = {{"a", 18}, {"a", 20}};
    CHECK_U64(us_layout_missing(US_LAYOUT_BLOCK, &three, 18, beyond, COUNT(beyond), NULL, 0), 0);
}

TEST(layout, a_cut_block_is_named_once) {
    static const struct us_owned owned[] = {{"a", 5}, {"a", 4}, {"a", 6}, {"b", 15}, {"a", 8}};
    struct us_missing missing[8];
    CHECK_U64(us_layout_missing(US_LAYOUT_BLOCK, &three, 18, owned, COUNT(owned), missing, 8), 4);
    CHECK(strcmp(missing[0].topic, "a") == 0 && missing[0].partition == 3);
    CHECK(strcmp(missing[1].topic, "a") == 0 && missing[1].partition == 7);
    CHECK(strcmp(missing[2].topic, "b") == 0 && missing[2].partition == 16);
    CHECK(strcmp(missing[3].topic, "b") == 0 && missing[3].partition == 17);
}

/* What `range` does: the first N mod M members get one partition more. Whole blocks exactly for the valid numbers. */
TEST(layout, range_keeps_blocks_whole_for_those_numbers_only) {
    for (int32_t members = 1; members <= 20; members++) {
        bool whole = true;
        int32_t next = 0;
        for (int32_t member = 0; member < members; member++) {
            struct us_owned owned[18];
            size_t n = 0;
            for (int32_t left = 18 / members + (member < 18 % members); left > 0; left--)
                owned[n++] = (struct us_owned){"a", next++};
            whole &= us_layout_missing(US_LAYOUT_BLOCK, &three, 18, owned, n, NULL, 0) == 0;
        }
        CHECK_THAT(whole == (members == 1 || members == 2 || members == 3 || members == 6), "%d members", members);
    }
}

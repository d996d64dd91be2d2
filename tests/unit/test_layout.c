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

/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>
#include <kafka/producer_lanes.h>
#include <stdio.h>
#include <support/check.h>

#define MOST 8

static struct us_lane_map map_of(enum us_layout layout, uint16_t lanes, int32_t partitions) {
    struct us_lane_map map = {.layout = layout, .lanes = lanes, .partitions = partitions};
    CHECK(us_salt_pattern_parse("#<k>", &map.pattern));
    return map;
}

/* The partition that the Java client gives to the key session#salt. */
static int32_t salted(const char *session, int salt, int32_t partitions) {
    char key[64];
    int n = snprintf(key, sizeof key, "%s#%d", session, salt);
    return us_murmur2_partition(key, (size_t)n, partitions);
}

/* Where the lanes of a session of S lanes are, if its table was made for `most`. */
static void fill(const struct us_lane_map *map, const char *session, uint16_t most, uint16_t lanes,
                 int32_t partitions[MOST]) {
    int32_t entries[MOST];
    struct us_lane_table table = {.entries = entries, .wanted = us_lane_map_entries(map, most)};
    if (table.wanted)
        table.found = us_lane_map_probe(map, session, strlen(session), table.wanted, entries);
    for (uint16_t lane = 0; lane < lanes; lane++)
        partitions[lane] =
            us_lane_map_partition(map, us_lane_map_hash(session, strlen(session)), &table, lanes, lane);
}

TEST(producer_lanes, lanes_of_a_session_are_distinct_partitions) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 8, 32);
    int collisions = 0;
    for (int i = 0; i < 1000; i++) {
        char session[16];
        int32_t at[MOST];
        snprintf(session, sizeof session, "s%d", i);
        fill(&map, session, 8, 8, at);
        CHECK_I64(at[0], salted(session, 0, 32));
        for (int lane = 0; lane < 8; lane++) {
            CHECK(at[lane] >= 0 && at[lane] < 32);
            for (int other = 0; other < lane; other++)
                CHECK_THAT(at[lane] != at[other], "%s: lanes %d and %d collide", session, lane, other);
        }
        collisions += at[7] != salted(session, 7, 32);
    }
    CHECK(collisions > 300); /* so often a salt had to be passed over: the test means something */
}

TEST(producer_lanes, the_kth_distinct_salt_is_lane_k) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 5, 7);
    for (int i = 0; i < 100; i++) {
        char session[16];
        int32_t at[MOST];
        int found = 0;
        bool used[7] = {false};
        snprintf(session, sizeof session, "s%d", i);
        fill(&map, session, 5, 5, at);
        for (int salt = 0; found < 5; salt++) {
            int32_t partition = salted(session, salt, 7);
            if (!used[partition])
                CHECK_I64(at[found++], partition);
            used[partition] = true;
        }
    }
}

/* Whatever S a session had before, its lanes are where another producer with this S alone puts them. */
TEST(producer_lanes, a_table_for_many_lanes_serves_fewer) {
    for (int32_t n = 1; n <= 12; n++) {
        const struct us_lane_map map = map_of(US_LAYOUT_HASH, MOST, n);
        for (int i = 0; i < 50; i++) {
            char session[16];
            snprintf(session, sizeof session, "s%d", i);
            for (uint16_t lanes = 1; lanes <= MOST; lanes++) {
                int32_t alone[MOST], shared[MOST];
                fill(&map, session, lanes, lanes, alone);
                fill(&map, session, MOST, lanes, shared);
                CHECK_BYTES(shared, lanes * sizeof *alone, alone, lanes * sizeof *alone);
            }
        }
    }
}

TEST(producer_lanes, too_few_partitions_are_shared_in_turn) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 8, 3);
    int32_t at[MOST];
    CHECK_U64(us_lane_map_entries(&map, 8), 3);
    fill(&map, "room", 8, 8, at);
    CHECK_I64(at[0] + at[1] + at[2], 3); /* 0, 1 and 2 in some order */
    for (int lane = 3; lane < 8; lane++)
        CHECK_I64(at[lane], at[lane % 3]);
}

TEST(producer_lanes, one_lane_and_lane_topics_go_by_the_session) {
    const struct us_lane_map hash = map_of(US_LAYOUT_HASH, 8, 32), topics = map_of(US_LAYOUT_TOPICS, 8, 32);
    int32_t at[MOST];
    CHECK_U64(us_lane_map_entries(&hash, 1), 0);
    CHECK_U64(us_lane_map_entries(&hash, 2), 2);
    CHECK_U64(us_lane_map_entries(&topics, 8), 0);
    fill(&hash, "room", 8, 1, at);
    CHECK_I64(at[0], us_murmur2_partition("room", 4, 32));
    fill(&topics, "room", 8, 8, at);
    for (int lane = 0; lane < 8; lane++)
        CHECK_I64(at[lane], us_murmur2_partition("room", 4, 32));
}

TEST(producer_lanes, blocks) {
    const struct us_lane_map map = map_of(US_LAYOUT_BLOCK, 4, 12);
    CHECK_U64(us_lane_map_entries(&map, 4), 0);
    for (int i = 0; i < 100; i++) {
        char session[16];
        int32_t at[MOST];
        snprintf(session, sizeof session, "s%d", i);
        int32_t block = (int32_t)(us_lane_map_hash(session, strlen(session)) % 3);
        for (uint16_t lanes = 1; lanes <= 4; lanes++) {
            fill(&map, session, 4, lanes, at);
            for (int lane = 0; lane < lanes; lane++)
                CHECK_I64(at[lane] / 4, block);
            for (int lane = 0; lanes > 1 && lane < lanes; lane++)
                CHECK_I64(at[lane], block * 4 + lane);
        }
    }
}

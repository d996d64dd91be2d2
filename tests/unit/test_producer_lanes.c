/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>
#include <kafka/producer_lanes.h>
#include <stdio.h>
#include <support/check.h>

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

TEST(producer_lanes, lanes_of_a_session_are_distinct_partitions) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 8, 32);
    int collisions = 0;
    for (int i = 0; i < 1000; i++) {
        char session[16];
        int32_t entries[8];
        snprintf(session, sizeof session, "s%d", i);
        us_lane_map_fill(&map, session, strlen(session), entries);
        CHECK_I64(entries[0], salted(session, 0, 32));
        for (int lane = 0; lane < 8; lane++) {
            CHECK(entries[lane] >= 0 && entries[lane] < 32);
            for (int other = 0; other < lane; other++)
                CHECK_THAT(entries[lane] != entries[other], "%s: lanes %d and %d collide", session, lane, other);
        }
        collisions += entries[7] != salted(session, 7, 32);
    }
    CHECK(collisions > 300); /* so often a salt had to be passed over: the test means something */
}

TEST(producer_lanes, the_kth_distinct_salt_is_lane_k) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 5, 7);
    for (int i = 0; i < 100; i++) {
        char session[16];
        int32_t entries[5];
        int found = 0;
        bool used[7] = {false};
        snprintf(session, sizeof session, "s%d", i);
        us_lane_map_fill(&map, session, strlen(session), entries);
        for (int salt = 0; found < 5; salt++) {
            int32_t partition = salted(session, salt, 7);
            if (!used[partition])
                CHECK_I64(entries[found++], partition);
            used[partition] = true;
        }
    }
}

TEST(producer_lanes, too_few_partitions_are_shared_in_turn) {
    const struct us_lane_map map = map_of(US_LAYOUT_HASH, 8, 3);
    int32_t entries[8];
    us_lane_map_fill(&map, "room", 4, entries);
    CHECK_I64(entries[0] + entries[1] + entries[2], 3); /* 0, 1 and 2 in some order */
    for (int lane = 3; lane < 8; lane++)
        CHECK_I64(entries[lane], entries[lane % 3]);
}

TEST(producer_lanes, one_lane_and_lane_topics_go_by_the_session) {
    const struct us_lane_map one = map_of(US_LAYOUT_HASH, 1, 32), topics = map_of(US_LAYOUT_TOPICS, 8, 32);
    int32_t entries[8] = {-1, -1};
    CHECK_U64(us_lane_map_entries(&one), 1);
    CHECK_U64(us_lane_map_entries(&topics), 1);
    us_lane_map_fill(&one, "room", 4, entries);
    CHECK_I64(entries[0], us_murmur2_partition("room", 4, 32));
    us_lane_map_fill(&topics, "room", 4, entries);
    CHECK_I64(entries[0], us_murmur2_partition("room", 4, 32));
    CHECK_I64(entries[1], -1);
}

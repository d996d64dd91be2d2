/* SPDX-License-Identifier: BSD-2-Clause */
/* Which records stand where their lane doesn't belong. */
#include <core/misplaced.h>
#include <support/check.h>

TEST(misplaced, a_lane_topic_carries_its_lane) {
    for (int32_t topic = 0; topic < 4; topic++) {
        struct us_misplaced_at at = {US_LAYOUT_TOPICS, 12, 4, topic, 7};
        CHECK_I64(us_misplaced_lane_here(&at), topic);
        for (uint16_t lanes = 1; lanes <= 4; lanes++)
            for (uint16_t lane = 0; lane < lanes; lane++)
                CHECK_I64(us_misplaced(&at, lanes, lane), lane == topic ? US_MISPLACED_NOT : US_MISPLACED_LANE);
    }
}

/* One lane: anywhere in its block. Of more: at their place in it. What a topic has grown by is in no block. */
TEST(misplaced, a_partition_of_a_block_carries_its_lane) {
    for (int32_t partition = 0; partition < 14; partition++) {
        struct us_misplaced_at at = {US_LAYOUT_BLOCK, 12, 4, -1, partition};
        CHECK_I64(us_misplaced(&at, 1, 0), US_MISPLACED_NOT);
        for (uint16_t lane = 0; lane < 3; lane++)
            CHECK_I64(us_misplaced(&at, 3, lane),
                      partition >= 12 || partition % 4 == lane ? US_MISPLACED_NOT : US_MISPLACED_LANE);
    }
}

TEST(misplaced, more_lanes_than_there_may_be) {
    struct us_misplaced_at topics = {US_LAYOUT_TOPICS, 12, 4, 1, 0}, block = {US_LAYOUT_BLOCK, 12, 4, -1, 5};
    CHECK_I64(us_misplaced(&topics, 4, 1), US_MISPLACED_NOT);
    CHECK_I64(us_misplaced(&topics, 5, 1), US_MISPLACED_LANES);
    CHECK_I64(us_misplaced(&block, 5, 1), US_MISPLACED_LANES);
    CHECK_I64(us_misplaced(&block, 5, 4), US_MISPLACED_LANE);
    block.partition = 13;
    CHECK_I64(us_misplaced(&block, 5, 4), US_MISPLACED_LANES);
}

TEST(misplaced, by_hash_any_lane_may_be_anywhere) {
    struct us_misplaced_at at = {US_LAYOUT_HASH, 12, 4, -1, 3};
    for (uint16_t lane = 0; lane < 9; lane++)
        CHECK_I64(us_misplaced(&at, 9, lane), US_MISPLACED_NOT);
    CHECK_I64(us_misplaced_lane_here(&at), -1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where lanes live (DESIGN 3), as values in, values out: which lane set and lane a partition is, which partition
 * a lane of a session is, and whether an assignment keeps lane sets together.
 */
#ifndef US_CORE_LAYOUT_H
#define US_CORE_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum us_layout { US_LAYOUT_HASH, US_LAYOUT_TOPICS, US_LAYOUT_BLOCK };

/*
 * The lane topics of a base topic: lane 0 is the base itself, lane k is "<base>.lane-<k>", unless names are given
 * (lane.topics: a comma-separated list, entry k = lane k of the one base topic that is read).
 */
struct us_lane_topics {
    const char *const *names; /* NULL: by the rule above; else `count` names */
    uint16_t count;           /* lanes (S or the most there may be), >= 1 */
};

/* Writes the name of lane k's topic. Returns its length; 0 if it needs more than `size` bytes with its final 0. */
size_t us_lane_topic(const struct us_lane_topics *topics, const char *base, uint16_t lane, char *name, size_t size);

/*
 * The reverse: the lane of a topic and the length of its base name (a prefix of `topic`, or names[0]). A topic that
 * is no lane topic is lane 0 of itself. A lane number at or above `count` makes no lane topic.
 */
struct us_topic_lane {
    const char *base; /* into `topic`, or names[0] */
    size_t base_len;
    uint16_t lane;
};
struct us_topic_lane us_topic_lane(const struct us_lane_topics *topics, const char *topic);

/*
 * Layout block: N partitions are N / B blocks of B neighbours, B the most lanes there may be. `hash` is murmur2 of the
 * session id without its sign bit; it picks the block. Lane k of a session of S > 1 lanes is the block's partition k. A
 * session of one lane goes to any partition of its block, by what is left of the hash: all of them on the block's first
 * partition would be skew made by ourselves. 1 <= lanes <= B, lane < lanes, N a multiple of B.
 */
int32_t us_layout_block(uint32_t hash, int32_t partitions, uint16_t block, uint16_t lanes, uint16_t lane);
/*
 * Among how many members the range assignor can divide N partitions without cutting a block of B: the divisors of
 * N / B, as text "1, 2, 3, 6". Terminated, cut at the end if `size` is too small, which is at least 1. Returns the
 * length written.
 */
size_t us_layout_block_members(int32_t partitions, uint16_t block, char *text, size_t size);

/* One owned partition. */
struct us_owned {
    const char *topic;
    int32_t partition;
};
/* One partition that is missing from an assignment. */
struct us_missing {
    char topic[256];
    int32_t partition;
};
/*
 * Co-location: every partition of a lane set of which one is owned must be owned too. Layout topics: the lane set
 * of partition i is partition i of all `count` lane topics. Layout hash: all partitions 0..partitions-1 of the
 * topic. Layout block: of those, each `count` neighbours, beginning at a multiple of `count`. Returns how many are
 * missing in all; the first `max` are written. Quick when `owned` is sorted by topic (strcmp) and partition, as
 * rd_kafka_topic_partition_list_sort() leaves it; right in any order.
 */
size_t us_layout_missing(enum us_layout layout, const struct us_lane_topics *topics, int32_t partitions,
                         const struct us_owned *owned, size_t n, struct us_missing *missing, size_t max);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which partition each lane of a session goes to. Layout `hash`: several salts may hash to one partition, so salts
 * 0, 1, 2.. are probed until there are `lanes` distinct partitions: lane k is the k-th of them. If the topic has
 * fewer, lanes share them in turn. A session of one lane, and layout `topics`: the partition of the session id.
 */
#ifndef US_KAFKA_PRODUCER_LANES_H
#define US_KAFKA_PRODUCER_LANES_H
#include <codec/salt.h>
#include <core/layout.h>

/* The most lanes a producer spreads a session over. */
#define US_PRODUCER_LANES_MAX 1024

struct us_lane_map {
    enum us_layout layout;
    struct us_salt_pattern pattern;
    uint16_t lanes;     /* 1..US_PRODUCER_LANES_MAX */
    int32_t partitions; /* N >= 1 */
};

/* Number of entries that us_lane_map_fill() writes. */
uint16_t us_lane_map_entries(const struct us_lane_map *map);
/* session: borrowed, 1..4096 bytes. Any thread. */
void us_lane_map_fill(const struct us_lane_map *map, const void *session, size_t session_len, int32_t *entries);
#endif

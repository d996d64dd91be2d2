/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which partition each lane of a session goes to, for any number of lanes S up to the most there may be.
 *
 * Layout `hash`, S = 1: the partition of the session id. S > 1: several salts may hash to one partition, so salts
 * 0, 1, 2.. are probed until there are S distinct partitions: lane k goes to the k-th of them, so that those of a
 * smaller S are the first of a larger one's. If the topic has fewer than S, lanes share them in turn.
 * Layout `topics`: the partition of the session id in each lane topic. Layout `block`: core/layout.h.
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
    uint16_t lanes;     /* the most there may be, 1..US_PRODUCER_LANES_MAX */
    int32_t partitions; /* N >= 1; with layout block a multiple of `lanes` */
};

/* The partitions that a session's salts lead to, in the order of probing; not needed for S = 1. */
struct us_lane_table {
    int32_t *entries;
    uint16_t wanted; /* distinct ones that were looked for */
    uint16_t found;  /* <= wanted, >= 1 if wanted */
};

/* How many entries a session of S lanes needs: 0 = none, it goes without a table. 1 <= lanes <= map->lanes. */
uint16_t us_lane_map_entries(const struct us_lane_map *map, uint16_t lanes);
/* Probes for `wanted` >= 1 partitions, which are written to `entries`; returns how many there are. */
uint16_t us_lane_map_probe(const struct us_lane_map *map, const void *session, size_t session_len, uint16_t wanted,
                           int32_t *entries);
/* The hash of a session id that us_lane_map_partition() wants: murmur2 without its sign bit. */
uint32_t us_lane_map_hash(const void *session, size_t session_len);
/* lane < lanes; `table` has at least us_lane_map_entries(map, lanes) entries wanted. Any thread. */
int32_t us_lane_map_partition(const struct us_lane_map *map, uint32_t hash, const struct us_lane_table *table,
                              uint16_t lanes, uint16_t lane);
#endif

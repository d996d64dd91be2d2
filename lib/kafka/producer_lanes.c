/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>
#include <kafka/producer_lanes.h>

/* The longest session id and the longest salt. */
#define KEY_MAX (4096 + 40)

uint16_t us_lane_map_entries(const struct us_lane_map *map) {
    return map->layout == US_LAYOUT_HASH ? map->lanes : 1;
}

static bool contains(const int32_t *entries, uint16_t count, int32_t partition) {
    for (uint16_t i = 0; i < count; i++)
        if (entries[i] == partition)
            return true;
    return false;
}

/* Returns how many distinct partitions were found, at least one. */
static uint16_t probe(const struct us_lane_map *map, const void *session, size_t session_len, int32_t *entries) {
    char key[KEY_MAX];
    uint16_t count = 0;
    uint16_t wanted = map->partitions < map->lanes ? (uint16_t)map->partitions : map->lanes;
    for (uint32_t salt = 0; count < wanted && salt < UINT16_MAX; salt++) {
        size_t size = us_salt_join(&map->pattern, session, session_len, (uint16_t)salt, key, sizeof key);
        int32_t partition = us_murmur2_partition(key, size, map->partitions);
        if (!contains(entries, count, partition))
            entries[count++] = partition;
    }
    return count;
}

void us_lane_map_fill(const struct us_lane_map *map, const void *session, size_t session_len, int32_t *entries) {
    if (us_lane_map_entries(map) == 1) {
        entries[0] = us_murmur2_partition(session, session_len, map->partitions);
        return;
    }
    uint16_t found = probe(map, session, session_len, entries);
    for (uint16_t lane = found; lane < map->lanes; lane++)
        entries[lane] = entries[lane % found];
}

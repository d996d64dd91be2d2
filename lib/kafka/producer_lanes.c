/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>
#include <kafka/producer_lanes.h>

/* The longest session id and the longest salt. */
#define KEY_MAX (4096 + 40)

uint16_t us_lane_map_entries(const struct us_lane_map *map, uint16_t lanes) {
    if (map->layout != US_LAYOUT_HASH || lanes == 1)
        return 0;
    return map->partitions < lanes ? (uint16_t)map->partitions : lanes;
}

static bool contains(const int32_t *entries, uint16_t count, int32_t partition) {
    for (uint16_t i = 0; i < count; i++)
        if (entries[i] == partition)
            return true;
    return false;
}

uint16_t us_lane_map_probe(const struct us_lane_map *map, const void *session, size_t session_len, uint16_t wanted,
                           int32_t *entries) {
    char key[KEY_MAX];
    uint16_t count = 0;
    for (uint32_t salt = 0; count < wanted && salt < UINT16_MAX; salt++) {
        size_t size = us_salt_join(&map->pattern, session, session_len, (uint16_t)salt, key, sizeof key);
        int32_t partition = us_murmur2_partition(key, size, map->partitions);
        if (!contains(entries, count, partition))
            entries[count++] = partition;
    }
    return count;
}

uint32_t us_lane_map_hash(const void *session, size_t session_len) {
    return us_murmur2(session, session_len) & 0x7fffffffu;
}

int32_t us_lane_map_partition(const struct us_lane_map *map, uint32_t hash, const struct us_lane_table *table,
                              uint16_t lanes, uint16_t lane) {
    uint16_t entries = us_lane_map_entries(map, lanes);
    if (map->layout == US_LAYOUT_BLOCK)
        return us_layout_block(hash, map->partitions, map->lanes, lanes, lane);
    if (!entries)
        return (int32_t)(hash % (uint32_t)map->partitions);
    return table->entries[lane % (table->found < entries ? table->found : entries)];
}

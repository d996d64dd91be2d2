/* SPDX-License-Identifier: BSD-2-Clause */
/* The first number that each source (partition, and lane where it is known) has shown of a session or run. */
#include <core/engine.h>

bool us_shown_reserve(struct us_shown *shown, const struct unsalt_mem *mem) {
    if (shown->count < shown->capacity) {
        return true;
    }
    uint32_t capacity = shown->capacity ? 2 * shown->capacity : 4;
    struct us_shown_entry *entries = us_realloc_array(mem, shown->entries, capacity, sizeof(*entries));
    if (!entries) {
        return false;
    }
    shown->entries = entries;
    shown->capacity = capacity;
    return true;
}

/* One entry for each pair of partition and lane; both are bounded by what is assigned. */
#define ENTRIES_MAX 4096

void us_shown_add(struct us_shown *shown, const unsalt_core_in_t *in) {
    for (uint32_t i = 0; i < shown->count; i++) {
        const struct us_shown_entry *entry = &shown->entries[i];
        if (entry->part == in->part && entry->has_lane == (in->lanes > 0) &&
            (in->lanes == 0 || entry->lane == in->lane)) {
            return;
        }
    }
    if (shown->count < ENTRIES_MAX) {
        shown->entries[shown->count++] = (struct us_shown_entry){
            .first = in->seq, .part = in->part, .lane = in->lane, .has_lane = in->lanes > 0};
    }
}

const struct us_shown_entry *us_shown_part(const struct us_shown *shown, uint32_t part) {
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].part == part) {
            return &shown->entries[i];
        }
    }
    return NULL;
}

const struct us_shown_entry *us_shown_lane(const struct us_shown *shown, uint16_t lane) {
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].has_lane && shown->entries[i].lane == lane) {
            return &shown->entries[i];
        }
    }
    return NULL;
}

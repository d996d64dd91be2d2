/* SPDX-License-Identifier: BSD-2-Clause */
/* What each source (partition, and lane where it is known) has shown of a session or run: first number, and `una`. */
#include <core/engine.h>

bool us_shown_reserve(struct us_shown *shown, const struct unsalt_mem *mem) {
    struct us_shown_entry *entries =
        us_array_room(mem, shown->entries, &shown->capacity, shown->count, 4, sizeof(*entries));
    shown->entries = entries ? entries : shown->entries;
    return entries != NULL;
}

/*
 * One entry for each pair of partition and lane. Lanes of a greater S than US_LANE_MODE_MAX are asked for by nobody, so
 * a producer that claims ever other ones doesn't make the list long.
 */
#define ENTRIES_MAX 1024

void us_shown_add(struct us_shown *shown, const unsalt_core_in_t *in) {
    uint16_t lanes = in->lanes <= US_LANE_MODE_MAX ? in->lanes : 0;
    for (uint32_t i = 0; i < shown->count; i++) {
        struct us_shown_entry *entry = &shown->entries[i];
        if (entry->part == in->part && entry->lanes == lanes && (lanes == 0 || entry->lane == in->lane)) {
            entry->una = in->una > entry->una ? in->una : entry->una;
            return;
        }
    }
    if (shown->count < ENTRIES_MAX) {
        shown->entries[shown->count++] = (struct us_shown_entry){
            .first = in->seq, .una = in->una, .part = in->part, .lane = in->lane, .lanes = lanes};
    }
}

void us_shown_forget(struct us_shown *shown, uint32_t part) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].part != part) {
            shown->entries[kept++] = shown->entries[i];
        }
    }
    shown->count = kept;
}

const struct us_shown_entry *us_shown_part(const struct us_shown *shown, uint32_t part) {
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].part == part) {
            return &shown->entries[i];
        }
    }
    return NULL;
}

bool us_shown_past(const struct us_shown *shown, uint32_t part, uint64_t number) {
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].part == part && shown->entries[i].una >= number) {
            return true;
        }
    }
    return false;
}

const struct us_shown_entry *us_shown_lane(const struct us_shown *shown, uint16_t lane, uint16_t lanes) {
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].lanes == lanes && shown->entries[i].lane == lane) {
            return &shown->entries[i];
        }
    }
    return NULL;
}

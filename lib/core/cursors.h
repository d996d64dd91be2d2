/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursors of sessions that are not in memory, remembered compactly: 40 bytes each, in an open-addressing table of
 * bounded size, found by two independent seeded hashes (95 bits) of (set, id) instead of the id. When it is full
 * the insertion fails, and the caller notes that the set forgot something.
 */
#ifndef US_CORE_CURSORS_H
#define US_CORE_CURSORS_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_cursor {
    uint64_t epoch, cursor;
    uint64_t floor; /* below it nobody knows any more which numbers were given up */
};
struct us_cursor_entry {
    uint64_t hash;
    struct us_cursor cursor;
    uint32_t check; /* second hash, odd; 0 = free */
    uint32_t set;   /* lane set, any value */
};
struct us_cursors {
    struct us_cursor_entry *entries;
    uint32_t capacity, count, max; /* capacity: power of two, or 0; count <= max, and 3/4 of capacity */
    uint64_t seed;
};

/* max: most entries, 0 (nothing is remembered) .. 2^30. seed: secret. Allocates nothing. */
void us_cursors_init(struct us_cursors *cursors, uint32_t max, uint64_t seed);
/* Frees the table; empty and usable again. */
void us_cursors_destroy(struct us_cursors *cursors, const struct unsalt_mem *mem);
/*
 * Remembers. An entry of that session is replaced. Returns false if it was not remembered: full or out of memory;
 * nothing changed then (replacing can't fail).
 */
bool us_cursors_put(struct us_cursors *cursors, const struct unsalt_mem *mem, uint32_t set, const void *id,
                    uint32_t id_len, const struct us_cursor *cursor);
/* Takes the entry out. Returns false if there is none; then *cursor is untouched. */
bool us_cursors_take(struct us_cursors *cursors, uint32_t set, const void *id, uint32_t id_len,
                     struct us_cursor *cursor);
/* Drops every entry of a set. O(capacity). */
void us_cursors_drop_set(struct us_cursors *cursors, uint32_t set);
#endif

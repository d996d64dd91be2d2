/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear probing without tombstones, as in base/seqset.c. */
#include <base/hash.h>
#include <core/cursors.h>

#define FIRST_CAPACITY 16u
#define MAX_CAPACITY (1u << 31)
#define CHECK_SEED UINT64_C(0xd1b54a32d192ed03) /* makes the second hash differ from the first */
#define SET_STEP UINT64_C(0x9e3779b97f4a7c15)   /* spreads the sets over the seeds */

void us_cursors_init(struct us_cursors *cursors, uint32_t max, uint64_t seed) {
    *cursors = (struct us_cursors){.max = max, .seed = seed};
}

void us_cursors_destroy(struct us_cursors *cursors, const struct unsalt_mem *mem) {
    us_free(mem, cursors->entries);
    us_cursors_init(cursors, cursors->max, cursors->seed);
}

static struct us_cursor_entry entry_of(const struct us_cursors *cursors, uint32_t set, const void *id,
                                       uint32_t id_len) {
    uint64_t seed = cursors->seed + set * SET_STEP;
    return (struct us_cursor_entry){.hash = us_hash(id, id_len, seed),
                                    .check = (uint32_t)us_hash(id, id_len, seed ^ CHECK_SEED) | 1,
                                    .set = set};
}

static bool same(const struct us_cursor_entry *a, const struct us_cursor_entry *b) {
    return a->hash == b->hash && a->check == b->check && a->set == b->set;
}

/* Slot of an entry, or the free slot where it would go. The table has a free slot. */
static uint32_t find(const struct us_cursors *cursors, const struct us_cursor_entry *entry) {
    uint32_t mask = cursors->capacity - 1;
    uint32_t at = (uint32_t)entry->hash & mask;
    while (cursors->entries[at].check && !same(&cursors->entries[at], entry))
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct us_cursors *cursors, const struct unsalt_mem *mem) {
    uint32_t capacity = cursors->capacity ? cursors->capacity : FIRST_CAPACITY / 2;
    if (capacity >= MAX_CAPACITY)
        return false;
    struct us_cursors bigger = *cursors;
    bigger.capacity = capacity * 2;
    bigger.entries = us_calloc(mem, bigger.capacity, sizeof *bigger.entries);
    if (!bigger.entries)
        return false;
    for (uint32_t i = 0; i < cursors->capacity; i++)
        if (cursors->entries[i].check)
            bigger.entries[find(&bigger, &cursors->entries[i])] = cursors->entries[i];
    us_free(mem, cursors->entries);
    *cursors = bigger;
    return true;
}

bool us_cursors_put(struct us_cursors *cursors, const struct unsalt_mem *mem, uint32_t set, const void *id,
                    uint32_t id_len, const struct us_cursor *cursor) {
    struct us_cursor_entry entry = entry_of(cursors, set, id, id_len);
    entry.cursor = *cursor;
    uint32_t at = cursors->capacity ? find(cursors, &entry) : 0;
    if (cursors->capacity && cursors->entries[at].check) {
        cursors->entries[at] = entry;
        return true;
    }
    if (cursors->count >= cursors->max)
        return false;
    if (((uint64_t)cursors->count + 1) * 4 > (uint64_t)cursors->capacity * 3) {
        if (!grow(cursors, mem))
            return false;
        at = find(cursors, &entry);
    }
    cursors->entries[at] = entry;
    cursors->count++;
    return true;
}

/* Frees a slot and closes the run behind it. */
static void free_slot(struct us_cursors *cursors, uint32_t hole) {
    uint32_t mask = cursors->capacity - 1;
    for (uint32_t at = (hole + 1) & mask; cursors->entries[at].check; at = (at + 1) & mask) {
        /* An entry may fill the hole unless its home lies behind the hole. */
        uint32_t way = (at - (uint32_t)cursors->entries[at].hash) & mask;
        if (way >= ((at - hole) & mask)) {
            cursors->entries[hole] = cursors->entries[at];
            hole = at;
        }
    }
    cursors->entries[hole] = (struct us_cursor_entry){0};
    cursors->count--;
}

bool us_cursors_take(struct us_cursors *cursors, uint32_t set, const void *id, uint32_t id_len,
                     struct us_cursor *cursor) {
    if (!cursors->count)
        return false;
    struct us_cursor_entry entry = entry_of(cursors, set, id, id_len);
    uint32_t at = find(cursors, &entry);
    if (!cursors->entries[at].check)
        return false;
    *cursor = cursors->entries[at].cursor;
    free_slot(cursors, at);
    return true;
}

void us_cursors_drop_set(struct us_cursors *cursors, uint32_t set) {
    /* free_slot may fill the slot from behind, so it is looked at again; what it fills from beyond the end was seen. */
    for (uint32_t i = 0; i < cursors->capacity && cursors->count;)
        if (cursors->entries[i].check && cursors->entries[i].set == set)
            free_slot(cursors, i);
        else
            i++;
}

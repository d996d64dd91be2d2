/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/skips.h>
#include <string.h>

#define FIRST_CAPACITY 4u

static inline uint64_t above(uint64_t last) {
    return last == UINT64_MAX ? last : last + 1;
}

static void close_up(struct us_skips *skips, uint32_t at) {
    skips->count--;
    memmove(&skips->ranges[at], &skips->ranges[at + 1], (skips->count - at) * sizeof *skips->ranges);
}

static void forget_oldest(struct us_skips *skips) {
    uint64_t floor = above(skips->ranges[0].last);
    if (skips->floor < floor)
        skips->floor = floor;
    close_up(skips, 0);
}

/* Room for one more range? Takes memory for it if that may help. */
static bool room(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max) {
    if (skips->count >= max)
        return false;
    if (skips->count < skips->capacity)
        return true;
    uint32_t capacity = skips->capacity ? skips->capacity : FIRST_CAPACITY / 2;
    capacity = capacity < max / 2 ? capacity * 2 : max;
    struct us_range *ranges = us_realloc_array(mem, skips->ranges, capacity, sizeof *ranges);
    if (!ranges)
        return false;
    skips->ranges = ranges;
    skips->capacity = capacity;
    return true;
}

void us_skips_add(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t first, uint64_t last) {
    if (skips->count && above(skips->ranges[skips->count - 1].last) == first) {
        skips->ranges[skips->count - 1].last = last;
        return;
    }
    if (!room(skips, mem, max)) {
        if (!skips->count) {
            skips->floor = skips->floor < above(last) ? above(last) : skips->floor;
            return;
        }
        while (skips->count && skips->count >= max)
            forget_oldest(skips);
        if (skips->count == skips->capacity)
            forget_oldest(skips);
    }
    skips->ranges[skips->count++] = (struct us_range){first, last};
}

/* Index of the last range that begins at or below `seq`; count when there is none. */
static uint32_t find(const struct us_skips *skips, uint64_t seq) {
    uint32_t low = 0, high = skips->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (skips->ranges[middle].first <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : skips->count;
}

/* Cuts `seq` out of the middle of range `at`. */
static void split(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint32_t at, uint64_t seq) {
    if (!room(skips, mem, max)) {
        if (at == 0) { /* the lower half is the oldest */
            skips->floor = seq;
            skips->ranges[0].first = seq + 1;
            return;
        }
        forget_oldest(skips);
        at--;
    }
    memmove(&skips->ranges[at + 1], &skips->ranges[at], (skips->count - at) * sizeof *skips->ranges);
    skips->count++;
    skips->ranges[at].last = seq - 1;
    skips->ranges[at + 1].first = seq + 1;
}

bool us_skips_take(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t seq) {
    if (seq < skips->floor)
        return true;
    uint32_t at = find(skips, seq);
    if (at == skips->count || skips->ranges[at].last < seq)
        return false;
    struct us_range *range = &skips->ranges[at];
    if (range->first == range->last)
        close_up(skips, at);
    else if (range->first == seq)
        range->first++;
    else if (range->last == seq)
        range->last--;
    else
        split(skips, mem, max, at, seq);
    return true;
}

bool us_skips_has(const struct us_skips *skips, uint64_t seq) {
    if (seq < skips->floor)
        return true;
    uint32_t at = find(skips, seq);
    return at < skips->count && seq <= skips->ranges[at].last;
}

void us_skips_destroy(struct us_skips *skips, const struct unsalt_mem *mem) {
    us_free(mem, skips->ranges);
    *skips = (struct us_skips){0};
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session knows about the numbers below its cursor: the ranges that were skipped, sorted, at most `max`
 * of them; and a floor below which nothing is known any more. The oldest range is forgotten first, by raising
 * the floor over it. DESIGN 4: a number below the cursor whose skip was forgotten counts as late.
 */
#ifndef US_BASE_SKIPS_H
#define US_BASE_SKIPS_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_range {
    uint64_t first, last; /* both included */
};

/* All zero: everything is known, nothing was skipped. */
struct us_skips {
    struct us_range *ranges;
    uint32_t count, capacity;
    uint64_t floor; /* nothing is known about numbers below */
};

/*
 * Remembers a skipped range above all earlier ones (first > every number remembered; merged when adjacent). Never
 * fails: when `max` (>= 1) is reached or memory is out, the oldest range, or this one, is forgotten by raising the
 * floor.
 */
void us_skips_add(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t first, uint64_t last);

/*
 * Was `seq` (below the cursor) skipped, or is that unknown? Then it is taken out, so that a second copy counts as
 * a duplicate, and true is returned (below the floor nothing can be taken out: true again and again). Splitting a
 * range over `max`, or without memory, forgets the oldest range, which is the lower half if the first one is split.
 */
bool us_skips_take(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t seq);

/* The same question without taking it out. */
bool us_skips_has(const struct us_skips *skips, uint64_t seq);

/* Frees the ranges and forgets them, the floor too. */
void us_skips_destroy(struct us_skips *skips, const struct unsalt_mem *mem);
#endif

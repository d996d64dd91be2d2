/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of a run whose record was turned away for lack of room (budget policy `dead-letter`), so that nobody waits
 * for them: kept as progressions, since a lane that is full turns away every S-th number. Bounded: of too many the
 * highest is forgotten, whose numbers then wait for the clock like any other.
 */
#ifndef US_CORE_TURNED_AWAY_H
#define US_CORE_TURNED_AWAY_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

/* first, first + step, .. last; a single number has no step yet: 0. */
struct us_away {
    uint64_t first, last, step;
};

struct us_away_list {
    struct us_away *runs; /* apart, in no order */
    uint32_t count, capacity;
};

/*
 * Enters a number, at most `max` >= 1 progressions. lanes: S, the step of a lane; 0 = unknown. Never fails: without
 * memory the number is forgotten.
 */
void us_away_add(struct us_away_list *list, const struct unsalt_mem *mem, uint32_t max, uint64_t number,
                 uint16_t lanes);
/* The lowest number >= `from` that was turned away; UINT64_MAX: none. O(progressions). */
uint64_t us_away_next(const struct us_away_list *list, uint64_t from);
static inline bool us_away_has(const struct us_away_list *list, uint64_t number) {
    return number != UINT64_MAX && us_away_next(list, number) == number; /* no number, and none found */
}
/* `number` was turned away: the end of the stretch of such numbers that begins there; `last` at most. */
uint64_t us_away_upto(const struct us_away_list *list, uint64_t number, uint64_t last);
/* Forgets the numbers below. */
void us_away_passed(struct us_away_list *list, uint64_t cursor);
void us_away_destroy(struct us_away_list *list, const struct unsalt_mem *mem);
#endif

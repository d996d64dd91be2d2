/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursors of sessions that left the memory, and which of them are forgotten when there are too many: the oldest. Two
 * generations of a table: what is remembered goes to the young one; when half of all that may be remembered stands
 * there, it becomes the old one, and what was old is forgotten. So the last half is always remembered, and a
 * flood of ids that are never seen again pushes itself out.
 */
#ifndef US_CORE_REMEMBERED_H
#define US_CORE_REMEMBERED_H
#include <core/cursors.h>

struct us_remembered {
    struct us_cursors young, old;
    uint32_t max;   /* young.count + old.count <= max */
    uint64_t turns; /* how often young became old. What was remembered at turn t is forgotten at turn t + 2 */
};

/* max, seed: as us_cursors_init(). Allocates nothing. */
void us_remembered_init(struct us_remembered *remembered, uint32_t max, uint64_t seed);
/* Frees both tables. */
void us_remembered_destroy(struct us_remembered *remembered, const struct unsalt_mem *mem);
/* Remembers; an earlier cursor of that session is replaced. Returns false if max is 0 or out of memory. */
bool us_remembered_put(struct us_remembered *remembered, const struct unsalt_mem *mem, uint32_t set, const void *id,
                       uint32_t id_len, const struct us_cursor *cursor);
/* Takes the cursor out. Returns false if there is none; then *cursor is untouched. */
bool us_remembered_take(struct us_remembered *remembered, uint32_t set, const void *id, uint32_t id_len,
                        struct us_cursor *cursor);
/* Puts back what was just taken; can't fail. */
void us_remembered_put_back(struct us_remembered *remembered, const struct unsalt_mem *mem, uint32_t set,
                            const void *id, uint32_t id_len, const struct us_cursor *cursor);
/* Drops every cursor of a set. O(capacity). */
void us_remembered_drop_set(struct us_remembered *remembered, uint32_t set);
static inline uint32_t us_remembered_count(const struct us_remembered *remembered) {
    return remembered->young.count + remembered->old.count;
}
#endif

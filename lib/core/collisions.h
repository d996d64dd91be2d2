/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collisions (DESIGN 3): with layout `hash` two lanes of a session may fall on one partition, so that spreading it
 * gains less than it seems. Seen by remembering which lane of a session a partition carried last, in a direct-mapped
 * table of fixed size: another session may take an entry's place, so a collision may be missed, or a session be counted
 * again, but none is invented. An entry belongs to (session, partition, lanes): a session whose S changes has its
 * lanes elsewhere, and that is no collision.
 */
#ifndef US_CORE_COLLISIONS_H
#define US_CORE_COLLISIONS_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

#define US_COLLISIONS_BITS 12 /* 4,096 entries */
#define US_COLLISIONS_TOLD 512

/* Zeroed memory is an empty table. */
struct us_collisions {
    uint64_t *entries; /* owned; upper 48 bits: whose; lower 16: the lane that came last. 0 = free */
    uint64_t *told;    /* owned; hashes of sessions that were counted. 0 = free */
    uint64_t count;    /* sessions counted so far */
};

bool us_collisions_init(struct us_collisions *c, const struct unsalt_mem *mem); /* false: out of memory, nothing kept */
void us_collisions_destroy(struct us_collisions *c, const struct unsalt_mem *mem);

/*
 * A record of lane `lane` of a session of `lanes` > 1 lanes came from a partition.
 *   session  hash of its id, seeded: ids come from outside.
 *   other    set when counted: the lane that the partition carried before.
 * Returns true if that is a collision of a session that wasn't counted yet; `count` has grown by one.
 */
bool us_collisions_saw(struct us_collisions *c, uint64_t session, uint32_t partition, uint16_t lanes, uint16_t lane,
                       uint16_t *other);
#endif

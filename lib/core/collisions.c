/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/collisions.h>

/* 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4): spreads small numbers. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)
#define LANE_BITS 16
#define TAKEN ((uint64_t)1 << 63)

bool us_collisions_init(struct us_collisions *c, const struct unsalt_mem *mem) {
    *c = (struct us_collisions){
        .entries = us_calloc(mem, (size_t)1 << US_COLLISIONS_BITS, sizeof *c->entries),
        .told = us_calloc(mem, US_COLLISIONS_TOLD, sizeof *c->told),
    };
    if (c->entries && c->told)
        return true;
    us_collisions_destroy(c, mem);
    return false;
}

void us_collisions_destroy(struct us_collisions *c, const struct unsalt_mem *mem) {
    us_free(mem, c->entries);
    us_free(mem, c->told);
    *c = (struct us_collisions){0};
}

/* Is it the first time that the session is counted? */
static bool is_new(struct us_collisions *c, uint64_t session) {
    uint64_t *told = &c->told[session % US_COLLISIONS_TOLD];
    if (*told == (session | TAKEN))
        return false;
    *told = session | TAKEN;
    c->count++;
    return true;
}

bool us_collisions_saw(struct us_collisions *c, uint64_t session, uint32_t partition, uint16_t lanes, uint16_t lane,
                       uint16_t *other) {
    uint64_t whose = session ^ ((uint64_t)partition << LANE_BITS | lanes) * SPREAD;
    uint64_t *entry = &c->entries[whose >> (64 - US_COLLISIONS_BITS)]; /* the upper bits depend on all of the lower */
    uint64_t before = *entry, now = whose << LANE_BITS | TAKEN | lane;
    if (before == now)
        return false;
    *entry = now;
    if (before >> LANE_BITS != now >> LANE_BITS || !is_new(c, session))
        return false;
    *other = (uint16_t)before;
    return true;
}

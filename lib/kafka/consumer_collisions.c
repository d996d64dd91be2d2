/* SPDX-License-Identifier: BSD-2-Clause */
/* Layout hash: a session whose lanes share a partition is counted, and told at the 1st, 2nd, 4th, 8th, ... one. */
#include <base/hash.h>
#include <kafka/consumer.h>

static void tell(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in, uint16_t other) {
    unsalt_event_t event = us_event_of(UNSALT_EVENT_COLLISION, p, in);
    event.first = other;
    event.last = in->lane;
    event.count = u->collisions.count;
    us_event_raise(u, &event);
}

void us_collision_look(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in) {
    uint16_t other;
    if (in->lanes < 2) {
        return;
    }
    uint64_t hash = us_hash(in->session, in->session_len, u->collisions_seed ^ p->set);
    if (!us_collisions_saw(&u->collisions, hash, (uint32_t)p->partition, in->lanes, in->lane, &other)) {
        return;
    }
    u->own.collisions = u->collisions.count;
    if ((u->collisions.count & (u->collisions.count - 1)) == 0) {
        tell(u, p, in, other);
    }
}

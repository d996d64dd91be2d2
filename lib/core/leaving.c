/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that leave the core otherwise than by a session's turn: revoked ones, and suspects that turned out to be
 * copies. The next pulls give them out first. Room is made before anything is changed, so that adding can't fail.
 */
#include <core/engine.h>

bool us_leaving_reserve(struct unsalt_core *core, uint32_t more) {
    struct us_leaving *leaving = &core->leaving;
    uint64_t need = (uint64_t)leaving->count + leaving->promised + more;
    if (need <= leaving->capacity) {
        return true;
    }
    uint64_t capacity = leaving->capacity ? leaving->capacity : 64;
    while (capacity < need) {
        capacity *= 2;
    }
    if (capacity > UINT32_MAX) {
        return false;
    }
    unsalt_core_out_t *records = us_calloc(&core->mem, capacity, sizeof(*records));
    if (!records) {
        return false;
    }
    for (uint32_t i = 0; i < leaving->count; i++) {
        records[i] = leaving->records[(leaving->first + i) % leaving->capacity];
    }
    us_free(&core->mem, leaving->records);
    leaving->records = records;
    leaving->capacity = (uint32_t)capacity;
    leaving->first = 0;
    return true;
}

const unsalt_core_out_t *us_leaving_add(struct unsalt_core *core, const struct us_held *held, unsalt_state_t state) {
    struct us_leaving *leaving = &core->leaving;
    struct us_part *part = &core->parts[held->part];
    unsalt_core_out_t *out = &leaving->records[(leaving->first + leaving->count++) % leaving->capacity];
    uint64_t ticket = part->frontier.base + (uint32_t)(held->ticket - (uint32_t)part->frontier.base);
    *out = (unsalt_core_out_t){
        .msg = held->msg,
        .seq = held->seq,
        .waited_ns = core->now - held->arrived,
        .ticket = ticket,
        .part = held->part,
        .generation = part->generation,
        .state = (uint16_t)state,
        .flags = held->flags,
        .lane = held->lane,
    };
    core->counters.state[UNSALT_STATE_HELD]--;
    core->counters.state[state]++;
    core->counters.held_bytes -= held->bytes;
    if (!unsalt_state_handed_out(state)) {
        us_frontier_ack(&part->frontier, ticket, NULL);
    }
    return out;
}

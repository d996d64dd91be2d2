/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `stalled`: an owed partition has shown nothing, and its horizon has not moved, for gap_stall_max_ns of
 * time in which it was being read. The reading clock runs only between unsalt_core_reading(true) and (false), and
 * a paused partition never stalls: a slow application isn't a dead leader. gap_wait_max_ns bounds the wait
 * whatever happens.
 */
#include <core/engine.h>

static uint64_t reading_clock(const struct unsalt_core *core) {
    return core->reading_ns + (core->reading_since == UNSALT_NEVER ? 0 : core->now - core->reading_since);
}

void unsalt_core_reading(unsalt_core_t *core, bool on, uint64_t now) {
    us_core_time(core, now);
    core->reading_ns = reading_clock(core);
    core->reading_since = on ? core->now : UNSALT_NEVER;
}

void unsalt_core_pause(unsalt_core_t *core, uint32_t index, bool paused, uint64_t now) {
    us_core_time(core, now);
    struct us_part *part = us_part_get(core, index);
    if (part && part->paused != paused) {
        part->paused = paused;
        us_stall_progress(core, part);
    }
}

void us_stall_progress(struct unsalt_core *core, struct us_part *part) {
    part->read_mark = reading_clock(core);
    part->stalled = false;
}

static bool can_stall(const struct unsalt_core *core, const struct us_part *part) {
    bool read = !part->paused && !part->refused;
    return us_part_owed(part) && read && !part->stalled && core->params.gap_stall_max_ns != UNSALT_NEVER;
}

/* How long a gap may wait for partitions beyond its due time; UNSALT_NEVER: for ever. */
static uint64_t patience(const struct unsalt_core *core) {
    const unsalt_core_params_t *params = &core->params;
    if (params->gap_wait_max_ns == UNSALT_NEVER || params->gap_wait_max_ns <= params->gap_timeout_ns) {
        return UNSALT_NEVER;
    }
    return params->gap_wait_max_ns - params->gap_timeout_ns;
}

void us_stall_check(struct unsalt_core *core) {
    uint64_t clock = reading_clock(core), extra = patience(core);
    if (!core->any_owed) {
        return;
    }
    core->any_owed = false;
    for (uint32_t i = 0; i < core->part_count; i++) {
        struct us_part *part = &core->parts[i];
        if (!us_part_owed(part)) {
            continue;
        }
        core->any_owed = true;
        if (can_stall(core, part) && clock - part->read_mark >= core->params.gap_stall_max_ns) {
            part->stalled = true;
            part->moved = core->any_moved = true;
        }
        if (extra < core->now) {
            us_wait_impatient(core, part, core->now - extra);
        }
    }
}

uint64_t us_stall_deadline(const struct unsalt_core *core) {
    uint64_t clock = reading_clock(core), extra = patience(core), earliest = UNSALT_NEVER;
    for (uint32_t i = 0; core->any_owed && i < core->part_count; i++) {
        const struct us_part *part = &core->parts[i];
        if (!us_part_owed(part)) {
            continue;
        }
        uint64_t at = UNSALT_NEVER;
        if (extra != UNSALT_NEVER && !us_heap_empty(&part->waiting)) {
            at = us_time_add(us_heap_key(&part->waiting), extra);
        }
        earliest = at < earliest ? at : earliest;
        if (can_stall(core, part) && core->reading_since != UNSALT_NEVER) {
            uint64_t used = clock - part->read_mark;
            uint64_t left = used < core->params.gap_stall_max_ns ? core->params.gap_stall_max_ns - used : 0;
            at = us_time_add(core->now, left);
            earliest = at < earliest ? at : earliest;
        }
    }
    return earliest;
}

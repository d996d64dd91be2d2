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
    if (part) {
        part->paused = paused;
        us_stall_progress(core, part);
    }
}

void us_stall_progress(struct unsalt_core *core, struct us_part *part) {
    part->read_mark = reading_clock(core);
    part->stalled = false;
}

static bool can_stall(const struct us_part *part) {
    return part->set && !part->paused && !part->stalled && !us_heap_empty(&part->waiting);
}

/* How long a gap may wait for partitions beyond its due time; UNSALT_NEVER: for ever. */
static uint64_t patience(const struct unsalt_core *core) {
    const unsalt_core_params_t *params = &core->params;
    if (params->gap_wait_max_ns == UNSALT_NEVER || params->gap_wait_max_ns <= params->gap_timeout_ns) {
        return UNSALT_NEVER;
    }
    return params->gap_wait_max_ns - params->gap_timeout_ns;
}

/* When the earliest wait of a partition runs out of patience. */
static uint64_t patience_ends(const struct unsalt_core *core, const struct us_part *part) {
    uint64_t extra = patience(core);
    if (!part->set || us_heap_empty(&part->waiting) || extra == UNSALT_NEVER) {
        return UNSALT_NEVER;
    }
    return us_time_add(us_heap_key(&part->waiting), extra);
}

void us_stall_check(struct unsalt_core *core) {
    uint64_t clock = reading_clock(core);
    for (uint32_t i = 0; i < core->part_count; i++) {
        struct us_part *part = &core->parts[i];
        bool stalled = can_stall(part) && core->params.gap_stall_max_ns != UNSALT_NEVER &&
                       clock - part->read_mark >= core->params.gap_stall_max_ns;
        if (stalled || patience_ends(core, part) <= core->now) {
            part->stalled = true;
            part->moved = core->any_moved = true;
        }
    }
}

uint64_t us_stall_deadline(const struct unsalt_core *core) {
    uint64_t clock = reading_clock(core), earliest = UNSALT_NEVER;
    for (uint32_t i = 0; i < core->part_count; i++) {
        const struct us_part *part = &core->parts[i];
        if (!part->set || us_heap_empty(&part->waiting)) {
            continue;
        }
        uint64_t at = patience_ends(core, part);
        earliest = at < earliest ? at : earliest;
        if (can_stall(part) && core->reading_since != UNSALT_NEVER && core->params.gap_stall_max_ns != UNSALT_NEVER) {
            uint64_t used = clock - part->read_mark;
            uint64_t left = used < core->params.gap_stall_max_ns ? core->params.gap_stall_max_ns - used : 0;
            at = us_time_add(core->now, left);
            earliest = at < earliest ? at : earliest;
        }
    }
    return earliest;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an unknown session starts (DESIGN 4, "First sequence of an unknown session"). `first` needs no state. Under
 * `seen` everything is held until each lane that may carry a lower number has shown the session or was read past
 * its first sight; then the lowest number held is the cursor.
 */
#include <core/engine.h>

struct us_start *us_start_alloc(struct unsalt_core *core, struct us_session *session) {
    struct us_start *start = us_calloc(&core->mem, 1, sizeof(*start));
    if (!start) {
        return NULL;
    }
    us_wait_init(&start->wait, US_WAIT_START, session);
    if (!us_wait_reserve(core)) {
        us_free(&core->mem, start);
        return NULL;
    }
    return start;
}

void us_start_begin(struct unsalt_core *core, struct us_session *session, struct us_start *start) {
    start->first_sight = core->now;
    session->start = start;
    session->special = (uint8_t)((session->special & ~US_SPECIAL_STARTED) | US_SPECIAL_STARTING);
}

void us_start_free(struct unsalt_core *core, struct us_start *start) {
    if (start) {
        us_wait_gone(core, &start->wait);
        us_free(&core->mem, start->shown.entries);
        us_free(&core->mem, start);
    }
}

static bool all_lanes_shown(const struct unsalt_core *core, const struct us_session *session) {
    if (session->lanes > US_LANE_MODE_MAX || !us_lanes_from_first(core, session)) {
        return false;
    }
    for (uint16_t lane = 0; lane < session->lanes && session->lanes > 1; lane++) {
        if (!us_shown_lane(&session->start->shown, lane)) {
            return false;
        }
    }
    return true;
}

static bool all_parts_shown(const struct us_session *session) {
    const struct us_set *set = session->set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (!us_shown_part(&session->start->shown, set->parts[i])) {
            return false;
        }
    }
    return true;
}

void us_start_now(struct unsalt_core *core, struct us_session *session) {
    uint64_t lowest = us_reasm_lowest(&session->reasm);
    if (!(session->special & US_SPECIAL_STARTING) || lowest == UNSALT_NO_SEQ) {
        return;
    }
    us_wait_cancel(core, &session->start->wait);
    session->special = (uint8_t)((session->special & ~US_SPECIAL_STARTING) | US_SPECIAL_STARTED);
    us_reasm_skip(&session->reasm, lowest);
    session->skips.floor = lowest == core->params.seq_first ? 0 : lowest;
    if (lowest != core->params.seq_first) {
        core->counters.starts_seen++;
        unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_START, session);
        event->first = event->last = lowest;
        event->waited_ns = core->now - session->start->first_sight;
    }
    us_ready(core, session);
}

bool us_starts_at_first(const struct unsalt_core *core, const struct us_set *set) {
    return core->params.start == UNSALT_START_FIRST ||
           (core->params.start == UNSALT_START_RESUME && !set->joined_middle && !set->forgot);
}

/* The set has become complete, and all of it was joined at its beginning: the session starts at seq_first after all. */
static void start_at_first(struct unsalt_core *core, struct us_session *session) {
    us_wait_cancel(core, &session->start->wait);
    session->special = (uint8_t)((session->special & ~US_SPECIAL_STARTING) | US_SPECIAL_STARTED);
    us_reasm_skip(&session->reasm, core->params.seq_first);
    if (us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
    } else {
        us_blocked(core, session);
    }
}

void us_start_look(struct unsalt_core *core, struct us_session *session) {
    struct us_start *start = session->start;
    if (!(session->special & US_SPECIAL_STARTING) || session->reasm.held == 0) {
        return;
    }
    if (!us_set_complete(session->set)) {
        /* It waits for set_complete() in partition.c; it stands in the clock to be found by a budget. */
        us_wait_at(core, &start->wait, us_time_add(start->first_sight, UNSALT_NEVER / 2));
        return;
    }
    if (!start->back && us_starts_at_first(core, session->set)) {
        start_at_first(core, session);
    } else if (start->first_seen || all_lanes_shown(core, session) || all_parts_shown(session)) {
        us_start_now(core, session);
    } else if (start->wait.where == US_WHERE_NONE) {
        start->wait.due = core->now;
        us_wait_for_parts(core, &start->wait);
    }
}

void us_start_saw(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    us_shown_add(&session->start->shown, in);
    if (session->special & US_SPECIAL_STARTING) {
        session->start->first_seen |= in->seq == core->params.seq_first || (in->flags & UNSALT_F_FIRST);
        us_start_look(core, session);
    }
    if (session->special & US_SPECIAL_STARTING) {
        us_wait_let_off(core, &session->start->wait, in->part);
    }
}

void us_start_done(struct unsalt_core *core, struct us_session *session) {
    const struct us_shown *shown = &session->start->shown;
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].first >= session->reasm.cursor) {
            return;
        }
    }
    if (!session->set->joined_middle || all_lanes_shown(core, session) || all_parts_shown(session)) {
        us_start_free(core, session->start);
        session->start = NULL;
        session->special = (uint8_t)(session->special & ~US_SPECIAL_STARTED);
    }
}

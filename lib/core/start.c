/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an unknown session starts (DESIGN 4, "First sequence of an unknown session"). `first` needs no state. Under
 * `seen` everything is held until each lane that may carry a lower number has shown the session or was read past
 * its first sight; then the lowest number held is the cursor. What a lane has shown counts if `una` doesn't tell that a
 * lower number was unresolved then, which may stand behind it.
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
    start->una = UNSALT_NO_SEQ;
    start->first_sight = core->now;
    start->caught_up = 0;
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

/* una: by a record that was stamped when every number below was resolved. */
static bool all_lanes_shown(const struct unsalt_core *core, const struct us_session *session, uint64_t una) {
    if (session->rule.lanes > US_LANE_MODE_MAX || !us_lanes_from_first(core, session)) {
        return false;
    }
    for (uint16_t lane = 0; lane < session->rule.lanes; lane++) {
        const struct us_shown_entry *entry = us_shown_lane(&session->start->shown, lane, session->rule.lanes);
        if (!entry || entry->una < una) {
            return false;
        }
    }
    return true;
}

static bool all_parts_shown(const struct us_session *session, uint64_t una) {
    const struct us_set *set = session->set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (!us_shown_past(&session->start->shown, set->parts[i], una)) {
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
           (core->params.start == UNSALT_START_RESUME && !set->joined_middle && !us_set_forgot(core, set));
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

/* Is a number below the lowest held one unresolved, as far as is known? It may come behind what its lane has shown. */
static bool awaits_more(const struct unsalt_core *core, const struct us_start *start, uint64_t lowest) {
    return start->una < lowest && core->params.gap_timeout_ns != UNSALT_NEVER;
}

/*
 * What stands in the logs now will be read. A number that is awaited has as long from first sight on as one behind a
 * gap: what stands in the logs then.
 */
static void wait_for_logs(struct unsalt_core *core, struct us_start *start, bool awaits) {
    uint64_t due = awaits ? us_time_add(start->first_sight, core->params.gap_timeout_ns) : core->now;
    if (due > core->now) {
        us_wait_at(core, &start->wait, due);
    } else {
        start->wait.due = due;
        us_wait_for_parts(core, &start->wait);
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
        return;
    }
    uint64_t lowest = us_reasm_lowest(&session->reasm);
    bool awaits = awaits_more(core, start, lowest);
    if (start->first_seen || all_lanes_shown(core, session, lowest) || all_parts_shown(session, lowest)) {
        us_start_now(core, session);
    } else if (start->wait.where == US_WHERE_NONE || (!awaits && start->wait.where == US_WHERE_CLOCK)) {
        wait_for_logs(core, start, awaits);
    }
}

/* A rule of lanes holds for since..the highest number that told it. The one that reaches least far is forgotten. */
static void note_rule(struct us_start *start, const unsalt_core_in_t *in) {
    struct us_lane_rule *rule = NULL;
    for (uint32_t i = 0; i < start->rule_count; i++) {
        if (start->rules[i].since == in->since && start->rules[i].lanes == in->lanes) {
            rule = &start->rules[i];
        }
    }
    if (!rule && start->rule_count < US_START_RULES) {
        rule = &start->rules[start->rule_count++];
        *rule = (struct us_lane_rule){.since = in->since, .lanes = in->lanes};
    }
    if (!rule) {
        rule = &start->rules[0];
        for (uint32_t i = 1; i < US_START_RULES; i++) {
            rule = start->rules[i].upto < rule->upto ? &start->rules[i] : rule;
        }
        *rule = (struct us_lane_rule){.since = in->since, .lanes = in->lanes};
    }
    rule->upto = in->seq > rule->upto ? in->seq : rule->upto;
}

void us_start_note(struct us_start *start, const unsalt_core_in_t *in) {
    us_shown_add(&start->shown, in);
    if (in->una != UNSALT_NO_SEQ && (start->una == UNSALT_NO_SEQ || in->una > start->una)) {
        start->una = in->una;
    }
    if (in->lanes) {
        note_rule(start, in);
    }
}

uint16_t us_start_lanes(const struct us_start *start, uint64_t first, uint64_t last) {
    for (uint32_t i = 0; i < start->rule_count; i++) {
        if (start->rules[i].since <= first && last <= start->rules[i].upto) {
            return start->rules[i].lanes;
        }
    }
    return 0;
}

void us_start_saw(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    us_start_note(session->start, in);
    if (session->special & US_SPECIAL_STARTING) {
        session->start->first_seen |= in->seq == core->params.seq_first || (in->flags & UNSALT_F_FIRST);
        us_start_look(core, session);
    }
    if (session->special & US_SPECIAL_STARTING) {
        struct us_wait *wait = &session->start->wait;
        if (wait->where < US_WHERE_CLOCK && !us_owed_by(core, wait, &core->parts[wait->where], wait->where)) {
            us_wait_let_off(core, wait, wait->where);
        }
    }
}

void us_start_done(struct unsalt_core *core, struct us_session *session) {
    const struct us_shown *shown = &session->start->shown;
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].first >= session->reasm.cursor) {
            return;
        }
    }
    if (!session->set->joined_middle || all_lanes_shown(core, session, 0) || all_parts_shown(session, 0)) {
        us_start_free(core, session->start);
        session->start = NULL;
        session->special = (uint8_t)(session->special & ~US_SPECIAL_STARTED);
    }
}

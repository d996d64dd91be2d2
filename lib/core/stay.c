/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session starts again since a partition of its set goes, or is sought; the others stay, and are not read again. What
 * they hold is shown to nobody once more, and what they have released, or what was given up, stands below the cursor.
 * So, of each partition that stays: it has shown the session, what comes of it is no lower than the cursor was, and
 * all below that is resolved. Else the start would wait for them, for ever if they are idle, and numbers that they have
 * released would be gaps that time alone closes, with an alarm.
 */
#include <core/engine.h>

/* Lanes whose partition the records show that are held. */
static uint32_t lanes_held(const struct us_reasm *reasm) {
    return reasm->held ? reasm->modulus : 0;
}

bool us_start_stay_reserve(struct unsalt_core *core, struct us_session *session, uint32_t parts) {
    struct us_shown *shown = &session->start->shown;
    uint32_t wanted = shown->count + parts + lanes_held(&session->reasm);
    if (wanted > shown->capacity) {
        struct us_shown_entry *entries = us_realloc_array(&core->mem, shown->entries, wanted, sizeof(*entries));
        if (!entries) {
            return false;
        }
        shown->entries = entries;
        shown->capacity = wanted;
    }
    return true;
}

static void add(struct us_shown *shown, uint64_t cursor, uint32_t part, uint16_t lane, uint16_t lanes) {
    shown->entries[shown->count++] =
        (struct us_shown_entry){.first = cursor, .una = cursor, .part = part, .lane = lane, .lanes = lanes};
}

/*
 * The lane mode's FIFOs are by lane, and their records say where a lane lives; but those of another S, which are filed
 * by their number all the same, say where another lane does.
 */
static void add_lanes(struct us_shown *shown, const struct us_reasm *reasm) {
    for (uint16_t lane = 0; lane < lanes_held(reasm); lane++) {
        const struct us_fifo *fifo = &reasm->lanes[lane].fifo;
        if (fifo->count && us_fifo_head_lane(fifo) == lane && !us_shown_lane(shown, lane, reasm->modulus)) {
            add(shown, reasm->cursor, us_fifo_head_part(fifo), lane, reasm->modulus);
        }
    }
}

/* The others: where the layout gives a partition one lane, as that, else as a partition. */
static void add_parts(const struct unsalt_core *core, struct us_shown *shown, const struct us_session *session,
                      uint32_t gone) {
    const struct us_set *set = session->set;
    uint16_t lanes = session->rule.vary || session->rule.lanes > US_LANE_MODE_MAX ? 0 : session->rule.lanes;
    for (uint32_t i = 0; i < set->part_count; i++) {
        uint32_t part = set->parts[i];
        int32_t lane = core->parts[part].lane;
        bool placed = lane >= 0 && lane < lanes;
        if (part != gone && !us_shown_part(shown, part)) {
            add(shown, session->reasm.cursor, part, placed ? (uint16_t)lane : 0, placed ? lanes : 0);
        }
    }
}

static void add_rule(struct us_start *start, const struct us_lane_rule *rule) {
    for (uint32_t i = 0; i < start->rule_count; i++) {
        if (start->rules[i].since == rule->since && start->rules[i].lanes == rule->lanes) {
            return;
        }
    }
    if (rule->lanes && !rule->vary && start->rule_count < US_START_RULES) {
        start->rules[start->rule_count++] = *rule;
    }
}

void us_start_stay(const struct unsalt_core *core, struct us_session *session, uint32_t part) {
    struct us_start *start = session->start;
    struct us_shown *shown = &start->shown;
    uint64_t cursor = session->reasm.cursor;
    us_shown_forget(shown, part);
    for (uint32_t i = 0; i < shown->count; i++) {
        struct us_shown_entry *entry = &shown->entries[i];
        if (entry->first < cursor) { /* else all that it has shown is held, and says as much as before */
            entry->first = entry->una = cursor;
        }
    }
    add_rule(start, &session->rule);
    if (session->special & (US_SPECIAL_STARTING | US_SPECIAL_STARTED)) {
        return; /* a partition that has shown nothing yet may have been joined above the cursor */
    }
    add_lanes(shown, &session->reasm);
    add_parts(core, shown, session, part);
}

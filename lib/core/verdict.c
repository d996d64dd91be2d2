/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict on a gap, and `timeout`: a gap that opened when the earliest held record arrived falls due gap_timeout_ns
 * later, and is given up once every partition that may carry it was read past the due time (gap.clock=horizon), or
 * at once (wall). One timer times all gaps of a session: everything held stands above the head gap, so the earliest
 * arrival among what is still held is when the next one opened.
 *
 * The timer is lazy: it isn't cancelled when a gap closes, and looks when it fires.
 */
#include <base/waits.h>
#include <core/engine.h>

/* Times of a gap that never falls due still tell gaps apart by age: for `overflow`. */
#define NEVER_DUE (UNSALT_NEVER / 2)

uint64_t us_gap_due_at(const struct unsalt_core *core, const struct us_session *session) {
    uint64_t timeout = core->params.gap_timeout_ns;
    if (core->params.gap_wait_max_ns < timeout) {
        timeout = core->params.gap_wait_max_ns;
    }
    if (timeout > NEVER_DUE) {
        timeout = NEVER_DUE;
    }
    uint64_t opened = us_reasm_oldest(&session->reasm);
    return us_time_add(opened > session->began ? opened : session->began, timeout);
}

/* Partition that carries the number, if the layout tells. */
static uint32_t part_of(const struct unsalt_core *core, const struct us_session *session, uint16_t lane) {
    const struct us_set *set = session->set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (core->parts[set->parts[i]].lane == lane) {
            return set->parts[i];
        }
    }
    return UINT32_MAX;
}

/* The partition that a stalled gap was waiting for; `otherwise` if none counts as stalled. */
static uint32_t silent_part(const struct unsalt_core *core, const struct us_session *session, uint32_t otherwise) {
    const struct us_set *set = session->set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        const struct us_part *part = &core->parts[set->parts[i]];
        if (part->stalled && part->horizon.reached < session->gap.due) {
            return set->parts[i];
        }
    }
    return otherwise;
}

/* How long a verdict of time was spoken after the gap fell due, and for which partition it waited last. */
static void note_overdue(struct unsalt_core *core, const struct us_session *session, unsalt_core_event_t *event) {
    uint64_t due = us_gap_due_at(core, session), overdue = core->now > due ? core->now - due : 0;
    event->overdue_ns = overdue;
    if (event->reason == UNSALT_GAP_RESUMED) {
        return; /* it may not have been due */
    }
    if (event->part == UINT32_MAX && us_part_get(core, session->gap.last)) {
        event->part = session->gap.last;
    }
    if (event->reason == UNSALT_GAP_STALLED) {
        event->part = silent_part(core, session, event->part);
        return;
    }
    core->counters.overdue_count[us_wait_bucket(overdue)]++;
    core->counters.overdue_sum_ns += overdue;
}

void us_give_up_to(struct unsalt_core *core, struct us_session *session, uint64_t last, unsalt_gap_reason_t reason) {
    uint64_t first = session->reasm.cursor;
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_GAP, session);
    event->reason = reason;
    event->first = first;
    event->last = last;
    uint64_t opened = us_reasm_oldest(&session->reasm);
    event->waited_ns = opened == UNSALT_NEVER ? 0 : core->now - opened; /* nothing held: nobody has waited */
    if (first == last && us_lanes_known(session, first, last)) {
        uint16_t lane = (uint16_t)(first % session->rule.lanes);
        event->lane = lane;
        event->part = part_of(core, session, lane);
    }
    if (reason == UNSALT_GAP_TIMEOUT || reason == UNSALT_GAP_STALLED || reason == UNSALT_GAP_RESUMED) {
        note_overdue(core, session, event);
    }
    core->counters.gaps[reason]++;
    uint64_t *numbers = &core->counters.gap_numbers[reason];
    *numbers = us_time_add(*numbers, last - first + 1);
    us_skips_add(&session->skips, &core->mem, core->params.skips_max, first, last);
    if (reason == UNSALT_GAP_PROVEN) {
        us_proof_given_up(core, session, first, last);
    }
    us_reasm_skip(&session->reasm, last + 1);
    session->after_gap = true;
    us_changed(core, session);
    if (session->redo) {
        us_redo_pass(core, session);
    }
    if (us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
    } else if (session->reasm.held) {
        us_wait_at(core, &session->gap, core->now); /* what follows is another gap */
    }
}

void us_give_up(struct unsalt_core *core, struct us_session *session, unsalt_gap_reason_t reason) {
    us_give_up_to(core, session, us_gap_last(session), reason);
}

void us_gap_due(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return;
    }
    if (session->special & US_SPECIAL_ENDING) {
        us_epoch_continue(core, session);
        return;
    }
    if (us_away_pass(core, session) || (session->special & US_SPECIAL_STARTING)) {
        return;
    }
    if (session->reasm.held == 0) {
        us_idle_awake(core, session);
        return;
    }
    if (!session->blocked) { /* the cursor has just passed what was turned away */
        us_blocked(core, session);
        return;
    }
    if (us_fate_known(core, session)) {
        return;
    }
    if (session->flushing && us_flush_wanted(core, session)) {
        us_give_up(core, session, UNSALT_GAP_FLUSH);
        return;
    }
    uint64_t due = us_gap_due_at(core, session);
    if (due > core->now) {
        us_wait_at(core, &session->gap, due);
    } else if (core->params.gap_clock == UNSALT_CLOCK_WALL) {
        us_give_up(core, session, UNSALT_GAP_TIMEOUT);
    } else if (core->params.gap_wait_max_ns <= core->params.gap_timeout_ns &&
               core->params.gap_wait_max_ns != UNSALT_NEVER) {
        us_give_up(core, session, UNSALT_GAP_STALLED);
    } else {
        session->gap.due = due;
        session->gap_cursor = session->reasm.cursor;
        us_wait_for_parts(core, &session->gap);
    }
}

/* Every partition that may carry the gap was read past its due time, or counts as stalled. */
void us_gap_evidence(struct unsalt_core *core, struct us_session *session, bool stalled) {
    if (!session->blocked || session->ready || (session->special & (US_SPECIAL_STARTING | US_SPECIAL_ENDING))) {
        us_idle_awake(core, session);
        return;
    }
    if (session->gap_cursor != session->reasm.cursor || us_gap_due_at(core, session) != session->gap.due) {
        us_gap_due(core, session); /* the gap that it was armed for is closed: this one is younger */
        return;
    }
    unsalt_gap_reason_t reason = stalled ? UNSALT_GAP_STALLED : UNSALT_GAP_TIMEOUT;
    if (session->special & US_SPECIAL_STARTED && us_resumed_likely(core, session, stalled)) {
        reason = UNSALT_GAP_RESUMED;
    } else if (session->special & US_SPECIAL_STARTED) {
        us_fate_first(core, session);
    }
    us_give_up(core, session, reason);
}

void us_blocked(struct unsalt_core *core, struct us_session *session) {
    if (!session->blocked) {
        session->blocked = true;
        core->counters.gaps_open++;
    }
    if (!us_events_room(core)) {
        us_wait_at(core, &session->gap, core->now); /* no verdict can be told now: it is looked at again at once */
        return;
    }
    if (us_fate_known(core, session)) {
        return;
    }
    if (session->flushing && us_flush_wanted(core, session)) {
        us_give_up(core, session, UNSALT_GAP_FLUSH);
        return;
    }
    bool other_gap = session->gap.where < US_WHERE_CLOCK && session->gap_cursor != session->reasm.cursor;
    if (session->gap.where == US_WHERE_NONE || other_gap) {
        us_wait_at(core, &session->gap, us_gap_due_at(core, session));
    }
}

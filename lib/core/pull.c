/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Releasing: sessions whose next record is held stand in a list and take turns of at most release_max records, so that
 * one filled gap in front of a million records doesn't starve the others. While others wait a turn is shorter, so that
 * a pull of a batch gets to them.
 */
#include <core/budget.h>

#define SHORT_TURN 64

void us_ready(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return;
    }
    if (session->blocked) {
        session->blocked = false;
        core->counters.gaps_open--;
    }
    session->ready = true;
    session->ready_prev = core->ready_last;
    session->ready_next = NULL;
    if (core->ready_last) {
        core->ready_last->ready_next = session;
    } else {
        core->ready_first = session;
    }
    core->ready_last = session;
}

void us_unready(struct unsalt_core *core, struct us_session *session) {
    if (!session->ready) {
        return;
    }
    if (session->ready_prev) {
        session->ready_prev->ready_next = session->ready_next;
    } else {
        core->ready_first = session->ready_next;
    }
    if (session->ready_next) {
        session->ready_next->ready_prev = session->ready_prev;
    } else {
        core->ready_last = session->ready_prev;
    }
    session->ready = false;
}

void us_settle(struct unsalt_core *core, struct us_session *session) {
    if (session->redo) {
        us_redo_pass(core, session);
        if (session->reasm.held && us_reasm_next_held(&session->reasm)) {
            us_ready(core, session);
            return;
        }
    }
    if (session->special & US_SPECIAL_ENDING) {
        us_epoch_continue(core, session);
        return;
    }
    if (session->special & US_SPECIAL_STARTED) {
        us_start_done(core, session);
    }
    if (session->later && session->later->over) {
        session->special |= US_SPECIAL_ENDING;
        us_epoch_continue(core, session);
        return;
    }
    if (us_away_pass(core, session)) {
        return;
    }
    if (session->reasm.held) {
        us_blocked(core, session);
        return;
    }
    if (session->blocked) {
        session->blocked = false;
        core->counters.gaps_open--;
    }
    if (session->last && us_session_is_idle(session) && us_events_room(core)) {
        us_session_retire(core, session);
    } else {
        us_idle_awake(core, session);
    }
}

/* Completes what the reassembly gave out. */
static void complete(struct unsalt_core *core, struct us_session *session, unsalt_core_out_t *out, size_t n) {
    const struct us_part *parts = core->parts;
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        const struct us_part *part = &parts[out[i].part];
        uint64_t base = part->frontier.base;
        out[i].ticket = base + (uint32_t)((uint32_t)out[i].ticket - (uint32_t)base);
        out[i].generation = part->generation;
        flags |= out[i].flags;
    }
    session->last |= (flags & UNSALT_F_LAST) != 0;
    for (size_t i = 0; core->params.cursors && i < n; i++) {
        us_handed_note(core, session, &out[i]);
    }
    if (n && session->after_gap) {
        out[0].flags |= UNSALT_OUT_AFTER_GAP;
        session->after_gap = false;
    }
    core->counters.state[UNSALT_STATE_HELD] -= n;
    core->counters.state[UNSALT_STATE_RELEASED] += n;
}

/* One turn of the session at the head of the list. */
static size_t turn(struct unsalt_core *core, struct us_session *session, unsalt_core_out_t *out, size_t max) {
    if (max > core->params.release_max) {
        max = core->params.release_max;
    }
    if (session->ready_next && max > SHORT_TURN) {
        max = SHORT_TURN;
    }
    uint64_t bytes = session->reasm.held_bytes;
    size_t n = us_reasm_pop(&session->reasm, &core->chunks, core->now, out, (uint32_t)max);
    core->counters.held_bytes -= bytes - session->reasm.held_bytes;
    complete(core, session, out, n);
    us_budget_fell(core, session);
    us_unready(core, session);
    if (us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
    } else {
        us_settle(core, session);
    }
    return n;
}

/* What was to be handed out, but whose partition has gone since, will be read again. */
static void fence(struct unsalt_core *core, unsalt_core_out_t *out) {
    if (unsalt_state_handed_out((unsalt_state_t)out->state) &&
        core->parts[out->part].generation != out->generation) {
        core->counters.state[out->state]--;
        core->counters.state[UNSALT_STATE_REVOKED]++;
        out->state = UNSALT_STATE_REVOKED;
    }
}

/* Something leaves or is ready. */
__attribute__((noinline)) /* mostly nothing is, if records are pushed one by one */
static size_t pull(struct unsalt_core *core, unsalt_core_out_t *out, size_t max) {
    struct us_leaving *leaving = &core->leaving;
    size_t n = 0;
    while (n < max && leaving->count) {
        out[n] = leaving->records[leaving->first];
        fence(core, &out[n++]);
        leaving->first = (leaving->first + 1) % leaving->capacity;
        leaving->count--;
    }
    while (n < max && core->ready_first) {
        n += turn(core, core->ready_first, out + n, max - n);
    }
    return n;
}

size_t unsalt_core_pull(unsalt_core_t *core, uint64_t now, unsalt_core_out_t *out, size_t max) {
    us_core_time(core, now);
    return core->leaving.count || core->ready_first ? pull(core, out, max) : 0;
}

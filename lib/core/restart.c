/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A restart backwards, without an epoch that says so. A record below the cursor that was released before is a copy,
 * or the producer has started again. A copy carries the timestamp of its original; so only a record that is newer than
 * everything the session has accepted (or has no timestamp) is a suspect, and so is a late one from absurdly far
 * below, which is how the return from a mad number looks. Suspects are kept until one of these:
 *   - a record at or above the cursor: they were copies;
 *   - restart_k of them in a row: the producer has restarted;
 *   - restart_quiet_ns of silence: it has, unless there are no timestamps and none of them is a first record.
 */
#include <core/budget.h>

#define ABSURD ((uint64_t)1 << 20)

bool us_restart_suspect(struct unsalt_core *core, const struct us_session *session, const unsalt_core_in_t *in) {
    (void)core;
    if (in->epoch != 0 || (in->flags & UNSALT_F_RESEND)) {
        return false;
    }
    if (us_skips_has(&session->skips, in->seq) && session->reasm.cursor - in->seq < ABSURD) {
        return false;
    }
    return in->timestamp < 0 || in->timestamp > session->newest;
}

static uint64_t lowest_of(const struct us_suspects *suspects) {
    uint64_t lowest = UNSALT_NO_SEQ;
    for (uint32_t i = 0; i < suspects->count; i++) {
        lowest = suspects->held[i].seq < lowest ? suspects->held[i].seq : lowest;
    }
    return lowest;
}

/* The suspects of a session: made once, empty. */
static struct us_suspects *suspects_of(struct unsalt_core *core, struct us_session *session) {
    struct us_suspects *suspects = session->suspects;
    if (suspects) {
        return suspects;
    }
    suspects = us_calloc(&core->mem, 1, sizeof(*suspects));
    if (!suspects) {
        return NULL;
    }
    us_wait_init(&suspects->wait, US_WAIT_QUIET, session);
    if (!us_wait_reserve(core)) {
        us_free(&core->mem, suspects);
        return NULL;
    }
    session->suspects = suspects;
    return suspects;
}

static bool room_for_one(struct unsalt_core *core, struct us_suspects *suspects) {
    struct us_held *held =
        us_array_room(&core->mem, suspects->held, &suspects->capacity, suspects->count, 8, sizeof(*held));
    suspects->held = held ? held : suspects->held;
    return held && us_leaving_reserve(core, 1);
}

/* Turns the suspects into a later run that takes over at once. False: out of memory, nothing changed. */
static bool reveal(struct unsalt_core *core, struct us_session *session) {
    struct us_suspects *suspects = session->suspects;
    struct us_later *later = us_later_new(core, session, session->epoch);
    if (!later) {
        return false;
    }
    later->reasm.cursor = 0;
    later->newest = suspects->newest;
    later->back = true;
    later->start = us_start_alloc(core, session);
    bool done = later->start != NULL;
    if (done) {
        later->start->back = true;
    }
    for (uint32_t i = 0; done && i < suspects->count; i++) {
        const struct us_held *held = &suspects->held[i];
        unsalt_core_in_t in = {.part = held->part, .lane = held->lane, .lanes = suspects->lanes, .seq = held->seq,
                               .una = UNSALT_NO_SEQ};
        done = us_shown_reserve(&later->start->shown, &core->mem) &&
               us_reasm_insert(&later->reasm, &core->chunks, held, suspects->lanes) == US_INSERT_HELD;
        if (done) {
            us_shown_add(&later->start->shown, &in);
        }
    }
    if (!done) {
        us_later_free(core, later);
        return false;
    }
    core->leaving.promised -= suspects->count;
    suspects->count = 0;
    us_wait_cancel(core, &suspects->wait);
    later->next = session->later;
    session->later = later;
    session->special = (uint8_t)((session->special & ~US_SPECIAL_SUSPECTS) | US_SPECIAL_LATER);
    us_epoch_over(core, later);
    return true;
}

int us_restart_keep(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                    unsalt_core_out_t *out, size_t *n_out) {
    int err = us_budget_check(core, session, &session->reasm, in);
    if (err == US_BUDGET_AWAY) {
        us_arrival_out(core, in, UNSALT_STATE_DEAD_LETTERED, out, n_out);
        out[*n_out - 1].flags |= UNSALT_OUT_BUDGET;
        return UNSALT_CORE_OK;
    }
    if (err != UNSALT_CORE_OK) {
        return err;
    }
    struct us_suspects *suspects = suspects_of(core, session);
    if (!suspects || !room_for_one(core, suspects)) {
        return UNSALT_CORE_NOMEM;
    }
    for (uint32_t i = 0; i < suspects->count; i++) {
        if (suspects->held[i].seq == in->seq) {
            us_arrival_out(core, in, UNSALT_STATE_DUPLICATE, out, n_out);
            return UNSALT_CORE_OK;
        }
    }
    int64_t newest = suspects->newest;
    suspects->newest = suspects->count == 0 || in->timestamp > newest ? in->timestamp : newest;
    suspects->lanes = in->lanes;
    suspects->held[suspects->count++] = us_held_of(core, in);
    core->leaving.promised++;
    if (suspects->count >= core->params.restart_k) {
        if (!us_events_room(core) || !reveal(core, session)) {
            suspects->count--;
            suspects->newest = newest;
            core->leaving.promised--;
            return UNSALT_CORE_NOMEM;
        }
    } else {
        session->special |= US_SPECIAL_SUSPECTS;
        us_wait_at(core, &suspects->wait, us_time_add(core->now, core->params.restart_quiet_ns));
    }
    us_arrival_open(core, in);
    core->counters.received++;
    core->counters.state[UNSALT_STATE_HELD]++;
    core->counters.held_bytes += in->bytes;
    return UNSALT_CORE_OK;
}

/* Ends the suspicion: every suspect leaves, as late if its number was skipped or nothing is known, else as a copy. */
static void clear(struct unsalt_core *core, struct us_session *session, bool known) {
    struct us_suspects *suspects = session->suspects;
    us_wait_cancel(core, &suspects->wait);
    session->special = (uint8_t)(session->special & ~US_SPECIAL_SUSPECTS);
    for (uint32_t i = 0; i < suspects->count; i++) {
        const struct us_held *held = &suspects->held[i];
        bool late = !known || us_skips_take(&session->skips, &core->mem, core->params.skips_max, held->seq);
        const unsalt_core_out_t *out =
            us_leaving_add(core, held, late ? us_late_state(core, UNSALT_STATE_LATE) : UNSALT_STATE_DUPLICATE);
        if (core->params.cursors && known && out->state == UNSALT_STATE_LATE) {
            us_handed_note(core, session, out);
        }
    }
    core->leaving.promised -= suspects->count;
    suspects->count = 0;
}

void us_restart_copies(struct unsalt_core *core, struct us_session *session) {
    const struct us_suspects *suspects = session->suspects;
    if (suspects->count) {
        uint64_t lowest = lowest_of(suspects);
        bool late = us_skips_has(&session->skips, lowest);
        unsalt_core_event_t *event = us_event(core, late ? UNSALT_CORE_EV_LATE : UNSALT_CORE_EV_DUPLICATE, session);
        event->count = suspects->count;
        event->first = event->last = lowest;
    }
    clear(core, session, true);
}

/* The cursor is void, so nobody can tell any more: they are handed out as late rather than lost. */
void us_restart_unresolved(struct unsalt_core *core, struct us_session *session) {
    if (session->special & US_SPECIAL_SUSPECTS) {
        clear(core, session, false);
    }
}

/*
 * The silence after the last suspect has lasted. Records that are newer than everything are not thrown away for their
 * number alone; without timestamps only a first record tells a restart.
 */
void us_restart_reveal(struct unsalt_core *core, struct us_session *session) {
    const struct us_suspects *suspects = session->suspects;
    if (suspects->newest < 0 && lowest_of(suspects) != core->params.seq_first) {
        us_restart_copies(core, session);
    } else if (!reveal(core, session)) {
        us_wait_at(core, &session->suspects->wait, us_time_add(core->now, 1000000));
    }
}

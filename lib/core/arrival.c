/* SPDX-License-Identifier: BSD-2-Clause */
/* What an arrival does: the table of DESIGN 4, row by row. */
#include <core/ahead.h>
#include <core/budget.h>

struct us_held us_held_of(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    return (struct us_held){
        .seq = in->seq,
        .msg = in->msg,
        .arrived = core->now,
        .ticket = (uint32_t)core->parts[in->part].frontier.next,
        .bytes = in->bytes,
        .part = (uint16_t)in->part,
        .lane = us_lane_of(in),
        .flags = in->flags,
    };
}

uint64_t us_arrival_open(struct unsalt_core *core, const unsalt_core_in_t *in) {
    struct us_frontier *frontier = &core->parts[in->part].frontier;
    return in->flags & UNSALT_IN_AGAIN ? us_frontier_open_again(frontier) : us_frontier_open(frontier, in->offset);
}

void us_arrival_out(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_state_t state,
                    unsalt_core_out_t *out, size_t *n_out) {
    struct us_frontier *frontier = &core->parts[in->part].frontier;
    uint64_t ticket = us_arrival_open(core, in);
    us_out_of(in, core->parts[in->part].generation, ticket, state, &out[(*n_out)++]);
    core->counters.received++;
    core->counters.state[state]++;
    if (!unsalt_state_handed_out(state)) {
        us_frontier_ack(frontier, ticket, NULL);
    }
}

static unsalt_core_event_t *record_event(struct unsalt_core *core, unsalt_core_event_type_t type,
                                         const struct us_session *session, const unsalt_core_in_t *in) {
    unsalt_core_event_t *event = us_event(core, type, session);
    event->part = in->part;
    event->offset = in->offset;
    event->epoch = in->epoch;
    event->first = event->last = in->seq;
    event->lane = in->lanes ? in->lane : -1;
    event->count = 1;
    if (!session && in->kind == UNSALT_KIND_SEQUENCED) {
        us_event_session(core, event, in->session, in->session_len);
    }
    return event;
}

static int duplicate(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                     unsalt_core_out_t *out, size_t *n_out) {
    record_event(core, UNSALT_CORE_EV_DUPLICATE, session, in);
    us_arrival_out(core, in, UNSALT_STATE_DUPLICATE, out, n_out);
    return UNSALT_CORE_OK;
}

int us_hold(struct unsalt_core *core, struct us_session *session, struct us_reasm *reasm, const unsalt_core_in_t *in,
            unsalt_core_out_t *out, size_t *n_out) {
    int err = us_budget_check(core, session, reasm, in);
    if (err == US_BUDGET_AWAY) {
        return us_turn_away(core, session, reasm, in, out, n_out);
    }
    if (err != UNSALT_CORE_OK) {
        return err;
    }
    struct us_held held = us_held_of(core, in);
    switch (us_reasm_insert(reasm, &core->chunks, &held, in->lanes)) {
    case US_INSERT_NOMEM:
        return UNSALT_CORE_NOMEM;
    case US_INSERT_DUPLICATE:
        return duplicate(core, session, in, out, n_out);
    case US_INSERT_HELD:
        break;
    }
    us_proof_note(core, session, reasm, in);
    us_arrival_open(core, in);
    core->counters.received++;
    core->counters.state[UNSALT_STATE_HELD]++;
    core->counters.held_bytes += in->bytes;
    core->counters.irregular += reasm->modulus == 0;
    return UNSALT_CORE_OK;
}

/* seq == cursor, and nothing of the session is pending: it passes at once. */
static inline void in_order(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                            unsalt_core_out_t *out, size_t *n_out) {
    us_reasm_bypass(&session->reasm);
    core->counters.in_order++;
    us_arrival_out(core, in, UNSALT_STATE_RELEASED, out, n_out);
    if (session->after_gap) {
        out[*n_out - 1].flags |= UNSALT_OUT_AFTER_GAP;
        session->after_gap = false;
    }
    if (session->reasm.held && us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
    }
    if (in->flags & UNSALT_F_LAST) {
        session->last = true;
    }
    if (core->params.cursors) {
        us_handed_note(core, session, &out[*n_out - 1]);
    }
}

static int late(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                unsalt_core_out_t *out, size_t *n_out) {
    record_event(core, UNSALT_CORE_EV_LATE, session, in);
    us_arrival_out(core, in, us_late_state(core, UNSALT_STATE_LATE), out, n_out);
    if (core->params.cursors && out[*n_out - 1].state == UNSALT_STATE_LATE) {
        us_handed_note(core, session, &out[*n_out - 1]);
    }
    us_changed(core, session);
    return UNSALT_CORE_OK;
}

static int below_cursor(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                        unsalt_core_out_t *out, size_t *n_out) {
    if (us_restart_suspect(core, session, in)) {
        return us_restart_keep(core, session, in, out, n_out);
    }
    if (!us_skips_take(&session->skips, &core->mem, core->params.skips_max, in->seq)) {
        return duplicate(core, session, in, out, n_out);
    }
    us_proof_contradicted(core, session, in);
    return late(core, session, in, out, n_out);
}

void us_arrival_taken(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    if (in->timestamp > session->newest) {
        session->newest = in->timestamp;
    }
    us_lanes_learn(&session->rule, in);
    if (session->special & US_SPECIAL_SUSPECTS) {
        us_restart_copies(core, session);
    }
    if (session->start) {
        us_start_saw(core, session, in);
    }
    if (!session->ready && !(session->special & US_SPECIAL_STARTING)) {
        us_settle(core, session);
    }
}

/* A record of the session's current run. */
static int current(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                   unsalt_core_out_t *out, size_t *n_out) {
    bool starting = session->special & US_SPECIAL_STARTING;
    if ((session->special & US_SPECIAL_RESTARTED) && in->timestamp >= 0 && in->timestamp <= session->before) {
        return us_stale(core, session, in, out, n_out);
    }
    if (session->start && !us_shown_reserve(&session->start->shown, &core->mem)) {
        return UNSALT_CORE_NOMEM;
    }
    const struct us_redo_range *redo = session->redo ? us_redo_find(session->redo, in->seq) : NULL;
    if (redo) {
        return redo->skipped ? late(core, session, in, out, n_out) : duplicate(core, session, in, out, n_out);
    }
    if (!starting && in->seq < session->reasm.cursor) {
        int err = below_cursor(core, session, in, out, n_out);
        if (err == UNSALT_CORE_OK && session->start) {
            us_start_note(session->start, in);
        }
        return err;
    }
    if (us_any_away(&session->reasm) && us_away_has(&session->reasm.evidence->away, in->seq)) {
        return late(core, session, in, out, n_out); /* its first copy was turned away */
    }
    if (!starting && !session->ready && in->seq == session->reasm.cursor) {
        in_order(core, session, in, out, n_out);
    } else {
        int err = us_hold(core, session, &session->reasm, in, out, n_out);
        if (err != UNSALT_CORE_OK) {
            return err;
        }
    }
    us_arrival_taken(core, session, in);
    return UNSALT_CORE_OK;
}

/*
 * What has no number, or none that can be used: below a session's first record it can't be, it was never meant for
 * this place. Whoever says himself that a record is malformed has told it.
 */
static int unsequenced(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out) {
    bool malformed = in->kind == UNSALT_KIND_SEQUENCED || in->kind == UNSALT_KIND_MALFORMED;
    unsalt_state_t state = in->kind == UNSALT_KIND_CONTROL ? UNSALT_STATE_CONTROL : UNSALT_STATE_UNSEQUENCED;
    if (in->kind == UNSALT_KIND_SEQUENCED) {
        bool number = in->seq == UNSALT_NO_SEQ || in->seq < core->params.seq_first;
        record_event(core, number ? UNSALT_CORE_EV_BELOW_FIRST : UNSALT_CORE_EV_OVERSIZED, NULL, in);
    }
    unsalt_core_in_t plain = *in;
    plain.seq = UNSALT_NO_SEQ;
    if (malformed && core->params.malformed == UNSALT_MALFORMED_DEAD_LETTER) {
        state = UNSALT_STATE_DEAD_LETTERED;
        plain.flags |= UNSALT_OUT_MALFORMED;
    }
    us_arrival_out(core, &plain, state, out, n_out);
    return UNSALT_CORE_OK;
}

/*
 * An unknown session: its cursor is remembered, or seq_first, or found out (start.c). NULL: out of memory. *cursor:
 * what was *remembered.
 */
static struct us_session *unknown(struct unsalt_core *core, struct us_set *set, const unsalt_core_in_t *in,
                                  uint32_t hash, struct us_cursor *cursor, bool *remembered) {
    struct us_session *session = us_session_new(core, set, in->session, in->session_len, hash);
    if (!session) {
        return NULL;
    }
    session->epoch = in->epoch;
    *remembered = us_remembered_take(&core->remembered, set->tag, in->session, in->session_len, cursor);
    if (*remembered) {
        session->epoch = cursor->epoch;
        session->reasm.cursor = cursor->cursor;
        session->skips.floor = cursor->floor;
        return session;
    }
    us_tell_forgotten(core, session, false);
    if (us_starts_at_first(core, set) && us_set_complete(set)) {
        session->reasm.cursor = core->params.seq_first;
        return session;
    }
    struct us_start *start = us_start_alloc(core, session);
    if (!start) {
        core->counters.sessions_created--;
        us_session_free(core, session);
        return NULL;
    }
    us_start_begin(core, session, start);
    return session;
}

/* cursor: what was remembered of it, NULL = nothing. */
static void forget_fresh(struct unsalt_core *core, struct us_session *session, const struct us_cursor *cursor) {
    if (cursor) {
        us_remembered_put_back(&core->remembered, &core->mem, session->set->tag, session->id, session->id_len, cursor);
    }
    core->counters.sessions_created--;
    us_session_free(core, session);
}

/*
 * A marker makes its session known where that begins at seq_first: else what it says would be lost if it is read before
 * all records, and the gap would wait for a clock that there may not be. Where the start has to be found out, it tells
 * nothing of it.
 */
static int marker(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in,
                  unsalt_core_out_t *out, size_t *n_out) {
    uint32_t hash = us_session_hash(core, in->session, in->session_len);
    uint32_t ref = us_session_find(core, part->set, in->session, in->session_len, hash);
    struct us_session *session = ref ? us_session_wake(core, part->set, ref) : NULL, *fresh = NULL;
    struct us_cursor cursor;
    bool remembered = false, meets = !ref && us_starts_at_first(core, part->set) && us_set_complete(part->set);
    if (meets) {
        session = fresh = unknown(core, part->set, in, hash, &cursor, &remembered);
    }
    if (!session && (ref || meets)) {
        return UNSALT_CORE_NOMEM;
    }
    int err = session ? us_marker(core, session, in) : UNSALT_CORE_OK;
    if (fresh && err != UNSALT_CORE_OK) {
        forget_fresh(core, fresh, remembered ? &cursor : NULL);
    } else if (fresh) {
        fresh->row->active = core->now;
        us_idlest_goes(core);
    }
    return err == UNSALT_CORE_OK ? unsequenced(core, in, out, n_out) : err;
}

/* Its first record was turned away, so there is nothing to find its start with. The session may be gone. */
static bool knows_nothing(const struct unsalt_core *core, const struct us_session *fresh) {
    return core->last_session == fresh && (fresh->special & US_SPECIAL_STARTING) && fresh->reasm.held == 0 &&
           !fresh->later;
}

/* session: that of the last record, if this one has the same id; else NULL. */
static int sequenced(struct unsalt_core *core, struct us_part *part, struct us_session *session,
                     const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out) {
    struct us_session *fresh = NULL;
    struct us_cursor cursor;
    bool remembered = false;
    uint32_t hash = 0;
    if (!session) {
        hash = us_push_hash(core, in);
        uint32_t ref = us_push_find(core, part->set, in);
        session = ref ? us_session_wake(core, part->set, ref) : NULL;
        if (ref && !session) {
            return UNSALT_CORE_NOMEM;
        }
    }
    if (!session) {
        session = fresh = unknown(core, part->set, in, hash, &cursor, &remembered);
        if (!fresh) {
            return UNSALT_CORE_NOMEM;
        }
    }
    session->row->active = core->now;
    session->restored = false;
    int err = US_EPOCH_CURRENT;
    if (in->epoch != session->epoch || (session->special & (US_SPECIAL_LATER | US_SPECIAL_STALE))) {
        err = us_epoch_arrival(core, session, in, out, n_out);
    }
    us_session_current(core, session);
    if (err == US_EPOCH_CURRENT) {
        err = current(core, session, in, out, n_out);
    }
    if (fresh && (err != UNSALT_CORE_OK || knows_nothing(core, fresh))) {
        forget_fresh(core, fresh, remembered ? &cursor : NULL);
    } else if (fresh) {
        us_idlest_goes(core);
    }
    return err;
}

static inline bool is_last_session(const struct unsalt_core *core, const struct us_part *part,
                                   const unsalt_core_in_t *in) {
    const struct us_session *session = core->last_session;
    return session && session->set == part->set && session->id_len == in->session_len &&
           __builtin_memcmp(session->id, in->session, in->session_len) == 0;
}

static int fenced(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out) {
    record_event(core, UNSALT_CORE_EV_OFFSET_BACK, NULL, in);
    us_out_of(in, core->parts[in->part].generation, 0, UNSALT_STATE_FENCED, &out[(*n_out)++]);
    core->counters.received++;
    core->counters.state[UNSALT_STATE_FENCED]++;
    return UNSALT_CORE_OK;
}

static int arrived(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in,
                   unsalt_core_out_t *out, size_t *n_out) {
    if (in->kind == UNSALT_KIND_CONTROL && (in->flags & UNSALT_F_MARKER) && in->session_len > 0 &&
        in->session_len <= core->params.session_id_max && in->since <= in->seq && in->seq != UNSALT_NO_SEQ) {
        return marker(core, part, in, out, n_out);
    }
    if (in->kind != UNSALT_KIND_SEQUENCED || in->session_len == 0 ||
        in->session_len > core->params.session_id_max || in->seq == UNSALT_NO_SEQ ||
        in->seq < core->params.seq_first) {
        return unsequenced(core, in, out, n_out);
    }
    return sequenced(core, part, is_last_session(core, part, in) ? core->last_session : NULL, in, out, n_out);
}

/*
 * S is configured, and the record doesn't say what its lanes apply to: S holds for every number. But a record that
 * stands in another lane's partition is of a session that isn't spread like that, so nothing is known of its
 * lanes.
 */
static void assume_lanes(const struct unsalt_core *core, const struct us_part *part, unsalt_core_in_t *in) {
    uint16_t lane = (uint16_t)(in->seq % core->params.lanes);
    bool elsewhere = part->lane >= 0 && part->lane != lane;
    in->lanes = elsewhere ? 0 : core->params.lanes;
    in->lane = elsewhere ? 0 : lane;
    in->since = elsewhere ? UNSALT_NO_SEQ : 0;
}

/* What an arrival changes of its partition. */
static void read_on(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in) {
    part->last_offset = in->flags & UNSALT_IN_AGAIN ? part->last_offset : in->offset;
    part->at_end = false;
    part->window_since = UNSALT_NEVER;
    if (part->refused) {
        part->refused = false;
        us_stall_progress(core, part);
    }
}

/* An earlier owner has done it. */
static int done_before(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in,
                       unsalt_core_out_t *out, size_t *n_out) {
    us_arrival_out(core, in, UNSALT_STATE_DUPLICATE, out, n_out);
    core->counters.done_before++;
    read_on(core, part, in);
    return UNSALT_CORE_OK;
}

int us_arrival(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out) {
    struct us_part *part = us_part_get(core, in->part);
    if (!part || in->kind > UNSALT_KIND_MALFORMED || in->offset < 0 || in->offset == INT64_MAX ||
        (in->lanes && in->lane >= in->lanes)) {
        return UNSALT_CORE_INVAL;
    }
    bool again = in->flags & UNSALT_IN_AGAIN;
    if (in->offset <= part->last_offset && !again) {
        return fenced(core, in, out, n_out);
    }
    if (part->frontier.base == part->frontier.next && in->offset < part->frontier.next_offset && !again) {
        part->frontier.next_offset = in->offset; /* reading began lower than it was said to */
        us_horizon_init(&part->horizon, in->offset);
    }
    int err = us_window_check(core, part, in);
    if (err != UNSALT_CORE_OK) {
        return err;
    }
    if (!us_ticket_reserve(core, part)) {
        return UNSALT_CORE_NOMEM;
    }
    if (part->done_ahead && us_done_before_has(core, part, in->offset)) {
        return done_before(core, part, in, out, n_out);
    }
    unsalt_core_in_t by_configuration;
    if (core->params.lanes && in->since == UNSALT_NO_SEQ) {
        by_configuration = *in;
        assume_lanes(core, part, &by_configuration);
        in = &by_configuration;
    }
    err = arrived(core, part, in, out, n_out);
    if (err == UNSALT_CORE_OK) {
        read_on(core, part, in);
    }
    return err;
}

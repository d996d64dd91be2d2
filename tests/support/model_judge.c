/* SPDX-License-Identifier: BSD-2-Clause */
/* Second half of the oracle: what the core says and gives back, held against what the model knows. */
#include <support/model.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char objection[512];

__attribute__((format(printf, 1, 2))) static const char *object(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(objection, sizeof(objection), format, args);
    va_end(args);
    return objection;
}

static uint64_t later(uint64_t t, uint64_t ns) {
    return ns > UNSALT_NEVER - t ? UNSALT_NEVER : t + ns;
}

static struct model_session *find(struct model *model, const unsalt_core_event_t *event) {
    for (int i = 0; i < MODEL_SESSIONS; i++) {
        struct model_session *session = &model->sessions[i];
        if (session->known && event->session && session->id_len == event->session_len &&
            !memcmp(session->id, event->session, session->id_len))
            return session;
    }
    return NULL;
}

/* ---- verdicts on gaps */

/* S for this number, as far as any record told; 0 = unknown. */
static uint64_t lanes_at(const struct model_session *session, uint64_t number) {
    uint64_t lanes = 0, since = 0;
    for (size_t i = 0; i < session->told_n; i++) {
        if (session->told[i].since <= number && session->told[i].since >= since) {
            since = session->told[i].since;
            lanes = session->told[i].lanes;
        }
    }
    return lanes;
}

/* Partitions that carry the numbers first..last for certain, as far as the lane rule and the topics tell. */
static uint64_t least_parts(const struct model *model, const struct model_session *session, uint64_t first,
                            uint64_t last) {
    uint64_t all = model_set_parts(model, session->set), some = 0;
    for (uint64_t m = first, n = 0; m <= last && n < 64; m++, n++) {
        uint64_t lanes = lanes_at(session, m), lane = 0;
        for (int i = 0; i < MODEL_PARTS; i++)
            if (lanes && all >> i & 1 && model->parts[i].lane == (int32_t)(m % lanes))
                lane |= 1ULL << i;
        if (!lane)
            return all;
        some |= lane;
    }
    return some;
}

/* Were all of these read past `due`, or (with `stall`) silent for too long? */
static bool settled_parts(const struct model *model, uint64_t parts, uint64_t due, bool stall) {
    for (int i = 0; i < MODEL_PARTS; i++) {
        const struct model_part *part = &model->parts[i];
        bool silent = stall && !part->paused && part->silent >= model->p.gap_stall_max_ns;
        if (parts >> i & 1 && part->horizon < due && !silent)
            return false;
    }
    return true;
}

static const char *judge_timeout(const struct model *model, const struct model_session *session,
                                 const unsalt_core_event_t *event, uint64_t now) {
    uint64_t due = model_due(model, session);
    uint64_t least = least_parts(model, session, event->first, event->last);
    if (now >= later(model_opened(session), model->p.gap_wait_max_ns))
        return NULL;
    if (now < due)
        return object("gave up %" PRIu64 "..%" PRIu64 " at %" PRIu64 ", due at %" PRIu64, event->first, event->last,
                      now, due);
    bool stall = event->reason == UNSALT_GAP_STALLED;
    if (model->p.gap_clock == UNSALT_CLOCK_WALL && !stall)
        return NULL;
    if (!settled_parts(model, least, due, stall))
        return object("gave up %" PRIu64 "..%" PRIu64 " (%s), due at %" PRIu64 ", without the evidence", event->first,
                      event->last, unsalt_gap_reason_name(event->reason), due);
    return NULL;
}

static uint64_t list_bytes(const struct model_list *list) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->n; i++)
        bytes += list->v[i]->in.bytes;
    return bytes;
}

static bool session_full(const struct model *model, const struct model_session *session) {
    uint64_t n = session->held.n + session->ready.n + session->next.n;
    uint64_t bytes = list_bytes(&session->held) + list_bytes(&session->ready) + list_bytes(&session->next);
    return n + 1 > model->p.session_budget_records || bytes + model->overflow_need > model->p.session_budget_bytes;
}

static const char *judge_overflow(const struct model *model, const struct model_session *session, uint64_t now) {
    bool full =
        model->held + 1 > model->p.budget_records || model->held_bytes + model->overflow_need > model->p.budget_bytes;
    bool own = session_full(model, session) && model->overflow_session == (uint32_t)(session - model->sessions);
    if (model->overflow_session < MODEL_SESSIONS && model->p.budget_policy == UNSALT_BUDGET_BLOCK)
        full |= session_full(model, &model->sessions[model->overflow_session]);
    if (!full && !own)
        return object("overflow of %s with %" PRIu64 " records and %" PRIu64 " bytes held", session->id, model->held,
                      model->held_bytes);
    if (model->p.budget_policy == UNSALT_BUDGET_BLOCK && now < later(model->blocked_since, model->p.block_max_ns) &&
        now < later(model_opened(session), model->p.block_max_ns))
        return object("policy block gave up a gap before block_max was over");
    for (int i = 0; i < MODEL_SESSIONS && !own; i++) {
        const struct model_session *other = &model->sessions[i];
        if (other->held.n && !other->loose && model_opened(other) < model_opened(session))
            return object("overflow took %s, but the gap of %s is older", session->id, other->id);
    }
    return NULL;
}

/* Was the number consumed before its lane was joined, as far as anyone can tell? */
static bool resumed(const struct model *model, const struct model_session *session, uint64_t m) {
    if (session->lanes && session->lanes <= 64 && session->since <= m) {
        uint64_t lane = m % session->lanes;
        return session->shown_lanes >> lane & 1 && session->first_by_lane[lane] > m &&
               model->parts[session->part_of_lane[lane]].joined_middle;
    }
    uint64_t parts = model_set_parts(model, session->set);
    bool middle = false;
    for (int i = 0; i < MODEL_PARTS; i++) {
        if (!(parts >> i & 1))
            continue;
        if (!(session->shown_parts >> i & 1) || session->first_by_part[i] <= m)
            return false;
        middle |= model->parts[i].joined_middle;
    }
    return middle;
}

static const char *judge_reason(const struct model *model, const struct model_session *session,
                                const unsalt_core_event_t *event, uint64_t now) {
    switch (event->reason) {
    case UNSALT_GAP_TIMEOUT:
    case UNSALT_GAP_STALLED:
        return judge_timeout(model, session, event, now);
    case UNSALT_GAP_OVERFLOW:
        return judge_overflow(model, session, now);
    case UNSALT_GAP_FLUSH:
        return model->flushed && model_opened(session) <= model->flush_time
                   ? NULL
                   : object("a gap of %s was flushed and nobody asked for it", session->id);
    case UNSALT_GAP_EPOCH:
        return session->switching ? NULL : object("a gap for an epoch that nobody has seen");
    case UNSALT_GAP_PROVEN:
    case UNSALT_GAP_MARKER:
        for (uint64_t m = event->first, n = 0; m <= event->last && n < 1000; m++, n++)
            if (event->reason == UNSALT_GAP_MARKER ? !model_marked(session, m) : !model_decided(model, session, m))
                return object("%" PRIu64 " of %s was given up as %s without the evidence", m, session->id,
                              unsalt_gap_reason_name(event->reason));
        return NULL;
    case UNSALT_GAP_RESUMED:
        for (uint64_t m = event->first, n = 0; m <= event->last && n < 1000; m++, n++)
            if (!resumed(model, session, m)) /* else it was given up by the clock, and blamed on the start */
                return judge_timeout(model, session, event, now);
        return NULL;
    default:
        return object("a gap with reason %s", unsalt_gap_reason_name(event->reason));
    }
}

static void skip(struct model *model, struct model_session *session, const unsalt_core_event_t *event) {
    if (session->skip_n + 2 >= session->skip_cap) {
        session->skip_cap = session->skip_cap ? 2 * session->skip_cap : 16;
        session->skips = realloc(session->skips, session->skip_cap * sizeof(*session->skips));
        if (!session->skips)
            abort();
    }
    bool never = event->reason == UNSALT_GAP_PROVEN || event->reason == UNSALT_GAP_MARKER;
    session->skips[session->skip_n++] = (struct model_range){event->first, event->last, never, 0};
    session->cursor = event->last + 1;
    if (session->held.v[0]->in.seq == session->cursor) {
        session->held.v[0]->after_gap = event->reason != UNSALT_GAP_RESUMED;
        session->held.v[0]->any_flag = event->reason == UNSALT_GAP_RESUMED;
    }
    model_settle(model, session);
}

static const char *judge_gap(struct model *model, const unsalt_core_event_t *event, uint64_t now) {
    struct model_session *session = find(model, event);
    if (!session)
        return object("a gap of a session that was never seen");
    model->gaps[event->reason]++;
    if (session->loose || (event->reason == UNSALT_GAP_EPOCH && event->epoch != session->epoch))
        return NULL;
    if (!session->started || !session->held.n)
        return object("a gap of %s, which waits for nothing", session->id);
    uint64_t lowest = session->held.v[0]->in.seq;
    bool part = event->reason == UNSALT_GAP_RESUMED || event->reason == UNSALT_GAP_PROVEN ||
                event->reason == UNSALT_GAP_MARKER;
    bool whole = event->last == lowest - 1 || (part && event->last < lowest);
    if (event->first != session->cursor || event->last < event->first || !whole)
        return object("gap %" PRIu64 "..%" PRIu64 " of %s, open is %" PRIu64 "..%" PRIu64, event->first, event->last,
                      session->id, session->cursor, lowest - 1);
    if (event->epoch != session->epoch)
        return object("gap of epoch %" PRIu64 ", current is %" PRIu64, event->epoch, session->epoch);
    const char *why = judge_reason(model, session, event, now);
    if (why)
        return why;
    if (event->reason == UNSALT_GAP_TIMEOUT && event->waited_ns > now - model_opened(session))
        return object("gap says it waited %" PRIu64 ", it was open for %" PRIu64, event->waited_ns,
                      now - model_opened(session));
    skip(model, session, event);
    return NULL;
}

/* ---- the other events */

static const char *judge_epoch(struct model *model, const unsalt_core_event_t *event, uint64_t now) {
    struct model_session *session = find(model, event);
    if (!session)
        return object("an epoch of a session that was never seen");
    if (session->loose)
        return NULL;
    if (!session->switching || event->epoch != session->next_epoch)
        return object("epoch %" PRIu64 " took over %s, which waits for %" PRIu64, event->epoch, session->id,
                      session->switching ? session->next_epoch : session->epoch);
    if (!model_read_past(model, model_set_parts(model, session->set) & ~session->next_shown, session->next_sight))
        return object("epoch %" PRIu64 " of %s took over before every partition had shown it", event->epoch,
                      session->id);
    for (size_t i = 0; i < session->held.n; i++) { /* gaps that are told after the epoch */
        session->held.v[i]->expect = UNSALT_STATE_RELEASED;
        session->held.v[i]->any_flag = true;
        model_append(&session->ready, session->held.v[i]);
    }
    struct model_list empty = session->held;
    session->held = session->next;
    session->next = empty;
    session->next.n = 0;
    session->skip_n = session->told_n = 0;
    session->lanes = 0;
    for (size_t i = 0; i < session->held.n; i++)
        model_tell(session, &session->held.v[i]->in);
    session->floor = 0;
    session->switching = false;
    session->epoch = session->next_epoch;
    session->cursor = model->p.seq_first;
    session->switched_at = now;
    model_settle(model, session);
    return NULL;
}

bool model_fits(const struct model *model, const unsalt_core_event_t *event, const struct model_rec *next) {
    struct model_session *session = find((struct model *)model, event);
    if (event->type == UNSALT_CORE_EV_BUDGET)
        return true;
    if (event->type != UNSALT_CORE_EV_GAP || event->reason != UNSALT_GAP_OVERFLOW || !session)
        return false;
    (void)next;
    return session->started && session->held.n && session->cursor == event->first &&
           session->held.v[0]->in.seq - 1 == event->last;
}

const char *model_event(struct model *model, const unsalt_core_event_t *event, uint64_t now) {
    model->events[event->type]++;
    switch (event->type) {
    case UNSALT_CORE_EV_GAP:
        return judge_gap(model, event, now);
    case UNSALT_CORE_EV_EPOCH:
        return judge_epoch(model, event, now);
    case UNSALT_CORE_EV_PROOF_OFF: {
        struct model_session *session = find(model, event);
        return session && session->loose ? NULL : object("proof is off, and nobody broke its premise");
    }
    case UNSALT_CORE_EV_RESTART: {
        struct model_session *session = find(model, event);
        if (session && session->loose)
            return NULL;
        return object("a restart that nothing suggests");
    }
    default:
        return NULL;
    }
}

/* ---- what comes back */

static bool plausible(int state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_DUPLICATE || state == UNSALT_STATE_DROPPED || state == UNSALT_STATE_DEAD_LETTERED;
}

static const char *judge_release(struct model_session *session, const struct model_rec *rec,
                                 const unsalt_core_out_t *out) {
    if (!session->ready.n || session->ready.v[0] != rec)
        return object("%s/%" PRIu64 " was released, the turn is %" PRIu64 "'s", session->id, rec->in.seq,
                      session->ready.n ? session->ready.v[0]->in.seq : session->cursor);
    session->ready.n--;
    memmove(session->ready.v, session->ready.v + 1, session->ready.n * sizeof(*session->ready.v));
    bool flagged = out->flags & UNSALT_OUT_AFTER_GAP;
    if (flagged != rec->after_gap && !rec->any_flag)
        return object("%s/%" PRIu64 " %s the after-gap flag", session->id, rec->in.seq, flagged ? "has" : "lacks");
    return NULL;
}

const char *model_out(struct model *model, const unsalt_core_out_t *out) {
    struct model_rec *rec = out->msg;
    model->held--;
    model->held_bytes -= rec->in.bytes;
    struct model_session *session = &model->sessions[rec->session];
    if (rec->in.kind == UNSALT_KIND_SEQUENCED && session->loose && !rec->malformed)
        return plausible(out->state) ? NULL : object("state %s", unsalt_state_name(out->state));
    if (rec->expect != out->state)
        return object("%s/%" PRIu64 " (epoch %" PRIu64 ", partition %u, offset %" PRId64
                      ") came out as %s, expected %s",
                      session->id, rec->in.seq, rec->in.epoch, rec->in.part, rec->in.offset,
                      unsalt_state_name(out->state), unsalt_state_name(rec->expect));
    bool flagged = out->flags & UNSALT_OUT_MALFORMED;
    if (flagged != (rec->malformed && out->state == UNSALT_STATE_DEAD_LETTERED))
        return object("%s/%" PRIu64 " %s the malformed flag", session->id, rec->in.seq, flagged ? "has" : "lacks");
    if (out->state == UNSALT_STATE_RELEASED)
        return judge_release(session, rec, out);
    return NULL;
}

/* ---- at rest */

/* A due gap of the session is being asked about: the core need not look at a later one before that is answered. */
static bool parked(const struct model *model, const struct model_session *session) {
    return model->p.gap_clock == UNSALT_CLOCK_HORIZON && session->parked &&
           !settled_parts(model, model_set_parts(model, session->set), session->parked, false);
}

/* Is the fate of every number of the head gap known? Where S has changed, the core may know less. */
static bool gap_decided(const struct model *model, const struct model_session *session) {
    uint64_t last = session->held.v[0]->in.seq - 1;
    if (session->told_n > 1 || last - session->cursor >= 64)
        return false;
    for (size_t i = 1; i < session->held.n; i++)
        if (session->held.v[i]->in.since != session->held.v[0]->in.since)
            return false;
    for (uint64_t m = session->cursor; m <= last; m++)
        if (!model_decided(model, session, m))
            return false;
    return true;
}

static const char *judge_idle_session(const struct model *model, struct model_session *session, uint64_t now,
                                      uint64_t deadline) {
    uint64_t parts = model_set_parts(model, session->set);
    if (session->ready.n)
        return object("%s/%" PRIu64 " was not released though its turn has come", session->id,
                      session->ready.v[0]->in.seq);
    if (!session->started && model_can_start(model, session))
        return object("%s was not started", session->id);
    if (session->switching && model_read_past(model, parts & ~session->next_shown, session->next_sight))
        return object("epoch %" PRIu64 " of %s did not take over", session->next_epoch, session->id);
    if (!session->started || !session->held.n)
        return NULL;
    if (gap_decided(model, session))
        return object("the gap of %s at %" PRIu64 " is decided, and still open", session->id, session->cursor);
    uint64_t opened = model_opened(session) > session->switched_at ? model_opened(session) : session->switched_at;
    uint64_t due = later(opened, model->p.gap_timeout_ns);
    bool wall = model->p.gap_clock == UNSALT_CLOCK_WALL || settled_parts(model, parts, due, false);
    if (now >= due && (session->parked != due || session->parked_cursor != session->cursor)) {
        session->parked_cursor = session->cursor;
        session->parked = due;
        session->parked_at = now;
        session->parked_reading = model->reading_ns;
    }
    bool stalled =
        now >= later(session->parked_at, model->p.gap_stall_max_ns) && settled_parts(model, parts, due, true);
    stalled &= session->parked == due && !model->ever_paused &&
               (model->reading_ns - session->parked_reading) / 3 >= model->p.gap_stall_max_ns;
    bool flush = model->flushed && model_opened(session) < model->flush_time;
    if (flush || (now >= due && (wall || stalled)) || now >= later(opened, model->p.gap_wait_max_ns))
        return object("the gap of %s at %" PRIu64 " is still open, due at %" PRIu64, session->id, session->cursor, due);
    bool early = now >= model_due(model, session); /* the gap of a new epoch: due since its first record, perhaps */
    if (due > now && deadline > due && !early && !parked(model, session))
        return object("deadline is %" PRIu64 ", but a gap of %s falls due at %" PRIu64, deadline, session->id, due);
    return NULL;
}

const char *model_rest(struct model *model, uint64_t now, uint64_t deadline) {
    if (model->wrong)
        return object("%s", model->wrong);
    for (int i = 0; i < MODEL_SESSIONS; i++) {
        struct model_session *session = &model->sessions[i];
        const char *why = session->loose ? NULL : judge_idle_session(model, session, now, deadline);
        if (why)
            return why;
    }
    return NULL;
}

static bool covered(const struct model_part *part, uint64_t due) {
    for (size_t i = 0; i < part->answer_n; i++)
        if (part->answers[i].asked >= due)
            return true;
    return part->asked_open || part->horizon >= due || part->answer_n >= 8;
}

bool model_must_ask(const struct model *model, uint32_t set, uint64_t now, const bool *asked) {
    if (model->p.gap_clock == UNSALT_CLOCK_WALL)
        return false;
    for (int i = 0; i < MODEL_SESSIONS; i++) {
        const struct model_session *session = &model->sessions[i];
        if (session->loose || !session->started || !session->held.n || session->set != set || parked(model, session))
            continue;
        uint64_t opened = model_opened(session) > session->switched_at ? model_opened(session) : session->switched_at;
        uint64_t due = later(opened, model->p.gap_timeout_ns);
        uint64_t least = least_parts(model, session, session->cursor, session->held.v[0]->in.seq - 1);
        bool asks = due > now;
        for (int part = 0; part < MODEL_PARTS && !asks; part++)
            asks = least >> part & 1 && model->parts[part].horizon < due &&
                   (asked[part] || covered(&model->parts[part], due));
        if (!asks)
            return true;
    }
    return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* First half of the oracle: what arrives. The second half, model_judge.c, judges what comes out. */
#include <support/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_init(struct model *model, const unsalt_core_params_t *params) {
    memset(model, 0, sizeof(*model));
    model->p = *params;
    model->blocked_since = UNSALT_NEVER;
    model->overflow_session = UINT32_MAX;
    model->reading = true;
}

void model_destroy(struct model *model) {
    for (int i = 0; i < MODEL_SESSIONS; i++) {
        struct model_session *session = &model->sessions[i];
        free(session->held.v);
        free(session->ready.v);
        free(session->next.v);
        free(session->skips);
        free(session->marks);
    }
}

void model_session(struct model *model, uint32_t index, uint32_t set) {
    struct model_session *session = &model->sessions[index];
    session->id_len = (uint32_t)snprintf(session->id, sizeof(session->id), "s%u", index);
    session->set = set;
}

void model_assign(struct model *model, uint32_t part, uint32_t generation, const unsalt_core_partition_t *partition) {
    struct model_part *p = &model->parts[part];
    memset(p, 0, sizeof(*p));
    p->assigned = true;
    p->set = partition->set;
    p->generation = generation;
    p->lane = partition->lane;
    p->joined_middle = partition->start_offset != 0 || partition->log_start != 0;
    p->passed = partition->start_offset;
    p->last = -1;
}

void model_insert(struct model_list *list, struct model_rec *rec) {
    model_append(list, rec);
    size_t i = list->n - 1;
    while (i > 0 && list->v[i - 1]->in.seq > rec->in.seq) {
        list->v[i] = list->v[i - 1];
        i--;
    }
    list->v[i] = rec;
}

void model_append(struct model_list *list, struct model_rec *rec) {
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 16;
        list->v = realloc(list->v, list->cap * sizeof(*list->v));
        if (!list->v)
            abort();
    }
    list->v[list->n++] = rec;
}

static bool list_has(const struct model_list *list, uint64_t seq) {
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i]->in.seq == seq)
            return true;
    return false;
}

uint64_t model_set_parts(const struct model *model, uint32_t set) {
    uint64_t parts = 0;
    for (int i = 0; i < MODEL_PARTS; i++)
        if (model->parts[i].assigned && model->parts[i].set == set)
            parts |= 1ULL << i;
    return parts;
}

bool model_read_past(const struct model *model, uint64_t parts, uint64_t t) {
    for (int i = 0; i < MODEL_PARTS; i++)
        if (parts >> i & 1 && model->parts[i].horizon < t)
            return false;
    return true;
}

/* ---- horizons: the same evidence as the core gets, kept as a list */

static void part_horizon(struct model_part *part, uint64_t t) {
    if (t <= part->horizon)
        return;
    part->horizon = t;
    part->silent = 0;
}

static void answers_reached(struct model_part *part) {
    size_t kept = 0;
    for (size_t i = 0; i < part->answer_n; i++) {
        if (part->answers[i].end <= part->passed) {
            part_horizon(part, part->answers[i].asked);
        } else {
            part->answers[kept++] = part->answers[i];
        }
    }
    part->answer_n = kept;
}

static void part_passed(struct model_part *part, int64_t offset) {
    part->silent = 0;
    if (offset > part->passed)
        part->passed = offset;
    answers_reached(part);
}

void model_advance(struct model *model, uint64_t ns) {
    for (int i = 0; i < MODEL_PARTS; i++)
        if (model->reading && !model->parts[i].paused)
            model->parts[i].silent += ns;
}

/* A session that was waiting for evidence may start now. */
static void starts(struct model *model) {
    for (int i = 0; i < MODEL_SESSIONS; i++)
        if (model->sessions[i].known && !model->sessions[i].started)
            model_settle(model, &model->sessions[i]);
}

void model_eof(struct model *model, uint32_t part, int64_t offset) {
    part_passed(&model->parts[part], offset);
    starts(model);
}

void model_horizon(struct model *model, uint32_t part, uint64_t t) {
    part_horizon(&model->parts[part], t);
    starts(model);
}

void model_ask(struct model *model, uint32_t part, uint64_t now) {
    model->parts[part].asked = now;
    model->parts[part].asked_open = true;
}

void model_answer(struct model *model, uint32_t part, int64_t end) {
    struct model_part *p = &model->parts[part];
    if (!p->asked_open)
        return;
    p->asked_open = false;
    if (end < 0)
        return;
    if (p->answer_n == MODEL_ANSWERS)
        abort();
    p->answers[p->answer_n].asked = p->asked;
    p->answers[p->answer_n++].end = end;
    answers_reached(p);
    starts(model);
}

/* ---- sessions */

uint64_t model_opened(const struct model_session *session) {
    uint64_t opened = UNSALT_NEVER;
    for (size_t i = 0; i < session->held.n; i++)
        if (session->held.v[i]->taken_at < opened)
            opened = session->held.v[i]->taken_at;
    return opened;
}

uint64_t model_due(const struct model *model, const struct model_session *session) {
    uint64_t opened = model_opened(session);
    uint64_t timeout = model->p.gap_timeout_ns;
    return timeout > UNSALT_NEVER - opened ? UNSALT_NEVER : opened + timeout;
}

/* Does the session hold a record that starts it whatever else may come? */
static bool starts_at_once(const struct model *model, const struct model_session *session) {
    for (size_t i = 0; i < session->held.n; i++) {
        const unsalt_core_in_t *in = &session->held.v[i]->in;
        if (in->seq == model->p.seq_first || in->flags & UNSALT_F_FIRST || in->lanes == 1)
            return true;
    }
    return false;
}

static bool lanes_shown(const struct model *model, const struct model_session *session) {
    if (!session->lanes || session->since > model->p.seq_first)
        return false;
    for (uint64_t lane = 0; lane < session->lanes; lane++) {
        bool ok = session->shown_lanes >> lane & 1;
        for (int i = 0; i < MODEL_PARTS && !ok; i++) {
            const struct model_part *part = &model->parts[i];
            ok = part->assigned && part->set == session->set && part->lane == (int32_t)lane &&
                 part->horizon >= session->first_sight;
        }
        if (!ok)
            return false;
    }
    return true;
}

bool model_can_start(const struct model *model, const struct model_session *session) {
    uint64_t unseen = model_set_parts(model, session->set) & ~session->shown_parts;
    return session->held.n && (starts_at_once(model, session) || lanes_shown(model, session) ||
                               model_read_past(model, unseen, session->first_sight));
}

/* Releases what follows the cursor. */
static void release_run(struct model_session *session) {
    size_t n = 0;
    while (n < session->held.n && session->held.v[n]->in.seq == session->cursor) {
        session->held.v[n]->expect = UNSALT_STATE_RELEASED;
        model_append(&session->ready, session->held.v[n]);
        session->cursor++;
        n++;
    }
    session->held.n -= n;
    if (n)
        memmove(session->held.v, session->held.v + n, session->held.n * sizeof(*session->held.v));
}

void model_settle(struct model *model, struct model_session *session) {
    if (!session->started && model_can_start(model, session)) {
        session->started = true;
        session->cursor = session->held.v[0]->in.seq;
        session->floor = session->cursor;
    }
    if (session->started)
        release_run(session);
}

static void session_known(struct model *model, struct model_session *session, const struct model_rec *rec) {
    session->known = true;
    session->epoch = rec->in.epoch;
    session->first_sight = rec->taken_at;
    session->cursor = model->p.seq_first;
    session->started = model->p.start == UNSALT_START_FIRST;
    if (model->p.start != UNSALT_START_RESUME)
        return;
    session->started = true;
    for (int i = 0; i < MODEL_PARTS; i++)
        if (model->parts[i].assigned && model->parts[i].set == session->set && model->parts[i].joined_middle)
            session->started = false;
}

void model_tell(struct model_session *session, const unsalt_core_in_t *in) {
    if (!in->lanes)
        return;
    session->lanes = in->lanes;
    session->since = in->since;
    bool new = session->told_n < MODEL_TOLD;
    for (size_t i = 0; i < session->told_n; i++)
        new &= session->told[i].since != in->since || session->told[i].lanes != in->lanes;
    if (new) {
        session->told[session->told_n].since = in->since;
        session->told[session->told_n++].lanes = in->lanes;
    }
}

static void note_shown(struct model_session *session, const struct model_rec *rec) {
    const unsalt_core_in_t *in = &rec->in;
    if (!(session->shown_parts >> in->part & 1))
        session->first_by_part[in->part] = in->seq;
    session->shown_parts |= 1ULL << in->part;
    if (!in->lanes)
        return;
    if (session->lanes != in->lanes && session->lanes && !session->started)
        session->loose = true;
    model_tell(session, in);
    if (!(session->shown_lanes >> in->lane & 1)) {
        session->first_by_lane[in->lane] = in->seq;
        session->part_of_lane[in->lane] = in->part;
    }
    session->shown_lanes |= 1ULL << in->lane;
}

/* What comes of a record whose number or session can't be used. */
static void take_malformed(const struct model *model, struct model_rec *rec) {
    bool dead = model->p.malformed == UNSALT_MALFORMED_DEAD_LETTER;
    rec->malformed = true;
    rec->expect = dead ? UNSALT_STATE_DEAD_LETTERED : UNSALT_STATE_UNSEQUENCED;
}

static int by_policy(const struct model *model, int deliver) {
    if (model->p.late == UNSALT_LATE_DELIVER)
        return deliver;
    return model->p.late == UNSALT_LATE_DROP ? UNSALT_STATE_DROPPED : UNSALT_STATE_DEAD_LETTERED;
}

/* Takes a number out of the skipped ranges; false if it isn't there. */
static bool take_skip(struct model_session *session, uint64_t seq, bool *never) {
    for (size_t i = 0; i < session->skip_n; i++) {
        struct model_range *range = &session->skips[i];
        if (seq < range->first || seq > range->last)
            continue;
        struct model_range upper = {seq + 1, range->last, range->never, 0};
        *never = range->never;
        range->last = seq - 1;
        if (range->first == seq)
            *range = upper; /* may leave an empty range (first > last): it matches nothing */
        else if (upper.first <= upper.last)
            session->skips[session->skip_n++] = upper; /* the caller of a skip leaves room for one more */
        if (session->skip_n == session->skip_cap) {
            session->skip_cap *= 2;
            session->skips = realloc(session->skips, session->skip_cap * sizeof(*session->skips));
        }
        return true;
    }
    return false;
}

static void take_current(struct model *model, struct model_session *session, struct model_rec *rec) {
    if (session->started && rec->in.seq < session->cursor) {
        bool never = false;
        bool skipped = rec->in.seq < session->floor || take_skip(session, rec->in.seq, &never);
        if (never && !session->loose)
            model->wrong = "a record came that had been given up as proven or marked";
        rec->expect = skipped ? by_policy(model, UNSALT_STATE_LATE) : UNSALT_STATE_DUPLICATE;
        return;
    }
    if (list_has(&session->held, rec->in.seq)) {
        rec->expect = UNSALT_STATE_DUPLICATE;
        return;
    }
    model_insert(&session->held, rec);
    model_settle(model, session);
}

static void take_next(struct model_session *session, struct model_rec *rec) {
    if (!session->switching) {
        session->switching = true;
        session->next_epoch = rec->in.epoch;
        session->next_sight = rec->taken_at;
        session->next_shown = 0;
    }
    if (rec->in.epoch != session->next_epoch)
        session->loose = true; /* a third epoch before the second took over */
    session->loose |= !session->started;
    session->next_shown |= 1ULL << rec->in.part;
    if (list_has(&session->next, rec->in.seq))
        rec->expect = UNSALT_STATE_DUPLICATE;
    else
        model_insert(&session->next, rec);
}

static void take_marker(struct model *model, const struct model_rec *rec) {
    struct model_session *session = &model->sessions[rec->session];
    bool next = session->switching && rec->in.epoch == session->next_epoch;
    if (!session->known) {
        session_known(model, session, rec);
        session->known = session->started; /* where the start has to be found out, it tells nothing of it */
    }
    if (!session->known || (rec->in.epoch != session->epoch && !next))
        return;
    if (session->mark_n == session->mark_cap) {
        session->mark_cap = session->mark_cap ? 2 * session->mark_cap : 16;
        session->marks = realloc(session->marks, session->mark_cap * sizeof(*session->marks));
        if (!session->marks)
            abort();
    }
    session->marks[session->mark_n++] = (struct model_range){rec->in.since, rec->in.seq, true, rec->in.epoch};
}

bool model_marked(const struct model_session *session, uint64_t m) {
    for (size_t i = 0; i < session->mark_n; i++)
        if (session->marks[i].epoch == session->epoch && session->marks[i].first <= m && m <= session->marks[i].last)
            return true;
    return false;
}

bool model_decided(const struct model *model, const struct model_session *session, uint64_t m) {
    uint64_t higher = 0;
    bool trust = model->p.gap_proof == UNSALT_PROOF_TRUST;
    for (size_t i = 0; i < session->held.n && model->p.gap_proof != UNSALT_PROOF_OFF; i++) {
        const unsalt_core_in_t *in = &session->held.v[i]->in;
        bool above = (in->una != UNSALT_NO_SEQ && in->una > m) || (trust && in->seq > m);
        if (above && in->lanes && in->lane == m % in->lanes && in->since <= m)
            return true;
        higher |= (uint64_t)(in->seq > m) << in->part;
    }
    return model_marked(session, m) || (trust && !(model_set_parts(model, session->set) & ~higher));
}

static void take_sequenced(struct model *model, struct model_rec *rec) {
    struct model_session *session = &model->sessions[rec->session];
    if (!session->known)
        session_known(model, session, rec);
    if (rec->in.epoch < session->epoch) {
        rec->expect = by_policy(model, UNSALT_STATE_STALE);
        session->loose |= ++session->stale_row >= model->p.restart_k;
        return;
    }
    session->stale_row = 0;
    if (rec->in.epoch > session->epoch) {
        take_next(session, rec);
        return;
    }
    note_shown(session, rec);
    take_current(model, session, rec);
}

void model_take(struct model *model, struct model_rec *rec, uint64_t now) {
    struct model_part *part = &model->parts[rec->in.part];
    rec->taken_at = now;
    rec->expect = UNSALT_STATE_HELD;
    rec->state = -1;
    rec->malformed = false;
    model->held++;
    model->held_bytes += rec->in.bytes;
    if (rec->in.offset < part->passed) {
        rec->expect = UNSALT_STATE_FENCED;
        return;
    }
    part->last = rec->in.offset;
    part_passed(part, rec->in.offset + 1);
    starts(model);
    if (rec->in.kind == UNSALT_KIND_CONTROL && rec->in.flags & UNSALT_F_MARKER)
        take_marker(model, rec);
    if (rec->in.kind == UNSALT_KIND_CONTROL)
        rec->expect = UNSALT_STATE_CONTROL;
    else if (rec->in.kind == UNSALT_KIND_UNSEQUENCED)
        rec->expect = UNSALT_STATE_UNSEQUENCED;
    else if (rec->in.kind == UNSALT_KIND_MALFORMED || rec->in.seq < model->p.seq_first ||
             rec->in.seq == UNSALT_NO_SEQ)
        take_malformed(model, rec);
    else
        take_sequenced(model, rec);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold of everything that comes out of a core, at any time, and in the end. */
#include <inttypes.h>
#include <sim/sim.h>

/* What the core holds from partitions that stay counts as met just now. */
static void meet_held(struct sim *sim, unsigned member, unsigned session, struct sim_pass *pass) {
    const struct sim_member *m = &sim->members[member];
    for (unsigned p = 0; p < sim->parts; p++) {
        const struct sim_part *mp = &m->parts[p];
        for (unsigned i = mp->first; mp->owned && i < mp->next; i++) {
            const struct sim_rec *rec = &sim->logs[p].recs[i];
            if (mp->state[i] == SIM_IN_CORE && rec->in.kind == UNSALT_KIND_SEQUENCED && rec->session == session) {
                pass->sight[rec->run] = m->floor;
                pass->read[rec->run]++;
            }
        }
    }
}

struct sim_pass *sim_pass_of(struct sim *sim, unsigned member, unsigned session) {
    struct sim_member *m = &sim->members[member];
    struct sim_pass *pass = &m->sessions[session];
    uint16_t current = m->pass[sim->sessions[session].set];
    if (pass->pass != current) {
        *pass = (struct sim_pass){.pass = current};
        meet_held(sim, member, session, pass);
    }
    return pass;
}

/* Are there reasons why this session's records may come in another order, or once more? */
static bool is_loose(struct sim *sim, unsigned member, unsigned session) {
    return sim->setup->forgetful || sim->sessions[session].loose || sim_pass_of(sim, member, session)->loose;
}

/* ---- a record that was handed out */

/* Within a pass: ascending. */
static void judge_order(struct sim *sim, unsigned member, const struct sim_rec *rec) {
    struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    bool back = rec->in.epoch < pass->epoch || (rec->in.epoch == pass->epoch && rec->in.seq <= pass->seq);
    if (pass->any && back && !is_loose(sim, member, rec->session))
        sim_fail(sim, SIM_ORDER, "m%u releases %" PRIu64 ":%" PRIu64 " of session %u after %" PRIu64 ":%" PRIu64,
                 member, rec->in.epoch, rec->in.seq, rec->session, pass->epoch, pass->seq);
    pass->any = true;
    pass->epoch = rec->in.epoch;
    pass->seq = rec->in.seq;
}

/* Across owners: only what was released before comes again, or what was given up by somebody. */
static void judge_across(struct sim *sim, unsigned member, const struct sim_rec *rec, struct sim_id *id) {
    struct sim_session *s = &sim->sessions[rec->session];
    bool behind = rec->in.seq < s->highest[rec->run];
    for (unsigned run = rec->run + 1u; run < s->run_n; run++)
        behind |= s->highest[run] > 0 && !s->runs_unseen;
    if (behind && !id->handed && !id->passed && !s->tainted && !is_loose(sim, member, rec->session))
        sim_fail(sim, SIM_ACROSS,
                 "m%u releases %" PRIu64 ":%" PRIu64 " of session %u for the first time, but a higher one was released",
                 member, rec->in.epoch, rec->in.seq, rec->session);
    if (rec->in.seq >= s->highest[rec->run])
        s->highest[rec->run] = rec->in.seq + 1;
}

/*
 * Has the member met a run before this one? Else it takes what it meets first for the first one. A session of which all
 * was turned away is not kept, so that doesn't count.
 */
static bool pass_shows_before(struct sim *sim, unsigned member, const struct sim_rec *rec) {
    const struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    for (unsigned run = 0; run < rec->run; run++)
        if (pass->restored[run] || pass->read[run] > pass->turned[run])
            return true;
    return false;
}

static void judge_released(struct sim *sim, unsigned member, const struct sim_rec *rec, struct sim_id *id) {
    uint16_t pass = sim_pass_of(sim, member, rec->session)->pass;
    if (id->released_in[member] == pass && !is_loose(sim, member, rec->session))
        sim_fail(sim, SIM_TWICE, "m%u releases %" PRIu64 ":%" PRIu64 " of session %u twice", member, rec->in.epoch,
                 rec->in.seq, rec->session);
    judge_order(sim, member, rec);
    if (rec->run > 0 && !pass_shows_before(sim, member, rec))
        sim->sessions[rec->session].runs_unseen = true;
    judge_across(sim, member, rec, id);
    id->released_in[member] = pass;
}

/* Where nobody knows any more what was skipped, a copy passes for a late one. */
static bool forgets_skips(const struct sim *sim, unsigned member, const struct sim_rec *rec) {
    /* Records that may reveal a restart leave as late if their session loses its cursor before the verdict. */
    return sim->setup->params.skips_max < 32 || sim->sessions[rec->session].ended ||
           (sim->members[member].revoking && rec->in.epoch == 0);
}

/* Late: its number was given up in this pass, or lies below where the session began. */
static void judge_late(struct sim *sim, unsigned member, const struct sim_rec *rec, const struct sim_id *id) {
    const struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    bool forgets = forgets_skips(sim, member, rec);
    forgets |= sim->setup->checkpoint && id->passed; /* by an earlier owner, which has said so in the cursor */
    if (id->passed_in[member] != pass->pass && !forgets && !is_loose(sim, member, rec->session))
        sim_fail(sim, SIM_LATE, "m%u calls %" PRIu64 ":%" PRIu64 " of session %u late, and never gave it up", member,
                 rec->in.epoch, rec->in.seq, rec->session);
}

static void judge_stale(struct sim *sim, unsigned member, const struct sim_rec *rec) {
    const struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    for (unsigned run = rec->run + 1u; run < SIM_RUNS; run++)
        if (pass->sight[run])
            return;
    if (!is_loose(sim, member, rec->session))
        sim_fail(sim, SIM_LATE, "m%u calls %" PRIu64 ":%" PRIu64 " of session %u stale, and has seen no later run",
                 member, rec->in.epoch, rec->in.seq, rec->session);
}

/* A duplicate is a second copy: the member must have had another one. */
static void judge_duplicate(struct sim *sim, unsigned member, const struct sim_rec *rec, const struct sim_id *id,
                            const struct sim_rec *self) {
    const struct sim_member *m = &sim->members[member];
    if (is_loose(sim, member, rec->session) || id->committed || rec->committed || id->copies == SIM_COPIES)
        return;
    if (id->handed_in[member] == sim_pass_of(sim, member, rec->session)->pass)
        return;
    if (sim->setup->checkpoint && id->handed && (id->passed || sim->sessions[rec->session].tainted))
        return; /* late at an earlier owner, and done by its cursor */
    for (unsigned i = 0; i < id->copies; i++) {
        unsigned part = id->copy[i].part, index = id->copy[i].index;
        const struct sim_part *mp = &m->parts[part];
        if (&sim->logs[part].recs[index] != self && mp->owned && mp->state[index] != SIM_UNREAD)
            return;
    }
    sim_fail(sim, SIM_DUPLICATE, "m%u calls %" PRIu64 ":%" PRIu64 " of session %u a duplicate, and had no other copy",
             member, rec->in.epoch, rec->in.seq, rec->session);
}

/* Nothing comes again that stands below what a member knows to be committed; but to one that was thrown out. */
static void judge_again(struct sim *sim, unsigned member, unsigned part, const struct sim_rec *rec,
                        unsigned state) {
    if (sim->group.owner[part] != (int)member || !sim->members[member].joined)
        return;
    if (rec->in.offset < sim->group.returned[part])
        sim_fail(sim, SIM_AGAIN, "m%u hands p%u@%" PRId64 " out, but %" PRId64 " was committed", member, part,
                 rec->in.offset, sim->group.returned[part]);
    if (rec->committed)
        sim_fail(sim, SIM_AGAIN, "m%u hands p%u@%" PRId64 " out, which was done by a commit", member, part,
                 rec->in.offset);
    /* A cursor tells of one run: second copies of records of earlier ones are stale. */
    if (rec->in.kind != UNSALT_KIND_SEQUENCED || state == UNSALT_STATE_STALE || is_loose(sim, member, rec->session) ||
        (state == UNSALT_STATE_LATE && forgets_skips(sim, member, rec)) || sim->sessions[rec->session].tainted)
        return;
    if (sim->ids[rec->session][rec->run][rec->number].committed && !sim_pass_of(sim, member, rec->session)->unrestored)
        sim_fail(sim, SIM_AGAIN,
                 "m%u hands %" PRIu64 ":%" PRIu64 " of session %u out again, acknowledged and committed", member,
                 rec->in.epoch, rec->in.seq, rec->session);
}

static void handed_out(struct sim *sim, unsigned member, unsigned part, unsigned index,
                       const unsalt_core_out_t *out) {
    struct sim_member *m = &sim->members[member];
    struct sim_rec *rec = &sim->logs[part].recs[index];
    struct sim_id *id = &sim->ids[rec->session][rec->run][rec->number];
    bool sequenced = rec->in.kind == UNSALT_KIND_SEQUENCED;
    m->parts[part].state[index] = SIM_HANDED;
    sim->coverage->handed++;
    if (sequenced)
        sim->coverage->again += id->handed;
    judge_again(sim, member, part, rec, out->state);
    if (out->state == UNSALT_STATE_RELEASED)
        judge_released(sim, member, rec, id);
    else if (out->state == UNSALT_STATE_LATE)
        judge_late(sim, member, rec, id);
    else if (out->state == UNSALT_STATE_STALE)
        judge_stale(sim, member, rec);
    rec->handed = true;
    if (sequenced) {
        id->handed = true;
        id->handed_in[member] = sim_pass_of(sim, member, rec->session)->pass;
    }
    if (m->token_n == SIM_TOKENS)
        sim_ack(sim, member, 100, 0);
    m->tokens[m->token_n++] =
        (struct sim_token){(uint8_t)part, (uint8_t)index, (int)out->part, out->generation, out->ticket};
}

static void gone(struct sim *sim, unsigned member, unsigned part, unsigned index, const unsalt_core_out_t *out) {
    struct sim_rec *rec = &sim->logs[part].recs[index];
    struct sim_id *id = &sim->ids[rec->session][rec->run][rec->number];
    bool sequenced = rec->in.kind == UNSALT_KIND_SEQUENCED;
    sim->members[member].parts[part].state[index] = SIM_DONE;
    if (out->state == UNSALT_STATE_DUPLICATE)
        judge_duplicate(sim, member, rec, id, rec);
    if (out->state == UNSALT_STATE_DROPPED || out->state == UNSALT_STATE_DEAD_LETTERED) {
        rec->handed = true;
        if (sequenced) {
            id->handed = true;
            id->handed_in[member] = sim_pass_of(sim, member, rec->session)->pass;
        }
        if (sequenced && out->flags & UNSALT_OUT_BUDGET) { /* nobody waits for it any more */
            id->passed = true;
            id->passed_in[member] = sim_pass_of(sim, member, rec->session)->pass;
            sim_pass_of(sim, member, rec->session)->turned[rec->run]++;
        }
    }
    if (out->state == UNSALT_STATE_FENCED)
        sim_fail(sim, SIM_CALL, "m%u: p%u@%" PRId64 " is fenced", member, part, rec->in.offset);
}

void sim_judge_out(struct sim *sim, unsigned member, const unsalt_core_out_t *out) {
    struct sim_member *m = &sim->members[member];
    unsigned part = (unsigned)((uintptr_t)out->msg >> 16 & 0x7fff), index = (unsigned)((uintptr_t)out->msg & 0xffff);
    struct sim_part *mp = &m->parts[part];
    const struct sim_rec *rec = &sim->logs[part].recs[index];
    bool live = mp->owned && out->generation == mp->generation;
    unsigned state = out->state;
    sim_say(sim, "m%u: %s p%u@%" PRId64 ", session %u %" PRIu64 ":%" PRIu64 "%s", member,
            unsalt_state_name((unsalt_state_t)state), part, rec->in.offset, rec->session, rec->in.epoch, rec->in.seq,
            out->flags & UNSALT_OUT_AFTER_GAP ? " after a gap" : "");
    if (m->in_core == 0 || (live && mp->state[index] != SIM_IN_CORE))
        sim_fail(sim, SIM_CONSERVED, "m%u: p%u@%" PRId64 " comes out, but it isn't in its core", member, part,
                 rec->in.offset);
    if (sim->setup->plant == SIM_PLANT_LOSE && sim_mix(sim->step, index) % 16 == 0)
        return;
    m->in_core--;
    if (state == UNSALT_STATE_DUPLICATE && sim->setup->plant == SIM_PLANT_DEDUPE)
        state = UNSALT_STATE_RELEASED;
    if (!live || state == UNSALT_STATE_REVOKED) {
        if (live || unsalt_state_handed_out((unsalt_state_t)state))
            sim_fail(sim, SIM_FENCE, "m%u: p%u@%" PRId64 " comes out as %s, its generation is%s over", member, part,
                     rec->in.offset, unsalt_state_name((unsalt_state_t)state), live ? " not" : "");
        return;
    }
    unsalt_core_out_t judged = *out;
    judged.state = (uint16_t)state;
    if (unsalt_state_handed_out((unsalt_state_t)state))
        handed_out(sim, member, part, index, &judged);
    else
        gone(sim, member, part, index, &judged);
}

/* ---- at any time */

/* A copy, or a record that might have told a restart and didn't, counts as done before it is pulled. */
static bool is_done(struct sim *sim, unsigned member, unsigned part, unsigned index) {
    const struct sim_rec *rec = &sim->logs[part].recs[index];
    const struct sim_part *mp = &sim->members[member].parts[part];
    bool unpulled = (sim->setup->lazy || sim->members[member].busy) && mp->state[index] == SIM_IN_CORE;
    return mp->state[index] == SIM_DONE ||
           (unpulled && rec->in.kind == UNSALT_KIND_SEQUENCED &&
            (rec->in.epoch == 0 ||
             sim->ids[rec->session][rec->run][rec->number].handed_in[member] ==
                 sim_pass_of(sim, member, rec->session)->pass));
}

/* An earlier owner had it done, and told so: the position passes it unread. */
static bool was_done(const struct sim *sim, unsigned part, int64_t offset) {
    const struct sim_done *done = &sim->group.done[part];
    bool found = false;
    for (unsigned i = 0; sim->setup->checkpoint && !found && i < done->n; i++)
        found = done->ranges[i].first <= (uint64_t)offset && (uint64_t)offset <= done->ranges[i].last;
    return found;
}

void sim_judge_position(struct sim *sim, unsigned member, unsigned part, int64_t position) {
    struct sim_part *mp = &sim->members[member].parts[part];
    const struct sim_log *log = &sim->logs[part];
    while (mp->base < log->n && (mp->base < mp->next ? is_done(sim, member, part, mp->base)
                                                     : was_done(sim, part, log->recs[mp->base].in.offset)))
        mp->base++;
    unsigned base = mp->base;
    while (base >= mp->next && base < log->n && log->recs[base].committed)
        base++; /* an earlier owner had done it */
    int64_t most = base < log->n ? log->recs[base].in.offset : log->end;
    if (position > most && position > mp->began)
        sim_fail(sim, SIM_FRONTIER, "m%u: the frontier of p%u is %" PRId64 ", but @%" PRId64 " is not done", member,
                 part, position, most);
    if (position < mp->position)
        sim_fail(sim, SIM_FRONTIER, "m%u: the frontier of p%u goes back from %" PRId64 " to %" PRId64, member, part,
                 mp->position, position);
    mp->position = position;
}

/* Sessions that have left the memory know nothing any more of what they released. */
static void judge_expired(struct sim *sim, unsigned member, const unsalt_core_counters_t *counters) {
    struct sim_member *m = &sim->members[member];
    if (counters->sessions_expired == m->expired)
        return;
    m->expired = counters->sessions_expired;
    for (unsigned i = 0; i < sim->setup->sessions; i++) {
        unsalt_core_session_info_t info;
        char id[2] = {'s', (char)('0' + i)};
        if (unsalt_core_session_info(m->core, sim->sessions[i].set, id, 2, &info) != UNSALT_CORE_OK)
            sim_pass_of(sim, member, i)->loose = sim->sessions[i].tainted = true;
    }
}

void sim_judge_member(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    unsalt_core_counters_t counters;
    if (!m->alive || sim->failed)
        return;
    unsalt_core_counters(m->core, &counters);
    uint64_t held = counters.state[UNSALT_STATE_HELD];
    /* What leaves otherwise than by its turn is counted before it is pulled. */
    bool agrees = sim->setup->lazy || m->busy ? held <= m->in_core : held == m->in_core;
    if (!unsalt_core_conserved(m->core) || !agrees)
        sim_fail(sim, SIM_CONSERVED, "m%u: its core says that it holds %" PRIu64 ", and has %" PRIu64, member, held,
                 m->in_core);
    for (unsigned p = 0; p < sim->parts; p++)
        if (m->parts[p].owned)
            sim_judge_position(sim, member, p, unsalt_core_position(m->core, (uint32_t)m->parts[p].index));
    judge_expired(sim, member, &counters);
}

/* ---- in the end */

static void judge_id(struct sim *sim, unsigned session, unsigned run, unsigned number) {
    const struct sim_id *id = &sim->ids[session][run][number];
    bool deleted = false;
    for (unsigned i = 0; i < id->copies; i++)
        deleted |= id->copy[i].index < sim->logs[id->copy[i].part].start;
    /* With checkpoint the second copy may count as done when the first one, which was held, is deleted. */
    if (id->handed || sim->sessions[session].loose || (deleted && sim->setup->checkpoint))
        return;
    for (unsigned i = 0; i < id->copies; i++) {
        const struct sim_log *log = &sim->logs[id->copy[i].part];
        const struct sim_rec *rec = &log->recs[id->copy[i].index];
        if (id->copy[i].index >= log->start)
            sim_fail(sim, SIM_LOST, "p%u@%" PRId64 ", session %u %" PRIu64 ":%" PRIu64 " was never handed out",
                     id->copy[i].part, rec->in.offset, session, rec->in.epoch, rec->in.seq);
    }
}

void sim_judge_end(struct sim *sim) {
    for (unsigned s = 0; s < sim->setup->sessions; s++)
        for (unsigned run = 0; run < sim->sessions[s].run_n; run++)
            for (unsigned i = 0; i < sim->sessions[s].runs[run].next; i++)
                judge_id(sim, s, run, i);
    for (unsigned p = 0; p < sim->parts; p++) {
        const struct sim_log *log = &sim->logs[p];
        for (unsigned i = log->start; i < log->n; i++)
            if (!log->recs[i].handed && log->recs[i].in.kind != UNSALT_KIND_SEQUENCED &&
                log->recs[i].in.kind != UNSALT_KIND_CONTROL)
                sim_fail(sim, SIM_LOST, "p%u@%" PRId64 " was never handed out", p, log->recs[i].in.offset);
        if (sim->group.committed[p] != log->end)
            sim_fail(sim, SIM_REST, "in the end %" PRId64 " is committed of p%u, and %" PRId64 " is its end",
                     sim->group.committed[p], p, log->end);
    }
}

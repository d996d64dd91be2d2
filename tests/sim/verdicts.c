/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a core, above all verdicts on gaps. A verdict is false if it gives up a number that stands in the log, can
 * be read by this member and should have been waited for:
 *
 *   marker, proven  at all, now or later;
 *   timeout         written before the member's clock showed the due time, and not read yet;
 *   resumed         written before the clock showed the time of the verdict, and not read yet; if it was sent again
 *                   behind a higher number, only with `una`, and if it was written before the due time;
 *   epoch           not read yet, and written before the member first saw a later run; unless its partition has shown
 *                   a later run already;
 *   any             acknowledged, and covered by a cursor that was committed.
 *
 * Other partitions of the set may come and go; what the member has settled of those that it keeps stays settled. What
 * it has handed out was consumed, so `resumed` is true of it, though a copy may stand there. What it has given up, and
 * said so, stays given up as long as its core keeps the session: higher numbers were handed out since, so it can only
 * come as late, and neither `resumed` nor a beginning above it is false.
 *
 * Where budgets are small, or time alone decides, any verdict may be justified, and none is judged.
 */
#include <inttypes.h>
#include <sim/sim.h>

#define FAR (UINT64_C(1) << 20) /* as in restart.c */

/* Can the member still come to this copy? A partition that it hasn't got stands for "yes". */
static bool is_ahead(const struct sim *sim, unsigned member, const struct sim_id *id, unsigned copy) {
    unsigned part = id->copy[copy].part, index = id->copy[copy].index;
    const struct sim_part *mp = &sim->members[member].parts[part];
    if (index < sim->logs[part].start)
        return false;
    return mp->owned ? index >= mp->next : sim->logs[part].recs[index].in.offset >= sim->group.committed[part];
}

static bool is_held(const struct sim *sim, unsigned member, const struct sim_id *id, unsigned copy) {
    const struct sim_member *m = &sim->members[member];
    const struct sim_part *mp = &m->parts[id->copy[copy].part];
    if (m->batch_part == id->copy[copy].part && id->copy[copy].index >= m->batch_from)
        return false; /* it may have come behind the verdict */
    return mp->owned && mp->state[id->copy[copy].index] == SIM_IN_CORE;
}

/* Has the member handed it out from a partition that it still has? */
static bool was_consumed(const struct sim *sim, unsigned member, const struct sim_id *id) {
    for (unsigned i = 0; i < id->copies; i++) {
        unsigned part = id->copy[i].part, index = id->copy[i].index;
        const struct sim_part *mp = &sim->members[member].parts[part];
        if (mp->owned && mp->state[index] >= SIM_HANDED && sim->logs[part].recs[index].handed)
            return true;
    }
    return false;
}

/* Was it given up before, by the member that has had the partition of this copy since? */
static bool stays_given_up(const struct sim *sim, unsigned member, uint16_t given_up, unsigned part) {
    const struct sim_part *mp = &sim->members[member].parts[part];
    return mp->owned && given_up >= mp->assignment;
}

static void give_up(struct sim *sim, unsigned member, unsigned session, struct sim_id *id) {
    id->passed = true;
    id->passed_in[member] = sim_pass_of(sim, member, session)->pass;
    id->given_up[member] = sim->members[member].assignments;
}

void sim_verdicts_forget(struct sim *sim, unsigned member, unsigned set) {
    for (unsigned i = 0; i < sim->setup->sessions; i++) {
        unsalt_core_session_info_t info;
        char name[2] = {'s', (char)('0' + i)};
        if (sim->sessions[i].set != set ||
            unsalt_core_session_info(sim->members[member].core, set, name, 2, &info) == UNSALT_CORE_OK)
            continue;
        for (unsigned k = 0; k < SIM_RUNS * SIM_NUMBERS; k++)
            (&sim->ids[i][0][0])[k].given_up[member] = 0;
    }
}

static bool is_false(struct sim *sim, unsigned member, const unsalt_core_event_t *event, const struct sim_rec *rec,
                     unsigned part) {
    const struct sim_member *m = &sim->members[member];
    const struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    uint64_t at = sim_clock_at(sim, member, rec);
    switch (event->reason) {
    case UNSALT_GAP_MARKER:
    case UNSALT_GAP_PROVEN:
        return true;
    case UNSALT_GAP_TIMEOUT:
        return at < m->floor - event->overdue_ns;
    case UNSALT_GAP_RESUMED:
        if (rec->resent)
            return sim->setup->una && at < m->floor - event->overdue_ns;
        return at < m->floor; /* not at the same reading of a clock that stands */
    case UNSALT_GAP_EPOCH:
        for (unsigned run = rec->run + 1u; run < SIM_RUNS; run++)
            if (pass->sight[run] && (pass->sight[run] <= at || pass->shown[run][part]))
                return false;
        return true;
    default:
        return false;
    }
}

static void judge_number(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session,
                         unsigned run, unsigned number) {
    struct sim_id *id = &sim->ids[session][run][number];
    struct sim_pass *pass = sim_pass_of(sim, member, session);
    bool judged = sim->setup->exact && !sim->sessions[session].loose && !pass->loose;
    const uint16_t given_up = id->given_up[member];
    give_up(sim, member, session, id);
    if (event->reason == UNSALT_GAP_MARKER || event->reason == UNSALT_GAP_PROVEN)
        id->settled |= judged && id->copies == 0;
    bool known = sim->members[member].joined && !pass->unrestored && !sim->sessions[session].tainted;
    if (id->committed && judged && known)
        sim_fail(sim, SIM_FALSE_GAP,
                 "m%u gives up %" PRIu64 ":%" PRIu64 " of session %u (%s), acknowledged and committed", member,
                 event->epoch, sim_seq(sim, &sim->sessions[session].runs[run], number), session,
                 unsalt_gap_reason_name(event->reason));
    for (unsigned i = 0; i < id->copies && judged; i++) {
        const struct sim_rec *rec = &sim->logs[id->copy[i].part].recs[id->copy[i].index];
        if (is_held(sim, member, id, i) && event->reason != UNSALT_GAP_FLUSH)
            sim_fail(sim, SIM_FALSE_GAP, "m%u gives up %" PRIu64 ":%" PRIu64 " of session %u, which it holds (%s)",
                     member, rec->in.epoch, rec->in.seq, session, unsalt_gap_reason_name(event->reason));
        if (!is_ahead(sim, member, id, i))
            continue;
        sim->coverage->gaps_of_present[event->reason]++;
        if (event->reason == UNSALT_GAP_RESUMED &&
            (stays_given_up(sim, member, given_up, id->copy[i].part) || was_consumed(sim, member, id)))
            continue;
        if (is_false(sim, member, event, rec, id->copy[i].part))
            sim_fail(sim, SIM_FALSE_GAP,
                     "m%u gives up %" PRIu64 ":%" PRIu64 " of session %u (%s), which stands in p%u@%" PRId64, member,
                     rec->in.epoch, rec->in.seq, session, unsalt_gap_reason_name(event->reason), id->copy[i].part,
                     rec->in.offset);
    }
}

static void each_number(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session,
                        uint64_t first, uint64_t last) {
    struct sim_session *s = &sim->sessions[session];
    struct sim_run *run = sim_run_of(sim, session, event->epoch);
    for (unsigned i = 0; run && i < SIM_NUMBERS; i++) {
        uint64_t seq = sim_seq(sim, run, i);
        if (seq >= first && seq <= last)
            judge_number(sim, member, event, session, (unsigned)(run - s->runs), i);
    }
}

/* Was the session's start ended by force? Then what is below may stand in a log. */
static bool start_is_forced(const struct sim_member *m, const struct sim_pass *pass, unsigned run) {
    bool later = false;
    for (unsigned i = run + 1; i < SIM_RUNS; i++)
        later |= pass->sight[i] > 0;
    return later || m->flushing;
}

/*
 * A number below the beginning must not stand in a log unread: neither if it was written before the member had met the
 * session, nor, if it was sent again and `una` told that it was open, before a gap would have been due.
 */
static void judge_below(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session,
                        unsigned run, unsigned number) {
    const struct sim_member *m = &sim->members[member];
    const struct sim_id *id = &sim->ids[session][run][number];
    const uint64_t timeout = sim->setup->params.gap_timeout_ns;
    uint64_t sight = m->floor - event->waited_ns, due = timeout == UNSALT_NEVER ? sight : sight + timeout;
    for (unsigned i = 0; i < id->copies && !id->handed; i++) {
        const struct sim_rec *rec = &sim->logs[id->copy[i].part].recs[id->copy[i].index];
        if (!is_ahead(sim, member, id, i) || !m->parts[id->copy[i].part].owned ||
            stays_given_up(sim, member, id->given_up[member], id->copy[i].part))
            continue;
        sim->coverage->below_starts++;
        uint64_t until = !rec->resent ? sight : sim->setup->una ? due : 0;
        if (sim_clock_at(sim, member, rec) < until)
            sim_fail(sim, SIM_ACROSS,
                     "m%u begins session %u at %" PRIu64 ":%" PRIu64 ", and %" PRIu64 " stands in p%u@%" PRId64, member,
                     session, event->epoch, event->first, rec->in.seq, id->copy[i].part, rec->in.offset);
    }
}

/* The session begins in the middle: what is below may have been consumed before. */
static void begins(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session) {
    struct sim_session *s = &sim->sessions[session];
    struct sim_run *run = sim_run_of(sim, session, event->epoch);
    struct sim_pass *met = sim_pass_of(sim, member, session);
    bool restored = false;
    for (unsigned k = 0; k < SIM_RUNS; k++)
        restored |= met->restored[k];
    if (sim->group.cursors[session].there && !restored)
        sim->sessions[session].tainted = true; /* in pieces of a set: its next cursor tells less than the stored one */
    bool judged = run && sim->setup->exact && !s->loose && !met->loose &&
                  !start_is_forced(&sim->members[member], met, (unsigned)(run - s->runs));
    for (unsigned k = 0; run && k < s->run_n && &s->runs[k] <= run; k++) {
        for (unsigned i = 0; i < SIM_NUMBERS; i++) {
            if (&s->runs[k] == run && sim_seq(sim, run, i) >= event->first)
                continue;
            if (&s->runs[k] == run && judged)
                judge_below(sim, member, event, session, k, i);
            give_up(sim, member, session, &sim->ids[session][k][i]);
        }
    }
}

/* A later run took over: what wasn't released of the runs before is given up. */
static void next_run(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session) {
    struct sim_session *s = &sim->sessions[session];
    for (unsigned k = 0; k < s->run_n && s->runs[k].epoch < event->epoch; k++) {
        for (unsigned i = 0; i < SIM_NUMBERS; i++)
            give_up(sim, member, session, &sim->ids[session][k][i]);
    }
}

/*
 * With so many stale records behind it, the end of a run may mean that its producer went back: anything goes then. So
 * it may if the run had jumped far and has no epoch: late records from so far below look like the return from a mad
 * number. Timestamps tell what is stale, or late, from what is new.
 */
static void went_back(struct sim *sim, unsigned member, const unsalt_core_event_t *event, unsigned session) {
    struct sim_pass *pass = sim_pass_of(sim, member, session);
    if (sim->setup->timestamps && sim->setup->exact)
        return;
    const struct sim_run *run = sim_run_of(sim, session, event->epoch);
    bool from_far = event->epoch == 0 && run && run->jump_at < run->next && run->jump_by >= FAR;
    if (event->reason == UNSALT_GAP_EPOCH && (from_far || pass->stale + 1 >= sim->setup->params.restart_k))
        pass->loose = sim->sessions[session].tainted = true;
}

void sim_judge_event(struct sim *sim, unsigned member, const unsalt_core_event_t *event) {
    sim->coverage->events[event->type]++;
    if (event->type == UNSALT_CORE_EV_GAP)
        sim->coverage->gaps[event->reason]++;
    sim_say(sim, "m%u: event %s%s%s, session %.*s, epoch %" PRIu64 ", %" PRIu64 "..%" PRIu64 ", overdue %" PRIu64,
            member, unsalt_core_event_name(event->type), event->type == UNSALT_CORE_EV_GAP ? " " : "",
            event->type == UNSALT_CORE_EV_GAP ? unsalt_gap_reason_name(event->reason) : "", (int)event->session_len,
            event->session ? (const char *)event->session : "", event->epoch, event->first, event->last,
            event->overdue_ns);
    if (!event->session || event->session_len != 2)
        return;
    unsigned session = (unsigned)(((const char *)event->session)[1] - '0');
    switch (event->type) {
    case UNSALT_CORE_EV_STALE:
        sim_pass_of(sim, member, session)->stale++;
        break;
    case UNSALT_CORE_EV_GAP:
        went_back(sim, member, event, session);
        each_number(sim, member, event, session, event->first, event->last);
        break;
    case UNSALT_CORE_EV_START:
        begins(sim, member, event, session);
        break;
    case UNSALT_CORE_EV_EPOCH:
        next_run(sim, member, event, session);
        break;
    case UNSALT_CORE_EV_PROOF_OFF:
        if (sim->setup->exact && !sim->sessions[session].loose && sim->setup->params.gap_proof == UNSALT_PROOF_AUTO)
            sim_fail(sim, SIM_FALSE_GAP, "m%u finds the premise of proof broken in session %u", member, session);
        break;
    case UNSALT_CORE_EV_RESTART:
    case UNSALT_CORE_EV_FORGOTTEN:
        sim_pass_of(sim, member, session)->loose = sim->sessions[session].tainted = true;
        break;
    default:
        break;
    }
}

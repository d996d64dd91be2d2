/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading, questions to leaders, and clocks. */
#include <core/engine.h>
#include <inttypes.h>
#include <sim/sim.h>
#include <stdio.h>

enum { MOST = 24, IDLE = 100 };

/* ---- clocks */

uint64_t sim_time(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    uint64_t now = (uint64_t)((int64_t)sim->now + m->offset);
    if (m->core->now > m->floor + SIM_MS)
        sim_fail(sim, SIM_CALL, "m%u: its core was told %" PRIu64 " at most, and is at %" PRIu64, member, m->floor,
                 m->core->now);
    m->floor = now > m->floor ? now : m->floor;
    return now;
}

/*
 * Kinds: the clock goes back and stays there; it jumps ahead and stays there; it shows a far time once; it shows an
 * early time once.
 */
void sim_clock_trouble(struct sim *sim, unsigned member, const struct sim_op *op) {
    struct sim_member *m = &sim->members[member];
    static const uint64_t steps[] = {1000, SIM_MS, 600 * SIM_MS, 70 * SIM_SEC, 7200 * SIM_SEC};
    int64_t by = (int64_t)steps[op->b % 5], offset = m->offset;
    if (m->clock_n == SIM_TIMES)
        return;
    unsalt_core_expire(m->core, sim_time(sim, member));
    sim_member_events(sim, member);
    unsigned kind = op->a % 4;
    if ((kind == 0 || kind == 3) && (int64_t)sim->now + offset <= by)
        return;
    if (kind >= 2) {
        uint64_t shown = (uint64_t)((int64_t)sim->now + offset + (kind == 2 ? by : -by));
        m->floor = shown > m->floor ? shown : m->floor;
        unsalt_core_expire(m->core, shown);
        sim_member_events(sim, member);
    } else {
        m->offset += kind == 1 ? by : -by;
    }
    m->clock_n++;
    sim->coverage->clocks++;
    sim_say(sim, "m%u: its clock %s by %" PRId64 " ns", member,
            kind == 0 ? "goes back" : kind == 1 ? "jumps" : kind == 2 ? "jumps once" : "goes back once", by);
}

/* Until a clock that went back has caught up, each call of the core is a nanosecond after the last one. */
uint64_t sim_clock_shows(const struct sim *sim, unsigned member) {
    const struct sim_member *m = &sim->members[member];
    uint64_t now = (uint64_t)((int64_t)sim->now + m->offset);
    return m->alive && m->core->now > now ? m->core->now : now;
}

uint64_t sim_clock_at(const struct sim *sim, unsigned member, const struct sim_rec *rec) {
    return rec->at <= sim->members[member].born ? rec->at : rec->shown[member];
}

/* ---- reading */

/* What was deleted before it was read is skipped. */
static void skip_deleted(struct sim *sim, struct sim_part *mp, unsigned part) {
    for (; mp->next < sim->logs[part].start; mp->next++)
        mp->state[mp->next] = SIM_DONE;
}

/* Which sessions the core is finding the start of, before the next push: a bit for each. */
static unsigned starting(struct sim *sim, unsigned member, unsigned part) {
    unsigned bits = 0;
    for (unsigned i = 0; i < sim->setup->sessions; i++) {
        unsalt_core_session_info_t info;
        char id[2] = {'s', (char)('0' + i)};
        bool here = sim->sessions[i].run_n > 1 && sim->sessions[i].set == part / sim->setup->lanes;
        if (here && unsalt_core_session_info(sim->members[member].core, sim->sessions[i].set, id, 2, &info) ==
                        UNSALT_CORE_OK)
            bits |= (unsigned)info.starting << i;
    }
    return bits;
}

/*
 * A session that isn't finding out its start (it has met seq_first, or all was read from the beginning) takes the first
 * run that it meets for the only one. If lanes that are behind show an earlier one then, that is stale, or looks like a
 * producer that went back: nothing is said of the order of such a session, only that all of it is handed out. The same
 * if a restored cursor tells of a later run, and restart_k records of an earlier one are read again. But timestamps
 * tell an earlier run, and where nothing counts as stalled, a restored session waits for a record of its own: then only
 * the order of its runs is open.
 */
static void met_backwards(struct sim *sim, struct sim_pass *pass, const struct sim_rec *rec, unsigned starting_bits) {
    bool later = false, before = false, restored = false;
    for (unsigned run = 0; run < SIM_RUNS; run++) {
        later |= pass->sight[run] && run > rec->run;
        before |= pass->sight[run] && run <= rec->run;
        restored |= pass->restored[run] && run > rec->run;
    }
    pass->again += restored && !rec->committed;
    bool known = restored && pass->again < sim->setup->params.restart_k;
    if (!later || (before && !restored) || known || starting_bits >> rec->session & 1)
        return;
    sim->sessions[rec->session].runs_unseen = true;
    if (sim->setup->timestamps && sim->setup->exact)
        return;
    pass->loose = sim->sessions[rec->session].tainted = true;
    sim->coverage->backwards_met++;
}

static void note_read(struct sim *sim, unsigned member, unsigned part, unsigned index, unsigned starting_bits) {
    const struct sim_rec *rec = &sim->logs[part].recs[index];
    struct sim_member *m = &sim->members[member];
    m->parts[part].state[index] = SIM_IN_CORE;
    m->in_core++;
    sim->coverage->pushed++;
    if (rec->in.kind != UNSALT_KIND_SEQUENCED)
        return;
    bool fresh = m->sessions[rec->session].pass != m->pass[sim->sessions[rec->session].set];
    struct sim_pass *pass = sim_pass_of(sim, member, rec->session);
    met_backwards(sim, pass, rec, starting_bits);
    if (!pass->sight[rec->run])
        pass->sight[rec->run] = m->floor;
    pass->shown[rec->run][part] = true;
    pass->read[rec->run] += !fresh; /* else it counts as held already */
}

static size_t prepare(struct sim *sim, unsigned member, unsigned part, unsigned most, unsalt_core_in_t *in,
                      char ids[][8]) {
    const struct sim_part *mp = &sim->members[member].parts[part];
    const struct sim_log *log = &sim->logs[part];
    size_t n = 0;
    for (; n < most && n < MOST && mp->next + n < log->n; n++) {
        unsigned index = mp->next + (unsigned)n;
        const struct sim_rec *rec = &log->recs[index];
        in[n] = rec->in;
        in[n].msg = (void *)(uintptr_t)(part << 16 | index | 1u << 31);
        in[n].part = (uint32_t)mp->index;
        bool named = rec->in.kind == UNSALT_KIND_SEQUENCED || rec->in.flags & UNSALT_F_MARKER;
        in[n].session_len = named ? (uint32_t)snprintf(ids[n], 8, "s%u", rec->session) : 0;
        in[n].session = named ? ids[n] : NULL;
    }
    return n;
}

static void took(struct sim *sim, unsigned member, unsigned part, size_t n, unsigned starting_bits) {
    struct sim_part *mp = &sim->members[member].parts[part];
    for (size_t i = 0; i < n; i++)
        note_read(sim, member, part, mp->next++, starting_bits);
    if (n)
        sim_say(sim, "m%u: read p%u up to @%" PRId64, member, part, sim->logs[part].recs[mp->next - 1].in.offset);
}

void sim_read(struct sim *sim, unsigned member, unsigned part, unsigned most) {
    struct sim_member *m = &sim->members[member];
    struct sim_part *mp = &m->parts[part];
    unsalt_core_in_t in[MOST];
    unsalt_core_out_t out[MOST];
    char ids[MOST][8];
    if (!mp->owned || mp->paused || m->busy || (sim->logs[part].frozen && !sim->healing))
        return;
    if (sim->setup->checkpoint && !sim_set_is_whole(sim, member, part / sim->setup->lanes))
        return; /* cursors are restored before the first record is read */
    skip_deleted(sim, mp, part);
    if (sim->setup->plant == SIM_PLANT_SKIP && sim_mix(sim->step, part) % 8 == 0 && mp->next < sim->logs[part].n)
        mp->state[mp->next++] = SIM_DONE;
    size_t n = prepare(sim, member, part, most, in, ids), at = 0, n_out;
    unsigned idle = 0;
    int status = UNSALT_CORE_OK;
    while (at < n && !sim->failed) {
        unsigned starting_bits = starting(sim, member, part);
        size_t pushed = unsalt_core_push(m->core, in + at, n - at, sim_time(sim, member), out, &n_out, &status);
        m->batch_part = (int)part;
        m->batch_from = mp->next;
        took(sim, member, part, pushed, starting_bits);
        at += pushed;
        sim_member_events(sim, member);
        m->batch_part = -1;
        for (size_t i = 0; i < n_out; i++)
            sim_judge_out(sim, member, &out[i]);
        sim_member_pull(sim, member, status == UNSALT_CORE_PULL || !sim->setup->lazy ? SIZE_MAX : 0);
        if (status == UNSALT_CORE_BLOCKED || status == UNSALT_CORE_FULL)
            break;
        if (status < 0)
            sim_fail(sim, SIM_CALL, "push says %d", status);
        if (pushed == 0 && ++idle > IDLE)
            sim_fail(sim, SIM_REST, "m%u: push of p%u asks for a pull again and again", member, part);
    }
    sim->coverage->refused += status == UNSALT_CORE_BLOCKED || status == UNSALT_CORE_FULL;
    if (status == UNSALT_CORE_FULL && sim->healing)
        sim_flush(sim, member);
}

void sim_eof(struct sim *sim, unsigned member, unsigned part) {
    struct sim_member *m = &sim->members[member];
    struct sim_part *mp = &m->parts[part];
    const struct sim_log *log = &sim->logs[part];
    if (!mp->owned || m->busy || mp->paused || (log->frozen && !sim->healing))
        return;
    skip_deleted(sim, mp, part);
    if (mp->next < log->n || mp->eof == log->end || log->end < mp->began)
        return;
    mp->eof = log->end;
    unsalt_core_eof(m->core, (uint32_t)mp->index, log->end, sim_time(sim, member));
    sim_say(sim, "m%u: p%u ends at %" PRId64, member, part, log->end);
}

/* ---- questions */

void sim_ask(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    uint32_t parts[SIM_PARTS];
    if (m->busy || m->asked_n + SIM_PARTS > SIM_ASKED)
        return;
    size_t n = unsalt_core_questions(m->core, sim_time(sim, member), parts, SIM_PARTS);
    for (size_t i = 0; i < n; i++) {
        unsigned part = m->part_of[parts[i]];
        int64_t end = sim->logs[part].end;
        if (sim->setup->plant == SIM_PLANT_HORIZON && sim->logs[part].n > 0)
            end = sim->logs[part].recs[0].in.offset;
        m->asked[m->asked_n++] =
            (struct sim_question){(uint8_t)part, (int)parts[i], m->parts[part].generation, end};
        sim->coverage->questions++;
        sim_say(sim, "m%u: asks p%u for its end", member, part);
    }
}

void sim_answer(struct sim *sim, unsigned member, unsigned which, bool fails) {
    struct sim_member *m = &sim->members[member];
    if (m->asked_n == 0)
        return;
    which %= m->asked_n;
    struct sim_question q = m->asked[which];
    fails |= sim->logs[q.part].frozen && !sim->healing;
    m->asked[which] = m->asked[m->asked_n - 1];
    m->asked_n--;
    *(fails ? &sim->coverage->unanswered : &sim->coverage->answers) += 1;
    sim_say(sim, "m%u: p%u %s %" PRId64, member, q.part, fails ? "doesn't answer" : "answers", q.end);
    unsalt_core_answer(m->core, (uint32_t)q.core_index, q.generation, fails ? -1 : q.end, sim_time(sim, member));
}

/* The member knows that it has read all there is. */
void sim_horizon(struct sim *sim, unsigned member, unsigned part) {
    struct sim_member *m = &sim->members[member];
    struct sim_part *mp = &m->parts[part];
    if (!mp->owned || m->busy || mp->next < sim->logs[part].n)
        return;
    uint64_t now = sim_time(sim, member);
    unsalt_core_horizon(m->core, (uint32_t)mp->index, m->floor, now);
    sim_say(sim, "m%u: p%u is read to the end", member, part);
}

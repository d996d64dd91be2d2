/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints: a commit carries the cursors of sessions and what is done beyond the offsets, the coordinator stores all
 * of it or nothing, and the next owner restores it before it reads. A cursor must not cover what the application still
 * has; and what it covers must not come again.
 */
#include <inttypes.h>
#include <sim/sim.h>
#include <stdio.h>
#include <string.h>

bool sim_set_is_whole(const struct sim *sim, unsigned member, unsigned set) {
    for (unsigned i = 0; i < sim->setup->lanes; i++)
        if (!sim->members[member].parts[set * sim->setup->lanes + i].owned)
            return false;
    return true;
}

static unsigned session_of(const unsalt_core_cursor_t *cursor) {
    return (unsigned)(((const char *)cursor->session)[1] - '0');
}

static bool is_in(const unsalt_core_range_t *ranges, uint32_t n, uint64_t seq) {
    for (uint32_t i = 0; i < n; i++)
        if (ranges[i].first <= seq && seq <= ranges[i].last)
            return true;
    return false;
}

/* Is the number covered although the application, or the core, still has its only copy? */
static bool is_open(struct sim *sim, unsigned member, unsigned session, const struct sim_id *id) {
    const struct sim_member *m = &sim->members[member];
    uint16_t pass = sim_pass_of(sim, member, session)->pass;
    bool acked = id->acked_by >> member & 1 || id->committed || id->passed;
    for (unsigned i = 0; i < id->copies; i++) {
        const struct sim_part *mp = &m->parts[id->copy[i].part];
        unsigned state = mp->owned ? mp->state[id->copy[i].index] : SIM_UNREAD;
        if (state == SIM_HANDED && id->released_in[member] == pass && !acked)
            return true;
        if (state == SIM_IN_CORE && !acked && id->handed_in[member] != pass)
            return true;
    }
    return false;
}

static void judge_cursor(struct sim *sim, unsigned member, unsigned session, const unsalt_core_cursor_t *c,
                         struct sim_commit *commit) {
    struct sim_run *run = sim_run_of(sim, session, c->epoch);
    unsigned r = run ? (unsigned)(run - sim->sessions[session].runs) : 0;
    bool loose = sim->sessions[session].loose || sim->setup->forgetful || sim_pass_of(sim, member, session)->loose;
    for (unsigned i = 0; run && !loose && i < run->next; i++) {
        struct sim_id *id = &sim->ids[session][r][i];
        uint64_t seq = sim_seq(sim, run, i);
        bool covered = seq < c->cursor || is_in(c->done, c->done_count, seq);
        if (covered && is_open(sim, member, session, id))
            sim_fail(sim, SIM_FRONTIER, "m%u: the cursor %" PRIu64 ":%" PRIu64 " of session %u covers %" PRIu64
                     ", which is not done", member, c->epoch, c->cursor, session, seq);
        bool may_be_late = seq < c->floor || is_in(c->skipped, c->skipped_count, seq);
        commit->numbers[session][r][i] = covered && !may_be_late && id->acked_by >> member & 1;
    }
}

static void keep_cursor(struct sim *sim, unsigned member, struct sim_commit *commit, const unsalt_core_cursor_t *c) {
    unsigned session = session_of(c);
    struct sim_cursor *to = &commit->cursors[session];
    sim_say(sim, "m%u: cursor of session %u is %" PRIu64 ":%" PRIu64 ", floor %" PRIu64 ", %u done above, %u skipped",
            member, session, c->epoch, c->cursor, c->floor, c->done_count, c->skipped_count);
    if (c->done_count > SIM_RANGES || c->skipped_count > SIM_RANGES) {
        sim_fail(sim, SIM_CALL, "a cursor has %u and %u ranges", c->done_count, c->skipped_count);
        return;
    }
    if (sim_pass_of(sim, member, session)->unrestored)
        sim->sessions[session].tainted = true; /* what this cursor replaces told more */
    to->there = true;
    to->head = *c;
    for (uint32_t i = 0; i < c->done_count; i++)
        to->done[i] = c->done[i];
    for (uint32_t i = 0; i < c->skipped_count; i++)
        to->skipped[i] = c->skipped[i];
    judge_cursor(sim, member, session, c, commit);
}

static void fill_cursors(struct sim *sim, unsigned member, struct sim_commit *commit) {
    unsalt_core_t *core = sim->members[member].core;
    unsalt_core_cursor_t cursor;
    int err = unsalt_core_cursors_begin(core);
    for (unsigned i = 0; i < SIM_SESSIONS; i++)
        commit->cursors[i].there = false;
    memset(commit->numbers, 0, sizeof(commit->numbers));
    if (err != UNSALT_CORE_OK) {
        sim_fail(sim, SIM_CALL, "cursors_begin says %d", err);
        return;
    }
    while ((err = unsalt_core_cursors_next(core, &cursor)) == 1)
        keep_cursor(sim, member, commit, &cursor);
    if (err != 0)
        sim_fail(sim, SIM_CALL, "cursors_next says %d", err);
}

static void fill_done(struct sim *sim, unsigned member, unsigned part, struct sim_commit *commit) {
    const struct sim_part *mp = &sim->members[member].parts[part];
    struct sim_done *done = &commit->done[part];
    done->n = unsalt_core_done(sim->members[member].core, (uint32_t)mp->index, 0, done->ranges, SIM_RANGES);
    for (unsigned i = mp->first; i < mp->next; i++) {
        const struct sim_rec *rec = &sim->logs[part].recs[i];
        uint64_t offset = (uint64_t)rec->in.offset;
        bool covered = rec->in.offset < commit->offsets[part] || is_in(done->ranges, (uint32_t)done->n, offset);
        commit->records[part][i] = covered;
        if (covered && mp->state[i] == SIM_HANDED)
            sim_fail(sim, SIM_FRONTIER, "m%u: p%u@%" PRIu64 " counts as done, and the application has it", member, part,
                     offset);
    }
}

void sim_checkpoint_fill(struct sim *sim, unsigned member, struct sim_commit *commit) {
    if (!sim->setup->checkpoint)
        return;
    fill_cursors(sim, member, commit);
    memset(commit->records, 0, sizeof(commit->records));
    for (unsigned p = 0; p < sim->parts; p++)
        if (commit->offsets[p] >= 0)
            fill_done(sim, member, p, commit);
}

void sim_checkpoint_apply(struct sim *sim, const struct sim_commit *commit) {
    struct sim_group *g = &sim->group;
    if (!sim->setup->checkpoint)
        return;
    for (unsigned i = 0; i < SIM_SESSIONS; i++)
        if (commit->cursors[i].there && sim->setup->plant != SIM_PLANT_CURSORS)
            g->cursors[i] = commit->cursors[i];
    for (unsigned i = 0; i < SIM_SESSIONS * SIM_RUNS * SIM_NUMBERS; i++)
        (&sim->ids[0][0][0])[i].committed |= (&commit->numbers[0][0][0])[i];
    for (unsigned p = 0; p < sim->parts; p++) {
        if (commit->offsets[p] < 0)
            continue;
        g->done[p] = commit->done[p];
        for (unsigned i = 0; i < sim->logs[p].n; i++)
            sim->logs[p].recs[i].committed |= commit->records[p][i];
    }
}

void sim_checkpoint_end(struct sim *sim, const struct sim_commit *commit, bool kept) {
    struct sim_member *m = &sim->members[commit->member];
    if (sim->setup->checkpoint && m->alive && m->incarnation == commit->incarnation)
        unsalt_core_cursors_end(m->core, kept);
}

/* ---- the next owner */

static void restore_session(struct sim *sim, unsigned member, unsigned session) {
    const struct sim_cursor *from = &sim->group.cursors[session];
    struct sim_pass *pass = sim_pass_of(sim, member, session);
    unsalt_core_cursor_t cursor = from->head;
    char id[8];
    cursor.session = id;
    cursor.session_len = (uint32_t)snprintf(id, sizeof(id), "s%u", session);
    cursor.done = from->done;
    cursor.skipped = from->skipped;
    int err = unsalt_core_restore(sim->members[member].core, &cursor, sim_time(sim, member));
    if (err == UNSALT_CORE_EXISTS)
        pass->unrestored = true;
    else if (err != UNSALT_CORE_OK)
        sim_fail(sim, SIM_CALL, "restore says %d", err);
    struct sim_run *run = sim_run_of(sim, session, cursor.epoch);
    if (!run || err != UNSALT_CORE_OK)
        return;
    unsigned r = (unsigned)(run - sim->sessions[session].runs);
    pass->sight[r] = pass->sight[r] ? pass->sight[r] : sim->members[member].floor;
    pass->restored[r] = true;
    sim_say(sim, "m%u: session %u goes on at %" PRIu64 ":%" PRIu64, member, session, cursor.epoch, cursor.cursor);
}

void sim_checkpoint_restore(struct sim *sim, unsigned member, unsigned part) {
    unsigned set = part / sim->setup->lanes;
    const struct sim_part *mp = &sim->members[member].parts[part];
    if (!sim->setup->checkpoint || sim->setup->plant == SIM_PLANT_FORGET)
        return;
    const struct sim_done *done = &sim->group.done[part];
    int err = unsalt_core_done_before(sim->members[member].core, (uint32_t)mp->index, done->ranges, done->n);
    if (err != UNSALT_CORE_OK)
        sim_fail(sim, SIM_CALL, "done_before says %d", err);
    if (!sim_set_is_whole(sim, member, set))
        return;
    sim->coverage->restores++;
    for (unsigned i = 0; i < sim->setup->sessions && !sim->failed; i++)
        if (sim->sessions[i].set == set && sim->group.cursors[i].there)
            restore_session(sim, member, i);
}

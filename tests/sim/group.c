/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator: who owns which partition in which generation, and what was committed. A commit carries the
 * generation of its sender and is refused if that is over, whoever owns what now.
 */
#include <inttypes.h>
#include <sim/sim.h>
#include <string.h>

/* ---- commits */

/* What the member knows to be committable now. */
static void fill_commit(struct sim *sim, unsigned member, struct sim_commit *c) {
    struct sim_member *m = &sim->members[member];
    c->used = true;
    c->member = (uint8_t)member;
    c->incarnation = m->incarnation;
    c->generation = m->generation;
    for (unsigned p = 0; p < sim->parts; p++) {
        c->offsets[p] = -1;
        if (!m->parts[p].owned)
            continue;
        c->offsets[p] = unsalt_core_position(m->core, (uint32_t)m->parts[p].index);
        if (sim->setup->plant == SIM_PLANT_FRONTIER)
            c->offsets[p]++;
        sim_judge_position(sim, member, p, c->offsets[p]);
    }
    sim_checkpoint_fill(sim, member, c);
}

void sim_commit_send(struct sim *sim, unsigned member) {
    struct sim_commit *c = &sim->group.flying[member];
    if (!sim->members[member].alive || c->used)
        return;
    sim_member_events(sim, member);
    fill_commit(sim, member, c);
    if (!sim->healing) /* it comes after each step then */
        sim_say(sim, "m%u: sends a commit of generation %u", member, c->generation);
}

static bool is_over(const struct sim *sim, const struct sim_commit *c) {
    const struct sim_member *m = &sim->members[c->member];
    if (sim->setup->plant == SIM_PLANT_FENCE)
        return false;
    return !m->joined || m->incarnation != c->incarnation || c->generation != sim->group.generation;
}

static void apply(struct sim *sim, const struct sim_commit *c) {
    struct sim_group *g = &sim->group;
    for (unsigned p = 0; p < sim->parts; p++) {
        if (c->offsets[p] < 0)
            continue;
        if (c->offsets[p] < g->committed[p])
            sim_fail(sim, SIM_COMMIT, "m%u takes what is committed of p%u back from %" PRId64 " to %" PRId64,
                     c->member, p, g->committed[p], c->offsets[p]);
        g->committed[p] = c->offsets[p];
    }
    sim->coverage->commits++;
    sim_checkpoint_apply(sim, c);
}

/* Outcomes: 0 it gets lost on the way, 1 its answer does, else both arrive. */
void sim_commit_arrive(struct sim *sim, unsigned member, unsigned outcome) {
    struct sim_commit *c = &sim->group.flying[member];
    if (!c->used)
        return;
    c->used = false;
    if (outcome == 0) {
        sim->coverage->commits_lost++;
        sim_checkpoint_end(sim, c, false);
        sim_say(sim, "m%u: its commit gets lost", member);
        return;
    }
    if (is_over(sim, c)) {
        sim->coverage->commits_fenced++;
        if (sim->setup->plant == SIM_PLANT_ATOMIC)
            sim_checkpoint_apply(sim, c);
        sim_checkpoint_end(sim, c, false);
        sim_say(sim, "m%u: its commit of generation %u is refused", member, c->generation);
        return;
    }
    apply(sim, c);
    sim_checkpoint_end(sim, c, outcome > 1);
    sim->coverage->commits_unheard += outcome == 1;
    if (!sim->healing)
        sim_say(sim, "m%u: its commit is applied%s", member, outcome == 1 ? ", but it doesn't know" : "");
    for (unsigned p = 0; p < sim->parts && outcome > 1; p++)
        if (c->offsets[p] > sim->group.returned[p])
            sim->group.returned[p] = c->offsets[p];
}

/* ---- rebalance */

/* The application gets a last chance, the frontier is committed, then the partitions go. */
static void give_back(struct sim *sim, unsigned member, const bool *parts, uint64_t r) {
    bool any = false;
    for (unsigned p = 0; p < sim->parts; p++)
        any |= parts[p] && sim->members[member].parts[p].owned;
    if (!any)
        return;
    sim_member_pull(sim, member, SIZE_MAX);
    sim_ack(sim, member, (unsigned)(r % 5) * 25, r);
    sim_commit_arrive(sim, member, (unsigned)(r >> 16) % 8);
    sim_commit_send(sim, member);
    sim_commit_arrive(sim, member, (unsigned)(r >> 24) % 8);
    for (unsigned p = 0; p < sim->parts && !sim->failed; p++)
        if (parts[p] && sim->members[member].parts[p].owned)
            sim_member_revoke(sim, member, p);
    sim_member_turn(sim, member);
    sim_judge_member(sim, member);
}

/* Members that don't answer are thrown out, and those that are busy perhaps. Returns how many are left. */
static unsigned gather(struct sim *sim, uint64_t r, unsigned *joined) {
    unsigned n = 0;
    for (unsigned i = 0; i < sim->setup->members; i++) {
        struct sim_member *m = &sim->members[i];
        bool out = m->cut || (m->busy && r >> i & 1);
        if (m->alive && !out && (m->joined || !m->generation)) {
            m->busy = false;
            unsalt_core_reading(m->core, true, sim_time(sim, i));
            joined[n++] = i;
        }
    }
    return n;
}

/* Who shall have each partition. In pieces: some of a set stay where they were for now. */
static void plan_owners(struct sim *sim, const struct sim_op *op, const unsigned *joined, unsigned n, int *owners) {
    bool eager = op->a & 1, pieces = !eager && op->a % 16 < 12 && !sim->healing;
    for (unsigned p = 0; p < sim->parts; p++) {
        unsigned set = p / sim->setup->lanes;
        int before = sim->group.owner[p], wanted = (int)joined[sim_mix(op->b, set) % n];
        bool there = before >= 0 && sim->members[before].joined && !sim->members[before].cut &&
                     sim->members[before].alive;
        bool still = false;
        for (unsigned i = 0; i < n; i++)
            still |= there && (int)joined[i] == before;
        bool sticky = !eager && sim_mix(op->b, set + 50) % 3 == 0;
        owners[p] = still && !sim->healing && (sticky || (pieces && sim_mix(op->b, p + 100) % 2)) ? before : wanted;
    }
}

static bool in_pieces(const struct sim *sim, const int *owners) {
    for (unsigned p = 1; p < sim->parts; p++)
        if (p % sim->setup->lanes && owners[p] != owners[p - 1])
            return true;
    return false;
}

static void take_back(struct sim *sim, const struct sim_op *op, const unsigned *joined, unsigned n, const int *owners) {
    for (unsigned i = 0; i < n; i++) {
        bool parts[SIM_PARTS];
        for (unsigned p = 0; p < sim->parts; p++)
            parts[p] = op->a & 1 || owners[p] != (int)joined[i];
        give_back(sim, joined[i], parts, sim_mix(op->b, 200 + i));
    }
}

static void give_out(struct sim *sim, const int *owners, bool at_once) {
    struct sim_group *g = &sim->group;
    for (unsigned p = 0; p < sim->parts; p++) {
        for (unsigned i = 0; i < sim->setup->members; i++)
            sim->members[i].parts[p].pending = false;
        sim->coverage->moved += g->owner[p] != owners[p];
        g->owner[p] = owners[p];
        struct sim_part *mp = &sim->members[owners[p]].parts[p];
        mp->pending = !mp->owned;
    }
    for (unsigned p = 0; p < sim->parts && at_once && !sim->failed; p++)
        if (sim->members[owners[p]].parts[p].pending)
            sim_member_assign(sim, (unsigned)owners[p], p);
}

/* a: bit 0 eager; whether pieces stay and come at once. b: who gets what, and how it goes. */
void sim_rebalance(struct sim *sim, const struct sim_op *op) {
    unsigned joined[SIM_MEMBERS];
    int owners[SIM_PARTS];
    unsigned n = gather(sim, sim_mix(op->b, 1), joined);
    if (n == 0)
        return;
    *(op->a & 1 ? &sim->coverage->eager : &sim->coverage->incremental) += 1;
    sim_say(sim, "%s rebalance with %u members", op->a & 1 ? "an eager" : "an incremental", n);
    plan_owners(sim, op, joined, n, owners);
    sim->coverage->pieces += in_pieces(sim, owners);
    take_back(sim, op, joined, n, owners);
    sim->group.generation++;
    for (unsigned i = 0; i < sim->setup->members; i++) {
        struct sim_member *m = &sim->members[i];
        bool in = false;
        for (unsigned k = 0; k < n; k++)
            in |= joined[k] == i;
        sim->coverage->zombies += m->joined && m->alive && !in;
        m->joined = in;
        m->generation = in ? sim->group.generation : m->generation;
    }
    if (!sim->failed)
        give_out(sim, owners, op->a % 4 < 2 || sim->healing);
}

/* A member that was thrown out hears of it: all is lost, nothing is committed. It joins at the next rebalance. */
void sim_learn(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    m->cut = false;
    if (!m->alive || m->joined)
        return;
    sim_say(sim, "m%u: hears that it is out", member);
    for (unsigned p = 0; p < sim->parts && !sim->failed; p++) {
        m->parts[p].pending = false;
        if (m->parts[p].owned)
            sim_member_revoke(sim, member, p);
    }
    m->generation = 0;
}

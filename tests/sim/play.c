/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a plan: its operations one after the other, then everything heals and must come to rest. */
#include <inttypes.h>
#include <sim/sim.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 3000, QUIET = 3 };

void sim_fail(struct sim *sim, enum sim_check check, const char *format, ...) {
    if (sim->failed)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sim->why, sizeof(sim->why), format, args);
    va_end(args);
    sim_say(sim, "WRONG: %s", sim->why);
    sim->failed = check;
}

void sim_say(const struct sim *sim, const char *format, ...) {
    if (!sim->trace || sim->failed)
        return;
    va_list args;
    va_start(args, format);
    printf("%10.3f ms  ", (double)sim->now / 1e6);
    vprintf(format, args);
    puts("");
    va_end(args);
}

/* ---- single operations */

static void advance(struct sim *sim, const struct sim_op *op) {
    static const uint64_t scales[] = {SIM_MS, SIM_MS, 20 * SIM_MS, 200 * SIM_MS, 700 * SIM_MS, 5 * SIM_SEC};
    sim->now += 1 + sim_mix(op->b, 3) % scales[op->a % 6];
}

/* The leader of a partition is cut off, or is back. */
static void freeze(struct sim *sim, const struct sim_op *op) {
    struct sim_log *log = &sim->logs[op->a % sim->parts];
    log->frozen = !log->frozen && op->b % 2;
    sim->coverage->frozen += log->frozen;
    sim_say(sim, "p%u: its leader is %s", op->a % sim->parts, log->frozen ? "gone" : "there");
}

static void pause(struct sim *sim, unsigned member, const struct sim_op *op) {
    struct sim_part *mp = &sim->members[member].parts[op->a % sim->parts];
    if (!mp->owned)
        return;
    mp->paused = !mp->paused && op->b % 2;
    sim->coverage->pauses += mp->paused;
    unsalt_core_pause(sim->members[member].core, (uint32_t)mp->index, mp->paused, sim_time(sim, member));
}

static void set_busy(struct sim *sim, unsigned member, bool busy) {
    struct sim_member *m = &sim->members[member];
    sim->coverage->busy += busy && !m->busy;
    m->busy = busy;
    unsalt_core_reading(m->core, !busy, sim_time(sim, member));
}

static void assign_one(struct sim *sim, unsigned member, unsigned from) {
    for (unsigned i = 0; i < sim->parts; i++) {
        unsigned part = (from + i) % sim->parts;
        if (sim->members[member].parts[part].pending) {
            sim_member_assign(sim, member, part);
            return;
        }
    }
}

/* The next partition from `from` on that the member has and that isn't read to its end; `from` if there is none. */
static unsigned some_part(const struct sim *sim, unsigned member, unsigned from) {
    for (unsigned i = 0; i < sim->parts; i++) {
        unsigned part = (from + i) % sim->parts;
        const struct sim_part *mp = &sim->members[member].parts[part];
        if (mp->owned && mp->next < sim->logs[part].n)
            return part;
    }
    return from % sim->parts;
}

static bool is_ahead(const struct sim *sim, unsigned member, unsigned part) {
    unsalt_read_t advice[SIM_PARTS + 1] = {0};
    const struct sim_member *m = &sim->members[member];
    if (!sim->setup->advice || !m->parts[part].owned)
        return false;
    unsalt_core_read_advice(m->core, advice, SIM_PARTS + 1);
    return advice[m->parts[part].index] == UNSALT_READ_AHEAD;
}

/* Operations of a member that is alive. */
static void member_op(struct sim *sim, unsigned i, const struct sim_op *op) {
    struct sim_member *m = &sim->members[i];
    unsigned part = op->b % sim->parts;
    switch (op->kind) {
    case SIM_OP_READ:
        part = some_part(sim, i, op->b);
        if (!is_ahead(sim, i, part))
            sim_read(sim, i, part, 1 + op->a % (op->a >> 8 & 1 ? 3 : 20));
        break;
    case SIM_OP_PULL:
        if (!m->busy)
            sim_member_pull(sim, i, 1 + op->a % 5u);
        break;
    case SIM_OP_ASK: sim_ask(sim, i); break;
    case SIM_OP_ANSWER: sim_answer(sim, i, op->a, op->b % 6 == 0); break;
    case SIM_OP_EOF: sim_eof(sim, i, part); break;
    case SIM_OP_HORIZON: sim_horizon(sim, i, part); break;
    case SIM_OP_ACK: sim_ack(sim, i, 10 + op->a % 91u, op->b); break;
    case SIM_OP_COMMIT: sim_commit_send(sim, i); break;
    case SIM_OP_ASSIGN: assign_one(sim, i, op->a); break;
    case SIM_OP_CRASH:
        sim->coverage->crashes++;
        sim_say(sim, "m%u: crashes", i);
        sim_member_crash(sim, i);
        m->generation = 0;
        break;
    case SIM_OP_CUT: m->cut = true; break;
    case SIM_OP_LEARN: sim_learn(sim, i); break;
    case SIM_OP_PAUSE: pause(sim, i, op); break;
    case SIM_OP_BUSY: set_busy(sim, i, op->a % 2); break;
    case SIM_OP_CLOCK: sim_clock_trouble(sim, i, op); break;
    case SIM_OP_FLUSH: sim_flush(sim, i); break;
    default: break;
    }
}

/* The others. */
static void world_op(struct sim *sim, const struct sim_op *op) {
    switch (op->kind) {
    case SIM_OP_PRODUCE: sim_produce(sim, op); break;
    case SIM_OP_RESOLVE: sim_resolve(sim, op); break;
    case SIM_OP_TIME: advance(sim, op); break;
    case SIM_OP_ARRIVE: sim_commit_arrive(sim, op->who % sim->setup->members, op->a % 10); break;
    case SIM_OP_REBALANCE: sim_rebalance(sim, op); break;
    case SIM_OP_START:
        if (!sim->members[op->who % sim->setup->members].alive)
            sim_member_start(sim, op->who % sim->setup->members);
        break;
    case SIM_OP_FREEZE: freeze(sim, op); break;
    case SIM_OP_RESIZE: sim_resize(sim, op); break;
    case SIM_OP_RESTART: sim_restart(sim, op); break;
    case SIM_OP_JUMP: sim_jump(sim, op); break;
    case SIM_OP_LAST: sim_last(sim, op); break;
    case SIM_OP_TRIM: sim_trim(sim, op); break;
    case SIM_OP_NOISE: sim_noise(sim, op); break;
    default: break;
    }
}

static void step(struct sim *sim, const struct sim_op *op) {
    unsigned member = op->who % sim->setup->members;
    sim->now++; /* so that nothing happens at the same time */
    if (sim->members[member].alive)
        member_op(sim, member, op);
    world_op(sim, op);
    sim->coverage->steps++;
    if (op->kind == SIM_OP_TIME || op->kind == SIM_OP_REBALANCE) {
        for (unsigned i = 0; i < sim->setup->members; i++) {
            sim_member_turn(sim, i);
            sim_judge_member(sim, i);
        }
        return;
    }
    sim_member_turn(sim, member);
    sim_judge_member(sim, member);
}

/* ---- healing */

static void heal(struct sim *sim) {
    const struct sim_op last = {.kind = SIM_OP_REBALANCE, .a = 0, .b = (uint32_t)sim->plan->seed};
    sim->healing = true;
    sim_settle_producers(sim);
    for (unsigned i = 0; i < sim->setup->members && !sim->failed; i++) {
        if (!sim->members[i].alive)
            continue;
        set_busy(sim, i, false);
        sim_member_turn(sim, i);
        sim_commit_arrive(sim, i, 2);
        sim_learn(sim, i);
        for (unsigned p = 0; p < sim->parts; p++)
            if (sim->members[i].parts[p].paused)
                pause(sim, i, &(struct sim_op){.a = (uint16_t)p});
    }
    unsigned alive = 0;
    for (unsigned i = 0; i < sim->setup->members; i++)
        alive += sim->members[i].alive;
    if (!alive && !sim->failed)
        sim_member_start(sim, 0);
    if (!sim->failed)
        sim_rebalance(sim, &last);
}

/* One round of everything that a healthy member does. Returns whether anything is left to do. */
static bool serve(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    bool left = false;
    for (unsigned p = 0; p < sim->parts && !sim->failed; p++) {
        if (!m->parts[p].owned)
            continue;
        sim_read(sim, member, p, 24);
        sim_eof(sim, member, p);
        left |= m->parts[p].next < sim->logs[p].n;
    }
    sim_member_turn(sim, member);
    sim_ask(sim, member);
    while (m->asked_n)
        sim_answer(sim, member, 0, false);
    sim_member_turn(sim, member);
    left |= m->token_n > 0 || m->in_core > 0;
    sim_ack(sim, member, 100, 0);
    sim_judge_member(sim, member);
    sim_commit_send(sim, member);
    sim_commit_arrive(sim, member, 2);
    return left;
}

/* On to the next time at which a core wants to do something, but never far. */
static void let_time_pass(struct sim *sim, unsigned round) {
    uint64_t step = round < 20 ? 50 * SIM_MS : round < 200 ? SIM_SEC : 600 * SIM_SEC;
    sim->now += step;
    if (round % 50 != 49)
        return;
    for (unsigned i = 0; i < sim->setup->members; i++) {
        struct sim_member *m = &sim->members[i];
        if (m->alive && sim->setup->params.gap_timeout_ns > SIM_SEC * 1000000)
            sim_flush(sim, i);
    }
}

static void drain(struct sim *sim) {
    unsigned quiet = 0;
    for (unsigned round = 0; round < ROUNDS && quiet < QUIET && !sim->failed; round++) {
        bool left = false;
        for (unsigned i = 0; i < sim->setup->members && !sim->failed; i++)
            if (sim->members[i].alive)
                left |= serve(sim, i);
        quiet = left ? 0 : quiet + 1;
        let_time_pass(sim, round);
    }
    if (quiet < QUIET)
        sim_fail(sim, SIM_REST, "it doesn't come to rest when all faults are healed");
    if (!sim->failed)
        sim_judge_end(sim);
}

/* ---- the whole */

static void begin(struct sim *sim) {
    const struct sim_setup *setup = sim->setup;
    sim->parts = setup->sets * setup->lanes;
    for (unsigned p = 0; p < sim->parts; p++) {
        struct sim_log *log = &sim->logs[p];
        log->n = log->start = 0;
        log->frozen = false;
        log->end = log->start_offset = setup->base;
        sim->group.committed[p] = setup->base;
        sim->group.owner[p] = -1;
    }
    for (unsigned i = 0; i < setup->sessions; i++) {
        struct sim_session *s = &sim->sessions[i];
        *s = (struct sim_session){.set = (uint8_t)(i % setup->sets), .run_n = 1, .since = setup->params.seq_first};
        s->lanes = (uint16_t)(setup->plain ? setup->lanes : 1 + sim_mix(sim->plan->seed, i) % setup->lanes);
        s->runs[0] = (struct sim_run){.epoch = setup->epochs, .jump_at = SIM_NUMBERS};
    }
    for (unsigned i = 0; i < setup->members; i++)
        for (unsigned set = 0; set < setup->sets; set++)
            sim->members[i].pass[set] = 1;
    for (unsigned i = 0; i < setup->members; i++)
        if (i == 0 || sim_mix(sim->plan->seed, 10 + i) % 2)
            sim_member_start(sim, i);
    sim_rebalance(sim, &(struct sim_op){.kind = SIM_OP_REBALANCE, .b = (uint32_t)sim->plan->seed});
}

enum sim_check sim_play(struct sim *sim, const struct sim_plan *plan, struct sim_coverage *coverage, bool trace) {
    memset(sim, 0, offsetof(struct sim, logs));
    memset(sim->sessions, 0, sizeof(*sim) - offsetof(struct sim, sessions));
    sim->plan = plan;
    sim->setup = &plan->setup;
    sim->coverage = coverage;
    sim->trace = trace;
    sim->now = SIM_SEC;
    coverage->schedules++;
    coverage->exact += plan->setup.exact;
    coverage->checkpoints += plan->setup.checkpoint;
    coverage->small_budgets += !plan->setup.exact;
    begin(sim);
    for (unsigned i = 0; i < plan->n && !sim->failed; i++) {
        sim->step++;
        step(sim, &plan->ops[i]);
    }
    sim->step++;
    if (!sim->failed)
        heal(sim);
    if (!sim->failed)
        drain(sim);
    for (unsigned i = 0; i < plan->setup.members; i++)
        sim_member_crash(sim, i);
    if (sim->blocks)
        sim_fail(sim, SIM_REST, "%" PRIu64 " blocks of memory are left", sim->blocks);
    return sim->failed;
}

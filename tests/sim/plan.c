/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a schedule from its seed: the world's setup, which operations the swarm favours, and the operations. */
#include <inttypes.h>
#include <sim/sim.h>
#include <stdio.h>
#include <string.h>
#include <support/prng.h>

static const unsigned weights[SIM_OP__CNT] = {
#define X(C, name, weight) [SIM_OP_##C] = weight,
    SIM_OPS(X)
#undef X
};

static const char *const names[SIM_OP__CNT] = {
#define X(C, name, weight) [SIM_OP_##C] = #name,
    SIM_OPS(X)
#undef X
};

const char *sim_op_name(enum sim_kind kind) {
    return kind < SIM_OP__CNT ? names[kind] : "?";
}

uint64_t sim_mix(uint64_t a, uint64_t b) {
    uint64_t z = a + UINT64_C(0x9e3779b97f4a7c15) * (b + 1);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t one_of(struct prng *prng, const uint64_t *values, size_t n) {
    return values[prng_below(prng, n)];
}
#define ONE_OF(prng, ...)                                                                                           \
    one_of(prng, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void draw_gaps(struct sim_setup *s, struct prng *prng) {
    unsalt_core_params_t *p = &s->params;
    p->gap_timeout_ns = ONE_OF(prng, 500 * SIM_MS, 500 * SIM_MS, 20 * SIM_MS, 2 * SIM_SEC, 0, UNSALT_NEVER);
    p->gap_stall_max_ns = 1000000 * SIM_SEC;
    p->gap_proof = s->lost + s->late + s->doubtful == 0 || !prng_chance(prng, 20) ? UNSALT_PROOF_AUTO
                                                                                  : UNSALT_PROOF_OFF;
    if (s->late + s->doubtful == 0 && prng_chance(prng, 20))
        p->gap_proof = UNSALT_PROOF_TRUST;
    p->question_min_ns = ONE_OF(prng, 10 * SIM_MS, 1);
    if (s->exact)
        return;
    p->gap_clock = prng_chance(prng, 20) ? UNSALT_CLOCK_WALL : UNSALT_CLOCK_HORIZON;
    p->gap_stall_max_ns = ONE_OF(prng, 300 * SIM_MS, 60 * SIM_SEC);
    p->gap_wait_max_ns = ONE_OF(prng, UNSALT_NEVER, UNSALT_NEVER, SIM_SEC);
}

static void draw_budgets(struct sim_setup *s, struct prng *prng) {
    unsalt_core_params_t *p = &s->params;
    p->budget_policy = (unsalt_budget_policy_t)prng_below(prng, 4);
    p->block_max_ns = ONE_OF(prng, 100 * SIM_MS, 30 * SIM_SEC);
    p->budget_records = ONE_OF(prng, 1, 3, 8, 20, 1000000);
    p->session_budget_records = ONE_OF(prng, 1, 4, 8, 1000000);
    p->budget_bytes = ONE_OF(prng, 1000, 5000, 1 << 30);
    p->session_budget_bytes = ONE_OF(prng, 600, 3000, 1 << 30);
    p->budget_window = ONE_OF(prng, 1, 4, 16, 16777216);
    s->forgetful = prng_chance(prng, 40);
    if (!s->forgetful)
        return;
    p->sessions_max = (uint32_t)ONE_OF(prng, 1, 2, 4000000);
    p->remembered_max = (uint32_t)ONE_OF(prng, 0, 1, 1000000);
    p->session_ttl_ns = ONE_OF(prng, 50 * SIM_MS, 3 * SIM_SEC, 3600 * SIM_SEC);
    p->skips_max = (uint32_t)ONE_OF(prng, 1, 2, 32);
}

static void draw_records(struct sim_setup *s, struct prng *prng) {
    s->una = !s->plain && prng_chance(prng, 85);
    s->epochs = !s->plain && prng_chance(prng, 85);
    s->timestamps = prng_chance(prng, 70);
    s->lost = (unsigned)ONE_OF(prng, 0, 2, 6, 15);
    s->late = (unsigned)ONE_OF(prng, 0, 3, 10);
    s->twice = (unsigned)ONE_OF(prng, 0, 2, 6);
    s->doubtful = (unsigned)ONE_OF(prng, 0, 2, 6);
    s->marked = (unsigned)ONE_OF(prng, 0, 50, 100);
    if (!s->epochs && s->twice + s->doubtful + s->late > 0)
        s->timestamps = true; /* a copy of a first record would look like a producer that has started again */
}

static void draw_setup(struct sim_setup *s, struct prng *prng) {
    *s = (struct sim_setup){.members = (unsigned)ONE_OF(prng, 1, 2, 2, 3, 4)};
    unsalt_core_params_init(&s->params);
    s->hash = prng_chance(prng, 20);
    s->sets = s->hash ? 1 : (unsigned)prng_between(prng, 1, SIM_SETS);
    s->lanes = (unsigned)prng_between(prng, 1, s->hash ? 6 : SIM_LANES);
    s->sessions = (unsigned)prng_between(prng, 1, SIM_SESSIONS);
    s->steps = (unsigned)prng_between(prng, 30, SIM_STEPS);
    s->plain = prng_chance(prng, 15);
    s->configured = s->plain && !s->hash && prng_chance(prng, 50);
    s->exact = prng_chance(prng, 65);
    s->checkpoint = prng_chance(prng, 40);
    s->lazy = prng_chance(prng, 20);
    s->advice = prng_chance(prng, 20);
    s->base = (int64_t)ONE_OF(prng, 0, 0, 0, 1000);
    draw_records(s, prng);
    unsalt_core_params_t *p = &s->params;
    p->session_id_max = 8;
    p->cursors = s->checkpoint;
    p->session_ttl_ns = UNSALT_NEVER;
    p->hash_seed = prng_next(prng);
    p->seq_first = ONE_OF(prng, 1, 1, 0, 100);
    p->start = (unsalt_start_t)ONE_OF(prng, UNSALT_START_RESUME, UNSALT_START_RESUME, UNSALT_START_SEEN,
                                      UNSALT_START_FIRST);
    p->late = (unsalt_late_t)ONE_OF(prng, UNSALT_LATE_DELIVER, UNSALT_LATE_DELIVER, UNSALT_LATE_DROP,
                                    UNSALT_LATE_DEAD_LETTER);
    p->malformed = (unsalt_malformed_t)prng_below(prng, 2);
    p->lanes = s->configured ? (uint16_t)s->lanes : 0;
    p->release_max = (uint32_t)ONE_OF(prng, 1024, 1, 3);
    p->restart_k = (uint32_t)ONE_OF(prng, 5, 5, 2);
    draw_gaps(s, prng);
    if (!s->exact)
        draw_budgets(s, prng);
}

/* Some operations come as usual, some never, some far more often. Without these four nothing happens at all. */
static void draw_swarm(unsigned *swarm, struct prng *prng) {
    for (int kind = 0; kind < SIM_OP__CNT; kind++) {
        bool needed = kind == SIM_OP_PRODUCE || kind == SIM_OP_READ || kind == SIM_OP_TIME || kind == SIM_OP_ASSIGN;
        swarm[kind] = weights[kind];
        if (!needed && prng_chance(prng, 15))
            swarm[kind] = 0;
        else if (prng_chance(prng, 8))
            swarm[kind] *= 4;
    }
}

void sim_plan_draw(struct sim_plan *plan, uint64_t seed, enum sim_plant plant) {
    struct prng prng = {.state = sim_mix(seed, 17)};
    unsigned swarm[SIM_OP__CNT], sum = 0;
    plan->seed = seed;
    draw_setup(&plan->setup, &prng);
    plan->setup.plant = plant;
    draw_swarm(swarm, &prng);
    for (int kind = 0; kind < SIM_OP__CNT; kind++)
        sum += swarm[kind];
    plan->n = plan->setup.steps;
    for (unsigned i = 0; i < plan->n; i++) {
        unsigned kind = 0, at = (unsigned)prng_below(&prng, sum);
        while (at >= swarm[kind])
            at -= swarm[kind++];
        uint64_t r = prng_next(&prng);
        plan->ops[i] =
            (struct sim_op){(uint8_t)kind, (uint8_t)(r & 0xff), (uint16_t)(r >> 8 & 0xffff), (uint32_t)(r >> 32)};
    }
}

static void print_time(const char *name, uint64_t ns) {
    if (ns == UNSALT_NEVER)
        printf(" %s=never", name);
    else
        printf(" %s=%.6gms", name, (double)ns / 1e6);
}

void sim_plan_print(const struct sim_plan *plan) {
    const struct sim_setup *s = &plan->setup;
    const unsalt_core_params_t *p = &s->params;
    printf("seed %" PRIu64 ": %u operations, members=%u sets=%u lanes=%u sessions=%u", plan->seed, plan->n, s->members,
           s->sets, s->lanes, s->sessions);
    const struct {
        bool on;
        const char *name;
    } flags[] = {{s->hash, "hash"},     {s->plain, "plain"},       {s->configured, "configured"},
                 {s->una, "una"},       {s->epochs, "epochs"},     {s->checkpoint, "checkpoint"},
                 {s->lazy, "lazy"},     {s->advice, "advice"},     {s->exact, "exact"},
                 {s->forgetful, "forgetful"}, {s->timestamps, "timestamps"}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        printf("%s%s", flags[i].on ? " " : "", flags[i].on ? flags[i].name : "");
    puts("");
    printf("  lost=%u%% late=%u%% twice=%u%% doubtful=%u%% marked=%u%% base=%" PRId64 " start=%d late=%d proof=%d"
           " clock=%d seq_first=%" PRIu64 " restart_k=%u release_max=%u\n ",
           s->lost, s->late, s->twice, s->doubtful, s->marked, s->base, (int)p->start, (int)p->late,
           (int)p->gap_proof, (int)p->gap_clock, p->seq_first, p->restart_k, p->release_max);
    print_time("gap_timeout", p->gap_timeout_ns);
    print_time("stall_max", p->gap_stall_max_ns);
    print_time("wait_max", p->gap_wait_max_ns);
    if (!s->exact) {
        printf(" policy=%d records=%" PRIu64 " bytes=%" PRIu64 " session_records=%" PRIu64 " session_bytes=%" PRIu64
               " window=%" PRIu64 " sessions_max=%u remembered=%u skips=%u",
               (int)p->budget_policy, p->budget_records, p->budget_bytes, p->session_budget_records,
               p->session_budget_bytes, p->budget_window, p->sessions_max, p->remembered_max, p->skips_max);
        print_time("block_max", p->block_max_ns);
        print_time("ttl", p->session_ttl_ns);
    }
    puts("");
}

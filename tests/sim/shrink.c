/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shrinks a plan that fails: operations are left out, in halves, quarters and so on (ddmin: Zeller and Hildebrandt,
 * Simplifying and Isolating Failure-Inducing Input, 2002), then the setup and the operations' numbers are made simple.
 * What is kept must fail in the same check.
 */
#include <sim/sim.h>
#include <string.h>

static bool still_fails(struct sim *sim, const struct sim_plan *plan, enum sim_check check) {
    static struct sim_coverage unused;
    return sim_play(sim, plan, &unused, false) == check;
}

static bool try_plan(struct sim *sim, struct sim_plan *plan, const struct sim_plan *less, enum sim_check check) {
    if (!still_fails(sim, less, check))
        return false;
    *plan = *less;
    return true;
}

static bool leave_out(struct sim *sim, struct sim_plan *plan, enum sim_check check, unsigned size) {
    static struct sim_plan less;
    bool any = false;
    for (unsigned at = 0; at < plan->n;) {
        unsigned n = at + size < plan->n ? size : plan->n - at;
        less = *plan;
        memmove(&less.ops[at], &less.ops[at + n], (plan->n - at - n) * sizeof(less.ops[0]));
        less.n -= n;
        if (try_plan(sim, plan, &less, check))
            any = true;
        else
            at += n;
    }
    return any;
}

/* One thing of the setup made simple; false: there is no such thing. */
static bool simpler(struct sim_setup *s, unsigned what) {
    unsalt_core_params_t defaults;
    unsalt_core_params_init(&defaults);
    unsalt_core_params_t *p = &s->params;
    switch (what) {
    case 0: s->members = 1; return true;
    case 1: s->members = 2; return true;
    case 2: s->sets = 1; return true;
    case 3: s->lanes = 1; return true;
    case 4: s->lanes = 2; return true;
    case 5: s->sessions = 1; return true;
    case 6: s->sessions = 2; return true;
    case 7: s->hash = false; return s->lanes <= SIM_LANES;
    case 8: s->lazy = s->advice = false; return true;
    case 9: s->lost = s->marked = 0; return true;
    case 10: s->late = 0; return true;
    case 11: s->twice = 0; return true;
    case 12: s->doubtful = 0; return true;
    case 13: s->base = 0; return true;
    case 14: p->seq_first = 1; return true;
    case 15: p->release_max = defaults.release_max; return true;
    case 16: p->gap_timeout_ns = defaults.gap_timeout_ns; return true;
    case 17: p->start = defaults.start; return true;
    case 18: p->late = defaults.late; p->malformed = defaults.malformed; return true;
    case 19: p->gap_proof = UNSALT_PROOF_OFF; return true;
    case 20: p->budget_records = defaults.budget_records; return true;
    case 21: p->budget_bytes = defaults.budget_bytes; return true;
    case 22: p->session_budget_records = defaults.session_budget_records; return true;
    case 23: p->session_budget_bytes = defaults.session_budget_bytes; return true;
    case 24: p->budget_window = defaults.budget_window; return true;
    case 25: p->sessions_max = defaults.sessions_max; return true;
    case 26: p->remembered_max = defaults.remembered_max; return true;
    case 27: p->session_ttl_ns = UNSALT_NEVER; return true;
    case 28: p->skips_max = defaults.skips_max; return true;
    case 29: s->una = false; return true;
    case 30: s->checkpoint = p->cursors = false; return true;
    case 31: p->gap_wait_max_ns = defaults.gap_wait_max_ns; return true;
    case 32: p->gap_stall_max_ns = defaults.gap_stall_max_ns; return true;
    default: return false;
    }
}

static void simplify(struct sim *sim, struct sim_plan *plan, enum sim_check check) {
    static struct sim_plan less;
    less = *plan;
    for (unsigned what = 0; simpler(&less.setup, what) || what == 7; what++) {
        if (memcmp(&less.setup, &plan->setup, sizeof(less.setup)) != 0)
            try_plan(sim, plan, &less, check);
        less = *plan;
    }
    for (unsigned i = 0; i < plan->n; i++) {
        less = *plan;
        less.ops[i].a = 0;
        try_plan(sim, plan, &less, check);
        less = *plan;
        less.ops[i].b = 0;
        try_plan(sim, plan, &less, check);
        less = *plan;
        less.ops[i].who = (uint8_t)(less.ops[i].who % 4);
        less.ops[i].who = less.ops[i].who > 1 ? 1 : 0;
        try_plan(sim, plan, &less, check);
    }
}

void sim_shrink(struct sim *sim, struct sim_plan *plan, enum sim_check check) {
    for (unsigned round = 0; round < 4; round++) {
        unsigned before = plan->n;
        for (unsigned size = plan->n / 2; size > 0; size /= 2)
            leave_out(sim, plan, check, size);
        simplify(sim, plan, check);
        if (plan->n == before && round > 0)
            return;
    }
}

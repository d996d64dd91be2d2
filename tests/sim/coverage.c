/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <sim/coverage.h>
#include <stdio.h>

_Static_assert(sizeof(struct sim_coverage) % sizeof(uint64_t) == 0, "it is counters and nothing else");

void sim_coverage_add(struct sim_coverage *sum, const struct sim_coverage *more) {
    for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)more)[i];
}

static void row(uint64_t n, const char *text) {
    printf("%14" PRIu64 "  %s\n", n, text);
}

void sim_coverage_print(const struct sim_coverage *c) {
    char text[96];
#define X(name, words) row(c->name, words);
    SIM_COVERAGE(X)
#undef X
    for (int i = 0; i < UNSALT_GAP__CNT; i++) {
        snprintf(text, sizeof(text), "gaps given up, %s", unsalt_gap_reason_name((unsalt_gap_reason_t)i));
        row(c->gaps[i], text);
    }
    for (int i = 0; i < UNSALT_GAP__CNT; i++) {
        snprintf(text, sizeof(text), "numbers in them that stood in a log unread, and legally so, %s",
                 unsalt_gap_reason_name((unsalt_gap_reason_t)i));
        if (c->gaps_of_present[i])
            row(c->gaps_of_present[i], text);
    }
    for (int i = 0; i < UNSALT_CORE_EV__CNT; i++) {
        snprintf(text, sizeof(text), "events, %s", unsalt_core_event_name((unsalt_core_event_type_t)i));
        if (i != UNSALT_CORE_EV_GAP)
            row(c->events[i], text);
    }
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        snprintf(text, sizeof(text), "records that ended as %s", unsalt_state_name((unsalt_state_t)i));
        if (i != UNSALT_STATE_HELD && i != UNSALT_STATE_READY && i != UNSALT_STATE_FENCED)
            row(c->states[i], text);
    }
    for (int i = 0; i < UNSALT_BUDGET__CNT; i++)
        for (int k = 0; k < UNSALT_OUTCOME__CNT; k++) {
            snprintf(text, sizeof(text), "budget %s full, %s", unsalt_budget_name((unsalt_budget_t)i),
                     unsalt_budget_outcome_name((unsalt_budget_outcome_t)k));
            if (c->budgets[i][k])
                row(c->budgets[i][k], text);
        }
}

static unsigned hole(uint64_t n, const char *text) {
    if (n == 0)
        printf("never happened: %s\n", text);
    return n == 0;
}

unsigned sim_coverage_holes(const struct sim_coverage *c) {
    unsigned holes = 0;
#define X(name, words) holes += hole(c->name, words);
    SIM_COVERAGE(X)
#undef X
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        holes += hole(c->gaps[i], unsalt_gap_reason_name((unsalt_gap_reason_t)i));
    return holes;
}

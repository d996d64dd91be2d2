/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of <unsalt/types.h>, out of the same tables as the constants. */
#include <unsalt/types.h>

const char *unsalt_state_name(unsalt_state_t state) {
    static const char *const names[] = {
#define X(C, name, gauge, text) #name,
        UNSALT_STATES(X)
#undef X
    };
    return (unsigned)state < UNSALT_STATE__CNT ? names[state] : "?";
}

const char *unsalt_budget_name(unsalt_budget_t budget) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_BUDGETS(X)
#undef X
    };
    return (unsigned)budget < UNSALT_BUDGET__CNT ? names[budget] : "?";
}

const char *unsalt_budget_outcome_name(unsalt_budget_outcome_t outcome) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_BUDGET_OUTCOMES(X)
#undef X
    };
    return (unsigned)outcome < UNSALT_OUTCOME__CNT ? names[outcome] : "?";
}

const char *unsalt_gap_reason_name(unsalt_gap_reason_t reason) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_GAP_REASONS(X)
#undef X
    };
    return (unsigned)reason < UNSALT_GAP__CNT ? names[reason] : "?";
}

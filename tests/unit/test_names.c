/* SPDX-License-Identifier: BSD-2-Clause */
#include <support/check.h>
#include <unsalt/types.h>

TEST(names, states_have_their_names) {
    CHECK_STR(unsalt_state_name(UNSALT_STATE_HELD), "held");
    CHECK_STR(unsalt_state_name(UNSALT_STATE_DEAD_LETTERED), "dead_lettered");
    CHECK_STR(unsalt_state_name(UNSALT_STATE_FENCED), "fenced");
    CHECK_U64(UNSALT_STATE__CNT, 12);
}

TEST(names, verdicts_have_their_names) {
    CHECK_STR(unsalt_gap_reason_name(UNSALT_GAP_MARKER), "marker");
    CHECK_STR(unsalt_gap_reason_name(UNSALT_GAP_RESUMED), "resumed");
    CHECK_STR(unsalt_gap_reason_name(UNSALT_GAP_EPOCH), "epoch");
    CHECK_U64(UNSALT_GAP__CNT, 8);
}

TEST(names, budgets_have_their_names) {
    CHECK_STR(unsalt_budget_name(UNSALT_BUDGET_RECORDS), "records");
    CHECK_STR(unsalt_budget_name(UNSALT_BUDGET_SESSION_BYTES), "session_bytes");
    CHECK_STR(unsalt_budget_name(UNSALT_BUDGET__CNT), "?");
    CHECK_STR(unsalt_budget_name((unsalt_budget_t)-1), "?");
}

TEST(names, names_are_distinct) {
    for (int i = 0; i < UNSALT_STATE__CNT; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(unsalt_state_name((unsalt_state_t)i), unsalt_state_name((unsalt_state_t)j)) != 0);
}

TEST(names, values_out_of_range_have_none) {
    CHECK_STR(unsalt_state_name(UNSALT_STATE__CNT), "?");
    CHECK_STR(unsalt_state_name((unsalt_state_t)-1), "?");
    CHECK_STR(unsalt_gap_reason_name(UNSALT_GAP__CNT), "?");
    CHECK_STR(unsalt_gap_reason_name((unsalt_gap_reason_t)1000), "?");
}

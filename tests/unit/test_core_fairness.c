/* SPDX-License-Identifier: BSD-2-Clause */
/* One filled gap in front of a million records doesn't starve other sessions. */
#include <support/check.h>
#include <support/stage.h>

TEST(core_fairness, sessions_take_turns) {
    struct stage s;
    stage_init(&s);
    s.params.release_max = 3;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.lazy = true;
    for (uint64_t seq = 2; seq <= 9; seq++)
        stage_push(&s, 0, "a", seq);
    stage_push(&s, 0, "b", 2);
    stage_push(&s, 0, "b", 3);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    stage_pull(&s, 5);
    CHECK_STR(stage_took(&s), "a1 b1 a2 a3 a4 b2 b3");
    stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "a5 a6 a7 a8 a9");
    stage_close(&s);
}

TEST(core_fairness, a_long_run_is_pulled_in_pieces_that_cost_what_they_give) {
    struct stage s;
    stage_default(&s, 2);
    s.lazy = true;
    for (uint64_t seq = 2; seq <= 100000; seq++)
        stage_push(&s, 0, "a", seq);
    for (uint64_t seq = 2; seq <= 10; seq++)
        stage_push(&s, 1, "b", seq);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 1, "b", 1);
    s.took[0] = '\0';
    CHECK_U64(stage_pull(&s, 256), 256);
    CHECK_THAT(strstr(stage_took(&s), "b10"), "b is starved");
    while (stage_pull(&s, 1000) == 1000)
        s.took[0] = '\0';
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 100010);
    stage_close(&s);
}

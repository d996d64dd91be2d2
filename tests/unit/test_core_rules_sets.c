/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of lane sets, proof and flush that could once be taken out without any test noticing; tests/mutants/ takes each
 * of them out again.
 */
#include <support/check.h>
#include <support/stage.h>

/* A lane is gone, and a later run is known: it can't be known what the lane still has of the current one. */
TEST(core_rules_sets, a_run_does_not_end_while_a_lane_is_missing) {
    struct stage s;
    stage_default(&s, 2);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    for (int i = 0; i < 5; i++) {
        stage_wait(&s, SEC);
        stage_horizon(&s, 0, 0);
        CHECK_STR(stage_took(&s), "");
        CHECK_STR(stage_said(&s), "");
    }
    CHECK_U64(stage_assign(&s, 0, 2, -1, 0, 0), 1);
    s.in.epoch = 1;
    stage_push(&s, 1, "a", 2);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a2 a3 a1");
    stage_close(&s);
}

/* A full budget starts a session of a set that isn't complete; its next gap waits for the set all the same. */
static void start_by_budget(struct stage *s) {
    stage_init(s);
    s->params.budget_records = 2;
    stage_open(s);
    stage_assign(s, 0, 2, -1, 0, 0);
    s->in.lanes = 1;
    stage_push(s, 0, "a", 5);
    stage_push(s, 0, "a", 6);
    CHECK_STR(stage_took(s), "");
    for (int i = 0; i < 10 && !stage_push(s, 0, "a", 7); i++)
        CHECK_I64(s->status, UNSALT_CORE_PULL);
    CHECK_STR(stage_took(s), "a5 a6 a7");
    stage_said(s);
}

TEST(core_rules_sets, a_gap_is_not_given_up_while_a_lane_is_missing) {
    struct stage s;
    start_by_budget(&s);
    stage_push(&s, 0, "a", 9);
    for (int i = 0; i < 5; i++) {
        stage_wait(&s, SEC);
        stage_horizon(&s, 0, 0);
    }
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_assign(&s, 0, 2, -1, 0, 0), 1);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a9!");
    CHECK_STR(stage_said(&s), "gap:a8-8:timeout");
    stage_close(&s);
}

TEST(core_rules_sets, nothing_is_proven_while_a_lane_is_missing) {
    struct stage s;
    start_by_budget(&s);
    s.in.una = 9;
    stage_push(&s, 0, "a", 9);
    CHECK_STR(stage_took(&s), "");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

/*
 * Lane 1 had shown that 3 is decided, and 3 was held. Then its partition was revoked, so both are read again: what was
 * shown before proves nothing of what comes again.
 */
TEST(core_rules_sets, what_was_shown_before_a_revoke_proves_nothing_after_it) {
    struct stage s;
    stage_default(&s, 2);
    s.in.lanes = 2;
    s.in.una = 1;
    stage_push_lane(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    stage_push_lane(&s, 0, "a", 4);
    stage_push_lane(&s, 1, "a", 3);
    s.in.una = 5;
    stage_push_lane(&s, 1, "a", 5);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_pull(&s, SIZE_MAX);
    CHECK_STR(stage_took(&s), "revoked:a3 revoked:a5");
    CHECK_U64(stage_assign(&s, 0, 2, -1, 0, 0), 1);
    s.in.una = 1;
    stage_push_lane(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    s.in.una = 3;
    stage_push_lane(&s, 0, "a", 6); /* lane 0 shows that 2 is lost; 3 is still to come */
    CHECK_STR(stage_took(&s), "");
    CHECK_STR(stage_said(&s), "");
    s.in.una = 1;
    stage_push_lane(&s, 1, "a", 3);
    CHECK_STR(stage_took(&s), "a3! a4");
    CHECK_STR(stage_said(&s), "gap:a2-2:proven"); /* lane 0 had not released it before the revoke */
    stage_close(&s);
}

/* A producer that breaks its own rule (lane = number mod lanes) has proven nothing of the lane that it names. */
TEST(core_rules_sets, una_on_a_lane_that_the_number_is_not_of_proves_nothing) {
    struct stage s;
    stage_default(&s, 2);
    s.in.lanes = 2;
    s.in.lane = 1;
    s.in.una = 7;
    stage_push(&s, 1, "a", 7); /* 1, 3 and 5 are decided */
    s.in.lane = 0;
    s.in.una = 9;
    stage_push(&s, 0, "a", 9); /* 2, 4 and 6 are not: 9 is of lane 1 */
    CHECK_STR(stage_took(&s), "");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_rules_sets, what_comes_after_a_flush_is_waited_for) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    unsalt_core_flush(s.core, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a2! a4!");
    CHECK_STR(stage_said(&s), "gap:a1-1:flush gap:a3-3:flush");
    stage_wait(&s, MS);
    stage_push(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "");
    CHECK_STR(stage_said(&s), "");
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a5 a6");
    stage_close(&s);
}

TEST(core_rules_sets, a_cursor_that_found_no_room_is_forgotten) {
    struct stage s;
    stage_init(&s);
    s.params.session_ttl_ns = SEC;
    s.params.remembered_max = 0;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_wait(&s, 5 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_STR(stage_said(&s), "forgotten:a");
    stage_took(&s);
    stage_push(&s, 0, "a", 2); /* it may be anywhere by now */
    CHECK_STR(stage_took(&s), "a2");
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 6: budgets, and what gives way when one is full. */
#include <support/check.h>
#include <support/stage.h>

TEST(core_overflow, the_oldest_gap_gives_way) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 4;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "old", 2);
    s.now += MS;
    stage_push(&s, 0, "new", 2);
    stage_push(&s, 0, "new", 4);
    stage_push(&s, 0, "new", 6);
    CHECK_STR(stage_took(&s), "");
    stage_said(&s);
    while (!stage_push(&s, 0, "new", 8)) {
        CHECK_I64(s.status, UNSALT_CORE_PULL);
        stage_pull(&s, 100);
    }
    CHECK_STR(stage_took(&s), "old2!");
    CHECK(strstr(stage_said(&s), "gap:old1-1:overflow"));
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 4);
    CHECK(stage_counters(&s).budget_full[0] >= 1);
    stage_close(&s);
}

TEST(core_overflow, what_needs_no_room_is_never_refused) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 2);
    CHECK(stage_push(&s, 0, "b", 1));
    CHECK(stage_push(&s, 0, "b", 1));
    CHECK(stage_push(&s, 0, "a", 3));
    s.in.kind = UNSALT_KIND_CONTROL;
    CHECK(stage_push(&s, 0, "x", 0));
    s.in.kind = UNSALT_KIND_UNSEQUENCED;
    CHECK(stage_push(&s, 0, "x", 0));
    s.in.kind = UNSALT_KIND_SEQUENCED;
    CHECK(stage_push(&s, 0, "a", 1));
    CHECK_STR(stage_took(&s), "b1 duplicate:b1 duplicate:a3 control:x0 unsequenced:x0 a1 a2 a3");
    stage_close(&s);
}

TEST(core_overflow, bytes_count_too) {
    struct stage s;
    stage_init(&s);
    s.params.budget_bytes = 1000;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.bytes = 400;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    CHECK_STR(stage_took(&s), "");
    for (int i = 0; i < 10 && !stage_push(&s, 0, "a", 6); i++)
        stage_pull(&s, 100);
    CHECK(s.status == UNSALT_CORE_OK);
    CHECK(stage_counters(&s).held_bytes <= 1000);
    CHECK(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW] >= 1);
    CHECK(stage_counters(&s).budget_full[1] >= 1);
    stage_close(&s);
}

TEST(core_overflow, a_record_greater_than_the_budget_is_not_stuck) {
    struct stage s;
    stage_init(&s);
    s.params.budget_bytes = 1000;
    s.params.session_budget_bytes = 500;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.bytes = 5000;
    for (uint64_t seq = 2; seq <= 10; seq += 2) {
        int tries = 0;
        while (!stage_push(&s, 0, "a", seq))
            CHECK_THAT(++tries < 10, "number %" PRIu64 " is refused for ever, status %d", seq, s.status);
    }
    stage_close(&s);
}

TEST(core_overflow, a_session_has_its_own_budget) {
    struct stage s;
    stage_init(&s);
    s.params.session_budget_records = 2;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "other", 2); /* older, but its session is not full */
    s.now += MS;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    stage_said(&s);
    for (int i = 0; i < 10 && !stage_push(&s, 0, "a", 6); i++)
        stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK(strstr(stage_said(&s), "gap:a1-1:overflow"));
    CHECK(stage_counters(&s).budget_full[2] >= 1);
    stage_close(&s);
}

TEST(core_overflow, one_permanent_hole_does_not_slow_the_others) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 100;
    s.params.session_budget_records = 10;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.lazy = true;
    for (uint64_t seq = 1; seq <= 1000; seq++) {
        for (int i = 0; i < 10 && !stage_push(&s, 0, "hole", 2 * seq); i++)
            stage_pull(&s, 100);
        CHECK(stage_push(&s, 0, "healthy", seq));
        CHECK_U64(s.last.seq, seq);
        s.took[0] = s.said[0] = '\0';
    }
    stage_close(&s);
}

TEST(core_overflow, the_first_number_of_a_full_session_that_is_not_started_is_not_stuck) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 3;
    s.params.start = UNSALT_START_SEEN;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    for (uint64_t seq = 10; seq < 30; seq++) {
        int tries = 0;
        while (!stage_push(&s, 0, "a", seq))
            CHECK_THAT(++tries < 10, "number %" PRIu64 " is refused for ever, status %d", seq, s.status);
    }
    CHECK(stage_counters(&s).state[UNSALT_STATE_HELD] <= 3);
    stage_close(&s);
}

TEST(core_overflow, an_epoch_that_waits_is_not_stuck_either) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 3;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 1;
    for (uint64_t seq = 1; seq < 30; seq++) {
        int tries = 0;
        while (!stage_push(&s, 0, "a", seq))
            CHECK_THAT(++tries < 10, "number %" PRIu64 " is refused for ever, status %d", seq, s.status);
    }
    CHECK(stage_counters(&s).state[UNSALT_STATE_HELD] <= 3);
    stage_close(&s);
}

/* The session was met in its second run; the tail of the first one came, and went with its partition. */
TEST(core_overflow, a_run_that_waits_behind_an_empty_one_is_not_lost) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 3;
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 0, 0);
    stage_push(&s, 2, "a", 5);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 3);
    CHECK_I64(unsalt_core_revoke(s.core, 2, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 10);
    s.in.epoch = 0;
    stage_push(&s, 1, "b", 7);
    for (int i = 0; i < 10 && !stage_push(&s, 1, "b", 9); i++)
        stage_pull(&s, 10);
    stage_assign(&s, 0, 3, -1, 0, 0);
    for (int i = 0; i < 20; i++) {
        stage_wait(&s, 10 * SEC);
        stage_horizon(&s, 0, 2);
        stage_flush(&s);
    }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
    stage_close(&s);
}

TEST(core_overflow, a_set_that_is_not_complete_is_bounded_too) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 3;
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 0, 0);
    for (uint64_t seq = 1; seq <= 10; seq++)
        if (!stage_push(&s, 0, "a", seq))
            stage_pull(&s, 10);
    CHECK_THAT(stage_counters(&s).state[UNSALT_STATE_HELD] <= 3, "%" PRIu64 " records are held",
               stage_counters(&s).state[UNSALT_STATE_HELD]);
    stage_close(&s);
}

TEST(core_overflow, block_refuses_first_and_gives_way_later) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    s.params.block_max_ns = 30 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    CHECK(!stage_push(&s, 0, "a", 6));
    CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
    CHECK_STR(stage_took(&s), "");
    CHECK_THAT(unsalt_core_deadline(s.core) <= s.now + 30 * SEC, "nothing would ever wake the reader");
    stage_wait(&s, 30 * SEC);
    for (int i = 0; i < 10 && !stage_push(&s, 0, "a", 6); i++)
        stage_pull(&s, 100);
    CHECK_I64(s.status, UNSALT_CORE_OK);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_overflow, a_full_session_is_not_blocked_for_ever_by_a_busy_neighbour) {
    struct stage s;
    stage_init(&s);
    s.params.session_budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    s.params.block_max_ns = 30 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 1, "old", 2); /* an older gap that is not the problem */
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    bool passed = false;
    for (uint64_t i = 0; i < 100 && !passed; i++) {
        passed = stage_push(&s, 0, "a", 6);
        CHECK(stage_push(&s, 1, "b", 2 * i + 2)); /* out of order, on another partition */
        CHECK(stage_push(&s, 1, "b", 2 * i + 1));
        stage_wait(&s, SEC);
        s.took[0] = '\0';
    }
    CHECK_THAT(passed, "refused for 100 s, block_max is 30 s");
    stage_close(&s);
}

TEST(core_overflow, the_number_that_everyone_waits_for_passes_a_block) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 3);
    CHECK(!stage_push(&s, 0, "a", 4));
    CHECK(stage_push(&s, 1, "a", 1));
    CHECK(stage_push(&s, 0, "a", 4));
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], 0);
    stage_close(&s);
}

/* The refused record passes in the end as the next one in order; the partition is read again from then on. */
TEST(core_overflow, a_partition_that_was_refused_can_be_refused_again) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.in.lanes = 1;
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t seq = 4 * round;
        CHECK(stage_push_lane(&s, 0, "a", seq + 2));
        CHECK(stage_push_lane(&s, 0, "a", seq + 3));
        CHECK(!stage_push_lane(&s, 0, "a", seq + 4));
        CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
        CHECK(stage_push_lane(&s, 1, "a", seq + 1));
        CHECK(stage_push_lane(&s, 0, "a", seq + 4));
        CHECK_U64(stage_counters(&s).budget_outcome[UNSALT_BUDGET_RECORDS][UNSALT_OUTCOME_BLOCKED], round + 1);
    }
    stage_close(&s);
}

/* And if it shows nothing from then on, it stalls like any other. */
TEST(core_overflow, a_partition_that_was_refused_can_stall_afterwards) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = 100 * MS;
    s.params.gap_stall_max_ns = SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.in.lanes = 1;
    CHECK(stage_push_lane(&s, 0, "a", 2));
    CHECK(stage_push_lane(&s, 0, "a", 3));
    CHECK(!stage_push_lane(&s, 0, "a", 4));
    CHECK(stage_push_lane(&s, 1, "a", 1));
    CHECK(stage_push_lane(&s, 0, "a", 4)); /* the next one in order */
    s.in.lanes = 0;
    CHECK(stage_push(&s, 1, "b", 2));
    stage_wait(&s, 100 * MS);
    stage_horizon(&s, 1, 1);
    stage_said(&s);
    stage_wait(&s, 2 * SEC);
    CHECK_STR(stage_said(&s), "gap:b1-1:stalled");
    stage_close(&s);
}

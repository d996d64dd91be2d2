/* SPDX-License-Identifier: BSD-2-Clause */
/* The policies `dead-letter` and `fail`: see test_core_overflow.c for the other two. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/* The session "hole" fills the budget of 3; number 1 is missing. */
static void fill_up(struct stage *s, unsalt_budget_policy_t policy) {
    stage_init(s);
    s->params.budget_records = 3;
    s->params.budget_policy = policy;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(s);
    stage_parts(s, 0, 2, false, 0, 0);
    for (uint64_t seq = 2; seq <= 4; seq++)
        CHECK(stage_push(s, 0, "hole", seq));
    CHECK_STR(stage_took(s), "");
    stage_said(s);
}

static uint64_t outcome(struct stage *s, unsalt_budget_outcome_t which) {
    return stage_counters(s).budget_outcome[UNSALT_BUDGET_RECORDS][which];
}

TEST(core_budget_policy, dead_letter_turns_away_what_finds_no_room) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    CHECK(stage_push(&s, 0, "hole", 5));
    CHECK_STR(stage_took(&s), "dead_lettered:hole5");
    CHECK(s.last.flags & UNSALT_OUT_BUDGET);
    CHECK_STR(stage_said(&s), "budget:");
    CHECK(stage_push(&s, 0, "hole", 6));
    CHECK(stage_push(&s, 1, "hole", 1));
    CHECK_STR(stage_took(&s), "dead_lettered:hole6 hole1 hole2 hole3 hole4");
    CHECK_STR(stage_said(&s), "gap:hole5-6:overflow"); /* nobody waits for them */
    CHECK(stage_push(&s, 0, "hole", 7));
    CHECK_STR(stage_took(&s), "hole7!");
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_DEAD_LETTERED), 2);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DEAD_LETTERED], 2);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], 1);
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_GAVE_WAY), 0);
    stage_close(&s);
}

/* Its offset is done with: the commit goes over it. */
TEST(core_budget_policy, what_was_turned_away_is_acknowledged) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    s.ack = true;
    CHECK(stage_push(&s, 1, "hole", 5));
    CHECK_I64(unsalt_core_position(s.core, 1), 1);
    stage_close(&s);
}

/* Else every later record of a healthy session would have to be held, and be turned away in its turn. */
TEST(core_budget_policy, a_healthy_neighbour_goes_on_after_a_dead_letter) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    CHECK(stage_push(&s, 0, "healthy", 1));
    CHECK(stage_push(&s, 0, "healthy", 3)); /* its lane is a little ahead */
    CHECK(stage_push(&s, 1, "healthy", 2));
    CHECK(stage_push(&s, 1, "healthy", 4));
    CHECK(stage_push(&s, 0, "healthy", 5));
    CHECK_STR(stage_took(&s), "healthy1 dead_lettered:healthy3 healthy2 healthy4! healthy5");
    CHECK(strstr(stage_said(&s), "gap:healthy3-3:overflow"));
    stage_close(&s);
}

TEST(core_budget_policy, a_copy_of_a_dead_letter_is_late) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    CHECK(stage_push(&s, 0, "healthy", 3));
    CHECK(stage_push(&s, 1, "healthy", 3)); /* before the cursor gets there */
    CHECK_STR(stage_took(&s), "dead_lettered:healthy3 late:healthy3");
    CHECK(stage_push(&s, 1, "healthy", 1));
    CHECK(stage_push(&s, 1, "healthy", 2));
    stage_took(&s);
    CHECK(stage_push(&s, 1, "healthy", 3)); /* and after */
    CHECK_STR(stage_took(&s), "late:healthy3");
    stage_close(&s);
}

/* Three lanes of four are turned away while the fourth is behind: each of its records frees the three behind it. */
TEST(core_budget_policy, lanes_that_were_turned_away_are_passed_as_the_last_one_comes) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    s.in.lanes = 4;
    for (uint64_t seq = 2; seq <= 4000; seq += seq % 4 ? 1 : 2)
        CHECK(stage_push_lane(&s, 0, "other", seq));
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_DEAD_LETTERED), 3000);
    stage_took(&s);
    stage_said(&s);
    for (uint64_t seq = 1; seq <= 997; seq += 4) {
        char gap[64];
        CHECK(stage_push_lane(&s, 1, "other", seq));
        snprintf(gap, sizeof(gap), "gap:other%" PRIu64 "-%" PRIu64 ":overflow", seq + 1, seq + 3);
        CHECK_STR(stage_said(&s), gap);
    }
    /* The fourth lane loses the rest: its numbers wait for the clock, the others for nobody. */
    stage_took(&s);
    CHECK(stage_push_lane(&s, 1, "hole", 1));
    s.in.lanes = 4;
    CHECK(stage_push_lane(&s, 1, "other", 4001));
    CHECK_STR(stage_said(&s), "");
    stage_flush(&s);
    CHECK_STR(stage_said(&s), "gap:other1001-4000:flush");
    stage_close(&s);
}

/* What was turned away stands between numbers that are proven lost: all of it is known, and nothing is waited for. */
TEST(core_budget_policy, dead_letters_among_numbers_that_are_proven_lost) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_DEAD_LETTER);
    s.in.lanes = 1;
    CHECK(stage_push_lane(&s, 0, "a", 1));
    CHECK(stage_push_lane(&s, 0, "a", 3));
    s.in.lanes = 0;
    CHECK(stage_push(&s, 0, "hole", 1));
    stage_took(&s);
    stage_said(&s);
    s.in.lanes = 1;
    s.in.una = 5;
    CHECK(stage_push_lane(&s, 0, "a", 5));
    CHECK_STR(stage_said(&s), "gap:a2-2:proven gap:a3-3:overflow gap:a4-4:proven");
    CHECK_STR(stage_took(&s), "a5!");
    stage_close(&s);
}

/* A session whose first record is turned away holds nothing that could start it; it must be no dead weight. */
TEST(core_budget_policy, a_session_without_a_beginning_is_forgotten_with_its_dead_letter) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    s.params.start = UNSALT_START_SEEN;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    CHECK(stage_push(&s, 0, "a", 50));
    CHECK(stage_push(&s, 0, "a", 51));
    CHECK_U64(stage_counters(&s).sessions, 1);
    CHECK(stage_push(&s, 0, "b", 70));
    CHECK_STR(stage_took(&s), "dead_lettered:b70");
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a50 a51");
    CHECK(stage_push(&s, 0, "b", 71));
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "b71");
    stage_close(&s);
}

/* What is known of a number that was turned away is bounded: the rest waits for the clock. */
TEST(core_budget_policy, what_is_remembered_of_dead_letters_is_bounded) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 1;
    s.params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    s.params.skips_max = 4;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.ack = true;
    s.in.lanes = 4;
    CHECK(stage_push_lane(&s, 1, "hole", 2));
    size_t before = 0;
    for (uint64_t i = 1; i <= 20000; i++) { /* squares: no two steps are the same */
        CHECK(stage_push_lane(&s, 0, "a", i * i + 1));
        before = i == 100 ? s.mem.bytes : before;
        s.took[0] = s.said[0] = '\0';
    }
    CHECK_THAT(s.mem.bytes <= before, "%zu bytes, were %zu", s.mem.bytes, before);
    stage_close(&s);
}

TEST(core_budget_policy, fail_refuses_until_somebody_makes_room) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_FAIL);
    for (int i = 0; i < 5; i++) {
        CHECK(!stage_push(&s, 0, "hole", 5));
        CHECK_I64(s.status, UNSALT_CORE_FULL);
        stage_wait(&s, 3600 * SEC);
    }
    CHECK_STR(stage_took(&s), "");
    CHECK_STR(stage_said(&s), "budget:");
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_FAILED), 1);
    CHECK(stage_push(&s, 1, "healthy", 1)); /* what has its turn needs no room */
    stage_flush(&s);
    CHECK(stage_push(&s, 0, "hole", 5));
    CHECK_STR(stage_took(&s), "healthy1 hole2! hole3 hole4 hole5");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_FLUSH], 1);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], 0);
    stage_close(&s);
}

TEST(core_budget_policy, fail_ends_with_the_number_that_was_missing_too) {
    struct stage s;
    fill_up(&s, UNSALT_BUDGET_FAIL);
    CHECK(!stage_push(&s, 0, "hole", 5));
    CHECK(stage_push(&s, 1, "hole", 1));
    CHECK(stage_push(&s, 0, "hole", 5));
    CHECK_STR(stage_took(&s), "hole1 hole2 hole3 hole4 hole5");
    stage_close(&s);
}

/* A flush gives up gaps; a later run that waits for the end of the one before it has none, and still must go. */
TEST(core_budget_policy, a_flush_makes_room_whatever_is_in_the_way) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_FAIL;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    CHECK(stage_push(&s, 0, "a", 1));
    s.in.epoch = 1;
    CHECK(stage_push(&s, 0, "a", 1));
    CHECK(stage_push(&s, 0, "a", 2));
    CHECK(!stage_push(&s, 0, "a", 3));
    stage_flush(&s);
    for (int i = 0; i < 5 && !stage_push(&s, 0, "a", 3); i++)
        stage_pull(&s, 10);
    CHECK_I64(s.status, UNSALT_CORE_OK);
    CHECK_STR(stage_took(&s), "a1 a1 a2 a3");
    stage_close(&s);
}

/* A rehearsed full budget is like a real one, but for its cause. */
TEST(core_budget_policy, a_rehearsed_one_follows_the_policy) {
    struct stage s;
    stage_default(&s, 1);
    CHECK(stage_push(&s, 0, "a", 2));
    s.in.flags = UNSALT_IN_FULL;
    CHECK(!stage_push(&s, 0, "b", 2));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_said(&s), "budget: gap:a1-1:overflow");
    CHECK(stage_push(&s, 0, "b", 1)); /* needs no room */
    s.in.flags = 0;
    CHECK_STR(stage_took(&s), "a2! b1");
    stage_close(&s);
}

/* A record that takes no place of its own in the log: a copy of one before it, or one that comes late. */
TEST(core_budget_policy, a_record_that_comes_again_has_no_offset_of_its_own) {
    struct stage s;
    stage_default(&s, 1);
    CHECK(stage_push(&s, 0, "a", 1));
    unsalt_core_out_t first = s.last;
    s.in.flags = UNSALT_IN_AGAIN;
    s.next[0] = 0;
    CHECK(stage_push(&s, 0, "a", 1));
    CHECK_STR(stage_took(&s), "a1 duplicate:a1");
    CHECK(stage_push(&s, 0, "a", 2));
    unsalt_core_out_t again = s.last;
    s.in.flags = 0;
    s.next[0] = 1;
    CHECK(stage_push(&s, 0, "a", 3));
    CHECK_STR(stage_took(&s), "a2 a3");
    CHECK_I64(unsalt_core_position(s.core, 0), 0);
    CHECK_I64(unsalt_core_ack(s.core, 0, first.generation, first.ticket), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), 1);
    CHECK_I64(unsalt_core_ack(s.core, 0, s.last.generation, s.last.ticket), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), 1);
    CHECK_I64(unsalt_core_ack(s.core, 0, again.generation, again.ticket), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), 2);
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of gaps and verdicts that could once be taken out without any test noticing; tests/mutants/ takes each of them
 * out again.
 */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/* A timer isn't cancelled when its gap closes: when it fires, the gap of now may be young. */
TEST(core_rules_gaps, a_timer_of_a_closed_gap_gives_up_nothing) {
    struct stage s;
    stage_init(&s);
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "a", 1);
    stage_wait(&s, 200 * MS);
    stage_push(&s, 0, "a", 4);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_wait(&s, 499 * MS);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, MS);
    CHECK_STR(stage_took(&s), "a4!");
    stage_close(&s);
}

/* That the partition was once read past some time is no evidence for a later one. */
TEST(core_rules_gaps, a_horizon_of_before_is_not_enough) {
    struct stage s;
    stage_default(&s, 1);
    stage_horizon(&s, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 499 * MS);
    stage_horizon(&s, 0, 0);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* Aborted records end a log: no record follows, only the end tells that they were passed. */
TEST(core_rules_gaps, an_end_that_comes_after_the_answer_is_noticed) {
    struct stage s;
    uint32_t part;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(unsalt_core_questions(s.core, s.now, &part, 1), 1);
    unsalt_core_answer(s.core, 0, unsalt_core_generation(s.core, 0), 3, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "");
    unsalt_core_eof(s.core, 0, 3, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* A dead leader condemns no gap that a partition with a backlog still owes. */
TEST(core_rules_gaps, a_stalled_partition_does_not_speak_for_the_next_one) {
    struct stage s;
    stage_init(&s);
    s.params.gap_stall_max_ns = 60 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 1, "a", 2);
    for (uint64_t seq = 1; seq <= 200; seq++) { /* partition 0 is dead, partition 1 has a backlog */
        stage_wait(&s, SEC);
        stage_push(&s, 1, "b", seq);
    }
    CHECK_THAT(!strstr(stage_said(&s), "gap:a"), "given up although partition 1 may hold the number");
    stage_horizon(&s, 1, 1);
    CHECK_STR(stage_said(&s), "gap:a1-1:stalled");
    stage_close(&s);
}

TEST(core_rules_gaps, the_longest_wait_is_not_over_before_its_time) {
    struct stage s;
    stage_init(&s);
    s.params.gap_wait_max_ns = 10 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, SEC);
    stage_wait(&s, 7500 * MS);
    stage_push(&s, 0, "b", 2);
    stage_wait(&s, 600 * MS); /* its timer makes the core look */
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 900 * MS);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:stalled");
    stage_close(&s);
}

/* Two numbers are missing, and una names the second: that one may be under way. */
TEST(core_rules_gaps, the_number_that_una_names_is_not_decided) {
    struct stage s;
    stage_default(&s, 1);
    s.in.lanes = 1;
    s.in.una = 1;
    stage_push(&s, 0, "a", 1);
    s.in.una = 3;
    stage_push(&s, 0, "a", 4);
    CHECK_STR(stage_took(&s), "a1");
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a3! a4");
    CHECK_STR(stage_said(&s), "gap:a2-2:proven");
    stage_close(&s);
}

/* What was shown before the premise broke is no proof either. */
TEST(core_rules_gaps, a_broken_premise_takes_back_what_was_shown) {
    struct stage s;
    stage_default(&s, 1);
    s.in.lanes = 1;
    s.in.una = 1;
    stage_push(&s, 0, "a", 1);
    s.in.una = 8;
    stage_push(&s, 0, "a", 9); /* 2 to 7 are decided, 8 is not */
    s.in.una = 5;
    stage_push(&s, 0, "a", 8);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(stage_said(&s), "proof_off:a");
    stage_close(&s);
}

/* Lane 2 was joined above 14; lane 0 had shown 12, so its 15 is missing like any other number. */
TEST(core_rules_gaps, a_lane_that_has_shown_a_lower_number_resumes_nothing) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 3, true, 100, 0);
    s.in.lanes = 3;
    stage_push_lane(&s, 0, "a", 12);
    stage_push_lane(&s, 1, "a", 13);
    stage_push_lane(&s, 2, "a", 20);
    CHECK_STR(stage_took(&s), "a12 a13");
    CHECK_STR(stage_said(&s), "start:a");
    stage_push_lane(&s, 0, "a", 15);
    CHECK_STR(stage_took(&s), "a15!");
    CHECK_STR(stage_said(&s), "gap:a14-14:resumed");
    stage_close(&s);
}

static void push_of(struct stage *s, uint16_t lanes, uint64_t since, uint32_t part, uint64_t seq) {
    s->in.lanes = lanes;
    s->in.since = since;
    stage_push_lane(s, part, "a", seq);
}

/* The lane of 15 has shown 13, although another lane of the same partition begins above 15. */
TEST(core_rules_gaps, the_lowest_number_that_a_partition_has_shown_counts) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    push_of(&s, 2, 1, 1, 13);
    push_of(&s, 4, 20, 1, 21);
    push_of(&s, 2, 1, 0, 12);
    push_of(&s, 2, 1, 0, 14);
    push_of(&s, 2, 1, 0, 16);
    push_of(&s, 2, 1, 1, 17);
    CHECK_STR(stage_took(&s), "a12 a13 a14");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a16! a17 a21!");
    CHECK(strstr(stage_said(&s), "gap:a15-15:timeout"));
    stage_close(&s);
}

/* S of 11 isn't known; by the S of later numbers its lane would be one that was joined above it. */
TEST(core_rules_gaps, an_s_says_nothing_of_numbers_before_it) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 100, 0);
    push_of(&s, 3, 1, 2, 10);
    push_of(&s, 2, 12, 0, 12);
    push_of(&s, 2, 12, 1, 13);
    CHECK_STR(stage_took(&s), "a10"); /* the third partition may have carried it */
    CHECK_STR(stage_said(&s), "start:a");
    stage_close(&s);
}

/* Two lanes up to 10, and from 20 on again. S of 11 isn't known, so the first partition may have carried it. */
TEST(core_rules_gaps, an_s_says_nothing_of_numbers_after_it) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    push_of(&s, 2, 1, 0, 10);
    push_of(&s, 2, 20, 1, 21);
    push_of(&s, 4, 12, 0, 12);
    CHECK_STR(stage_took(&s), "a10");
    CHECK_STR(stage_said(&s), "start:a");
    stage_close(&s);
}

/* Only the second one was joined above 11; the first has shown 10, and may still have it. */
TEST(core_rules_gaps, one_partition_that_was_joined_above_proves_nothing) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    stage_push(&s, 0, "a", 10);
    stage_push(&s, 1, "a", 12);
    CHECK_STR(stage_took(&s), "a10");
    CHECK_STR(stage_said(&s), "start:a");
    stage_push(&s, 0, "a", 11);
    CHECK_STR(stage_took(&s), "a11 a12");
    stage_close(&s);
}

/* One was joined at the beginning of its log, the other has shown 10: neither can have had 11 before. */
TEST(core_rules_gaps, a_number_that_no_partition_can_have_had_is_not_resumed) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 100, 0);
    stage_assign(&s, 0, 2, -1, 0, 0);
    stage_push(&s, 0, "a", 10);
    stage_horizon(&s, 0, 1);
    stage_push(&s, 0, "a", 12);
    CHECK_STR(stage_took(&s), "a10");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a12!");
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:timeout");
    stage_close(&s);
}

/* More gaps than there is room for events: the rest go with the calls that follow, without another flush. */
TEST(core_rules_gaps, a_flush_without_room_for_events_goes_on_by_itself) {
    enum { SESSIONS = 300 };
    struct stage s;
    char id[16];
    stage_default(&s, 1);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof(id), "s%d", i);
        stage_push(&s, 0, id, 2);
    }
    unsalt_core_flush(s.core, s.now);
    stage_expire(&s);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_FLUSH], SESSIONS);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], SESSIONS);
    stage_close(&s);
}

/* A copy of what is ready and not pulled yet must not pass as the next number. */
TEST(core_rules_gaps, a_copy_of_what_is_ready_does_not_pass) {
    struct stage s;
    stage_default(&s, 1);
    s.in.lanes = 1;
    s.lazy = true;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_pull(&s, SIZE_MAX);
    CHECK_STR(stage_took(&s), "a1 duplicate:a2 a2");
    stage_close(&s);
}

/* A record that turned out to be late waits to be pulled, and its partition goes: it will be read again. */
TEST(core_rules_gaps, a_late_record_of_a_partition_that_goes_is_revoked) {
    struct stage s;
    stage_default(&s, 2);
    s.ack = true;
    s.in.timestamp = 1001;
    stage_push(&s, 0, "a", 1);
    s.in.timestamp = 1002;
    stage_push(&s, 0, "a", (uint64_t)1 << 40);
    stage_flush(&s);
    stage_took(&s);
    s.lazy = true;
    s.in.timestamp = 1003;
    stage_push(&s, 1, "a", 5);
    s.in.timestamp = 1004;
    stage_push(&s, 0, "a", ((uint64_t)1 << 40) + 1); /* the session goes on, so 5 was late */
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_LATE], 1);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_took(&s);
    stage_pull(&s, SIZE_MAX);
    CHECK_STR(stage_took(&s), "revoked:a5");
    stage_close(&s);
}

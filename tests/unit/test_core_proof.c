/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 5, `proven`: a lane has shown that the number was lost. */
#include <support/check.h>
#include <support/stage.h>

/* n topics of lanes, from the start of their logs; S = n. */
static void lanes(struct stage *s, uint32_t n, unsalt_gap_proof_t proof) {
    stage_init(s);
    s->params.gap_proof = proof;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(s);
    stage_parts(s, 0, n, true, 0, 0);
    s->in.lanes = (uint16_t)n;
    s->in.since = 1;
}

static void push(struct stage *s, uint64_t seq, uint64_t una) {
    s->in.una = una;
    stage_push_lane(s, (uint32_t)(seq % s->in.lanes), "a", seq);
}

TEST(core_proof, the_lane_shows_a_higher_una) {
    struct stage s;
    lanes(&s, 2, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 4, 2); /* 2 and 3 are missing */
    push(&s, 5, 3); /* lane 1 says: all below 3; 3 may come */
    CHECK_STR(stage_took(&s), "a1");
    push(&s, 7, 4); /* lane 1: 3 is lost; but lane 0 has not said so of 2 */
    CHECK_STR(stage_took(&s), "");
    push(&s, 6, 3);
    CHECK_STR(stage_said(&s), "gap:a2-3:proven");
    CHECK_STR(stage_took(&s), "a4! a5 a6 a7");
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_PROVEN], 2);
    stage_close(&s);
}

TEST(core_proof, una_equal_to_the_number_proves_nothing) {
    struct stage s;
    lanes(&s, 2, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 3, 2);
    push(&s, 4, 2); /* 2 is the lowest unresolved: perhaps it is being sent again */
    CHECK_STR(stage_took(&s), "a1");
    push(&s, 2, 2); /* it was: behind a higher one of its lane (librdkafka's retries do that) */
    CHECK_STR(stage_took(&s), "a2 a3 a4");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_proof, another_lane_proves_nothing) {
    struct stage s;
    lanes(&s, 4, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 3, 3);
    push(&s, 4, 4);
    push(&s, 5, 5); /* all say that 2 is decided: it may have been accepted, and its lane isn't read yet */
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(stage_said(&s), "");
    push(&s, 2, 2);
    CHECK_STR(stage_took(&s), "a2 a3 a4 a5");
    stage_close(&s);
}

TEST(core_proof, off_means_off) {
    struct stage s;
    lanes(&s, 1, UNSALT_PROOF_OFF);
    push(&s, 1, 1);
    push(&s, 5, 5);
    CHECK_STR(stage_took(&s), "a1");
    stage_close(&s);
}

TEST(core_proof, trust_takes_a_higher_number) {
    struct stage s;
    lanes(&s, 2, UNSALT_PROOF_TRUST);
    push(&s, 1, UNSALT_NO_SEQ);
    push(&s, 3, UNSALT_NO_SEQ);
    CHECK_STR(stage_took(&s), "a1");
    push(&s, 4, UNSALT_NO_SEQ);
    CHECK_STR(stage_said(&s), "gap:a2-2:proven");
    CHECK_STR(stage_took(&s), "a3! a4");
    stage_close(&s);
}

TEST(core_proof, auto_does_not) {
    struct stage s;
    lanes(&s, 1, UNSALT_PROOF_AUTO);
    push(&s, 1, UNSALT_NO_SEQ);
    push(&s, 3, UNSALT_NO_SEQ);
    CHECK_STR(stage_took(&s), "a1");
    stage_close(&s);
}

TEST(core_proof, trust_without_lanes_needs_every_partition) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_TRUST;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 1, "a", 5);
    stage_push(&s, 0, "a", 7);
    CHECK_STR(stage_took(&s), "a1");
    stage_push(&s, 2, "a", 3); /* 2 may stand there */
    CHECK_STR(stage_took(&s), "a3! a4 a5");
    CHECK_STR(stage_said(&s), "gap:a2-2:proven");
    stage_close(&s);
}

TEST(core_proof, a_change_of_lanes_is_no_proof_of_what_was_before) {
    struct stage s;
    lanes(&s, 2, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    s.in.lanes = 1; /* from 10 on the session has one lane: 2..9 had two */
    s.in.since = 10;
    push(&s, 10, 10);
    push(&s, 11, 11);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_proof, a_record_that_was_proven_lost_switches_proof_off) {
    struct stage s;
    lanes(&s, 1, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 3, 3);
    CHECK_STR(stage_took(&s), "a1 a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:proven");
    push(&s, 2, 2);
    CHECK_STR(stage_said(&s), "proof_off:a late:a");
    CHECK_STR(stage_took(&s), "late:a2");
    push(&s, 5, 5);
    push(&s, 6, 6);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_counters(&s).proofs_off, 1);
    stage_close(&s);
}

TEST(core_proof, una_that_goes_back_switches_proof_off) { /* two producers of one epoch */
    struct stage s;
    lanes(&s, 2, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 6, 5);
    push(&s, 8, 4);
    CHECK_STR(stage_said(&s), "proof_off:a");
    push(&s, 9, 9);
    CHECK_STR(stage_took(&s), "a1");
    stage_close(&s);
}

TEST(core_proof, a_new_run_begins_with_proof) {
    struct stage s;
    lanes(&s, 1, UNSALT_PROOF_AUTO);
    push(&s, 1, 1);
    push(&s, 3, 3);
    push(&s, 2, 2);
    stage_said(&s);
    stage_took(&s);
    s.in.epoch = 7;
    push(&s, 1, 1);
    push(&s, 3, 3);
    CHECK_STR(stage_took(&s), "a1 a3!");
    CHECK_STR(stage_said(&s), "epoch:a:7 gap:a2-2:proven");
    stage_close(&s);
}

TEST(core_proof, numbers_consumed_before_are_resumed_not_proven) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 100, 0);
    s.in.lanes = 2;
    s.in.since = 1;
    push(&s, 10, 10);
    push(&s, 13, 13); /* 11 was consumed before the restart */
    push(&s, 12, 12);
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    CHECK_STR(stage_took(&s), "a10 a12! a13");
    push(&s, 17, 17); /* 15 was not: its lane has shown 13 since */
    push(&s, 14, 14);
    push(&s, 16, 16);
    CHECK_STR(stage_said(&s), "gap:a15-15:proven");
    stage_close(&s);
}

TEST(core_proof, a_gap_without_end_is_one_event) {
    struct stage s;
    lanes(&s, 4, UNSALT_PROOF_AUTO);
    const uint64_t far = UINT64_C(1) << 63;
    push(&s, 1, 1);
    for (uint64_t i = 0; i < 4; i++) {
        push(&s, far + i, 2);
    }
    CHECK_STR(stage_took(&s), "a1");
    for (uint64_t i = 4; i < 8; i++) {
        push(&s, far + i, far + 1);
    }
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_PROVEN], 1);
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_PROVEN], far - 2);
    stage_took(&s);
    stage_said(&s);
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: numbers that were consumed before the partition was joined are skipped without alarm. */
#include <support/check.h>
#include <support/stage.h>

TEST(core_resumed, the_lane_shows_that_it_was_joined_above_the_number) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 100, 0);
    s.in.lanes = 4;
    stage_push_lane(&s, 2, "a", 10);
    stage_push_lane(&s, 0, "a", 12);
    stage_push_lane(&s, 1, "a", 13);
    CHECK_STR(stage_took(&s), "");
    stage_push_lane(&s, 3, "a", 15); /* 11 was consumed before */
    CHECK_STR(stage_took(&s), "a10 a12! a13");
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    stage_push_lane(&s, 2, "a", 14);
    CHECK_STR(stage_took(&s), "a14 a15");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_RESUMED], 1);
    stage_close(&s);
}

TEST(core_resumed, a_resend_that_proves_it_wrong_is_late) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 100, 0);
    s.in.lanes = 2;
    stage_push_lane(&s, 0, "a", 10);
    stage_push_lane(&s, 1, "a", 13);
    stage_push_lane(&s, 0, "a", 12);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_RESUMED], 1);
    stage_took(&s);
    stage_push_lane(&s, 1, "a", 11);
    CHECK_STR(stage_took(&s), "late:a11");
    stage_close(&s);
}

TEST(core_resumed, a_lane_joined_at_the_beginning_proves_nothing) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, 0, 100, 0);
    stage_assign(&s, 0, 2, 1, 0, 0);
    s.in.lanes = 2;
    stage_push_lane(&s, 0, "a", 10);
    stage_push_lane(&s, 1, "a", 13);
    stage_push_lane(&s, 0, "a", 12);
    CHECK_STR(stage_took(&s), "a10");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_RESUMED], 0);
    stage_close(&s);
}

TEST(core_resumed, only_the_first_record_of_the_lane_proves_it) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 100, 0);
    s.in.lanes = 2;
    stage_push_lane(&s, 0, "a", 10);
    stage_push_lane(&s, 1, "a", 11);
    stage_push_lane(&s, 0, "a", 12);
    stage_push_lane(&s, 1, "a", 15); /* 13 is missing after 11 was shown: a gap like any other */
    stage_push_lane(&s, 0, "a", 14);
    CHECK_STR(stage_took(&s), "a10 a11 a12");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_RESUMED], 0);
    stage_close(&s);
}

/* After a restart the backlog may hold records of several S: what counts is the S of the missing numbers. */
TEST(core_resumed, although_s_has_changed_since) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, false, 100, 0);
    s.in.lanes = 2;
    s.in.since = 1;
    stage_push_lane(&s, 0, "a", 10);
    stage_push_lane(&s, 0, "a", 12);
    s.in.lanes = 4;
    s.in.since = 20;
    stage_push_lane(&s, 2, "a", 22);
    stage_push_lane(&s, 3, "a", 23);
    s.in.lanes = 2;
    s.in.since = 1;
    CHECK_STR(stage_took(&s), "");
    stage_push_lane(&s, 1, "a", 13);
    stage_horizon(&s, 0, 3);
    CHECK_STR(stage_took(&s), "a10 a12! a13"); /* 11 was consumed before: its lane, of two, was joined above it */
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    stage_close(&s);
}

/* The lane isn't known, since each record has an S of its own: lost, or consumed before? No alarm after a restart. */
TEST(core_resumed, likely_if_any_partition_may_have_carried_it) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    stage_push(&s, 0, "a", 10);
    stage_push(&s, 1, "a", 12);
    CHECK_STR(stage_took(&s), "a10");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a12!");
    stage_push(&s, 0, "a", 14); /* 13: both partitions have shown lower ones, so neither was joined above it */
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed gap:a13-13:timeout");
    stage_close(&s);
}

/* What was lost long after the restart is lost, although a partition has never shown the session. */
TEST(core_resumed, not_for_what_came_after_all_had_been_read) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 8, false, 100, 0);
    stage_push(&s, 0, "a", 10);
    stage_horizon(&s, 0, 7);
    stage_push(&s, 1, "a", 12);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 7);
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    stage_wait(&s, 1 * SEC);
    stage_push(&s, 0, "a", 1000);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 7);
    CHECK_STR(stage_said(&s), "gap:a13-999:timeout");
    CHECK_U64(s.event.overdue_ns, 0);
    CHECK_STR(stage_took(&s), "a10 a12! a1000!");
    stage_close(&s);
}

/* `una` says that 11 was unresolved when 15 was sent: it may come again behind it, and does. */
TEST(core_resumed, waits_for_what_is_sent_again_behind_what_the_lane_has_shown) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 100, 0);
    s.in.lanes = 1;
    s.in.since = 5;
    s.in.una = 10;
    stage_push_lane(&s, 0, "a", 10);
    stage_horizon(&s, 0, 3);
    CHECK_STR(stage_took(&s), "a10");
    s.in.lanes = 4; /* S has just changed, so this is the first of the lane */
    s.in.since = 11;
    s.in.una = 11;
    stage_push_lane(&s, 3, "a", 15);
    stage_push_lane(&s, 0, "a", 12);
    CHECK_STR(stage_took(&s), "");
    stage_push_lane(&s, 3, "a", 11);
    CHECK_STR(stage_took(&s), "a11 a12");
    stage_close(&s);
}

/* When 15 was sent 11 was resolved, so it can't come behind: it was consumed before, or given up. */
TEST(core_resumed, at_once_when_una_has_passed_the_number) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 100, 0);
    s.in.lanes = 2;
    s.in.since = 1;
    s.in.una = 10;
    stage_push_lane(&s, 0, "a", 10);
    s.in.una = 11;
    stage_push_lane(&s, 0, "a", 12);
    stage_push_lane(&s, 1, "a", 13);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a10");
    s.in.una = 12;
    stage_push_lane(&s, 1, "a", 15);
    CHECK_STR(stage_took(&s), "a12! a13");
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    stage_close(&s);
}

/* Lane 1 has shown 13, when S was 4; so 21 can't have been consumed before. */
TEST(core_resumed, not_what_a_partition_lacks_that_has_shown_a_lower_number_for_another_s) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 100, 0);
    s.in.lanes = 4;
    s.in.since = 1;
    for (uint64_t seq = 12; seq < 20; seq++)
        if (seq != 14 && seq != 18) /* lane 2 shows nothing, so that the start isn't over */
            stage_push_lane(&s, (uint32_t)(seq % 4), "a", seq);
    s.in.lanes = 2;
    s.in.since = 20;
    stage_push_lane(&s, 0, "a", 20);
    stage_push_lane(&s, 0, "a", 22);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 3);
    CHECK_STR(stage_said(&s), "start:a gap:a14-14:resumed gap:a18-18:resumed gap:a21-21:timeout");
    stage_close(&s);
}

/* It was due long before the partitions were read past that: whoever judges it must know. */
TEST(core_resumed, says_how_long_it_had_been_due) {
    struct stage s;
    stage_init(&s);
    s.params.gap_proof = UNSALT_PROOF_OFF;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 100, 0);
    stage_push(&s, 0, "a", 10);
    stage_push(&s, 1, "a", 12);
    stage_wait(&s, 1200 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_said(&s), "start:a gap:a11-11:resumed");
    CHECK_U64(s.event.overdue_ns, 700 * MS);
    CHECK_U64(stage_counters(&s).overdue_sum_ns, 0); /* which tells of alarms only */
    stage_close(&s);
}

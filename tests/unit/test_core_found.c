/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that were found by reading and by attack, and mended: each test says what was seen. */
#include <support/check.h>
#include <support/stage.h>

/*
 * Seen: lane 0 stayed assigned and had released 8 and 10; lane 1 went and came back in the middle of its log. The
 * session started again at 7, and 8 and 10 were alarms with a full timeout, since lane 0 had once been read from its
 * beginning.
 */
TEST(core_found, what_the_lanes_that_stay_have_released_is_resumed_after_a_partial_revoke) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 0, 0);
    s.ack = true;
    s.in.lanes = 2;
    for (uint64_t seq = 1; seq <= 10; seq++)
        stage_push_lane(&s, seq % 2, "a", seq);
    stage_took(&s);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    CHECK_U64(stage_assign(&s, 0, 2, 1, 3, 0), 1); /* 7 and 9 come again */
    stage_push_lane(&s, 1, "a", 7);
    stage_push_lane(&s, 1, "a", 9);
    stage_push_lane(&s, 1, "a", 11);
    stage_push_lane(&s, 0, "a", 12);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a7 a9! a11! a12");
    CHECK_STR(stage_said(&s), "start:a gap:a8-8:resumed gap:a10-10:resumed");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], 0);
    stage_close(&s);
}

/*
 * Seen: lane 0 held 12, 14 and 16, behind the missing 11, when lane 1 was sought to 7. What lane 0 had shown was
 * forgotten, and what is held isn't shown again: with gap.timeout.ms=-1 the session stood for ever behind 8, which lane
 * 0 had released; with another one 8 was an alarm.
 */
TEST(core_found, what_a_lane_that_stays_holds_was_shown) {
    struct stage s;
    stage_init(&s);
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 0, 0);
    s.in.lanes = 2;
    for (uint64_t seq = 1; seq <= 16; seq++)
        if (seq != 11)
            stage_push_lane(&s, seq % 2, "a", seq);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10");
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 10);
    CHECK_STR(stage_took(&s), "revoked:a13 revoked:a15");
    CHECK_U64(stage_assign(&s, 0, 2, 1, 3, 0), 1);
    stage_push_lane(&s, 1, "a", 7);
    stage_push_lane(&s, 1, "a", 9);
    stage_push_lane(&s, 1, "a", 13);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a7 a9!");
    CHECK_STR(stage_said(&s), "start:a gap:a8-8:resumed"); /* 10 too, when 11 is known */
    stage_wait(&s, 1000 * SEC);
    CHECK_STR(stage_took(&s), ""); /* 11 was missing before, and is */
    stage_push_lane(&s, 1, "a", 11);
    CHECK_STR(stage_took(&s), "a11! a12 a13 a14");
    CHECK_STR(stage_said(&s), "gap:a10-10:resumed");
    stage_close(&s);
}

/* The same where time ends the gap: what was released before is no loss then, either. */
TEST(core_found, what_a_lane_that_stays_has_released_is_not_lost_with_the_next_number) {
    struct stage s;
    stage_default(&s, 0);
    stage_parts(&s, 0, 2, true, 0, 0);
    s.in.lanes = 2;
    for (uint64_t seq = 1; seq <= 12; seq++)
        if (seq != 11)
            stage_push_lane(&s, seq % 2, "a", seq);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_took(&s);
    CHECK_U64(stage_assign(&s, 0, 2, 1, 3, 0), 1);
    stage_push_lane(&s, 1, "a", 7);
    stage_push_lane(&s, 1, "a", 9);
    stage_push_lane(&s, 1, "a", 13);
    stage_expire(&s);
    stage_wait(&s, 10 * SEC);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a7 a9! a12! a13");
    CHECK_STR(stage_said(&s), "start:a gap:a8-8:resumed gap:a10-10:resumed gap:a11-11:timeout");
    stage_close(&s);
}

/*
 * Seen, SEED=800299331: S had become 2 while records of S = 4 were held, so 7 stood among those of lane 3 of 4, and it
 * lives in partition 1. That was taken for the place of lane 3: when partition 3 went and came back, the unacknowledged
 * 3 was passed over as handed out by a partition that stays, and came as late.
 */
TEST(core_found, what_is_held_of_another_number_of_lanes_does_not_tell_where_a_lane_lives) {
    struct stage s;
    stage_init(&s);
    s.params.start = UNSALT_START_FIRST;
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.lanes = 4;
    s.in.since = 1;
    for (uint64_t seq = 1; seq <= 5; seq++)
        if (seq != 2)
            stage_push_lane(&s, seq % 4, "a", seq);
    s.in.lanes = 2;
    s.in.since = 7;
    for (uint64_t seq = 7; seq <= 10; seq++)
        stage_push_lane(&s, seq % 2, "a", seq);
    s.in.lanes = 4;
    s.in.since = 1;
    stage_push_lane(&s, 2, "a", 2);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5");
    CHECK_I64(unsalt_core_revoke(s.core, 3, s.now), UNSALT_CORE_OK);
    CHECK_U64(stage_assign(&s, 0, 4, 3, 0, 0), 3);
    stage_push_lane(&s, 2, "a", 6);
    CHECK_STR(stage_said(&s), "");
    CHECK_STR(stage_took(&s), "");
    stage_push_lane(&s, 3, "a", 3);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 3);
    CHECK_STR(stage_took(&s), "a3! a6! a7 a8 a9 a10");
    stage_close(&s);
}

/* The session's numbers 1 and 2, read from partitions 0 and 1; how it leaves memory is the caller's. */
static void open_and_read(struct stage *s, uint64_t ttl, uint16_t flags) {
    stage_init(s);
    s->params.session_ttl_ns = ttl;
    s->params.late = UNSALT_LATE_DROP;
    stage_open(s);
    stage_parts(s, 0, 2, false, 0, 0);
    stage_push(s, 0, "a", 1);
    s->in.flags = flags;
    stage_push(s, 1, "a", 2);
    s->in.flags = 0;
    CHECK_STR(stage_took(s), "a1 a2");
}

/* Nothing was acknowledged, so partition 1 is read again from its beginning. */
static void read_again(struct stage *s) {
    CHECK_U64(stage_counters(s).sessions, 0);
    CHECK_U64(stage_counters(s).sessions_remembered, 1);
    CHECK_I64(unsalt_core_revoke(s->core, 1, s->now), UNSALT_CORE_OK);
    CHECK_U64(stage_counters(s).sessions_remembered, 0);
    CHECK_U64(stage_assign(s, 0, 2, -1, 0, 0), 1);
    stage_took(s);
    stage_push(s, 1, "a", 2);
    s->now += SEC;
    stage_horizon(s, 0, 1);
    CHECK_STR(stage_took(s), "a2");
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_LATE], 0);
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_REVOKED], 0);
    stage_close(s);
}

/* Seen: after a seek of one partition, the remembered end of the session made its records late; late=drop lost them. */
TEST(core_found, the_cursor_of_a_session_that_ended_is_void_after_a_partial_revoke) {
    struct stage s;
    open_and_read(&s, UNSALT_NEVER, UNSALT_F_LAST);
    read_again(&s);
}

/* Seen: the same with a session that had been idle for session.ttl.ms. */
TEST(core_found, the_cursor_of_a_session_that_expired_is_void_after_a_partial_revoke) {
    struct stage s;
    open_and_read(&s, SEC, 0);
    stage_wait(&s, 5 * SEC);
    read_again(&s);
}

/*
 * Seen: an offset beyond the end of a log, which librdkafka resets to its beginning. The end that the leader answered
 * lay below that offset, so the partition counted as read, and what it held was given up or late.
 */
TEST(core_found, a_start_above_the_end_of_the_log_is_no_horizon) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 0, 0);
    stage_assign(&s, 0, 2, -1, 1000, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, SEC);
    uint32_t parts[4];
    size_t n = unsalt_core_questions(s.core, s.now, parts, 4);
    CHECK(n >= 1);
    for (size_t i = 0; i < n; i++)
        unsalt_core_answer(s.core, parts[i], unsalt_core_generation(s.core, parts[i]), parts[i] ? 50 : 1, s.now);
    stage_wait(&s, 20 * SEC);
    CHECK_STR(stage_took(&s), "");
    s.next[1] = 0;
    stage_push(&s, 1, "a", 1);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_push(&s, 0, "a", 4);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), ""); /* nor does the old answer count: 49 more stand there */
    stage_push(&s, 1, "a", 3);
    CHECK_STR(stage_took(&s), "a3 a4");
    stage_close(&s);
}

/* Seen: the time of a refusal began anew with every small record that still fitted, so the big one waited for ever. */
TEST(core_found, small_records_that_fit_do_not_prolong_the_refusal_of_a_big_one) {
    struct stage s;
    stage_init(&s);
    s.params.budget_bytes = 1000;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.block_max_ns = 30 * SEC;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.in.bytes = 400;
    stage_push(&s, 0, "a", 2);
    uint64_t began = s.now;
    bool taken = false;
    for (uint64_t seq = 2; !taken && s.now - began < 40 * SEC; seq += 2) {
        s.in.bytes = 900;
        taken = stage_push(&s, 0, "big", 2);
        s.in.bytes = 1;
        CHECK(stage_push(&s, 1, "small", seq));
        if (!taken)
            stage_wait(&s, SEC);
    }
    CHECK_THAT(taken, "the big record is refused for ever");
    CHECK_THAT(s.now - began >= 30 * SEC, "taken after %" PRIu64 " ns", s.now - began);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* Seen: a partition that was not read because its next record was refused, was taken for one with a dead leader. */
TEST(core_found, a_partition_whose_record_is_refused_does_not_stall) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 1;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.block_max_ns = UNSALT_NEVER;
    s.params.gap_stall_max_ns = 60 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    CHECK(!stage_push(&s, 1, "b", 2));
    CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
    for (int i = 0; i < 30; i++) {
        stage_wait(&s, 10 * SEC);
        stage_horizon(&s, 0, 0);
        if (i == 20) {
            CHECK(!stage_push(&s, 1, "b", 2));
        }
    }
    CHECK_STR(stage_took(&s), "");
    CHECK(!strstr(stage_said(&s), "gap:"));
    CHECK(stage_push(&s, 1, "a", 1)); /* it needs no room */
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK(stage_push(&s, 1, "b", 2));
    for (int i = 0; i < 8; i++) { /* it is read again, and may stall like any other */
        stage_wait(&s, 10 * SEC);
        stage_horizon(&s, 0, 0);
    }
    CHECK_STR(stage_took(&s), "b2!");
    CHECK_STR(stage_said(&s), "gap:b1-1:stalled");
    stage_close(&s);
}

/*
 * Seen: each verdict walked over all FIFOs of the session, and a descending producer makes one of each record: the
 * time limit of this test was far too short, where a fraction of a second will do.
 */
TEST(core_found, eighty_thousand_gaps_of_a_descending_producer) {
    enum { GAPS = 80000 };
    struct stage s;
    stage_default(&s, 1);
    s.ack = true;
    for (uint64_t i = GAPS; i >= 1; i--) {
        s.now += US;
        CHECK(stage_push(&s, 0, "a", 2 * i));
    }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], GAPS);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 0);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], GAPS);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], GAPS);
    CHECK_I64(unsalt_core_position(s.core, 0), GAPS);
    stage_close(&s);
}

/*
 * Seen: with a configured S of 4, number 98 of a session that had not been spread was given up once lane 2 was read
 * past it, although it stood on lane 0 like all the numbers before it.
 */
TEST(core_found, a_configured_number_of_lanes_proves_nothing_for_a_session_that_breaks_it) {
    struct stage s;
    stage_init(&s);
    s.params.lanes = 4;
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.since = UNSALT_NO_SEQ;
    for (uint64_t seq = 1; seq <= 97; seq++)
        stage_push(&s, 0, "cold", seq);
    stage_took(&s);
    stage_push(&s, 3, "cold", 99);
    stage_wait(&s, SEC);
    stage_horizon(&s, 2, 2);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 1, 3);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 0, "cold", 98);
    CHECK_STR(stage_took(&s), "cold98 cold99");
    stage_push(&s, 3, "cold", 101);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 3);
    CHECK_STR(stage_took(&s), "cold101!");
    CHECK_STR(stage_said(&s), "gap:cold100-100:timeout");
    stage_close(&s);
}

/*
 * Seen: a partition goes while records are kept that may be a restart. The cursor that would tell is void then: they
 * must leave by the fate of their own partition, and none of them as a copy.
 */
TEST(core_found, suspects_of_the_partition_that_goes_are_revoked_and_the_others_late) {
    struct stage s;
    stage_default(&s, 2);
    s.ack = true;
    for (uint64_t seq = 1; seq <= 10; seq++) {
        s.in.timestamp = 1000 + (int64_t)seq;
        stage_push(&s, seq % 2, "a", seq);
    }
    for (uint64_t seq = 1; seq <= 3; seq++) {
        s.in.timestamp = 2000 + (int64_t)seq;
        stage_push(&s, seq % 2, "a", seq);
    }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 3);
    stage_took(&s);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "revoked:a1 revoked:a3 late:a2");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_I64(unsalt_core_position(s.core, 0), 6);
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What went wrong between two owners of a lane set in schedules of the simulator (tests/sim), as short as it gets. */
#include <string.h>
#include <unit/fixture/cursors.h>

/* ---- what a commit says */

/* A commit before the last owner's offsets were read again must not take back what that owner had done. */
TEST(core_handover, what_the_last_owner_had_done_is_handed_on_unread) {
    struct stage s;
    const unsalt_core_range_t before[] = {{1, 2}, {5, 8}};
    cursors_open(&s, 1);
    CHECK_I64(unsalt_core_done_before(s.core, 0, before, 2), UNSALT_CORE_OK);
    CHECK_STR(cursors_done(&s), "1-2,5-8");
    for (const char *session = "abcdefg"; *session; session++)
        stage_push(&s, 0, (const char[]){*session, 0}, 1);
    CHECK_STR(stage_took(&s), "a1 duplicate:b1 duplicate:c1 d1 e1 duplicate:f1 duplicate:g1");
    CHECK_STR(cursors_done(&s), "1-2,5-8");
    unsalt_core_range_t rest;
    CHECK_U64(unsalt_core_done(s.core, 0, 8, &rest, 1), 1);
    CHECK_U64(rest.first, 8);
    CHECK_U64(rest.last, 8);
    stage_close(&s);
}

/* In one push of ordinary records, which go a shorter way. */
TEST(core_handover, what_was_done_before_in_a_burst) {
    struct stage s;
    const unsalt_core_range_t before = {3, 3};
    unsalt_core_in_t in[4];
    unsalt_core_out_t out[4];
    size_t n_out;
    int status;
    cursors_open(&s, 1);
    CHECK_I64(unsalt_core_done_before(s.core, 0, &before, 1), UNSALT_CORE_OK);
    for (int i = 0; i < 4; i++)
        in[i] = (unsalt_core_in_t){.session = "a", .session_len = 1, .seq = 1 + (uint64_t)i, .offset = i, .lanes = 1};
    CHECK_U64(unsalt_core_push(s.core, in, 4, s.now, out, &n_out, &status), 4);
    CHECK_U64(n_out, 4);
    CHECK_U64(out[2].state, UNSALT_STATE_RELEASED);
    CHECK_U64(out[3].state, UNSALT_STATE_DUPLICATE);
    stage_close(&s);
}

TEST(core_handover, the_cursor_may_be_0) {
    struct stage s, next;
    stage_init(&s);
    s.params.cursors = true;
    s.params.seq_first = 0;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_init(&next);
    next.params = s.params;
    stage_open(&next);
    stage_parts(&next, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 0);
    cursors_carry(&s, &next);
    stage_push(&next, 0, "a", 0);
    CHECK_STR(stage_took(&next), "a0");
    stage_close(&next);
    stage_close(&s);
}

/* Which numbers were given up below the floor is forgotten, so between records in hand none of them is done. */
TEST(core_handover, what_was_given_up_and_forgotten_is_not_done) {
    struct stage s;
    stage_init(&s);
    s.params.cursors = true;
    s.params.skips_max = 1;
    s.params.gap_timeout_ns = 0;
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (uint64_t seq = 2; seq <= 8; seq += 2) {
        stage_push(&s, 0, "a", seq);
        stage_expire(&s);
    }
    CHECK_STR(stage_took(&s), "a2! a4! a6! a8!");
    CHECK_STR(cursors_taken(&s, true), "a@2 skipped 3-3,5-5,7-7");
    cursors_ack(&s, 1);
    CHECK_STR(cursors_taken(&s, true), "a@2 skipped 3-5,7-7");
    stage_close(&s);
}

/* Number 0, twice late: the lists that are sorted for a cursor must not wrap around below it. */
TEST(core_handover, two_late_copies_of_number_0) {
    struct stage s, next;
    stage_init(&s);
    s.params.cursors = true;
    s.params.seq_first = 0;
    s.params.start = UNSALT_START_SEEN;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 0);
    stage_push(&s, 0, "a", 0);
    CHECK_STR(stage_took(&s), "a1 a2 late:a0 late:a0");
    cursors_ack(&s, 1);
    cursors_open(&next, 1);
    cursors_carry(&s, &next);
    CHECK_U64(stage_counters(&next).cursors_restored, 1);
    stage_close(&next);
    stage_close(&s);
}

/* The cursor of a run whose first record was turned away is above it, or it would contradict itself. */
TEST(core_handover, the_cursor_is_not_among_what_was_turned_away) {
    struct stage s, next;
    stage_init(&s);
    s.params.cursors = true;
    s.params.budget_records = 1;
    s.params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    s.ack = true;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.in.epoch = 1;
    stage_push(&s, 0, "b", 2); /* the budget is full */
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 dead_lettered:a1");
    stage_horizon(&s, 0, 1);
    CHECK_STR(cursors_taken(&s, false), "a@2 skipped 1-1");
    cursors_open(&next, 1);
    cursors_carry(&s, &next);
    next.in.epoch = 2;
    stage_push(&next, 0, "a", 2);
    CHECK_STR(stage_took(&next), "a2");
    stage_close(&next);
    stage_close(&s);
}

/* Ranges below the floor of a cursor say nothing: they must not lower the floor of a session that expires. */
TEST(core_handover, the_floor_of_a_cursor_stays) {
    struct stage s;
    const unsalt_core_range_t skipped[] = {{5, 5}, {9, 9}};
    stage_init(&s);
    s.params.cursors = true;
    s.params.session_ttl_ns = 1 * SEC;
    s.ack = true;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    unsalt_core_cursor_t cursor = {.session = "a", .session_len = 1, .epoch = 1, .cursor = 19, .floor = 14,
                                   .skipped = skipped, .skipped_count = 2};
    CHECK_I64(unsalt_core_restore(s.core, &cursor, s.now), UNSALT_CORE_OK);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 19);
    CHECK_STR(cursors_taken(&s, true), "a@20");
    stage_wait(&s, 3 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    stage_push(&s, 0, "a", 13);
    stage_push(&s, 0, "a", 14);
    CHECK_STR(stage_took(&s), "a19 late:a13 duplicate:a14");
    stage_close(&s);
}

/* More ranges than a cursor carries: what was given up must not pass for done, whichever of them are left out. */
TEST(core_handover, a_cursor_of_too_many_ranges) {
    enum { NUMBERS = 70000, KEPT = 65536 };
    struct stage s;
    unsalt_core_cursor_t cursor;
    stage_init(&s);
    s.params.cursors = true;
    s.params.skips_max = NUMBERS;
    s.params.gap_timeout_ns = 0;
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (uint64_t i = 0; i < NUMBERS; i++) {
        stage_push(&s, 0, "a", 2 * i + 2);
        stage_expire(&s);
        if (i % 500 == 0 || i == NUMBERS - 1)
            stage_took(&s), stage_said(&s);
    }
    for (uint64_t i = 1; i < NUMBERS; i++)
        cursors_ack(&s, i);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    CHECK_U64(cursor.cursor, 2);
    CHECK_U64(cursor.floor, 2); /* 1 is below: one range less */
    CHECK_U64(cursor.skipped_count, KEPT);
    CHECK_U64(cursor.skipped[0].first, 3);
    uint64_t last = cursor.skipped[KEPT - 1].last;
    CHECK_U64(cursor.done[cursor.done_count - 1].last, last + 1);
    unsalt_core_cursors_end(s.core, false);
    cursors_ack(&s, 0);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    CHECK_U64(cursor.cursor, 2 * NUMBERS + 1);
    CHECK_U64(cursor.skipped_count, KEPT);
    CHECK_U64(cursor.floor, cursor.skipped[0].first - 1);
    unsalt_core_cursors_end(s.core, true);
    stage_close(&s);
}

/* A cursor tells what the application has when it is taken, not when taking began. */
TEST(core_handover, what_is_handed_out_while_cursors_are_taken_is_not_done) {
    struct stage s;
    unsalt_core_cursor_t cursor;
    cursors_open(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    stage_push(&s, 0, "c", 1);
    cursors_ack(&s, 1);
    stage_push(&s, 0, "b", 2);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    CHECK_U64(cursor.cursor, 2); /* of b, whose second one is in hand */
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    CHECK_U64(cursor.cursor, 1); /* of c */
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 0);
    unsalt_core_cursors_end(s.core, true);
    stage_close(&s);
}

/* ---- runs */

/* A full budget ends the wait for acknowledgements of the run before, or nothing would ever move. */
TEST(core_handover, a_full_budget_ends_the_wait_for_acknowledgements) {
    struct stage s;
    stage_init(&s);
    s.params.cursors = true;
    s.params.budget_records = 1;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    CHECK(!stage_push(&s, 0, "b", 2));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_took(&s), "a1");
    CHECK(stage_push(&s, 0, "b", 2));
    stage_close(&s);
}

static void restored_at(struct stage *s, uint64_t epoch, uint64_t cursor) {
    cursors_open(s, 1);
    CHECK_I64(cursors_restore(s, "a", epoch, cursor, NULL, 0, NULL, 0), UNSALT_CORE_OK);
}

static void push_run(struct stage *s, uint64_t epoch, uint64_t first, uint64_t last, int64_t timestamp) {
    s->in.epoch = epoch;
    s->in.timestamp = timestamp;
    for (uint64_t seq = first; seq <= last; seq++)
        stage_push(s, 0, "a", seq);
}

/* The rest of an earlier run is read again: nobody has gone back. */
TEST(core_handover, an_earlier_run_that_is_read_again_is_stale) {
    struct stage s;
    restored_at(&s, 2, 5);
    push_run(&s, 1, 3, 9, 1000);
    CHECK_STR(stage_took(&s), "stale:a3 stale:a4 stale:a5 stale:a6 stale:a7 stale:a8 stale:a9");
    push_run(&s, 2, 5, 6, 2000);
    CHECK_STR(stage_took(&s), "a5 a6");
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/* Nor by records that are older than what the session has accepted, on a slower lane; but by newer ones. */
TEST(core_handover, only_newer_records_tell_that_the_producer_went_back) {
    struct stage s;
    restored_at(&s, 2, 5);
    push_run(&s, 2, 5, 5, 2000);
    cursors_ack(&s, 0);
    push_run(&s, 1, 1, 9, 2000);
    CHECK_U64(stage_counters(&s).restarts, 0);
    push_run(&s, 1, 1, 4, 2001);
    CHECK_U64(stage_counters(&s).restarts, 0);
    push_run(&s, 1, 5, 5, 2001);
    CHECK_U64(stage_counters(&s).restarts, 1);
    stage_close(&s);
}

/* A producer that has lost its epoch isn't stale for ever, though nothing of the cursor's run ever comes. */
TEST(core_handover, if_it_lasts_the_producer_went_back) {
    struct stage s;
    restored_at(&s, 2, 5);
    push_run(&s, 1, 1, 9, 1000);
    stage_wait(&s, s.params.gap_stall_max_ns - 1);
    push_run(&s, 1, 10, 19, 1000);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_wait(&s, 1);
    stage_took(&s);
    push_run(&s, 1, 20, 25, 1000);
    CHECK_STR(stage_took(&s), "stale:a20 stale:a21 stale:a22 stale:a23 a24 a25");
    CHECK_U64(stage_counters(&s).restarts, 1);
    stage_close(&s);
}

/* Numbers that were turned away, between others that were done before: the gap behind them is timed like any other. */
TEST(core_handover, a_gap_behind_what_was_turned_away_in_pieces) {
    struct stage s;
    const unsalt_core_range_t above[] = {{4, 4}, {6, 6}, {8, 8}, {10, 10}, {12, 12}};
    stage_init(&s);
    s.params.cursors = true;
    s.params.session_budget_records = 2;
    s.params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    CHECK_I64(cursors_restore(&s, "a", 0, 1, above, 5, NULL, 0), UNSALT_CORE_OK);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 14);
    for (uint64_t seq = 3; seq <= 11; seq += 2)
        stage_push(&s, 0, "a", seq);
    stage_took(&s);
    stage_push(&s, 0, "a", 1);
    stage_expire(&s);
    stage_said(&s);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_wait(&s, 600 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_said(&s), "gap:a13-13:timeout");
    CHECK_STR(stage_took(&s), "a14!");
    stage_close(&s);
}

/* ---- without a checkpoint */

/* As long as a partition of the set isn't here, a number may stand in it: nothing tells that it was consumed. */
TEST(core_handover, nothing_is_resumed_while_the_set_is_incomplete) {
    struct stage s;
    stage_default(&s, 2);
    stage_push(&s, 1, "a", 1);
    stage_push(&s, 1, "a", 2);
    stage_push(&s, 1, "a", 6);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_flush(&s);
    CHECK_STR(stage_took(&s), "a6");
    CHECK_STR(stage_said(&s), "start:a");
    stage_push(&s, 1, "a", 8);
    CHECK_STR(stage_said(&s), "");
    stage_assign(&s, 0, 2, -1, 0, 0);
    stage_push(&s, 0, "a", 7);
    CHECK_STR(stage_took(&s), "a7 a8");
    stage_close(&s);
}

/* One partition, joined in the middle, that carries all lanes of a session. */
static void joined(struct stage *s, uint64_t gap_timeout) {
    stage_init(s);
    s->params.gap_timeout_ns = gap_timeout;
    stage_open(s);
    stage_assign(s, 0, 1, -1, 10, 0);
    s->in.lanes = 1;
}

static void push_una(struct stage *s, uint32_t part, uint64_t seq, uint64_t una) {
    s->in.una = una;
    stage_push(s, part, "a", seq);
}

TEST(core_handover, a_start_waits_for_a_number_that_una_calls_open) {
    struct stage s;
    joined(&s, 500 * MS);
    push_una(&s, 0, 7, 6);
    push_una(&s, 0, 8, 6);
    CHECK_STR(stage_took(&s), "");
    push_una(&s, 0, 6, 6); /* sent again, behind its successors */
    CHECK_STR(stage_took(&s), "a6 a7 a8");
    stage_close(&s);
}

TEST(core_handover, but_only_as_long_as_for_a_gap) {
    struct stage s;
    joined(&s, 500 * MS);
    push_una(&s, 0, 7, 6);
    stage_wait(&s, 499 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 1 * MS);
    CHECK_STR(stage_took(&s), ""); /* it may stand in the log, unread */
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a7");
    CHECK_STR(stage_said(&s), "start:a");
    stage_close(&s);
}

TEST(core_handover, a_start_goes_on_when_una_calls_it_resolved) {
    struct stage s;
    joined(&s, 500 * MS);
    push_una(&s, 0, 7, 6);
    CHECK_STR(stage_took(&s), "");
    push_una(&s, 0, 8, 7);
    CHECK_STR(stage_took(&s), "a7 a8");
    push_una(&s, 0, 9, 9);
    s.in.since = 1;
    stage_push(&s, 0, "b", 7); /* nothing below is open: at once */
    CHECK_STR(stage_took(&s), "a9 b7");
    stage_close(&s);
}

TEST(core_handover, what_is_resolved_stands_in_a_log_and_needs_no_time) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 10, 0);
    stage_assign(&s, 0, 2, -1, 10, 0);
    push_una(&s, 0, 7, 6);
    push_una(&s, 0, 8, 8);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 1, 1);
    CHECK_STR(stage_took(&s), "a7 a8");
    stage_close(&s);
}

/* What another lane tells to be resolved stands in a log: this one must be read past now. */
TEST(core_handover, what_a_lane_showed_before_counts_no_more) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, 0, 10, 0);
    stage_assign(&s, 0, 2, 1, 10, 0);
    s.in.lanes = 2;
    s.in.una = 6;
    stage_push_lane(&s, 0, "a", 8);
    s.in.una = 8;
    stage_push_lane(&s, 1, "a", 9);
    CHECK_STR(stage_took(&s), "");
    s.in.una = 6;
    s.in.flags = UNSALT_F_RESEND;
    stage_push_lane(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a6 a8! a9"); /* 7 is resolved, and its lane has shown nothing of it */
    stage_close(&s);
}

TEST(core_handover, without_a_timeout_what_stands_in_the_logs_is_read) {
    struct stage s;
    const uint64_t timeouts[] = {0, UNSALT_NEVER};
    for (int i = 0; i < 2; i++) {
        joined(&s, timeouts[i]);
        push_una(&s, 0, 7, 6);
        CHECK_STR(stage_took(&s), "");
        stage_horizon(&s, 0, 0);
        CHECK_STR(stage_took(&s), "a7");
        stage_close(&s);
    }
}

/* ---- what is settled of a partition that stays, while another one of the set goes and comes back */

/*
 * SEED=1796094991006836: 2 stood in partition 2, unread, when a flush gave it up; 3 and 6, above it, were handed out.
 * It comes as late, as it would have if partition 1 had stayed: the start must not go back to it.
 */
TEST(core_handover, what_was_given_up_stays_given_up_where_its_partition_stays) {
    struct stage s;
    stage_default(&s, 0);
    stage_parts(&s, 0, 3, true, 0, 0);
    s.ack = true;
    s.in.lanes = 3;
    s.in.since = 1;
    stage_push_lane(&s, 0, "a", 3);
    stage_push_lane(&s, 0, "a", 6);
    stage_push_lane(&s, 1, "a", 1);
    stage_flush(&s);
    CHECK_STR(stage_took(&s), "a1 a3! a6!");
    CHECK_STR(stage_said(&s), "gap:a2-2:flush gap:a4-5:flush");
    stage_push_lane(&s, 0, "a", 9);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    CHECK_U64(stage_assign(&s, 0, 3, 1, 1, 0), 1);
    stage_push_lane(&s, 1, "a", 4);
    CHECK_STR(stage_took(&s), "a4");
    stage_push_lane(&s, 1, "a", 7);
    stage_push_lane(&s, 2, "a", 2);
    stage_push_lane(&s, 2, "a", 5);
    stage_push_lane(&s, 2, "a", 8);
    CHECK_STR(stage_took(&s), "a7! late:a2 late:a5 a8 a9");
    CHECK_STR(stage_said(&s), "start:a gap:a5-6:resumed late:a late:a");
    stage_close(&s);
}

/*
 * SEED=1796094991081243: partition 1 had released 3, and a copy that the producer has sent again stood behind it. So 3
 * was consumed, whatever comes of the copy.
 */
TEST(core_handover, what_was_handed_out_was_consumed_though_a_copy_is_to_come) {
    struct stage s;
    stage_default(&s, 0);
    stage_parts(&s, 0, 2, true, 0, 0);
    s.in.lanes = 2;
    s.in.since = 1;
    for (uint64_t seq = 1; seq <= 5; seq++)
        if (seq != 4)
            push_una(&s, seq % 2, seq, seq < 3 ? seq : 3);
    CHECK_STR(stage_took(&s), "a1 a2 a3");
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    CHECK_U64(stage_assign(&s, 0, 2, 0, 0, 0), 0);
    push_una(&s, 0, 2, 2);
    CHECK_STR(stage_took(&s), "a2");
    push_una(&s, 0, 4, 3);
    CHECK_STR(stage_said(&s), "start:a gap:a3-3:resumed");
    CHECK_STR(stage_took(&s), "a4! a5");
    s.in.flags = UNSALT_F_RESEND;
    push_una(&s, 1, 3, 3);
    CHECK_STR(stage_took(&s), "late:a3");
    stage_close(&s);
}

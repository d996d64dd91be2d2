/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4, the first rows: in order, above the cursor, far ahead, and what has no number. */
#include <support/check.h>
#include <support/stage.h>

TEST(core_arrivals, in_order_comes_out_of_the_push) {
    struct stage s;
    stage_default(&s, 1);
    s.lazy = true;
    for (uint64_t seq = 1; seq <= 5; seq++)
        stage_push(&s, 0, "a", seq);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5");
    CHECK_U64(stage_counters(&s).in_order, 5);
    CHECK_U64(s.last.waited_ns, 0);
    stage_close(&s);
}

TEST(core_arrivals, what_is_above_the_cursor_waits) {
    struct stage s;
    stage_default(&s, 2);
    stage_push(&s, 1, "a", 2);
    stage_push(&s, 1, "a", 4);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 2);
    CHECK_U64(stage_counters(&s).held_bytes, 200);
    CHECK_U64(stage_counters(&s).gaps_open, 1);
    s.now += 7;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_U64(s.last.waited_ns, 7);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a3 a4");
    CHECK_U64(stage_counters(&s).gaps_open, 0);
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_arrivals, descending_numbers_come_out_ascending) {
    struct stage s;
    stage_default(&s, 1);
    for (uint64_t seq = 9; seq >= 1; seq--)
        stage_push(&s, 0, "a", seq);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5 a6 a7 a8 a9");
    stage_close(&s);
}

TEST(core_arrivals, sessions_do_not_wait_for_one_another) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "b", 2);
    CHECK_STR(stage_took(&s), "b1 b2");
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

TEST(core_arrivals, the_same_id_in_two_sets_is_two_sessions) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 7, 1, false, 0, 0);
    stage_parts(&s, 8, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 1, "a", 2);
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a1 a2");
    stage_close(&s);
}

TEST(core_arrivals, a_push_while_the_release_is_pending_does_not_overtake) {
    struct stage s;
    stage_default(&s, 1);
    s.lazy = true;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 1); /* leaves at once; 2 and 3 are pending */
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "a", 2); /* equals the cursor of what was pulled, and is a copy all the same */
    stage_pull(&s, 100);
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a1 duplicate:a2 a2 a3 a4 a5");
    stage_close(&s);
}

TEST(core_arrivals, far_ahead_is_one_gap_and_one_decision) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 1000000002);
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    stage_wait(&s, 500 * MS);
    CHECK_STR(stage_took(&s), "a1");
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_said(&s), "gap:a2-1000000001:timeout gap:a1000000003-18446744073709551613:timeout");
    CHECK_STR(stage_took(&s), "a1000000002! a18446744073709551614!");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], 2);
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_TIMEOUT], UINT64_MAX - 1 - 3);
    stage_close(&s);
}

TEST(core_arrivals, the_last_number_of_all_is_usable_and_the_reserved_one_is_not) {
    struct stage s;
    stage_init(&s);
    s.params.seq_first = UINT64_MAX - 3;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", UINT64_MAX - 2);
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    stage_push(&s, 0, "a", UINT64_MAX - 3);
    CHECK_STR(stage_took(&s), "a18446744073709551612 a18446744073709551613 a18446744073709551614");
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    CHECK_STR(stage_took(&s), "duplicate:a18446744073709551614");
    stage_said(&s);
    stage_push(&s, 0, "a", UNSALT_NO_SEQ);
    CHECK_STR(stage_took(&s), "unsequenced:a18446744073709551615");
    CHECK_U64(s.event.first, UNSALT_NO_SEQ);
    CHECK_I64(s.event.type, UNSALT_CORE_EV_BELOW_FIRST);
    stage_close(&s);
}

TEST(core_arrivals, below_the_first_number_is_passed_on_unsequenced) {
    struct stage s;
    stage_init(&s);
    s.params.seq_first = 10;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 9);
    CHECK_STR(stage_took(&s), "unsequenced:a9");
    CHECK_I64(s.event.type, UNSALT_CORE_EV_BELOW_FIRST);
    CHECK_U64(s.event.first, 9);
    stage_push(&s, 0, "a", 10);
    CHECK_STR(stage_took(&s), "a10");
    stage_close(&s);
}

TEST(core_arrivals, an_oversized_session_id_is_passed_on_unsequenced) {
    struct stage s;
    stage_init(&s);
    s.params.session_id_max = 4;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "abcd", 1);
    stage_push(&s, 0, "abcde", 2);
    CHECK_STR(stage_took(&s), "abcd1 unsequenced:abcde2");
    const char *said = stage_said(&s);
    CHECK_THAT(!strncmp(said, "oversized:", 10), "said %s", said);
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_close(&s);
}

TEST(core_arrivals, an_empty_session_id_never_crashes) {
    struct stage s;
    stage_default(&s, 1);
    if (!stage_push(&s, 0, "", 1))
        CHECK_I64(s.status, UNSALT_CORE_INVAL);
    stage_close(&s);
}

TEST(core_arrivals, unsequenced_and_control_pass_and_are_counted) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    s.in.kind = UNSALT_KIND_UNSEQUENCED;
    stage_push(&s, 0, "", 0);
    s.in.kind = UNSALT_KIND_CONTROL;
    stage_push(&s, 0, "", 0);
    CHECK_STR(stage_took(&s), "unsequenced:0 control:0");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_UNSEQUENCED], 1);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_CONTROL], 1);
    CHECK_U64(stage_counters(&s).received, 3);
    stage_close(&s);
}

TEST(core_arrivals, an_offset_that_was_read_is_fenced) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_took(&s);
    s.next[0] = 1; /* the offset of number 2, again, with another number */
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "fenced:a3");
    CHECK_I64(s.event.type, UNSALT_CORE_EV_OFFSET_BACK);
    CHECK_I64(s.event.offset, 1);
    s.next[0] = 2;
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a3");
    stage_close(&s);
}

/* What is refused is untouched, and what was before it in the batch is taken. */
static void stops_at(unsalt_core_in_t bad) {
    struct stage s;
    stage_default(&s, 1);
    unsalt_core_in_t in[3];
    for (int i = 0; i < 3; i++)
        in[i] = (unsalt_core_in_t){.session = "a", .session_len = 1, .seq = (uint64_t)i + 1, .offset = i, .bytes = 1};
    bad.session = "a";
    bad.session_len = 1;
    bad.offset = 1;
    in[1] = bad;
    unsalt_core_out_t out[3];
    size_t n_out = 99;
    int status = 99;
    CHECK_U64(unsalt_core_push(s.core, in, 3, s.now, out, &n_out, &status), 1);
    CHECK_I64(status, UNSALT_CORE_INVAL);
    CHECK_U64(n_out, 1);
    CHECK_U64(stage_counters(&s).received, 1);
    CHECK(unsalt_core_conserved(s.core));
    stage_close(&s);
}

TEST(core_arrivals, a_batch_stops_at_an_unknown_partition) {
    stops_at((unsalt_core_in_t){.seq = 2, .part = 1});
    stops_at((unsalt_core_in_t){.seq = 2, .part = UINT32_MAX});
}

TEST(core_arrivals, a_batch_stops_at_a_lane_out_of_range) {
    stops_at((unsalt_core_in_t){.seq = 2, .lane = 4, .lanes = 4});
}

TEST(core_arrivals, a_batch_stops_at_an_unknown_kind) {
    stops_at((unsalt_core_in_t){.seq = 2, .kind = 77});
}

TEST(core_arrivals, a_batch_of_none_is_fine) {
    struct stage s;
    stage_default(&s, 1);
    unsalt_core_out_t out;
    size_t n_out = 99;
    int status = 99;
    CHECK_U64(unsalt_core_push(s.core, NULL, 0, s.now, &out, &n_out, &status), 0);
    CHECK_U64(n_out, 0);
    CHECK_I64(status, UNSALT_CORE_OK);
    stage_close(&s);
}

TEST(core_arrivals, time_that_goes_back_counts_as_the_latest) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    s.now -= 1000;
    stage_push(&s, 0, "a", 1);
    CHECK(s.last.waited_ns > 0 && s.last.waited_ns < 10); /* a nanosecond for each call meanwhile */
    CHECK(stage_counters(&s).clock_regressions >= 1);
    s.now += 1000;
    stage_close(&s);
}

/* What a leader was asked before a session was met proves nothing of it, though the clock has gone back and stands. */
TEST(core_arrivals, a_question_before_a_record_stays_before_it_when_the_clock_goes_back) {
    struct stage s;
    uint32_t parts[4];
    stage_init(&s);
    s.params.start = UNSALT_START_SEEN;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 50, 0);
    stage_push(&s, 1, "a", 12);
    s.now -= 1000;
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1);
    CHECK_U64(parts[0], 0);
    stage_push(&s, 1, "b", 12); /* its 11 was written to partition 0 between question and record */
    unsalt_core_answer(s.core, 0, unsalt_core_generation(s.core, 0), 50, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a12");
    stage_push(&s, 0, "b", 11);
    CHECK_STR(stage_took(&s), "b11 b12");
    s.now += 1000;
    stage_close(&s);
}

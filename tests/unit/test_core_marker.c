/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4 and 5, `marker`: the producer says that numbers will never come. */
#include <support/check.h>
#include <support/stage.h>

static void open_stage(struct stage *s) {
    stage_init(s);
    s->params.gap_timeout_ns = UNSALT_NEVER;
    s->params.skips_max = 4;
    stage_open(s);
    stage_parts(s, 0, 2, true, 0, 0);
}

static void mark(struct stage *s, const char *session, uint64_t first, uint64_t last) {
    unsalt_core_in_t plain = s->in;
    s->in.kind = UNSALT_KIND_CONTROL;
    s->in.flags = UNSALT_F_MARKER;
    s->in.since = first;
    stage_push(s, 0, session, last);
    s->in = plain;
}

TEST(core_marker, covers_its_range) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 5);
    mark(&s, "a", 2, 3);
    CHECK_STR(stage_took(&s), "a1 control:a3");
    CHECK_STR(stage_said(&s), "");
    mark(&s, "a", 4, 4);
    CHECK_STR(stage_said(&s), "gap:a2-4:marker");
    CHECK_STR(stage_took(&s), "control:a4 a5!");
    stage_close(&s);
}

TEST(core_marker, may_come_before_what_it_lets_go) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    mark(&s, "a", 2, 2);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a1 control:a2 a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:marker");
    stage_close(&s);
}

TEST(core_marker, never_skips_what_is_held_or_comes_all_the_same) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    mark(&s, "a", 1, 100);
    CHECK_STR(stage_took(&s), "a1 control:a100 a3!");
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a4 a5");
    CHECK_STR(stage_said(&s), "gap:a2-2:marker");
    stage_close(&s);
}

TEST(core_marker, overlap_repeat_and_contradict) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    mark(&s, "a", 10, 20);
    mark(&s, "a", 15, 30);
    mark(&s, "a", 10, 20);
    mark(&s, "a", 2, 9);
    stage_took(&s);
    stage_push(&s, 0, "a", 31);
    CHECK_STR(stage_said(&s), "gap:a2-30:marker");
    CHECK_STR(stage_took(&s), "a31!");
    mark(&s, "a", 5, 12); /* far below: says nothing any more */
    stage_push(&s, 0, "a", 7);
    CHECK_STR(stage_took(&s), "control:a12 late:a7");
    stage_close(&s);
}

TEST(core_marker, too_many_ranges_forget_the_highest) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    for (uint64_t m = 20; m >= 2; m -= 2) {
        mark(&s, "a", m, m);
    }
    stage_took(&s);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 9);
    CHECK_STR(stage_took(&s), "a3!");
    stage_push(&s, 0, "a", 5);
    stage_push(&s, 0, "a", 7);
    CHECK_STR(stage_took(&s), "a5! a7! a9!");
    stage_push(&s, 0, "a", 11); /* the mark of 10 was forgotten */
    CHECK_STR(stage_took(&s), "");
    stage_close(&s);
}

TEST(core_marker, of_another_run_is_only_counted) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    s.in.epoch = 9;
    mark(&s, "a", 2, 2);
    CHECK_STR(stage_took(&s), "a1 control:a2");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_CONTROL], 1);
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_close(&s);
}

/* A relay that has one lane of the input only may write the marker before all results of the session. */
TEST(core_marker, may_be_the_first_that_is_read_of_its_session) {
    struct stage s;
    stage_init(&s);
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    mark(&s, "a", 2, 2);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 1, "a", 3);
    CHECK_STR(stage_took(&s), "control:a2 a1 a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:marker");
    stage_close(&s);
}

/* Where the session begins isn't told by a marker. */
TEST(core_marker, of_an_unknown_session_is_only_counted_where_its_start_is_to_be_found) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 5, 0);
    mark(&s, "a", 2, 2);
    CHECK_STR(stage_took(&s), "control:a2");
    CHECK_U64(stage_counters(&s).sessions, 0);
    stage_close(&s);
}

TEST(core_marker, and_proof_together_decide_a_gap) {
    struct stage s;
    open_stage(&s);
    s.in.lanes = 2;
    s.in.since = 1;
    s.in.una = 1;
    stage_push_lane(&s, 1, "a", 1);
    s.in.una = 3;
    stage_push_lane(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a1");
    mark(&s, "a", 3, 5);
    CHECK_STR(stage_said(&s), "gap:a2-2:proven gap:a3-5:marker");
    CHECK_STR(stage_took(&s), "control:a5 a6!");
    stage_close(&s);
}

TEST(core_marker, of_the_next_run_waits_for_it) {
    struct stage s;
    open_stage(&s);
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    mark(&s, "a", 2, 2);
    CHECK_STR(stage_took(&s), "a1 control:a2");
    stage_push(&s, 1, "a", 4);
    CHECK_STR(stage_took(&s), "a1 a3! a4");
    stage_close(&s);
}

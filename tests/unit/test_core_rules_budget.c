/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of budgets that could once be taken out without any test noticing; tests/mutants/ takes each of them out again.
 */
#include <support/check.h>
#include <support/stage.h>

static void open_core(struct stage *s, uint64_t records) {
    stage_init(s);
    s->params.budget_records = records;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
}

/* Pushes until it is taken. */
static void insist(struct stage *s, const char *session, uint64_t seq) {
    for (int i = 0; i < 10 && !stage_push(s, 0, session, seq); i++)
        CHECK_I64(s->status, UNSALT_CORE_PULL);
    CHECK_I64(s->status, UNSALT_CORE_OK);
}

static int told(struct stage *s) {
    int n = 0;
    const char *text = stage_said(s);
    for (const char *at = text; (at = strstr(at, "budget:")); at++)
        n++;
    return n;
}

/* Told once while it stays full, and again when it fills up again. */
TEST(core_rules_budget, the_event_comes_again_after_there_was_room) {
    struct stage s;
    open_core(&s, 8);
    for (uint64_t seq = 2; seq <= 40; seq += 2)
        insist(&s, "a", seq);
    CHECK_I64(told(&s), 1);
    stage_flush(&s);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
    stage_said(&s);
    for (uint64_t seq = 2; seq <= 40; seq += 2)
        insist(&s, "b", seq);
    CHECK_I64(told(&s), 1);
    stage_close(&s);
}

TEST(core_rules_budget, the_bytes_of_a_session_are_bounded) {
    struct stage s;
    stage_init(&s);
    s.params.session_budget_bytes = 1000;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.bytes = 400;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "b", 2); /* another session has room of its own */
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_counters(&s).held_bytes, 1200);
    insist(&s, "a", 6);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* A backlog of one session in a batch: the loop for stretches stops where a budget is full. */
TEST(core_rules_budget, a_stretch_holds_no_more_than_there_is_room_for) {
    struct stage s;
    open_core(&s, 10);
    s.in.lanes = 1;
    for (uint64_t seq = 2; seq <= 50; seq++) {
        insist(&s, "a", seq);
        CHECK_THAT(stage_counters(&s).state[UNSALT_STATE_HELD] <= 10, "%" PRIu64 " are held",
                   stage_counters(&s).state[UNSALT_STATE_HELD]);
    }
    stage_close(&s);
}

/* What is ready makes room when it is pulled: no gap has to give way for it. */
TEST(core_rules_budget, no_gap_gives_way_while_something_is_ready) {
    struct stage s;
    open_core(&s, 4);
    s.lazy = true;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "b", 2);
    stage_push(&s, 0, "b", 3);
    stage_push(&s, 0, "c", 3);
    stage_push(&s, 0, "b", 1); /* b2 and b3 are ready */
    CHECK(!stage_push(&s, 0, "a", 4));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK(!strstr(stage_said(&s), "gap:"));
    stage_pull(&s, SIZE_MAX);
    CHECK(stage_push(&s, 0, "a", 4));
    CHECK_STR(stage_took(&s), "b1 b2 b3");
    stage_close(&s);
}

TEST(core_rules_budget, no_gap_gives_way_in_a_full_window_while_something_is_ready) {
    struct stage s;
    stage_init(&s);
    s.params.budget_window = 4;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.lazy = s.ack = true;
    stage_push(&s, 0, "b", 2);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "b", 1); /* b2, the oldest of the window, is ready */
    CHECK(!stage_push(&s, 0, "a", 4));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_said(&s), "");
    stage_pull(&s, SIZE_MAX);
    CHECK(stage_push(&s, 0, "a", 4));
    CHECK_STR(stage_took(&s), "b1 b2");
    stage_close(&s);
}

/* The gap that waits for a partition is older than one that isn't due yet. */
TEST(core_rules_budget, the_oldest_gap_may_wait_for_a_partition) {
    struct stage s;
    open_core(&s, 2);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 600 * MS);
    stage_push(&s, 0, "b", 2);
    CHECK_STR(stage_took(&s), "");
    insist(&s, "b", 4);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* The timer of a gap that has closed still stands in the clock, and is older than the gap that is open now. */
TEST(core_rules_budget, a_timer_of_a_closed_gap_says_nothing_of_its_age) {
    struct stage s;
    open_core(&s, 2);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "b", 2);
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "a", 4);
    CHECK_STR(stage_took(&s), "");
    insist(&s, "a", 6);
    CHECK_STR(stage_took(&s), "b2!");
    stage_close(&s);
}

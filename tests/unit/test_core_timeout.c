/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 5: a gap is due after the timeout, and given up once every partition that may carry it was read past that. */
#include <support/check.h>
#include <support/stage.h>

static void open_with(struct stage *s, uint64_t timeout, unsalt_gap_clock_t clock, uint32_t parts) {
    stage_init(s);
    s->params.gap_timeout_ns = timeout;
    s->params.gap_clock = clock;
    stage_open(s);
    stage_parts(s, 0, parts, false, 0, 0);
}

TEST(core_timeout, by_the_wall_it_is_due_to_the_nanosecond) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_WALL, 1);
    stage_push(&s, 0, "a", 2);
    CHECK_U64(unsalt_core_deadline(s.core), s.now + 500 * MS);
    stage_wait(&s, 500 * MS - 1);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 1);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:timeout");
    CHECK_U64(s.event.waited_ns, 500 * MS);
    stage_close(&s);
}

TEST(core_timeout, zero_gives_up_at_once) {
    struct stage s;
    open_with(&s, 0, UNSALT_CLOCK_WALL, 1);
    stage_push(&s, 0, "a", 3);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a3!");
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "late:a2");
    stage_close(&s);
}

TEST(core_timeout, never_is_never) {
    struct stage s;
    open_with(&s, UNSALT_NEVER, UNSALT_CLOCK_HORIZON, 1);
    s.params.session_ttl_ns = UNSALT_NEVER;
    stage_push(&s, 0, "a", 2);
    s.now = UINT64_MAX / 2;
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "");
    stage_close(&s);
}

TEST(core_timeout, a_due_gap_waits_for_every_partition) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 3);
    uint64_t opened = s.now;
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 10 * SEC);
    CHECK_STR(stage_took(&s), "");
    unsalt_core_horizon(s.core, 0, s.now, s.now);
    unsalt_core_horizon(s.core, 1, opened + 500 * MS, s.now);
    unsalt_core_horizon(s.core, 2, opened + 500 * MS - 1, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "");
    unsalt_core_horizon(s.core, 2, opened + 500 * MS, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:timeout");
    CHECK_U64(s.event.waited_ns, 10 * SEC);
    stage_close(&s);
}

TEST(core_timeout, a_horizon_never_goes_back) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 1);
    stage_push(&s, 0, "a", 2);
    s.now += 500 * MS;
    unsalt_core_horizon(s.core, 0, s.now, s.now);
    unsalt_core_horizon(s.core, 0, 1, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_timeout, a_horizon_beyond_the_due_time_is_no_verdict_before_it) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 400 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 100 * MS);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_timeout, what_comes_while_it_waits_is_released_in_order) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 2);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 3600 * SEC - 1); /* the backlog is long */
    stage_push(&s, 1, "a", 1);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_timeout, one_timer_times_all_gaps_of_a_session) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_WALL, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "a", 5);
    stage_wait(&s, 100 * MS);
    stage_push(&s, 0, "a", 4); /* the gap at 3 is open since 5 came */
    stage_wait(&s, 300 * MS);
    CHECK_STR(stage_took(&s), "a2!");
    stage_wait(&s, 100 * MS - 1);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 1);
    CHECK_STR(stage_took(&s), "a4! a5");
    CHECK_STR(stage_said(&s), "gap:a1-1:timeout gap:a3-3:timeout");
    stage_close(&s);
}

TEST(core_timeout, gaps_that_are_due_together_are_given_up_together) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_WALL, 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "a", 6);
    stage_wait(&s, 500 * MS);
    CHECK_STR(stage_took(&s), "a2! a4! a6!");
    stage_close(&s);
}

TEST(core_timeout, the_longest_wait_bounds_it_all) {
    struct stage s;
    stage_init(&s);
    s.params.gap_wait_max_ns = 2 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 2 * SEC - 1);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 1);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_timeout, a_known_lane_of_its_own_topic_is_enough) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.lanes = 4;
    stage_push_lane(&s, 1, "a", 1);
    stage_push_lane(&s, 3, "a", 3);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a1");
    stage_horizon(&s, 2, 2); /* number 2 is on lane 2 */
    CHECK_STR(stage_took(&s), "a3!");
    stage_close(&s);
}

TEST(core_timeout, with_an_unknown_lane_any_topic_may_carry_it) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.lanes = 4;
    s.in.since = 3; /* nothing is known of number 2 */
    stage_push_lane(&s, 1, "a", 1);
    stage_push_lane(&s, 3, "a", 3);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 1, 3);
    CHECK_STR(stage_took(&s), "a1");
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a3!");
    stage_close(&s);
}

TEST(core_timeout, another_set_has_no_say) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 1, 1, false, 0, 0);
    stage_parts(&s, 2, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 1, 1);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* Else a session out of order for a moment would have a timer for as long as a gap may wait, and be awake as long. */
TEST(core_timeout, a_gap_that_was_filled_leaves_no_timer) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 2);
    stage_push(&s, 0, "b", 1);
    uint64_t without = unsalt_core_deadline(s.core);
    stage_push(&s, 0, "a", 2);
    CHECK_U64(unsalt_core_deadline(s.core), s.now + 500 * MS);
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "b1 a1 a2");
    CHECK_U64(unsalt_core_deadline(s.core), without);
    stage_push(&s, 0, "a", 4); /* and the next gap has its own */
    CHECK_U64(unsalt_core_deadline(s.core), s.now + 500 * MS);
    stage_close(&s);
}

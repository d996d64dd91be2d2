/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: where an unknown session starts. */
#include <support/check.h>
#include <support/stage.h>

static void open_with(struct stage *s, unsalt_start_t start, uint32_t parts, bool topics, int64_t offset) {
    stage_init(s);
    s->params.start = start;
    stage_open(s);
    stage_parts(s, 0, parts, topics, offset, 0);
}

TEST(core_start, first_waits_for_the_first_number) {
    struct stage s;
    open_with(&s, UNSALT_START_FIRST, 1, false, 100);
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a5!");
    CHECK_STR(stage_said(&s), "gap:a1-4:timeout");
    stage_close(&s);
}

TEST(core_start, resume_is_first_when_all_was_read_from_the_beginning) {
    struct stage s;
    open_with(&s, UNSALT_START_RESUME, 2, false, 0);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 1, "a", 4);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

TEST(core_start, resume_is_seen_when_one_partition_was_joined_in_the_middle) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 0, 0);
    stage_assign(&s, 0, 2, -1, 7, 0);
    stage_push(&s, 0, "a", 12);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 1, "a", 11);
    CHECK_STR(stage_took(&s), "a11 a12");
    CHECK_STR(stage_said(&s), "start:a");
    CHECK_U64(stage_counters(&s).starts_seen, 1);
    stage_close(&s);
}

TEST(core_start, an_unknown_start_counts_as_the_middle) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 1, -1, -1, -1);
    stage_push(&s, 0, "a", 12);
    CHECK_STR(stage_took(&s), "a12");
    stage_close(&s);
}

TEST(core_start, seen_waits_for_every_lane_when_the_lanes_are_known) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 6, false, 50);
    s.in.lanes = 3;
    stage_push_lane(&s, 0, "a", 11);
    stage_push_lane(&s, 1, "a", 9);
    CHECK_STR(stage_took(&s), "");
    stage_push_lane(&s, 2, "a", 10);
    CHECK_STR(stage_took(&s), "a9 a10 a11");
    stage_close(&s);
}

TEST(core_start, lanes_that_hold_only_from_some_number_on_say_nothing_of_lower_ones) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 4, false, 50);
    s.in.lanes = 2;
    s.in.since = 10;
    stage_push_lane(&s, 0, "a", 12);
    stage_push_lane(&s, 1, "a", 11);
    CHECK_STR(stage_took(&s), "");
    s.in.since = 1;
    s.in.lanes = 4;
    stage_push_lane(&s, 2, "a", 9);
    stage_push_lane(&s, 3, "a", 8);
    CHECK_STR(stage_said(&s), "start:a gap:a10-10:resumed"); /* lane 0 of the new S began with 12 */
    CHECK_STR(stage_took(&s), "a8 a9 a11! a12");
    stage_close(&s);
}

TEST(core_start, seen_waits_for_every_partition_when_they_are_not) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 3, false, 50);
    stage_push(&s, 2, "a", 11);
    stage_push(&s, 1, "a", 12);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 0, "a", 10);
    CHECK_STR(stage_took(&s), "a10 a11 a12");
    stage_close(&s);
}

TEST(core_start, seen_takes_a_horizon_past_first_sight_for_a_showing) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 3, false, 50);
    uint64_t sight = s.now;
    stage_push(&s, 2, "a", 11);
    s.now += SEC;
    stage_push(&s, 1, "a", 10);
    unsalt_core_horizon(s.core, 0, sight - 1, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "");
    unsalt_core_horizon(s.core, 0, sight, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a10 a11");
    stage_close(&s);
}

TEST(core_start, seen_asks_for_the_ends_that_it_waits_for) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 2, false, 50);
    stage_push(&s, 0, "a", 11);
    uint32_t parts[4];
    stage_wait(&s, 500 * MS);
    size_t n = unsalt_core_questions(s.core, s.now, parts, 4);
    CHECK(n >= 1);
    bool other = false;
    for (size_t i = 0; i < n; i++)
        other |= parts[i] == 1;
    CHECK(other);
    unsalt_core_answer(s.core, 1, unsalt_core_generation(s.core, 1), 50, s.now); /* nothing to read there */
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a11");
    stage_close(&s);
}

TEST(core_start, the_first_number_starts_at_once) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 3, false, 50);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_start, so_does_the_flag) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 3, false, 50);
    s.in.flags = UNSALT_F_FIRST;
    stage_push(&s, 0, "a", 7);
    s.in.flags = 0;
    stage_push(&s, 0, "a", 8);
    CHECK_STR(stage_took(&s), "a7 a8");
    stage_close(&s);
}

TEST(core_start, so_does_a_single_lane) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 3, false, 50);
    s.in.lanes = 1;
    stage_push(&s, 0, "a", 7);
    stage_push(&s, 0, "a", 8);
    CHECK_STR(stage_took(&s), "a7 a8");
    stage_close(&s);
}

TEST(core_start, lower_numbers_that_come_later_are_late) {
    struct stage s;
    open_with(&s, UNSALT_START_SEEN, 1, false, 50);
    stage_push(&s, 0, "a", 7);
    stage_push(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a7 late:a6");
    stage_close(&s);
}

TEST(core_start, nothing_is_released_before_the_set_is_complete) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 4, 2, -1, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 10 * SEC);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "");
    stage_assign(&s, 4, 2, -1, 0, 0);
    stage_expire(&s);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: copies are dropped, late records are not; a heap alone can't tell them apart. */
#include <support/check.h>
#include <support/stage.h>

static void give_up(struct stage *s) {
    stage_wait(s, 500 * MS);
    stage_horizon(s, 0, 0);
}

TEST(core_duplicates, of_what_was_released) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 duplicate:a1 a2 duplicate:a1");
    CHECK_STR(stage_said(&s), "duplicate:a duplicate:a");
    stage_close(&s);
}

TEST(core_duplicates, of_what_is_held_the_first_copy_wins) {
    struct stage s;
    stage_default(&s, 2);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 1, "a", 3);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "duplicate:a3 duplicate:a3");
    CHECK_U64(stage_counters(&s).held_bytes, 200);
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2 a3");
    CHECK_U64(s.last.part, 0);
    stage_close(&s);
}

TEST(core_duplicates, the_core_acknowledges_copies_itself) {
    struct stage s;
    stage_default(&s, 1);
    s.ack = true;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 2);
    stage_close(&s);
}

TEST(core_duplicates, what_was_skipped_is_late_once_and_a_copy_then) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 5);
    give_up(&s);
    CHECK_STR(stage_took(&s), "a1 a5!");
    CHECK_STR(stage_said(&s), "gap:a2-4:timeout");
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "late:a3 duplicate:a3 duplicate:a1 late:a2 late:a4 duplicate:a5");
    CHECK_STR(stage_said(&s), "late:a duplicate:a duplicate:a late:a late:a duplicate:a");
    stage_push(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a6");
    stage_close(&s);
}

static void policy(unsalt_late_t late, const char *took) {
    struct stage s;
    stage_init(&s);
    s.params.late = late;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.ack = true;
    stage_push(&s, 0, "a", 2);
    give_up(&s);
    CHECK_STR(stage_took(&s), "a2!");
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), took);
    CHECK_STR(stage_said(&s), "gap:a1-1:timeout late:a");
    CHECK_I64(unsalt_core_position(s.core, 0), 2);
    stage_close(&s);
}

TEST(core_duplicates, late_records_are_delivered) {
    policy(UNSALT_LATE_DELIVER, "late:a1");
}

TEST(core_duplicates, or_dead_lettered) {
    policy(UNSALT_LATE_DEAD_LETTER, "dead_lettered:a1");
}

TEST(core_duplicates, or_dropped) {
    policy(UNSALT_LATE_DROP, "dropped:a1");
}

TEST(core_duplicates, a_number_whose_skip_was_forgotten_counts_as_late) {
    struct stage s;
    stage_init(&s);
    s.params.skips_max = 2;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (uint64_t seq = 1; seq <= 11; seq += 2) /* skips 2, 4, 6, 8, 10; the last two are remembered */
        stage_push(&s, 0, "a", seq);
    give_up(&s);
    CHECK_STR(stage_took(&s), "a1 a3! a5! a7! a9! a11!");
    stage_said(&s);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 10);
    stage_push(&s, 0, "a", 8);
    stage_push(&s, 0, "a", 9);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "late:a2 late:a10 late:a8 duplicate:a9 late:a3");
    stage_close(&s);
}

TEST(core_duplicates, a_copy_in_the_middle_of_a_lane_is_noticed) {
    struct stage s;
    stage_default(&s, 4);
    s.in.lanes = 4;
    for (uint64_t seq = 4; seq <= 400; seq += 4) /* the lane ahead holds 4, 8, 12 .. */
        stage_push_lane(&s, 0, "a", seq);
    stage_push_lane(&s, 0, "a", 200);
    stage_push_lane(&s, 0, "a", 400);
    stage_push_lane(&s, 0, "a", 4);
    CHECK_STR(stage_took(&s), "duplicate:a200 duplicate:a400 duplicate:a4");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 100);
    stage_close(&s);
}

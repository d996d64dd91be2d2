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

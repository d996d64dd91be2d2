/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

TEST(core_flush, gives_up_every_gap) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 5);
    stage_push(&s, 0, "b", 9);
    stage_flush(&s);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 3);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_FLUSH], 3);
    CHECK_U64(stage_counters(&s).gaps_open, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 6);
    stage_push(&s, 0, "b", 10);
    const char *took = stage_took(&s);
    CHECK_THAT(strstr(took, "a2!") && strstr(took, "a5!") && strstr(took, "b9!"), "took %s", took);
    CHECK_THAT(strstr(took, "late:a1 a6 b10"), "took %s", took);
    stage_close(&s);
}

TEST(core_flush, is_bounded_by_the_room_for_events_and_goes_on) {
    struct stage s;
    stage_default(&s, 1);
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        stage_push(&s, 0, name, 2);
    }
    stage_flush(&s);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_FLUSH], 1000);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 1000);
    stage_close(&s);
}

TEST(core_flush, of_nothing_does_nothing) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_flush(&s);
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_flush, starts_what_was_not_started) {
    struct stage s;
    stage_init(&s);
    s.params.start = UNSALT_START_SEEN;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 10, 0);
    stage_push(&s, 0, "a", 5);
    stage_push(&s, 0, "a", 7);
    for (int i = 0; i < 5; i++)
        stage_flush(&s);
    CHECK_STR(stage_took(&s), "a5 a7!");
    stage_close(&s);
}

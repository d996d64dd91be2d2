/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: a producer goes back without a higher epoch. Copies and restarts look alike but for the creation time. */
#include <support/check.h>
#include <support/stage.h>

static void push(struct stage *s, uint64_t seq, int64_t timestamp) {
    s->in.timestamp = timestamp;
    stage_push(s, 0, "a", seq);
}

static void run(struct stage *s, uint64_t first, uint64_t last, int64_t base) {
    for (uint64_t seq = first; seq <= last; seq++)
        push(s, seq, base + (int64_t)seq);
}

TEST(core_restart, is_revealed_by_five_in_a_row) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    run(&s, 1, 4, 2000);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 4);
    push(&s, 5, 2005);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5");
    CHECK_STR(stage_said(&s), "restart:a1");
    CHECK_U64(s.event.first, 1);
    CHECK_U64(s.event.last, 11);
    CHECK_U64(stage_counters(&s).restarts, 1);
    run(&s, 6, 12, 2000);
    CHECK_STR(stage_took(&s), "a6 a7 a8 a9 a10 a11 a12");
    stage_close(&s);
}

TEST(core_restart, or_by_a_quiet_time) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    run(&s, 1, 2, 2000);
    CHECK(unsalt_core_deadline(s.core) <= s.now + SEC);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "restart:a1");
    push(&s, 3, 2003);
    CHECK_STR(stage_took(&s), "a3");
    stage_close(&s);
}

TEST(core_restart, a_record_at_the_cursor_shows_that_they_were_copies) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    run(&s, 1, 4, 2000);
    push(&s, 11, 2011);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 4);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 11);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

TEST(core_restart, copies_with_their_old_creation_time_are_no_suspects) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    run(&s, 1, 10, 1000);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 10);
    stage_wait(&s, 10 * SEC);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

TEST(core_restart, without_a_creation_time_every_copy_is_a_suspect) {
    struct stage s;
    stage_default(&s, 1);
    for (uint64_t seq = 1; seq <= 10; seq++)
        push(&s, seq, -1);
    for (uint64_t seq = 1; seq <= 5; seq++)
        push(&s, seq, -1);
    CHECK_U64(stage_counters(&s).restarts, 1);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 15);
    stage_close(&s);
}

TEST(core_restart, what_the_old_run_still_held_is_not_lost) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    push(&s, 20, 1020);
    stage_took(&s);
    run(&s, 1, 5, 2000);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 0);
    stage_flush(&s);
    unsalt_core_counters_t counters = stage_counters(&s);
    CHECK_U64(counters.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(counters.state[UNSALT_STATE_RELEASED] + counters.state[UNSALT_STATE_LATE], 16);
    CHECK_U64(counters.restarts, 1);
    stage_close(&s);
}

/* It looks like a restart, since it comes from so far below; but it was never released, so it must not get lost. */
TEST(core_restart, a_late_record_from_far_below_is_no_copy) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 1, 1001);
    push(&s, (uint64_t)1 << 40, 1002);
    stage_flush(&s);
    stage_took(&s);
    push(&s, 5, 1003);
    push(&s, ((uint64_t)1 << 40) + 1, 1004);
    push(&s, 6, 1005);
    stage_wait(&s, 10 * SEC);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
    const char *took = stage_took(&s);
    CHECK_THAT(strstr(took, "a5") && strstr(took, "a6") && strstr(took, "a1099511627777"), "took %s", took);
    stage_close(&s);
}

/* One lane of the new run is slow: what shows up first is not its first number, and then there is silence. */
TEST(core_restart, records_newer_than_everything_are_not_dropped_after_a_silence) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    push(&s, 2, 2002);
    push(&s, 4, 2004);
    stage_wait(&s, 2 * SEC);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_STR(stage_took(&s), "a2");
    stage_close(&s);
}

TEST(core_restart, held_suspects_hold_the_commit_position) {
    struct stage s;
    stage_default(&s, 1);
    s.ack = true;
    run(&s, 1, 10, 1000);
    run(&s, 1, 2, 2000);
    CHECK_I64(unsalt_core_position(s.core, 0), 10);
    stage_wait(&s, SEC);
    CHECK_I64(unsalt_core_position(s.core, 0), 12);
    stage_close(&s);
}

TEST(core_restart, suspects_are_given_back_at_a_revoke) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    run(&s, 1, 2, 2000);
    stage_took(&s);
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_REVOKED], 2);
    stage_close(&s);
}

TEST(core_restart, can_happen_again_and_again) {
    struct stage s;
    stage_default(&s, 1);
    for (int64_t i = 1; i <= 30; i++)
        run(&s, 1, 20, i * 1000);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 600);
    CHECK_U64(stage_counters(&s).restarts, 29);
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The cursors of sessions as a checkpoint carries them, and what a new owner makes of them. */
#include <unit/fixture/cursors.h>

TEST(core_cursors, are_not_kept_unless_asked_for) {
    struct stage s;
    unsalt_core_cursor_t cursor;
    stage_default(&s, 1);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), UNSALT_CORE_INVAL);
    stage_close(&s);
}

TEST(core_cursors, what_the_application_has_is_not_done) {
    struct stage s;
    cursors_open(&s, 1);
    for (uint64_t seq = 1; seq <= 6; seq++) {
        stage_push(&s, 0, "a", seq);
    }
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5 a6");
    CHECK_STR(cursors_taken(&s, true), "a@1");
    cursors_ack(&s, 0);
    cursors_ack(&s, 2);
    cursors_ack(&s, 3);
    CHECK_STR(cursors_done(&s), "2-3");
    CHECK_STR(cursors_taken(&s, true), "a@2 done 3-4");
    cursors_ack(&s, 5);
    CHECK_STR(cursors_taken(&s, true), "a@2 done 3-4,6-6");
    cursors_ack(&s, 1);
    cursors_ack(&s, 4);
    CHECK_STR(cursors_taken(&s, true), "a@7");
    CHECK_STR(cursors_taken(&s, true), "");
    CHECK_STR(cursors_done(&s), "");
    stage_close(&s);
}

TEST(core_cursors, what_is_not_kept_is_taken_again) {
    struct stage s;
    cursors_open(&s, 1);
    s.ack = true;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    CHECK_STR(cursors_taken(&s, false), "a@2; b@2");
    stage_push(&s, 0, "b", 2);
    CHECK_STR(cursors_taken(&s, true), "a@2; b@3");
    CHECK_U64(stage_counters(&s).cursors_changed, 0);
    stage_close(&s);
}

/* What changes while a checkpoint is under way is taken with the next one, whatever becomes of it. */
TEST(core_cursors, a_change_under_way_is_taken_again) {
    struct stage s;
    unsalt_core_cursor_t cursor;
    cursors_open(&s, 1);
    s.ack = true;
    stage_push(&s, 0, "a", 1);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_cursors_begin(s.core), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 1);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 0);
    stage_push(&s, 0, "a", 2);
    CHECK_I64(unsalt_core_cursors_next(s.core, &cursor), 0);
    unsalt_core_cursors_end(s.core, true);
    CHECK_STR(cursors_taken(&s, true), "a@3");
    stage_close(&s);
}

TEST(core_cursors, gaps_are_carried) {
    struct stage s;
    cursors_open(&s, 1);
    s.ack = true;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 4);
    stage_horizon(&s, 0, 0);
    stage_wait(&s, 600 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a1 a4!");
    CHECK_STR(cursors_taken(&s, true), "a@5 skipped 2-3");
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "late:a2");
    CHECK_STR(cursors_taken(&s, true), "a@5 skipped 3-3");
    stage_close(&s);
}

/* A late record that the application still has would be lost if a copy of it passed for a duplicate. */
TEST(core_cursors, a_late_record_in_hand_is_late_again) {
    struct stage s;
    cursors_open(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 4);
    stage_horizon(&s, 0, 0);
    stage_wait(&s, 600 * MS);
    stage_horizon(&s, 0, 0);
    stage_push(&s, 0, "a", 2);
    cursors_ack(&s, 0);
    cursors_ack(&s, 1);
    CHECK_STR(cursors_taken(&s, true), "a@5 skipped 2-3");
    cursors_ack(&s, 2);
    CHECK_STR(cursors_taken(&s, true), "a@5 skipped 3-3");
    stage_close(&s);
}

TEST(core_cursors, a_session_stays_until_its_cursor_is_kept) {
    struct stage s;
    cursors_open(&s, 1);
    s.ack = true;
    s.in.flags = UNSALT_F_LAST;
    stage_push(&s, 0, "a", 1);
    CHECK_U64(stage_counters(&s).sessions, 1);
    CHECK_STR(cursors_taken(&s, true), "a@2");
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    stage_close(&s);
}

TEST(core_cursors, an_idle_session_stays_until_its_cursor_is_kept) {
    struct stage s;
    stage_init(&s);
    s.params.cursors = true;
    s.params.session_ttl_ns = 1 * SEC;
    s.ack = true;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_wait(&s, 3 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 1);
    CHECK_STR(cursors_taken(&s, true), "a@2");
    stage_wait(&s, 3 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    stage_close(&s);
}

TEST(core_cursors, sessions_above_the_limit_go_when_they_are_kept) {
    struct stage s;
    stage_init(&s);
    s.params.cursors = true;
    s.params.sessions_max = 1;
    s.ack = true;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "c", 1);
    CHECK_STR(cursors_taken(&s, false), "a@2; b@2; c@2");
    CHECK_U64(stage_counters(&s).sessions, 3);
    cursors_taken(&s, true);
    CHECK_U64(stage_counters(&s).sessions, 1);
    CHECK_U64(stage_counters(&s).sessions_remembered, 2);
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "a1 b1 c1 a2");
    stage_close(&s);
}

/* ---- restoring */

TEST(core_restore, goes_on_at_the_cursor) {
    struct stage s;
    cursors_open(&s, 1);
    CHECK_I64(cursors_restore(&s, "a", 0, 7, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, NULL, 0, NULL, 0), UNSALT_CORE_OK); /* the last one counts */
    CHECK_U64(stage_counters(&s).sessions, 0);
    s.in.timestamp = -1;
    s.in.epoch = 0;
    stage_push(&s, 0, "a", 5);
    stage_push(&s, 0, "a", 7);
    stage_push(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a5 a6 a7");
    CHECK_STR(stage_said(&s), "");
    CHECK_I64(cursors_restore(&s, "a", 0, 5, NULL, 0, NULL, 0), UNSALT_CORE_EXISTS);
    stage_close(&s);
}

TEST(core_restore, what_was_done_above_is_passed) {
    struct stage s;
    const unsalt_core_range_t above[] = {{3, 4}, {6, 6}}, skipped[] = {{2, 2}, {8, 9}};
    cursors_open(&s, 1);
    s.in.epoch = 3;
    CHECK_I64(cursors_restore(&s, "a", 3, 5, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(&s, "a", 3, 1, above, 2, skipped, 2), UNSALT_CORE_OK); /* instead of the compact one */
    CHECK_STR(cursors_taken(&s, true), "");
    stage_push(&s, 0, "a", 10);
    stage_push(&s, 0, "a", 7);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 8);
    CHECK_STR(stage_took(&s), "duplicate:a3 late:a8");
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a5 a7 a10");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], 0);
    stage_close(&s);
}

/* A number that isn't done and never comes is given up alone: its neighbours were not lost. */
TEST(core_restore, a_gap_ends_where_something_was_done) {
    struct stage s;
    const unsalt_core_range_t above[] = {{3, 4}};
    cursors_open(&s, 1);
    s.in.epoch = 3;
    CHECK_I64(cursors_restore(&s, "a", 3, 1, above, 1, NULL, 0), UNSALT_CORE_OK);
    stage_push(&s, 0, "a", 6);
    stage_wait(&s, 600 * MS);
    stage_horizon(&s, 0, 0);
    stage_wait(&s, 600 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_said(&s), "gap:a1-2:timeout gap:a5-5:timeout");
    CHECK_STR(stage_took(&s), "a6!");
    stage_close(&s);
}

TEST(core_restore, an_unfinished_one_is_carried_on) {
    struct stage s;
    const unsalt_core_range_t above[] = {{3, 4}, {7, 8}};
    cursors_open(&s, 1);
    s.in.epoch = 3;
    CHECK_I64(cursors_restore(&s, "a", 3, 1, above, 2, NULL, 0), UNSALT_CORE_OK);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    CHECK_STR(cursors_taken(&s, true), "a@1 done 3-4,7-8");
    cursors_ack(&s, 1);
    CHECK_STR(cursors_taken(&s, true), "a@1 done 2-4,7-8");
    cursors_ack(&s, 0);
    CHECK_STR(cursors_taken(&s, true), "a@5 done 7-8");
    stage_close(&s);
}

TEST(core_restore, refuses_what_cannot_be) {
    struct stage s;
    const unsalt_core_range_t below[] = {{3, 4}}, back[] = {{9, 9}, {8, 8}}, over[] = {{4, 6}};
    cursors_open(&s, 1);
    CHECK_I64(cursors_restore(&s, "a", 0, UNSALT_NO_SEQ, NULL, 0, NULL, 0), UNSALT_CORE_INVAL);
    CHECK_I64(cursors_restore(&s, "", 0, 1, NULL, 0, NULL, 0), UNSALT_CORE_INVAL);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, below, 1, NULL, 0), UNSALT_CORE_INVAL);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, back, 2, NULL, 0), UNSALT_CORE_INVAL);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, NULL, 0, over, 1), UNSALT_CORE_INVAL);
    CHECK_I64(cursors_restore(&s, "a", 0, 2, below, 1, over, 1), UNSALT_CORE_INVAL);
    unsalt_core_cursor_t other = {.session = "a", .session_len = 1, .set = 5, .cursor = 1};
    CHECK_I64(unsalt_core_restore(s.core, &other, s.now), UNSALT_CORE_INVAL);
    CHECK_U64(stage_counters(&s).cursors_restored, 0);
    stage_close(&s);
}

TEST(core_restore, offsets_done_before_are_dropped_whatever_they_are) {
    struct stage s;
    stage_init(&s);
    s.params.cursors = true;
    stage_open(&s);
    const unsalt_core_range_t before[] = {{11, 12}, {15, 15}};
    stage_assign(&s, 0, 0, -1, 10, 0);
    CHECK_I64(unsalt_core_done_before(s.core, 0, before, 2), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(&s, "a", 0, 3, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    s.next[0] = 10;
    for (uint64_t seq = 3; seq <= 8; seq++) {
        stage_push(&s, 0, seq == 5 ? "other" : "a", seq);
    }
    CHECK_STR(stage_took(&s), "a3 duplicate:a4 duplicate:other5 duplicate:a8");
    CHECK_U64(stage_counters(&s).done_before, 3);
    const unsalt_core_range_t wrong[] = {{5, 6}, {6, 7}};
    CHECK_I64(unsalt_core_done_before(s.core, 0, wrong, 2), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_done_before(s.core, 1, before, 2), UNSALT_CORE_INVAL);
    stage_close(&s);
}

/* While the application has records of a run, the next one waits, or a checkpoint would tell of the next one only. */
TEST(core_cursors, the_next_run_waits_for_acknowledgements) {
    struct stage s;
    cursors_open(&s, 1);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(cursors_taken(&s, true), "a@1");
    cursors_ack(&s, 0);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a1");
    s.in.epoch = 3;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 1001 * MS);
    CHECK_STR(stage_took(&s), "a1"); /* but not for ever */
    stage_close(&s);
}

TEST(core_restore, can_be_undone) {
    struct stage s;
    const unsalt_core_range_t above[] = {{7, 7}};
    cursors_open(&s, 1);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(&s, "b", 0, 5, above, 1, NULL, 0), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(&s, "c", 0, 2, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    unsalt_core_restore_undo(s.core, 0, "a", 1);
    unsalt_core_restore_undo(s.core, 0, "b", 1);
    unsalt_core_restore_undo(s.core, 0, "nobody", 6);
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "c", 2);
    CHECK_STR(stage_took(&s), "a1 b1 c2");
    unsalt_core_restore_undo(s.core, 0, "c", 1); /* too late */
    stage_push(&s, 0, "c", 3);
    CHECK_STR(stage_took(&s), "c3");
    stage_close(&s);
}

TEST(core_restore, reading_may_begin_elsewhere) {
    struct stage s;
    cursors_open(&s, 1);
    CHECK_I64(unsalt_core_start(s.core, 0, 40, 0), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), 40);
    CHECK_I64(cursors_restore(&s, "a", 0, 5, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    s.next[0] = 40;
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a5");
    CHECK_I64(unsalt_core_start(s.core, 0, 10, 0), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_start(s.core, 1, 10, 0), UNSALT_CORE_INVAL);
    stage_close(&s);
}

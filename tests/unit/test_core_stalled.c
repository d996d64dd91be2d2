/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 5.4: a partition that is owed, is being read and shows nothing for a long time: a dead leader. */
#include <support/check.h>
#include <support/stage.h>

static void open_gap(struct stage *s, uint32_t parts) {
    stage_init(s);
    s->params.gap_stall_max_ns = 60 * SEC;
    stage_open(s);
    stage_parts(s, 0, parts, false, 0, 0);
    stage_push(s, 0, "a", 2);
}

TEST(core_stalled, gives_up_after_a_minute_of_silence) {
    struct stage s;
    open_gap(&s, 1);
    stage_wait(&s, 500 * MS);
    stage_wait(&s, 59 * SEC);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:stalled");
    stage_close(&s);
}

TEST(core_stalled, a_partition_that_shows_records_does_not_stall) {
    struct stage s;
    open_gap(&s, 1);
    for (uint64_t seq = 1; seq <= 300; seq++) {
        stage_wait(&s, SEC);
        stage_push(&s, 0, "b", seq);
    }
    CHECK_THAT(!strstr(stage_took(&s), "a2"), "given up while the partition is being read");
    stage_close(&s);
}

TEST(core_stalled, only_reading_time_counts) {
    struct stage s;
    open_gap(&s, 1);
    stage_wait(&s, 500 * MS);
    stage_wait(&s, 59 * SEC);
    unsalt_core_reading(s.core, false, s.now);
    stage_wait(&s, 3600 * SEC); /* the application has control */
    CHECK_STR(stage_took(&s), "");
    unsalt_core_reading(s.core, true, s.now);
    stage_wait(&s, SEC / 2);
    CHECK_STR(stage_took(&s), "");
    for (int i = 0; i < 10; i++)
        stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_stalled, a_paused_partition_never_stalls) {
    struct stage s;
    open_gap(&s, 2);
    unsalt_core_pause(s.core, 1, true, s.now);
    for (int i = 0; i < 40; i++) {
        stage_wait(&s, 10 * SEC);
        unsalt_core_horizon(s.core, 0, s.now, s.now);
    }
    CHECK_STR(stage_took(&s), "");
    unsalt_core_pause(s.core, 1, false, s.now);
    for (int i = 0; i < 9; i++)
        stage_wait(&s, 10 * SEC);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:stalled");
    stage_close(&s);
}

/* One broker that dies leads several partitions: their silences run side by side. */
TEST(core_stalled, several_dead_partitions_cost_no_more_than_one) {
    struct stage s;
    open_gap(&s, 4);
    for (int i = 0; i < 62; i++)
        stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_stalled, the_longest_wait_of_one_gap_does_not_end_that_of_another) {
    struct stage s;
    stage_init(&s);
    s.params.gap_wait_max_ns = 10 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, SEC);
    stage_wait(&s, 8 * SEC);
    stage_push(&s, 0, "b", 2);
    stage_wait(&s, 600 * MS); /* both are due, and the partition is being read */
    stage_wait(&s, 400 * MS);
    CHECK_STR(stage_took(&s), "a2!");
    stage_wait(&s, 8 * SEC);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "b2!");
    stage_close(&s);
}

TEST(core_stalled, a_partition_that_is_read_past_the_due_time_is_not_waited_for) {
    struct stage s;
    open_gap(&s, 2);
    s.now += SEC;
    stage_horizon(&s, 0, 0); /* this one has shown all it had; the other one is dead */
    for (int i = 0; i < 61; i++)
        stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_STR(stage_said(&s), "gap:a1-1:stalled");
    stage_close(&s);
}

TEST(core_stalled, one_dead_leader_does_not_condemn_what_another_still_owes) {
    struct stage s;
    open_gap(&s, 2);
    for (uint64_t seq = 1; seq <= 200; seq++) { /* partition 1 is dead, partition 0 has a backlog */
        stage_wait(&s, SEC);
        stage_push(&s, 0, "b", seq);
    }
    CHECK_THAT(!strstr(stage_said(&s), "gap:a"), "given up although partition 0 may hold the number");
    stage_close(&s);
}

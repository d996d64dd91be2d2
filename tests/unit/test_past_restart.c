/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): stopped and started, joined, revoked, and the same id elsewhere. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/* One life of a core, and what it said and gave out. */
static void live(char *text, size_t size) {
    struct stage s;
    stage_default(&s, 2);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 1, "a", 1);
    stage_push(&s, 1, "b", 3);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "a", 4); /* held at the end */
    snprintf(text, size, "%s", stage_took(&s));
    stage_close(&s);
}

/* apache/camel#13164 (CAMEL-20435): a resequencer could not be started again once it had been stopped. */
TEST(past_restart, a_thousand_lives_are_alike) {
    char text[256];
    for (int i = 0; i < 1000; i++) {
        live(text, sizeof(text));
        CHECK_STR(text, "a1 a2 b3! late:b1");
    }
}

/* The same within one life: all partitions go and come again, and what was not acknowledged comes again. */
TEST(past_restart, a_thousand_assignments_of_one_core_are_alike) {
    struct stage s;
    size_t bytes = 0;
    stage_init(&s);
    stage_open(&s);
    for (int i = 0; i < 1000; i++) {
        stage_parts(&s, 0, 2, false, 0, 0);
        stage_push(&s, 0, "a", 2);
        stage_push(&s, 1, "a", 1);
        stage_push(&s, 1, "a", 4);
        CHECK_STR(stage_took(&s), "a1 a2");
        for (uint32_t part = 0; part < 2; part++)
            CHECK_I64(unsalt_core_revoke(s.core, part, s.now), UNSALT_CORE_OK);
        stage_pull(&s, SIZE_MAX);
        CHECK_STR(stage_took(&s), "revoked:a4");
        CHECK_U64(stage_counters(&s).sessions, 0);
        bytes = i == 10 ? s.mem.bytes : bytes;
        CHECK_THAT(i < 10 || s.mem.bytes == bytes, "%zu bytes in round %d, not %zu", s.mem.bytes, i, bytes);
    }
    stage_close(&s);
}

/* confluentinc/parallel-consumer#184: a key that was in two topics was never processed. Topics are sets here. */
TEST(past_restart, the_same_id_in_two_topics_goes_on_in_both) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 1, 1, false, 0, 0);
    stage_parts(&s, 2, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3); /* waits in the first */
    for (uint64_t seq = 1; seq <= 5; seq++)
        stage_push(&s, 1, "a", seq);
    CHECK_STR(stage_took(&s), "a1 a1 a2 a3 a4 a5");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a3!");
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 1, "a", 2);
    CHECK_STR(stage_took(&s), "late:a2 duplicate:a2");
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_push(&s, 1, "a", 6);
    CHECK_STR(stage_took(&s), "a6");
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_close(&s);
}

/*
 * confluentinc/parallel-consumer#894: an idle partition that was revoked and assigned often got a wrong offset
 * committed, which was out of range then. What may be committed of an idle partition never changes.
 */
TEST(past_restart, an_idle_partition_keeps_its_offset_over_200_assignments) {
    static const int64_t starts[] = {0, 1, 42, INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        struct stage s;
        stage_init(&s);
        stage_open(&s);
        for (int round = 0; round < 200; round++) {
            uint32_t part = stage_assign(&s, 0, 1, -1, starts[i], 0);
            CHECK_I64(unsalt_core_position(s.core, part), starts[i]);
            if (round % 3)
                unsalt_core_eof(s.core, part, starts[i], s.now);
            stage_wait(&s, SEC);
            CHECK_I64(unsalt_core_position(s.core, part), starts[i]);
            CHECK_I64(unsalt_core_revoke(s.core, part, s.now), UNSALT_CORE_OK);
            CHECK_I64(unsalt_core_position(s.core, part), -1);
        }
        stage_close(&s);
    }
}

/*
 * confluentinc/parallel-consumer#409, confluentinc/parallel-consumer#329: the committed offset had been removed by
 * retention, or stood beside a transaction's marker; a bitset of negative length, and nothing moved any more.
 */
TEST(past_restart, a_committed_offset_that_retention_took) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    s.ack = true;
    stage_assign(&s, 0, 1, -1, 100, 250);
    CHECK_I64(unsalt_core_position(s.core, 0), 100);
    s.next[0] = 250;
    stage_push(&s, 0, "a", 40);
    stage_push(&s, 0, "a", 41);
    CHECK_STR(stage_took(&s), "a40 a41");
    CHECK_STR(stage_said(&s), "start:a"); /* nothing tells how many were deleted */
    CHECK_I64(unsalt_core_position(s.core, 0), 252);
    stage_close(&s);
}

/* What another lane shows to be missing was deleted unread: an alarm, once, and never `resumed`. */
TEST(past_restart, what_retention_took_from_one_lane_is_an_alarm) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    s.ack = true;
    stage_assign(&s, 0, 2, 0, 100, 250);
    stage_assign(&s, 0, 2, 1, 100, 0);
    s.in.lanes = 2;
    s.next[0] = 250;
    stage_push_lane(&s, 1, "a", 41);
    stage_push_lane(&s, 1, "a", 43);
    stage_push_lane(&s, 1, "a", 45);
    stage_push_lane(&s, 0, "a", 44);
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a41 a43! a44 a45");
    CHECK_STR(stage_said(&s), "start:a gap:a42-42:timeout");
    CHECK_I64(unsalt_core_position(s.core, 0), 251);
    CHECK_I64(unsalt_core_position(s.core, 1), 103);
    stage_close(&s);
}

TEST(past_restart, a_committed_offset_beside_control_records) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    s.ack = true;
    stage_assign(&s, 0, 1, -1, 99, 0); /* the marker of a transaction stands at 99 */
    unsalt_core_eof(s.core, 0, 100, s.now);
    CHECK_I64(unsalt_core_position(s.core, 0), 100);
    s.next[0] = 100;
    stage_push(&s, 0, "a", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 101);
    unsalt_core_eof(s.core, 0, 102, s.now); /* and one behind it */
    CHECK_I64(unsalt_core_position(s.core, 0), 102);
    unsalt_core_eof(s.core, 0, 102, s.now);
    unsalt_core_eof(s.core, 0, 98, s.now); /* never back */
    CHECK_I64(unsalt_core_position(s.core, 0), 102);
    stage_close(&s);
}

/*
 * A producer that died between stamping and sending: with a higher epoch its successor begins anew; one that
 * remembers its counter goes on above the number that never left. One that forgot it and says no epoch goes back.
 */
TEST(past_restart, a_producer_that_died_between_stamp_and_send) {
    struct stage s;
    stage_default(&s, 1);
    s.in.epoch = 1;
    s.in.timestamp = 1;
    for (uint64_t seq = 1; seq <= 3; seq++)
        stage_push(&s, 0, "a", seq);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a1");
    CHECK_STR(stage_said(&s), "epoch:a:2"); /* 4 never left: nobody misses it */
    stage_push(&s, 0, "a", 3); /* remembered: 2 never left */
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:timeout");
    stage_close(&s);
}

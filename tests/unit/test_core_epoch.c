/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: a higher epoch takes over when every partition has shown it; a lower one is stale. */
#include <support/check.h>
#include <support/stage.h>

static void push(struct stage *s, uint32_t part, uint64_t epoch, uint64_t seq) {
    s->in.epoch = epoch;
    stage_push(s, part, "a", seq);
}

TEST(core_epoch, one_partition_has_shown_it_at_once) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, 1, 1);
    push(&s, 0, 1, 2);
    push(&s, 0, 2, 1);
    push(&s, 0, 2, 2);
    CHECK_STR(stage_took(&s), "a1 a2 a1 a2");
    CHECK_STR(stage_said(&s), "epoch:a:2");
    CHECK_U64(s.event.first, 3);
    CHECK_U64(s.event.last, 1);
    CHECK_U64(stage_counters(&s).epochs, 1);
    stage_close(&s);
}

TEST(core_epoch, waits_until_every_partition_has_shown_it) {
    struct stage s;
    stage_default(&s, 3);
    push(&s, 0, 1, 1);
    push(&s, 0, 2, 1);
    push(&s, 1, 1, 2);
    push(&s, 1, 2, 2);
    CHECK_STR(stage_took(&s), "a1 a2");
    push(&s, 2, 1, 3);
    CHECK_STR(stage_took(&s), "a3");
    push(&s, 2, 2, 3);
    CHECK_STR(stage_took(&s), "a1 a2 a3");
    CHECK_STR(stage_said(&s), "epoch:a:2");
    stage_close(&s);
}

TEST(core_epoch, or_was_read_past_its_first_sight) {
    struct stage s;
    stage_default(&s, 3);
    push(&s, 0, 1, 1);
    uint64_t sight = s.now;
    push(&s, 0, 2, 1);
    s.now += SEC;
    unsalt_core_horizon(s.core, 1, s.now, s.now);
    unsalt_core_horizon(s.core, 2, sight - 1, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a1");
    unsalt_core_horizon(s.core, 2, sight, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(stage_said(&s), "epoch:a:2");
    stage_close(&s);
}

TEST(core_epoch, the_rest_of_the_old_one_comes_out_with_its_gaps) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, 1, 1);
    push(&s, 0, 1, 3);
    push(&s, 0, 1, 6);
    push(&s, 0, 2, 2);
    CHECK_STR(stage_took(&s), "a1 a3! a6!");
    CHECK_STR(stage_said(&s), "gap:a2-2:epoch gap:a4-5:epoch epoch:a:2");
    push(&s, 0, 2, 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_EPOCH], 2);
    stage_close(&s);
}

TEST(core_epoch, the_new_one_begins_at_the_first_number_and_may_have_a_gap_there) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, 1, 1);
    push(&s, 0, 2, 3);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_STR(stage_said(&s), "epoch:a:2");
    stage_wait(&s, 500 * MS);
    stage_horizon(&s, 0, 0);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK_STR(stage_said(&s), "gap:a1-2:timeout");
    stage_close(&s);
}

TEST(core_epoch, copies_within_the_waiting_epoch_are_dropped) {
    struct stage s;
    stage_default(&s, 2);
    push(&s, 0, 1, 1);
    push(&s, 0, 2, 1);
    push(&s, 0, 2, 1);
    CHECK_STR(stage_took(&s), "a1 duplicate:a1");
    push(&s, 1, 2, 2);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

TEST(core_epoch, numbers_of_the_old_one_are_no_copies_in_the_new) {
    struct stage s;
    stage_default(&s, 1);
    for (uint64_t epoch = 1; epoch <= 50; epoch++)
        for (uint64_t seq = 1; seq <= 3; seq++)
            push(&s, 0, epoch, seq);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 150);
    CHECK_U64(stage_counters(&s).epochs, 49);
    stage_close(&s);
}

TEST(core_epoch, a_lower_one_is_stale) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, 5, 1);
    push(&s, 0, 4, 9);
    push(&s, 0, 0, 2);
    push(&s, 0, 5, 2);
    CHECK_STR(stage_took(&s), "a1 stale:a9 stale:a2 a2");
    CHECK_STR(stage_said(&s), "stale:a stale:a");
    stage_close(&s);
}

TEST(core_epoch, stale_records_follow_the_policy) {
    struct stage s;
    stage_init(&s);
    s.params.late = UNSALT_LATE_DROP;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    push(&s, 0, 5, 1);
    push(&s, 0, 4, 9);
    CHECK_STR(stage_took(&s), "a1 dropped:a9");
    CHECK_STR(stage_said(&s), "stale:a");
    stage_close(&s);
}

TEST(core_epoch, a_row_of_lower_ones_is_a_producer_that_went_back) {
    struct stage s;
    stage_default(&s, 1);
    s.in.timestamp = 1000;
    push(&s, 0, 5, 1);
    for (uint64_t seq = 1; seq <= 7; seq++) {
        s.in.timestamp++;
        push(&s, 0, 3, seq);
    }
    CHECK_U64(stage_counters(&s).restarts, 1);
    CHECK(strstr(stage_said(&s), "restart:a"));
    stage_took(&s);
    push(&s, 0, 3, 8);
    CHECK_STR(stage_took(&s), "a8"); /* not stale for ever */
    stage_close(&s);
}

/* A slow lane shows the tail of an earlier run: its records are older than what was accepted, however many they are. */
TEST(core_epoch, a_row_of_older_ones_is_the_tail_of_an_earlier_run) {
    struct stage s;
    stage_default(&s, 1);
    s.in.timestamp = 1000;
    push(&s, 0, 5, 1);
    s.in.timestamp = 900;
    for (uint64_t seq = 1; seq <= 20; seq++)
        push(&s, 0, 3, seq);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_took(&s);
    push(&s, 0, 5, 2);
    CHECK_STR(stage_took(&s), "a2");
    stage_close(&s);
}

TEST(core_epoch, one_of_the_higher_epoch_breaks_the_row) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, 5, 1);
    for (uint64_t n = 1; n <= 20; n++) {
        push(&s, 0, 3, n);
        push(&s, 0, 3, 100 + n);
        push(&s, 0, 5, 1 + n);
    }
    CHECK_U64(stage_counters(&s).restarts, 0);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_STALE], 40);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 21);
    stage_close(&s);
}

TEST(core_epoch, a_third_one_before_the_second_took_over_loses_nothing) {
    struct stage s;
    stage_default(&s, 2);
    push(&s, 0, 1, 1);
    push(&s, 0, 2, 1);
    push(&s, 0, 2, 2);
    push(&s, 0, 3, 1);
    push(&s, 1, 1, 2);
    push(&s, 1, 3, 2);
    stage_horizon(&s, 0, 1);
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 1);
    stage_flush(&s);
    unsalt_core_counters_t counters = stage_counters(&s);
    CHECK_U64(counters.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(counters.state[UNSALT_STATE_RELEASED] + counters.state[UNSALT_STATE_STALE] +
                  counters.state[UNSALT_STATE_LATE],
              6);
    stage_took(&s);
    push(&s, 0, 3, 3);
    CHECK_STR(stage_took(&s), "a3");
    stage_close(&s);
}

/* The current run is being drained when partitions go; what one of them shows later must not be released below that. */
TEST(core_epoch, a_run_that_ends_amid_a_revoke_does_not_go_back) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 100, 0);
    s.lazy = true;
    s.in.lanes = 3;
    s.in.lane = 2;
    for (uint64_t seq = 8; seq <= 17; seq += 3)
        push(&s, 2, 2, seq);
    s.in.lane = 0;
    for (uint64_t seq = 9; seq <= 21; seq += 3)
        push(&s, 0, 2, seq);
    s.in.lane = 1;
    push(&s, 1, 1, 43);
    s.in.lane = 0;
    push(&s, 0, 3, 42);
    for (uint32_t part = 1; part <= 3; part += 2) {
        stage_expire(&s);
        CHECK_I64(unsalt_core_revoke(s.core, part, s.now), UNSALT_CORE_OK);
        stage_pull(&s, 100);
        stage_expire(&s);
    }
    s.in.lane = 2;
    push(&s, 2, 3, 20);
    stage_expire(&s);
    CHECK_U64(stage_assign(&s, 0, 4, 1, 100, 0), 1);
    stage_expire(&s);
    stage_took(&s);
    stage_pull(&s, 8);
    CHECK_THAT(!strstr(stage_said(&s), "gap:a0-"), "number 0 does not exist");
    bool released = s.took[0] != '\0';
    stage_took(&s);
    s.in.lane = 1;
    push(&s, 1, 2, 1);
    stage_pull(&s, 1);
    stage_flush(&s);
    stage_pull(&s, 1);
    CHECK_THAT(!released || strncmp(stage_took(&s), "a1", 2) != 0, "1 was released after higher numbers");
    s.lazy = false;
    stage_flush(&s);
    stage_close(&s);
}

TEST(core_epoch, the_greatest_epoch_is_one_like_any_other) {
    struct stage s;
    stage_default(&s, 1);
    push(&s, 0, UINT64_MAX - 1, 1);
    push(&s, 0, UINT64_MAX, 1);
    push(&s, 0, UINT64_MAX, 2);
    CHECK_STR(stage_took(&s), "a1 a1 a2");
    stage_close(&s);
}

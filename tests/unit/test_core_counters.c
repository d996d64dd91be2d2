/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger, the gauges, the queue of events, and the advice on what to read. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

TEST(core_counters, every_record_is_in_one_state) {
    struct stage s;
    stage_init(&s);
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_wait(&s, 500 * MS);
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "a", 5);
    s.in.epoch = 0;
    stage_push(&s, 0, "a", 5);
    s.in.kind = UNSALT_KIND_CONTROL;
    stage_push(&s, 0, "a", 0);
    s.in.kind = UNSALT_KIND_UNSEQUENCED;
    stage_push(&s, 0, "a", 0);
    unsalt_core_counters_t c = stage_counters(&s);
    CHECK_U64(c.received, 8);
    CHECK_U64(c.state[UNSALT_STATE_HELD], 1);
    CHECK_U64(c.state[UNSALT_STATE_READY], 0);
    CHECK_U64(c.state[UNSALT_STATE_RELEASED], 2);
    CHECK_U64(c.state[UNSALT_STATE_LATE], 1);
    CHECK_U64(c.state[UNSALT_STATE_STALE], 1);
    CHECK_U64(c.state[UNSALT_STATE_DUPLICATE], 1);
    CHECK_U64(c.state[UNSALT_STATE_CONTROL], 1);
    CHECK_U64(c.state[UNSALT_STATE_UNSEQUENCED], 1);
    CHECK_U64(c.held_bytes, 100);
    CHECK_U64(c.gaps_open, 1);
    CHECK_U64(c.sessions, 1);
    CHECK_U64(c.sessions_created, 1);
    CHECK_U64(c.partitions, 1);
    CHECK_U64(c.unacked, 5);
    stage_close(&s);
}

TEST(core_counters, no_event_is_lost_when_nobody_reads_them) {
    struct stage s;
    stage_default(&s, 1);
    unsalt_core_in_t in = {.session = "a", .session_len = 1, .seq = 1, .bytes = 1, .since = UNSALT_NO_SEQ};
    unsalt_core_out_t out;
    size_t n_out, taken = 0, said = 0, n;
    int status = UNSALT_CORE_OK;
    for (int i = 0; i < 2000 && status == UNSALT_CORE_OK; i++) {
        in.offset = i;
        taken += unsalt_core_push(s.core, &in, 1, s.now, &out, &n_out, &status);
    }
    CHECK_I64(status, UNSALT_CORE_PULL);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], taken - 1);
    unsalt_core_event_t events[100];
    while ((n = unsalt_core_events(s.core, events, 100)) > 0)
        said += n;
    CHECK_U64(said, taken - 1);
    CHECK_U64(unsalt_core_push(s.core, &in, 1, s.now, &out, &n_out, &status), 1);
    stage_close(&s);
}

TEST(core_counters, expire_stops_before_an_event_is_lost) {
    struct stage s;
    stage_init(&s);
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.lazy = true;
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        stage_push(&s, 0, name, 2);
    }
    s.now += SEC;
    size_t said = 0, n;
    unsalt_core_event_t events[100];
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 20; j++)
            unsalt_core_expire(s.core, s.now);
        while ((n = unsalt_core_events(s.core, events, 100)) > 0)
            said += n;
    }
    CHECK_U64(said, 1000);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], 1000);
    stage_close(&s);
}

TEST(core_counters, the_id_of_an_event_stays_readable) {
    struct stage s;
    stage_init(&s);
    s.params.session_ttl_ns = SEC;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    char id[] = "borrowed";
    unsalt_core_in_t in = {.session = id, .session_len = 8, .seq = 1, .since = UNSALT_NO_SEQ};
    unsalt_core_out_t out;
    size_t n_out;
    int status;
    for (; in.offset < 2; in.offset++)
        CHECK_U64(unsalt_core_push(s.core, &in, 1, s.now, &out, &n_out, &status), 1);
    memset(id, 'x', sizeof(id));
    s.now += 10 * SEC;
    for (int i = 0; i < 10; i++)
        unsalt_core_expire(s.core, s.now); /* the session is gone, its event is not */
    CHECK_U64(stage_counters(&s).sessions, 0);
    unsalt_core_event_t event;
    CHECK_U64(unsalt_core_events(s.core, &event, 1), 1);
    CHECK_I64(event.type, UNSALT_CORE_EV_DUPLICATE);
    CHECK_BYTES(event.session, event.session_len, "borrowed", 8);
    stage_close(&s);
}

TEST(core_counters, everything_may_be_read_below_half_a_budget) {
    struct stage s;
    unsalt_read_t advice[4];
    stage_init(&s);
    s.params.budget_records = 20;
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.lanes = 4;
    for (uint64_t seq = 4; seq <= 36; seq += 4)
        stage_push_lane(&s, 0, "a", seq);
    unsalt_core_read_advice(s.core, advice, 4);
    for (int i = 0; i < 4; i++)
        CHECK_THAT(advice[i] != UNSALT_READ_AHEAD, "partition %d is left unread at 9 of 20", i);
    stage_close(&s);
}

TEST(core_counters, from_half_a_budget_on_what_is_ahead_is_left_unread) {
    struct stage s;
    unsalt_read_t advice[4];
    stage_init(&s);
    s.params.budget_records = 20;
    stage_open(&s);
    stage_parts(&s, 0, 4, true, 0, 0);
    s.in.lanes = 4;
    for (uint64_t seq = 4; seq <= 60; seq += 4)
        stage_push_lane(&s, 0, "a", seq);
    unsalt_core_read_advice(s.core, advice, 4);
    CHECK_I64(advice[1], UNSALT_READ_OWED); /* number 1 */
    CHECK_I64(advice[0], UNSALT_READ_AHEAD);
    stage_push_lane(&s, 1, "a", 1);
    stage_push_lane(&s, 2, "a", 2);
    unsalt_core_read_advice(s.core, advice, 4);
    CHECK_I64(advice[3], UNSALT_READ_OWED);
    CHECK_I64(advice[0], UNSALT_READ_AHEAD);
    stage_close(&s);
}

TEST(core_counters, some_partition_may_always_be_read) {
    struct stage s;
    unsalt_read_t advice[3];
    stage_init(&s);
    s.params.budget_records = 4;
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 0, 0);
    for (uint64_t seq = 2; seq <= 5; seq++) {
        stage_push(&s, 0, "a", seq);
        unsalt_core_read_advice(s.core, advice, 3);
        CHECK(advice[0] != UNSALT_READ_AHEAD || advice[1] != UNSALT_READ_AHEAD || advice[2] != UNSALT_READ_AHEAD);
    }
    stage_close(&s);
}

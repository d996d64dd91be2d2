/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): copies, late records, restarts. */
#include <support/check.h>
#include <support/stage.h>

static void give_up(struct stage *s) {
    stage_wait(s, 500 * MS);
    stage_horizon(s, 0, 0);
}

static uint64_t cursor(const struct stage *s) {
    unsalt_core_session_info_t info = {0};
    CHECK(unsalt_core_session_info(s->core, 0, "a", 1, &info) == UNSALT_CORE_OK);
    return info.cursor;
}

/*
 * apache/camel, its stream resequencer as its source reads: a copy of what was delivered becomes the head of the
 * queue, everybody waits the timeout for it, and the next expected number goes back. Neither may be seen here.
 */
TEST(past_duplicates, a_copy_delays_nobody_and_moves_no_cursor) {
    struct stage s;
    stage_default(&s, 1);
    for (uint64_t seq = 1; seq <= 5; seq++)
        stage_push(&s, 0, "a", seq);
    stage_took(&s);
    for (uint64_t copy = 1; copy <= 5; copy++) {
        stage_push(&s, 0, "a", copy);
        CHECK_U64(cursor(&s), 5 + copy);
        stage_push(&s, 0, "a", 5 + copy);
        CHECK_U64(s.last.waited_ns, 0);
    }
    stage_took(&s);
    stage_push(&s, 0, "a", 12); /* 11 is missing */
    uint64_t deadline = unsalt_core_deadline(s.core);
    s.now += 100 * MS;
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 12);
    stage_push(&s, 0, "b", 1);
    CHECK_STR(stage_took(&s), "duplicate:a3 duplicate:a12 b1");
    CHECK_U64(unsalt_core_deadline(s.core), deadline);
    CHECK_U64(cursor(&s), 11);
    stage_push(&s, 0, "a", 11);
    CHECK_STR(stage_took(&s), "a11 a12");
    stage_close(&s);
}

/* The same with late records: they pass at once, while a gap is open and while none is. */
TEST(past_duplicates, a_late_record_delays_nobody_and_moves_no_cursor) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 4);
    give_up(&s);
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "a4! late:a2");
    CHECK_U64(cursor(&s), 5);
    stage_push(&s, 0, "a", 6);
    uint64_t deadline = unsalt_core_deadline(s.core);
    s.now += MS;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "late:a1");
    CHECK_U64(s.last.waited_ns, 0);
    CHECK_U64(cursor(&s), 5);
    CHECK_U64(unsalt_core_deadline(s.core), deadline);
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a5 a6");
    stage_close(&s);
}

static void push_first(struct stage *s, uint64_t epoch, uint64_t seq, uint16_t flags) {
    s->in.epoch = epoch;
    s->in.flags = flags;
    stage_push(s, 0, "a", seq);
    s->in.flags = 0;
}

/* apache/beam#30735: a second copy of the first event made everything begin anew. The flag alone begins nothing. */
TEST(past_duplicates, a_copy_of_the_first_record_begins_nothing) {
    static const uint64_t epochs[] = {0, 7};
    for (int i = 0; i < 2; i++) {
        struct stage s;
        uint64_t epoch = epochs[i];
        stage_default(&s, 1);
        push_first(&s, epoch, 1, UNSALT_F_FIRST);
        push_first(&s, epoch, 1, UNSALT_F_FIRST);
        push_first(&s, epoch, 2, 0);
        push_first(&s, epoch, 4, 0);
        push_first(&s, epoch, 1, UNSALT_F_FIRST); /* while a gap is open */
        push_first(&s, epoch, 3, 0);
        push_first(&s, epoch, 4, UNSALT_F_FIRST); /* on a record that isn't the first */
        CHECK_STR(stage_took(&s), "a1 duplicate:a1 a2 duplicate:a1 a3 a4 duplicate:a4");
        CHECK_U64(cursor(&s), 5);
        CHECK_U64(stage_counters(&s).restarts + stage_counters(&s).epochs, 0);
        CHECK_U64(stage_counters(&s).sessions_created, 1);
        stage_close(&s);
    }
}

/* Nor does one of a run that is over, or that flag on a late record. */
TEST(past_duplicates, the_first_record_of_an_old_run_begins_nothing) {
    struct stage s;
    stage_default(&s, 1);
    push_first(&s, 5, 1, UNSALT_F_FIRST);
    push_first(&s, 6, 1, UNSALT_F_FIRST);
    push_first(&s, 6, 2, 0);
    push_first(&s, 5, 1, UNSALT_F_FIRST);
    push_first(&s, 6, 3, 0);
    CHECK_STR(stage_took(&s), "a1 a1 a2 stale:a1 a3");
    push_first(&s, 7, 2, 0);
    give_up(&s);
    push_first(&s, 7, 1, UNSALT_F_FIRST);
    push_first(&s, 7, 3, 0);
    CHECK_STR(stage_took(&s), "a2! late:a1 a3");
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/* pjsip/pjproject#2215: a restart by less than 100 looked like late packets and was thrown away. */
static void small_restart(uint64_t back_to, uint64_t epoch, int64_t stamp) {
    struct stage s;
    stage_default(&s, 1);
    s.in.epoch = epoch ? 1 : 0;
    for (uint64_t seq = 1; seq <= 100; seq++) {
        s.in.timestamp = (int64_t)seq;
        stage_push(&s, 0, "a", seq);
        s.took[0] = '\0';
    }
    s.in.epoch = epoch;
    for (uint64_t seq = back_to; seq <= 100; seq++) {
        s.in.timestamp = stamp < 0 ? stamp : stamp + (int64_t)seq;
        stage_push(&s, 0, "a", seq);
    }
    stage_wait(&s, SEC);
    stage_horizon(&s, 0, 0);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 100 + 101 - back_to);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_U64(stage_counters(&s).restarts, epoch ? 0 : 1);
    CHECK_U64(stage_counters(&s).epochs, epoch ? 1 : 0);
    stage_push(&s, 0, "a", 101);
    CHECK_U64(s.last.seq, 101);
    stage_close(&s);
}

TEST(past_duplicates, a_restart_by_a_little_is_a_restart) {
    static const uint64_t back_to[] = {1, 2, 40, 96};
    for (size_t i = 0; i < sizeof(back_to) / sizeof(back_to[0]); i++) {
        small_restart(back_to[i], 2, 1000);  /* an epoch tells at once */
        small_restart(back_to[i], 2, 0);     /* whatever the records' time */
        small_restart(back_to[i], 0, 1000);  /* without one: newer than all before */
        small_restart(back_to[i], 0, -1);    /* nothing is known: five in a row */
    }
}

/*
 * Without an epoch, and with the creation times of their originals, they are copies: sent again, not started again.
 */
TEST(past_duplicates, the_same_records_with_their_old_times_are_copies) {
    struct stage s;
    stage_default(&s, 1);
    for (int round = 0; round < 2; round++)
        for (uint64_t seq = 1; seq <= 100; seq++) {
            s.in.timestamp = (int64_t)seq;
            stage_push(&s, 0, "a", seq);
            s.took[0] = s.said[0] = '\0';
        }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 100);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/*
 * DPDK/dpdk, rte_reorder as its source reads: a copy within the window takes the place of the first one, which leaks,
 * and success is reported. Every copy comes back once here, whoever holds the number, also when the budget is full.
 */
TEST(past_duplicates, a_copy_of_what_is_held_displaces_nothing) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 8;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    for (uint64_t seq = 2; seq <= 9; seq++)
        stage_push(&s, 0, "a", seq);
    for (uint64_t seq = 2; seq <= 9; seq++) {
        s.in.bytes = 1 << 20;
        CHECK(stage_push(&s, (uint32_t)(seq % 2), "a", seq));
        CHECK_U64(s.last.state, UNSALT_STATE_DUPLICATE);
    }
    CHECK_U64(stage_counters(&s).held_bytes, 800);
    stage_took(&s);
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5 a6 a7 a8 a9");
    CHECK_U64(s.last.part, 0); /* the first copy won */
    stage_close(&s);
}

/* DPDK/dpdk, rte_reorder again: too late and too far ahead are one error there. Here what they are can be told. */
TEST(past_duplicates, late_copied_stale_and_refused_are_told_apart) {
    struct stage s;
    stage_init(&s);
    s.params.session_budget_records = 1;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 2);
    give_up(&s);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 3);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", UINT64_C(1) << 40); /* far ahead is no error: one gap more */
    CHECK(!stage_push(&s, 0, "a", UINT64_C(1) << 41));
    CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
    s.next[0] = 0;
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a2! late:a1 duplicate:a2 stale:a3 fenced:a3");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 1);
    stage_close(&s);
}

/*
 * Two producers that stamp one session: each number comes twice, with two payloads. The library can't know which is
 * the right one: the first wins, each second one is told of, and with epochs of their own the higher one wins.
 */
TEST(past_duplicates, two_producers_of_one_session_are_noticed) {
    for (uint64_t apart = 0; apart < 2; apart++) {
        struct stage s;
        stage_default(&s, 2);
        for (uint64_t seq = 1; seq <= 50; seq++)
            for (uint32_t who = 0; who < 2; who++) {
                s.in.epoch = 1 + who * apart;
                stage_push(&s, who, "a", seq);
                s.took[0] = s.said[0] = '\0';
            }
        stage_wait(&s, SEC);
        stage_horizon(&s, 0, 1);
        unsalt_core_counters_t c = stage_counters(&s);
        CHECK_U64(c.received, 100);
        CHECK_U64(c.state[UNSALT_STATE_HELD], 0);
        if (apart)
            CHECK_U64(c.state[UNSALT_STATE_RELEASED] + c.state[UNSALT_STATE_STALE], 100);
        else
            CHECK_U64(c.state[UNSALT_STATE_DUPLICATE], 50);
        CHECK_U64(c.epochs, apart);
        stage_close(&s);
    }
}

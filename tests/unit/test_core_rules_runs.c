/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of runs and restarts that could once be taken out without any test noticing; tests/mutants/ takes each of them
 * out again.
 */
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

/* A producer that sends again may stamp the copy anew; the flag says what it is. */
TEST(core_rules_runs, a_resend_is_no_sign_of_a_restart) {
    struct stage s;
    stage_default(&s, 1);
    run(&s, 1, 10, 1000);
    stage_took(&s);
    s.in.flags = UNSALT_F_RESEND;
    run(&s, 1, 6, 2000);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 6);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/* A producer that counts epochs announces its restart by a higher one. */
TEST(core_rules_runs, with_epochs_no_restart_is_guessed) {
    struct stage s;
    stage_default(&s, 1);
    s.in.epoch = 7;
    run(&s, 1, 10, 1000);
    stage_took(&s);
    run(&s, 1, 6, 2000);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 6);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/* The old run's tail, from a lane that is read later, must not take the place of the new run's numbers. */
TEST(core_rules_runs, the_tail_of_the_run_before_a_restart_is_stale) {
    struct stage s;
    stage_default(&s, 2);
    run(&s, 1, 10, 1000);
    run(&s, 1, 5, 2000);
    CHECK_U64(stage_counters(&s).restarts, 1);
    stage_took(&s);
    s.in.timestamp = 1009;
    stage_push(&s, 1, "a", 8);
    CHECK_STR(stage_took(&s), "stale:a8");
    run(&s, 6, 9, 2000);
    CHECK_STR(stage_took(&s), "a6 a7 a8 a9");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
    stage_close(&s);
}

static void push_epoch(struct stage *s, uint64_t epoch, uint64_t seq, const char *took) {
    s->in.epoch = epoch;
    stage_push(s, 0, "a", seq);
    CHECK_STR(stage_took(s), took);
}

/* restart_k stale records are a restart only in a row: stragglers of the old run are not. */
TEST(core_rules_runs, the_current_run_breaks_a_row_of_stale_records) {
    struct stage s;
    stage_default(&s, 1);
    push_epoch(&s, 2, 1, "a1");
    for (uint64_t i = 0; i < 6; i++) {
        for (uint64_t k = 0; k + 1 < s.params.restart_k; k++)
            push_epoch(&s, 1, 1, "stale:a1");
        push_epoch(&s, 2, 2 + i, (const char *[]){"a2", "a3", "a4", "a5", "a6", "a7"}[i]);
    }
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

TEST(core_rules_runs, a_later_run_breaks_it_too) {
    struct stage s;
    stage_default(&s, 2); /* partition 1 shows nothing, so the later run waits */
    push_epoch(&s, 2, 1, "a1");
    for (uint64_t k = 0; k + 1 < s.params.restart_k; k++)
        push_epoch(&s, 1, 1, "stale:a1");
    push_epoch(&s, 3, 1, "");
    for (uint64_t k = 0; k + 1 < s.params.restart_k; k++)
        push_epoch(&s, 1, 1, "stale:a1");
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

/*
 * The later run's records wait long for the old run's end. Its own gaps are timed from when it takes over, or each
 * would be given up the moment it is first looked at.
 */
TEST(core_rules_runs, a_gap_of_a_run_is_timed_from_when_it_took_over) {
    struct stage s;
    stage_init(&s);
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    push_epoch(&s, 1, 1, "a1");
    push_epoch(&s, 2, 2, "");
    stage_wait(&s, 10 * SEC);
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_said(&s), "epoch:a:2");
    stage_wait(&s, 499 * MS);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, MS);
    CHECK_STR(stage_said(&s), "gap:a1-1:timeout");
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

/* Suspects are held like anything else. */
TEST(core_rules_runs, suspects_of_a_restart_need_room_too) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 4;
    s.params.restart_k = 100;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    run(&s, 1, 50, 1000);
    for (uint64_t seq = 1; seq <= 40; seq++) {
        s.in.timestamp = 2000 + (int64_t)seq;
        for (int i = 0; i < 10 && !stage_push(&s, 0, "a", seq); i++)
            CHECK_I64(s.status, UNSALT_CORE_PULL);
        CHECK_I64(s.status, UNSALT_CORE_OK);
        CHECK(stage_counters(&s).state[UNSALT_STATE_HELD] <= 4);
    }
    stage_close(&s);
}

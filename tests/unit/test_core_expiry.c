/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 4: idle sessions go, their cursors are remembered, and forgetting one makes its set careful. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

static void open_with(struct stage *s, uint64_t ttl, uint32_t sessions, uint32_t remembered) {
    stage_init(s);
    s->params.session_ttl_ns = ttl;
    s->params.sessions_max = sessions;
    s->params.remembered_max = remembered;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
}

TEST(core_expiry, an_idle_session_goes_and_its_cursor_stays) {
    struct stage s;
    open_with(&s, 10 * SEC, 1000, 1000);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    CHECK(unsalt_core_deadline(s.core) <= s.now + 20 * SEC);
    stage_wait(&s, 10 * SEC);
    stage_wait(&s, 10 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).sessions_expired, 1);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    stage_took(&s);
    stage_push(&s, 0, "a", 4);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a3 a4");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(core_expiry, a_session_that_holds_something_stays) {
    struct stage s;
    open_with(&s, SEC, 1000, 1000);
    stage_push(&s, 0, "a", 2);
    for (int i = 0; i < 20; i++)
        stage_wait(&s, SEC);
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

TEST(core_expiry, a_session_in_use_stays) {
    struct stage s;
    open_with(&s, 10 * SEC, 1000, 1000);
    for (uint64_t seq = 1; seq <= 100; seq++) {
        stage_push(&s, 0, "a", seq);
        stage_wait(&s, SEC);
    }
    CHECK_U64(stage_counters(&s).sessions_expired, 0);
    stage_close(&s);
}

TEST(core_expiry, never_is_never) {
    struct stage s;
    open_with(&s, UNSALT_NEVER, 1000, 1000);
    stage_push(&s, 0, "a", 1);
    CHECK_U64(unsalt_core_deadline(s.core), UNSALT_NEVER);
    stage_wait(&s, 1000000 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_close(&s);
}

TEST(core_expiry, the_epoch_is_remembered_too) {
    struct stage s;
    open_with(&s, SEC, 1000, 1000);
    s.in.epoch = 7;
    stage_push(&s, 0, "a", 1);
    stage_wait(&s, 5 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    s.in.epoch = 6;
    stage_push(&s, 0, "a", 1);
    s.in.epoch = 7;
    stage_push(&s, 0, "a", 2);
    s.in.epoch = 8;
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 stale:a1 a2 a1");
    stage_close(&s);
}

TEST(core_expiry, above_the_greatest_number_the_idlest_goes) {
    struct stage s;
    open_with(&s, UNSALT_NEVER, 2, 1000);
    stage_push(&s, 0, "a", 1);
    s.now += MS;
    stage_push(&s, 0, "b", 1);
    s.now += MS;
    stage_push(&s, 0, "a", 2);
    s.now += MS;
    stage_push(&s, 0, "c", 1); /* b is the idlest */
    stage_expire(&s);
    CHECK_U64(stage_counters(&s).sessions, 2);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    stage_push(&s, 0, "b", 2);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "a1 b1 a2 c1 b2 a3");
    stage_close(&s);
}

/* Those that hold something are bounded by the budgets; that they are too many must not keep anyone busy. */
TEST(core_expiry, sessions_that_hold_something_may_be_more) {
    struct stage s;
    open_with(&s, UNSALT_NEVER, 3, 1000);
    char name[16];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        s.now += MS;
        for (int tries = 0; !stage_push(&s, 0, name, 2); tries++)
            CHECK_THAT(tries < 10, "%s is refused for ever, status %d", name, s.status);
        stage_expire(&s);
    }
    stage_flush(&s);
    for (int i = 0; i < 30; i++) {
        stage_wait(&s, SEC);
        stage_push(&s, 0, "s19", (uint64_t)i + 3);
    }
    CHECK_THAT(stage_counters(&s).sessions <= 3, "%" PRIu64 " sessions", stage_counters(&s).sessions);
    stage_close(&s);
}

TEST(core_expiry, a_forgotten_cursor_makes_unknown_sessions_start_by_seen) {
    struct stage s;
    open_with(&s, SEC, 1000, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    stage_wait(&s, 5 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    CHECK(strstr(stage_said(&s), "forgotten:"));
    stage_took(&s);
    stage_push(&s, 0, "c", 5); /* one of the forgotten, for all that is known */
    CHECK_STR(stage_took(&s), "c5");
    stage_close(&s);
}

TEST(core_expiry, the_last_record_of_a_session_ends_it) {
    struct stage s;
    open_with(&s, UNSALT_NEVER, 1000, 1000);
    stage_push(&s, 0, "a", 1);
    s.in.flags = UNSALT_F_LAST;
    stage_push(&s, 0, "a", 3);
    CHECK_U64(stage_counters(&s).sessions, 1);
    s.in.flags = 0;
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "a1 a2 a3");
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).sessions_remembered, 1);
    stage_push(&s, 0, "a", 4); /* it lives again */
    CHECK_STR(stage_took(&s), "a4");
    stage_close(&s);
}

TEST(core_expiry, a_copy_from_before_counts_as_late) {
    struct stage s;
    open_with(&s, SEC, 1000, 1000);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 5 * SEC);
    stage_took(&s);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    CHECK_STR(stage_took(&s), "late:a1 a3");
    stage_close(&s);
}

/* The last number of all has no next one; the cursor behind it is remembered like any other, also by a refused push. */
TEST(core_expiry, the_last_number_of_all_is_remembered) {
    struct stage s;
    stage_init(&s);
    s.params.start = UNSALT_START_SEEN;
    s.params.session_ttl_ns = 1 * SEC;
    s.params.budget_records = 1;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "b", 3);
    stage_wait(&s, 3 * SEC);
    CHECK_U64(stage_counters(&s).sessions, 1);
    stage_took(&s);
    stage_said(&s);
    CHECK(!stage_push(&s, 0, "a", 5)); /* b's gap gives way first */
    CHECK(stage_push(&s, 0, "a", 5));
    stage_wait(&s, s.params.restart_quiet_ns);
    CHECK_STR(stage_said(&s), "budget: gap:b2-2:overflow restart:a5 start:a");
    CHECK_STR(stage_took(&s), "b3! a5");
    stage_close(&s);
}

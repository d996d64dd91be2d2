/* SPDX-License-Identifier: BSD-2-Clause */
/* The budget `window`: how far the newest record of a partition may be above the oldest that is not acknowledged. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/* A window of 100 in which the session "old" holds number 2, the first record of the partition. */
static void hold_one(struct stage *s, unsalt_budget_policy_t policy) {
    stage_init(s);
    s->params.budget_window = 100;
    s->params.budget_policy = policy;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    s->params.block_max_ns = 30 * SEC;
    stage_open(s);
    stage_parts(s, 0, 2, false, 0, 0);
    s->ack = true;
    CHECK(stage_push(s, 0, "old", 2));
    for (uint64_t seq = 1; seq < 100; seq++)
        CHECK(stage_push(s, 0, "healthy", seq));
    s->took[0] = '\0';
    stage_said(s);
    CHECK_I64(unsalt_core_position(s->core, 0), 0);
}

static uint64_t outcome(struct stage *s, unsalt_budget_outcome_t which) {
    return stage_counters(s).budget_outcome[UNSALT_BUDGET_WINDOW][which];
}

TEST(core_budget_window, the_gap_of_the_session_that_holds_the_oldest_gives_way) {
    struct stage s;
    hold_one(&s, UNSALT_BUDGET_SKIP_GAP);
    CHECK(!stage_push(&s, 0, "healthy", 100));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_said(&s), "budget: gap:old1-1:overflow");
    CHECK_STR(stage_took(&s), "old2!");
    CHECK(stage_push(&s, 0, "healthy", 100));
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_GAVE_WAY), 1);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_WINDOW], 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 101);
    stage_close(&s);
}

/* Turning the healthy away would not help: their offsets need a place all the same. */
TEST(core_budget_window, so_it_does_with_dead_letters) {
    struct stage s;
    hold_one(&s, UNSALT_BUDGET_DEAD_LETTER);
    CHECK(!stage_push(&s, 0, "healthy", 100));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_took(&s), "old2!");
    CHECK(stage_push(&s, 0, "healthy", 100));
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DEAD_LETTERED], 0);
    stage_close(&s);
}

TEST(core_budget_window, block_waits_first) {
    struct stage s;
    hold_one(&s, UNSALT_BUDGET_BLOCK);
    for (int i = 0; i < 3; i++) {
        CHECK(!stage_push(&s, 0, "healthy", 100));
        CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
    }
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_BLOCKED), 1); /* one record, however often it is tried */
    CHECK(stage_push(&s, 1, "elsewhere", 1)); /* the other partition has a window of its own */
    CHECK_THAT(unsalt_core_deadline(s.core) <= s.now + 30 * SEC, "nothing would ever wake the reader");
    stage_wait(&s, 30 * SEC);
    stage_took(&s);
    CHECK(!stage_push(&s, 0, "healthy", 100));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_took(&s), "old2!");
    CHECK(stage_push(&s, 0, "healthy", 100));
    stage_close(&s);
}

TEST(core_budget_window, fail_refuses_until_a_flush) {
    struct stage s;
    hold_one(&s, UNSALT_BUDGET_FAIL);
    CHECK(!stage_push(&s, 0, "healthy", 100));
    CHECK_I64(s.status, UNSALT_CORE_FULL);
    stage_wait(&s, 3600 * SEC);
    CHECK(!stage_push(&s, 0, "healthy", 100));
    CHECK_I64(s.status, UNSALT_CORE_FULL);
    CHECK_U64(outcome(&s, UNSALT_OUTCOME_FAILED), 1);
    stage_flush(&s);
    CHECK_STR(stage_took(&s), "old2!");
    CHECK(stage_push(&s, 0, "healthy", 100));
    stage_close(&s);
}

/* What was handed out and not acknowledged is the application's: nothing gives way for it. */
TEST(core_budget_window, an_acknowledgement_that_does_not_come_stops_reading) {
    for (int policy = UNSALT_BUDGET_SKIP_GAP; policy <= UNSALT_BUDGET_FAIL; policy++) {
        struct stage s;
        stage_init(&s);
        s.params.budget_window = 100;
        s.params.budget_policy = (unsalt_budget_policy_t)policy;
        s.params.block_max_ns = SEC;
        stage_open(&s);
        stage_parts(&s, 0, 1, false, 0, 0);
        CHECK(stage_push(&s, 0, "a", 1));
        unsalt_core_out_t first = s.last;
        s.ack = true;
        for (uint64_t seq = 2; seq <= 100; seq++)
            CHECK(stage_push(&s, 0, "a", seq));
        for (int i = 0; i < 5; i++) {
            CHECK(!stage_push(&s, 0, "a", 101));
            CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
            stage_wait(&s, 10 * SEC);
        }
        CHECK_STR(stage_said(&s), "budget:");
        CHECK_U64(outcome(&s, UNSALT_OUTCOME_BLOCKED), 1);
        CHECK_I64(unsalt_core_ack(s.core, 0, first.generation, first.ticket), UNSALT_CORE_OK);
        CHECK(stage_push(&s, 0, "a", 101));
        stage_close(&s);
    }
}

/* The very record that is waited for may come in a full window. */
TEST(core_budget_window, what_the_oldest_waits_for_is_let_in) {
    struct stage s;
    hold_one(&s, UNSALT_BUDGET_SKIP_GAP);
    CHECK(stage_push(&s, 0, "old", 1));
    CHECK_STR(stage_took(&s), "old1 old2");
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], 0);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_WINDOW], 0);
    for (uint64_t seq = 100; seq < 1000; seq++) {
        s.took[0] = '\0';
        CHECK(stage_push(&s, 0, "healthy", seq));
    }
    stage_close(&s);
}

/* The session has numbers of two partitions in one FIFO: the oldest of the full one stands behind the other's. */
TEST(core_budget_window, the_holder_is_found_behind_records_of_another_partition) {
    struct stage s;
    stage_init(&s);
    s.params.budget_window = 50;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    s.ack = true;
    s.in.lanes = 1;
    CHECK(stage_push(&s, 1, "old", 2));
    CHECK(stage_push(&s, 0, "old", 3));
    for (uint64_t seq = 1; seq < 50; seq++)
        CHECK(stage_push(&s, 0, "healthy", seq));
    s.took[0] = '\0';
    CHECK(!stage_push(&s, 0, "healthy", 50));
    CHECK_STR(stage_took(&s), "old2! old3");
    CHECK(stage_push(&s, 0, "healthy", 50));
    stage_close(&s);
}

/* Suspects of a restart, a later run, and a session whose start is unknown hold records too. */
TEST(core_budget_window, whatever_the_holder_waits_for_is_ended) {
    for (int way = 0; way < 3; way++) {
        struct stage s;
        stage_init(&s);
        s.params.budget_window = 50;
        s.params.gap_timeout_ns = UNSALT_NEVER;
        s.params.restart_quiet_ns = 3600 * SEC;
        s.params.start = way == 2 ? UNSALT_START_SEEN : UNSALT_START_FIRST;
        stage_open(&s);
        stage_parts(&s, 0, 2, false, way == 2 ? 100 : 0, 0);
        s.ack = true;
        s.in.timestamp = 1;
        for (uint64_t seq = 1; seq <= 3 && way < 2; seq++)
            CHECK(stage_push(&s, 0, "old", seq));
        s.in.timestamp = way == 0 ? 2 : 1;
        s.in.epoch = way == 1;
        CHECK(stage_push(&s, 0, "old", way == 2 ? 77 : 1)); /* newer than all, of epoch 1, or without a beginning */
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 1);
        s.in.epoch = 0;
        s.in.kind = UNSALT_KIND_UNSEQUENCED;
        for (int i = 0; i < 200; i++) {
            int tries = 0;
            while (!stage_push(&s, 0, "x", 0))
                CHECK_THAT(++tries < 10, "refused for ever, status %d, way %d", s.status, way);
            s.took[0] = '\0';
        }
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
        stage_close(&s);
    }
}

/* A hundred sessions hold a record each at the beginning of the window: one walk serves the oldest sixteenth. */
TEST(core_budget_window, many_holders_give_way_together) {
    struct stage s;
    char name[16];
    stage_init(&s);
    s.params.budget_window = 1600;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.ack = true;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        CHECK(stage_push(&s, 0, name, 2));
    }
    for (uint64_t seq = 1; seq <= 1400; seq++) {
        s.took[0] = '\0';
        CHECK(stage_push(&s, 0, "healthy", seq));
    }
    CHECK(!stage_push(&s, 0, "healthy", 1401));
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], 64);
    int tries = 1;
    while (!stage_push(&s, 0, "healthy", 1401))
        tries++;
    CHECK_THAT(tries <= 2, "%d walks", tries);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], tries * 64);
    stage_close(&s);
}

/* What the frontier costs: a bit for each place of the window, however long a record waits. */
TEST(core_budget_window, memory_is_bounded) {
    struct stage s;
    unsalt_core_in_t in[64];
    unsalt_core_out_t out[64];
    size_t n_out;
    int status;
    stage_init(&s);
    s.params.gap_timeout_ns = UNSALT_NEVER;
    s.params.budget_window = 1 << 20;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    CHECK(stage_push(&s, 0, "old", 2));
    size_t before = s.mem.bytes;
    for (uint64_t seq = 1; seq < 3000000; seq += 64) {
        for (uint64_t i = 0; i < 64; i++) {
            in[i] = s.in;
            in[i].session = "h";
            in[i].session_len = in[i].lanes = 1;
            in[i].seq = seq + i;
            in[i].offset = (int64_t)(seq + i);
        }
        size_t took = unsalt_core_push(s.core, in, 64, s.now, out, &n_out, &status);
        for (size_t i = 0; i < n_out; i++)
            unsalt_core_ack(s.core, 0, out[i].generation, out[i].ticket);
        if (took < 64)
            break;
    }
    CHECK_I64(status, UNSALT_CORE_PULL);
    CHECK_U64(stage_counters(&s).received, 1 << 20);
    CHECK_THAT(s.mem.bytes - before <= (1 << 17) + 4096, "%zu bytes for a window of 2^20", s.mem.bytes - before);
    stage_pull(&s, 100);
    stage_close(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 6: when reading becomes selective, when a full budget is told, what a record is charged, what is bounded. */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/* A session over two topics of which lane 1 is read first, with `held` records waiting for number 2. */
static void lane_ahead(struct stage *s, uint64_t budget, uint64_t held) {
    stage_init(s);
    s->params.budget_records = budget;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(s);
    stage_parts(s, 0, 2, true, 0, 0);
    s->in.lanes = 2;
    for (uint64_t i = 0; i <= held; i++) /* number 1 passes */
        CHECK(stage_push_lane(s, 1, "a", 1 + 2 * i));
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_HELD], held);
}

static bool left_unread(struct stage *s, uint32_t part) {
    unsalt_read_t advice[2];
    unsalt_core_read_advice(s->core, advice, 2);
    return advice[part] == UNSALT_READ_AHEAD;
}

TEST(core_budget, reading_is_selective_from_half_to_a_quarter) {
    struct stage s;
    lane_ahead(&s, 100, 50);
    CHECK(!left_unread(&s, 1));
    CHECK(stage_push_lane(&s, 1, "a", 103));
    CHECK(left_unread(&s, 1));
    CHECK(!left_unread(&s, 0));
    for (uint64_t seq = 2; stage_counters(&s).state[UNSALT_STATE_HELD] > 25; seq += 2) {
        CHECK(left_unread(&s, 1));
        CHECK(stage_push_lane(&s, 0, "a", seq));
    }
    CHECK(!left_unread(&s, 1));
    stage_close(&s);
}

/*
 * confluent-kafka-python and its siblings pause a partition at such an edge, and a pause throws away what was fetched:
 * confluentinc/librdkafka#5343 and #5218 tell of consumers that fetch the same again and again. Here nothing is paused,
 * and the advice doesn't change with every record that comes or goes.
 */
TEST(core_budget, at_the_edge_nothing_flaps) {
    struct stage s;
    unsigned changes = 0;
    lane_ahead(&s, 100, 50);
    bool before = left_unread(&s, 1);
    CHECK(!before);
    for (uint64_t i = 1; i <= 1000; i++) {
        bool after;
        s.in.lanes = 1;
        s.took[0] = '\0';
        CHECK(stage_push_lane(&s, 0, "b", 2 * i)); /* 51 are held */
        after = left_unread(&s, 1);
        changes += after != before;
        CHECK(stage_push_lane(&s, 0, "b", 2 * i - 1)); /* 50 */
        before = left_unread(&s, 1);
        changes += before != after;
    }
    CHECK_U64(changes, 1);
    stage_close(&s);
}

/* The partition that is ahead is owed too, as far as anyone knows, but not read on our own advice. */
TEST(core_budget, what_is_left_unread_does_not_stall) {
    struct stage s;
    unsalt_core_horizon_info_t info;
    unsalt_read_t advice[2];
    stage_init(&s);
    s.params.budget_records = 10;
    s.params.gap_timeout_ns = 100 * MS;
    s.params.gap_stall_max_ns = SEC;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    for (uint64_t seq = 2; seq <= 8; seq++)
        CHECK(stage_push(&s, 1, "a", seq));
    stage_wait(&s, 100 * MS);
    for (int i = 0; i < 30; i++) {
        unsalt_core_read_advice(s.core, advice, 2);
        CHECK_I64(advice[1], UNSALT_READ_AHEAD);
        s.in.kind = UNSALT_KIND_UNSEQUENCED;
        CHECK(stage_push(&s, 0, "x", 0)); /* the other one is far behind */
        stage_wait(&s, 100 * MS);
    }
    CHECK_I64(unsalt_core_horizon_info(s.core, 1, &info), UNSALT_CORE_OK);
    CHECK_THAT(info.stand == UNSALT_STAND_ASKED || info.stand == UNSALT_STAND_TO_ASK, "it is %s",
               unsalt_stand_name(info.stand));
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_STALLED], 0);
    stage_close(&s);
}

static unsigned budget_events(struct stage *s) {
    unsigned n = 0;
    for (const char *at = stage_said(s); (at = strstr(at, "budget:")); at++)
        n++;
    return n;
}

static void push_hard(struct stage *s, const char *session, uint64_t seq) {
    for (int i = 0; i < 10 && !stage_push(s, 0, session, seq); i++)
        stage_pull(s, 100);
    CHECK_I64(s->status, UNSALT_CORE_OK);
}

TEST(core_budget, a_full_one_is_told_again_only_after_it_fell_to_half) {
    struct stage s;
    unsigned told = 0;
    stage_init(&s);
    s.params.budget_records = 10;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (uint64_t seq = 2; seq <= 400; seq += 2) {
        push_hard(&s, "a", seq);
        told += budget_events(&s);
        s.took[0] = '\0';
    }
    CHECK_U64(told, 1);
    CHECK(stage_counters(&s).budget_full[UNSALT_BUDGET_RECORDS] > 100);
    CHECK_U64(stage_counters(&s).budget_outcome[UNSALT_BUDGET_RECORDS][UNSALT_OUTCOME_GAVE_WAY],
              stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW]);
    for (uint64_t seq = 401; stage_counters(&s).state[UNSALT_STATE_HELD] > 5; seq++)
        stage_flush(&s);
    budget_events(&s);
    for (uint64_t seq = 402; seq <= 500; seq += 2) {
        push_hard(&s, "a", seq);
        told += budget_events(&s);
        s.took[0] = '\0';
    }
    CHECK_U64(told, 2);
    stage_close(&s);
}

/* There is room in all, and a healthy neighbour that says so with every record. */
TEST(core_budget, that_of_a_session_is_told_once_too) {
    struct stage s;
    unsigned told = 0;
    stage_init(&s);
    s.params.session_budget_records = 10;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (uint64_t seq = 2; seq <= 400; seq += 2) {
        push_hard(&s, "a", seq);
        told += budget_events(&s);
        push_hard(&s, "b", seq);
        push_hard(&s, "b", seq - 1);
        s.took[0] = '\0';
    }
    CHECK_U64(told, 1);
    CHECK(stage_counters(&s).budget_full[UNSALT_BUDGET_SESSION_RECORDS] > 100);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_RECORDS], 0);
    stage_close(&s);
}

TEST(core_budget, sessions_that_hold_records_can_not_be_let_go) {
    struct stage s;
    char name[16];
    stage_init(&s);
    s.params.sessions_max = 4;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        CHECK(stage_push(&s, 0, name, 2));
    }
    CHECK_U64(budget_events(&s), 0);
    CHECK(stage_push(&s, 0, "idle", 1));
    CHECK(stage_push(&s, 0, "idle too", 1));
    CHECK_U64(budget_events(&s), 1);
    CHECK_U64(s.event.first, UNSALT_BUDGET_SESSIONS);
    CHECK_U64(s.event.last, UNSALT_OUTCOME_EXCEEDED);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_SESSIONS], 2);
    CHECK_U64(stage_counters(&s).budget_outcome[UNSALT_BUDGET_SESSIONS][UNSALT_OUTCOME_EXCEEDED], 2);
    stage_close(&s);
}

/* ---- what held records pin beyond their own bytes */

TEST(core_budget, what_lies_in_shared_buffers_counts_in_all_and_for_no_session) {
    struct stage s;
    stage_init(&s);
    s.params.budget_bytes = 10000;
    s.params.session_budget_bytes = 1000;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.in.lanes = 1; /* 100 bytes each */
    CHECK(stage_push_lane(&s, 0, "a", 2));
    unsalt_core_pinned(s.core, 9750);
    CHECK(stage_push_lane(&s, 0, "a", 3));
    CHECK(!stage_push_lane(&s, 0, "a", 4));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_U64(s.event.type, UNSALT_CORE_EV_GAP);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_BYTES], 1);
    CHECK_U64(stage_counters(&s).pinned_bytes, 9750);
    unsalt_core_pinned(s.core, 0);
    CHECK(stage_push_lane(&s, 0, "a", 4));
    CHECK_STR(stage_took(&s), "a2! a3 a4");
    unsalt_core_pinned(s.core, 5000);
    CHECK(stage_push_lane(&s, 0, "a", 6));
    unsalt_read_t advice;
    unsalt_core_read_advice(s.core, &advice, 1);
    CHECK_I64(advice, UNSALT_READ_OWED); /* above half: reading is selective */
    unsalt_core_pinned(s.core, UINT64_MAX);
    for (int i = 0; i < 5 && !stage_push_lane(&s, 0, "a", 7); i++)
        stage_pull(&s, 10);
    CHECK_I64(s.status, UNSALT_CORE_OK);
    stage_close(&s);
}

/* ---- bookkeeping */

/* What the core has allocated for each record that it holds. */
static uint64_t cost(const struct stage *s, size_t before) {
    uint64_t held = stage_counters(s).state[UNSALT_STATE_HELD];
    return (s->mem.bytes - before) / held;
}

static void push_plain(struct stage *s, uint32_t part, const char *session, uint64_t seq, uint16_t lanes) {
    unsalt_core_in_t in = s->in;
    unsalt_core_out_t out;
    size_t n_out;
    int status;
    in.session = session;
    in.session_len = (uint32_t)strlen(session);
    in.part = part;
    in.seq = seq;
    in.lanes = lanes;
    in.lane = lanes ? (uint16_t)(seq % lanes) : 0;
    in.offset = s->next[part]++;
    CHECK_U64(unsalt_core_push(s->core, &in, 1, s->now, &out, &n_out, &status), 1);
    for (size_t i = 0; i < n_out; i++)
        unsalt_core_ack(s->core, out.part, out.generation, out.ticket);
    unsalt_core_event_t events[16];
    while (unsalt_core_events(s->core, events, 16))
        ;
}

static void close_unlabelled(struct stage *s) {
    unsalt_core_destroy(s->core);
    CHECK(failmem_is_balanced(&s->mem));
}

/* Every second number missing, in order, backwards, and from both ends: the worst for anything that keeps ranges. */
TEST(core_budget, bookkeeping_of_a_held_record_is_bounded) {
    enum { COUNT = 100000 };
    static const uint64_t most[] = {48, 160, 160};
    for (int way = 0; way < 3; way++) {
        struct stage s;
        stage_default(&s, 1);
        size_t before = s.mem.bytes;
        for (uint64_t i = 1; i <= COUNT; i++) {
            uint64_t up = 2 * i, down = 2 * (COUNT + 1 - i);
            push_plain(&s, 0, "a", way == 0 ? up : way == 1 ? down : i % 2 ? up : down, way == 0);
        }
        CHECK_THAT(stage_counters(&s).state[UNSALT_STATE_HELD] >= COUNT / 2, "held");
        CHECK_THAT(cost(&s, before) <= most[way], "%" PRIu64 " bytes for a held record, way %d", cost(&s, before), way);
        close_unlabelled(&s);
    }
}

/* A hundred thousand gaps are given up one after the other: what a session remembers of them is session.skips.max. */
TEST(core_budget, bookkeeping_of_skipped_numbers_is_bounded) {
    struct stage s;
    stage_init(&s);
    s.params.gap_timeout_ns = 0;
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    s.params.skips_max = 8;
    s.lazy = true;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    size_t after = 0;
    for (uint64_t seq = 2; seq <= 200000; seq += 2) {
        push_plain(&s, 0, "a", seq, 0);
        stage_wait(&s, 0);
        unsalt_core_out_t out[4];
        while (unsalt_core_pull(s.core, s.now, out, 4))
            ;
        unsalt_core_ack(s.core, 0, unsalt_core_generation(s.core, 0), seq / 2 - 1);
        after = seq == 200 ? s.mem.bytes : after;
    }
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT], 100000);
    CHECK_THAT(s.mem.bytes <= after, "%zu bytes after a hundred gaps, %zu after all", after, s.mem.bytes);
    close_unlabelled(&s);
}

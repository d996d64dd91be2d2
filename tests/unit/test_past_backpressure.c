/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Public reports as stories (docs/past.md): readers that stop one another. A reader that does what the core advises
 * stands in for the consumer.
 */
#include <stdio.h>
#include <support/check.h>
#include <support/stage.h>

/*
 * apache/flink, FLINK-32496, FLINK-32414, FLINK-37670, FLINK-40093: a paused source that nobody resumed, and one
 * without a split that held all others up. Their siblings follow.
 */

enum { DEEP = 300, LIMIT = 40 };

struct reader {
    struct stage s;
    uint64_t at[2]; /* how many records of each partition were read */
    unsigned steps;
};

/*
 * What stands in the partitions: first DEEP numbers of one session, then DEEP of the other; crosswise, so that each
 * session waits for a lane behind the other one's records.
 */
static bool next_record(const struct reader *r, uint32_t part, const char **session, uint64_t *seq) {
    uint64_t n = r->at[part];
    if (n >= 2 * DEEP)
        return false;
    *session = (n < DEEP) == (part == 0) ? "a" : "b";
    *seq = 2 * (n % DEEP) + (part == 0 ? 2 : 1);
    return true;
}

static bool read_one(struct reader *r, uint32_t part) {
    const char *session;
    uint64_t seq;
    if (!next_record(r, part, &session, &seq))
        return false;
    bool taken = stage_push_lane(&r->s, part, session, seq);
    r->at[part] += taken;
    stage_pull(&r->s, SIZE_MAX);
    return taken;
}

/* One turn: what is owed first, what is ahead not at all; if that gives nothing, time goes on. */
static void step(struct reader *r) {
    unsalt_read_t advice[2];
    bool moved = false;
    unsalt_core_read_advice(r->s.core, advice, 2);
    for (int want = UNSALT_READ_OWED; want <= UNSALT_READ_FREE; want++)
        for (uint32_t part = 0; part < 2 && !moved; part++)
            if (advice[part] == (unsalt_read_t)want)
                moved = read_one(r, part);
    if (!moved)
        stage_wait(&r->s, SEC);
    r->s.took[0] = r->s.said[0] = '\0';
    r->steps++;
}

static void open_reader(struct reader *r, unsalt_budget_policy_t policy) {
    memset(r, 0, sizeof(*r));
    stage_init(&r->s);
    r->s.params.budget_records = LIMIT;
    r->s.params.budget_policy = policy;
    r->s.params.block_max_ns = 5 * SEC;
    r->s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&r->s);
    stage_parts(&r->s, 0, 2, true, 0, 0);
    r->s.in.lanes = 2;
}

TEST(past_backpressure, sessions_that_wait_for_each_others_lanes_end_by_the_policy) {
    static const unsalt_budget_policy_t policies[] = {UNSALT_BUDGET_SKIP_GAP, UNSALT_BUDGET_BLOCK};
    for (int i = 0; i < 2; i++) {
        struct reader r;
        open_reader(&r, policies[i]);
        while (r.at[0] + r.at[1] < 4 * DEEP) {
            CHECK_THAT(r.steps < 100000, "stuck at %" PRIu64 " and %" PRIu64, r.at[0], r.at[1]);
            step(&r);
            CHECK(stage_counters(&r.s).state[UNSALT_STATE_HELD] <= LIMIT);
        }
        stage_flush(&r.s);
        unsalt_core_counters_t c = stage_counters(&r.s);
        CHECK_U64(c.received, 4 * DEEP);
        CHECK_U64(c.state[UNSALT_STATE_RELEASED] + c.state[UNSALT_STATE_LATE], 4 * DEEP);
        CHECK(c.gaps[UNSALT_GAP_OVERFLOW] > 0);
        stage_close(&r.s);
    }
}

/* With room for what stands in between, nothing gives way: reading goes to the lane that is owed. */
TEST(past_backpressure, with_enough_room_they_wait_and_nothing_gives_way) {
    struct reader r;
    open_reader(&r, UNSALT_BUDGET_SKIP_GAP);
    unsalt_core_destroy(r.s.core);
    r.s.params.budget_records = 4 * DEEP;
    stage_open(&r.s);
    stage_parts(&r.s, 0, 2, true, 0, 0);
    while (r.at[0] + r.at[1] < 4 * DEEP) {
        CHECK_THAT(r.steps < 100000, "stuck at %" PRIu64 " and %" PRIu64, r.at[0], r.at[1]);
        step(&r);
    }
    CHECK_U64(stage_counters(&r.s).state[UNSALT_STATE_RELEASED], 4 * DEEP);
    CHECK_U64(stage_counters(&r.s).gaps[UNSALT_GAP_OVERFLOW], 0);
    stage_close(&r.s);
}

/* A partition that has nothing more is owed all the same: it stops nobody else from being read. */
TEST(past_backpressure, a_partition_without_records_stops_nobody) {
    struct stage s;
    unsalt_read_t advice[3];
    stage_init(&s);
    s.params.budget_records = 10;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 0, 0);
    for (uint64_t seq = 2; seq <= 8; seq++)
        stage_push(&s, 0, "a", seq);
    unsalt_core_read_advice(s.core, advice, 3);
    CHECK_I64(advice[0], UNSALT_READ_AHEAD);
    CHECK_I64(advice[1], UNSALT_READ_OWED);
    CHECK_I64(advice[2], UNSALT_READ_OWED);
    unsalt_core_eof(s.core, 1, 0, s.now);
    unsalt_core_read_advice(s.core, advice, 3);
    CHECK_I64(advice[0], UNSALT_READ_AHEAD); /* partition 2 may still have it */
    unsalt_core_eof(s.core, 2, 0, s.now);
    unsalt_core_read_advice(s.core, advice, 3);
    CHECK_THAT(advice[0] != UNSALT_READ_AHEAD, "nobody reads, and nobody ever will");
    stage_push(&s, 0, "a", 1); /* it stood on the lane ahead: the producer had no lane rule */
    CHECK_U64(s.last.seq, 8);
    stage_close(&s);
}

/*
 * Seen: the application had paused the partition that was owed, so from half a budget on nothing at all was read any
 * more, and no budget was ever full: other sessions stood still with it.
 */
TEST(past_backpressure, a_partition_that_the_application_paused_stops_nobody) {
    struct stage s;
    unsalt_read_t advice[2];
    stage_init(&s);
    s.params.budget_records = 10;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    for (uint64_t seq = 2; seq <= 8; seq++)
        stage_push(&s, 0, "a", seq);
    unsalt_core_read_advice(s.core, advice, 2);
    CHECK_I64(advice[0], UNSALT_READ_AHEAD);
    unsalt_core_pause(s.core, 1, true, s.now);
    for (int i = 0; i < 2; i++) {
        unsalt_core_read_advice(s.core, advice, 2);
        CHECK_THAT(advice[0] != UNSALT_READ_AHEAD, "nobody reads until the application resumes");
        stage_wait(&s, 3600 * SEC); /* due by now, and waiting for the paused one */
    }
    CHECK_STR(stage_took(&s), ""); /* that the others are read gives nothing up */
    unsalt_core_pause(s.core, 1, false, s.now);
    unsalt_core_read_advice(s.core, advice, 2);
    CHECK_I64(advice[0], UNSALT_READ_AHEAD);
    CHECK_I64(advice[1], UNSALT_READ_OWED);
    stage_push(&s, 1, "a", 1);
    CHECK_U64(s.last.seq, 8);
    stage_close(&s);
}

/* The partition that is owed goes to another member while the budget is full. */
TEST(past_backpressure, a_partition_that_goes_stops_nobody) {
    struct stage s;
    unsalt_read_t advice[2];
    stage_init(&s);
    s.params.budget_records = 10;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 2, true, 0, 0);
    stage_parts(&s, 1, 1, false, 0, 0);
    s.in.lanes = 2;
    for (uint64_t seq = 2; seq <= 20; seq += 2)
        stage_push_lane(&s, 0, "a", seq);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_pull(&s, SIZE_MAX);
    unsalt_core_read_advice(s.core, advice, 2);
    s.in.lanes = 0;
    for (uint64_t seq = 9; seq >= 1; seq--)
        CHECK(stage_push(&s, 2, "c", seq));
    CHECK_U64(s.last.seq, 9);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_REVOKED], 10);
    stage_close(&s);
}

/* Fills one place of the budget, or frees one: session i holds the number above the one it waits for. */
static void refill(struct stage *s, uint64_t *next, int i) {
    char name[16];
    snprintf(name, sizeof(name), "s%d", i);
    CHECK(stage_push(s, 0, name, *next));
    CHECK(stage_push(s, 0, name, *next + 3));
    *next += 2;
}

/*
 * confluentinc/librdkafka#5343, confluentinc/librdkafka#5218, getsentry/snuba#4774, thomhurst/Dekaf#1359,
 * redpanda-data/connect#3117: pauses that came and went threw fetched data away, leaked and kept a processor busy.
 * Nothing is paused here; at the edge of a budget the core keeps its memory, and tells once.
 */
TEST(past_backpressure, at_the_edge_of_a_budget_memory_stays_and_nothing_is_told_again) {
    enum { PLACES = 16, TURNS = 30000 };
    struct stage s;
    uint64_t next[PLACES], told = 0, calls = 0;
    size_t bytes = 0;
    char name[16];
    stage_init(&s);
    s.params.budget_records = PLACES;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    s.ack = true;
    stage_push(&s, 0, "more", 1); /* so that a refusal has no session to make and to free */
    for (int i = 0; i < PLACES; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        next[i] = 1;
        stage_push(&s, 0, name, 2);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK(!stage_push(&s, 0, "more", 3));
        refill(&s, &next[turn % PLACES], turn % PLACES);
        told += strstr(s.said, "budget:") != NULL;
        s.took[0] = s.said[0] = '\0';
        s.now += MS / 10;
        if (turn == TURNS / 10) {
            calls = s.mem.calls;
            bytes = s.mem.bytes;
        }
    }
    CHECK_U64(told, 1);
    CHECK_U64(s.mem.bytes, bytes);
    CHECK_U64(s.mem.calls, calls);
    CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_RECORDS], TURNS);
    stage_close(&s);
}

/* Told again once less than half of it was used in between: an oscillation over the whole range is news each time. */
TEST(past_backpressure, a_budget_is_told_again_below_its_half) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 8;
    s.params.budget_policy = UNSALT_BUDGET_BLOCK;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    uint64_t told = 0;
    for (uint64_t round = 0; round < 50; round++) {
        uint64_t first = 1 + 9 * round;
        for (uint64_t seq = first + 1; seq <= first + 8; seq++)
            CHECK(stage_push(&s, 0, "a", seq));
        for (int i = 0; i < 5; i++)
            CHECK(!stage_push(&s, 0, "a", first + 9));
        CHECK(stage_push(&s, 0, "a", first));
        told += strstr(stage_said(&s), "budget:") != NULL;
        s.took[0] = '\0';
    }
    CHECK_U64(told, 50);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 450);
    stage_close(&s);
}

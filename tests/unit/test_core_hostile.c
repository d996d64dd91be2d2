/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hostile and unlucky producers: whatever they send, the core keeps bounded memory, does bounded work per record, and
 * loses nothing. Each stream is played twice, the second time with ten times as many records: calls of the
 * allocator may grow with the records, memory may not. Work that grows with what came before would not end within the
 * time limit of the test. What must hold at every step is looked after by <support/ledger.h>.
 */
#include <stdio.h>
#include <support/check.h>
#include <support/ledger.h>
#include <support/prng.h>
#include <support/stage.h>

enum { FEW = 10000, SOME = 30000, MANY = 100000, BUDGET = 1000 };

struct stream {
    struct ledger ledger;
    struct prng prng;
    uint32_t sessions[LEDGER_BATCH];
    unsalt_core_in_t in[LEDGER_BATCH];
    char ids[LEDGER_BATCH][512];
    uint32_t pad;
    size_t used;
    int64_t offset;
};

/* Sets what differs from the defaults. */
typedef void set_t(unsalt_core_params_t *params);
/* Makes record number i, of which everything but the sequence is plain. Returns its session. */
typedef uint32_t make_t(struct stream *stream, uint64_t i, unsalt_core_in_t *in);

struct cost {
    uint64_t calls, gaps[UNSALT_GAP__CNT], back[UNSALT_STATE__CNT], events[UNSALT_CORE_EV__CNT];
    size_t peak, end;
    uint64_t sessions;
};

static void send(struct stream *s) {
    int status;
    size_t took = ledger_push(&s->ledger, s->sessions, s->in, s->used, NULL, &status);
    CHECK_THAT(took == s->used, "took %zu of %zu, status %d: %s", took, s->used, status, s->ledger.why);
    s->used = 0;
    s->ledger.now += 1000;
    CHECK_THAT(ledger_rest(&s->ledger), "%s", s->ledger.why);
    ledger_ack_all(&s->ledger);
}

static void add(struct stream *s, make_t *make, uint64_t i) {
    unsalt_core_in_t *in = &s->in[s->used];
    *in = (unsalt_core_in_t){.session = s->ids[s->used],
                             .since = UNSALT_NO_SEQ,
                             .una = UNSALT_NO_SEQ,
                             .offset = s->offset++,
                             .timestamp = -1,
                             .bytes = 100};
    s->sessions[s->used] = make(s, i, in);
    in->session_len = ledger_id(s->sessions[s->used], s->pad, s->ids[s->used]);
    if (++s->used == LEDGER_BATCH)
        send(s);
}

/* A stream of n records in one partition; start_offset 0: it was read from its beginning. */
static struct cost play(make_t *make, set_t *set, uint64_t n, int64_t start, uint32_t pad) {
    static struct stream s;
    struct cost cost = {0};
    memset(&s, 0, sizeof s);
    s.prng = prng_start(n);
    s.pad = pad;
    s.offset = start;
    ledger_init(&s.ledger, 16);
    s.ledger.params.budget_records = BUDGET;
    if (set)
        set(&s.ledger.params);
    CHECK(ledger_open(&s.ledger));
    /* Two partitions, so that an unread one keeps starts, epochs and gaps waiting. */
    for (int i = 0; i < 2; i++)
        CHECK(ledger_assign(&s.ledger, &(unsalt_core_partition_t){.lane = -1, .start_offset = start}) == i);
    for (uint64_t i = 0; i < n; i++)
        add(&s, make, i);
    if (s.used)
        send(&s);
    unsalt_core_counters_t counters;
    unsalt_core_counters(s.ledger.core, &counters);
    cost.calls = s.ledger.mem.calls;
    cost.peak = s.ledger.mem.peak;
    cost.sessions = counters.sessions;
    fprintf(stderr, "%" PRIu64 " records: %" PRIu64 " calls, peak %zu\n", n, cost.calls, cost.peak);
    CHECK_U64(counters.received, n);
    memcpy(cost.gaps, s.ledger.gaps, sizeof cost.gaps);
    memcpy(cost.events, s.ledger.events, sizeof cost.events);
    CHECK_THAT(ledger_flush(&s.ledger), "%s", s.ledger.why);
    memcpy(cost.back, s.ledger.back, sizeof cost.back);
    CHECK_THAT(ledger_close(&s.ledger), "%s", s.ledger.why);
    return cost;
}

/*
 * Plays it with n, 2 n and 10 n records, and compares. The core's spare memory serves the first n, so how often it asks
 * the allocator is judged by the second n: the work per record doesn't grow. Returns the cost of 10 n.
 */
static struct cost bounded_from(make_t *make, set_t *set, uint64_t n, int64_t start, size_t most) {
    struct cost few = play(make, set, n, start, 0), twice = play(make, set, 2 * n, start, 0);
    struct cost many = play(make, set, 10 * n, start, 0);
    uint64_t second = twice.calls > few.calls ? twice.calls - few.calls : 0;
    CHECK_THAT(many.calls <= twice.calls + 20 * second + 1000, "too many calls: %" PRIu64, many.calls);
    CHECK_THAT(many.peak <= 3 * few.peak, "peak %zu, then %zu bytes", few.peak, many.peak);
    CHECK_THAT(many.peak <= most, "peak %zu bytes, may be %zu", many.peak, most);
    return many;
}

static struct cost bounded(make_t *make, set_t *set, size_t most) {
    return bounded_from(make, set, FEW, 0, most);
}

/* ---- floods of ids */

static void thousand(unsalt_core_params_t *p) {
    p->sessions_max = p->remembered_max = 1000;
}

static uint32_t fresh_id(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = 1;
    return (uint32_t)i;
}

/* Every id comes with its second record only: each session waits, until a budget ends that. */
static uint32_t fresh_id_with_a_hole(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = 2;
    return (uint32_t)i;
}

Test(core_hostile, a_million_ids_take_the_memory_of_a_thousand, .timeout = 90) {
    struct cost cost = bounded_from(fresh_id, thousand, MANY, 0, 1500000);
    CHECK_U64(cost.sessions, 1000);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], 10 * MANY);
}

TEST(core_hostile, ids_that_all_wait_for_a_number) {
    struct cost cost = bounded_from(fresh_id_with_a_hole, thousand, FEW, 0, 3000000);
    CHECK(cost.sessions <= 1000 + BUDGET);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], 10 * FEW);
}

TEST(core_hostile, ids_that_all_wait_for_their_start) {
    struct cost cost = bounded_from(fresh_id_with_a_hole, thousand, FEW, 1000, 3000000);
    CHECK(cost.sessions <= 1000 + BUDGET);
}

static void room_for_all(unsalt_core_params_t *p) {
    p->budget_records = p->sessions_max = SOME;
}

TEST(core_hostile, what_an_idle_session_and_one_that_waits_cost) {
    struct cost idle = play(fresh_id, room_for_all, SOME, 0, 0);
    struct cost waits = play(fresh_id_with_a_hole, room_for_all, SOME, 0, 0);
    CHECK(idle.peak / SOME <= 640);
    CHECK(waits.peak / SOME <= 1200);
}

TEST(core_hostile, long_ids) {
    struct cost cost = play(fresh_id, thousand, FEW, 0, 250);
    CHECK_THAT(cost.peak <= 2500000, "%zu bytes", cost.peak);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], FEW);
    cost = play(fresh_id, thousand, FEW, 0, 300);
    CHECK_THAT(cost.peak <= 1000000, "%zu bytes for sessions that are none", cost.peak);
    CHECK_U64(cost.back[UNSALT_STATE_UNSEQUENCED], FEW);
    CHECK_U64(cost.events[UNSALT_CORE_EV_OVERSIZED], FEW);
}

/* ---- holes */

static void never(unsalt_core_params_t *p) {
    p->gap_timeout_ns = UNSALT_NEVER;
}

static uint32_t every_other(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = 3 + 2 * i;
    return 0;
}

static uint32_t every_other_in_a_lane(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    in->lanes = 2;
    in->lane = 1;
    in->since = 1;
    return every_other(s, i, in);
}

static uint32_t descending(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = (UINT64_C(1) << 40) - 2 * i;
    return 0;
}

static uint32_t inwards(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = i % 2 ? (UINT64_C(1) << 40) - i : 3 + i;
    return 0;
}

TEST(core_hostile, a_hole_beside_every_record) {
    struct cost cost = bounded(every_other, never, 400000);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], MANY);
    CHECK(cost.gaps[UNSALT_GAP_OVERFLOW] >= MANY - BUDGET);
    cost = bounded(every_other_in_a_lane, never, 400000);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], MANY);
}

TEST(core_hostile, numbers_that_descend) {
    struct cost cost = bounded(descending, never, 700000);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED] + cost.back[UNSALT_STATE_LATE], MANY);
    bounded(inwards, never, 700000);
}

/* The same numbers with room for all of them: the work per record stays the same. */
static void room_for_a_million(unsalt_core_params_t *p) {
    p->gap_timeout_ns = UNSALT_NEVER;
    p->budget_records = 1000000;
}

TEST(core_hostile, many_holes_held_at_once) {
    make_t *const makes[] = {every_other, every_other_in_a_lane, descending, inwards};
    for (int i = 0; i < 4; i++) {
        struct cost cost = play(makes[i], room_for_a_million, SOME, 0, 0);
        CHECK_U64(cost.back[UNSALT_STATE_RELEASED], SOME);
        CHECK_THAT(cost.peak <= 300 * SOME, "stream %d: peak %zu bytes", i, cost.peak);
        CHECK_THAT(cost.calls <= 5 * SOME, "stream %d: %" PRIu64 " calls", i, cost.calls);
    }
}

/* Wherever the number is, the next is half the range away, and the ends of the range are met. */
static uint32_t far_away(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    static const uint64_t far[] = {UINT64_C(1) << 63, 1, UINT64_MAX - 1, 2, (UINT64_C(1) << 63) + 1, UINT64_MAX - 2};
    in->seq = i < 6 ? far[i] : far[i % 6] + (i % 2 ? 1 : -1) * (i / 6);
    in->seq = in->seq == 0 || in->seq == UNSALT_NO_SEQ ? 5 : in->seq;
    return (uint32_t)(i / 5);
}

TEST(core_hostile, gaps_of_half_the_range) {
    bounded(far_away, thousand, 3000000);
}

/* ---- markers, una, lanes, copies */

/* A record at 1, one far above, and then markers about what lies between: any ranges, again and again. */
static uint32_t markers(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    if (i < 2) {
        in->seq = i ? 1000000 : 1;
        return 0;
    }
    uint64_t a = prng_between(&s->prng, 1, 1000002), b = prng_between(&s->prng, 1, 1000002);
    uint64_t width = prng_chance(&s->prng, 90) ? 20 : UINT64_MAX;
    in->kind = UNSALT_KIND_CONTROL;
    in->flags = UNSALT_F_MARKER;
    in->since = a < b ? a : b;
    in->seq = a < b ? b : a;
    if (in->seq - in->since > width && prng_chance(&s->prng, 99))
        in->since = in->seq - width;
    in->una = prng_chance(&s->prng, 50) ? in->seq + 1 : UINT64_MAX - 1;
    return 0;
}

TEST(core_hostile, markers_that_overlap_repeat_and_contradict) {
    struct cost cost = bounded(markers, never, 250000);
    CHECK_U64(cost.back[UNSALT_STATE_CONTROL], MANY - 2);
    CHECK_U64(cost.back[UNSALT_STATE_RELEASED], 2);
}

/* Markers of sessions that nobody knows, and of runs that nobody knows. */
static uint32_t strange_markers(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    markers(s, i + 2, in);
    in->epoch = i;
    return (uint32_t)(i % 2 ? i : 0);
}

TEST(core_hostile, markers_of_unknown_sessions_and_runs) {
    struct cost cost = bounded(strange_markers, thousand, 1500000);
    CHECK_U64(cost.sessions, 1000);
    CHECK_U64(cost.back[UNSALT_STATE_CONTROL], MANY);
}

/* `una` says what it likes: its own number, the highest of all, 0, below what it said before. */
static uint32_t una_lies(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    in->seq = 2 + i + prng_below(&s->prng, 8);
    in->lanes = 4;
    in->lane = (uint16_t)(in->seq % 4);
    in->since = 1;
    in->una = i % 4 == 0 ? in->seq : i % 4 == 1 ? 0 : i % 4 == 2 ? UINT64_MAX - 1 : in->seq - 5;
    return 0;
}

static uint32_t una_is_always_its_own(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    una_lies(s, i, in);
    in->una = in->seq;
    return 0;
}

TEST(core_hostile, una_that_lies) {
    struct cost cost = bounded(una_lies, NULL, 400000);
    CHECK(cost.events[UNSALT_CORE_EV_PROOF_OFF] == 1);
    bounded(una_is_always_its_own, NULL, 400000);
}

/* Another S, another lane and another range for it with each record. */
static uint32_t lanes_change(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    in->seq = 2 + i + prng_below(&s->prng, 8);
    in->lanes = (uint16_t)prng_between(&s->prng, 1, prng_chance(&s->prng, 50) ? 65535 : 256);
    in->lane = (uint16_t)(prng_chance(&s->prng, 80) ? in->seq % in->lanes : prng_below(&s->prng, in->lanes));
    in->since = prng_chance(&s->prng, 50) ? in->seq : prng_below(&s->prng, in->seq + 1);
    in->una = prng_chance(&s->prng, 50) ? in->seq : prng_next(&s->prng);
    return (uint32_t)(i % 4);
}

TEST(core_hostile, lanes_that_change_with_every_record) {
    bounded(lanes_change, NULL, 800000);
    bounded_from(lanes_change, never, FEW, 1000, 1000000);
}

/* The same number again and again, with other payloads and times: copies, or signs of a restart. */
static uint32_t the_same_number(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->seq = i % 3 ? 1 : 7;
    in->bytes = (uint32_t)(i % 1000);
    return 0;
}

static uint32_t the_same_number_ever_later(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    the_same_number(s, i, in);
    in->timestamp = (int64_t)i;
    return 0;
}

static uint32_t times_that_jump(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    in->seq = 1 + i / 4 + prng_below(&s->prng, 6);
    in->timestamp = (int64_t)(prng_next(&s->prng) >> prng_between(&s->prng, 1, 63));
    return (uint32_t)(i % 3);
}

TEST(core_hostile, equal_numbers_with_other_payloads) {
    struct cost cost = bounded(the_same_number, NULL, 250000);
    CHECK_U64(cost.back[UNSALT_STATE_DUPLICATE], MANY - 2);
    bounded(the_same_number_ever_later, NULL, 400000);
    bounded(times_that_jump, NULL, 400000);
}

/* ---- epochs */

static uint32_t flapping(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->epoch = 1 + i % 2;
    in->seq = 1 + i / 2;
    return 0;
}

static uint32_t flapping_at_random(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    in->epoch = prng_below(&s->prng, 8);
    in->seq = 1 + prng_below(&s->prng, 1 + i % 100);
    in->timestamp = prng_chance(&s->prng, 50) ? (int64_t)i : -1;
    return (uint32_t)(i % 2);
}

static uint32_t ever_higher(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    (void)s;
    in->epoch = i;
    in->seq = 1 + i % 3;
    return 0;
}

static uint32_t ever_lower(struct stream *s, uint64_t i, unsalt_core_in_t *in) {
    ever_higher(s, i, in);
    in->epoch = UINT64_MAX - i;
    return 0;
}

TEST(core_hostile, epochs_that_flap) {
    bounded(flapping, NULL, 700000);
    bounded_from(flapping_at_random, NULL, SOME, 0, 700000);
    bounded(flapping, thousand, 700000);
}

TEST(core_hostile, a_new_epoch_with_every_record) {
    struct cost cost = bounded_from(ever_higher, NULL, BUDGET, 0, 1500000);
    CHECK(cost.back[UNSALT_STATE_RELEASED] >= 9 * BUDGET);
    bounded_from(ever_lower, NULL, BUDGET, 0, 1500000);
    bounded_from(ever_higher, NULL, BUDGET, 1000, 1500000);
    bounded_from(ever_lower, NULL, BUDGET, 1000, 1500000);
}

/* ---- what the fuzzers and the soak have found */

/* The lane after the last number of all seems to go on with the first ones, 64 bits further. */
TEST(core_hostile, numbers_do_not_wrap_around_in_a_lane) {
    struct stage s;
    stage_default(&s, 1);
    s.in.lanes = 4;
    s.in.since = 0;
    stage_push_lane(&s, 0, "a", UINT64_MAX - 1);
    stage_push_lane(&s, 0, "a", 2);
    stage_push_lane(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_flush(&s);
    CHECK_STR(stage_said(&s), "gap:a3-18446744073709551613:flush");
    CHECK_STR(stage_took(&s), "a18446744073709551614!");
    stage_close(&s);
}

/* The same in one stretch: run.c takes what follows the first one. */
TEST(core_hostile, numbers_do_not_wrap_around_in_a_stretch) {
    static struct ledger l;
    const uint64_t seqs[] = {UINT64_MAX - 9, UINT64_MAX - 5, UINT64_MAX - 1, 2, 1};
    uint32_t sessions[5] = {0};
    unsalt_core_in_t in[5];
    int status;
    ledger_init(&l, 1);
    CHECK(ledger_open(&l));
    CHECK(ledger_assign(&l, &(unsalt_core_partition_t){.lane = -1}) == 0);
    for (int i = 0; i < 5; i++)
        in[i] = (unsalt_core_in_t){.session = "s0", .session_len = 2, .seq = seqs[i], .una = UNSALT_NO_SEQ,
                                   .offset = i, .timestamp = -1, .bytes = 1, .lanes = 4,
                                   .lane = (uint16_t)(seqs[i] % 4)};
    CHECK_U64(ledger_push(&l, sessions, in, 5, NULL, &status), 5);
    CHECK_THAT(ledger_rest(&l), "%s", l.why);
    CHECK_U64(l.back[UNSALT_STATE_RELEASED], 2);
    CHECK_THAT(ledger_close(&l), "%s", l.why);
}

/* A session that holds something can't expire; it was looked at again and again at the same time. */
TEST(core_hostile, sessions_that_expire_at_once_do_not_keep_the_core_busy) {
    struct stage s;
    stage_init(&s);
    s.params.session_ttl_ns = 0;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_expire(&s);
    CHECK(unsalt_core_deadline(s.core) > s.now);
    stage_push(&s, 0, "a", 1);
    stage_wait(&s, 10 * MS);
    stage_wait(&s, 10 * MS);
    CHECK_U64(stage_counters(&s).sessions, 0);
    stage_close(&s);
}

/* A flood of ids that are seen once must not cost the memory of the sessions that come and go after it. */
TEST(core_hostile, after_a_flood_of_ids_cursors_are_remembered_as_before) {
    static struct ledger l;
    char id[32];
    int status;
    ledger_init(&l, 0);
    l.params.sessions_max = 100;
    l.params.remembered_max = 1000;
    CHECK(ledger_open(&l));
    CHECK(ledger_assign(&l, &(unsalt_core_partition_t){.lane = -1}) == 0);
    /* Session 7 shows a number; it is pushed out of the memory by 200 others; it shows the next one. */
    for (uint64_t i = 0, offset = 0; i < 10000; i++, offset++) {
        uint32_t session = i % 200 == 100 ? 7 : 1000 + (uint32_t)i;
        unsalt_core_in_t in = {.session = id, .session_len = ledger_id(session, 0, id),
                               .seq = session == 7 ? 1 + i / 200 : 1, .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ,
                               .offset = (int64_t)offset, .timestamp = -1, .bytes = 1};
        CHECK_U64(ledger_push(&l, &session, &in, 1, NULL, &status), 1);
        CHECK_THAT(ledger_rest(&l), "%s", l.why);
    }
    CHECK_U64(l.back[UNSALT_STATE_RELEASED], 10000);
    CHECK_U64(l.events[UNSALT_CORE_EV_FORGOTTEN], 1);
    CHECK_U64(l.events[UNSALT_CORE_EV_START], 0);
    CHECK_THAT(ledger_close(&l), "%s", l.why);
}

/* One of two partitions is here: a later run that it shows doesn't end the earlier one, whose tail is in the other. */
TEST(core_hostile, an_epoch_does_not_take_over_while_partitions_are_missing) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 100, 0);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 11);
    s.in.epoch = 2;
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_assign(&s, 0, 2, -1, 100, 0), 1);
    s.in.epoch = 1;
    stage_push(&s, 1, "a", 10);
    stage_push(&s, 1, "a", 12);
    s.in.epoch = 2;
    stage_push(&s, 1, "a", 1);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a10 a11 a12 a1 a2");
    stage_close(&s);
}

/*
 * A gap waits for the partition that carries it by the lane rule; then another rule says that it is another one: that
 * one must be asked too, or the gap waits for ever.
 */
TEST(core_hostile, who_is_owed_after_the_lanes_have_changed_is_asked) {
    struct stage s;
    uint32_t asked[4];
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 3, true, 0, 0);
    s.in.since = 1;
    s.in.lanes = 2;
    for (uint64_t seq = 1; seq <= 6; seq++)
        if (seq != 5)
            stage_push_lane(&s, (uint32_t)(seq % 2), "a", seq);
    stage_wait(&s, 600 * MS);
    CHECK_U64(unsalt_core_questions(s.core, s.now, asked, 4), 1);
    CHECK_U64(asked[0], 1);
    s.in.lanes = 3;
    stage_push_lane(&s, 1, "a", 7);
    stage_horizon(&s, 1, 1);
    stage_wait(&s, SEC);
    CHECK_U64(unsalt_core_questions(s.core, s.now, asked, 4), 1);
    CHECK_U64(asked[0], 2);
    unsalt_core_answer(s.core, 2, unsalt_core_generation(s.core, 2), 0, s.now);
    stage_expire(&s);
    CHECK_STR(stage_said(&s), "gap:a5-5:timeout");
    stage_close(&s);
}

/* Behind the last number of all stands none, so none was turned away there. */
TEST(core_hostile, nothing_is_turned_away_behind_the_last_number) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 1;
    s.params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    stage_push(&s, 0, "a", 7);
    stage_flush(&s);
    CHECK_STR(stage_took(&s), "dead_lettered:a7 a18446744073709551614!");
    CHECK_STR(stage_said(&s), "budget: gap:a1-18446744073709551613:flush");
    stage_close(&s);
}

/*
 * A partition has shown a later run, goes, and comes back under the same index: what it has shown is void, since the
 * tail of the earlier run is read again.
 */
TEST(core_hostile, an_epoch_waits_again_for_a_partition_that_came_back) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_parts(&s, 0, 3, false, 0, 0);
    s.in.epoch = 1;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 1, "a", 3);
    s.in.epoch = 2;
    stage_push(&s, 1, "a", 1);
    stage_push(&s, 0, "a", 2);
    CHECK_STR(stage_took(&s), "a1");
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 10);
    CHECK_STR(stage_took(&s), "revoked:a3 revoked:a1");
    CHECK_U64(stage_assign(&s, 0, 3, -1, 0, 0), 1);
    stage_push(&s, 2, "a", 3);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "");
    s.in.epoch = 1;
    stage_push(&s, 1, "a", 2);
    stage_push(&s, 1, "a", 3);
    s.in.epoch = 2;
    stage_push(&s, 1, "a", 1);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a2 a3 a1 a2 a3");
    stage_close(&s);
}

/*
 * Each time before a new id comes, the sessions that are the idlest by now get a record, so that none of them was idle
 * since it was looked at last: the limit of the number of sessions holds all the same.
 */
TEST(core_hostile, sessions_that_are_kept_alive_may_go_too) {
    enum { LIMIT = 200, IDS = 3000, EACH = 8 };
    static struct ledger l;
    static uint64_t next[IDS];
    unsalt_core_counters_t counters;
    char id[32];
    int status;
    ledger_init(&l, IDS);
    l.params.sessions_max = LIMIT;
    CHECK(ledger_open(&l));
    CHECK(ledger_assign(&l, &(unsalt_core_partition_t){.lane = -1}) == 0);
    for (uint32_t i = 0, turn = 0; i < IDS * (EACH + 1); i++) {
        uint32_t known = i / (EACH + 1), session = i % (EACH + 1) == EACH || !known ? known : turn++ % known;
        unsalt_core_in_t in = {.session = id, .session_len = ledger_id(session, 0, id), .seq = ++next[session],
                               .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ, .offset = i, .timestamp = -1, .bytes = 1};
        l.now++;
        CHECK_U64(ledger_push(&l, &session, &in, 1, NULL, &status), 1);
        unsalt_core_counters(l.core, &counters);
        CHECK_THAT(counters.sessions <= LIMIT, "%" PRIu64 " sessions", counters.sessions);
    }
    CHECK_THAT(ledger_rest(&l), "%s", l.why);
    CHECK_U64(l.back[UNSALT_STATE_RELEASED], IDS * (EACH + 1));
    CHECK_THAT(ledger_close(&l), "%s", l.why);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): windows, budgets, full queues, back-pressure. */
#include <stdio.h>
#include <support/check.h>
#include <support/prng.h>
#include <support/stage.h>

enum { W = 16 };

static void open_window(struct stage *s, unsalt_budget_policy_t policy) {
    stage_init(s);
    s->params.session_budget_records = W;
    s->params.budget_policy = policy;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
}

/* Pushes until it is taken. Returns how often it was refused. */
static unsigned push_until_taken(struct stage *s, uint32_t part, const char *session, uint64_t seq) {
    unsigned refused = 0;
    while (!stage_push(s, part, session, seq)) {
        CHECK_I64(s->status, UNSALT_CORE_PULL);
        CHECK_THAT(++refused < 10, "number %" PRIu64 " is refused for ever", seq);
        stage_pull(s, SIZE_MAX);
    }
    return refused;
}

/*
 * saltysystems/enet#1: a packet out of order, or beyond the window of 1,024, crashed the server. The window is one of
 * records here, not of numbers, so how far a number is ahead overflows nothing; too many records do, and give way.
 */
TEST(past_pressure, more_than_the_window_gives_way) {
    static const uint64_t over[] = {1, 2, W, 2 * W, 5 * W};
    for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
        struct stage s;
        open_window(&s, UNSALT_BUDGET_SKIP_GAP);
        for (uint64_t n = 0; n < W + over[i]; n++)
            push_until_taken(&s, 0, "a", 2 + 2 * n);
        CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_OVERFLOW], over[i]);
        CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_OVERFLOW], over[i]);
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], W);
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], over[i]);
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_LATE], 0);
        stage_close(&s);
    }
}

TEST(past_pressure, far_ahead_is_within_the_window) {
    static const uint64_t ahead[] = {W, W + 1, 2 * W, 1024, 1025, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1,
                                     UINT64_C(1) << 63, UINT64_MAX - 2};
    for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
        struct stage s;
        open_window(&s, UNSALT_BUDGET_BLOCK);
        stage_push(&s, 0, "a", 1);
        CHECK(stage_push(&s, 0, "a", 1 + ahead[i]));
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 1);
        CHECK(stage_push(&s, 0, "a", 2));
        CHECK_STR(stage_took(&s), "a1 a2");
        CHECK_U64(stage_counters(&s).budget_full[UNSALT_BUDGET_SESSION_RECORDS], 0);
        stage_close(&s);
    }
}

/* One budget of W, in records or in bytes, of one session or of all. */
static void open_budget(struct stage *s, unsalt_budget_t which, uint64_t limit) {
    stage_init(s);
    uint64_t *budgets[] = {&s->params.budget_records, &s->params.budget_bytes, &s->params.session_budget_records,
                           &s->params.session_budget_bytes};
    *budgets[which] = limit;
    s->params.budget_policy = UNSALT_BUDGET_BLOCK;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
    s->in.bytes = 1;
}

/* lidgren/lidgren-network-gen3#62: a message exactly at the end of the window was taken for one within. */
TEST(past_pressure, every_budget_ends_exactly_where_it_says) {
    for (int which = 0; which <= (int)UNSALT_BUDGET_SESSION_BYTES; which++) {
        struct stage s;
        open_budget(&s, (unsalt_budget_t)which, W);
        for (uint64_t n = 1; n <= W; n++) {
            CHECK(stage_push(&s, 0, "a", 1 + n));
            CHECK_U64(stage_counters(&s).budget_full[which], 0);
        }
        CHECK(!stage_push(&s, 0, "a", W + 2));
        CHECK_I64(s.status, UNSALT_CORE_BLOCKED);
        CHECK_U64(stage_counters(&s).budget_full[which], 1);
        CHECK(stage_push(&s, 0, "a", 1)); /* it makes room, and needs none */
        CHECK(stage_push(&s, 0, "a", W + 2));
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], W + 2);
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 0);
        stage_close(&s);
    }
}

/* The same for a budget of 1, the smallest there is. */
TEST(past_pressure, a_budget_of_one_holds_one) {
    for (int which = 0; which <= (int)UNSALT_BUDGET_SESSION_BYTES; which++) {
        struct stage s;
        open_budget(&s, (unsalt_budget_t)which, 1);
        CHECK(stage_push(&s, 0, "a", 2));
        CHECK(!stage_push(&s, 0, "a", 3));
        CHECK(stage_push(&s, 0, "a", 1));
        CHECK(stage_push(&s, 0, "a", 3));
        CHECK_STR(stage_took(&s), "a1 a2 a3");
        stage_close(&s);
    }
}

/*
 * mtcp-stack/mtcp#11: room was counted from the wrong place once there were holes, and what would have fitted was
 * refused. Bytes against a count of our own, with holes that open and close at random.
 */
TEST(past_pressure, what_exactly_fits_is_taken) {
    enum { LIMIT = 1000, NUMBERS = 4000 };
    static bool here[NUMBERS + 100];
    static uint32_t size[NUMBERS + 100];
    struct prng prng = prng_start(0x11);
    struct stage s;
    open_budget(&s, UNSALT_BUDGET_BYTES, LIMIT);
    uint64_t cursor = 1, held = 0, exact = 0;
    memset(here, 0, sizeof(here));
    while (cursor < NUMBERS) {
        uint64_t seq = cursor + prng_below(&prng, 20);
        if (here[seq])
            continue;
        uint64_t room = LIMIT - held;
        s.in.bytes = prng_below(&prng, 3) && room ? (uint32_t)room : 1 + (uint32_t)prng_below(&prng, 200);
        bool fits = seq == cursor || held == 0 || s.in.bytes <= room;
        CHECK_THAT(stage_push(&s, 0, "a", seq) == fits, "%u bytes of %" PRIu64 ", number %" PRIu64 " at %" PRIu64,
                   s.in.bytes, room, seq, cursor);
        s.took[0] = s.said[0] = '\0';
        if (!fits)
            continue;
        exact += seq != cursor && s.in.bytes == room;
        here[seq] = true;
        size[seq] = seq == cursor ? 0 : s.in.bytes;
        held += size[seq];
        for (; here[cursor]; cursor++)
            held -= size[cursor];
        CHECK_U64(stage_counters(&s).held_bytes, held);
    }
    CHECK_THAT(exact > 20, "only %" PRIu64 " records fitted exactly", exact);
    stage_close(&s);
}

/* aeron-io/aeron#541: a slow subscriber that couldn't keep up lost ten seconds, not what was missing. */
TEST(past_pressure, an_overflow_costs_the_gap_and_no_more) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 6;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    for (uint64_t seq = 5; seq <= 10; seq++)
        stage_push(&s, 0, "a", seq);
    push_until_taken(&s, 0, "a", 12);
    push_until_taken(&s, 0, "a", 13);
    CHECK_STR(stage_took(&s), "a1 a5! a6 a7 a8 a9 a10");
    CHECK_STR(stage_said(&s), "budget: gap:a2-4:overflow");
    stage_push(&s, 0, "a", 11);
    CHECK_STR(stage_took(&s), "a11 a12 a13");
    stage_close(&s);
}

/*
 * DPDK/dpdk, rte_reorder as its source reads: when the ring of what is ready is exactly full after a forced flush, a
 * record that was accepted never comes out. Here with room for one less, just enough and one more.
 */
TEST(past_pressure, room_for_exactly_what_is_ready) {
    for (size_t ready = 1; ready <= 66; ready++)
        for (size_t room = ready > 1 ? ready - 1 : 1; room <= ready + 1; room++) {
            struct stage s;
            stage_init(&s);
            s.params.release_max = 1 + (uint32_t)(ready % 7);
            s.lazy = true;
            stage_open(&s);
            stage_parts(&s, 0, 1, false, 0, 0);
            for (uint64_t seq = 2; seq < 2 + ready; seq++)
                stage_push(&s, 0, "a", seq);
            unsalt_core_flush(s.core, s.now);
            CHECK_U64(stage_pull(&s, room), room < ready ? room : ready);
            stage_push(&s, 0, "a", 2 + ready);
            stage_pull(&s, SIZE_MAX);
            CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], ready + 1);
            CHECK_U64(s.last.seq, 2 + ready);
            stage_close(&s);
        }
}

/* The queue of events holds 256: a flush of about that many gaps loses neither a gap nor a record. */
TEST(past_pressure, a_queue_of_events_that_is_exactly_full) {
    for (uint32_t gaps = 240; gaps <= 264; gaps++) {
        struct stage s;
        stage_default(&s, 1);
        s.lazy = true;
        char name[16];
        for (uint32_t i = 0; i < gaps; i++) {
            snprintf(name, sizeof(name), "s%u", i);
            stage_push(&s, 0, name, 2);
        }
        uint64_t said = 0;
        unsalt_core_event_t events[300];
        do { /* nobody reads them during a flush */
            unsalt_core_flush(s.core, s.now);
            stage_pull(&s, 1);
            unsalt_core_flush(s.core, s.now);
            size_t n = unsalt_core_events(s.core, events, 300);
            said += n;
            CHECK(n <= 256);
            stage_pull(&s, SIZE_MAX);
        } while (stage_counters(&s).state[UNSALT_STATE_HELD]);
        unsalt_core_counters_t c = stage_counters(&s);
        CHECK_U64(c.gaps[UNSALT_GAP_FLUSH], gaps);
        CHECK_U64(c.state[UNSALT_STATE_RELEASED], gaps);
        CHECK_THAT(said <= gaps, "%" PRIu64 " events of %u gaps", said, gaps);
        stage_close(&s);
    }
}

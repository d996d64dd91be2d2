/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What public reports of other projects teach, as stories of this library: gaps. Each test names its report;
 * docs/past.md says what happened there, and where this library decides otherwise.
 */
#include <stdio.h>
#include <support/check.h>
#include <support/prng.h>
#include <support/stage.h>

/* Everything that is missing is given up by the clock. */
static void give_up(struct stage *s, uint32_t last_part) {
    stage_wait(s, 500 * MS);
    stage_horizon(s, 0, last_part);
}

/* awslabs/amazon-kinesis-video-streams-webrtc-sdk-c#1571: after one missing number nothing was ever passed on. */
TEST(past_gaps, one_missing_number_costs_that_number) {
    static const char *const took[] = {"a2! a3 a4 a5 a6 a7 a8 a9", "a1 a2 a3 a4 a6! a7 a8 a9",
                                       "a1 a2 a3 a4 a5 a6 a7 a9!"};
    static const char *const said[] = {"gap:a1-1:timeout", "gap:a5-5:timeout", "gap:a8-8:timeout"};
    static const uint64_t lost[] = {1, 5, 8};
    for (int i = 0; i < 3; i++) {
        struct stage s;
        stage_default(&s, 1);
        for (uint64_t seq = 1; seq <= 9; seq++)
            if (seq != lost[i])
                stage_push(&s, 0, "a", seq);
        give_up(&s, 0);
        CHECK_STR(stage_said(&s), said[i]);
        CHECK_STR(stage_took(&s), took[i]);
        stage_push(&s, 0, "a", 10);
        CHECK_STR(stage_took(&s), "a10");
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 9);
        stage_close(&s);
    }
}

/* The same with many holes: each costs itself, and the session goes on after each. */
TEST(past_gaps, many_missing_numbers_cost_those_numbers) {
    struct stage s;
    stage_default(&s, 1);
    uint64_t released = 0;
    for (uint64_t seq = 1; seq <= 3000; seq++) {
        if (seq % 3 == 0)
            continue;
        stage_push(&s, 0, "a", seq);
        released++;
        if (seq % 300 == 1)
            give_up(&s, 0);
        s.took[0] = s.said[0] = '\0';
    }
    give_up(&s, 0);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], released);
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_TIMEOUT], 999); /* nothing has shown 3000 */
    CHECK_U64(s.last.seq, 2999);
    stage_close(&s);
}

/* bluenviron/mediamtx#6188: a buffer that only counts makes a slow stream wait long: 64 records, at whatever rate. */
TEST(past_gaps, the_wait_depends_on_time_and_not_on_the_rate) {
    static const uint64_t every[] = {20 * SEC, SEC, 100 * MS, 10 * MS, MS};
    for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
        struct stage s;
        stage_init(&s);
        s.params.gap_clock = UNSALT_CLOCK_WALL;
        stage_open(&s);
        stage_parts(&s, 0, 1, false, 0, 0);
        stage_push(&s, 0, "a", 1);
        stage_push(&s, 0, "a", 3);
        uint64_t opened = s.now, next = s.now + every[i], seq = 4;
        while (!stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT]) {
            uint64_t deadline = unsalt_core_deadline(s.core);
            bool arrival = next < deadline;
            s.now = arrival ? next : deadline;
            if (arrival) {
                stage_push(&s, 0, "a", seq++);
                next += every[i];
            }
            stage_expire(&s);
        }
        CHECK_U64(s.now - opened, 500 * MS);
        stage_close(&s);
    }
}

/* rolker/udp_bridge#35: what came a few milliseconds late was dropped by the gate, though its turn had not passed. */
TEST(past_gaps, late_within_the_wait_is_in_order) {
    static const uint64_t after[] = {0, MS, 499 * MS, 500 * MS - 1, 500 * MS, 40 * SEC};
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        struct stage s;
        stage_default(&s, 2);
        stage_push(&s, 0, "a", 2);
        stage_push(&s, 0, "a", 3);
        stage_wait(&s, after[i]); /* past the due time too: partition 1 was not read that far */
        unsalt_core_horizon(s.core, 0, s.now, s.now);
        stage_expire(&s);
        stage_push(&s, 1, "a", 1);
        CHECK_STR(stage_took(&s), "a1 a2 a3");
        CHECK_STR(stage_said(&s), "");
        stage_close(&s);
    }
}

static void swap(uint64_t *a, uint64_t *b) {
    uint64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Pushes a permutation, over `parts` partitions, and looks at what comes out. */
static void play_permutation(const uint64_t *numbers, size_t n, uint32_t parts, bool lanes) {
    static const char *const wanted[] = {"", "a1", "a1 a2", "a1 a2 a3", "a1 a2 a3 a4", "a1 a2 a3 a4 a5",
                                         "a1 a2 a3 a4 a5 a6", "a1 a2 a3 a4 a5 a6 a7"};
    struct stage s;
    stage_default(&s, parts);
    s.in.lanes = lanes ? (uint16_t)parts : 0;
    for (size_t i = 0; i < n; i++) {
        if (lanes)
            stage_push_lane(&s, (uint32_t)(numbers[i] % parts), "a", numbers[i]);
        else
            stage_push(&s, (uint32_t)(i % parts), "a", numbers[i]);
    }
    CHECK_STR(stage_took(&s), wanted[n]);
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

/* svpcom/wfb-ng#3: after packets had come in another order, the higher one was never passed on. Heap's algorithm. */
TEST(past_gaps, every_permutation_of_up_to_seven_comes_out_in_order) {
    unsigned played = 0;
    for (size_t n = 1; n <= 7; n++) {
        uint64_t numbers[7] = {1, 2, 3, 4, 5, 6, 7};
        size_t state[7] = {0};
        play_permutation(numbers, n, 1, false);
        played++;
        for (size_t i = 0; i < n;) {
            if (state[i] >= i) {
                state[i++] = 0;
                continue;
            }
            swap(&numbers[i % 2 ? state[i] : 0], &numbers[i]);
            play_permutation(numbers, n, 1 + played % 3, played % 2);
            played++;
            state[i]++;
            i = 0;
        }
    }
    CHECK_U64(played, 1 + 2 + 6 + 24 + 120 + 720 + 5040);
}

/*
 * A manual warns of it (spring-projects/spring-integration, expire-group-upon-timeout): after one timeout a group
 * either drops all that follows, or comes again without its beginning and is never complete.
 */
TEST(past_gaps, a_session_lives_on_after_its_gaps) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    give_up(&s, 0);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a2! late:a1");
    for (uint64_t round = 0, seq = 3; round < 50; round++, seq += 3) {
        stage_push(&s, 0, "a", seq);
        stage_push(&s, 0, "a", seq + 2); /* one in three is missing */
        give_up(&s, 0);
        stage_push(&s, 0, "a", seq + 1);
        s.took[0] = s.said[0] = '\0';
        CHECK_U64(s.last.seq, seq + 1);
        CHECK_U64(s.last.state, UNSALT_STATE_LATE);
    }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 101);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_LATE], 51);
    CHECK_U64(stage_counters(&s).sessions_created, 1);
    CHECK_U64(stage_counters(&s).restarts, 0);
    stage_close(&s);
}

static void cursor_stands_below_what_is_held(const struct stage *s) {
    unsalt_core_session_info_t info;
    if (unsalt_core_session_info(s->core, 0, "a", 1, &info) != UNSALT_CORE_OK || info.cursor == UNSALT_NO_SEQ)
        return;
    CHECK_THAT(info.cursor <= info.lowest, "cursor %" PRIu64 " is above %" PRIu64, info.cursor, info.lowest);
    CHECK_THAT(info.ready == (info.cursor == info.lowest), "at %" PRIu64 " ready is %d", info.cursor, info.ready);
}

/*
 * telekom/mp-dccp#63: loss detection put the next expected number far ahead, and all that came was late. The cursor
 * may not pass what is held, by whatever verdict it moves.
 */
TEST(past_gaps, no_verdict_moves_the_cursor_past_what_is_held) {
    struct prng prng = prng_start(0x63);
    for (int round = 0; round < 60; round++) {
        struct stage s;
        stage_init(&s);
        s.params.gap_proof = (unsalt_gap_proof_t)(round % 3);
        s.params.session_budget_records = 4 + prng_below(&prng, 20);
        s.params.restart_k = 1000;
        s.lazy = round & 1;
        stage_open(&s);
        stage_parts(&s, 0, 2, true, 0, 0);
        s.in.lanes = 2;
        for (uint64_t at = 1; at < 200; at += prng_below(&prng, 4)) {
            uint64_t seq = at + prng_below(&prng, 8);
            s.in.una = prng_below(&prng, 3) ? at / 2 : UNSALT_NO_SEQ;
            s.in.kind = prng_below(&prng, 9) ? UNSALT_KIND_SEQUENCED : UNSALT_KIND_CONTROL;
            s.in.flags = s.in.kind == UNSALT_KIND_CONTROL ? UNSALT_F_MARKER : 0;
            s.in.since = s.in.flags ? seq - prng_below(&prng, seq < 4 ? seq : 4) : 1;
            while (!stage_push_lane(&s, (uint32_t)(seq % 2), "a", seq))
                stage_pull(&s, 1);
            cursor_stands_below_what_is_held(&s);
            if (prng_below(&prng, 10) == 0)
                give_up(&s, 1);
            if (prng_below(&prng, 40) == 0)
                unsalt_core_flush(s.core, s.now);
            cursor_stands_below_what_is_held(&s);
            stage_pull(&s, prng_below(&prng, 3));
            s.took[0] = s.said[0] = '\0';
        }
        s.lazy = false;
        stage_close(&s);
    }
}

/* Memory and calls of the allocator that a jump of this size costs, right behind the first number. */
static uint64_t price_of_jump(uint64_t by, size_t *peak) {
    struct stage s;
    char said[128];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 2 + by);
    stage_push(&s, 0, "a", 3 + by);
    give_up(&s, 0);
    snprintf(said, sizeof(said), "gap:a2-%" PRIu64 ":timeout", 1 + by);
    CHECK_STR(stage_said(&s), said);
    for (uint64_t seq = 4; seq < 20; seq++)
        stage_push(&s, 0, "a", seq + by);
    CHECK_U64(s.last.seq, 19 + by);
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_TIMEOUT], by);
    CHECK_U64(stage_counters(&s).in_order, 17);
    uint64_t calls = s.mem.calls;
    *peak = s.mem.peak;
    stage_close(&s);
    return calls;
}

/*
 * livekit/media-sdk#29, livekit/livekit#4150: a jump by more than 1,000 right at the start spoiled the state. Any
 * jump is one gap, and costs what a gap of one costs.
 */
TEST(past_gaps, a_jump_costs_the_same_however_far_it_is) {
    static const uint64_t jumps[] = {999,  1000, 1001, 65535, 65536, 1000000, UINT64_C(1) << 32,
                                     UINT64_C(1) << 63, UINT64_MAX - 40};
    size_t one_peak, peak;
    uint64_t one = price_of_jump(1, &one_peak);
    for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        CHECK_U64(price_of_jump(jumps[i], &peak), one);
        CHECK_U64(peak, one_peak);
    }
}

static void mark(struct stage *s, const char *session, uint64_t first, uint64_t last) {
    unsalt_core_in_t plain = s->in;
    s->in.kind = UNSALT_KIND_CONTROL;
    s->in.flags = UNSALT_F_MARKER;
    s->in.since = first;
    stage_push(s, 0, session, last);
    s->in = plain;
}

/*
 * OISF/suricata#2696: a gap behind which nothing comes is never reported. A marker says that there is one: it is told
 * when the session leaves the memory. Of numbers that nothing speaks of nobody can know whether they were ever given.
 */
TEST(past_gaps, a_gap_at_the_end_of_a_session_is_told_if_anything_tells_of_it) {
    struct stage s;
    stage_init(&s);
    s.params.session_ttl_ns = 10 * SEC;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "c", 1);
    mark(&s, "a", 2, 4);
    mark(&s, "c", 3, 4); /* 2 may still come */
    stage_took(&s);
    stage_wait(&s, 9 * SEC);
    CHECK_STR(stage_said(&s), "");
    stage_wait(&s, 11 * SEC);
    CHECK_STR(stage_said(&s), "gap:a2-4:marker");
    CHECK_U64(s.event.waited_ns, 20 * SEC);
    CHECK_U64(stage_counters(&s).gap_numbers[UNSALT_GAP_MARKER], 3);
    CHECK_U64(stage_counters(&s).sessions, 0);
    for (uint64_t seq = 2; seq <= 5; seq++) /* they come all the same: a marker skips nothing that does */
        stage_push(&s, 0, "a", seq);
    CHECK_STR(stage_took(&s), "a2 a3 a4 a5");
    stage_close(&s);
}

/* A marker that comes all the same after the end is over, and one below the end of all, say nothing. */
TEST(past_gaps, the_end_of_a_session_by_its_last_record) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    mark(&s, "a", 2, 3);
    s.in.flags = UNSALT_F_LAST;
    stage_push(&s, 0, "a", 4);
    CHECK_STR(stage_said(&s), "gap:a2-3:marker");
    CHECK_STR(stage_took(&s), "a1 control:a3 a4!");
    CHECK_U64(stage_counters(&s).sessions, 0);
    mark(&s, "a", 2, 3);
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

/* Counts the verdicts among the events. */
static uint64_t read_gaps(unsalt_core_t *core) {
    unsalt_core_event_t events[256];
    uint64_t gaps = 0;
    for (size_t n; (n = unsalt_core_events(core, events, 256)) > 0;)
        for (size_t i = 0; i < n; i++)
            gaps += events[i].type == UNSALT_CORE_EV_GAP;
    return gaps;
}

/* Session number `i`: its first record, or a marker that covers the second one. Returns whether it was taken. */
static bool push_raw(struct stage *s, int i, bool marker) {
    char name[16];
    unsalt_core_out_t out[2];
    size_t n_out;
    int status;
    int length = snprintf(name, sizeof(name), "s%d", i);
    unsalt_core_in_t in = {.session = name, .session_len = (uint32_t)length, .seq = 1, .since = 1, .offset = 2 * i,
                           .una = UNSALT_NO_SEQ, .flags = UNSALT_F_FIRST, .bytes = 1};
    if (marker) {
        in.kind = UNSALT_KIND_CONTROL;
        in.flags = UNSALT_F_MARKER;
        in.seq = in.since = 2;
        in.offset++;
    }
    size_t took = unsalt_core_push(s->core, &in, 1, s->now, out, &n_out, &status);
    CHECK(took || status == UNSALT_CORE_PULL);
    unsalt_core_pull(s->core, s->now, out, 2); /* once one was forgotten, they start by `seen` */
    return took;
}

/* The same when sessions must go because they are too many, and nobody reads the events before they are full. */
TEST(past_gaps, gaps_at_the_ends_of_sessions_that_make_room) {
    enum { SESSIONS = 600 };
    struct stage s;
    uint64_t told = 0;
    stage_init(&s);
    s.params.sessions_max = 1;
    s.params.remembered_max = 0;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    for (int i = 0; i < SESSIONS; i++)
        for (int marker = 0; marker < 2; marker++)
            while (!push_raw(&s, i, marker))
                told += read_gaps(s.core);
    told += read_gaps(s.core);
    unsalt_core_counters_t c = stage_counters(&s);
    CHECK_U64(told, c.gaps[UNSALT_GAP_MARKER]);
    CHECK_U64(told, c.sessions_expired);
    CHECK_THAT(c.sessions <= 2 && told + c.sessions == SESSIONS, "%" PRIu64 " sessions", c.sessions);
    stage_close(&s);
}

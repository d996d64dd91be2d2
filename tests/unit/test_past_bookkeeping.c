/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): what may be committed, and what it costs to know. */
#include <stdlib.h>
#include <support/check.h>
#include <support/prng.h>
#include <support/stage.h>

/* ---- each way out */

/* Nothing but `late` differs: what becomes of a late and a stale record. */
static void open_ways(struct stage *s, unsalt_late_t late, unsalt_malformed_t malformed) {
    stage_init(s);
    s->params.late = late;
    s->params.malformed = malformed;
    s->params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
    s->ack = true;
}

static void push_kind(struct stage *s, unsalt_kind_t kind, uint64_t epoch, uint64_t seq) {
    s->in.kind = (uint16_t)kind;
    s->in.epoch = epoch;
    CHECK(stage_push(s, 0, "a", seq));
    CHECK_I64(unsalt_core_position(s->core, 0), s->next[0]);
}

/*
 * spring-projects/spring-kafka#2677, spring-projects/spring-kafka#2678: a record that failed went round the
 * bookkeeping of ordered commits, so its place stayed open. Every way in which a record can leave closes its place
 * here.
 */
TEST(past_bookkeeping, every_way_out_closes_its_place) {
    for (int late = UNSALT_LATE_DELIVER; late <= UNSALT_LATE_DROP; late++)
        for (int malformed = UNSALT_MALFORMED_DELIVER; malformed <= UNSALT_MALFORMED_DEAD_LETTER; malformed++) {
            struct stage s;
            open_ways(&s, (unsalt_late_t)late, (unsalt_malformed_t)malformed);
            push_kind(&s, UNSALT_KIND_SEQUENCED, 5, 1);  /* released */
            push_kind(&s, UNSALT_KIND_SEQUENCED, 5, 1);  /* a copy of it */
            push_kind(&s, UNSALT_KIND_SEQUENCED, 4, 9);  /* stale */
            push_kind(&s, UNSALT_KIND_SEQUENCED, 5, 0);  /* malformed */
            push_kind(&s, UNSALT_KIND_MALFORMED, 5, 7);  /* so the caller says */
            push_kind(&s, UNSALT_KIND_UNSEQUENCED, 0, 0);
            push_kind(&s, UNSALT_KIND_CONTROL, 0, 0);
            s.in.flags = UNSALT_F_MARKER;
            push_kind(&s, UNSALT_KIND_CONTROL, 5, 3);
            s.in.flags = 0;
            s.in.kind = UNSALT_KIND_SEQUENCED;
            s.in.epoch = 5;
            stage_push(&s, 0, "a", 5);
            stage_push(&s, 0, "a", 5); /* a copy of what is held */
            CHECK_I64(unsalt_core_position(s.core, 0), 8);
            stage_wait(&s, 500 * MS);
            CHECK_I64(unsalt_core_position(s.core, 0), 10);
            push_kind(&s, UNSALT_KIND_SEQUENCED, 5, 4); /* late */
            s.next[0] = 3;
            stage_push(&s, 0, "a", 6); /* fenced */
            CHECK_I64(unsalt_core_position(s.core, 0), 11);
            CHECK_U64(stage_counters(&s).unacked, 0);
            s.next[0] = 11;
            stage_close(&s);
        }
}

/* ---- holes in the offsets */

enum { PLACES = 4 };

/* Acknowledges four records in the order that the digits of `order` say, and looks at the position after each. */
static void ack_in_order(const int64_t *offsets, unsigned order) {
    struct stage s;
    uint64_t tickets[PLACES];
    bool done[PLACES] = {false};
    stage_default(&s, 1);
    for (int i = 0; i < PLACES; i++) {
        s.next[0] = offsets[i];
        stage_push(&s, 0, "a", (uint64_t)i + 1);
        tickets[i] = s.last.ticket;
    }
    for (int n = 0; n < PLACES; n++, order /= 10) {
        unsigned which = order % 10;
        CHECK_I64(unsalt_core_ack(s.core, 0, s.last.generation, tickets[which]), UNSALT_CORE_OK);
        done[which] = true;
        int lowest = 0;
        while (lowest < PLACES && done[lowest])
            lowest++;
        CHECK_I64(unsalt_core_position(s.core, 0), lowest < PLACES ? offsets[lowest] : offsets[PLACES - 1] + 1);
    }
    unsalt_core_eof(s.core, 0, offsets[PLACES - 1] + 2, s.now); /* a control record stands behind the last one */
    CHECK_I64(unsalt_core_position(s.core, 0), offsets[PLACES - 1] + 2);
    stage_close(&s);
}

/*
 * spring-projects/spring-kafka#4258: on a transactional topic the offsets were 0, 2, 4, 6, and a check for "one
 * above" was never true, so that a paused consumer stayed paused. In every order, with every kind of hole.
 */
TEST(past_bookkeeping, offsets_with_holes_in_every_order_of_acknowledgement) {
    static const int64_t layouts[][PLACES] = {{0, 1, 2, 3}, {0, 2, 4, 6}, {0, 1, 5, 100}, {7, 9, 10, 12},
                                              {1, 1000000, INT64_C(1) << 40, INT64_MAX - 3}};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        for (unsigned order = 123; order <= 3210; order++) {
            unsigned seen = 0;
            for (unsigned rest = order, n = 0; n < PLACES; n++, rest /= 10)
                seen |= 1u << rest % 10;
            if (seen == 0xf)
                ack_in_order(layouts[i], order);
        }
}

/* ---- a record that was read but not handed out isn't done */

enum { SCRIPT = 12 };
static const uint64_t script[SCRIPT] = {2, 1, 4, 5, 3, 8, 7, 6, 10, 9, 12, 11};

/* Marks what was handed out since the last look, late or not. */
static void note_handed(struct stage *s, bool *handed) {
    char *rest = NULL, text[STAGE_TEXT];
    memcpy(text, stage_took(s), sizeof(text));
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        bool late = strncmp(word, "late:", 5) == 0;
        word += late ? 5 : 0;
        if (*word == 'a')
            handed[strtoul(word + 1, NULL, 10)] = true;
    }
}

/* Steps are pushes and pulls of one record, in turn. */
static void play(struct stage *s, unsigned from, unsigned steps, bool *handed) {
    for (unsigned i = 0; i < steps && from + i / 2 < SCRIPT; i++) {
        if (i % 2)
            stage_pull(s, 1);
        else
            stage_push(s, 0, "a", script[from + i / 2]);
        note_handed(s, handed);
    }
}

/*
 * confluentinc/parallel-consumer#826, confluentinc/parallel-consumer#827: "highest seen" was committed although the
 * record was only queued, and a revoke right then lost it. The revoke comes here after every step there is.
 */
TEST(past_bookkeeping, a_revoke_at_any_step_loses_nothing) {
    for (unsigned steps = 0; steps <= 2 * SCRIPT; steps++) {
        struct stage s;
        bool handed[SCRIPT + 1] = {true};
        stage_default(&s, 1);
        s.ack = true;
        s.lazy = true;
        play(&s, 0, steps, handed);
        int64_t committed = unsalt_core_position(s.core, 0);
        for (int64_t i = 0; i < committed; i++)
            CHECK_THAT(handed[script[i]], "%" PRIu64 " is committed, and was not handed out", script[i]);
        CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
        stage_pull(&s, SIZE_MAX);
        note_handed(&s, handed);
        stage_assign(&s, 0, 1, -1, committed, 0);
        play(&s, (unsigned)committed, 2 * SCRIPT, handed);
        stage_flush(&s);
        stage_pull(&s, SIZE_MAX);
        note_handed(&s, handed);
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
        for (uint64_t seq = 1; seq <= SCRIPT; seq++)
            CHECK_THAT(handed[seq], "revoked after step %u: number %" PRIu64 " was never handed out", steps, seq);
        stage_close(&s);
    }
}

/* ---- what it costs */

/* n records of one session in order, none acknowledged; `calls` and `bytes` of the allocator that it took. */
static unsalt_core_t *open_unacked(struct failmem *mem, uint64_t n) {
    static unsalt_core_in_t in[256];
    static unsalt_core_out_t out[256];
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.mem = mem->mem;
    unsalt_core_t *core = unsalt_core_new(&params, NULL, 0);
    unsalt_core_partition_t partition = {.set_size = 1, .lane = -1};
    CHECK(core && unsalt_core_assign(core, &partition) == 0);
    for (uint64_t done = 0; done < n;) {
        size_t count = 0, n_out = 0;
        int status;
        for (; count < 256 && done < n; count++, done++)
            in[count] = (unsalt_core_in_t){.session = "a", .session_len = 1, .seq = done + 1, .offset = (int64_t)done,
                                           .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ, .bytes = 100};
        CHECK_U64(unsalt_core_push(core, in, count, SEC, out, &n_out, &status), count);
        CHECK_U64(n_out, count);
    }
    return core;
}

/*
 * reactor/reactor-kafka#300, reactor/reactor-kafka#299: each acknowledgement looked through all that were open, so
 * 100,000 of them left 3,000 records a second. In no order at all, the work here is one step each: the time limit is
 * the test, and the memory, which is a bit each.
 */
TEST(past_bookkeeping, a_million_open_acknowledgements_cost_a_step_each) {
    static const uint64_t sizes[] = {100000, 1000000};
    for (int i = 0; i < 2; i++) {
        struct failmem mem;
        failmem_init(&mem);
        uint64_t n = sizes[i], stride = 7919 * 13; /* no common factor with n */
        unsalt_core_t *core = open_unacked(&mem, n);
        CHECK_THAT(mem.bytes < 80000 + n / 2, "%zu bytes for %" PRIu64 " records", mem.bytes, n);
        uint64_t calls = mem.calls;
        uint32_t generation = unsalt_core_generation(core, 0);
        for (uint64_t k = 1, ticket = stride % n; k < n; k++, ticket = (ticket + stride) % n)
            CHECK_I64(unsalt_core_ack(core, 0, generation, ticket), UNSALT_CORE_OK);
        CHECK_I64(unsalt_core_position(core, 0), 0); /* ticket 0 is the last of the walk */
        CHECK_I64(unsalt_core_ack(core, 0, generation, 0), UNSALT_CORE_OK);
        CHECK_I64(unsalt_core_position(core, 0), (int64_t)n);
        CHECK_U64(mem.calls, calls);
        unsalt_core_destroy(core);
        CHECK(failmem_is_balanced(&mem));
    }
}

/* The same for what is held: numbers in no order, the first one last. */
TEST(past_bookkeeping, a_hundred_thousand_held_in_no_order) {
    enum { N = 200000 };
    struct stage s;
    stage_default(&s, 1);
    s.lazy = true;
    for (uint64_t k = 1, seq = 7919 % N; k < N; k++, seq = (seq + 7919) % N)
        CHECK(stage_push(&s, 0, "a", 1 + seq));
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], N - 1);
    CHECK(stage_push(&s, 0, "a", 1));
    for (uint64_t next = 2; next <= N; next += 1000) {
        stage_pull(&s, 1000);
        s.took[0] = '\0';
    }
    CHECK_U64(s.last.seq, N);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], N);
    stage_close(&s);
}

/* ---- counters */

enum { OPEN_MAX = 4096 };
struct open_list {
    unsalt_core_out_t out[OPEN_MAX];
    size_t count;
};

/* Pushes one record of partition `part`; what comes out joins the list. */
static void push_one(unsalt_core_t *core, uint32_t part, uint64_t seq, int64_t offset, struct open_list *list) {
    unsalt_core_in_t in = {.session = "a", .session_len = 1, .part = part, .seq = seq, .offset = offset,
                           .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ};
    unsalt_core_out_t out[8];
    size_t n = 0;
    int status;
    CHECK_U64(unsalt_core_push(core, &in, 1, SEC, out, &n, &status), 1);
    n += unsalt_core_pull(core, SEC, out + n, 8 - n);
    for (size_t i = 0; i < n; i++)
        if (unsalt_state_handed_out((unsalt_state_t)out[i].state))
            list->out[list->count++] = out[i];
    unsalt_core_event_t events[64];
    while (unsalt_core_events(core, events, 64)) {
    }
}

/* Takes one at random out of the list and acknowledges it. */
static void ack_one(unsalt_core_t *core, struct open_list *list, struct prng *prng) {
    if (list->count == 0)
        return;
    size_t at = prng_below(prng, list->count);
    unsalt_core_out_t out = list->out[at];
    list->out[at] = list->out[--list->count];
    CHECK_I64(unsalt_core_ack(core, out.part, out.generation, out.ticket), UNSALT_CORE_OK);
}

static void revoke(unsalt_core_t *core, uint32_t part, struct open_list *list) {
    unsalt_core_out_t out[64];
    CHECK_I64(unsalt_core_revoke(core, part, SEC), UNSALT_CORE_OK);
    while (unsalt_core_pull(core, SEC, out, 64)) {
    }
    for (size_t i = 0; i < list->count;)
        if (list->out[i].part == part)
            list->out[i] = list->out[--list->count];
        else
            i++;
}

/*
 * astubbs/parallel-consumer#155, confluentinc/parallel-consumer#402: a counter of records in flight leaked until
 * everything stood still at "100 of 100". Ours equals the real number after each step, whatever was revoked, copied
 * or acknowledged.
 */
TEST(past_bookkeeping, the_counter_of_what_is_in_flight_is_exact) {
    static struct open_list list;
    struct prng prng = prng_start(0x155);
    unsalt_core_params_t params;
    unsalt_core_partition_t partition = {.set_size = 2, .lane = -1};
    unsalt_core_params_init(&params);
    params.gap_clock = UNSALT_CLOCK_WALL;
    unsalt_core_t *core = unsalt_core_new(&params, NULL, 0);
    CHECK(core && unsalt_core_assign(core, &partition) == 0 && unsalt_core_assign(core, &partition) == 1);
    uint64_t next = 1;
    int64_t offsets[2] = {0, 0};
    list.count = 0;
    for (int step = 0; step < 20000; step++) {
        uint32_t part = (uint32_t)prng_below(&prng, 2);
        uint64_t dice = prng_below(&prng, 100);
        if (dice < 45 && list.count < OPEN_MAX - 64) {
            uint64_t seq = dice < 30 ? next++ : 1 + prng_below(&prng, next + 3);
            push_one(core, part, seq, offsets[part]++, &list);
        } else if (dice < 99) {
            ack_one(core, &list, &prng);
        } else {
            revoke(core, part, &list);
            partition.start_offset = offsets[part];
            CHECK_I64(unsalt_core_assign(core, &partition), part);
        }
        unsalt_core_counters_t c;
        unsalt_core_counters(core, &c);
        CHECK_U64(c.unacked, list.count);
    }
    unsalt_core_destroy(core);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A producer that goes back without a higher epoch: what it sends then must not pass for copies, and copies must not
 * pass for a restart. The creation time of a record tells them apart.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/drive.h>
#include <support/failmem.h>

enum { LANES = 6, MOST = 400 };

struct entry {
    uint64_t seq;
    int64_t timestamp;
    uint32_t part;
    bool copy, second; /* a copy of an earlier record; of the second run */
    int state;         /* -1 = not back */
};

struct sim {
    struct failmem mem;
    unsalt_core_t *core;
    struct prng prng;
    uint64_t now;
    unsigned lanes, told;
    struct entry entries[4 * MOST];
    size_t n;
    int64_t next[LANES];
    uint64_t released; /* last number, of the run that is being released */
    bool any;
    unsigned restarts, descents;
};

static void take_out(struct sim *sim, const unsalt_core_out_t *out) {
    struct entry *entry = out->msg;
    CHECK_THAT(entry->state == -1, "number %" PRIu64 " came back twice", entry->seq);
    entry->state = out->state;
    if (out->state != UNSALT_STATE_RELEASED)
        return;
    if (sim->any && out->seq <= sim->released)
        sim->descents++;
    CHECK_THAT(sim->descents <= sim->restarts, "number %" PRIu64 " released after %" PRIu64 " without a restart",
               out->seq, sim->released);
    sim->released = out->seq;
    sim->any = true;
}

static void settle(struct sim *sim) {
    unsalt_core_event_t events[64];
    unsalt_core_out_t out[64];
    size_t n, moved;
    do {
        moved = 0;
        if (unsalt_core_deadline(sim->core) <= sim->now)
            unsalt_core_expire(sim->core, sim->now);
        while ((n = unsalt_core_events(sim->core, events, 64)) > 0)
            for (size_t i = 0; i < n; i++, moved++)
                sim->restarts += events[i].type == UNSALT_CORE_EV_RESTART;
        while ((n = unsalt_core_pull(sim->core, sim->now, out, 64)) > 0)
            for (size_t i = 0; i < n; i++, moved++)
                take_out(sim, &out[i]);
    } while (moved);
    CHECK(unsalt_core_conserved(sim->core));
}

static void push(struct sim *sim, struct entry what) {
    struct entry *entry = &sim->entries[sim->n++];
    *entry = what;
    entry->state = -1;
    unsalt_core_in_t in = {.msg = entry,
                           .session = "s",
                           .session_len = 1,
                           .part = what.part,
                           .seq = what.seq,
                           .since = UNSALT_NO_SEQ,
                           .una = UNSALT_NO_SEQ,
                           .offset = sim->next[what.part]++,
                           .timestamp = what.timestamp,
                           .bytes = 10};
    if (sim->told) {
        in.lanes = (uint16_t)sim->lanes;
        in.lane = (uint16_t)(what.seq % sim->lanes);
        in.since = 1;
    }
    unsalt_core_out_t out;
    size_t n_out;
    int status;
    CHECK_U64(unsalt_core_push(sim->core, &in, 1, sim->now, &out, &n_out, &status), 1);
    unsalt_core_event_t event;
    while (unsalt_core_events(sim->core, &event, 1))
        sim->restarts += event.type == UNSALT_CORE_EV_RESTART;
    if (n_out)
        take_out(sim, &out);
    settle(sim);
}

/* Pushes the numbers 1..n, lane by lane in stretches; `copies` percent of earlier records of `of` between them. */
static void run(struct sim *sim, uint64_t n, int64_t base, bool second, unsigned copies, size_t of) {
    uint64_t next[LANES];
    for (unsigned lane = 0; lane < sim->lanes; lane++)
        next[lane] = lane ? lane : sim->lanes;
    for (uint64_t left = n; left;) {
        unsigned lane = (unsigned)prng_below(&sim->prng, sim->lanes);
        for (uint64_t burst = prng_between(&sim->prng, 1, 12); burst && next[lane] <= n; burst--, left--) {
            push(sim, (struct entry){next[lane], base + (int64_t)next[lane], lane, false, second, 0});
            next[lane] += sim->lanes;
            if (of && !sim->restarts && prng_chance(&sim->prng, copies)) {
                struct entry copy = sim->entries[prng_below(&sim->prng, of)];
                copy.copy = true;
                push(sim, copy);
            }
        }
        sim->now += prng_below(&sim->prng, 1000000);
    }
}

static void begin(struct sim *sim, unsigned number, uint32_t k) {
    memset(sim, 0, sizeof(*sim));
    sim->prng = prng_start(7000 + number);
    failmem_init(&sim->mem);
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.mem = sim->mem.mem;
    params.start = UNSALT_START_FIRST;
    params.restart_k = k;
    sim->now = 1000000000;
    sim->core = unsalt_core_new(&params, NULL, 0);
    CHECK(sim->core);
    sim->lanes = (unsigned)prng_between(&sim->prng, 1, LANES);
    sim->told = prng_chance(&sim->prng, 50);
    unsalt_core_partition_t partition = {.set_size = sim->lanes, .lane = -1};
    for (unsigned i = 0; i < sim->lanes; i++)
        CHECK_I64(unsalt_core_assign(sim->core, &partition), (int)i);
    unsalt_core_reading(sim->core, true, sim->now);
}

/* Time enough for every quiet time and gap. */
static void finish(struct sim *sim) {
    for (int round = 0; round < 3; round++) {
        sim->now += 100 * UINT64_C(1000000000);
        for (unsigned i = 0; i < sim->lanes; i++)
            unsalt_core_horizon(sim->core, i, sim->now, sim->now);
        settle(sim);
    }
    for (size_t i = 0; i < sim->n; i++)
        CHECK_THAT(sim->entries[i].state >= 0, "number %" PRIu64 " is muted", sim->entries[i].seq);
    unsalt_core_destroy(sim->core);
    CHECK(failmem_is_balanced(&sim->mem));
}

TEST(engine_restart, is_recognised_and_nothing_of_it_is_dropped) {
    static struct sim sim;
    for (unsigned number = 0; number < drive_cases(400); number++) {
        begin(&sim, number, (uint32_t)prng_between(&(struct prng){.state = number}, 2, 8));
        uint64_t first = prng_between(&sim.prng, 1, MOST), second = prng_between(&sim.prng, 1, first);
        run(&sim, first, 1000, false, 0, 0);
        run(&sim, second, 1000000, true, (unsigned)prng_below(&sim.prng, 40), sim.n);
        finish(&sim);
        CHECK_THAT(sim.restarts >= 1, "case %u: a restart at %" PRIu64 " was not noticed", number, first);
        for (size_t i = 0; i < sim.n; i++) {
            const struct entry *entry = &sim.entries[i];
            bool delivered = entry->state == UNSALT_STATE_RELEASED || entry->state == UNSALT_STATE_LATE;
            if (!entry->copy)
                CHECK_THAT(delivered, "case %u: number %" PRIu64 " of run %d came out as %s", number, entry->seq,
                           1 + entry->second, unsalt_state_name((unsalt_state_t)entry->state));
        }
    }
}

TEST(engine_restart, copies_are_no_restart_however_many) {
    static struct sim sim;
    for (unsigned number = 0; number < drive_cases(400); number++) {
        begin(&sim, 10000 + number, (uint32_t)prng_between(&(struct prng){.state = number}, 2, 8));
        run(&sim, prng_between(&sim.prng, 1, MOST), 1000, false, 0, 0);
        size_t n = sim.n;
        for (int i = 0; i < MOST; i++) {
            struct entry copy = sim.entries[prng_below(&sim.prng, n)];
            copy.copy = true;
            push(&sim, copy);
        }
        finish(&sim);
        CHECK_U64(sim.restarts, 0);
        for (size_t i = n; i < sim.n; i++)
            CHECK_I64(sim.entries[i].state, UNSALT_STATE_DUPLICATE);
    }
}

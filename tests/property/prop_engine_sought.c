/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A partition of a lane set is sought back, or on, while the others hold records: nothing is lost here, so each session
 * goes on with exactly what is held of the others, what stands in the partition from there on, and what is still to be
 * read, in ascending order; numbers in between were handed out before, and are no loss.
 */
#include <support/check.h>
#include <support/drive.h>
#include <support/failmem.h>

enum { PARTS = 5, SESSIONS = 3, NUMBERS = 240 };

struct entry {
    uint64_t seq;
    uint32_t session;
    bool held; /* the core has it */
    bool due;  /* it is to be handed out, once */
};

struct sim {
    struct failmem mem;
    unsalt_core_t *core;
    struct prng prng;
    uint64_t now;
    unsigned number, parts;
    uint16_t lanes; /* as the records say; 0: they don't */
    bool placed;    /* the layout says which lane a partition has */
    struct entry log[PARTS][NUMBERS];
    size_t length[PARTS], read[PARTS];
    uint64_t last[SESSIONS]; /* released since the last seek; 0 = none */
};

static void take_out(struct sim *sim, const unsalt_core_out_t *out) {
    struct entry *entry = out->msg;
    entry->held = false;
    if (out->state == UNSALT_STATE_REVOKED)
        return;
    CHECK_THAT(out->state == UNSALT_STATE_RELEASED, "case %u: s%u: %" PRIu64 " came out as %s", sim->number,
               entry->session, entry->seq, unsalt_state_name((unsalt_state_t)out->state));
    CHECK_THAT(entry->due, "case %u: s%u: %" PRIu64 " came again", sim->number, entry->session, entry->seq);
    CHECK_THAT(out->seq > sim->last[entry->session], "case %u: s%u: %" PRIu64 " after %" PRIu64, sim->number,
               entry->session, out->seq, sim->last[entry->session]);
    entry->due = false;
    sim->last[entry->session] = out->seq;
}

static void settle(struct sim *sim) {
    unsalt_core_event_t events[64];
    unsalt_core_out_t out[64];
    size_t n, moved;
    do {
        moved = 0;
        if (unsalt_core_deadline(sim->core) <= sim->now)
            unsalt_core_expire(sim->core, sim->now);
        for (; (n = unsalt_core_events(sim->core, events, 64)) > 0; moved += n)
            for (size_t i = 0; i < n; i++)
                CHECK_THAT(events[i].type != UNSALT_CORE_EV_GAP || events[i].reason == UNSALT_GAP_RESUMED,
                           "case %u: a gap %" PRIu64 "-%" PRIu64 ": %s", sim->number, events[i].first, events[i].last,
                           unsalt_gap_reason_name(events[i].reason));
        for (; (n = unsalt_core_pull(sim->core, sim->now, out, 64)) > 0; moved += n)
            for (size_t i = 0; i < n; i++)
                take_out(sim, &out[i]);
    } while (moved);
    CHECK(unsalt_core_conserved(sim->core));
}

static void push(struct sim *sim, unsigned part) {
    static const char *const names[SESSIONS] = {"s0", "s1", "s2"};
    struct entry *entry = &sim->log[part][sim->read[part]];
    unsalt_core_in_t in = {.msg = entry,
                           .session = names[entry->session],
                           .session_len = 2,
                           .part = part,
                           .seq = entry->seq,
                           .since = 1,
                           .una = UNSALT_NO_SEQ,
                           .offset = (int64_t)sim->read[part]++,
                           .timestamp = (int64_t)entry->seq,
                           .lane = (uint16_t)(sim->lanes ? entry->seq % sim->lanes : 0),
                           .lanes = sim->lanes,
                           .bytes = 10};
    unsalt_core_out_t out;
    size_t n_out;
    int status;
    entry->held = true;
    CHECK_U64(unsalt_core_push(sim->core, &in, 1, sim->now, &out, &n_out, &status), 1);
    if (n_out)
        take_out(sim, &out);
    settle(sim);
}

static void assign(struct sim *sim, unsigned part) {
    unsalt_core_partition_t partition = {.set_size = sim->parts, .lane = sim->placed ? (int32_t)part : -1,
                                         .start_offset = (int64_t)sim->read[part], .log_start = 0};
    CHECK_I64(unsalt_core_assign(sim->core, &partition), part);
}

static void seek(struct sim *sim, unsigned part) {
    CHECK_I64(unsalt_core_revoke(sim->core, part, sim->now), UNSALT_CORE_OK);
    unsalt_core_out_t out;
    while (unsalt_core_pull(sim->core, sim->now, &out, 1) == 1)
        take_out(sim, &out); /* time doesn't pass before it is back */
    sim->read[part] = (size_t)prng_below(&sim->prng, sim->read[part] + 1);
    for (size_t i = 0; i < sim->length[part]; i++) {
        CHECK(!sim->log[part][i].held);
        sim->log[part][i].due = i >= sim->read[part];
    }
    for (unsigned i = 0; i < sim->parts; i++)
        for (size_t k = 0; i != part && k < sim->read[i]; k++)
            CHECK(sim->log[i][k].due == sim->log[i][k].held);
    memset(sim->last, 0, sizeof sim->last);
    assign(sim, part);
    settle(sim);
}

static void begin(struct sim *sim, unsigned number) {
    memset(sim, 0, sizeof *sim);
    sim->number = number;
    sim->prng = prng_start(77000 + number);
    failmem_init(&sim->mem);
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.mem = sim->mem.mem;
    sim->parts = (unsigned)prng_between(&sim->prng, 2, PARTS);
    sim->lanes = prng_chance(&sim->prng, 70) ? (uint16_t)sim->parts : 0;
    sim->placed = prng_chance(&sim->prng, 50);
    sim->now = 1000000000;
    sim->core = unsalt_core_new(&params, NULL, 0);
    CHECK(sim->core);
    unsalt_core_reading(sim->core, true, sim->now);
    uint64_t next[SESSIONS] = {1, 1, 1};
    for (unsigned n = 0; n < NUMBERS; n++) {
        uint32_t session = (uint32_t)prng_below(&sim->prng, SESSIONS);
        uint64_t seq = next[session]++;
        unsigned part = (unsigned)(sim->lanes || sim->placed ? seq % sim->parts : prng_below(&sim->prng, sim->parts));
        sim->log[part][sim->length[part]++] = (struct entry){.seq = seq, .session = session, .due = true};
    }
    for (unsigned i = 0; i < sim->parts; i++)
        assign(sim, i);
}

static void finish(struct sim *sim) {
    for (unsigned part = 0; part < sim->parts; part++)
        while (sim->read[part] < sim->length[part])
            push(sim, part);
    for (int round = 0; round < 3; round++) {
        sim->now += 100 * UINT64_C(1000000000);
        for (unsigned part = 0; part < sim->parts; part++)
            unsalt_core_horizon(sim->core, part, sim->now, sim->now);
        settle(sim);
    }
    for (unsigned part = 0; part < sim->parts; part++)
        for (size_t i = 0; i < sim->length[part]; i++)
            CHECK_THAT(!sim->log[part][i].due, "case %u: s%u: %" PRIu64 " is still to come", sim->number,
                       sim->log[part][i].session, sim->log[part][i].seq);
    unsalt_core_destroy(sim->core);
    CHECK(failmem_is_balanced(&sim->mem));
}

TEST(engine_sought, what_the_others_hold_goes_on_with_what_is_read_again) {
    static struct sim sim;
    for (unsigned number = 0; number < drive_cases(1500); number++) {
        begin(&sim, number);
        for (int i = 0; i < 60; i++) {
            unsigned part = (unsigned)prng_below(&sim.prng, sim.parts);
            for (uint64_t n = prng_below(&sim.prng, 12); n && sim.read[part] < sim.length[part]; n--)
                push(&sim, part);
            if (prng_chance(&sim.prng, 8))
                seek(&sim, (unsigned)prng_below(&sim.prng, sim.parts));
        }
        finish(&sim);
    }
}

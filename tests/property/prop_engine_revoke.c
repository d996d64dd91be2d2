/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions are taken away and come back at their committed position, any of them, at any moment: every record is
 * delivered at least once, again if it was not acknowledged before, and in order between two such moments.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/drive.h>
#include <support/failmem.h>

enum { PARTS = 5, SESSIONS = 3, LONGEST = 400 };

struct entry {
    uint64_t seq;
    uint32_t session;
    int state; /* of the last time it was pushed; -1 = the core has it */
    bool acked, delivered;
    uint64_t ticket;
};

struct sim {
    struct failmem mem;
    unsalt_core_t *core;
    struct prng prng;
    uint64_t now;
    unsigned parts, lanes;
    struct entry log[PARTS][LONGEST];
    size_t length[PARTS], read[PARTS];
    int64_t committed[PARTS];
    bool assigned[PARTS];
    uint32_t generation[PARTS];
    uint64_t last[SESSIONS]; /* released since the last assignment changed; 0 = none */
};

static void take_out(struct sim *sim, const unsalt_core_out_t *out) {
    struct entry *entry = out->msg;
    CHECK_THAT(entry->state == -1, "number %" PRIu64 " came back twice", entry->seq);
    entry->state = out->state;
    entry->ticket = out->ticket;
    if (out->state == UNSALT_STATE_RELEASED) {
        CHECK_THAT(out->seq > sim->last[entry->session], "s%u: %" PRIu64 " released after %" PRIu64, entry->session,
                   out->seq, sim->last[entry->session]);
        sim->last[entry->session] = out->seq;
    }
    bool handed_out = out->state == UNSALT_STATE_RELEASED || out->state == UNSALT_STATE_LATE;
    entry->delivered |= handed_out;
    CHECK_THAT(handed_out || entry->acked || out->state == UNSALT_STATE_REVOKED,
               "s%u: %" PRIu64 " was not acknowledged, and came out as %s", entry->session, entry->seq,
               unsalt_state_name((unsalt_state_t)out->state));
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
            moved += n;
        while ((n = unsalt_core_pull(sim->core, sim->now, out, 64)) > 0)
            for (size_t i = 0; i < n; i++, moved++)
                take_out(sim, &out[i]);
    } while (moved);
    CHECK(unsalt_core_conserved(sim->core));
}

static void push(struct sim *sim, unsigned part) {
    struct entry *entry = &sim->log[part][sim->read[part]];
    static const char *const names[SESSIONS] = {"s0", "s1", "s2"};
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
                           .lanes = (uint16_t)sim->lanes,
                           .bytes = 10};
    unsalt_core_out_t out;
    size_t n_out;
    int status;
    entry->state = -1;
    CHECK_U64(unsalt_core_push(sim->core, &in, 1, sim->now, &out, &n_out, &status), 1);
    if (n_out)
        take_out(sim, &out);
    settle(sim);
}

static void assign(struct sim *sim) {
    unsigned part = 0;
    while (part < sim->parts && sim->assigned[part])
        part++;
    if (part == sim->parts)
        return;
    unsalt_core_partition_t partition = {
        .set_size = sim->parts, .lane = -1, .start_offset = sim->committed[part], .log_start = 0};
    CHECK_I64(unsalt_core_assign(sim->core, &partition), part);
    sim->assigned[part] = true;
    sim->generation[part] = unsalt_core_generation(sim->core, part);
    sim->read[part] = (size_t)sim->committed[part];
    memset(sim->last, 0, sizeof(sim->last));
}

static void revoke(struct sim *sim, unsigned part) {
    if (!sim->assigned[part])
        return;
    int64_t position = unsalt_core_position(sim->core, part);
    CHECK_THAT(position >= sim->committed[part], "position went back to %" PRId64 " from %" PRId64, position,
               sim->committed[part]);
    for (int64_t i = 0; i < position; i++)
        CHECK_THAT(sim->log[part][i].acked, "position %" PRId64 " leaves offset %" PRId64 " behind", position, i);
    sim->committed[part] = position;
    CHECK_I64(unsalt_core_revoke(sim->core, part, sim->now), UNSALT_CORE_OK);
    sim->assigned[part] = false;
    memset(sim->last, 0, sizeof(sim->last));
    settle(sim);
    for (size_t i = 0; i < sim->read[part]; i++)
        CHECK_THAT(sim->log[part][i].state != -1, "offset %zu did not come back after the revoke", i);
}

static void ack(struct sim *sim, unsigned part) {
    if (!sim->assigned[part] || !sim->read[part])
        return;
    for (int64_t i = sim->committed[part]; i < (int64_t)sim->read[part]; i++) {
        struct entry *entry = &sim->log[part][i];
        bool out = entry->state == UNSALT_STATE_RELEASED || entry->state == UNSALT_STATE_LATE;
        if (!out || !prng_chance(&sim->prng, 60))
            continue;
        CHECK_I64(unsalt_core_ack(sim->core, part, sim->generation[part], entry->ticket), UNSALT_CORE_OK);
        entry->acked = true;
    }
}

static void begin(struct sim *sim, unsigned number) {
    memset(sim, 0, sizeof(*sim));
    sim->prng = prng_start(9000 + number);
    failmem_init(&sim->mem);
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.mem = sim->mem.mem;
    sim->now = 1000000000;
    sim->core = unsalt_core_new(&params, NULL, 0);
    CHECK(sim->core);
    unsalt_core_reading(sim->core, true, sim->now);
    sim->parts = (unsigned)prng_between(&sim->prng, 1, PARTS);
    sim->lanes = prng_chance(&sim->prng, 50) ? sim->parts : 0;
    uint64_t next[SESSIONS] = {1, 1, 1};
    for (unsigned n = 0; n < 300; n++) {
        uint32_t session = (uint32_t)prng_below(&sim->prng, SESSIONS);
        uint64_t seq = next[session]++;
        unsigned part = (unsigned)(sim->lanes ? seq % sim->lanes : prng_below(&sim->prng, sim->parts));
        if (prng_chance(&sim->prng, 3))
            continue; /* lost */
        sim->log[part][sim->length[part]++] = (struct entry){.seq = seq, .session = session};
    }
    for (unsigned i = 0; i < sim->parts; i++)
        assign(sim);
}

static void step(struct sim *sim) {
    unsigned part = (unsigned)prng_below(&sim->prng, sim->parts);
    for (uint64_t n = prng_below(&sim->prng, 20); n && sim->assigned[part] && sim->read[part] < sim->length[part]; n--)
        push(sim, part);
    if (prng_chance(&sim->prng, 40))
        ack(sim, (unsigned)prng_below(&sim->prng, sim->parts));
    if (prng_chance(&sim->prng, 30)) {
        sim->now += prng_below(&sim->prng, 400000000);
        settle(sim);
    }
    if (prng_chance(&sim->prng, 20) && sim->assigned[part])
        unsalt_core_horizon(sim->core, part, sim->now, sim->now);
    if (prng_chance(&sim->prng, 5))
        revoke(sim, (unsigned)prng_below(&sim->prng, sim->parts));
    if (prng_chance(&sim->prng, 2))
        for (unsigned i = 0; i < sim->parts; i++)
            revoke(sim, i);
    if (prng_chance(&sim->prng, 15))
        assign(sim);
    settle(sim);
}

static void finish(struct sim *sim, unsigned number) {
    for (unsigned i = 0; i < sim->parts; i++)
        assign(sim);
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
            CHECK_THAT(sim->log[part][i].delivered, "case %u: s%u number %" PRIu64 " was never delivered", number,
                       sim->log[part][i].session, sim->log[part][i].seq);
    unsalt_core_destroy(sim->core);
    CHECK(failmem_is_balanced(&sim->mem));
}

TEST(engine_revoke, every_record_at_least_once_and_in_order) {
    static struct sim sim;
    for (unsigned number = 0; number < drive_cases(600); number++) {
        begin(&sim, number);
        for (int i = 0; i < 80; i++)
            step(&sim);
        finish(&sim, number);
    }
}

static void everything_at_once(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 4);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->ahead = (unsigned)prng_between(prng, 2, 60);
    script->loss = script->twice = script->again = script->odd = (unsigned)prng_below(prng, 15);
    script->jump = script->epoch = script->flush = script->pause = (unsigned)prng_below(prng, 15);
    script->resize = (unsigned)prng_below(prng, 10);
    script->trim = (unsigned)prng_below(prng, 10);
    script->revoke = (unsigned)prng_between(prng, 10, 200);
    script->advance = script->horizon = script->question = script->eof = script->ack = script->pull = 30;
    script->advance_max = 400000000;
    script->seq_first = drive->params.seq_first = 1;
    drive->params.start = (unsalt_start_t)prng_below(prng, 3);
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.malformed = (unsalt_malformed_t)prng_below(prng, 2);
    drive->params.session_ttl_ns = prng_chance(prng, 50) ? 100000000 : UNSALT_NEVER;
    drive->params.sessions_max = (uint32_t)prng_between(prng, 1, 5);
    drive->params.remembered_max = (uint32_t)prng_below(prng, 4);
    drive->params.skips_max = (uint32_t)prng_between(prng, 1, 8);
    drive->params.budget_records = prng_chance(prng, 50) ? 1000 : prng_between(prng, 1, 40);
    drive->params.restart_k = (uint32_t)prng_between(prng, 2, 6);
    drive->params.release_max = (uint32_t)prng_between(prng, 1, 20);
    drive->start_offset = prng_chance(prng, 50) ? 0 : 100;
    drive->no_model = true;
    drive->lazy = prng_chance(prng, 50);
}

TEST(engine_revoke, amid_everything_else) {
    drive_property("everything", 1500, everything_at_once);
}

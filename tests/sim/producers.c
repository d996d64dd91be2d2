/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Producers that keep the rules of the record format: a number is lost only after it was given up, `una` is the lowest
 * number that isn't resolved, a record that is sent again keeps its number and its lane.
 */
#include <sim/sim.h>

static unsigned part_of(const struct sim *sim, unsigned session, uint64_t seq, uint16_t lanes) {
    const struct sim_setup *setup = sim->setup;
    unsigned first = sim->sessions[session].set * setup->lanes, lane = (unsigned)(seq % lanes);
    if (setup->plain && !setup->configured)
        return first + (unsigned)(sim_mix(session + 7, seq) % setup->lanes);
    return setup->hash ? (unsigned)(sim_mix(session, lane) % setup->lanes) : first + lane;
}

static uint64_t una(const struct sim *sim, unsigned session, unsigned run, uint64_t seq) {
    const struct sim_session *s = &sim->sessions[session];
    uint64_t lowest = seq;
    if (sim->setup->plant == SIM_PLANT_UNA)
        return sim_seq(sim, &s->runs[run], s->runs[run].next);
    for (unsigned i = 0; i < s->open_n; i++) {
        uint64_t open = sim_seq(sim, &s->runs[run], s->open[i].number);
        if (s->open[i].run == run && open < lowest)
            lowest = open;
    }
    return lowest;
}

/* What stands in a record besides its number. */
static struct sim_rec stamp(const struct sim *sim, unsigned session, const struct sim_open *number) {
    const struct sim_run *run = &sim->sessions[session].runs[number->run];
    uint64_t seq = sim_seq(sim, run, number->number);
    struct sim_rec rec = {.session = (uint8_t)session, .run = number->run, .number = number->number};
    rec.in = (unsalt_core_in_t){.seq = seq,
                                .epoch = run->epoch,
                                .una = sim->setup->una ? una(sim, session, number->run, seq) : UNSALT_NO_SEQ,
                                .since = number->since,
                                .lanes = number->lanes,
                                .lane = (uint16_t)(seq % number->lanes),
                                .bytes = 100 + (uint32_t)(sim_mix(session, seq) % 400),
                                .timestamp = sim->setup->timestamps ? (int64_t)(sim->now / SIM_MS) : -1};
    if (number->at && rec.in.timestamp >= 0) /* what is sent again keeps its time of creation */
        rec.in.timestamp = (int64_t)(number->at / SIM_MS);
    if (number->number == 0)
        rec.in.flags |= UNSALT_F_FIRST;
    if (sim->setup->plain) {
        rec.in.lanes = rec.in.lane = 0;
        rec.in.since = UNSALT_NO_SEQ;
        rec.in.flags = 0;
    }
    return rec;
}

static void write(struct sim *sim, unsigned session, const struct sim_open *number, bool resent, uint16_t flags) {
    struct sim_rec rec = stamp(sim, session, number);
    rec.in.flags = (uint16_t)(rec.in.flags | flags);
    if (sim->setup->plain)
        rec.in.flags = 0;
    else if (resent)
        rec.in.flags |= UNSALT_F_RESEND;
    rec.resent = resent;
    sim_append(sim, part_of(sim, session, rec.in.seq, number->lanes), &rec);
}

static void mark(struct sim *sim, unsigned session, const struct sim_open *number) {
    struct sim_rec rec = stamp(sim, session, number);
    rec.in.since = rec.in.seq;
    rec.in.kind = UNSALT_KIND_CONTROL;
    rec.in.flags = UNSALT_F_MARKER;
    uint64_t above = sim_seq(sim, &sim->sessions[session].runs[number->run], number->number + 1u);
    rec.in.una = sim->setup->una ? una(sim, session, number->run, above) : UNSALT_NO_SEQ;
    sim->coverage->markers++;
    sim_append(sim, part_of(sim, session, rec.in.seq, number->lanes), &rec);
}

static void produce_one(struct sim *sim, unsigned session, uint64_t r) {
    const struct sim_setup *setup = sim->setup;
    struct sim_session *s = &sim->sessions[session];
    struct sim_run *run = &s->runs[s->run_n - 1];
    if (run->next == SIM_NUMBERS || s->ended)
        return;
    struct sim_open number = {(uint8_t)(s->run_n - 1), (uint8_t)run->next, 0, s->lanes, s->since, sim->now};
    unsigned fate = (unsigned)(r % 100);
    bool lost = fate < setup->lost, late = !lost && fate < setup->lost + setup->late;
    bool doubtful = !lost && !late && fate < setup->lost + setup->late + setup->doubtful;
    if ((lost || late || doubtful) && s->open_n == SIM_OPEN)
        return;
    run->next++;
    if (lost || late || doubtful) {
        number.fate = lost ? SIM_FATE_LOST : late ? SIM_FATE_RESENT : SIM_FATE_DOUBTFUL;
        s->open[s->open_n++] = number;
    }
    if (lost || late) {
        sim_say(sim, "session %u: number %u of run %u is open: %s", session, number.number, number.run,
                lost ? "lost" : "to be sent again");
        return;
    }
    write(sim, session, &number, false, 0);
    if (r / 100 % 100 < setup->twice) {
        write(sim, session, &number, false, 0);
        sim->coverage->copies++;
    }
}

void sim_produce(struct sim *sim, const struct sim_op *op) {
    unsigned session = op->who % sim->setup->sessions;
    for (unsigned i = 0; i <= op->a % 6u; i++)
        produce_one(sim, session, sim_mix(op->b, i));
}

/* The fate of an open number becomes known. */
static void resolve(struct sim *sim, unsigned session, unsigned which, bool marked) {
    struct sim_session *s = &sim->sessions[session];
    struct sim_open number = s->open[which];
    if (number.fate != SIM_FATE_LOST)
        write(sim, session, &number, true, 0);
    s->open[which] = s->open[--s->open_n];
    sim->coverage->lost += number.fate == SIM_FATE_LOST;
    sim->coverage->resent += number.fate == SIM_FATE_RESENT;
    sim->coverage->copies += number.fate == SIM_FATE_DOUBTFUL;
    if (number.fate == SIM_FATE_LOST)
        sim_say(sim, "session %u: number %u of run %u is given up", session, number.number, number.run);
    if (number.fate == SIM_FATE_LOST && marked && !sim->setup->plain)
        mark(sim, session, &number);
}

void sim_resolve(struct sim *sim, const struct sim_op *op) {
    unsigned session = op->who % sim->setup->sessions;
    if (sim->sessions[session].open_n)
        resolve(sim, session, op->a % sim->sessions[session].open_n, op->b % 100 < sim->setup->marked);
}

void sim_settle_producers(struct sim *sim) {
    for (unsigned i = 0; i < sim->setup->sessions; i++)
        while (sim->sessions[i].open_n)
            resolve(sim, i, 0, false);
}

/* So many stale records mean that the producer went back (restart_k): then anything may come of its order. */
static void note_tail(struct sim *sim, struct sim_session *s) {
    for (unsigned i = 0; i < s->open_n; i++)
        s->tail += s->open[i].fate != SIM_FATE_LOST;
    s->loose |= s->tail >= sim->setup->params.restart_k;
}

/*
 * The producer dies and comes back. What was under way either arrives before it is back, or never; or, with bit 0 of
 * `b`, behind the first records of the new run.
 */
void sim_restart(struct sim *sim, const struct sim_op *op) {
    unsigned session = op->who % sim->setup->sessions;
    struct sim_session *s = &sim->sessions[session];
    struct sim_run *run = &s->runs[s->run_n - 1];
    if (s->run_n == SIM_RUNS || run->next == 0 || s->ended)
        return;
    for (unsigned i = 0; i < s->open_n; i++)
        if (op->a >> i & 1)
            s->open[i].fate = SIM_FATE_LOST;
    while (s->open_n && !(sim->setup->epochs && op->b & 1))
        resolve(sim, session, 0, false);
    note_tail(sim, s);
    s->runs[s->run_n++] = (struct sim_run){.epoch = sim->setup->epochs ? run->epoch + 1 + op->a % 3u : 0,
                                           .jump_at = SIM_NUMBERS};
    s->since = sim->setup->params.seq_first;
    s->loose |= !sim->setup->epochs;
    sim->coverage->epochs += sim->setup->epochs;
    sim->coverage->backwards += !sim->setup->epochs;
    sim_say(sim, "session %u: its producer starts again, epoch %u", session, (unsigned)s->runs[s->run_n - 1].epoch);
}

void sim_resize(struct sim *sim, const struct sim_op *op) {
    struct sim_session *s = &sim->sessions[op->who % sim->setup->sessions];
    struct sim_run *run = &s->runs[s->run_n - 1];
    uint16_t lanes = (uint16_t)(1 + op->a % sim->setup->lanes);
    if (sim->setup->plain || lanes == s->lanes)
        return;
    s->lanes = lanes;
    s->since = sim_seq(sim, run, run->next);
    sim->coverage->resizes++;
    sim_say(sim, "session %u: S is %u now", op->who % sim->setup->sessions, lanes);
}

void sim_jump(struct sim *sim, const struct sim_op *op) {
    struct sim_session *s = &sim->sessions[op->who % sim->setup->sessions];
    struct sim_run *run = &s->runs[s->run_n - 1];
    if (run->jump_at != SIM_NUMBERS || run->next == 0 || run->next == SIM_NUMBERS)
        return;
    run->jump_at = run->next;
    run->jump_by = op->a % 2 ? 1 + op->b % 100u : (uint64_t)op->b << 20;
    sim->coverage->jumps++;
}

/* The session ends: all is resolved, and its last record says so. */
void sim_last(struct sim *sim, const struct sim_op *op) {
    unsigned session = op->who % sim->setup->sessions;
    struct sim_session *s = &sim->sessions[session];
    struct sim_run *run = &s->runs[s->run_n - 1];
    if (run->next == SIM_NUMBERS || s->ended || sim->setup->plain)
        return;
    while (s->open_n)
        resolve(sim, session, 0, false);
    struct sim_open number = {(uint8_t)(s->run_n - 1), (uint8_t)run->next++, 0, s->lanes, s->since, sim->now};
    write(sim, session, &number, false, UNSALT_F_LAST);
    s->ended = true;
}

void sim_noise(struct sim *sim, const struct sim_op *op) {
    static const uint16_t kinds[] = {UNSALT_KIND_UNSEQUENCED, UNSALT_KIND_MALFORMED, UNSALT_KIND_CONTROL};
    struct sim_rec rec = {.session = 0};
    rec.in = (unsalt_core_in_t){.seq = UNSALT_NO_SEQ, .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ,
                                .timestamp = -1, .bytes = 50, .kind = kinds[op->a % 3]};
    sim->coverage->noise++;
    sim_append(sim, op->who % sim->parts, &rec);
}

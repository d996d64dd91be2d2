/* SPDX-License-Identifier: BSD-2-Clause */
/* A member: its core, the partitions that it has, its application. */
#include <core/engine.h>
#include <inttypes.h>
#include <sim/sim.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, TURNS = 2000 };

/* ---- memory, counted */

static void *count_alloc(void *user, size_t size) {
    void *block = malloc(size);
    ((struct sim *)user)->blocks += block != NULL;
    return block;
}

static void *count_resize(void *user, void *ptr, size_t size) {
    void *block = realloc(ptr, size);
    ((struct sim *)user)->blocks += block && !ptr;
    return block;
}

static void count_release(void *user, void *ptr) {
    ((struct sim *)user)->blocks -= ptr != NULL;
    free(ptr);
}

/* ---- life */

bool sim_member_start(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    unsalt_core_params_t params = sim->setup->params;
    char errstr[128];
    params.mem = (unsalt_mem_t){sim, count_alloc, count_resize, count_release};
    m->core = unsalt_core_new(&params, errstr, sizeof(errstr));
    if (!m->core) {
        sim_fail(sim, SIM_CALL, "no core: %s", errstr);
        return false;
    }
    m->core->awake_max = sim->setup->members % 2; /* nearly all that may doze do */
    m->alive = true;
    m->joined = m->cut = m->busy = false;
    m->incarnation++;
    m->floor = 0;
    m->clock_n = 1;
    m->offset = 0;
    m->born = sim->now;
    m->token_n = m->asked_n = 0;
    m->in_core = m->expired = 0;
    m->batch_part = -1;
    unsalt_core_reading(m->core, true, sim_time(sim, member));
    sim->coverage->starts++;
    sim_say(sim, "m%u: starts", member);
    return true;
}

static void count_events(struct sim *sim, const struct sim_member *m) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(m->core, &counters);
    for (int i = 0; i < UNSALT_STATE__CNT; i++)
        sim->coverage->states[i] += i == UNSALT_STATE_HELD ? 0 : counters.state[i];
    for (int i = 0; i < UNSALT_BUDGET__CNT; i++)
        for (int k = 0; k < UNSALT_OUTCOME__CNT; k++)
            sim->coverage->budgets[i][k] += counters.budget_outcome[i][k];
}

void sim_member_crash(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    if (!m->alive)
        return;
    count_events(sim, m);
    unsalt_core_destroy(m->core);
    m->core = NULL;
    m->alive = m->joined = false;
    for (unsigned p = 0; p < sim->parts; p++)
        m->parts[p].owned = m->parts[p].pending = false;
    for (unsigned set = 0; set < sim->setup->sets; set++)
        m->pass[set]++;
    for (unsigned s = 0; s < SIM_SESSIONS * SIM_RUNS * SIM_NUMBERS; s++)
        (&sim->ids[0][0][0])[s].acked_by = (uint8_t)((&sim->ids[0][0][0])[s].acked_by & ~(1u << member));
}

/* ---- partitions */

void sim_member_assign(struct sim *sim, unsigned member, unsigned part) {
    struct sim_member *m = &sim->members[member];
    struct sim_part *mp = &m->parts[part];
    struct sim_log *log = &sim->logs[part];
    unsigned set = part / sim->setup->lanes;
    int64_t committed = sim->group.committed[part];
    int64_t begin = committed > log->start_offset ? committed : log->start_offset;
    if (sim->setup->plant == SIM_PLANT_BEGIN)
        begin++;
    unsalt_core_partition_t partition = {.set = set,
                                         .set_size = sim->setup->lanes,
                                         .lane = sim->setup->hash || (sim->setup->plain && !sim->setup->configured)
                                                     ? -1
                                                     : (int32_t)(part % sim->setup->lanes),
                                         .start_offset = begin,
                                         .log_start = log->start_offset};
    if (begin < sim->group.returned[part])
        sim_fail(sim, SIM_AGAIN, "m%u begins p%u at %" PRId64 ", but %" PRId64 " was committed", member, part, begin,
                 sim->group.returned[part]);
    int index = unsalt_core_assign(m->core, &partition);
    if (index < 0 || index >= (int)sizeof(m->part_of)) {
        sim_fail(sim, SIM_CALL, "assign says %d", index);
        return;
    }
    memset(mp->state, SIM_UNREAD, sizeof(mp->state));
    mp->owned = true;
    mp->pending = mp->paused = false;
    mp->index = index;
    mp->assignment = ++m->assignments;
    mp->generation = unsalt_core_generation(m->core, (uint32_t)index);
    mp->first = mp->next = mp->base = sim_first_at(log, begin);
    mp->began = mp->position = begin;
    mp->eof = -1;
    m->part_of[index] = (uint8_t)part;
    sim_say(sim, "m%u: has p%u from %" PRId64 " on", member, part, begin);
    sim_checkpoint_restore(sim, member, part);
}

/* What the application has acknowledged of a partition counts no more: it will be read again. */
static void forget_acked(struct sim *sim, unsigned member, unsigned part) {
    const struct sim_part *mp = &sim->members[member].parts[part];
    for (unsigned i = mp->first; i < mp->next; i++) {
        const struct sim_rec *rec = &sim->logs[part].recs[i];
        struct sim_id *id = &sim->ids[rec->session][rec->run][rec->number];
        if (rec->in.kind == UNSALT_KIND_SEQUENCED)
            id->acked_by = (uint8_t)(id->acked_by & ~(1u << member));
    }
}

void sim_member_revoke(struct sim *sim, unsigned member, unsigned part) {
    struct sim_member *m = &sim->members[member];
    struct sim_part *mp = &m->parts[part];
    int err = unsalt_core_revoke(m->core, (uint32_t)mp->index, sim_time(sim, member));
    if (err != UNSALT_CORE_OK)
        sim_fail(sim, SIM_CALL, "revoke says %d", err);
    sim_say(sim, "m%u: gives p%u back", member, part);
    forget_acked(sim, member, part);
    sim_verdicts_forget(sim, member, part / sim->setup->lanes);
    mp->owned = false;
    m->pass[part / sim->setup->lanes]++;
    m->revoking = true;
    sim_member_pull(sim, member, SIZE_MAX);
    m->revoking = false;
}

/* ---- what comes out */

void sim_member_events(struct sim *sim, unsigned member) {
    unsalt_core_event_t events[BATCH];
    size_t n;
    do {
        n = unsalt_core_events(sim->members[member].core, events, BATCH);
        for (size_t i = 0; i < n; i++)
            sim_judge_event(sim, member, &events[i]);
    } while (n == BATCH);
}

void sim_member_pull(struct sim *sim, unsigned member, size_t most) {
    struct sim_member *m = &sim->members[member];
    unsalt_core_out_t out[BATCH];
    size_t n, room;
    sim_member_events(sim, member);
    do {
        room = most < BATCH ? most : BATCH;
        n = unsalt_core_pull(m->core, sim_time(sim, member), out, room);
        sim_member_events(sim, member);
        if (n > 1 && sim->setup->plant == SIM_PLANT_SWAP && n % 3 == 0) {
            unsalt_core_out_t first = out[0];
            out[0] = out[1];
            out[1] = first;
        }
        for (size_t i = 0; i < n; i++)
            sim_judge_out(sim, member, &out[i]);
        most -= n;
    } while (n == room && n > 0 && !sim->failed);
}

/* Lets the core do what is due. */
void sim_member_turn(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    unsigned turns = 0;
    if (!m->alive || m->busy)
        return;
    for (;;) {
        uint64_t now = sim_time(sim, member);
        if (!sim->setup->lazy || sim->healing)
            sim_member_pull(sim, member, SIZE_MAX);
        if (sim->failed || unsalt_core_deadline(m->core) > (now > m->floor ? now : m->floor))
            return;
        unsalt_core_expire(m->core, now);
        sim_member_events(sim, member);
        if (++turns > TURNS) {
            sim_fail(sim, SIM_REST, "m%u: its core doesn't come to rest: at %" PRIu64 " it waits for %" PRIu64, member,
                     m->floor, unsalt_core_deadline(m->core));
            return;
        }
    }
}

void sim_flush(struct sim *sim, unsigned member) {
    struct sim_member *m = &sim->members[member];
    sim_member_events(sim, member);
    m->flushing = true;
    unsalt_core_flush(m->core, sim_time(sim, member));
    sim_member_events(sim, member);
    m->flushing = false;
}

/* ---- the application */

static void ack_one(struct sim *sim, unsigned member, unsigned which) {
    struct sim_member *m = &sim->members[member];
    struct sim_token token = m->tokens[which];
    struct sim_part *mp = &m->parts[token.part];
    const struct sim_rec *rec = &sim->logs[token.part].recs[token.index];
    bool live = mp->owned && mp->generation == token.generation;
    int err = unsalt_core_ack(m->core, (uint32_t)token.core_index, token.generation, token.ticket);
    m->tokens[which] = m->tokens[--m->token_n];
    if (err != (live ? UNSALT_CORE_OK : UNSALT_CORE_FENCED))
        sim_fail(sim, SIM_FENCE, "m%u: the acknowledgement of p%u@%" PRId64 " returns %d", member, token.part,
                 rec->in.offset, err);
    if (!live) {
        sim->coverage->acked_late++;
        return;
    }
    mp->state[token.index] = SIM_DONE;
    sim->coverage->acked++;
    struct sim_id *id = &sim->ids[rec->session][rec->run][rec->number];
    if (rec->in.kind == UNSALT_KIND_SEQUENCED && /* a late one may come again as a late one */
        id->released_in[member] == sim_pass_of(sim, member, rec->session)->pass)
        id->acked_by |= (uint8_t)(1u << member);
    sim_say(sim, "m%u: is done with p%u@%" PRId64, member, token.part, rec->in.offset);
}

/* Acknowledges about so many percent of what is outstanding, in any order. */
void sim_ack(struct sim *sim, unsigned member, unsigned share, uint64_t seed) {
    struct sim_member *m = &sim->members[member];
    for (unsigned i = m->token_n; i-- > 0;)
        if (i < m->token_n && sim_mix(seed, i) % 100 < share)
            ack_one(sim, member, i);
}

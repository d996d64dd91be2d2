/* SPDX-License-Identifier: BSD-2-Clause */
/* The logs of the partitions, and where each number of a producer stands in them. */
#include <inttypes.h>
#include <sim/sim.h>

/* Jumps of offsets, as transaction markers and compaction leave them, depend on the place alone. */
static int64_t hole(unsigned part, unsigned index) {
    uint64_t r = sim_mix(part, index);
    return r % 10 == 0 ? (int64_t)(r / 16 % 4) : 0;
}

uint64_t sim_seq(const struct sim *sim, const struct sim_run *run, unsigned number) {
    return sim->setup->params.seq_first + number + (number >= run->jump_at ? run->jump_by : 0);
}

struct sim_run *sim_run_of(struct sim *sim, unsigned session, uint64_t epoch) {
    struct sim_session *s = &sim->sessions[session];
    for (unsigned i = 0; i < s->run_n; i++)
        if (s->runs[i].epoch == epoch)
            return &s->runs[i];
    return NULL;
}

/* Nobody may have said before that this number will never come. */
static void note_copy(struct sim *sim, unsigned part, const struct sim_rec *rec) {
    struct sim_id *id = &sim->ids[rec->session][rec->run][rec->number];
    if (id->settled && !sim->sessions[rec->session].loose)
        sim_fail(sim, SIM_FALSE_GAP, "session %u: %" PRIu64 ":%" PRIu64 " is written after it was said to be lost",
                 rec->session, rec->in.epoch, rec->in.seq);
    if (id->copies < SIM_COPIES) {
        id->copy[id->copies].part = (uint8_t)part;
        id->copy[id->copies++].index = (uint8_t)(sim->logs[part].n - 1);
    }
}

void sim_append(struct sim *sim, unsigned part, const struct sim_rec *rec) {
    struct sim_log *log = &sim->logs[part];
    if (log->n == SIM_LOG)
        return;
    struct sim_rec *to = &log->recs[log->n++];
    *to = *rec;
    to->in.offset = log->end + hole(part, log->n);
    to->at = sim->now;
    for (unsigned i = 0; i < sim->setup->members; i++)
        to->shown[i] = sim_clock_shows(sim, i);
    to->handed = false;
    log->end = to->in.offset + 1 + hole(part + 100, log->n);
    sim->coverage->records++;
    sim_say(sim, "p%u@%" PRId64 ": session %u %" PRIu64 ":%" PRIu64 " una %" PRId64 " lanes %u since %" PRId64
                 " flags %#x kind %u", part, to->in.offset, rec->session, rec->in.epoch, rec->in.seq,
            (int64_t)rec->in.una, rec->in.lanes, (int64_t)rec->in.since, rec->in.flags, rec->in.kind);
    if (rec->in.kind == UNSALT_KIND_SEQUENCED)
        note_copy(sim, part, to);
}

unsigned sim_first_at(const struct sim_log *log, int64_t offset) {
    unsigned i = log->start;
    while (i < log->n && log->recs[i].in.offset < offset)
        i++;
    return i;
}

/* Retention, or DeleteRecords: what stood below is gone, read or not. */
void sim_trim(struct sim *sim, const struct sim_op *op) {
    unsigned part = op->who % sim->parts;
    struct sim_log *log = &sim->logs[part];
    if (log->start >= log->n)
        return;
    unsigned most = log->n - log->start;
    log->start += 1 + op->a % (op->b % 4 ? (most + 3) / 4 : most);
    log->start_offset = log->start < log->n ? log->recs[log->start].in.offset : log->end;
    sim->coverage->trims++;
    sim_say(sim, "p%u: the log begins at %" PRId64 " now", part, log->start_offset);
}

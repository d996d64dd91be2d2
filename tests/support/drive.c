/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/engine.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/carry.h>
#include <support/drive_inner.h>

/* ---- pushing */

static void note_taken(struct drive *d, struct model_rec *rec) {
    struct track *track = &d->tracks[rec->in.part];
    d->taken++;
    d->bytes += rec->in.bytes;
    rec->taken_at = d->now;
    rec->generation = track->generation;
    if (d->conf->trace)
        fprintf(stderr, "%" PRIu64 " in p%u@%" PRId64 " s%u %" PRIu64 ":%" PRIu64 "\n", d->now, rec->in.part,
                rec->in.offset, rec->session, rec->in.epoch, rec->in.seq);
    if (rec->in.offset < track->next) {
        rec->acked = true; /* fenced: the position doesn't wait for it */
    } else {
        if (track->n == track->cap) {
            track->cap = track->cap ? 2 * track->cap : 64;
            track->recs = realloc(track->recs, track->cap * sizeof(*track->recs));
            if (!track->recs)
                abort();
        }
        track->recs[track->n++] = rec;
        track->next = rec->in.offset + 1;
    }
    if (!d->conf->no_model)
        model_take(&d->model, rec, d->now);
}

/* Follows one call of push: what gave way before the record, the record, then what it set off. */
static bool follow_push(struct drive *d, struct model_rec *recs, size_t took, const unsalt_core_out_t *out,
                        size_t n_out) {
    unsalt_core_event_t events[DRIVE_EVENTS];
    size_t n = 0, more = 0, at = 0;
    for (size_t got = 1; got && n < DRIVE_EVENTS; n += got)
        got = unsalt_core_events(d->core, events + n, DRIVE_EVENTS - n);
    while (at < n && !d->conf->no_model && model_fits(&d->model, &events[at], recs))
        if (!drive_note_event(d, &events[at++]))
            return false;
    for (size_t i = 0; i < took; i++)
        note_taken(d, &recs[i]);
    if (took)
        d->model.overflow_session = UINT32_MAX;
    for (; at < n; at++)
        if (!drive_note_event(d, &events[at]))
            return false;
    if (!drive_events(d, &more))
        return false;
    for (size_t i = 0; i < n_out; i++)
        if (!drive_take_out(d, &out[i]))
            return false;
    return true;
}

static bool play_flush(struct drive *d);

/* Acknowledges everything of the partition that was handed out. Returns whether there was anything. */
static bool ack_all(struct drive *d, uint32_t part) {
    struct track *track = &d->tracks[part];
    bool any = false;
    for (size_t i = track->low; i < track->n; i++) {
        struct model_rec *rec = track->recs[i];
        if (rec->state < 0 || rec->acked)
            continue;
        any = rec->acked = unsalt_core_ack(d->core, part, rec->generation, rec->ticket) == UNSALT_CORE_OK;
    }
    return any;
}

/*
 * A refused record: policy block waits, and `fail` until somebody flushes; a full window for acknowledgements.
 * Everything else needs a pull or the events to be read.
 */
static bool make_way(struct drive *d, int status, uint32_t part) {
    size_t pulled = 0;
    if (status == UNSALT_CORE_FULL) {
        if (d->conf->params.budget_policy != UNSALT_BUDGET_FAIL)
            return drive_fail(d, "full under another policy than fail");
        return play_flush(d) && drive_rest(d, true);
    }
    if (status == UNSALT_CORE_BLOCKED) {
        bool acked = ack_all(d, part);
        if (d->conf->params.budget_policy != UNSALT_BUDGET_BLOCK)
            return acked ? true : drive_fail(d, "blocked under another policy than block");
        if (d->model.blocked_since == UNSALT_NEVER)
            d->model.blocked_since = d->now;
        d->now += d->conf->params.block_max_ns;
        model_advance(&d->model, d->conf->params.block_max_ns);
        return drive_rest(d, true);
    }
    if (status != UNSALT_CORE_PULL)
        return drive_fail(d, "push says %d", status);
    if (!drive_pull(d, d->conf->lazy ? 4 : SIZE_MAX, &pulled))
        return false;
    return true;
}

static bool push(struct drive *d, unsalt_core_in_t *in, struct model_rec *recs, size_t n) {
    unsalt_core_out_t out[DRIVE_BATCH];
    size_t done = 0, idle = 0;
    while (done < n) {
        size_t want = d->conf->single ? 1 : n - done, n_out = 0;
        int status = 99;
        d->model.overflow_need = in[done].bytes;
        d->model.overflow_session = recs[done].session;
        size_t took = unsalt_core_push(d->core, in + done, want, d->now, out, &n_out, &status);
        if (took > want || n_out > want)
            return drive_fail(d, "push of %zu took %zu and gave %zu", want, took, n_out);
        if (!follow_push(d, recs + done, took, out, n_out))
            return false;
        done += took;
        if (took)
            d->model.blocked_since = UNSALT_NEVER;
        idle = took ? 0 : idle + 1;
        if (idle > 20000)
            return drive_fail(d, "push refuses for ever, status %d", status);
        if (status == UNSALT_CORE_OK ? took != want : took == want)
            return drive_fail(d, "push took %zu of %zu and says %d", took, want, status);
        if (status != UNSALT_CORE_OK && !make_way(d, status, in[done].part))
            return false;
        if (d->conf->single && !drive_rest(d, false))
            return false;
    }
    return true;
}

/* Plays the batch that begins at operation `at`. Returns the number of operations. */
static size_t play_records(struct drive *d, const struct script *script, size_t at) {
    unsalt_core_in_t in[DRIVE_BATCH];
    struct model_rec *recs = d->recs + d->rec_n;
    size_t used = 0, n = 0;
    int64_t next[MODEL_PARTS];
    for (unsigned i = 0; i < d->parts; i++)
        next[i] = d->tracks[i].next;
    for (bool more = true; more && n < DRIVE_BATCH && at + used < script->n && script->ops[at + used].kind == OP_RECORD;
         used++) {
        const struct script_op *op = &script->ops[at + used];
        more = op->joined;
        if (!d->tracks[op->part].assigned)
            continue;
        struct model_rec *rec = &recs[n];
        rec->in = op->in;
        rec->in.offset = next[op->part] + (int64_t)op->value - 1;
        next[op->part] = rec->in.offset + 1;
        rec->session = op->session;
        rec->state = -1;
        in[n] = rec->in;
        in[n].msg = rec;
        in[n].session = d->model.sessions[op->session].id;
        in[n++].session_len = d->model.sessions[op->session].id_len;
    }
    d->rec_n += n;
    push(d, in, recs, n);
    return used;
}

/* ---- the other operations */

static bool play_questions(struct drive *d) {
    uint32_t parts[MODEL_PARTS];
    bool asked[MODEL_PARTS] = {false};
    size_t n = unsalt_core_questions(d->core, d->now, parts, MODEL_PARTS);
    for (size_t i = 0; i < n; i++) {
        if (parts[i] >= d->parts || asked[parts[i]] || d->tracks[parts[i]].question)
            return drive_fail(d, "question for partition %u, which is not assigned or was asked", parts[i]);
        asked[parts[i]] = true;
    }
    for (unsigned i = 0; i < d->conf->sets && !d->conf->no_model && !d->conf->lazy; i++)
        if (model_must_ask(&d->model, i, d->now, asked))
            return drive_fail(d, "no question about a due gap of set %u", i);
    for (unsigned i = 0; i < d->parts; i++) {
        if (!asked[i])
            continue;
        d->tracks[i].question = true;
        if (!d->conf->no_model)
            model_ask(&d->model, i, d->now);
    }
    return true;
}

static void play_answer(struct drive *d, uint32_t part, int64_t above) {
    struct track *track = &d->tracks[part];
    int64_t end = above < 0 ? -1 : track->next + above;
    track->question = false;
    unsalt_core_answer(d->core, part, track->generation, end, d->now);
    if (!d->conf->no_model)
        model_answer(&d->model, part, end);
}

static void play_eof(struct drive *d, uint32_t part, int64_t above) {
    struct track *track = &d->tracks[part];
    track->next += above;
    unsalt_core_eof(d->core, part, track->next, d->now);
    model_eof(&d->model, part, track->next);
}

static bool play_ack(struct drive *d, uint32_t part, uint64_t value) {
    struct track *track = &d->tracks[part];
    drive_lowest(track);
    size_t n = track->n - track->low;
    if (!n)
        return true;
    struct model_rec *rec = track->recs[track->low + (value & 3 ? value / 4 % (n < 8 ? n : 8) : value / 4 % n)];
    if (rec->state < 0)
        return true;
    int result = unsalt_core_ack(d->core, part, rec->generation, rec->ticket);
    if (result != UNSALT_CORE_OK)
        return drive_fail(d, "acknowledging offset %" PRId64 " gives %d", rec->in.offset, result);
    if (unsalt_core_ack(d->core, part, rec->generation + 1, rec->ticket) != UNSALT_CORE_FENCED)
        return drive_fail(d, "an acknowledgement of another generation was not fenced");
    rec->acked = true;
    return true;
}

static bool assign(struct drive *d, uint32_t part, int64_t start) {
    struct track *track = &d->tracks[part];
    track->spec.start_offset = start;
    int index = unsalt_core_assign(d->core, &track->spec);
    if (index != (int)part)
        return drive_fail(d, "assign gives index %d, smallest free is %u", index, part);
    track->generation = unsalt_core_generation(d->core, part);
    track->assigned = true;
    track->n = track->low = 0;
    track->next = track->position = start;
    track->last_unsequenced = -1;
    track->question = false;
    if (!d->conf->no_model)
        model_assign(&d->model, part, track->generation, &track->spec);
    return true;
}

static void begin_again(struct drive *d, uint32_t set) {
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++)
        if (d->model.sessions[i].set == set)
            d->last[i].any = false;
}

/* Takes a partition away. Its records come back as revoked; its sessions may begin again below what they released. */
static bool play_revoke(struct drive *d, uint32_t part) {
    struct track *track = &d->tracks[part];
    if (!track->assigned)
        return true;
    int64_t position = unsalt_core_position(d->core, part);
    if (unsalt_core_revoke(d->core, part, d->now) != UNSALT_CORE_OK)
        return drive_fail(d, "partition %u can't be revoked", part);
    track->assigned = false;
    track->position = position;
    size_t pulled = 0;
    begin_again(d, track->spec.set);
    if (!drive_pull(d, SIZE_MAX, &pulled))
        return false;
    for (size_t i = 0; i < track->n; i++)
        if (track->recs[i]->state < 0)
            return drive_fail(d, "offset %" PRId64 " did not come back after the revoke", track->recs[i]->in.offset);
    begin_again(d, track->spec.set);
    return true;
}

static bool play_assign(struct drive *d, uint32_t part) {
    for (uint32_t i = 0; i < d->parts; i++) /* the smallest free index comes first */
        if (!d->tracks[i].assigned)
            return assign(d, i, d->tracks[i].position);
    (void)part;
    return true;
}

static bool play_flush(struct drive *d) {
    size_t seen;
    d->model.flushed = true;
    d->model.flush_time = d->now;
    do {
        seen = 0;
        unsalt_core_flush(d->core, d->now);
        if (!drive_events(d, &seen))
            return false;
    } while (seen);
    d->now++; /* what comes from now on is later, also on a clock that stands still */
    return true;
}

static bool play(struct drive *d, const struct script_op *op) {
    struct track *track = &d->tracks[op->part];
    size_t pulled = 0;
    switch (op->kind) {
    case OP_ADVANCE:
        if (d->model.reading)
            d->model.reading_ns += op->value;
        model_advance(&d->model, op->value);
        d->now += op->value;
        return true;
    case OP_PULL:
        return drive_pull(d, op->value, &pulled);
    case OP_HORIZON:
        unsalt_core_horizon(d->core, op->part, d->now - (op->value < d->now ? op->value : d->now), d->now);
        model_horizon(&d->model, op->part, d->now - (op->value < d->now ? op->value : d->now));
        return true;
    case OP_QUESTIONS:
        return play_questions(d);
    case OP_ANSWER:
    case OP_FAIL:
        if (track->assigned && track->question)
            play_answer(d, op->part, op->kind == OP_FAIL ? -1 : (int64_t)op->value);
        return true;
    case OP_EOF:
        if (track->assigned)
            play_eof(d, op->part, (int64_t)op->value);
        return true;
    case OP_ACK:
        return track->assigned ? play_ack(d, op->part, op->value) : true;
    case OP_FLUSH:
        return play_flush(d);
    case OP_PAUSE:
        unsalt_core_pause(d->core, op->part, op->value, d->now);
        d->model.parts[op->part].paused = op->value;
        d->model.ever_paused = true;
        return true;
    case OP_READING:
        unsalt_core_reading(d->core, op->value, d->now);
        d->model.reading = op->value;
        return true;
    case OP_REVOKE:
        return play_revoke(d, op->part);
    case OP_ASSIGN:
        return play_assign(d, op->part);
    default:
        return true;
    }
}

/* ---- beginning and end */

#define SECOND UINT64_C(1000000000)

static bool begin(struct drive *d) {
    char errstr[256] = "";
    unsalt_core_params_t params = d->conf->params;
    params.mem = d->mem.mem;
    d->now = 1000000000;
    d->core = unsalt_core_new(&params, errstr, sizeof(errstr));
    if (!d->core)
        return drive_fail(d, "no core: %s", errstr);
    d->core->awake_max = d->conf->awake_max;
    model_init(&d->model, &params);
    for (uint32_t i = 0; i < MODEL_SESSIONS; i++)
        model_session(&d->model, i, i % d->conf->sets);
    d->parts = d->conf->sets * d->conf->parts;
    for (uint32_t i = 0; i < d->parts; i++) {
        d->tracks[i].spec = (unsalt_core_partition_t){.set = i / d->conf->parts,
                                                      .set_size = d->conf->parts,
                                                      .lane = d->conf->topics ? (int32_t)(i % d->conf->parts) : -1,
                                                      .log_start = d->conf->log_start};
        if (!assign(d, i, d->conf->start_offset))
            return false;
    }
    unsalt_core_reading(d->core, true, d->now);
    return true;
}

static uint64_t drive_held(const struct drive *d) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(d->core, &counters);
    return counters.state[UNSALT_STATE_HELD];
}

/* Everything comes out in the end. A run may wait a second for the acknowledgements of the one before. */
static bool finish(struct drive *d) {
    while (true) {
        uint32_t part = 0;
        while (part < d->parts && d->tracks[part].assigned)
            part++;
        if (part == d->parts)
            break;
        if (!play_assign(d, part))
            return false;
    }
    for (int round = 0; round < 3; round++) {
        d->now += 100 * UINT64_C(1000000000);
        for (uint32_t i = 0; i < d->parts; i++) {
            unsalt_core_horizon(d->core, i, d->now, d->now);
            model_horizon(&d->model, i, d->now);
        }
        if (!drive_rest(d, true))
            return false;
    }
    for (unsigned rounds = 0; drive_held(d) && rounds < 100000; rounds++, d->now += d->conf->params.cursors * SECOND)
        if (!play_flush(d) || !drive_rest(d, true))
            return false;
    for (size_t i = 0; i < d->rec_n; i++)
        if (d->recs[i].state < 0)
            return drive_fail(d, "session %u number %" PRIu64 " never came back", d->recs[i].session,
                              d->recs[i].in.seq);
    for (uint32_t part = 0; part < d->parts; part++) {
        struct track *track = &d->tracks[part];
        for (size_t i = track->n; i-- > track->low;) {
            if (!track->recs[i]->acked)
                unsalt_core_ack(d->core, part, track->generation, track->recs[i]->ticket);
            track->recs[i]->acked = true;
        }
        if (unsalt_core_position(d->core, part) != track->next)
            return drive_fail(d, "all is acknowledged, position %" PRId64 " is not %" PRId64,
                              unsalt_core_position(d->core, part), track->next);
    }
    unsalt_core_counters_t counters;
    unsalt_core_counters(d->core, &counters);
    if (counters.state[UNSALT_STATE_HELD] || counters.held_bytes || counters.gaps_open || counters.unacked)
        return drive_fail(d,
                          "at the end: held %" PRIu64 ", bytes %" PRIu64 ", gaps %" PRIu64 ", unacknowledged %" PRIu64,
                          counters.state[UNSALT_STATE_HELD], counters.held_bytes, counters.gaps_open, counters.unacked);
    return true;
}

/* Now and then, at no time of anybody's choice; two times in three the checkpoint is kept. */
static bool take_cursors(struct drive *d, size_t at) {
    if (!d->conf->params.cursors || at % 13 != 0)
        return true;
    const char *why = carry_cursors(d->core, &d->conf->params, d->conf->sets, at % 3 != 0);
    return why ? drive_fail(d, "%s", why) : true;
}

bool drive_play(const struct drive_conf *conf, const struct script *script, char *why, size_t why_size) {
    struct drive *d = calloc(1, sizeof(*d));
    if (!d)
        abort();
    d->conf = conf;
    d->why = why;
    d->why_size = why_size;
    d->recs = calloc(script->n + 1, sizeof(*d->recs));
    failmem_init(&d->mem);
    bool ok = begin(d);
    for (size_t i = 0; ok && i < script->n;) {
        if (script->ops[i].kind == OP_RECORD)
            i += play_records(d, script, i);
        else
            play(d, &script->ops[i++]);
        ok = !d->failed && drive_rest(d, false) && take_cursors(d, i);
        if (!ok) {
            size_t n = strlen(why);
            snprintf(why + n, why_size - n, " [at operation %zu]", i - 1);
        }
    }
    ok = ok && finish(d);
    unsalt_core_destroy(d->core);
    if (ok && !failmem_is_balanced(&d->mem))
        ok = drive_fail(d, "memory is left");
    for (unsigned i = 0; i < MODEL_PARTS; i++)
        free(d->tracks[i].recs);
    model_destroy(&d->model);
    free(d->recs);
    free(d);
    return ok;
}

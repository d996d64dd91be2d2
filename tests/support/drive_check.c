/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/drive_inner.h>

bool drive_fail(struct drive *d, const char *format, ...) {
    if (d->failed)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(d->why, d->why_size, format, args);
    va_end(args);
    d->failed = true;
    return false;
}

static bool judge(struct drive *d, const char *why) {
    return why ? drive_fail(d, "%s", why) : !d->failed;
}

/* ---- what comes back */

static bool needs_ack(int state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_UNSEQUENCED;
}

static bool check_order(struct drive *d, const struct model_rec *rec) {
    struct last *last = &d->last[rec->session];
    bool ascends =
        !last->any || rec->in.epoch > last->epoch || (rec->in.epoch == last->epoch && rec->in.seq > last->seq);
    if (!ascends && last->jumps) {
        last->jumps--;
        ascends = true;
    }
    if (!ascends && !d->forgotten)
        return drive_fail(d, "session %u released %" PRIu64 ":%" PRIu64 " after %" PRIu64 ":%" PRIu64, rec->session,
                          rec->in.epoch, rec->in.seq, last->epoch, last->seq);
    *last = (struct last){true, rec->in.seq, rec->in.epoch, last->jumps};
    return true;
}

bool drive_take_out(struct drive *d, const unsalt_core_out_t *out) {
    struct model_rec *rec = out->msg;
    struct track *track = &d->tracks[out->part];
    if (rec < d->recs || rec >= d->recs + d->rec_n || rec->state >= 0)
        return drive_fail(d, "a record came back that the core did not have");
    if (out->part != rec->in.part || out->generation != rec->generation || out->state >= UNSALT_STATE__CNT)
        return drive_fail(d, "a record came back with another partition, generation or state");
    bool sequenced = out->state != UNSALT_STATE_UNSEQUENCED && out->state != UNSALT_STATE_CONTROL &&
                     !(out->flags & UNSALT_OUT_MALFORMED);
    if (sequenced && rec->in.kind == UNSALT_KIND_SEQUENCED && out->seq != rec->in.seq)
        return drive_fail(d, "number %" PRIu64 " came back as %" PRIu64, rec->in.seq, out->seq);
    bool decided_before = out->state != UNSALT_STATE_RELEASED && out->waited_ns < d->now - rec->taken_at;
    if (out->waited_ns != d->now - rec->taken_at && !decided_before)
        return drive_fail(d, "waited %" PRIu64 ", says %" PRIu64, d->now - rec->taken_at, out->waited_ns);
    rec->state = out->state;
    if (d->conf->trace)
        fprintf(stderr, "%" PRIu64 "   out s%u %" PRIu64 ":%" PRIu64 " %s\n", d->now, rec->session, rec->in.epoch,
                rec->in.seq, unsalt_state_name((unsalt_state_t)out->state));
    rec->ticket = out->ticket;
    rec->acked = !needs_ack(out->state);
    d->back[out->state]++;
    d->bytes -= rec->in.bytes;
    if (out->state == UNSALT_STATE_UNSEQUENCED) {
        if (rec->in.offset <= track->last_unsequenced && rec->generation == track->generation)
            return drive_fail(d, "unsequenced records of partition %u out of order", out->part);
        track->last_unsequenced = rec->in.offset;
    }
    if (out->state == UNSALT_STATE_RELEASED && !check_order(d, rec))
        return false;
    return d->conf->no_model ? true : judge(d, model_out(&d->model, out));
}

static uint32_t session_of(const struct drive *d, const unsalt_core_event_t *event) {
    for (uint32_t i = 0; event->session && i < MODEL_SESSIONS; i++)
        if (d->model.sessions[i].id_len == event->session_len &&
            !memcmp(d->model.sessions[i].id, event->session, event->session_len))
            return i;
    return MODEL_SESSIONS;
}

bool drive_note_event(struct drive *d, const unsalt_core_event_t *event) {
    uint32_t session = session_of(d, event);
    if (d->conf->trace)
        fprintf(stderr, "%" PRIu64 "   event %s s%u epoch %" PRIu64 " %" PRIu64 "-%" PRIu64 " %s\n", d->now,
                unsalt_core_event_name(event->type), session, event->epoch, event->first, event->last,
                event->type == UNSALT_CORE_EV_GAP ? unsalt_gap_reason_name(event->reason) : "");
    if (session < MODEL_SESSIONS && (event->type == UNSALT_CORE_EV_RESTART || event->type == UNSALT_CORE_EV_EPOCH))
        d->last[session].jumps += event->type == UNSALT_CORE_EV_RESTART;
    if (d->conf->no_model && event->type == UNSALT_CORE_EV_PROOF_OFF)
        return drive_fail(d, "session %u: the premise of proof is broken by %" PRIu64, session, event->first);
    d->forgotten |= event->type == UNSALT_CORE_EV_FORGOTTEN;
    return d->conf->no_model ? true : judge(d, model_event(&d->model, event, d->now));
}

bool drive_events(struct drive *d, size_t *seen) {
    unsalt_core_event_t events[DRIVE_EVENTS];
    size_t n;
    while ((n = unsalt_core_events(d->core, events, DRIVE_EVENTS)) > 0) {
        *seen += n;
        for (size_t i = 0; i < n; i++)
            if (!drive_note_event(d, &events[i]))
                return false;
    }
    return true;
}

bool drive_pull(struct drive *d, size_t max, size_t *pulled) {
    unsalt_core_out_t out[DRIVE_BATCH];
    size_t seen = 0;
    while (max) {
        size_t room = max < DRIVE_BATCH ? max : DRIVE_BATCH;
        size_t n = unsalt_core_pull(d->core, d->now, out, room);
        if (n > room)
            return drive_fail(d, "pull wrote %zu records into room for %zu", n, room);
        if (!drive_events(d, &seen))
            return false;
        for (size_t i = 0; i < n; i++)
            if (!drive_take_out(d, &out[i]))
                return false;
        *pulled += n;
        max -= n;
        if (n < room)
            break;
    }
    return true;
}

/* ---- what must hold after every step */

int64_t drive_lowest(struct track *track) {
    while (track->low < track->n && track->recs[track->low]->acked)
        track->low++;
    return track->low < track->n ? track->recs[track->low]->in.offset : track->next;
}

/* The same without what the core may have decided on, and acknowledged, but was not pulled yet. */
static int64_t lowest_handed_out(const struct track *track) {
    for (size_t i = track->low; i < track->n; i++)
        if (track->recs[i]->state >= 0 && !track->recs[i]->acked)
            return track->recs[i]->in.offset;
    return track->next;
}

static bool check_positions(struct drive *d, bool whole) {
    for (unsigned i = 0; i < d->parts; i++) {
        struct track *track = &d->tracks[i];
        int64_t position = unsalt_core_position(d->core, i), lowest = drive_lowest(track);
        if (!track->assigned) {
            if (position != -1)
                return drive_fail(d, "position %" PRId64 " of a partition that is not assigned", position);
            continue;
        }
        if (!whole && d->conf->no_model)
            lowest = lowest_handed_out(track);
        if (position > lowest || position < track->position)
            return drive_fail(
                d, "position %" PRId64 " of partition %u: it was %" PRId64 ", lowest outstanding is %" PRId64, position,
                i, track->position, lowest);
        if (position != lowest && !d->conf->no_model)
            return drive_fail(d, "position %" PRId64 " of partition %u could be %" PRId64, position, i, lowest);
        track->position = position;
    }
    return true;
}

static bool check_ledger(struct drive *d, bool whole) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(d->core, &counters);
    uint64_t sum = 0;
    if (!unsalt_core_conserved(d->core))
        return drive_fail(d, "not conserved");
    if (counters.received != d->taken)
        return drive_fail(d, "received %" PRIu64 ", says %" PRIu64, d->taken, counters.received);
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        sum += counters.state[i];
        bool pending = !whole && counters.state[i] > d->back[i]; /* decided, and not pulled yet */
        if (i != UNSALT_STATE_HELD && counters.state[i] != d->back[i] && !pending)
            return drive_fail(d, "%s: %" PRIu64 " came back, the ledger says %" PRIu64,
                              unsalt_state_name((unsalt_state_t)i), d->back[i], counters.state[i]);
    }
    if (sum != d->taken || counters.held_bytes > d->bytes || (whole && counters.held_bytes != d->bytes))
        return drive_fail(d, "ledger: %" PRIu64 " of %" PRIu64 " records, %" PRIu64 " of %" PRIu64 " bytes", sum,
                          d->taken, counters.held_bytes, d->bytes);
    const unsalt_core_params_t *p = &d->conf->params;
    if (counters.state[UNSALT_STATE_HELD] > p->budget_records)
        return drive_fail(d, "%" PRIu64 " records held, the budget is %" PRIu64, counters.state[UNSALT_STATE_HELD],
                          p->budget_records);
    for (int i = 0; i < UNSALT_GAP__CNT && !d->conf->no_model; i++)
        if (counters.gaps[i] != d->model.gaps[i])
            return drive_fail(d, "gaps by %s: %" PRIu64 " events, %" PRIu64 " counted",
                              unsalt_gap_reason_name((unsalt_gap_reason_t)i), d->model.gaps[i], counters.gaps[i]);
    return true;
}

/* Expires until nothing is due, pulling and reading events meanwhile. */
bool drive_rest(struct drive *d, bool whole) {
    size_t spins = 0, moved;
    do {
        moved = 0;
        if (unsalt_core_deadline(d->core) <= d->now) {
            unsalt_core_expire(d->core, d->now);
            moved = 1;
        }
        if (!drive_events(d, &moved))
            return false;
        if ((whole || !d->conf->lazy) && !drive_pull(d, SIZE_MAX, &moved))
            return false;
        if (++spins > DRIVE_SPIN)
            return drive_fail(d, "no rest: deadline %" PRIu64 " at %" PRIu64 " after %d calls of expire",
                              unsalt_core_deadline(d->core), d->now, DRIVE_SPIN);
    } while (moved);
    if (!check_ledger(d, whole || !d->conf->lazy) || !check_positions(d, whole || !d->conf->lazy))
        return false;
    if (d->conf->no_model || (d->conf->lazy && !whole))
        return true;
    return judge(d, model_rest(&d->model, d->now, unsalt_core_deadline(d->core)));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Second half: what comes out, and what must hold after every step. */
#include <inttypes.h>
#include <stdlib.h>
#include <support/ledger_inner.h>

enum { SPIN_MAX = 4000000, EVENTS = 64 };

static bool is_handed_out(int state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_UNSEQUENCED;
}

static bool check_order(struct ledger *l, const struct ledger_rec *rec) {
    uint32_t set = l->parts[rec->part].spec.set % LEDGER_SETS;
    if (rec->session >= l->sessions)
        return true;
    struct ledger_last *last = &l->last[rec->session * LEDGER_SETS + set];
    bool ascends =
        !last->any || rec->epoch > last->epoch || (rec->epoch == last->epoch && rec->seq > last->seq);
    if (!ascends && last->jumps) {
        last->jumps--;
        ascends = true;
    }
    if (!ascends && !l->forgotten)
        return ledger_fail(l, "session %u released %" PRIu64 ":%" PRIu64 " after %" PRIu64 ":%" PRIu64, rec->session,
                           rec->epoch, rec->seq, last->epoch, last->seq);
    *last = (struct ledger_last){rec->seq, rec->epoch, last->jumps, true};
    return true;
}

/* Does the state fit what was pushed? */
static bool fits(const struct ledger *l, const struct ledger_rec *rec, const unsalt_core_out_t *out) {
    bool over = !rec->listed && out->state != UNSALT_STATE_FENCED; /* its generation */
    if (over && is_handed_out(out->state))
        return false;
    if (out->state == UNSALT_STATE_RELEASED && (out->seq != rec->seq || rec->seq < l->params.seq_first))
        return false;
    if (rec->done)
        return out->state == UNSALT_STATE_DUPLICATE;
    if (rec->kind == UNSALT_KIND_SEQUENCED)
        return out->state != UNSALT_STATE_CONTROL && out->state != UNSALT_STATE_HELD;
    int own = rec->kind == UNSALT_KIND_CONTROL ? UNSALT_STATE_CONTROL : UNSALT_STATE_UNSEQUENCED;
    return out->state == own || out->state == UNSALT_STATE_FENCED;
}

bool ledger_take_out(struct ledger *l, const unsalt_core_out_t *out, bool pulled) {
    struct ledger_rec *rec = out->msg;
    struct ledger_part *part = &l->parts[rec->part];
    if (rec->back || out->part != rec->part || out->generation != rec->generation)
        return ledger_fail(l, "partition %u, offset %" PRId64 ": came back twice, or as another one", rec->part,
                           rec->offset);
    if (out->state >= UNSALT_STATE__CNT || !fits(l, rec, out))
        return ledger_fail(l, "partition %u, offset %" PRId64 ", number %" PRIu64 ": came back as %s", rec->part,
                           rec->offset, rec->seq, unsalt_state_name((unsalt_state_t)out->state));
    if (out->waited_ns > l->now - rec->taken_at || (!pulled && out->waited_ns))
        return ledger_fail(l, "waited %" PRIu64 ", says %" PRIu64, l->now - rec->taken_at, out->waited_ns);
    LEDGER_TRACE(l, "%" PRIu64 "   out s%u %" PRIu64 ":%" PRIu64 " %s\n", l->now, rec->session, rec->epoch, rec->seq,
                 unsalt_state_name((unsalt_state_t)out->state));
    rec->back = true;
    rec->state = out->state;
    rec->ticket = out->ticket;
    rec->acked = !is_handed_out(out->state);
    l->unacked += !rec->acked;
    l->back[out->state]++;
    l->bytes -= rec->bytes;
    if (out->state == UNSALT_STATE_UNSEQUENCED) {
        if (rec->offset <= part->unsequenced)
            return ledger_fail(l, "unsequenced records of partition %u out of order", rec->part);
        part->unsequenced = rec->offset;
    }
    if (out->state == UNSALT_STATE_RELEASED && !check_order(l, rec))
        return false;
    if (l->on_out)
        l->on_out(l, rec, out);
    if (!rec->listed)
        free(rec);
    return !l->failed;
}

/* ---- events */

static void announce(struct ledger *l, const unsalt_core_event_t *event) {
    const char *id = event->session;
    uint64_t session = 0;
    for (uint32_t i = 1; i < event->session_len && id[i] >= '0' && id[i] <= '9'; i++)
        session = 10 * session + (unsigned)(id[i] - '0');
    for (uint32_t set = 0; set < LEDGER_SETS && session < l->sessions; set++)
        l->last[session * LEDGER_SETS + set].jumps++;
}

bool ledger_events(struct ledger *l, size_t *seen) {
    unsalt_core_event_t events[EVENTS];
    size_t n;
    while (!l->failed && (n = unsalt_core_events(l->core, events, EVENTS)) > 0) {
        *seen += n;
        for (size_t i = 0; i < n; i++) {
            const unsalt_core_event_t *event = &events[i];
            if (event->type >= UNSALT_CORE_EV__CNT ||
                (event->type == UNSALT_CORE_EV_GAP &&
                 (event->reason >= UNSALT_GAP__CNT || event->first > event->last)))
                return ledger_fail(l, "event %d, reason %d, %" PRIu64 "..%" PRIu64, (int)event->type,
                                   (int)event->reason, event->first, event->last);
            LEDGER_TRACE(l, "%" PRIu64 "   event %s of %.*s epoch %" PRIu64 " %" PRIu64 "-%" PRIu64 " %s\n", l->now,
                         unsalt_core_event_name(event->type), (int)event->session_len,
                         event->session ? (const char *)event->session : "", event->epoch, event->first, event->last,
                         event->type == UNSALT_CORE_EV_GAP ? unsalt_gap_reason_name(event->reason) : "");
            l->events[event->type]++;
            l->gaps[event->reason] += event->type == UNSALT_CORE_EV_GAP;
            l->forgotten |= event->type == UNSALT_CORE_EV_FORGOTTEN;
            if (event->type == UNSALT_CORE_EV_RESTART)
                announce(l, event);
            if (l->on_event)
                l->on_event(l, event);
        }
    }
    return !l->failed;
}

bool ledger_pull(struct ledger *l, size_t max, size_t *pulled) {
    unsalt_core_out_t out[LEDGER_BATCH];
    size_t seen = 0;
    *pulled = 0;
    while (max && !l->failed) {
        size_t room = max < LEDGER_BATCH ? max : LEDGER_BATCH;
        size_t n = unsalt_core_pull(l->core, l->now, out, room);
        if (n > room)
            return ledger_fail(l, "pull wrote %zu records into room for %zu", n, room);
        ledger_events(l, &seen);
        for (size_t i = 0; i < n && !l->failed; i++)
            ledger_take_out(l, &out[i], true);
        *pulled += n;
        max -= n;
        if (n < room)
            break;
    }
    return !l->failed;
}

/* ---- what must hold */

int64_t ledger_lowest(struct ledger *l, struct ledger_part *part) {
    while (part->count && part->recs[part->first]->acked)
        ledger_unlist(l, part);
    if (part->count)
        return part->recs[part->first]->offset;
    int64_t lowest = part->next;
    for (size_t i = 0; i < part->done_n; i++)
        if (part->done[i].first <= (uint64_t)lowest && (uint64_t)lowest <= part->done[i].last)
            lowest = (int64_t)part->done[i].last + 1;
    return lowest;
}

/* A record that was decided on and not pulled yet may be acknowledged by the core already. */
static bool check_position(struct ledger *l, uint32_t index, bool whole) {
    struct ledger_part *part = &l->parts[index];
    int64_t position = unsalt_core_position(l->core, index), lowest = ledger_lowest(l, part);
    if (!part->assigned)
        return position == -1 || ledger_fail(l, "position %" PRId64 " of a partition that is not assigned", position);
    bool above = position > lowest && (whole || part->recs[part->first]->back);
    if (above || position < part->position || (whole && position != lowest))
        return ledger_fail(l, "position %" PRId64 " of partition %u: it was %" PRId64 ", lowest outstanding %" PRId64,
                           position, index, part->position, lowest);
    part->position = position;
    return true;
}

static bool check_sums(struct ledger *l, const unsalt_core_counters_t *c, bool whole) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        sum += c->state[i];
        bool pending = !whole && c->state[i] > l->back[i];
        if (i != UNSALT_STATE_HELD && c->state[i] != l->back[i] && !pending)
            return ledger_fail(l, "%s: %" PRIu64 " came back, the ledger says %" PRIu64,
                               unsalt_state_name((unsalt_state_t)i), l->back[i], c->state[i]);
    }
    if (sum != l->taken || c->received != l->taken)
        return ledger_fail(l, "%" PRIu64 " records in the ledger, %" PRIu64 " received, %" PRIu64 " taken", sum,
                           c->received, l->taken);
    if (c->held_bytes > l->bytes || (whole && (c->held_bytes != l->bytes || c->unacked != l->unacked)))
        return ledger_fail(l, "%" PRIu64 " of %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64 " unacknowledged",
                           c->held_bytes, l->bytes, c->unacked, l->unacked);
    return true;
}

bool ledger_check(struct ledger *l, bool whole) {
    unsalt_core_counters_t c;
    if (l->failed)
        return false;
    unsalt_core_counters(l->core, &c);
    if (!unsalt_core_conserved(l->core))
        return ledger_fail(l, "not conserved");
    if (!check_sums(l, &c, whole))
        return false;
    if (c.state[UNSALT_STATE_HELD] > l->params.budget_records)
        return ledger_fail(l, "%" PRIu64 " records held, the budget is %" PRIu64, c.state[UNSALT_STATE_HELD],
                           l->params.budget_records);
    if (c.state[UNSALT_STATE_HELD] > l->held_peak)
        l->held_peak = c.state[UNSALT_STATE_HELD];
    /*
     * One that holds something stays; when it doesn't any more, it goes with one of the next that come. If cursors are
     * kept, it stays until its own is.
     */
    if (!l->params.cursors && c.sessions > l->params.sessions_max + 2 * l->held_peak + 8)
        return ledger_fail(l, "%" PRIu64 " sessions, the limit is %u; %" PRIu64 " records were held at most",
                           c.sessions, l->params.sessions_max, l->held_peak);
    if (c.gaps_open > c.state[UNSALT_STATE_HELD])
        return ledger_fail(l, "%" PRIu64 " gaps open, %" PRIu64 " records held", c.gaps_open,
                           c.state[UNSALT_STATE_HELD]);
    uint64_t parts = 0;
    for (uint32_t i = 0; i < l->parts_end; i++) {
        parts += l->parts[i].assigned;
        if (l->parts[i].assigned && !check_position(l, i, whole))
            return false;
    }
    return parts == c.partitions || ledger_fail(l, "%" PRIu64 " partitions, not %" PRIu64, c.partitions, parts);
}

bool ledger_rest(struct ledger *l) {
    size_t spins = 0, moved, pulled;
    do {
        moved = 0;
        if (!l->failed && unsalt_core_deadline(l->core) <= l->now) {
            unsalt_core_expire(l->core, l->now);
            moved = 1;
        }
        if (!ledger_events(l, &moved) || !ledger_pull(l, SIZE_MAX, &pulled))
            return false;
        moved += pulled;
        if (++spins > SPIN_MAX)
            return ledger_fail(l, "no rest: deadline %" PRIu64 " at %" PRIu64, unsalt_core_deadline(l->core), l->now);
    } while (moved);
    return ledger_check(l, true);
}

bool ledger_flush(struct ledger *l) {
    size_t moved;
    do {
        size_t seen = 0, pulled = 0;
        if (l->failed)
            return false;
        unsalt_core_flush(l->core, l->now);
        ledger_events(l, &seen);
        ledger_pull(l, SIZE_MAX, &pulled);
        moved = seen + pulled;
    } while (moved && ledger_rest(l));
    return ledger_rest(l);
}

/* ---- the end */

/* A starting session, or one whose set isn't complete, waits for more than a flush: a revoke ends that too. */
static void take_all_back(struct ledger *l) {
    size_t pulled;
    for (uint32_t i = 0; i < l->parts_end; i++)
        if (l->parts[i].assigned)
            ledger_revoke(l, i);
    ledger_pull(l, SIZE_MAX, &pulled);
    ledger_rest(l);
    uint64_t back = 0;
    for (int i = 0; i < UNSALT_STATE__CNT; i++)
        back += l->back[i];
    if (back != l->taken)
        ledger_fail(l, "%" PRIu64 " of %" PRIu64 " records came back", back, l->taken);
}

bool ledger_close(struct ledger *l) {
    failmem_arm(&l->mem, 0, false);
    if (l->core && !l->failed)
        take_all_back(l);
    if (l->core)
        unsalt_core_destroy(l->core);
    if (!l->failed && !failmem_is_balanced(&l->mem))
        ledger_fail(l, "%zu bytes are left", l->mem.bytes);
    for (uint32_t i = 0; i < l->parts_end; i++) {
        while (l->parts[i].count) {
            l->parts[i].recs[l->parts[i].first]->back = true; /* nobody will bring it back */
            ledger_unlist(l, &l->parts[i]);
        }
        free(l->parts[i].recs);
    }
    free(l->last);
    return !l->failed;
}

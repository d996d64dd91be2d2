/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs: runs of a producer. Records of a higher epoch are kept apart until every lane that may carry the session has
 * shown that epoch, or was read past its first sight; then the current run is over: what it still holds is released,
 * its gaps give way (reason `epoch`), and the later run takes over at seq_first. Records of a lower epoch are stale;
 * restart_k consecutive ones mean that the producer went back: of those that are newer than all that was accepted,
 * since a slow lane may show the tail of an earlier run.
 */
#include <core/engine.h>
#include <stddef.h>

/*
 * Runs kept beside the current one: as many restarts as a fast lane may be ahead of a slow one. Beyond, the next
 * one takes over without more evidence.
 */
#define LATER_MAX 1024
/* How long a run that is over waits for the acknowledgement of its last records, if cursors are kept. */
#define TAKEOVER_WAIT_NS UINT64_C(1000000000)

struct us_later *us_later_of(const struct us_wait *wait) {
    return (struct us_later *)((char *)wait - offsetof(struct us_later, wait));
}

struct us_later *us_later_new(struct unsalt_core *core, struct us_session *session, uint64_t epoch) {
    struct us_later *later = us_calloc(&core->mem, 1, sizeof(*later));
    if (!later) {
        return NULL;
    }
    us_wait_init(&later->wait, US_WAIT_EPOCH, session);
    later->epoch = epoch;
    later->newest = INT64_MIN;
    later->rule.since = UNSALT_NO_SEQ;
    later->reasm.cursor = core->params.seq_first;
    if (!us_wait_reserve(core)) {
        us_free(&core->mem, later);
        return NULL;
    }
    return later;
}

void us_later_free(struct unsalt_core *core, struct us_later *later) {
    us_wait_gone(core, &later->wait);
    us_start_free(core, later->start);
    us_free(&core->mem, later->shown.entries);
    us_reasm_destroy(&later->reasm, &core->chunks);
    us_free(&core->mem, later);
}

void us_later_insert(struct us_session *session, struct us_later *later) {
    struct us_later **link = &session->later;
    while (*link && (*link)->epoch <= later->epoch) {
        link = &(*link)->next;
    }
    later->next = *link;
    *link = later;
    session->special |= US_SPECIAL_LATER;
}

static uint32_t later_count(const struct us_session *session) {
    uint32_t n = 0;
    for (const struct us_later *later = session->later; later; later = later->next) {
        n++;
    }
    return n;
}

/* The run that a record of this epoch belongs to, if it is a later one: the newest of that epoch. */
static struct us_later *later_find(const struct us_session *session, uint64_t epoch) {
    struct us_later *found = NULL;
    for (struct us_later *later = session->later; later; later = later->next) {
        if (later->epoch == epoch) {
            found = later;
        }
    }
    return found;
}

/* A partition that isn't here yet may carry the tail of an earlier run. */
static bool shown_everywhere(const struct us_later *later) {
    const struct us_set *set = later->wait.session->set;
    if (!us_set_complete(set)) {
        return false;
    }
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (!us_shown_part(&later->shown, set->parts[i])) {
            return false;
        }
    }
    return true;
}

/* A record of a run that is not the current one yet. */
static int later_arrival(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                         unsalt_core_out_t *out, size_t *n_out) {
    struct us_later *later = later_find(session, in->epoch), *fresh = NULL;
    if (!later) {
        later = fresh = us_later_new(core, session, in->epoch);
        if (!fresh) {
            return UNSALT_CORE_NOMEM;
        }
    }
    bool room = us_shown_reserve(&later->shown, &core->mem) &&
                (!later->start || us_shown_reserve(&later->start->shown, &core->mem));
    int err = room ? us_hold(core, session, &later->reasm, in, out, n_out) : UNSALT_CORE_NOMEM;
    if (err != UNSALT_CORE_OK) {
        if (fresh) {
            us_later_free(core, fresh);
        }
        return err;
    }
    later->newest = in->timestamp > later->newest ? in->timestamp : later->newest;
    us_shown_add(&later->shown, in);
    us_lanes_learn(&later->rule, in);
    if (later->start) {
        us_start_note(later->start, in);
    }
    if (fresh) {
        us_later_insert(session, fresh);
        us_wait_at(core, &fresh->wait, core->now);
    }
    if (!later->over) {
        us_wait_let_off(core, &later->wait, in->part);
        later = later_find(session, in->epoch); /* it may have taken over */
    }
    if (later && !later->over && (shown_everywhere(later) || later_count(session) > LATER_MAX)) {
        us_epoch_over(core, later_count(session) > LATER_MAX ? session->later : later);
    }
    return UNSALT_CORE_OK;
}

static bool copy_shown(struct unsalt_core *core, struct us_shown *to, const struct us_shown *from) {
    to->entries = us_calloc(&core->mem, from->capacity ? from->capacity : 1, sizeof(*to->entries));
    if (!to->entries) {
        return false;
    }
    to->count = from->count;
    to->capacity = from->capacity ? from->capacity : 1;
    for (uint32_t i = 0; i < from->count; i++) {
        to->entries[i] = from->entries[i];
    }
    return true;
}

/* The run that a session has met first becomes a later one; `reasm` is what is held of the earlier one. */
static void put_before(struct unsalt_core *core, struct us_session *session, struct us_later *later,
                       struct us_start *start, const struct us_reasm *reasm, uint64_t epoch) {
    us_wait_cancel(core, &session->start->wait);
    later->start = session->start;
    later->reasm = session->reasm;
    later->rule = session->rule;
    session->rule = (struct us_lane_rule){.since = UNSALT_NO_SEQ};
    later->newest = session->newest;
    session->reasm = *reasm;
    session->newest = INT64_MIN;
    session->epoch = epoch;
    us_start_begin(core, session, start);
    us_later_insert(session, later);
    us_wait_at(core, &later->wait, core->now);
}

/*
 * While its start is unknown, a session may meet a run and then the tail of the one before it, on a slower lane. The
 * earlier run becomes the current one; the start of both has to be found out.
 */
static int earlier_arrival(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                           unsalt_core_out_t *out, size_t *n_out) {
    struct us_start *start = us_start_alloc(core, session);
    struct us_later *later = us_later_new(core, session, session->epoch);
    struct us_reasm reasm = {0};
    int err = UNSALT_CORE_NOMEM;
    if (start && later && us_shown_reserve(&start->shown, &core->mem) &&
        copy_shown(core, &later->shown, &session->start->shown)) {
        err = us_hold(core, session, &reasm, in, out, n_out);
    }
    bool still = session->special & US_SPECIAL_STARTING; /* a full budget may just have started it */
    if (err == UNSALT_CORE_OK && still && reasm.held) { /* not turned away */
        put_before(core, session, later, start, &reasm, in->epoch);
        us_arrival_taken(core, session, in);
        return err;
    }
    us_start_free(core, start);
    if (later) {
        us_later_free(core, later);
    }
    us_reasm_destroy(&reasm, &core->chunks);
    return err;
}

/* restart_k stale records in a row: the producer went back to a lower epoch, and this record opens its run. */
static int went_back(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                     unsalt_core_out_t *out, size_t *n_out) {
    struct us_later *later = us_later_new(core, session, in->epoch);
    if (!later) {
        return UNSALT_CORE_NOMEM;
    }
    later->start = us_start_alloc(core, session);
    if (later->start) {
        later->start->back = true;
    }
    later->reasm.cursor = 0;
    int err = UNSALT_CORE_NOMEM;
    if (later->start && us_shown_reserve(&later->start->shown, &core->mem)) {
        err = us_hold(core, session, &later->reasm, in, out, n_out);
    }
    if (err != UNSALT_CORE_OK || later->reasm.held == 0) { /* refused, or turned away */
        us_later_free(core, later);
        return err;
    }
    us_start_note(later->start, in);
    later->newest = in->timestamp;
    later->back = true;
    session->stale_run = 0;
    later->next = session->later; /* it is the next run, whatever its number says */
    session->later = later;
    session->special |= US_SPECIAL_LATER;
    us_epoch_over(core, later);
    return UNSALT_CORE_OK;
}

/* Of a run that is over; its numbers mean nothing any more. */
int us_stale(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
             unsalt_core_out_t *out, size_t *n_out) {
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_STALE, session);
    event->epoch = in->epoch;
    event->first = event->last = in->seq;
    event->part = in->part;
    event->offset = in->offset;
    us_arrival_out(core, in, us_late_state(core, UNSALT_STATE_STALE), out, n_out);
    out[*n_out - 1].flags |= UNSALT_OUT_STALE;
    return UNSALT_CORE_OK;
}

/*
 * Is it a sign that the producer went back? Of a session that is known by its cursor alone, an earlier run may be read
 * again, and there is nothing to compare it with: only if that lasts, it is one.
 */
static bool is_newer(const struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    if (session->newest == INT64_MIN) {
        session->stale_since = session->stale_since ? session->stale_since : core->now;
        return core->now - session->stale_since >= core->params.gap_stall_max_ns;
    }
    return in->timestamp < 0 || in->timestamp > session->newest;
}

static int stale_arrival(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                         unsalt_core_out_t *out, size_t *n_out) {
    bool newer = is_newer(core, session, in);
    if (newer && session->stale_run + 1u >= core->params.restart_k) {
        return went_back(core, session, in, out, n_out);
    }
    session->stale_run = (uint16_t)(session->stale_run + newer);
    session->special |= US_SPECIAL_STALE;
    return us_stale(core, session, in, out, n_out);
}

int us_epoch_arrival(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                     unsalt_core_out_t *out, size_t *n_out) {
    if (session->later && later_find(session, in->epoch)) {
        return later_arrival(core, session, in, out, n_out);
    }
    if (in->epoch == session->epoch) {
        session->stale_run = 0;
        session->special = (uint8_t)(session->special & ~US_SPECIAL_STALE);
        return US_EPOCH_CURRENT;
    }
    if (in->epoch > session->epoch) {
        session->stale_run = 0;
        return later_arrival(core, session, in, out, n_out);
    }
    if ((session->special & US_SPECIAL_STARTING) && session->began == 0) {
        return earlier_arrival(core, session, in, out, n_out);
    }
    return stale_arrival(core, session, in, out, n_out);
}

void us_epoch_over(struct unsalt_core *core, struct us_later *later) {
    struct us_session *session = later->wait.session;
    us_wait_cancel(core, &later->wait);
    for (struct us_later *before = session->later; before != later; before = before->next) {
        before->over = true;
    }
    later->over = true;
    if (session->special & US_SPECIAL_STARTING) {
        us_start_now(core, session); /* what came before the later run is all there is of the current one */
    }
    if (!(session->special & US_SPECIAL_ENDING)) {
        session->special |= US_SPECIAL_ENDING;
        us_epoch_continue(core, session);
    }
}

/* The later run takes over from the current one, which holds nothing any more. */
static void take_over(struct unsalt_core *core, struct us_session *session) {
    struct us_later *later = session->later;
    bool back = later->back;
    if (session->special & US_SPECIAL_SUSPECTS) {
        us_restart_copies(core, session);
    }
    unsalt_core_event_t *event = us_event(core, back ? UNSALT_CORE_EV_RESTART : UNSALT_CORE_EV_EPOCH, session);
    event->epoch = later->epoch;
    event->first = back ? us_reasm_lowest(&later->reasm) : session->reasm.cursor;
    event->last = back ? session->reasm.cursor : later->reasm.cursor;
    *(back ? &core->counters.restarts : &core->counters.epochs) += 1;
    us_wait_cancel(core, &session->gap);
    us_reasm_destroy(&session->reasm, &core->chunks);
    us_skips_destroy(&session->skips, &core->mem);
    us_start_free(core, session->start);
    us_redo_free(core, session);
    us_handed_former(core, session);
    us_changed(core, session);
    session->skips = (struct us_skips){0};
    session->reasm = later->reasm;
    session->before = session->newest > session->before ? session->newest : session->before;
    if (back && later->epoch == session->epoch) {
        session->special |= US_SPECIAL_RESTARTED;
    }
    session->began = core->now;
    session->epoch = later->epoch;
    session->newest = later->newest;
    session->start = NULL;
    session->last = false;
    session->rule = later->rule; /* the lanes of a run are its own */
    session->later = later->next;
    uint8_t cleared = US_SPECIAL_STARTING | US_SPECIAL_STARTED | US_SPECIAL_ENDING | US_SPECIAL_STALE;
    session->special = (uint8_t)(session->special & ~cleared);
    if (!session->later) {
        session->special = (uint8_t)(session->special & ~US_SPECIAL_LATER);
    }
    if (later->start) {
        us_start_begin(core, session, later->start);
        later->start = NULL;
    }
    later->reasm = (struct us_reasm){0};
    us_later_free(core, later);
}

/* The run that has just taken over may be over itself: what is held of it is all there is. */
static void next_is_over(struct unsalt_core *core, struct us_session *session) {
    if (!session->later || !session->later->over || (session->special & US_SPECIAL_ENDING)) {
        return;
    }
    if (session->special & US_SPECIAL_STARTING) {
        us_start_now(core, session);
    }
    if (!session->ready) {
        session->special |= US_SPECIAL_ENDING;
        us_wait_at(core, &session->gap, core->now);
    }
}

/*
 * A cursor tells of one run. As long as the application has records of this run, the next one waits, for a while: else
 * a checkpoint that is taken in between would tell of the next run, and after a crash these would be stale.
 */
static bool waits_for_acks(const struct unsalt_core *core, struct us_session *session) {
    bool waits = session->open > 0 && (session->takeover_at == 0 || core->now < session->takeover_at);
    if (!waits) {
        session->takeover_at = 0;
    } else if (session->takeover_at == 0) {
        session->takeover_at = us_time_add(core->now, TAKEOVER_WAIT_NS);
    }
    return waits;
}

void us_epoch_continue(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return;
    }
    if (!us_events_room(core)) {
        us_wait_at(core, &session->gap, core->now);
        return;
    }
    if (us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
        return;
    }
    if (session->reasm.held) {
        us_give_up(core, session, UNSALT_GAP_EPOCH);
        return;
    }
    if (waits_for_acks(core, session)) {
        us_wait_at(core, &session->gap, session->takeover_at);
        return;
    }
    take_over(core, session);
    if (session->special & US_SPECIAL_STARTING) {
        session->start->first_seen = us_reasm_lowest(&session->reasm) == core->params.seq_first;
        us_start_look(core, session);
    } else if (us_reasm_next_held(&session->reasm)) {
        us_ready(core, session);
    } else if (session->reasm.held) {
        us_blocked(core, session);
    }
    next_is_over(core, session);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions in memory: an idle one expires after session_ttl_ns, the idlest one goes when there would be more
 * than sessions_max, and one whose last record was released goes at once. Its cursor is remembered compactly; if that
 * isn't possible, the set notes that it forgot something. A session that holds records never goes, so there may be more
 * than sessions_max, by as many as the budgets let hold something.
 *
 * The list from the idlest on is refreshed lazily: a session is moved when it is looked at, not when it is used.
 */
#include <core/budget.h>
#include <core/doze.h>

#define TTL_MIN UINT64_C(1000000) /* or a session that isn't idle would be looked at all the time */
#define LOOK_MAX 64 /* sessions looked at in one expire */
#define LOOK_NEW 4  /* and when a new one comes; */
#define LOOK_FORCED 16 /* so many more if none of these may go */

static uint64_t ttl(const struct unsalt_core *core) {
    return core->params.session_ttl_ns > TTL_MIN ? core->params.session_ttl_ns : TTL_MIN;
}

void us_idle_unlink(struct unsalt_core *core, uint32_t ref) {
    const struct us_row *row = us_row_at(&core->rows, ref);
    if (row->idle_prev) {
        us_row_at(&core->rows, row->idle_prev)->idle_next = row->idle_next;
    } else {
        core->idle_first = row->idle_next;
    }
    if (row->idle_next) {
        us_row_at(&core->rows, row->idle_next)->idle_prev = row->idle_prev;
    } else {
        core->idle_last = row->idle_prev;
    }
}

static void append(struct unsalt_core *core, uint32_t ref) {
    struct us_row *row = us_row_at(&core->rows, ref);
    row->idle_since = row->active;
    row->idle_next = 0;
    row->idle_prev = core->idle_last;
    if (core->idle_last) {
        us_row_at(&core->rows, core->idle_last)->idle_next = ref;
    } else {
        core->idle_first = ref;
    }
    core->idle_last = ref;
}

void us_idle_touch(struct unsalt_core *core, uint32_t ref) {
    const struct us_row *row = us_row_at(&core->rows, ref);
    if (row->idle_prev || core->idle_first == ref) {
        us_idle_unlink(core, ref);
    }
    append(core, ref);
}

/* Holds nothing, and nothing of it is in anybody's hands. */
static bool is_empty(const struct us_session *session) {
    return !session->ready && session->reasm.held == 0 && !session->later && session->open == 0 &&
           session->former == 0 && !session->redo &&
           !(session->special & (US_SPECIAL_STARTING | US_SPECIAL_SUSPECTS | US_SPECIAL_ENDING));
}

bool us_session_is_idle(const struct us_session *session) {
    return is_empty(session) && session->change == US_CHANGE_NONE;
}

/*
 * What a marker covers right at the cursor is told when a record above it shows the gap. Nothing is above the end of a
 * session, so it is told when the session goes; the cursor stays, for a record that comes all the same.
 */
static void tell_marked_end(struct unsalt_core *core, const struct us_session *session) {
    uint64_t cursor = session->reasm.cursor;
    const struct us_range *mark = us_marker_at(&session->reasm, cursor);
    if (!mark || mark->first > cursor) {
        return;
    }
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_GAP, session);
    event->reason = UNSALT_GAP_MARKER;
    event->first = cursor;
    event->last = mark->last;
    event->waited_ns = core->now - session->row->active;
    core->counters.gaps[UNSALT_GAP_MARKER]++;
    uint64_t *numbers = &core->counters.gap_numbers[UNSALT_GAP_MARKER];
    *numbers = us_time_add(*numbers, mark->last - cursor + 1);
}

void us_tell_forgotten(struct unsalt_core *core, const struct us_session *session, bool forgot) {
    struct us_set *set = session->set;
    if (!set->forgot && (forgot || us_set_forgot(core, set))) {
        set->forgot = true;
        us_event(core, UNSALT_CORE_EV_FORGOTTEN, session);
    }
}

void us_set_remembers(const struct unsalt_core *core, struct us_set *set) {
    if (!set->remembers) {
        set->remembers = true;
        set->remembers_from = core->remembered.turns;
    }
}

/*
 * Which numbers were given up isn't remembered, so what is below the last of them is unknown. Without checkpoints
 * nothing is read again, and what is below the cursor had better be handed out twice than not at all.
 */
static uint64_t floor_of(const struct unsalt_core *core, const struct us_session *session) {
    const struct us_skips *skips = &session->skips;
    if (!core->params.cursors) {
        return session->reasm.cursor;
    }
    return skips->count > 0 ? skips->ranges[skips->count - 1].last + 1 : skips->floor;
}

void us_session_retire(struct unsalt_core *core, const struct us_session *session) {
    struct us_set *set = session->set;
    tell_marked_end(core, session);
    const struct us_cursor cursor = {session->epoch, session->reasm.cursor, floor_of(core, session)};
    bool kept = us_remembered_put(&core->remembered, &core->mem, set->tag, session->id, session->id_len, &cursor);
    us_set_remembers(core, set);
    us_tell_forgotten(core, session, !kept);
    core->counters.sessions_expired++;
    us_session_forget(core, set, session->ref);
}

/* The idlest one, awake or as it would be. There is one. */
static const struct us_session *idlest_of(const struct unsalt_core *core, struct us_view *view) {
    uint32_t tag = us_row_at(&core->rows, core->idle_first)->set;
    return us_session_view(core, us_set_find(core, tag), core->idle_first, view);
}

/* Retires the idlest session if it may go, else moves it to the end. */
static void look(struct unsalt_core *core) {
    struct us_row *row = us_row_at(&core->rows, core->idle_first);
    if (row->active > row->idle_since) {
        us_idle_touch(core, core->idle_first);
        return;
    }
    struct us_view view;
    const struct us_session *idlest = idlest_of(core, &view);
    if (us_session_is_idle(idlest)) {
        us_session_retire(core, idlest);
    } else {
        row->active = core->now;
        us_idle_touch(core, core->idle_first);
    }
}

/*
 * All of the idlest were in use since they were looked at last, or hold something: the first that holds nothing goes,
 * but for the one that has just come. A session that waits for a checkpoint stays, as long as there are no more than
 * twice as many as there may be: then its change is lost, and after a restart it goes on from an earlier cursor.
 */
static void one_must_go(struct unsalt_core *core) {
    bool any = core->counters.sessions / 2 > core->params.sessions_max;
    for (int i = 0; i < LOOK_FORCED; i++) {
        struct us_view view;
        const struct us_session *idlest = idlest_of(core, &view);
        if ((any ? is_empty(idlest) : us_session_is_idle(idlest)) && idlest != core->last_session) {
            us_tell_forgotten(core, idlest, idlest->change != US_CHANGE_NONE);
            us_session_retire(core, idlest);
            return;
        }
        us_idle_touch(core, core->idle_first);
    }
}

void us_idlest_goes(struct unsalt_core *core) {
    for (int i = 0; i < LOOK_NEW && core->counters.sessions > core->params.sessions_max && us_events_room(core); i++) {
        look(core);
    }
    if (core->counters.sessions > core->params.sessions_max && us_events_room(core)) {
        one_must_go(core);
    }
    us_budget_sessions(core);
}

void us_expire_sessions(struct unsalt_core *core) {
    const unsalt_core_params_t *params = &core->params;
    for (int i = 0; i < LOOK_MAX && core->idle_first && us_events_room(core); i++) {
        bool too_many = core->counters.sessions > params->sessions_max;
        if (!too_many && us_time_add(us_row_at(&core->rows, core->idle_first)->idle_since, ttl(core)) > core->now) {
            return;
        }
        look(core);
    }
}

uint64_t us_expiry_deadline(const struct unsalt_core *core) {
    if (!core->idle_first || core->params.session_ttl_ns == UNSALT_NEVER) {
        return UNSALT_NEVER;
    }
    return us_time_add(us_row_at(&core->rows, core->idle_first)->idle_since, ttl(core));
}

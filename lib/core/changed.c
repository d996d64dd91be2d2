/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sessions have changed since their cursor was taken: those that have wait in one list, those whose cursor is on
 * its way into a checkpoint in another. One that changes on the way goes back to the first list, so that it is
 * taken again whatever becomes of the checkpoint.
 */
#include <core/engine.h>

static struct us_change_list *list_of(struct unsalt_core *core, const struct us_session *session) {
    return session->change == US_CHANGE_TAKEN ? &core->taken : &core->changed;
}

void us_changed_unlink(struct unsalt_core *core, struct us_session *session) {
    struct us_change_list *list = list_of(core, session);
    if (session->change == US_CHANGE_NONE) {
        return;
    }
    if (session->change_prev) {
        session->change_prev->change_next = session->change_next;
    } else {
        list->first = session->change_next;
    }
    if (session->change_next) {
        session->change_next->change_prev = session->change_prev;
    } else {
        list->last = session->change_prev;
    }
    core->counters.cursors_changed -= session->change == US_CHANGE_CHANGED;
    session->change = US_CHANGE_NONE;
    session->change_prev = session->change_next = NULL;
}

static void append(struct unsalt_core *core, struct us_session *session, enum us_change change) {
    us_changed_unlink(core, session);
    session->change = (uint8_t)change;
    struct us_change_list *list = list_of(core, session);
    session->change_prev = list->last;
    if (list->last) {
        list->last->change_next = session;
    } else {
        list->first = session;
    }
    list->last = session;
    core->counters.cursors_changed += change == US_CHANGE_CHANGED;
}

void us_changed(struct unsalt_core *core, struct us_session *session) {
    if (core->params.cursors && session->change != US_CHANGE_CHANGED) {
        append(core, session, US_CHANGE_CHANGED);
    }
}

void us_changed_taken(struct unsalt_core *core, struct us_session *session) {
    append(core, session, US_CHANGE_TAKEN);
}

/* A session that has ended, or is one too many, and waited for its checkpoint only. */
static void retire_if_over(struct unsalt_core *core, struct us_session *session) {
    bool over = session->last || core->counters.sessions > core->params.sessions_max;
    if (over && us_session_is_idle(session) && us_events_room(core)) {
        us_session_retire(core, session);
    }
}

void unsalt_core_cursors_end(unsalt_core_t *core, bool kept) {
    while (core->taken.first) {
        struct us_session *session = core->taken.first;
        us_changed_unlink(core, session);
        if (kept) {
            retire_if_over(core, session);
        } else {
            us_changed(core, session);
        }
    }
    core->taking.active = false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions in memory: an idle one expires after session_ttl_ns, the idlest one goes when there would be more
 * than sessions_max, and one whose last record was released goes at once. Its cursor is remembered compactly; if that
 * isn't possible, the set notes that it forgot something. A session that holds records never goes, so there may be more
 * than sessions_max, by as many as the budgets let hold something.
 *
 * The list from the idlest on is refreshed lazily: a session is moved when it is looked at, not when it is used.
 */
#include <core/engine.h>

#define LOOK_MAX 64 /* sessions looked at in one expire */
#define LOOK_NEW 4  /* and when a new one comes */

void us_idle_unlink(struct unsalt_core *core, struct us_session *session) {
    if (session->idle_prev) {
        session->idle_prev->idle_next = session->idle_next;
    } else if (core->idle_first == session) {
        core->idle_first = session->idle_next;
    }
    if (session->idle_next) {
        session->idle_next->idle_prev = session->idle_prev;
    } else if (core->idle_last == session) {
        core->idle_last = session->idle_prev;
    }
    session->idle_prev = session->idle_next = NULL;
}

void us_idle_touch(struct unsalt_core *core, struct us_session *session) {
    us_idle_unlink(core, session);
    session->idle_since = session->active;
    session->idle_prev = core->idle_last;
    if (core->idle_last) {
        core->idle_last->idle_next = session;
    } else {
        core->idle_first = session;
    }
    core->idle_last = session;
}

bool us_session_is_idle(const struct us_session *session) {
    return !session->ready && session->reasm.held == 0 && !session->later &&
           !(session->special & (US_SPECIAL_STARTING | US_SPECIAL_SUSPECTS | US_SPECIAL_ENDING));
}

void us_session_retire(struct unsalt_core *core, struct us_session *session) {
    struct us_set *set = session->set;
    if (!us_cursors_put(&core->cursors, &core->mem, set->tag, session->id, session->id_len, session->epoch,
                        session->reasm.cursor) &&
        !set->forgot) {
        set->forgot = true;
        us_event(core, UNSALT_CORE_EV_FORGOTTEN, session);
    }
    core->counters.sessions_expired++;
    us_session_free(core, session);
}

/* Retires the idlest session if it may go, else moves it to the end. */
static void look(struct unsalt_core *core) {
    struct us_session *idlest = core->idle_first;
    if (idlest->active > idlest->idle_since) {
        us_idle_touch(core, idlest);
    } else if (us_session_is_idle(idlest)) {
        us_session_retire(core, idlest);
    } else {
        idlest->active = core->now;
        us_idle_touch(core, idlest);
    }
}

void us_idlest_goes(struct unsalt_core *core) {
    for (int i = 0; i < LOOK_NEW && core->counters.sessions > core->params.sessions_max; i++) {
        look(core);
    }
}

void us_expire_sessions(struct unsalt_core *core) {
    const unsalt_core_params_t *params = &core->params;
    for (int i = 0; i < LOOK_MAX && core->idle_first && us_events_room(core); i++) {
        bool too_many = core->counters.sessions > params->sessions_max;
        if (!too_many && us_time_add(core->idle_first->idle_since, params->session_ttl_ns) > core->now) {
            return;
        }
        look(core);
    }
}

uint64_t us_expiry_deadline(const struct unsalt_core *core) {
    if (!core->idle_first || core->params.session_ttl_ns == UNSALT_NEVER) {
        return UNSALT_NEVER;
    }
    return us_time_add(core->idle_first->idle_since, core->params.session_ttl_ns);
}

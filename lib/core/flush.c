/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `flush`: the application asks for what is held, whatever is missing. Every gap below a record that had
 * arrived by then gives way; later arrivals are waited for as ever. A session is marked, and its gaps follow one
 * another as it is drained; those that find no room for their event now go with the next expire.
 */
#include <core/doze.h>

bool us_flush_wanted(const struct unsalt_core *core, struct us_session *session) {
    session->flushing = us_reasm_oldest(&session->reasm) <= core->flush_time;
    return session->flushing;
}

static void flush(struct unsalt_core *core, struct us_session *session) {
    session->flushing = session->reasm.held != 0;
    if (session->ready || !session->flushing) {
        return;
    }
    if (session->special & US_SPECIAL_STARTING) {
        if (us_events_room(core)) {
            us_start_now(core, session);
        }
    } else if (session->blocked && us_events_room(core)) {
        us_give_up(core, session, UNSALT_GAP_FLUSH);
    } else if (session->blocked) {
        us_wait_at(core, &session->gap, core->now);
    }
}

/* All that doze. Without memory they are flushed with the next expire. */
static void wake(struct unsalt_core *core, struct us_set *set) {
    if (us_doze_wake_all(core, set)) {
        return;
    }
    for (struct us_doze *doze = set->doze_first; doze; doze = doze->next) {
        doze->flushing = true;
        us_wait_at(core, &doze->wait, core->now);
    }
}

void unsalt_core_flush(unsalt_core_t *core, uint64_t now) {
    core->flush_time = us_core_time(core, now);
    core->make_room |= core->failing;
    core->failing = false;
    for (struct us_set *set = core->sets; set; set = set->next) {
        wake(core, set);
        for (struct us_session *session = set->awake_first; session; session = session->awake_next) {
            flush(core, session);
        }
    }
}

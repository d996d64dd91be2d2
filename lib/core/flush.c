/* SPDX-License-Identifier: BSD-2-Clause */
/* Verdict `flush`: the application asks for what is held, whatever is missing. */
#include <core/engine.h>

static void flush(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return;
    }
    if (session->special & US_SPECIAL_STARTING) {
        us_start_now(core, session);
    } else if (session->blocked) {
        us_give_up(core, session, UNSALT_GAP_FLUSH);
    }
}

void unsalt_core_flush(unsalt_core_t *core, uint64_t now) {
    us_core_time(core, now);
    for (struct us_set *set = core->sets; set; set = set->next) {
        for (struct us_session *session = us_session_first(set); session; session = us_session_next(session)) {
            if (!us_events_room(core)) {
                return;
            }
            flush(core, session);
        }
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gap is given up before it is due when the fate of every one of its numbers is known: the producer said so (marker),
 * its lane has shown that it was lost (proven), or it was consumed before (resumed). Giving up a part of it would
 * release nothing, so the gap stands until all of it is known. Then each stretch goes with its own reason; and so
 * do its first ones if time ends it before.
 */
#include <core/engine.h>

#define OPEN UNSALT_GAP__CNT
/* Numbers that are looked at one by one; a longer stretch is judged as one. */
#define LOOK 64
/* Stretches that are given up in one go: each is an event. The rest follows at the next look. */
#define STRETCHES 4

/* One number, or several that are judged as one. */
static unsalt_gap_reason_t judge(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                                 uint64_t last) {
    if ((session->special & US_SPECIAL_STARTED) && us_resumed_proven(core, session, first, last)) {
        return UNSALT_GAP_RESUMED;
    }
    return us_proven(core, session, first, last) ? UNSALT_GAP_PROVEN : OPEN;
}

/* The fate of `first`, and how far it is that of the numbers after it: up to `last` at most. */
static unsalt_gap_reason_t stretch(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                                   uint64_t *last) {
    const struct us_range *mark = us_marker_at(&session->reasm, first);
    if (mark && mark->first <= first) {
        *last = mark->last < *last ? mark->last : *last;
        return UNSALT_GAP_MARKER;
    }
    if (mark && mark->first <= *last) {
        *last = mark->first - 1;
    }
    if (us_any_away(&session->reasm)) {
        uint64_t away = us_away_next(&session->reasm.evidence->away, first);
        if (away == first) {
            *last = us_away_upto(&session->reasm.evidence->away, first, *last);
            return UNSALT_GAP_OVERFLOW;
        }
        *last = away <= *last ? away - 1 : *last;
    }
    if (*last - first >= LOOK) {
        return judge(core, session, first, *last);
    }
    unsalt_gap_reason_t fate = judge(core, session, first, first);
    uint64_t at = first;
    while (fate != OPEN && at < *last && judge(core, session, at + 1, at + 1) == fate) {
        at++;
    }
    *last = at;
    return fate;
}

static bool all_known(const struct unsalt_core *core, const struct us_session *session, uint64_t last) {
    for (uint64_t at = session->reasm.cursor, end; at <= last; at = end + 1) {
        end = last;
        if (stretch(core, session, at, &end) == OPEN) {
            return false;
        }
    }
    return true;
}

void us_fate_first(struct unsalt_core *core, struct us_session *session) {
    uint64_t last = us_gap_last(session);
    for (int i = 0; i < STRETCHES && session->reasm.cursor < last; i++) {
        uint64_t end = last - 1;
        unsalt_gap_reason_t reason = stretch(core, session, session->reasm.cursor, &end);
        if (reason == OPEN) {
            return;
        }
        us_give_up_to(core, session, end, reason);
    }
}

bool us_fate_known(struct unsalt_core *core, struct us_session *session) {
    uint64_t end = session->reasm.cursor;
    if ((!session->reasm.evidence && !(session->special & US_SPECIAL_STARTED)) ||
        stretch(core, session, end, &end) == OPEN) {
        return false; /* the ordinary case: nothing is known of the next number */
    }
    uint64_t last = us_gap_last(session);
    /* Numbers that were turned away may lie between many others: then the cursor goes as far as is known. */
    if (!us_any_away(&session->reasm) && !all_known(core, session, last)) {
        return false;
    }
    for (int i = 0; i < STRETCHES && session->reasm.cursor <= last; i++) {
        end = last;
        unsalt_gap_reason_t reason = stretch(core, session, session->reasm.cursor, &end);
        if (reason == OPEN) {
            return false;
        }
        us_give_up_to(core, session, end, reason);
    }
    if (session->reasm.cursor <= last) {
        us_wait_at(core, &session->gap, core->now);
    }
    return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a session waits, and why the horizon that it waits for stands where it is. Reads only. */
#include <core/doze.h>

const char *unsalt_stand_name(unsalt_stand_t stand) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_STANDS(X)
#undef X
    };
    return (unsigned)stand < UNSALT_STAND__CNT ? names[stand] : "?";
}

const char *unsalt_stand_text(unsalt_stand_t stand) {
    static const char *const texts[] = {
#define X(C, name, text) text,
        UNSALT_STANDS(X)
#undef X
    };
    return (unsigned)stand < UNSALT_STAND__CNT ? texts[stand] : "?";
}

static unsalt_stand_t stand_of(const struct us_part *part) {
    const struct us_horizon *horizon = &part->horizon;
    if (!us_set_complete(part->set)) {
        return UNSALT_STAND_INCOMPLETE;
    }
    if (!us_part_owed(part)) {
        return UNSALT_STAND_NOTHING;
    }
    if (part->stalled) {
        return UNSALT_STAND_STALLED;
    }
    if (part->paused) {
        return UNSALT_STAND_PAUSED;
    }
    if (part->refused) {
        return UNSALT_STAND_REFUSED;
    }
    if (horizon->count > 0 && horizon->pending[horizon->count - 1].asked >= part->need) {
        return UNSALT_STAND_BEHIND;
    }
    return horizon->in_flight ? UNSALT_STAND_ASKED : UNSALT_STAND_TO_ASK;
}

int unsalt_core_horizon_info(const unsalt_core_t *core, uint32_t index, unsalt_core_horizon_info_t *info) {
    const struct us_part *part = us_part_get(core, index);
    if (!part) {
        return UNSALT_CORE_INVAL;
    }
    const struct us_horizon *horizon = &part->horizon;
    *info = (unsalt_core_horizon_info_t){
        .stand = stand_of(part),
        .reached = horizon->reached,
        .needed = part->need,
        .waiting = part->waiting.count,
        .asked = horizon->asked,
        .read = part->last_offset >= horizon->passed ? part->last_offset + 1 : horizon->passed,
        .end = horizon->count > 0 ? horizon->pending[0].end : -1,
    };
    return UNSALT_CORE_OK;
}

/* S of the missing numbers, or of the newest record if none is missing. */
static uint16_t lanes_at_gap(const struct us_session *session) {
    if (session->reasm.held == 0) {
        return session->rule.lanes;
    }
    bool known = us_lanes_known(session, session->reasm.cursor, us_gap_last(session));
    return known ? session->rule.lanes : 0;
}

static void fill(const struct unsalt_core *core, const struct us_session *session, unsalt_core_session_info_t *info) {
    bool starting = session->special & US_SPECIAL_STARTING;
    *info = (unsalt_core_session_info_t){
        .epoch = session->epoch,
        .cursor = starting ? UNSALT_NO_SEQ : session->reasm.cursor,
        .lowest = us_reasm_lowest(&session->reasm),
        .held = session->reasm.held,
        .held_bytes = session->reasm.held_bytes,
        .opened = us_reasm_oldest(&session->reasm),
        .due = UNSALT_NEVER,
        .waits_for = UINT32_MAX,
        .lanes = lanes_at_gap(session),
        .starting = starting,
        .ready = session->ready,
        .ending = session->special & US_SPECIAL_ENDING,
        .proof_off = session->reasm.evidence && session->reasm.evidence->broken,
    };
    const struct us_wait *wait = starting ? &session->start->wait : &session->gap;
    if (session->blocked && core->params.gap_timeout_ns != UNSALT_NEVER) {
        info->due = us_gap_due_at(core, session);
    }
    if (starting && us_set_complete(session->set) && wait->where == US_WHERE_CLOCK) {
        info->due = wait->due;
    }
    if (wait->where < US_WHERE_CLOCK) {
        info->waits_for = wait->where;
    }
    for (const struct us_later *later = session->later; later; later = later->next) {
        info->later_runs++;
    }
}

int unsalt_core_session_info(const unsalt_core_t *core, uint32_t set, const void *id, uint32_t len,
                             unsalt_core_session_info_t *info) {
    struct us_view view;
    struct us_set *found = us_set_find(core, set);
    uint32_t ref = found ? us_session_find(core, found, id, len, us_session_hash(core, id, len)) : 0;
    if (!ref) {
        return UNSALT_CORE_INVAL;
    }
    fill(core, us_session_view(core, found, ref, &view), info);
    return UNSALT_CORE_OK;
}

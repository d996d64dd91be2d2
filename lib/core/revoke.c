/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A partition is taken away. What is held from it leaves as REVOKED: it will be read again, by whoever owns it next,
 * from the committed frontier. So what a session of the set knows of its cursor is void, or a record that was
 * handed out, not committed, and is read again would pass for a duplicate: such sessions start again, as after a
 * restart; but what the partitions that stay have shown is not forgotten (stay.c). All room that this needs is made
 * before anything is changed.
 */
#include <core/doze.h>

static uint32_t held_of_part(const struct us_session *session, uint16_t part) {
    uint32_t n = us_reasm_count_part(&session->reasm, part);
    for (const struct us_later *later = session->later; later; later = later->next) {
        n += us_reasm_count_part(&later->reasm, part);
    }
    for (uint32_t i = 0; session->suspects && i < session->suspects->count; i++) {
        n += session->suspects->held[i].part == part;
    }
    return n;
}

static void gone(void *opaque, const struct us_held *held) {
    us_leaving_add(opaque, held, UNSALT_STATE_REVOKED);
}

static void remove_suspects(struct unsalt_core *core, struct us_session *session, uint16_t part) {
    struct us_suspects *suspects = session->suspects;
    uint32_t kept = 0;
    for (uint32_t i = 0; suspects && i < suspects->count; i++) {
        if (suspects->held[i].part == part) {
            core->leaving.promised--;
            us_leaving_add(core, &suspects->held[i], UNSALT_STATE_REVOKED);
        } else {
            suspects->held[kept++] = suspects->held[i];
        }
    }
    if (suspects) {
        suspects->count = kept;
    }
}

/* Later runs that hold nothing any more: they will be met again. */
static void remove_empty_later(struct unsalt_core *core, struct us_session *session) {
    struct us_later **link = &session->later;
    while (*link) {
        struct us_later *later = *link;
        if (later->reasm.held) {
            link = &later->next;
            continue;
        }
        *link = later->next;
        us_later_free(core, later);
    }
    if (!session->later) {
        session->special = (uint8_t)(session->special & ~US_SPECIAL_LATER);
    }
}

static void remove_records(struct unsalt_core *core, struct us_session *session, uint16_t part) {
    us_reasm_remove_part(&session->reasm, &core->chunks, part, gone, core);
    for (struct us_later *later = session->later; later; later = later->next) {
        us_reasm_remove_part(&later->reasm, &core->chunks, part, gone, core);
    }
    remove_empty_later(core, session);
    remove_suspects(core, session, part);
}

/* The tail of the runs before it will be read again, so nothing says any more that they are over. */
static void restart_later(struct unsalt_core *core, struct us_later *later, uint16_t part) {
    us_shown_forget(&later->shown, part);
    if (later->start) {
        us_shown_forget(&later->start->shown, part);
    }
    us_evidence_forget(later->reasm.evidence);
    later->over = false;
    us_wait_at(core, &later->wait, core->now);
}

static void restart_session(struct unsalt_core *core, struct us_session *session, uint16_t part) {
    struct us_start *start = session->start;
    us_unready(core, session);
    us_changed_unlink(core, session);
    us_redo_free(core, session);
    session->takeover_at = 0;
    if (session->blocked) {
        session->blocked = false;
        core->counters.gaps_open--;
    }
    us_wait_cancel(core, &session->gap);
    us_wait_cancel(core, &start->wait);
    us_skips_destroy(&session->skips, &core->mem);
    session->skips = (struct us_skips){0};
    session->began = 0;
    us_start_stay(core, session, part);
    us_evidence_forget(session->reasm.evidence);
    start->first_seen = us_reasm_lowest(&session->reasm) == core->params.seq_first;
    session->special = (uint8_t)(session->special & ~US_SPECIAL_ENDING);
    us_start_begin(core, session, start);
    us_reasm_skip(&session->reasm, 0);
    us_wait_at(core, &start->wait, core->now);
    for (struct us_later *later = session->later; later; later = later->next) {
        restart_later(core, later, part);
    }
}

static bool holds_anything(const struct us_session *session) {
    return session->reasm.held || session->later;
}

/* Makes all the room: the records that leave, a start for each session that stays. False: nothing changed. */
static bool reserve(struct unsalt_core *core, const struct us_set *set, uint16_t part, bool last) {
    uint64_t leaving = 0;
    for (struct us_session *session = set->awake_first; session; session = session->awake_next) {
        leaving += held_of_part(session, part);
        if (last) {
            continue;
        }
        session->start = session->start ? session->start : us_start_alloc(core, session);
        if (!session->start || !us_start_stay_reserve(core, session, set->part_count)) {
            return false;
        }
    }
    return leaving <= UINT32_MAX && us_leaving_reserve(core, (uint32_t)leaving);
}

/* Starts that were made for nothing: their sessions are not special. */
static void unreserve(struct unsalt_core *core, const struct us_set *set) {
    for (struct us_session *session = set->awake_first; session; session = session->awake_next) {
        if (session->start && !(session->special & (US_SPECIAL_STARTING | US_SPECIAL_STARTED))) {
            us_start_free(core, session->start);
            session->start = NULL;
        }
    }
}

int unsalt_core_revoke(unsalt_core_t *core, uint32_t index, uint64_t now) {
    us_core_time(core, now);
    struct us_part *part = us_part_get(core, index);
    if (!part) {
        return UNSALT_CORE_INVAL;
    }
    struct us_set *set = part->set;
    bool last = set->part_count == 1;
    if (!us_doze_wake_all(core, set) || !reserve(core, set, (uint16_t)index, last)) {
        unreserve(core, set);
        return UNSALT_CORE_NOMEM;
    }
    us_handed_forget_set(core, set); /* their sessions go, or start again */
    us_sessions_drop_resting(core, set);
    struct us_session *next;
    for (struct us_session *session = set->awake_first; session; session = next) {
        next = session->awake_next;
        remove_records(core, session, (uint16_t)index);
        us_restart_unresolved(core, session);
        if (last || !holds_anything(session)) {
            us_session_free(core, session);
        } else {
            restart_session(core, session, (uint16_t)index);
        }
    }
    us_remembered_drop_set(&core->remembered, set->tag); /* void like all cursors of the set */
    set->joined_middle = true;
    for (uint32_t i = 0; i < set->part_count; i++) {
        /* To the sessions that start again, what stays was joined just now. */
        core->parts[set->parts[i]].joined_middle = core->parts[set->parts[i]].above_start = true;
    }
    us_heap_destroy(&part->waiting, &core->mem);
    us_frontier_destroy(&part->frontier, &core->mem);
    us_free(&core->mem, part->handed.slots);
    us_done_before_destroy(&part->done_before, &core->mem);
    us_set_remove(core, set, index);
    *part = (struct us_part){0};
    core->part_free = index < core->part_free ? index : core->part_free;
    core->counters.partitions--;
    return UNSALT_CORE_OK;
}

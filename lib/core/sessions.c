/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions in memory: at rest they are a row (rows.h), awake they have all that a session may need. A session wakes
 * when a record of it comes that is not simply the next one, and goes to rest when nothing is held, nothing is special
 * and the last record was another one's. Ids come from producers, so the table's hash is seeded.
 */
#include <core/doze.h>
#include <string.h>

#define SPARES_MAX 64 /* blocks of sessions that went to rest which are kept, with their lanes */
#define SPARE_LANES 16

uint32_t us_session_hash(const struct unsalt_core *core, const void *id, uint32_t len) {
    return (uint32_t)us_hash(id, len, core->params.hash_seed);
}

/* ---- blocks */

/* A block with what another session has left for it: FIFOs of lanes, all empty. Zeroed but for these. */
static struct us_session *block_new(struct unsalt_core *core) {
    struct us_session *block = core->spare_sessions;
    if (!block) {
        return us_calloc(&core->mem, 1, sizeof(*block));
    }
    core->spare_sessions = block->ready_next;
    core->spare_session_count--;
    struct us_lane *lanes = block->reasm.lanes;
    uint16_t lane_count = block->reasm.lane_count;
    memset(block, 0, sizeof(*block));
    block->reasm.lanes = lanes;
    block->reasm.lane_count = lane_count;
    return block;
}

/* A block that holds nothing but, perhaps, empty FIFOs. */
static void block_free(struct unsalt_core *core, struct us_session *block) {
    if (core->spare_session_count == SPARES_MAX || block->reasm.lane_count > SPARE_LANES) {
        us_free(&core->mem, block->reasm.lanes);
        us_free(&core->mem, block);
        return;
    }
    block->ready_next = core->spare_sessions;
    core->spare_sessions = block;
    core->spare_session_count++;
}

void us_sessions_destroy(struct unsalt_core *core) {
    while (core->spare_sessions) {
        struct us_session *block = core->spare_sessions;
        core->spare_sessions = block->ready_next;
        us_free(&core->mem, block->reasm.lanes);
        us_free(&core->mem, block);
    }
    us_rows_destroy(&core->rows, &core->mem);
}

/* ---- awake */

void us_session_link_awake(struct unsalt_core *core, struct us_session *session) {
    struct us_set *set = session->set;
    core->awake_count++;
    session->awake_prev = set->awake_last;
    session->awake_next = NULL;
    if (set->awake_last) {
        set->awake_last->awake_next = session;
    } else {
        set->awake_first = session;
    }
    set->awake_last = session;
}

void us_session_unlink_awake(struct unsalt_core *core, struct us_session *session) {
    struct us_set *set = session->set;
    core->awake_count--;
    if (session->awake_prev) {
        session->awake_prev->awake_next = session->awake_next;
    } else {
        set->awake_first = session->awake_next;
    }
    if (session->awake_next) {
        session->awake_next->awake_prev = session->awake_prev;
    } else {
        set->awake_last = session->awake_prev;
    }
}

/* What a session is before it has met anything, in memory that is zero. */
static void begin(const struct unsalt_core *core, struct us_set *set, uint32_t ref, struct us_session *session) {
    struct us_row *row = us_row_at(&core->rows, ref);
    session->row = row;
    session->ref = ref;
    session->id = row->id;
    session->id_len = row->id_len;
    session->set = set;
    session->rule.since = UNSALT_NO_SEQ;
    session->refused_since = UNSALT_NEVER;
    session->newest = INT64_MIN;
    session->before = INT64_MIN;
    us_wait_init(&session->gap, US_WAIT_GAP, session);
}

struct us_session *us_session_block(struct unsalt_core *core, struct us_set *set, uint32_t ref) {
    struct us_session *session = block_new(core);
    if (session) {
        begin(core, set, ref, session);
        us_session_link_awake(core, session);
    }
    return session;
}

void us_session_block_back(struct unsalt_core *core, struct us_session *session) {
    us_session_unlink_awake(core, session);
    us_skips_destroy(&session->skips, &core->mem);
    block_free(core, session);
}

/* The same, with room for its timer. NULL: out of memory, nothing changed. */
static struct us_session *awaken(struct unsalt_core *core, struct us_set *set, uint32_t ref) {
    if (!us_wait_reserve(core)) {
        return NULL;
    }
    struct us_session *session = us_session_block(core, set, ref);
    if (!session) {
        core->waits--;
    }
    return session;
}

void us_session_remember(struct us_session *session, uint64_t cursor) {
    const struct us_row *row = session->row;
    session->reasm.cursor = cursor;
    session->epoch = row->epoch;
    session->newest = row->newest;
    session->rule.lanes = row->lanes;
    session->rule.vary = row->vary;
    session->rule.since = row->since == UINT32_MAX ? UNSALT_NO_SEQ : row->since;
    session->rule.upto = row->lanes ? cursor - 1 : 0;
    session->skips.floor = row->floor;
}

struct us_session *us_session_wake(struct unsalt_core *core, struct us_set *set, uint32_t ref) {
    struct us_row *row = us_row_at(&core->rows, ref);
    if (row->is_awake) {
        return row->dozes ? us_doze_wake(core, row->is.doze) : row->is.awake;
    }
    struct us_session *session = awaken(core, set, ref);
    if (session) {
        us_session_remember(session, row->is.cursor);
        row->is.awake = session;
        row->is_awake = 1;
    }
    return session;
}

void us_session_view_begin(const struct unsalt_core *core, struct us_set *set, uint32_t ref, struct us_view *view) {
    memset(view, 0, sizeof(*view));
    begin(core, set, ref, &view->session);
}

const struct us_session *us_session_view(const struct unsalt_core *core, struct us_set *set, uint32_t ref,
                                         struct us_view *view) {
    const struct us_row *row = us_row_at(&core->rows, ref);
    if (row->is_awake) {
        return row->dozes ? us_doze_view(core, row->is.doze, view) : row->is.awake;
    }
    us_session_view_begin(core, set, ref, view);
    us_session_remember(&view->session, row->is.cursor);
    return &view->session;
}

/* Evidence speaks of numbers above the cursor, or of what was given up: then it has to be kept. */
static bool evidence_matters(const struct us_evidence *evidence) {
    return evidence && (evidence->mark_count || evidence->proven.count || evidence->proven.floor ||
                        evidence->away.count || evidence->broken);
}

/*
 * Each field of a session is in one of these two lists, in us_session_remember(), or void at rest: `began` is of use to
 * what was held when the run took over, `before` as far as it is above `newest`.
 */
bool us_session_is_plain(const struct us_session *session) {
    uint64_t since = session->rule.since;
    return session->special == 0 && session->change == US_CHANGE_NONE && !session->ready && !session->after_gap &&
           !session->last && !session->flushing && !session->told && !session->restored && !session->start &&
           !session->later && !session->suspects && !session->redo && session->open == 0 && session->former == 0 &&
           session->stale_run == 0 && session->stale_since == 0 && session->takeover_at == 0 &&
           session->before <= session->newest && session->refused_since == UNSALT_NEVER &&
           session->skips.floor <= UINT32_MAX && (since < UINT32_MAX || since == UNSALT_NO_SEQ);
}

/*
 * Nothing that a row has no place for. Lanes of numbers below the cursor are of no use to anybody. A timer that is
 * armed runs out first.
 */
static bool may_rest(const struct us_session *session) {
    const struct us_lane_rule *rule = &session->rule;
    return session->reasm.held == 0 && session->gap.where == US_WHERE_NONE && !session->blocked &&
           session->skips.count == 0 && !evidence_matters(session->reasm.evidence) &&
           (rule->lanes == 0 || rule->upto < session->reasm.cursor) && us_session_is_plain(session);
}

void us_session_keep(const struct us_session *session) {
    struct us_row *row = session->row;
    row->epoch = session->epoch;
    row->newest = session->newest;
    row->lanes = session->rule.lanes;
    row->vary = session->rule.vary;
    row->since = session->rule.since == UNSALT_NO_SEQ ? UINT32_MAX : (uint32_t)session->rule.since;
    row->floor = (uint32_t)session->skips.floor;
}

/*
 * Its gap was filled, so the timer would find nothing to do. Whether it goes doesn't depend on whether the session may
 * rest, or on which is the last one: else which one of two equal timers comes out first would depend on that too. With
 * too many sessions it stays: when it runs out, expiry looks again.
 */
static void let_timer_go(struct unsalt_core *core, struct us_session *session) {
    bool filled = session->reasm.held == 0 && session->special == 0 && !session->ready && !session->start &&
                  !session->later && !us_any_away(&session->reasm);
    if (filled && core->counters.sessions <= core->params.sessions_max) {
        us_wait_cancel(core, &session->gap);
    }
}

void us_idle_awake(struct unsalt_core *core, struct us_session *session) {
    struct us_row *row = session->row;
    let_timer_go(core, session);
    session->flushing &= session->reasm.held > 0; /* what it was to release is gone */
    if (session == core->last_session || !may_rest(session)) {
        return;
    }
    row->is.cursor = session->reasm.cursor;
    row->is_awake = 0;
    us_session_keep(session);
    us_wait_gone(core, &session->gap);
    us_reasm_empty(&session->reasm, &core->chunks);
    us_session_block_back(core, session);
}

void us_session_current(struct unsalt_core *core, struct us_session *session) {
    struct us_session *before = core->last_session;
    core->last_session = session;
    if (before && before != session) {
        us_idle_awake(core, before);
    }
    if (core->awake_count > core->awake_max) {
        us_doze_oldest(core, session->set);
    }
}

/* ---- coming and going */

uint32_t us_session_find(const struct unsalt_core *core, const struct us_set *set, const void *id, uint32_t len,
                         uint32_t hash) {
    return us_row_find(&core->rows, &set->table, id, len, hash);
}

struct us_session *us_session_new(struct unsalt_core *core, struct us_set *set, const void *id, uint32_t len,
                                  uint32_t hash) {
    uint32_t ref = us_row_new(&core->rows, &core->mem, id, len);
    if (!ref) {
        return NULL;
    }
    if (!us_row_enter(&set->table, &core->mem, ref, hash)) {
        us_row_free(&core->rows, ref);
        return NULL;
    }
    struct us_session *session = awaken(core, set, ref);
    if (!session) {
        us_row_leave(&set->table, ref, hash);
        us_row_free(&core->rows, ref);
        return NULL;
    }
    struct us_row *row = session->row;
    row->is.awake = session;
    row->is_awake = 1;
    row->set = set->tag;
    row->active = core->now;
    us_idle_touch(core, ref);
    core->counters.sessions++;
    core->counters.sessions_created++;
    return session;
}

/* The row, of a session that is at rest or was freed. */
static void row_gone(struct unsalt_core *core, struct us_set *set, uint32_t ref) {
    const struct us_row *row = us_row_at(&core->rows, ref);
    us_idle_unlink(core, ref);
    us_row_leave(&set->table, ref, us_session_hash(core, row->id, row->id_len));
    us_row_free(&core->rows, ref);
    core->counters.sessions--;
}

void us_session_forget(struct unsalt_core *core, struct us_set *set, uint32_t ref) {
    struct us_row *row = us_row_at(&core->rows, ref);
    if (row->is_awake) {
        us_session_free(core, row->is.awake);
    } else {
        row_gone(core, set, ref);
    }
}

void us_session_free(struct unsalt_core *core, struct us_session *session) {
    us_unready(core, session);
    us_changed_unlink(core, session);
    us_free(&core->mem, session->redo);
    us_wait_gone(core, &session->gap);
    us_start_free(core, session->start);
    while (session->later) {
        struct us_later *later = session->later;
        session->later = later->next;
        us_later_free(core, later);
    }
    if (session->suspects) {
        us_wait_gone(core, &session->suspects->wait);
        us_free(&core->mem, session->suspects->held);
        us_free(&core->mem, session->suspects);
    }
    us_reasm_empty(&session->reasm, &core->chunks);
    if (session->blocked) {
        core->counters.gaps_open--;
    }
    if (core->last_session == session) {
        core->last_session = NULL;
    }
    row_gone(core, session->set, session->ref);
    us_session_block_back(core, session);
}

void us_sessions_drop(struct unsalt_core *core, struct us_set *set) {
    us_dozes_drop(core, set);
    while (set->awake_first) {
        us_session_free(core, set->awake_first);
    }
    for (uint32_t i = 0; set->table.slots && i <= set->table.mask; i++) {
        while (set->table.slots[i].ref) { /* another one may move up */
            row_gone(core, set, set->table.slots[i].ref);
        }
    }
    us_row_table_destroy(&set->table, &core->mem);
}

void us_sessions_drop_resting(struct unsalt_core *core, struct us_set *set) {
    for (uint32_t i = 0; set->table.slots && i <= set->table.mask; i++) {
        while (set->table.slots[i].ref && !us_row_at(&core->rows, set->table.slots[i].ref)->is_awake) {
            row_gone(core, set, set->table.slots[i].ref);
        }
    }
}

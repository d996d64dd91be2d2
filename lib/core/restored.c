/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursors of an earlier owner. Most are a number and no more: they are remembered compactly, like those of sessions
 * that have expired. One that has something done above its cursor becomes a session at once, with a redo: the cursor
 * passes what is done when it gets there, and a record of it is a copy (or late, if its number was given up).
 */
#include <core/engine.h>

/* ---- the redo of a session */

const struct us_redo_range *us_redo_find(const struct us_redo *redo, uint64_t seq) {
    uint32_t low = redo->at, high = redo->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (redo->ranges[middle].last < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < redo->count && redo->ranges[low].first <= seq ? &redo->ranges[low] : NULL;
}

void us_redo_free(struct unsalt_core *core, struct us_session *session) {
    us_free(&core->mem, session->redo);
    session->redo = NULL;
    session->special = (uint8_t)(session->special & ~US_SPECIAL_REDO);
}

void us_redo_pass(struct unsalt_core *core, struct us_session *session) {
    struct us_redo *redo = session->redo;
    while (redo && redo->at < redo->count && redo->ranges[redo->at].first <= session->reasm.cursor) {
        const struct us_redo_range *range = &redo->ranges[redo->at++];
        if (range->last < session->reasm.cursor) {
            continue;
        }
        if (range->skipped) {
            us_skips_add(&session->skips, &core->mem, core->params.skips_max, range->first, range->last);
        }
        us_reasm_skip(&session->reasm, range->last + 1);
        us_changed(core, session);
    }
    if (redo && redo->at == redo->count) {
        us_redo_free(core, session);
    }
}

/* ---- restoring */

/* The ranges are ascending and apart, and there is a number above them. */
static bool is_list(const unsalt_core_range_t *ranges, uint32_t n) {
    return us_ranges_ascending(ranges, n) && (n == 0 || ranges[n - 1].last != UINT64_MAX);
}

/* Does no range of one list meet one of the other? Both are ascending. */
static bool are_apart(const unsalt_core_cursor_t *cursor) {
    for (uint32_t i = 0, k = 0; i < cursor->done_count && k < cursor->skipped_count;) {
        const unsalt_core_range_t *done = &cursor->done[i], *skipped = &cursor->skipped[k];
        if (done->last < skipped->first) {
            i++;
        } else if (skipped->last < done->first) {
            k++;
        } else {
            return false;
        }
    }
    return true;
}

static bool is_valid(const struct unsalt_core *core, const unsalt_core_cursor_t *cursor) {
    for (uint32_t i = 0; i < cursor->skipped_count; i++) {
        if (cursor->skipped[i].first <= cursor->cursor && cursor->cursor <= cursor->skipped[i].last) {
            return false;
        }
    }
    return cursor->session_len > 0 && cursor->session_len <= core->params.session_id_max &&
           cursor->cursor < UNSALT_NO_SEQ && cursor->floor <= cursor->cursor &&
           is_list(cursor->done, cursor->done_count) &&
           (cursor->done_count == 0 || cursor->done[0].first > cursor->cursor) &&
           is_list(cursor->skipped, cursor->skipped_count) && are_apart(cursor);
}

/* Both lists above the cursor, merged. NULL: out of memory, or (*none) there is nothing. */
static struct us_redo *redo_of(struct unsalt_core *core, const unsalt_core_cursor_t *cursor, bool *none) {
    uint32_t k = 0;
    while (k < cursor->skipped_count && cursor->skipped[k].last < cursor->cursor) {
        k++;
    }
    uint64_t count = (uint64_t)cursor->done_count + cursor->skipped_count - k;
    *none = count == 0;
    struct us_redo *redo = NULL;
    if (count > 0 && count < UINT32_MAX) {
        redo = us_calloc(&core->mem, 1, sizeof(*redo) + count * sizeof(*redo->ranges));
    }
    for (uint32_t i = 0; redo && (i < cursor->done_count || k < cursor->skipped_count);) {
        bool skipped = i == cursor->done_count ||
                       (k < cursor->skipped_count && cursor->skipped[k].first < cursor->done[i].first);
        const unsalt_core_range_t *range = skipped ? &cursor->skipped[k++] : &cursor->done[i++];
        redo->ranges[redo->count++] = (struct us_redo_range){range->first, range->last, skipped};
    }
    return redo;
}

/* before: the session, if an earlier cursor made it one; else NULL. */
static int as_session(struct unsalt_core *core, struct us_set *set, const unsalt_core_cursor_t *cursor,
                      uint32_t hash, struct us_session *before) {
    bool none;
    struct us_cursor forgotten;
    struct us_redo *redo = redo_of(core, cursor, &none);
    struct us_session *session = before;
    if (!session && (redo || none)) {
        session = us_session_new(core, set, cursor->session, cursor->session_len, hash);
    }
    if (!session || (!redo && !none)) {
        us_free(&core->mem, redo);
        return UNSALT_CORE_NOMEM;
    }
    us_remembered_take(&core->remembered, set->tag, cursor->session, cursor->session_len, &forgotten);
    us_redo_free(core, session);
    us_skips_destroy(&session->skips, &core->mem);
    session->skips = (struct us_skips){.floor = cursor->floor};
    session->restored = true;
    session->epoch = cursor->epoch;
    session->reasm.cursor = cursor->cursor;
    for (uint32_t i = 0; i < cursor->skipped_count && cursor->skipped[i].last < cursor->cursor; i++) {
        const unsalt_core_range_t *range = &cursor->skipped[i];
        if (range->last >= cursor->floor) { /* those below say nothing, and would take the place of others */
            us_skips_add(&session->skips, &core->mem, core->params.skips_max, range->first, range->last);
        }
    }
    session->redo = redo;
    session->special = (uint8_t)(session->special | (redo ? US_SPECIAL_REDO : 0));
    return UNSALT_CORE_OK;
}

static int compactly(struct unsalt_core *core, struct us_set *set, const unsalt_core_cursor_t *cursor,
                     struct us_session *before) {
    const struct us_cursor number = {cursor->epoch, cursor->cursor, cursor->floor};
    if (!us_remembered_put(&core->remembered, &core->mem, set->tag, cursor->session, cursor->session_len, &number)) {
        return UNSALT_CORE_NOMEM;
    }
    us_set_remembers(core, set);
    if (before) {
        us_session_free(core, before);
    }
    return UNSALT_CORE_OK;
}

/* The session, if it is known by a cursor alone; such a one is awake. *there: whether any of this id is in memory. */
static struct us_session *restored_find(const struct unsalt_core *core, const struct us_set *set, const void *id,
                                        uint32_t len, bool *there) {
    uint32_t ref = us_session_find(core, set, id, len, us_session_hash(core, id, len));
    const struct us_row *row = ref ? us_row_at(&core->rows, ref) : NULL;
    *there = row != NULL;
    return row && row->is_awake && !row->dozes && row->is.awake->restored ? row->is.awake : NULL;
}

int unsalt_core_restore(unsalt_core_t *core, const unsalt_core_cursor_t *cursor, uint64_t now) {
    us_core_time(core, now);
    struct us_set *set = us_set_find(core, cursor->set);
    if (!set || !is_valid(core, cursor)) {
        return UNSALT_CORE_INVAL;
    }
    bool there;
    uint32_t hash = us_session_hash(core, cursor->session, cursor->session_len);
    struct us_session *before = restored_find(core, set, cursor->session, cursor->session_len, &there);
    if (there && !before) {
        return UNSALT_CORE_EXISTS;
    }
    bool compact = cursor->done_count == 0 && cursor->skipped_count == 0 && core->params.remembered_max > 0;
    int err = compact ? compactly(core, set, cursor, before) : as_session(core, set, cursor, hash, before);
    core->counters.cursors_restored += err == UNSALT_CORE_OK;
    return err;
}

void unsalt_core_restore_undo(unsalt_core_t *core, uint32_t tag, const void *id, uint32_t len) {
    struct us_set *set = us_set_find(core, tag);
    struct us_cursor forgotten;
    if (!set || len == 0 || len > core->params.session_id_max) {
        return;
    }
    bool there;
    struct us_session *session = restored_find(core, set, id, len, &there);
    if (session) {
        us_session_free(core, session);
    } else if (!there) {
        us_remembered_take(&core->remembered, tag, id, len, &forgotten);
    }
}

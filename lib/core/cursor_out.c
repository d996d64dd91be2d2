/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cursor of a session as a checkpoint carries it: the lowest number that isn't done, and what is done or was given
 * up above it. What the application has in its hands isn't done; the core's own cursor is above all of that.
 */
#include <base/sort.h>
#include <core/engine.h>

/* Ranges of one cursor, of either kind. Beyond, what is done above counts as not done. */
#define RANGES_MAX 65536u
/* Numbers that were turned away in steps are told one by one, so many. */
#define AWAY_MAX 256

/* ---- what is in the application's hands */

static bool open_less(const void *a, const void *b) {
    const struct us_open *x = a, *y = b;
    return x->session != y->session ? x->session < y->session : x->seq < y->seq;
}

static uint64_t count_open(const struct unsalt_core *core) {
    uint64_t n = 0;
    for (const struct us_session *session = core->changed.first; session; session = session->change_next) {
        n += session->open;
    }
    return n;
}

static void collect_part(struct us_taking *taking, const struct us_part *part) {
    const struct us_frontier *frontier = &part->frontier;
    for (uint64_t ticket = frontier->base; part->handed.slots && ticket < frontier->next; ticket++) {
        const struct us_handed *slot = &part->handed.slots[ticket & (part->handed.size - 1)];
        if (slot->session && !slot->former && slot->session->change == US_CHANGE_CHANGED) {
            taking->open[taking->open_count++] = (struct us_open){slot->session, slot->seq, slot->late};
        }
    }
}

/* Notes what the application holds of the sessions that have changed. False: out of memory. */
static bool collect(struct unsalt_core *core) {
    struct us_taking *taking = &core->taking;
    uint64_t need = count_open(core);
    taking->open_count = 0;
    if (need > UINT32_MAX) {
        return false;
    }
    if (need > taking->open_capacity) {
        struct us_open *open = us_realloc_array(&core->mem, taking->open, need, sizeof(*open));
        if (!open) {
            return false;
        }
        taking->open = open;
        taking->open_capacity = (uint32_t)need;
    }
    for (uint32_t i = 0; need > 0 && i < core->part_count; i++) {
        collect_part(taking, &core->parts[i]);
    }
    us_sort(taking->open, taking->open_count, sizeof(*taking->open), open_less);
    taking->handed = core->handed_changes;
    return true;
}

/* What of `open` is the session's: *n elements. */
static const struct us_open *open_of(const struct us_taking *taking, const struct us_session *session, uint32_t *n) {
    const struct us_open wanted = {.session = session};
    uint32_t low = 0, high = taking->open_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (open_less(&taking->open[middle], &wanted)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (*n = 0; low + *n < taking->open_count && taking->open[low + *n].session == session;) {
        (*n)++;
    }
    return *n > 0 ? taking->open + low : NULL;
}

/* ---- lists of ranges */

static bool add(struct unsalt_core *core, struct us_ranges *list, uint64_t first, uint64_t last) {
    if (first > last) {
        return true;
    }
    unsalt_core_range_t *ranges =
        us_array_room(&core->mem, list->ranges, &list->capacity, list->count, 16, sizeof(*ranges));
    if (!ranges) {
        return false;
    }
    list->ranges = ranges;
    list->ranges[list->count++] = (unsalt_core_range_t){first, last};
    return true;
}

static bool range_less(const void *a, const void *b) {
    return ((const unsalt_core_range_t *)a)->first < ((const unsalt_core_range_t *)b)->first;
}

/* Sorts; of ranges that touch one is made. */
static void tidy(struct us_ranges *list) {
    uint32_t kept = 0;
    us_sort(list->ranges, list->count, sizeof(*list->ranges), range_less);
    for (uint32_t i = 0; i < list->count; i++) {
        unsalt_core_range_t range = list->ranges[i];
        unsalt_core_range_t *before = &list->ranges[kept > 0 ? kept - 1 : 0];
        if (kept > 0 && (range.first <= before->last || range.first - 1 == before->last)) {
            before->last = range.last > before->last ? range.last : before->last;
        } else {
            list->ranges[kept++] = range;
        }
    }
    list->count = kept;
}

/* ---- the cursor */

static bool add_away(struct unsalt_core *core, const struct us_session *session, struct us_ranges *list) {
    const struct us_away_list *away = &session->reasm.evidence->away;
    uint64_t from = session->reasm.cursor;
    for (int i = 0; i < AWAY_MAX; i++) {
        uint64_t number = us_away_next(away, from);
        if (number == UINT64_MAX) {
            return true;
        }
        uint64_t last = us_away_upto(away, number, UINT64_MAX - 1);
        if (!add(core, list, number, last)) {
            return false;
        }
        from = last + 1;
    }
    return true;
}

/* Between what is open, below the floor nobody knows what was given up: it may be, so what comes of it is late. */
static bool add_forgotten(struct unsalt_core *core, const struct us_session *session, const struct us_open *open,
                          uint32_t n) {
    uint64_t next = UNSALT_NO_SEQ, floor = session->skips.floor;
    bool done = true;
    for (uint32_t i = 0; done && i <= n && floor > 0; i++) {
        if (i < n && open[i].late) {
            continue;
        }
        uint64_t end = i < n && open[i].seq < floor ? open[i].seq : floor;
        if (next != UNSALT_NO_SEQ && next < end) {
            done = add(core, &core->taking.skipped, next, end - 1);
        }
        next = i < n ? open[i].seq + 1 : next;
    }
    return done;
}

/* What was given up, whatever became of it since: late records in the application's hands may come again. */
static bool find_skipped(struct unsalt_core *core, const struct us_session *session, const struct us_open *open,
                         uint32_t n, uint64_t floor) {
    struct us_ranges *list = &core->taking.skipped;
    const struct us_redo *redo = session->redo;
    bool done = true;
    list->count = 0;
    for (uint32_t i = 0; done && i < session->skips.count; i++) {
        done = add(core, list, session->skips.ranges[i].first, session->skips.ranges[i].last);
    }
    for (uint32_t i = 0; done && i < n; i++) {
        /* Below the floor everything is late. */
        done = !open[i].late || open[i].seq < floor || add(core, list, open[i].seq, open[i].seq);
    }
    for (uint32_t i = redo ? redo->at : 0; done && redo && i < redo->count; i++) {
        done = !redo->ranges[i].skipped || add(core, list, redo->ranges[i].first, redo->ranges[i].last);
    }
    done = done && (!us_any_away(&session->reasm) || add_away(core, session, list));
    done = done && add_forgotten(core, session, open, n);
    tidy(list);
    return done;
}

/* Adds first..last without what is in `skipped`. */
static bool add_unskipped(struct unsalt_core *core, uint64_t first, uint64_t last) {
    const struct us_ranges *skipped = &core->taking.skipped;
    struct us_ranges *list = &core->taking.done;
    bool done = true;
    for (uint32_t i = 0; done && i < skipped->count && skipped->ranges[i].first <= last; i++) {
        if (skipped->ranges[i].last < first) {
            continue;
        }
        done = skipped->ranges[i].first == 0 || add(core, list, first, skipped->ranges[i].first - 1);
        first = skipped->ranges[i].last + 1;
    }
    return done && add(core, list, first, last);
}

/* The lowest number that isn't done. */
static uint64_t lowest_open(const struct us_session *session, const struct us_open *open, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!open[i].late) {
            return open[i].seq;
        }
    }
    return session->reasm.cursor;
}

/* Finds what is done above that. */
static bool find_done(struct unsalt_core *core, const struct us_session *session, const struct us_open *open,
                      uint32_t n) {
    const struct us_redo *redo = session->redo;
    uint64_t next = UNSALT_NO_SEQ; /* one above the last number that isn't done */
    bool done = true;
    core->taking.done.count = 0;
    for (uint32_t i = 0; done && i < n; i++) {
        if (open[i].late) {
            continue;
        }
        if (next != UNSALT_NO_SEQ && open[i].seq > next) {
            done = add_unskipped(core, next, open[i].seq - 1);
        }
        next = open[i].seq + 1;
    }
    if (done && next != UNSALT_NO_SEQ && next < session->reasm.cursor) {
        done = add_unskipped(core, next, session->reasm.cursor - 1);
    }
    for (uint32_t i = redo ? redo->at : 0; done && redo && i < redo->count; i++) {
        done = redo->ranges[i].skipped || add(core, &core->taking.done, redo->ranges[i].first, redo->ranges[i].last);
    }
    return done;
}

/*
 * What was turned away, or done, right at the cursor will be passed at the next look. Moves *lowest over it, and
 * returns how many ranges of `done` it has passed.
 */
static uint32_t pass_done(const struct us_taking *taking, uint64_t *lowest) {
    uint32_t done = 0;
    for (uint32_t i = 0; i < taking->skipped.count || done < taking->done.count;) {
        const unsalt_core_range_t *skipped = i < taking->skipped.count ? &taking->skipped.ranges[i] : NULL;
        const unsalt_core_range_t *range = done < taking->done.count ? &taking->done.ranges[done] : NULL;
        if (skipped && skipped->last < *lowest) {
            i++;
        } else if (skipped && skipped->first <= *lowest) {
            *lowest = skipped->last + 1;
        } else if (range && range->first <= *lowest) {
            *lowest = range->last + 1;
            done++;
        } else {
            break;
        }
    }
    return done;
}

/*
 * Keeps both lists below RANGES_MAX. What was given up and finds no place must not pass for done: below the cursor the
 * floor is raised over it, and above nothing counts as done from there on. Returns how many ranges of `skipped` are
 * left out at its beginning.
 */
static uint32_t bound(struct us_taking *taking, uint64_t lowest, uint64_t *floor) {
    struct us_ranges *skipped = &taking->skipped, *done = &taking->done;
    uint32_t over = skipped->count > RANGES_MAX ? skipped->count - RANGES_MAX : 0, below = 0;
    for (; below < over && skipped->ranges[below].last < lowest; below++) {
        uint64_t above = skipped->ranges[below].last + 1;
        *floor = above > *floor ? above : *floor;
    }
    if (below == over) {
        return below;
    }
    uint64_t cut = skipped->ranges[below + RANGES_MAX].first;
    skipped->count = below + RANGES_MAX;
    while (done->count > 0 && done->ranges[done->count - 1].first >= cut) {
        done->count--;
    }
    if (done->count > 0 && done->ranges[done->count - 1].last >= cut) {
        done->ranges[done->count - 1].last = cut - 1;
    }
    return below;
}

int unsalt_core_cursors_begin(unsalt_core_t *core) {
    struct us_taking *taking = &core->taking;
    if (!core->params.cursors || taking->active) {
        return UNSALT_CORE_INVAL;
    }
    if (!collect(core)) {
        return UNSALT_CORE_NOMEM;
    }
    taking->active = true;
    taking->all = false;
    return UNSALT_CORE_OK;
}

/*
 * Its start is being found out; or the application still has records of a run that is over, so that its cursor is that
 * which was kept last: else these would be stale after a crash. It counts as changed again when that is over.
 */
static bool has_no_cursor(const struct us_session *session) {
    return (session->special & US_SPECIAL_STARTING) || session->former > 0;
}

int unsalt_core_cursors_next(unsalt_core_t *core, unsalt_core_cursor_t *cursor) {
    struct us_taking *taking = &core->taking;
    uint32_t n;
    if (!taking->active || taking->all) {
        return taking->active ? 0 : UNSALT_CORE_INVAL;
    }
    while (core->changed.first && has_no_cursor(core->changed.first)) {
        us_changed_unlink(core, core->changed.first);
    }
    struct us_session *session = core->changed.first;
    if (!session) {
        taking->all = true;
        return 0;
    }
    const struct us_open *open = open_of(taking, session, &n);
    if (taking->handed != core->handed_changes || n != session->open) { /* another call came in between */
        if (!collect(core)) {
            return UNSALT_CORE_NOMEM;
        }
        open = open_of(taking, session, &n);
    }
    uint64_t lowest = lowest_open(session, open, n);
    uint64_t floor = session->skips.floor < lowest ? session->skips.floor : lowest;
    if (!find_skipped(core, session, open, n, floor) || !find_done(core, session, open, n)) {
        return UNSALT_CORE_NOMEM;
    }
    uint32_t below = bound(taking, lowest, &floor), passed = pass_done(taking, &lowest);
    uint32_t done_count = taking->done.count - passed, skipped_count = taking->skipped.count - below;
    us_changed_taken(core, session);
    *cursor = (unsalt_core_cursor_t){
        .session = session->id,
        .session_len = session->id_len,
        .set = session->set->tag,
        .epoch = session->epoch,
        .cursor = lowest,
        .floor = floor,
        .done = done_count ? taking->done.ranges + passed : NULL,
        .skipped = skipped_count ? taking->skipped.ranges + below : NULL,
        .done_count = done_count < RANGES_MAX ? done_count : RANGES_MAX,
        .skipped_count = skipped_count,
    };
    return 1;
}

void us_taking_destroy(struct unsalt_core *core) {
    us_free(&core->mem, core->taking.open);
    us_free(&core->mem, core->taking.done.ranges);
    us_free(&core->mem, core->taking.skipped.ranges);
}

/* ---- what is done beyond a position */

static bool is_done(const struct us_frontier *frontier, uint64_t ticket) {
    return frontier->done[(ticket & (frontier->bits - 1)) / 64] >> (ticket % 64) & 1;
}

size_t unsalt_core_done(const unsalt_core_t *core, uint32_t index, int64_t from, unsalt_core_range_t *ranges,
                        size_t max) {
    const struct us_part *part = us_part_get(core, index);
    const struct us_frontier *frontier = part ? &part->frontier : NULL;
    size_t n = 0;
    bool within = false;
    uint32_t stretch = 0;
    for (uint64_t ticket = part ? frontier->base : 0; part && ticket < frontier->next; ticket++) {
        const struct us_stretch *at;
        uint32_t mask = frontier->stretch_capacity - 1;
        while (stretch + 1 < frontier->stretch_count &&
               frontier->stretches[(frontier->stretch_first + stretch + 1) & mask].ticket <= ticket) {
            stretch++;
        }
        at = &frontier->stretches[(frontier->stretch_first + stretch) & mask];
        uint64_t offset = (uint64_t)at->offset + (ticket - at->ticket);
        bool done = is_done(frontier, ticket) && offset >= (uint64_t)from;
        if (done && within) {
            ranges[n - 1].last = offset;
        } else if (done) {
            if (n == max) {
                break;
            }
            ranges[n++] = (unsalt_core_range_t){offset, offset};
        }
        within = done;
    }
    const struct us_done_before *before = part ? &part->done_before : NULL;
    uint64_t unread = part ? (uint64_t)(part->last_offset + 1) : 0;
    uint64_t position = part ? (uint64_t)unsalt_core_position(core, index) : 0; /* it may lie beyond what was read */
    unread = part && part->done_ahead && position > unread ? position : unread;
    unread = unread < (uint64_t)from ? (uint64_t)from : unread;
    for (uint32_t i = before ? before->at : 0; before && i < before->count; i++) {
        uint64_t first = before->ranges[i].first > unread ? before->ranges[i].first : unread;
        if (before->ranges[i].last < unread) {
            continue;
        }
        if (n > 0 && ranges[n - 1].last + 1 == first) { /* reading is within the range */
            ranges[n - 1].last = before->ranges[i].last;
        } else if (n == max) {
            break;
        } else {
            ranges[n++] = (unsalt_core_range_t){first, before->ranges[i].last};
        }
    }
    return n;
}

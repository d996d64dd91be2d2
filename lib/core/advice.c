/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective reading (DESIGN 6): from half a budget on, partitions that may hold a lowest missing number are read
 * first, and those that are ahead not at all. The sessions that have waited longest tell which: of their partitions,
 * those from which something of the session is held are ahead of it, the others are owed, unless each of these was
 * read to its end, or is paused by the application. Then every one that may carry the number may be what it waits for,
 * and the others are none of its business.
 */
#include <core/budget.h>
#include <core/doze.h>

#define SESSIONS_ASKED 64
#define ASKED_MAX 1024 /* in all heaps together */
#define NEAR_LOOK 64   /* the lowest records in irregular mode that are looked at */

/* Is something of the session held that came from this partition? Looks at the FIFOs' heads and the lowest numbers. */
static bool holds_from(const struct us_reasm *reasm, uint32_t part) {
    for (uint32_t i = 0; reasm->held && i < reasm->lane_count; i++) {
        const struct us_fifo *fifo = &reasm->lanes[i].fifo;
        if (fifo->count && us_fifo_head_part(fifo) == part) {
            return true;
        }
    }
    if (reasm->held == 0 || reasm->modulus || !reasm->irregular) {
        return false;
    }
    const struct us_near *near = &reasm->irregular->near;
    uint64_t seq = us_near_first(near);
    for (int i = 0; i < NEAR_LOOK && seq != UINT64_MAX; i++, seq = us_near_next(near, seq)) {
        if (us_near_at(near, seq)->part == part) {
            return true;
        }
    }
    return false;
}

static bool concerned(const struct unsalt_core *core, const struct us_wait *wait, uint32_t part) {
    return part < core->part_count && us_owed_by(core, wait, &core->parts[part], part);
}

static void ask_session(const struct unsalt_core *core, const struct us_wait *wait, unsalt_read_t *advice, size_t n) {
    const struct us_session *session = wait->session;
    const struct us_set *set = session->set;
    bool asleep = wait->kind == US_WAIT_QUIET || (wait->kind == US_WAIT_GAP && !session->blocked);
    if (asleep || session->ready) {
        return;
    }
    bool any = false;
    for (uint32_t i = 0; i < set->part_count; i++) {
        uint32_t part = set->parts[i];
        bool owed = concerned(core, wait, part) && !holds_from(&session->reasm, part);
        any |= owed && !core->parts[part].at_end && !core->parts[part].paused;
        if (owed && part < n) {
            advice[part] = UNSALT_READ_OWED;
        }
    }
    for (uint32_t i = 0; i < set->part_count; i++) {
        uint32_t part = set->parts[i];
        if (part >= n || advice[part] == UNSALT_READ_OWED) {
            continue;
        }
        if (any) {
            advice[part] = UNSALT_READ_AHEAD;
        } else if (concerned(core, wait, part)) {
            advice[part] = UNSALT_READ_OWED;
        }
    }
}

/*
 * A session that is being drained waits for nothing, and would fill up again behind: what it holds something from is
 * left unread until then, unless somebody waits for it.
 */
static void ask_ready(const struct unsalt_core *core, unsalt_read_t *advice, size_t n) {
    const struct us_session *session = core->ready_first;
    for (int asked = 0; session && asked < SESSIONS_ASKED; asked++, session = session->ready_next) {
        for (uint32_t i = 0; i < session->set->part_count; i++) {
            uint32_t part = session->set->parts[i];
            if (part < n && holds_from(&session->reasm, part)) {
                advice[part] = UNSALT_READ_AHEAD;
            }
        }
    }
}

/* Returns how many were asked. */
static uint32_t ask_heap(const struct unsalt_core *core, const struct us_heap *heap, unsalt_read_t *advice, size_t n) {
    uint32_t count = heap->count < SESSIONS_ASKED ? heap->count : SESSIONS_ASKED;
    for (uint32_t i = 0; i < count; i++) {
        struct us_wait *wait = us_wait_of(heap->slots[i].node);
        struct us_view view;
        bool dozes = wait->kind == US_WAIT_DOZE;
        ask_session(core, dozes ? &us_doze_view(core, us_doze_of(wait), &view)->gap : wait, advice, n);
    }
    return count;
}

/* Reading is selective from half of a budget on, until both are at a quarter: at the edge nothing flaps. */
static bool selective(struct unsalt_core *core) {
    core->selective = us_budget_above(core, core->selective ? 1 : 2);
    return core->selective;
}

void unsalt_core_read_advice(unsalt_core_t *core, unsalt_read_t *advice, size_t n) {
    for (size_t i = 0; i < n; i++) {
        advice[i] = UNSALT_READ_FREE;
    }
    if (!selective(core)) {
        return;
    }
    ask_ready(core, advice, n);
    uint32_t asked = ask_heap(core, &core->clock, advice, n);
    for (uint32_t i = 0; i < core->part_count && asked < ASKED_MAX; i++) {
        if (core->parts[i].set) {
            asked += ask_heap(core, &core->parts[i].waiting, advice, n);
        }
    }
    for (uint32_t i = 0; i < core->part_count && i < n; i++) {
        if (advice[i] == UNSALT_READ_AHEAD) {
            us_stall_progress(core, &core->parts[i]); /* its silence is our doing */
        }
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective reading (DESIGN 6): from half a budget on, partitions that may hold a lowest missing number are read
 * first, and those that are ahead not at all. The sessions that have waited longest tell which: of their
 * partitions, those from which something of the session is held are ahead of it, the others are owed, unless all
 * of these were read to their end; then every one may be what it waits for.
 */
#include <core/engine.h>

#define SESSIONS_ASKED 64

/* Is something of the session held that came from this partition? Looks at the FIFOs' heads. */
static bool holds_from(const struct us_reasm *reasm, uint32_t part) {
    for (uint32_t i = 0; reasm->held && i < reasm->lane_count; i++) {
        const struct us_fifo *fifo = &reasm->lanes[i].fifo;
        if (fifo->count && us_fifo_head(fifo)->part == part) {
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
        any |= owed && !core->parts[part].at_end;
        if (owed && part < n) {
            advice[part] = UNSALT_READ_OWED;
        }
    }
    for (uint32_t i = 0; i < set->part_count; i++) {
        uint32_t part = set->parts[i];
        if (part >= n || advice[part] == UNSALT_READ_OWED) {
            continue;
        }
        advice[part] = any ? UNSALT_READ_AHEAD : UNSALT_READ_OWED;
    }
}

static void ask_heap(const struct unsalt_core *core, const struct us_heap *heap, unsalt_read_t *advice, size_t n) {
    for (uint32_t i = 0; i < heap->count && i < SESSIONS_ASKED; i++) {
        ask_session(core, us_wait_of(heap->slots[i].node), advice, n);
    }
}

void unsalt_core_read_advice(unsalt_core_t *core, unsalt_read_t *advice, size_t n) {
    for (size_t i = 0; i < n; i++) {
        advice[i] = UNSALT_READ_FREE;
    }
    if (!us_budget_half(core)) {
        return;
    }
    ask_heap(core, &core->clock, advice, n);
    for (uint32_t i = 0; i < core->part_count; i++) {
        if (core->parts[i].set) {
            ask_heap(core, &core->parts[i].waiting, advice, n);
        }
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The budget `window`: tickets of a partition between the oldest that is not acknowledged and the newest, so that one
 * record which waits can't make the commit frontier's bookkeeping grow for ever. If the oldest was handed out, only its
 * acknowledgement helps: the record that arrives is refused, whatever the policy. If a session holds it, its gap gives
 * way, together with those of other sessions in the oldest sixteenth of the window: finding out who holds something
 * costs a walk over all that wait, and one walk should serve many records.
 */
#include <core/budget.h>
#include <core/doze.h>

#define HOLDERS 64   /* sessions that give way after one walk */
#define PILES_LOOK 64 /* piles of a session that are looked at, before the last resort */
#define NOT_HELD UINT32_MAX

struct search {
    struct unsalt_core *core;
    const struct us_part *part;
    uint32_t index, base, limit; /* of the partition; low half of its oldest ticket; distance that counts as old */
    bool deep;                   /* look behind the heads of FIFOs too */
    uint32_t count;
    bool found;                  /* the first one holds the oldest ticket */
    bool no_memory;              /* one that counts dozes on */
    struct us_session *holders[HOLDERS];
};

static uint32_t distance_of(const struct search *search, uint16_t part, uint32_t ticket) {
    return part == search->index ? ticket - search->base : NOT_HELD;
}

/* A FIFO is filled in order of arrival: its first record of the partition is the oldest. */
static uint32_t in_fifo(const struct search *search, const struct us_fifo *fifo) {
    struct us_fifo_walk walk = us_fifo_walk(fifo);
    const struct us_held_entry *held;
    while ((held = us_fifo_walk_next(&walk))) {
        uint32_t at = distance_of(search, walk.chunk->source.of.part, held->ticket);
        if (at != NOT_HELD || !search->deep) {
            return at;
        }
    }
    return NOT_HELD;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* In no order: that of the earliest arrival, or the oldest of all. */
static uint32_t in_near(const struct search *search, const struct us_near *near) {
    if (near->count == 0) {
        return NOT_HELD;
    }
    const struct us_near_entry *entry = us_near_at(near, near->oldest);
    uint32_t at = distance_of(search, entry->part, entry->ticket);
    for (uint64_t seq = search->deep ? near->low : UINT64_MAX; seq != UINT64_MAX; seq = us_near_next(near, seq)) {
        entry = us_near_at(near, seq);
        at = least(at, distance_of(search, entry->part, entry->ticket));
    }
    return at;
}

static uint32_t in_run(const struct search *search, const struct us_reasm *reasm) {
    uint32_t at = NOT_HELD;
    if (reasm->held == 0) {
        return at;
    }
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        at = least(at, in_fifo(search, &reasm->lanes[i].fifo));
    }
    const struct us_irregular *irregular = reasm->irregular;
    at = irregular ? least(at, in_near(search, &irregular->near)) : at;
    for (uint32_t i = 0; irregular && i < irregular->pile_count && (search->deep || i < PILES_LOOK); i++) {
        at = least(at, in_fifo(search, &irregular->piles[i].lane->fifo));
    }
    return at;
}

/* How far above the partition's oldest ticket the oldest one is that the session holds. */
static uint32_t in_session(const struct search *search, const struct us_session *session) {
    uint32_t at = in_run(search, &session->reasm);
    for (const struct us_later *later = session->later; later; later = later->next) {
        at = least(at, in_run(search, &later->reasm));
    }
    for (uint32_t i = 0; session->suspects && i < session->suspects->count; i++) {
        const struct us_held *held = &session->suspects->held[i];
        at = least(at, distance_of(search, held->part, held->ticket));
    }
    return at;
}

static bool known(const struct search *search, const struct us_session *session) {
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->holders[i] == session) {
            return true;
        }
    }
    return false;
}

static void consider(struct search *search, struct us_session *session) {
    if (session->set != search->part->set) {
        return;
    }
    uint32_t at = in_session(search, session);
    bool first = at == 0;
    if (at > search->limit || known(search, session) || (search->count == HOLDERS && !first)) {
        return;
    }
    uint32_t slot = search->count < HOLDERS ? search->count++ : HOLDERS - 1;
    search->holders[slot] = session;
    if (first) {
        search->holders[slot] = search->holders[0];
        search->holders[0] = session;
        search->found = true;
    }
}

/* One that dozes wakes if it counts: what is done to it then needs that. */
static void consider_doze(struct search *search, struct us_doze *doze) {
    if (doze->set != search->part->set) {
        return;
    }
    uint32_t at = distance_of(search, doze->held.part, doze->held.ticket);
    if (at > search->limit || (search->count == HOLDERS && at > 0)) {
        return;
    }
    struct us_session *session = us_doze_wake(search->core, doze); /* its timer stays where it is in the heap */
    if (session) {
        consider(search, session);
    } else {
        search->no_memory = true;
    }
}

static void consider_heap(struct search *search, const struct us_heap *heap) {
    for (uint32_t i = 0; i < heap->count; i++) {
        struct us_wait *wait = us_wait_of(heap->slots[i].node);
        if (wait->kind == US_WAIT_DOZE) {
            consider_doze(search, us_doze_of(wait));
        } else {
            consider(search, wait->session);
        }
    }
}

/* Whoever holds something waits for something, and a wait stands in a heap. */
static void look(struct search *search) {
    const struct unsalt_core *core = search->core;
    consider_heap(search, &core->clock);
    for (uint32_t i = 0; i < core->part_count; i++) {
        if (core->parts[i].set) {
            consider_heap(search, &core->parts[i].waiting);
        }
    }
}

static struct search find_holders(struct unsalt_core *core, const struct us_part *part) {
    struct search search = {.core = core,
                            .part = part,
                            .index = (uint32_t)(part - core->parts),
                            .base = (uint32_t)part->frontier.base,
                            .limit = (uint32_t)(core->params.budget_window / 16)};
    look(&search);
    if (!search.found) {
        search.deep = true;
        search.count = 0;
        look(&search);
    }
    return search;
}

/* The very record that the holder of the oldest ticket waits for: it is let in, as one too many. */
static bool is_awaited(const struct us_session *holder, const unsalt_core_in_t *in) {
    return in->kind == UNSALT_KIND_SEQUENCED && !(holder->special & US_SPECIAL_STARTING) &&
           in->epoch == holder->epoch && in->seq == holder->reasm.cursor && in->session_len == holder->id_len &&
           __builtin_memcmp(in->session, holder->id, holder->id_len) == 0;
}

static int give_way(struct unsalt_core *core, const struct search *search) {
    int err = UNSALT_CORE_BLOCKED;
    for (uint32_t i = 0; i < search->count && us_events_room(core); i++) {
        if (us_overflow(core, search->holders[i])) {
            core->counters.budget_outcome[UNSALT_BUDGET_WINDOW][UNSALT_OUTCOME_GAVE_WAY]++;
            err = UNSALT_CORE_PULL;
        }
    }
    return err;
}

/* Policy block: is the record still refused? */
static bool blocks(struct unsalt_core *core, struct us_part *part) {
    if (!us_budget_refuses(core, &part->window_since)) {
        return false;
    }
    uint64_t until = us_time_add(part->window_since, core->params.block_max_ns);
    core->refused_until = until < core->refused_until ? until : core->refused_until;
    return true;
}

/* While cursors are kept a ticket needs a place in the ring of what is handed out as well. */
static void set_limit(const struct unsalt_core *core, struct us_part *part, uint64_t tickets) {
    us_frontier_limit(&part->frontier, tickets);
    if (core->params.cursors) {
        us_frontier_narrow(&part->frontier, part->handed.size);
    }
}

int us_window_full(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in) {
    if (core->ready_first || core->leaving.count) {
        return UNSALT_CORE_PULL;
    }
    struct search search = find_holders(core, part);
    if (search.no_memory) {
        return UNSALT_CORE_NOMEM;
    }
    set_limit(core, part, core->params.budget_window); /* an earlier one too many was one, and not a wider window */
    if (search.found && is_awaited(search.holders[0], in)) {
        set_limit(core, part, part->frontier.next - part->frontier.base + 1);
        return UNSALT_CORE_OK;
    }
    unsalt_budget_outcome_t outcome = UNSALT_OUTCOME_GAVE_WAY;
    int err = UNSALT_CORE_BLOCKED;
    if (!search.found || blocks(core, part)) {
        outcome = UNSALT_OUTCOME_BLOCKED;
    } else if (us_budget_fails(core)) {
        outcome = UNSALT_OUTCOME_FAILED;
        err = UNSALT_CORE_FULL;
    }
    us_budget_tell(core, NULL, UNSALT_BUDGET_WINDOW, outcome, in->part);
    if (outcome != UNSALT_OUTCOME_GAVE_WAY) {
        return err;
    }
    part->window_since = UNSALT_NEVER;
    return give_way(core, &search);
}

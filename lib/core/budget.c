/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Budgets (DESIGN 6): records and bytes held, in all and per session, and verdict `overflow`. What could be released is
 * released first: push then says UNSALT_CORE_PULL. Only if nothing can be is the oldest wait ended (skip-gap), or the
 * record refused until block_max_ns are over (block).
 */
#include <core/engine.h>

enum { RECORDS, BYTES, SESSION_RECORDS, SESSION_BYTES, NONE };

bool us_budget_half(const struct unsalt_core *core) {
    return core->counters.state[UNSALT_STATE_HELD] >= core->params.budget_records / 2 + 1 ||
           core->counters.held_bytes >= core->params.budget_bytes / 2 + 1;
}

static int exhausted(const struct unsalt_core *core, const struct us_reasm *reasm, uint32_t bytes) {
    const unsalt_core_params_t *params = &core->params;
    uint64_t held = core->counters.state[UNSALT_STATE_HELD];
    if (held >= params->budget_records) {
        return RECORDS;
    }
    if (held && core->counters.held_bytes + bytes > params->budget_bytes) {
        return BYTES;
    }
    if (reasm->held >= params->session_budget_records) {
        return SESSION_RECORDS;
    }
    if (reasm->held && reasm->held_bytes + bytes > params->session_budget_bytes) {
        return SESSION_BYTES;
    }
    return NONE;
}

static void tell(struct unsalt_core *core, const struct us_session *session, int which) {
    core->counters.budget_full[which]++;
    if (core->budget_told[which]) {
        return;
    }
    core->budget_told[which] = true;
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_BUDGET, which >= SESSION_RECORDS ? session : NULL);
    event->count = core->counters.state[UNSALT_STATE_HELD];
    event->first = event->last = (uint64_t)which;
}

/* Ends the wait of a session, whatever it waits for. False: it waits for nothing. */
bool us_overflow(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return true;
    }
    if (session->special & US_SPECIAL_STARTING) {
        us_start_now(core, session);
        return session->ready;
    }
    if (session->special & US_SPECIAL_ENDING) {
        us_epoch_continue(core, session);
    } else if (session->blocked) {
        us_give_up(core, session, UNSALT_GAP_OVERFLOW);
    } else if (session->later) {
        us_epoch_over(core, session->later);
    } else if (session->suspects && session->suspects->count) {
        us_restart_copies(core, session);
    } else {
        return false;
    }
    return true;
}

static struct us_wait *oldest_wait(const struct unsalt_core *core) {
    const struct us_heap *oldest = &core->clock;
    for (uint32_t i = 0; i < core->part_count; i++) {
        const struct us_heap *waiting = &core->parts[i].waiting;
        if (core->parts[i].set && us_heap_key(waiting) < us_heap_key(oldest)) {
            oldest = waiting;
        }
    }
    struct us_heap_node *node = us_heap_top(oldest);
    return node ? (struct us_wait *)((char *)node - offsetof(struct us_wait, node)) : NULL;
}

/*
 * The session that has waited longest gives way. Waits that have nothing to wait for any more are cleared on the
 * way.
 */
static bool oldest_gives_way(struct unsalt_core *core) {
    for (;;) {
        struct us_wait *wait = oldest_wait(core);
        if (!wait) {
            return false;
        }
        if (us_overflow(core, wait->session)) {
            return true;
        }
        us_wait_cancel(core, wait);
    }
}

int us_budget_check(struct unsalt_core *core, struct us_session *session, struct us_reasm *reasm, uint32_t bytes) {
    int which = exhausted(core, reasm, bytes);
    if (which == NONE) {
        core->blocked_since = UNSALT_NEVER;
        if (core->budget_told[RECORDS] | core->budget_told[BYTES] | core->budget_told[SESSION_RECORDS] |
            core->budget_told[SESSION_BYTES]) {
            bool full = us_budget_half(core);
            for (int i = 0; i < NONE; i++) {
                core->budget_told[i] = core->budget_told[i] && full;
            }
        }
        return UNSALT_CORE_OK;
    }
    if (core->ready_first || core->leaving.count) {
        return UNSALT_CORE_PULL;
    }
    tell(core, session, which);
    if (core->params.budget_policy == UNSALT_BUDGET_BLOCK) {
        if (core->blocked_since == UNSALT_NEVER) {
            core->blocked_since = core->now;
        }
        return UNSALT_CORE_BLOCKED;
    }
    bool gave_way = which >= SESSION_RECORDS ? us_overflow(core, session) : oldest_gives_way(core);
    return gave_way ? UNSALT_CORE_PULL : UNSALT_CORE_OK;
}

void us_budget_block_over(struct unsalt_core *core) {
    if (core->blocked_since == UNSALT_NEVER || !us_events_room(core) ||
        us_time_add(core->blocked_since, core->params.block_max_ns) > core->now) {
        return;
    }
    core->blocked_since = UNSALT_NEVER;
    oldest_gives_way(core);
}

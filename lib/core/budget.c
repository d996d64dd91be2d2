/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Budgets (DESIGN 6): records and bytes held, in all and per session, and verdict `overflow`. What could be released is
 * released first: push then says UNSALT_CORE_PULL. Only if nothing can be is the oldest wait ended (skip-gap), or the
 * record refused until block_max_ns are over (block).
 */
#include <core/engine.h>

/* Names of UNSALT_BUDGETS in short; NONE: there is room. */
enum {
    RECORDS = UNSALT_BUDGET_RECORDS,
    BYTES = UNSALT_BUDGET_BYTES,
    SESSION_RECORDS = UNSALT_BUDGET_SESSION_RECORDS,
    SESSION_BYTES = UNSALT_BUDGET_SESSION_BYTES,
    NONE = UNSALT_BUDGET__CNT
};

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
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_BUDGET, session);
    event->count = core->counters.state[UNSALT_STATE_HELD];
    event->first = event->last = (uint64_t)which;
}

/* Ends the wait of a session, whatever it waits for. False: it waits for nothing. */
bool us_overflow(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return true;
    }
    if ((session->special & US_SPECIAL_STARTING) && session->reasm.held) {
        us_start_now(core, session);
        return session->ready;
    }
    if (session->special & US_SPECIAL_ENDING) {
        us_epoch_continue(core, session);
    } else if (session->blocked) {
        us_give_up(core, session, UNSALT_GAP_OVERFLOW);
    } else if (session->later) {
        us_epoch_over(core, session->later);
        us_start_now(core, session); /* if its beginning is unknown too */
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
    return node ? us_wait_of(node) : NULL;
}

/* Is the wait still for what it was armed for? Timers are lazy: one of a gap that has closed is armed anew. */
static bool exact(struct unsalt_core *core, struct us_wait *wait) {
    struct us_session *session = wait->session;
    if (wait->kind != US_WAIT_GAP || !session->blocked || (session->special & US_SPECIAL_ENDING)) {
        return true;
    }
    uint64_t due = us_gap_due_at(core, session);
    if (due == wait->due) {
        return true;
    }
    us_wait_at(core, wait, due);
    return false;
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
        if (!exact(core, wait)) {
            continue;
        }
        if (us_overflow(core, wait->session)) {
            return true;
        }
        us_wait_cancel(core, wait);
    }
}

static void tell_again(struct unsalt_core *core) {
    bool any = false;
    for (int i = 0; i < NONE; i++) {
        any |= core->budget_told[i];
    }
    if (any && !us_budget_half(core)) {
        for (int i = 0; i < NONE; i++) {
            core->budget_told[i] = false;
        }
    }
}

/* May the record be refused, because a wait may still last? `since`: when the first one was refused. */
static bool refuse(struct unsalt_core *core, uint64_t *since) {
    if (core->params.budget_policy != UNSALT_BUDGET_BLOCK) {
        return false;
    }
    if (*since == UNSALT_NEVER) {
        *since = core->now;
    }
    return us_time_add(*since, core->params.block_max_ns) > core->now;
}

/* The session's own budget is full: its own wait is ended, or lasts until block_max_ns are over. */
static int full_session(struct unsalt_core *core, struct us_session *session) {
    if (refuse(core, &session->refused_since)) {
        uint64_t until = us_time_add(session->refused_since, core->params.block_max_ns);
        core->refused_until = until < core->refused_until ? until : core->refused_until;
        return UNSALT_CORE_BLOCKED;
    }
    session->refused_since = UNSALT_NEVER;
    return us_overflow(core, session) ? UNSALT_CORE_PULL : UNSALT_CORE_OK;
}

int us_budget_check(struct unsalt_core *core, struct us_session *session, const struct us_reasm *reasm,
                    const unsalt_core_in_t *in) {
    int which = exhausted(core, reasm, in->bytes);
    if (which != RECORDS && which != BYTES && in->part == core->blocked_part) {
        core->blocked_since = UNSALT_NEVER; /* another partition's smaller record proves nothing */
    }
    if (which == NONE) {
        session->refused_since = UNSALT_NEVER;
        tell_again(core);
        return UNSALT_CORE_OK;
    }
    if (us_reasm_has(reasm, in->seq)) {
        return UNSALT_CORE_OK; /* a copy needs no room */
    }
    if (core->ready_first || core->leaving.count) {
        return UNSALT_CORE_PULL;
    }
    bool own = which == SESSION_RECORDS || which == SESSION_BYTES;
    tell(core, own ? session : NULL, which);
    if (own) {
        return full_session(core, session);
    }
    if (core->blocked_since == UNSALT_NEVER) {
        core->blocked_part = in->part;
    }
    if (refuse(core, &core->blocked_since)) {
        return UNSALT_CORE_BLOCKED;
    }
    core->blocked_since = UNSALT_NEVER;
    return oldest_gives_way(core) ? UNSALT_CORE_PULL : UNSALT_CORE_OK;
}

uint64_t us_budget_deadline(const struct unsalt_core *core) {
    uint64_t until = UNSALT_NEVER;
    if (core->blocked_since != UNSALT_NEVER) {
        until = us_time_add(core->blocked_since, core->params.block_max_ns);
    }
    return until < core->refused_until ? until : core->refused_until;
}

/*
 * A push that was refused for block_max_ns may be tried again: for the session's own budget that is enough, for those
 * of all the oldest wait gives way now.
 */
void us_budget_block_over(struct unsalt_core *core) {
    if (core->refused_until <= core->now) {
        core->refused_until = UNSALT_NEVER;
    }
    if (core->blocked_since == UNSALT_NEVER || !us_events_room(core) ||
        us_time_add(core->blocked_since, core->params.block_max_ns) > core->now) {
        return;
    }
    core->blocked_since = UNSALT_NEVER;
    oldest_gives_way(core);
}

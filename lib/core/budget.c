/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Budgets (DESIGN 6): records and bytes held, in all and per session, and verdict `overflow`. What could be released is
 * released first: push then says UNSALT_CORE_PULL. Only if nothing can be does the policy decide: the oldest wait is
 * ended (skip-gap), or the record refused until block_max_ns are over (block) or until somebody makes room (fail), or
 * it is turned away (dead-letter). What has its turn needs no room, so nothing of this ever concerns it.
 */
#include <core/budget.h>
#include <core/doze.h>

#define RETRY_NS 1000000u

/* Names of UNSALT_BUDGETS in short; NONE: there is room. */
enum {
    RECORDS = UNSALT_BUDGET_RECORDS,
    BYTES = UNSALT_BUDGET_BYTES,
    SESSION_RECORDS = UNSALT_BUDGET_SESSION_RECORDS,
    SESSION_BYTES = UNSALT_BUDGET_SESSION_BYTES,
    NONE = UNSALT_BUDGET__CNT
};

static uint64_t quarters_of(uint64_t whole, unsigned quarters) {
    return whole / 4 * quarters + whole % 4 * quarters / 4;
}

bool us_budget_above(const struct unsalt_core *core, unsigned quarters) {
    return core->counters.state[UNSALT_STATE_HELD] > quarters_of(core->params.budget_records, quarters) ||
           us_bytes(core) > quarters_of(core->params.budget_bytes, quarters);
}

static int exhausted(const struct unsalt_core *core, const struct us_reasm *reasm, uint32_t bytes) {
    const unsalt_core_params_t *params = &core->params;
    uint64_t held = core->counters.state[UNSALT_STATE_HELD];
    if (held >= params->budget_records) {
        return RECORDS;
    }
    if (held && us_bytes(core) + bytes > params->budget_bytes) {
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

bool us_overflow(struct unsalt_core *core, struct us_session *session) {
    if (session->ready) {
        return true;
    }
    if ((session->special & US_SPECIAL_STARTING) && session->reasm.held) {
        us_start_now(core, session);
        return session->ready;
    }
    if (session->special & US_SPECIAL_ENDING) {
        if (session->reasm.held == 0) {
            session->takeover_at = core->now; /* all that it waits for is the application */
        }
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

enum { GAVE_WAY, NOBODY, NO_MEMORY };

/*
 * The session that has waited longest gives way. Waits that have nothing to wait for any more are cleared on the
 * way. NO_MEMORY: it dozes on.
 */
static int oldest_gives_way(struct unsalt_core *core) {
    for (;;) {
        struct us_wait *wait = oldest_wait(core);
        if (!wait) {
            return NOBODY;
        }
        if (wait->kind == US_WAIT_DOZE) {
            struct us_session *session = us_doze_wake(core, us_doze_of(wait));
            if (!session) {
                return NO_MEMORY;
            }
            wait = &session->gap;
        }
        if (!exact(core, wait)) {
            continue;
        }
        if (us_overflow(core, wait->session)) {
            return GAVE_WAY;
        }
        us_wait_cancel(core, wait);
    }
}

bool us_budget_refuses(struct unsalt_core *core, uint64_t *since) {
    if (core->params.budget_policy != UNSALT_BUDGET_BLOCK) {
        return false;
    }
    if (*since == UNSALT_NEVER) {
        *since = core->now;
    }
    return us_time_add(*since, core->params.block_max_ns) > core->now;
}

bool us_budget_fails(struct unsalt_core *core) {
    core->failing = core->params.budget_policy == UNSALT_BUDGET_FAIL && !core->make_room;
    return core->failing;
}

/* Policy block: is the record refused for now? Else the wait may be ended. */
static bool blocks(struct unsalt_core *core, struct us_session *session, int which, const unsalt_core_in_t *in) {
    if (session) {
        bool refused = us_budget_refuses(core, &session->refused_since);
        if (refused) {
            uint64_t until = us_time_add(session->refused_since, core->params.block_max_ns);
            core->refused_until = until < core->refused_until ? until : core->refused_until;
        } else {
            session->refused_since = UNSALT_NEVER;
        }
        return refused;
    }
    if (core->blocked_since == UNSALT_NEVER) {
        core->blocked_part = in->part;
        core->blocked_budget = which;
    }
    if (us_budget_refuses(core, &core->blocked_since)) {
        return true;
    }
    core->blocked_since = UNSALT_NEVER;
    return false;
}

/* Policy block: whoever should have given way found no memory to wake. The block is over again in a millisecond. */
static void block_over_soon(struct unsalt_core *core) {
    uint64_t soon = us_time_add(core->now, RETRY_NS), block = core->params.block_max_ns;
    if (core->params.budget_policy == UNSALT_BUDGET_BLOCK) {
        core->blocked_since = soon > block ? soon - block : 0;
    }
}

/* What the policy makes of a full budget; session: whose own one it is, else NULL. */
static int decide(struct unsalt_core *core, struct us_session *session, int which, const unsalt_core_in_t *in) {
    unsalt_budget_outcome_t outcome = UNSALT_OUTCOME_GAVE_WAY;
    int err = UNSALT_CORE_OK;
    if (core->params.budget_policy == UNSALT_BUDGET_DEAD_LETTER) {
        outcome = UNSALT_OUTCOME_DEAD_LETTERED;
        err = US_BUDGET_AWAY;
    } else if (us_budget_fails(core)) {
        outcome = UNSALT_OUTCOME_FAILED;
        err = UNSALT_CORE_FULL;
    } else if (blocks(core, session, which, in)) {
        outcome = UNSALT_OUTCOME_BLOCKED;
        err = UNSALT_CORE_BLOCKED;
    }
    us_budget_tell(core, session, (unsalt_budget_t)which, outcome, in->part);
    if (err != UNSALT_CORE_OK) {
        return err;
    }
    int gave = session ? us_overflow(core, session) ? GAVE_WAY : NOBODY : oldest_gives_way(core);
    if (gave == NO_MEMORY) {
        block_over_soon(core);
        return UNSALT_CORE_NOMEM;
    }
    if (gave == GAVE_WAY) {
        core->counters.budget_outcome[which][UNSALT_OUTCOME_GAVE_WAY]++;
        return UNSALT_CORE_PULL;
    }
    core->counters.budget_outcome[which][UNSALT_OUTCOME_EXCEEDED]++;
    return UNSALT_CORE_OK;
}

int us_budget_check(struct unsalt_core *core, struct us_session *session, const struct us_reasm *reasm,
                    const unsalt_core_in_t *in) {
    int which = in->flags & UNSALT_IN_FULL ? RECORDS : exhausted(core, reasm, in->bytes);
    if (which != RECORDS && which != BYTES && in->part == core->blocked_part) {
        core->blocked_since = UNSALT_NEVER; /* another partition's smaller record proves nothing */
    }
    if (which == NONE) {
        session->refused_since = UNSALT_NEVER;
        core->make_room = false;
        return UNSALT_CORE_OK;
    }
    if (us_reasm_has(reasm, in->seq)) {
        return UNSALT_CORE_OK; /* a copy needs no room */
    }
    if (core->ready_first || core->leaving.count) {
        return UNSALT_CORE_PULL;
    }
    bool own = which == SESSION_RECORDS || which == SESSION_BYTES;
    return decide(core, own ? session : NULL, which, in);
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
    int gave = oldest_gives_way(core);
    if (gave == NO_MEMORY) {
        block_over_soon(core);
    } else if (gave == GAVE_WAY) {
        core->counters.budget_outcome[core->blocked_budget][UNSALT_OUTCOME_GAVE_WAY]++;
    }
}

void unsalt_core_pinned(unsalt_core_t *core, uint64_t bytes) {
    core->counters.pinned_bytes = bytes < UNSALT_NEVER / 2 ? bytes : UNSALT_NEVER / 2;
}

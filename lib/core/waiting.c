/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting, in two stages. First for a time: every wait stands in the clock's heap. Once due, for evidence: it
 * stands in the heap of the first partition that may carry what it waits for and was not read past the due time,
 * and moves on to the next such partition when that one's horizon gets there. So a wait is touched once a
 * partition, not once an answer.
 *
 * The clock's heap always has room for every wait that exists; a partition's heap gets its room when it is needed,
 * and a wait that finds none tries again a millisecond later.
 */
#include <core/budget.h>
#include <core/doze.h>

#define RETRY_NS 1000000u

bool us_wait_reserve(struct unsalt_core *core) {
    uint32_t missing = core->waits + 1 - core->clock.count;
    if (!us_heap_reserve(&core->clock, &core->mem, missing)) {
        return false;
    }
    core->waits++;
    return true;
}

void us_wait_init(struct us_wait *wait, enum us_wait_kind kind, struct us_session *session) {
    *wait = (struct us_wait){.node.index = US_HEAP_OUT, .where = US_WHERE_NONE, .last = UINT32_MAX,
                             .kind = kind, .session = session};
}

void us_wait_at(struct unsalt_core *core, struct us_wait *wait, uint64_t due) {
    us_wait_cancel(core, wait);
    wait->due = due;
    wait->where = US_WHERE_CLOCK;
    us_heap_push(&core->clock, due, &wait->node);
}

void us_wait_cancel(struct unsalt_core *core, struct us_wait *wait) {
    if (wait->where == US_WHERE_CLOCK) {
        us_heap_remove(&core->clock, &wait->node);
    } else if (wait->where != US_WHERE_NONE) {
        us_heap_remove(&core->parts[wait->where].waiting, &wait->node);
    }
    wait->where = US_WHERE_NONE;
}

void us_wait_gone(struct unsalt_core *core, struct us_wait *wait) {
    us_wait_cancel(core, wait);
    core->waits--;
}

static void evidence_complete(struct unsalt_core *core, struct us_wait *wait, bool stalled) {
    switch (wait->kind) {
    case US_WAIT_GAP:
        us_gap_evidence(core, wait->session, stalled);
        break;
    case US_WAIT_START:
        us_start_now(core, wait->session);
        break;
    case US_WAIT_EPOCH:
        us_epoch_over(core, us_later_of(wait));
        break;
    case US_WAIT_QUIET:
        us_restart_reveal(core, wait->session);
        break;
    case US_WAIT_DOZE:
        break; /* it is awake when it waits for evidence */
    }
}

/* The next partition from `at` on in the set's list that is owed and not read far enough; part_count: none. */
static uint32_t next_owed(struct unsalt_core *core, struct us_wait *wait, uint32_t at) {
    const struct us_set *set = wait->session->set;
    for (; at < set->part_count; at++) {
        const struct us_part *part = &core->parts[set->parts[at]];
        if (part->horizon.reached >= wait->due || !us_owed_by(core, wait, part, set->parts[at])) {
            continue;
        }
        if (!part->stalled) {
            break;
        }
        wait->stalled = true;
    }
    return at;
}

/* The partition is needed up to `due`: it will be asked, and counts as stalled one day. True if its horizon moved. */
static bool note_owed(struct unsalt_core *core, struct us_part *part, uint64_t due) {
    bool moved = false;
    if (part->need >= due) {
        return false;
    }
    if (!us_part_owed(part)) {
        us_stall_progress(core, part);  /* it has had no reason to show anything until now */
        moved = us_part_passed(part);   /* nor was its progress noted */
    }
    part->need = due;
    core->any_owed = true;
    return moved;
}

/*
 * Goes on to the next partition that is owed; without one, acts. One that was stalled may have come back: look
 * again.
 */
static void step(struct unsalt_core *core, struct us_wait *wait) {
    const struct us_set *set = wait->session->set;
    wait->step = next_owed(core, wait, wait->step);
    if (wait->step == set->part_count && wait->stalled) {
        wait->stalled = false;
        wait->step = next_owed(core, wait, 0);
    }
    if (wait->step == set->part_count) {
        evidence_complete(core, wait, wait->stalled);
        return;
    }
    uint32_t index = set->parts[wait->step];
    struct us_part *part = &core->parts[index];
    if (!us_heap_reserve(&part->waiting, &core->mem, 1)) {
        us_wait_at(core, wait, us_time_add(core->now, RETRY_NS));
        return;
    }
    wait->where = wait->last = index;
    us_heap_push(&part->waiting, wait->due, &wait->node);
    /* It was not owed when the wait began, perhaps: what is known of the lanes may have changed. */
    if (note_owed(core, part, wait->due)) {
        part->moved = core->any_moved = true;
    }
}

void us_wait_let_off(struct unsalt_core *core, struct us_wait *wait, uint32_t part) {
    if (wait->where == part) {
        us_wait_cancel(core, wait);
        step(core, wait);
    }
}

/* All partitions that are owed are to be asked at once, though the wait stands with one of them at a time. */
static void note_need(struct unsalt_core *core, struct us_wait *wait) {
    const struct us_set *set = wait->session->set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        struct us_part *part = &core->parts[set->parts[i]];
        if (part->need < wait->due && us_owed_by(core, wait, part, set->parts[i])) {
            note_owed(core, part, wait->due);
        }
    }
}

void us_wait_for_parts(struct unsalt_core *core, struct us_wait *wait) {
    us_wait_cancel(core, wait);
    wait->step = 0;
    wait->last = UINT32_MAX;
    wait->stalled = false;
    if (!us_set_complete(wait->session->set)) {
        us_wait_at(core, wait, us_time_add(core->now, 100 * (uint64_t)RETRY_NS));
        return;
    }
    note_need(core, wait);
    step(core, wait);
}

void us_wait_moved(struct unsalt_core *core, struct us_part *part) {
    while (!us_heap_empty(&part->waiting)) {
        if (!part->stalled && us_heap_key(&part->waiting) > part->horizon.reached) {
            break;
        }
        if (!us_events_room(core)) {
            return;
        }
        struct us_wait *wait = us_wait_of(us_heap_top(&part->waiting));
        us_wait_cancel(core, wait);
        step(core, wait);
    }
    part->moved = false;
}

void us_wait_impatient(struct unsalt_core *core, struct us_part *part, uint64_t due) {
    while (us_heap_key(&part->waiting) <= due && us_events_room(core)) {
        struct us_wait *wait = us_wait_of(us_heap_top(&part->waiting));
        us_wait_cancel(core, wait);
        evidence_complete(core, wait, true);
    }
}

/* A wait is due: gaps are looked at again, the others go on to the evidence they need. */
static void due(struct unsalt_core *core, struct us_wait *wait) {
    if (wait->kind == US_WAIT_DOZE) {
        struct us_session *session = us_doze_wake(core, us_doze_of(wait));
        if (!session) {
            us_wait_at(core, wait, us_time_add(core->now, RETRY_NS));
            return;
        }
        wait = &session->gap;
    }
    us_wait_cancel(core, wait);
    if (wait->kind == US_WAIT_GAP) {
        us_gap_due(core, wait->session);
    } else if (wait->kind == US_WAIT_QUIET) {
        us_restart_reveal(core, wait->session);
    } else if (wait->kind == US_WAIT_START) {
        us_start_look(core, wait->session);
    } else {
        us_wait_for_parts(core, wait);
    }
}

void unsalt_core_expire(unsalt_core_t *core, uint64_t now) {
    us_core_time(core, now);
    us_stall_check(core);
    us_budget_block_over(core);
    if (core->any_moved) {
        core->any_moved = false;
        for (uint32_t i = 0; i < core->part_count; i++) {
            struct us_part *part = &core->parts[i];
            if (part->set && part->moved) {
                us_wait_moved(core, part);
                core->any_moved |= part->moved;
            }
        }
    }
    while (us_heap_key(&core->clock) <= core->now && us_events_room(core)) {
        due(core, us_wait_of(us_heap_top(&core->clock)));
    }
    if (us_events_room(core)) {
        us_expire_sessions(core);
    }
}

/* When a question that was put off may be sent; none is put off without any_owed. */
static uint64_t question_deadline(const struct unsalt_core *core) {
    uint64_t earliest = UNSALT_NEVER;
    for (uint32_t i = 0; core->any_owed && i < core->part_count; i++) {
        const struct us_part *part = &core->parts[i];
        if (us_part_owed(part) && us_horizon_wants(&part->horizon, part->need)) {
            uint64_t at = us_horizon_may_ask(&part->horizon, core->params.question_min_ns);
            earliest = at > core->now && at < earliest ? at : earliest;
        }
    }
    return earliest;
}

uint64_t unsalt_core_deadline(const unsalt_core_t *core) {
    if (core->any_moved) {
        return 0;
    }
    uint64_t deadline = us_heap_key(&core->clock);
    if (deadline >= UNSALT_NEVER / 2) {
        deadline = UNSALT_NEVER;
    }
    uint64_t other = us_stall_deadline(core);
    deadline = other < deadline ? other : deadline;
    other = question_deadline(core);
    deadline = other < deadline ? other : deadline;
    other = us_expiry_deadline(core);
    deadline = other < deadline ? other : deadline;
    other = us_budget_deadline(core);
    deadline = other < deadline ? other : deadline;
    return deadline;
}

size_t unsalt_core_questions(unsalt_core_t *core, uint64_t now, uint32_t *parts, size_t max) {
    size_t n = 0;
    us_core_time(core, now);
    for (uint32_t i = 0; core->any_owed && i < core->part_count && n < max; i++) {
        struct us_part *part = &core->parts[i];
        if (!us_part_owed(part) || !us_horizon_wants(&part->horizon, part->need) ||
            us_horizon_may_ask(&part->horizon, core->params.question_min_ns) > core->now) {
            continue;
        }
        us_horizon_ask(&part->horizon, core->now);
        core->counters.questions++;
        parts[n++] = i;
    }
    return n;
}

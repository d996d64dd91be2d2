/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A full budget is counted every time, and told once: the event comes again only after the budget has fallen to half,
 * so that one which stays full doesn't fill a log. Also the budget of sessions, which no policy can make smaller: one
 * that holds records can't be let go.
 */
#include <core/budget.h>

#define TOLD(which) (uint8_t)(1u << (which))

/* A window is told again once half of what it may hold has been acknowledged since. */
static bool window_told(struct unsalt_core *core, uint32_t index) {
    struct us_part *part = &core->parts[index];
    if (part->frontier.base < part->window_told) {
        return true;
    }
    part->window_told = part->frontier.base + core->params.budget_window / 2 + 1;
    return false;
}

static bool told(struct unsalt_core *core, struct us_session *session, unsalt_budget_t which, uint32_t part) {
    if (which == UNSALT_BUDGET_WINDOW) {
        return window_told(core, part);
    }
    if (session) {
        bool before = session->told & TOLD(which);
        session->told |= TOLD(which);
        return before;
    }
    bool before = core->budget_told[which];
    core->budget_told[which] = core->any_told = true;
    return before;
}

void us_budget_tell(struct unsalt_core *core, struct us_session *session, unsalt_budget_t which,
                    unsalt_budget_outcome_t outcome, uint32_t part) {
    bool again = part != UINT32_MAX && core->parts[part].refused; /* the same record as before */
    core->counters.budget_full[which]++;
    if (outcome != UNSALT_OUTCOME_GAVE_WAY && !again) {
        core->counters.budget_outcome[which][outcome]++;
    }
    if (told(core, session, which, part)) {
        return;
    }
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_BUDGET, session);
    event->count = core->counters.state[UNSALT_STATE_HELD];
    event->first = which;
    event->last = outcome;
    event->part = part;
}

/* `told` of a session concerns its current run: a later one is seldom what fills its budget. */
static void session_fell(const struct unsalt_core *core, struct us_session *session) {
    if (session->reasm.held <= core->params.session_budget_records / 2) {
        session->told &= (uint8_t)~TOLD(UNSALT_BUDGET_SESSION_RECORDS);
    }
    if (session->reasm.held_bytes <= core->params.session_budget_bytes / 2) {
        session->told &= (uint8_t)~TOLD(UNSALT_BUDGET_SESSION_BYTES);
    }
}

void us_budget_fell(struct unsalt_core *core, struct us_session *session) {
    if (session->told) {
        session_fell(core, session);
    }
    if (!core->any_told) {
        return;
    }
    if (core->counters.state[UNSALT_STATE_HELD] <= core->params.budget_records / 2) {
        core->budget_told[UNSALT_BUDGET_RECORDS] = false;
    }
    if (us_bytes(core) <= core->params.budget_bytes / 2) {
        core->budget_told[UNSALT_BUDGET_BYTES] = false;
    }
    core->any_told = core->budget_told[UNSALT_BUDGET_RECORDS] || core->budget_told[UNSALT_BUDGET_BYTES];
}

void us_budget_sessions(struct unsalt_core *core) {
    if (core->counters.sessions > core->params.sessions_max) {
        us_budget_tell(core, NULL, UNSALT_BUDGET_SESSIONS, UNSALT_OUTCOME_EXCEEDED, UINT32_MAX);
    } else if (core->counters.sessions <= core->params.sessions_max / 2) {
        core->budget_told[UNSALT_BUDGET_SESSIONS] = false;
    }
}

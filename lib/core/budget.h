/* SPDX-License-Identifier: BSD-2-Clause */
/* Budgets: whether there is room for a record, what gives way if there is none, and what is told of it. */
#ifndef US_CORE_BUDGET_H
#define US_CORE_BUDGET_H
#include <core/engine.h>

/* What counts for the budget of bytes in all. */
static inline uint64_t us_bytes(const struct unsalt_core *core) {
    return core->counters.held_bytes + core->counters.pinned_bytes;
}

/*
 * budget.c; is there room for a record that has to be held? OK; PULL: pull first; BLOCKED, FULL: refused, nothing
 * changed; US_BUDGET_AWAY: it is to be turned away.
 */
#define US_BUDGET_AWAY 101
int us_budget_check(struct unsalt_core *core, struct us_session *session, const struct us_reasm *reasm,
                    const unsalt_core_in_t *in);
uint64_t us_budget_deadline(const struct unsalt_core *core);
void us_budget_block_over(struct unsalt_core *core);
/* Ends the wait of a session, whatever it waits for. False: it waits for nothing. */
bool us_overflow(struct unsalt_core *core, struct us_session *session);
/* policy fail: is the record refused? Not after a flush: then whatever gaps it has left waiting may be ended too. */
bool us_budget_fails(struct unsalt_core *core);
/* policy block: is it too early for something to give way? Notes the first refusal in `since`. */
bool us_budget_refuses(struct unsalt_core *core, uint64_t *since);
bool us_budget_above(const struct unsalt_core *core, unsigned quarters); /* of the records or bytes held in all */

/* budget_told.c; session: whose budget it is, else NULL */
void us_budget_tell(struct unsalt_core *core, struct us_session *session, unsalt_budget_t which,
                    unsalt_budget_outcome_t outcome, uint32_t part);
/* Something of the session has left: what has fallen to half may be told again. */
void us_budget_fell(struct unsalt_core *core, struct us_session *session);
void us_budget_sessions(struct unsalt_core *core); /* after a new one came and the idlest were looked at */

/* budget_window.c; has the partition room for one more ticket? As us_budget_check(), but nothing is turned away. */
int us_window_full(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in);
static inline int us_window_check(struct unsalt_core *core, struct us_part *part, const unsalt_core_in_t *in) {
    bool full = part->frontier.next - part->frontier.base >= core->params.budget_window;
    return full ? us_window_full(core, part, in) : UNSALT_CORE_OK;
}
#endif

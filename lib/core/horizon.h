/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The horizon of one partition, from evidence (DESIGN 5, "ask when due"): a question for the end of the log, sent
 * at t and answered with E, makes the horizon t once reading has passed E: a record at E - 1 or above, or an end-of-
 * partition event at E or above (remembered: it comes once per offset).
 *
 * Several answers may be pending, so that a stream of questions can't move the goal for ever.
 */
#ifndef US_CORE_HORIZON_H
#define US_CORE_HORIZON_H
#include <stdbool.h>
#include <stdint.h>

#define US_HORIZON_PENDING 8

struct us_horizon {
    uint64_t reached;       /* the horizon; 0 = none yet */
    uint64_t asked;         /* time of the newest question sent, 0 = none */
    bool in_flight;         /* it is not answered yet */
    int64_t passed;         /* everything below this offset was read; -1 = unknown */
    bool confirmed;         /* by a record or an event; until then `passed` is where reading was said to begin */
    struct { uint64_t asked; int64_t end; } pending[US_HORIZON_PENDING]; /* answered, not reached; ascending */
    uint32_t count;
};

void us_horizon_init(struct us_horizon *horizon, int64_t start);
/* Reading has passed everything below `offset`. Returns true if the horizon moved. */
bool us_horizon_passed(struct us_horizon *horizon, int64_t offset);
/*
 * Should a question be sent so that the horizon may reach `need`? Not while one is in flight, not if one asked at or
 * after `need` is pending, not with all slots pending. It is to wait until us_horizon_may_ask().
 */
bool us_horizon_wants(const struct us_horizon *horizon, uint64_t need);
/* When the next question may be sent: they are `apart` ns from each other. */
uint64_t us_horizon_may_ask(const struct us_horizon *horizon, uint64_t apart);
/* A question was sent at `now`; none is in flight. */
void us_horizon_ask(struct us_horizon *horizon, uint64_t now);
/*
 * The answer to the question in flight; end -1 = it failed. Returns true if the horizon moved. Ignored when none is in
 * flight. If its end is no further than that of earlier questions, they are settled by it.
 */
bool us_horizon_answer(struct us_horizon *horizon, int64_t end);
/* States the horizon directly; never goes back. Returns true if it moved. */
bool us_horizon_set(struct us_horizon *horizon, uint64_t t);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/horizon.h>
#include <string.h>

void us_horizon_init(struct us_horizon *horizon, int64_t start) {
    *horizon = (struct us_horizon){.passed = start};
}

/* Drops the `count` oldest pending answers. */
static void drop(struct us_horizon *horizon, uint32_t count) {
    horizon->count -= count;
    memmove(horizon->pending, horizon->pending + count, horizon->count * sizeof *horizon->pending);
}

static bool move_to(struct us_horizon *horizon, uint64_t t) {
    if (t <= horizon->reached)
        return false;
    horizon->reached = t;
    uint32_t settled = 0;
    while (settled < horizon->count && horizon->pending[settled].asked <= t)
        settled++;
    drop(horizon, settled);
    return true;
}

bool us_horizon_passed(struct us_horizon *horizon, int64_t offset) {
    horizon->confirmed = true;
    if (offset > horizon->passed)
        horizon->passed = offset;
    uint64_t t = 0;
    for (uint32_t i = 0; i < horizon->count && horizon->pending[i].end <= horizon->passed; i++)
        t = horizon->pending[i].asked;
    return move_to(horizon, t);
}

bool us_horizon_wants(const struct us_horizon *horizon, uint64_t need) {
    if (horizon->in_flight || horizon->reached >= need || horizon->count == US_HORIZON_PENDING)
        return false;
    return horizon->count == 0 || horizon->pending[horizon->count - 1].asked < need;
}

uint64_t us_horizon_may_ask(const struct us_horizon *horizon, uint64_t apart) {
    return horizon->asked ? horizon->asked + apart : 0;
}

void us_horizon_ask(struct us_horizon *horizon, uint64_t now) {
    horizon->asked = now;
    horizon->in_flight = true;
}

bool us_horizon_answer(struct us_horizon *horizon, int64_t end) {
    if (!horizon->in_flight)
        return false;
    horizon->in_flight = false;
    if (end < 0 || horizon->asked <= horizon->reached)
        return false;
    if (end < horizon->passed && !horizon->confirmed)
        horizon->passed = -1; /* the log ends below where reading was to begin: it will begin elsewhere */
    if (end <= horizon->passed)
        return move_to(horizon, horizon->asked);
    /* An earlier question whose end is no nearer is settled by this one, so times and ends both ascend. */
    while (horizon->count && horizon->pending[horizon->count - 1].end >= end)
        horizon->count--;
    if (horizon->count && horizon->pending[horizon->count - 1].asked >= horizon->asked)
        return false;
    horizon->pending[horizon->count].asked = horizon->asked;
    horizon->pending[horizon->count++].end = end;
    return false;
}

bool us_horizon_set(struct us_horizon *horizon, uint64_t t) {
    return move_to(horizon, t);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The record that is the next one of a session at rest, for those who let it pass: run_resting.c, and push.c. */
#ifndef US_CORE_RESTING_H
#define US_CORE_RESTING_H
#include <core/engine.h>

/* Is it a plain record of this row, which is at rest, and the next one? */
static inline bool us_resting_next(const struct us_row *row, const unsalt_core_in_t *in, bool says_lanes) {
    return in->seq == row->is.cursor && !row->is_awake && in->epoch == row->epoch &&
           in->kind == UNSALT_KIND_SEQUENCED && in->flags == 0 && in->seq != UNSALT_NO_SEQ &&
           (in->lane < in->lanes || in->lanes == 0) &&
           (in->since < UINT32_MAX || (in->since == UNSALT_NO_SEQ && !says_lanes));
}

/* Opens the ticket of a record; false: its offset isn't ordinary, or there is no room. */
static inline bool us_resting_ticket(struct unsalt_core *core, struct us_part *part, int64_t offset,
                                     uint64_t *ticket) {
    if (offset <= part->last_offset || offset == INT64_MAX || offset < part->frontier.next_offset ||
        !us_ticket_reserve(core, part)) {
        return false;
    }
    *ticket = us_frontier_open(&part->frontier, offset);
    part->last_offset = offset;
    part->at_end = false;
    return true;
}

/* It passes: fills in what comes out, and the row follows. */
static inline void us_resting_pass(struct us_row *row, uint32_t generation, uint64_t now, const unsalt_core_in_t *in,
                                   uint64_t ticket, unsalt_core_out_t *out) {
    us_out_of(in, generation, ticket, UNSALT_STATE_RELEASED, out);
    row->is.cursor = in->seq + 1;
    row->active = now;
    if (in->timestamp > row->newest) {
        row->newest = in->timestamp;
    }
    if (in->lanes == 0) {
        row->vary = 1;
    } else {
        row->lanes = in->lanes;
        row->since = (uint32_t)in->since; /* unknown becomes UINT32_MAX */
    }
}

/* The partition of a record, if records of it pass without more ado; else NULL. */
static inline struct us_part *us_resting_part(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    struct us_part *part = us_part_get(core, in->part);
    return part && !part->refused && !part->done_ahead ? part : NULL;
}
#endif

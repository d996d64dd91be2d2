/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ordinary case of a session at rest: its record is the next one, passes, and the session stays at rest. Its row is
 * all that is touched. Like run.c this decides nothing: what is not ordinary wakes the session and is left to
 * arrival.c. A session that is awake already is handed to run.c.
 */
#include <core/ahead.h>
#include <core/resting.h>

/* How many more tickets may be opened, with the offsets behind this one; at most as many as records are ahead. */
static size_t room_behind(const struct us_frontier *frontier, int64_t offset) {
    uint64_t room = frontier->room - (frontier->next - frontier->base), left = (uint64_t)(INT64_MAX - 1 - offset);
    room = room < left ? room : left;
    return room < US_AHEAD ? room : US_AHEAD;
}

/* Enters tickets that follow the last one of the partition; nothing if there are none. */
static inline void enter(struct us_part *part, size_t tickets, int64_t last_offset) {
    if (tickets) {
        us_frontier_open_more(&part->frontier, (uint32_t)tickets);
        part->last_offset = last_offset;
    }
}

/* The records at the head of the batch that are of one partition and whose rows, found ahead, are at rest. */
__attribute__((noinline)) /* inlined, its loop runs out of registers */
static size_t run_part(struct unsalt_core *core, struct us_row *const *rows, const unsalt_core_in_t *in, size_t n,
                       unsalt_core_out_t *out) {
    struct us_part *part = us_resting_part(core, in);
    if (!part) {
        return 0;
    }
    const bool says_lanes = core->params.lanes != 0;
    const uint64_t now = core->now;
    const uint32_t index = in->part, generation = part->generation, tag = part->set->tag;
    uint64_t ticket = 0; /* of the last record that has passed, and its offset */
    int64_t offset = -1;
    size_t i = 0, entered = 0, room = 0; /* so many are entered; how many more may be before it is asked again */
    for (; i < n && in[i].part == index; i++) {
        struct us_row *row = rows[i];
        if (!row || !us_row_is_of(row, tag, &in[i]) || !us_resting_next(row, &in[i], says_lanes)) {
            break;
        }
        ticket++;
        if (i == room || in[i].offset != offset + 1) {
            enter(part, i - entered, offset);
            entered = i;
            uint64_t first;
            if (!us_resting_ticket(core, part, in[i].offset, &first)) {
                break;
            }
            ticket = first;
            entered++;
            room = i + 1 + room_behind(&part->frontier, in[i].offset);
        }
        offset = in[i].offset;
        us_resting_pass(row, generation, now, &in[i], ticket, &out[i]);
    }
    enter(part, i - entered, offset);
    return i;
}

/* One record; *row is that of its session, NULL: it isn't in memory, or the record is not for this file. */
static size_t run_one(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out,
                      struct us_row **row) {
    struct us_part *part = us_resting_part(core, in);
    if (!part || in->kind != UNSALT_KIND_SEQUENCED || in->session_len - 1u >= core->params.session_id_max) {
        return 0;
    }
    uint32_t ref = us_push_find(core, part->set, in);
    uint64_t ticket;
    if (!ref) {
        return 0;
    }
    *row = us_row_at(&core->rows, ref);
    if (!us_resting_next(*row, in, core->params.lanes != 0) || !us_resting_ticket(core, part, in->offset, &ticket)) {
        return 0;
    }
    us_resting_pass(*row, part->generation, core->now, in, ticket, out);
    return 1;
}

size_t us_run_resting(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out,
                      size_t *n_out) {
    const struct us_ahead *ahead = core->ahead;
    struct us_row *row = NULL;
    size_t i = 0;
    if (core->params.cursors) {
        return 0;
    }
    if (in >= ahead->from && in < ahead->to) {
        struct us_row *const *rows = &ahead->row[in - ahead->from];
        size_t taken = 1;
        for (; i < n && taken; i += taken) {
            taken = run_part(core, rows + i, in + i, n - i, out + *n_out + i);
        }
    }
    if (i == 0) {
        i = run_one(core, in, out + *n_out, &row);
    }
    core->counters.received += i;
    core->counters.in_order += i;
    core->counters.state[UNSALT_STATE_RELEASED] += i;
    *n_out += i;
    if (i > 0 || !row || !row->is_awake || row->dozes || row->is.awake == core->last_session) {
        return i;
    }
    us_session_current(core, row->is.awake);
    return us_run(core, in, n, out, n_out);
}

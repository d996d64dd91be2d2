/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking a batch: in stretches by run.c and run_resting.c where everything is ordinary, else record by record by
 * arrival.c; then the partitions' progress for horizon and `stalled`. A record alone, the next one of a session at
 * rest, has a short way of its own: it waits for memory twice, for the slot of the table and for the row, and what the
 * caller does meanwhile with other records overlaps with that only if there are few instructions in between.
 */
#include <base/hash_inline.h>
#include <core/ahead.h>
#include <core/resting.h>

/* Matters only while something waits for a partition to be read on. */
static void progress(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n) {
    uint32_t done = UINT32_MAX;
    if (!core->any_owed) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (in[i].part == done) {
            continue;
        }
        done = in[i].part;
        struct us_part *part = &core->parts[done];
        us_stall_progress(core, part);
        if (part->horizon.count && us_part_passed(part)) {
            part->moved = core->any_moved = true;
        }
    }
}

/* A partition whose next record is refused by a budget isn't being read, so its silence means nothing. */
static void refused(struct unsalt_core *core, const unsalt_core_in_t *in, int err) {
    if (err == UNSALT_CORE_BLOCKED || err == UNSALT_CORE_FULL) {
        struct us_part *part = &core->parts[in->part];
        us_stall_progress(core, part);
        part->refused = true;
    }
}

/* Does the record have a session? */
static inline bool has_session(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    return in->kind == UNSALT_KIND_SEQUENCED && in->session_len - 1u < core->params.session_id_max;
}

static const struct us_set *set_of(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    const struct us_part *part = us_part_get(core, in->part);
    return part ? part->set : NULL;
}

/* How many records at the head of n are of partitions of the set; mostly all of a batch are of one partition. */
static size_t of_set(const struct unsalt_core *core, const struct us_set *set, const unsalt_core_in_t *in, size_t n) {
    size_t i = 1;
    while (i < n && (in[i].part == in[i - 1].part || set_of(core, &in[i]) == set)) {
        i++;
    }
    return i;
}

/*
 * Many sessions: a record's session is in no cache, so the look-up of one record after the other would wait for memory
 * each time. For a window of records of a set the slots of the table are fetched, then the rows, and only then the
 * records are taken.
 */
static void look_ahead(const struct unsalt_core *core, struct us_ahead *ahead, const unsalt_core_in_t *in, size_t n) {
    const struct us_set *set = set_of(core, in);
    if (!set || !set->table.slots) {
        return;
    }
    const struct us_row_table table = set->table;
    n = of_set(core, set, in, n < US_AHEAD ? n : US_AHEAD);
    ahead->from = in;
    ahead->to = in + n;
    for (size_t i = 0; i < n; i++) {
        ahead->ref[i] = has_session(core, &in[i]);
        if (ahead->ref[i]) {
            ahead->hash[i] = (uint32_t)us_hash_inline(in[i].session, in[i].session_len, core->params.hash_seed);
            us_row_prefetch_slot(&table, ahead->hash[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t ref = ahead->ref[i] ? us_row_likely(&table, ahead->hash[i]) : 0;
        ahead->ref[i] = ref;
        ahead->row[i] = ref ? us_row_prefetch(&core->rows, ref, in[i].session_len) : NULL;
    }
}

/* A record of the last session, which is awake; else run.c isn't asked. */
static inline bool is_last_session(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    const struct us_session *session = core->last_session;
    return session && in->kind == UNSALT_KIND_SEQUENCED && session->id_len == in->session_len &&
           us_same_id(session->id, in->session, in->session_len);
}

/* Takes what is ordinary at the head of the batch; 0: the first one isn't. */
static inline size_t run(struct unsalt_core *core, struct us_ahead *ahead, const unsalt_core_in_t *in, size_t n,
                         unsalt_core_out_t *out, size_t *n_out) {
    if (is_last_session(core, in)) {
        size_t taken = us_run(core, in, n, out, n_out);
        if (taken || set_of(core, in) == core->last_session->set) {
            return taken; /* it is awake, so nothing is to be looked up */
        }
    }
    if (in >= ahead->to && n > 1) {
        look_ahead(core, ahead, in, n);
    }
    size_t window = in < ahead->to ? (size_t)(ahead->to - in) : n;
    return us_run_resting(core, in, window, out, n_out);
}

/* Takes the records one after the other until one is refused. Returns how many were taken. */
static size_t take(struct unsalt_core *core, struct us_ahead *ahead, const unsalt_core_in_t *in, size_t n,
                   unsalt_core_out_t *out, size_t *n_out, int *status) {
    core->ahead = ahead;
    size_t i = 0;
    while (i < n) {
        if (!us_events_room(core)) {
            *status = UNSALT_CORE_PULL;
            break;
        }
        size_t taken = run(core, ahead, in + i, n - i, out, n_out);
        i += taken;
        if (taken) {
            continue;
        }
        int err = us_arrival(core, &in[i], out, n_out);
        if (err != UNSALT_CORE_OK) {
            *status = err;
            refused(core, &in[i], err);
            break;
        }
        i++;
    }
    core->ahead = NULL;
    progress(core, in, i);
    return i;
}

__attribute__((noinline)) /* what is for a record alone needs few registers */
static size_t push_all(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out,
                       size_t *n_out, int *status) {
    struct us_ahead ahead; /* the rest is written before it is read */
    ahead.from = ahead.to = in;
    return take(core, &ahead, in, n, out, n_out, status);
}

/* One record, whose session was looked up: its hash, and its row, NULL if it isn't in memory. */
__attribute__((noinline)) /* likewise */
static size_t push_found(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out,
                         int *status, uint32_t hash, uint32_t ref) {
    struct us_ahead ahead;
    ahead.from = in;
    ahead.to = in + 1;
    ahead.hash[0] = hash;
    ahead.ref[0] = ref;
    ahead.row[0] = ref ? us_row_at(&core->rows, ref) : NULL;
    return take(core, &ahead, in, 1, out, n_out, status);
}

/* Likely a record of the last session, if that is awake: mostly ids differ at their end. */
static inline bool may_be_last_session(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    const struct us_session *session = core->last_session;
    uint32_t len = in->session_len;
    return session && session->id_len == len &&
           (len < 8 || __builtin_memcmp(session->id + len - 8, (const char *)in->session + len - 8, 8) == 0);
}

size_t unsalt_core_push(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, uint64_t now,
                        unsalt_core_out_t *out, size_t *n_out, int *status) {
    us_core_time(core, now);
    *n_out = 0;
    *status = UNSALT_CORE_OK;
    struct us_part *part = n == 1 ? us_resting_part(core, in) : NULL;
    if (!part || !has_session(core, in) || core->params.cursors || core->any_owed || !us_events_room(core) ||
        may_be_last_session(core, in)) {
        return push_all(core, in, n, out, n_out, status);
    }
    uint32_t hash = (uint32_t)us_hash_inline(in->session, in->session_len, core->params.hash_seed);
    uint32_t ref = us_row_find_inline(&core->rows, &part->set->table, in->session, in->session_len, hash);
    struct us_row *row = ref ? us_row_at(&core->rows, ref) : NULL;
    uint64_t ticket;
    if (!row || !us_resting_next(row, in, core->params.lanes != 0) ||
        !us_resting_ticket(core, part, in->offset, &ticket)) {
        return push_found(core, in, out, n_out, status, hash, ref);
    }
    us_resting_pass(row, part->generation, core->now, in, ticket, out);
    core->counters.received++;
    core->counters.in_order++;
    core->counters.state[UNSALT_STATE_RELEASED]++;
    *n_out = 1;
    return 1;
}

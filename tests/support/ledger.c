/* SPDX-License-Identifier: BSD-2-Clause */
/* First half: what goes in. What comes out, and what must hold, stands in ledger_check.c. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/ledger_inner.h>

enum { IDLE_MAX = 100000 }; /* calls of push in a row that take nothing */

bool ledger_fail(struct ledger *l, const char *format, ...) {
    if (l->failed)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, sizeof(l->why), format, args);
    va_end(args);
    l->failed = true;
    return false;
}

void ledger_init(struct ledger *l, uint32_t sessions) {
    memset(l, 0, sizeof(*l));
    failmem_init(&l->mem);
    unsalt_core_params_init(&l->params);
    l->params.mem = l->mem.mem;
    l->sessions = sessions;
    l->now = 1000000000;
    l->last = calloc(sessions + 1, LEDGER_SETS * sizeof(*l->last));
    if (!l->last)
        abort();
}

bool ledger_open(struct ledger *l) {
    char errstr[256] = "";
    l->core = unsalt_core_new(&l->params, errstr, sizeof(errstr));
    if (!l->core)
        return ledger_fail(l, "no core: %s", errstr);
    unsalt_core_reading(l->core, true, l->now);
    return true;
}

/* ---- partitions */

int ledger_assign(struct ledger *l, const unsalt_core_partition_t *partition) {
    int index = l->failed ? -1 : unsalt_core_assign(l->core, partition);
    if (index < 0) {
        if (index != UNSALT_CORE_NOMEM)
            ledger_fail(l, "assign gives %d", index);
        return -1;
    }
    struct ledger_part *part = &l->parts[index];
    if (index >= LEDGER_PARTS || part->assigned) {
        ledger_fail(l, "assign gives index %d, which is too high or taken", index);
        return -1;
    }
    if ((uint32_t)index >= l->parts_end)
        l->parts_end = (uint32_t)index + 1;
    struct ledger_rec **recs = part->recs;
    size_t capacity = part->capacity;
    *part = (struct ledger_part){.spec = *partition, .recs = recs, .capacity = capacity, .assigned = true};
    part->next = part->position = partition->start_offset;
    part->last = part->unsequenced = -1;
    part->generation = unsalt_core_generation(l->core, (uint32_t)index);
    LEDGER_TRACE(l, "%" PRIu64 " assign p%d set %u of %u lane %d from %" PRId64 " of %" PRId64 "\n", l->now, index,
                 partition->set, partition->set_size, partition->lane, partition->start_offset, partition->log_start);
    return index;
}

void ledger_unlist(struct ledger *l, struct ledger_part *part) {
    struct ledger_rec *rec = part->recs[part->first];
    part->first = (part->first + 1) % part->capacity;
    part->count--;
    rec->listed = false;
    if (rec->back)
        free(rec);
    (void)l;
}

bool ledger_revoke(struct ledger *l, uint32_t index) {
    struct ledger_part *part = &l->parts[index];
    if (l->failed || !part->assigned)
        return false;
    int err = unsalt_core_revoke(l->core, index, l->now);
    if (err == UNSALT_CORE_NOMEM)
        return ledger_check(l, false) && false;
    if (err != UNSALT_CORE_OK)
        return ledger_fail(l, "revoke gives %d", err);
    LEDGER_TRACE(l, "%" PRIu64 " revoke p%u\n", l->now, index);
    part->assigned = false;
    while (part->count) {
        struct ledger_rec *rec = part->recs[part->first];
        if (rec->back && !rec->acked) {
            l->unacked--;
            if (unsalt_core_ack(l->core, index, rec->generation, rec->ticket) != UNSALT_CORE_FENCED)
                return ledger_fail(l, "an acknowledgement of a generation that is over was not fenced");
        }
        ledger_unlist(l, part);
    }
    for (uint32_t i = 0; i < l->sessions; i++)
        l->last[i * LEDGER_SETS + part->spec.set % LEDGER_SETS].any = false;
    return true;
}

void ledger_done_before(struct ledger *l, uint32_t index, const unsalt_core_range_t *ranges, size_t n) {
    struct ledger_part *part = &l->parts[index];
    int err = l->failed ? UNSALT_CORE_NOMEM : unsalt_core_done_before(l->core, index, ranges, n);
    bool valid = part->assigned;
    for (size_t i = 0; i < n; i++)
        valid &= ranges[i].first <= ranges[i].last && (i == 0 || ranges[i - 1].last < ranges[i].first);
    if (err != UNSALT_CORE_NOMEM && (err == UNSALT_CORE_OK) != valid)
        ledger_fail(l, "done_before says %d", err);
    if (err != UNSALT_CORE_OK)
        return;
    memcpy(part->done, ranges, n * sizeof(*ranges));
    part->done_n = n;
    part->position = -1; /* it passes what is stated now, and nothing else */
}

/* ---- pushing */

uint32_t ledger_id(uint32_t session, uint32_t pad, char *id) {
    uint32_t n = (uint32_t)sprintf(id, "s%u", session);
    for (; n < pad; n++)
        id[n] = '.';
    return n;
}

static void list(struct ledger_part *part, struct ledger_rec *rec) {
    if (part->count == part->capacity) {
        size_t capacity = part->capacity ? 2 * part->capacity : 64;
        struct ledger_rec **recs = malloc(capacity * sizeof(struct ledger_rec *));
        if (!recs)
            abort();
        for (size_t i = 0; i < part->count; i++)
            recs[i] = part->recs[(part->first + i) % part->capacity];
        free(part->recs);
        part->recs = recs;
        part->capacity = capacity;
        part->first = 0;
    }
    part->recs[(part->first + part->count++) % part->capacity] = rec;
    rec->listed = true;
}

static struct ledger_rec *rec_of(const struct ledger *l, uint32_t session, const unsalt_core_in_t *in, void *user) {
    struct ledger_rec *rec = malloc(sizeof(*rec));
    if (!rec)
        abort();
    *rec = (struct ledger_rec){.seq = in->seq,
                               .epoch = in->epoch,
                               .taken_at = l->now,
                               .offset = in->offset,
                               .session = session,
                               .part = in->part,
                               .generation = in->part < LEDGER_PARTS ? l->parts[in->part].generation : 0,
                               .bytes = in->bytes,
                               .kind = in->kind,
                               .user = user};
    return rec;
}

/* The core has it now. */
static void taken(struct ledger *l, struct ledger_rec *rec) {
    struct ledger_part *part = &l->parts[rec->part];
    LEDGER_TRACE(l, "%" PRIu64 " in p%u@%" PRId64 " s%u %" PRIu64 ":%" PRIu64 " kind %u\n", l->now, rec->part,
                 rec->offset, rec->session, rec->epoch, rec->seq, rec->kind);
    l->taken++;
    l->bytes += rec->bytes;
    if (rec->offset <= part->last)
        return; /* it will be fenced: the position doesn't wait for it */
    for (size_t i = 0; i < part->done_n; i++)
        rec->done |= part->done[i].first <= (uint64_t)rec->offset && (uint64_t)rec->offset <= part->done[i].last;
    list(part, rec);
    part->last = rec->offset;
    part->next = rec->offset + 1;
}

/* One call of push. Returns how many were taken. */
static size_t push(struct ledger *l, const unsalt_core_in_t *in, size_t n, int *status) {
    unsalt_core_out_t out[LEDGER_BATCH];
    size_t n_out = 0, seen = 0;
    *status = 99;
    size_t took = unsalt_core_push(l->core, in, n, l->now, out, &n_out, status);
    if (took > n || n_out > n || (*status == UNSALT_CORE_OK) != (took == n)) {
        ledger_fail(l, "push of %zu took %zu, gave %zu and says %d", n, took, n_out, *status);
        return 0;
    }
    for (size_t i = 0; i < took; i++)
        taken(l, in[i].msg);
    if (!ledger_events(l, &seen))
        return took;
    for (size_t i = 0; i < n_out; i++)
        if (!ledger_take_out(l, &out[i], false))
            return took;
    ledger_check(l, false);
    return took;
}

/* Pushes the batch until all of it is taken, or it is refused for a reason that a pull doesn't end. */
static size_t push_batch(struct ledger *l, const unsalt_core_in_t *in, size_t n, int *status) {
    size_t done = 0, idle = 0, pulled;
    while (done < n && !l->failed) {
        size_t took = push(l, in + done, n - done, status);
        done += took;
        idle = took ? 0 : idle + 1;
        if (*status == UNSALT_CORE_PULL)
            ledger_pull(l, SIZE_MAX, &pulled);
        else if (*status != UNSALT_CORE_OK)
            break;
        if (idle == IDLE_MAX)
            ledger_fail(l, "push asks for pulls for ever");
    }
    return done;
}

size_t ledger_push(struct ledger *l, const uint32_t *sessions, const unsalt_core_in_t *in, size_t n, void *user,
                   int *status) {
    unsalt_core_in_t batch[LEDGER_BATCH];
    size_t done = 0, took, want;
    *status = UNSALT_CORE_OK;
    do {
        want = n - done < LEDGER_BATCH ? n - done : LEDGER_BATCH;
        for (size_t i = 0; i < want; i++) {
            batch[i] = in[done + i];
            batch[i].msg = rec_of(l, sessions[done + i], &batch[i], user);
        }
        took = push_batch(l, batch, want, status);
        for (size_t i = took; i < want; i++)
            free(batch[i].msg);
        done += took;
    } while (done < n && took == want && !l->failed);
    return done;
}

/* ---- the other inputs */

static bool is_out(const struct ledger_rec *rec) {
    return rec->back && !rec->acked;
}

static void ack(struct ledger *l, struct ledger_rec *rec) {
    int result = unsalt_core_ack(l->core, rec->part, rec->generation, rec->ticket);
    if (result != UNSALT_CORE_OK)
        ledger_fail(l, "acknowledging offset %" PRId64 " gives %d", rec->offset, result);
    rec->acked = true;
    l->unacked--;
}

void ledger_ack(struct ledger *l, uint32_t index, size_t nth) {
    struct ledger_part *part = &l->parts[index];
    if (l->failed || !part->assigned || !part->count)
        return;
    struct ledger_rec *rec = part->recs[(part->first + nth % part->count) % part->capacity];
    if (is_out(rec))
        ack(l, rec);
    ledger_lowest(l, part);
}

void ledger_ack_all(struct ledger *l) {
    for (uint32_t i = 0; i < l->parts_end; i++) {
        struct ledger_part *part = &l->parts[i];
        for (size_t at = 0; part->assigned && !l->failed && at < part->count; at++)
            if (is_out(part->recs[(part->first + at) % part->capacity]))
                ack(l, part->recs[(part->first + at) % part->capacity]);
        if (part->assigned)
            ledger_lowest(l, part);
    }
}

void ledger_eof(struct ledger *l, uint32_t index, int64_t above) {
    struct ledger_part *part = &l->parts[index];
    if (l->failed || !part->assigned || part->next > INT64_MAX - 2 - above)
        return;
    part->next = part->next < 0 ? above : part->next + above;
    unsalt_core_eof(l->core, index, part->next, l->now);
}

void ledger_questions(struct ledger *l) {
    uint32_t parts[LEDGER_PARTS];
    size_t n = l->failed ? 0 : unsalt_core_questions(l->core, l->now, parts, LEDGER_PARTS);
    for (size_t i = 0; i < n; i++) {
        if (parts[i] >= LEDGER_PARTS || !l->parts[parts[i]].assigned || l->parts[parts[i]].asked) {
            ledger_fail(l, "question for partition %u, which is not assigned or was asked", parts[i]);
            return;
        }
        l->parts[parts[i]].asked = true;
    }
}

void ledger_answer(struct ledger *l, uint32_t index, int64_t above) {
    struct ledger_part *part = &l->parts[index];
    if (l->failed || !part->assigned || !part->asked)
        return;
    int64_t base = part->next < 0 ? 0 : part->next;
    int64_t end = above < 0 ? -1 : base > INT64_MAX - above ? INT64_MAX : base + above;
    part->asked = false;
    unsalt_core_answer(l->core, index, part->generation, end, l->now);
}

void ledger_horizons(struct ledger *l) {
    for (uint32_t i = 0; i < l->parts_end && !l->failed; i++)
        if (l->parts[i].assigned)
            unsalt_core_horizon(l->core, i, l->now, l->now);
}

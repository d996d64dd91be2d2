/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the queues of partitions through the core into the hand-out buffer. What the core refuses stays pending at its
 * partition, which isn't read meanwhile, so order within a partition is kept and nothing is lost.
 */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <kafka/rehearse.h>
#include <string.h>

#define NOMEM_PAUSE (10 * US_MS)

/* ---- what comes out of the core */

/* An offset that was read before has come again; see us_seek_back(). */
static void note_back(struct unsalt *u, const unsalt_core_out_t *out) {
    const rd_kafka_message_t *message = out->msg;
    struct us_partition *p = us_partition_of(u, out->part);
    rd_kafka_timestamp_type_t type;
    if (!p || p->generation != out->generation) {
        return;
    }
    if (p->back_to < 0 || message->offset < p->back_to) {
        p->back_anew &= p->back_to >= 0;
        p->back_to = message->offset;
        u->went_back = true;
    }
    p->back_anew |= p->last_time < 0 || rd_kafka_message_timestamp(message, &type) > p->last_time;
}

/* Why a record is a dead letter. */
static const char *reason_of(const unsalt_core_out_t *out) {
    if (out->flags & UNSALT_OUT_MALFORMED) {
        return "malformed";
    }
    if (out->flags & UNSALT_OUT_BUDGET) {
        return "budget";
    }
    return out->flags & UNSALT_OUT_STALE ? "stale" : "late";
}

/* Into the buffer, unless the partition's lane set is about to go: then it will be read again. */
static void put(struct unsalt *u, const unsalt_core_out_t *out) {
    struct us_partition *p = us_partition_of(u, out->part);
    if (p && p->dropping && p->generation == out->generation) {
        us_ring_refuse(&u->ring, out);
        p->dropped++;
    } else {
        us_ring_put(&u->ring, out);
    }
}

void us_out_settle(struct unsalt *u, unsalt_core_out_t *out, size_t n) {
    if (u->rehearse) {
        n = us_rehearse_filter(u, out, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (unsalt_state_handed_out((unsalt_state_t)out[i].state)) {
            put(u, &out[i]);
            continue;
        }
        if (out[i].state == UNSALT_STATE_FENCED) {
            note_back(u, &out[i]);
        }
        if (out[i].state == UNSALT_STATE_DEAD_LETTERED && u->conf->dead_letter_cb) {
            u->conf->dead_letter_cb(u->conf->dead_letter_opaque, out[i].msg, reason_of(&out[i]));
        }
        us_pipeline_drop(u->pipeline, out[i].msg);
    }
}

uint32_t us_pull(struct unsalt *u, uint64_t now) {
    uint32_t total = 0;
    for (;;) {
        uint32_t room = us_ring_room(&u->ring);
        uint32_t max = room < US_CHUNK ? room : US_CHUNK;
        size_t n = max > 0 ? unsalt_core_pull(u->core, now, u->out, max) : 0;
        us_unpin(u, u->out, n);
        us_out_settle(u, u->out, n);
        total += (uint32_t)n;
        if (n < max || max == 0) {
            return total;
        }
    }
}

void us_drain(struct unsalt *u, uint64_t now) {
    size_t moved;
    do {
        moved = us_core_events(u);
        moved += us_pull(u, now);
    } while (moved > 0);
}

/* ---- pending messages of a partition */

static rd_kafka_message_t *front(const struct us_partition *p) {
    return p->pending[p->pending_first];
}

static void pop(struct us_partition *p, uint32_t n) {
    p->pending_first += n;
    p->pending_count -= n;
    if (p->pending_count == 0) {
        p->pending_first = 0;
    }
}

void us_pending_drop(struct us_partition *p) {
    for (; p->pending_count > 0; pop(p, 1)) {
        rd_kafka_message_destroy(front(p));
    }
    p->told = 0;
}

/* ---- messages outside the ledger: ends of partitions and errors */

static void take_plain(struct unsalt *u, struct us_partition *p, rd_kafka_message_t *message, uint64_t now) {
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        unsalt_core_eof(u->core, p->part, message->offset, now);
        if (!u->before.eof_wanted) {
            rd_kafka_message_destroy(message);
            return;
        }
    }
    us_ring_put_plain(&u->ring, message);
}

/* ---- records */

/* Copies an id that the next us_extract() would overwrite. False: there is no room, so it must be consumed first. */
static bool keep_id(struct unsalt *u, unsalt_core_in_t *in, uint32_t *used) {
    if (in->session_len > US_IDS_BYTES - *used) {
        return false;
    }
    in->session = memcpy(u->ids + *used, in->session, in->session_len);
    *used += in->session_len;
    return true;
}

/* What librdkafka's thread has written is in no near cache: both ends of a key, and headers behind a payload. */
#define AHEAD 8
static void prefetch(const struct us_partition *p, uint32_t n) {
    if (n < p->pending_count) {
        const rd_kafka_message_t *message = p->pending[p->pending_first + n];
        __builtin_prefetch(message->key);
        __builtin_prefetch((const void *)((uintptr_t)message->key + message->key_len));
        __builtin_prefetch((const char *)message->payload + message->len);
    }
}

/*
 * Fills u->in from the front of the pending messages, up to an error, or to an id that must be consumed first, or to
 * one with which something is rehearsed, or out of memory: 0 says that it is so at the first one.
 */
static uint32_t extract(struct unsalt *u, struct us_partition *p) {
    uint32_t n = 0, used = 0;
    for (uint32_t i = 0; i < AHEAD; i++) {
        prefetch(p, i);
    }
    while (n < US_CHUNK && n < p->pending_count) {
        const rd_kafka_message_t *message = p->pending[p->pending_first + n];
        bool borrowed = false;
        if (message->err) {
            break;
        }
        prefetch(p, n + AHEAD);
        u->extractor.next = n + 1 < p->pending_count ? p->pending[p->pending_first + n + 1] : NULL;
        u->faults[n] = us_extract(&u->extractor, message, &u->in[n], &borrowed);
        u->extractor.next = NULL;
        if (u->faults[n] == us_extract_nomem) {
            break;
        }
        u->in[n].part = p->part;
        bool rehearsed = u->rehearse && us_rehearse_record(u, p, message, n);
        n++;
        if (rehearsed || (borrowed && !keep_id(u, &u->in[n - 1], &used))) {
            break;
        }
    }
    return n;
}

/* Bookkeeping of records that the core took. */
static void taken(struct unsalt *u, struct us_partition *p, uint32_t n) {
    const unsalt_core_in_t *in = u->in;
    int64_t last_read = p->last_read, last_time = p->last_time;
    void (*look)(struct unsalt *, const struct us_partition *, const unsalt_core_in_t *) =
        u->conf->layout == US_LAYOUT_HASH ? us_collision_look : us_misplaced_look;
    uint64_t bytes = 0;
    p->began = p->began < 0 && n > 0 ? in[0].offset : p->began;
    for (uint32_t i = 0; i < n; i++) {
        int64_t offset = in[i].offset;
        bytes += in[i].bytes;
        if (last_read >= 0 && offset > last_read + 1) {
            u->own.offset_jumps += (uint64_t)(offset - last_read - 1);
        }
        last_read = offset > last_read ? offset : last_read;
        last_time = in[i].timestamp > last_time ? in[i].timestamp : last_time;
        if (in[i].lanes > 0 && in[i].kind == UNSALT_KIND_SEQUENCED) {
            look(u, p, &in[i]);
        }
    }
    u->read_records += n;
    u->read_bytes += bytes;
    p->last_read = last_read;
    p->last_time = last_time;
}

/* Told before the core gives a record away, while the message is certainly there. */
static void tell_faults(struct unsalt *u, struct us_partition *p, uint32_t first, uint32_t n) {
    for (uint32_t i = first; i < n; i++) {
        if (u->faults[i]) {
            us_malformed(u, p->pending[p->pending_first + i], u->faults[i],
                         u->conf->malformed == UNSALT_MALFORMED_DEAD_LETTER);
        }
    }
}

/* The core refuses an argument: the record can't be ordered, but it must not be lost. */
static void demote(struct unsalt *u, struct us_partition *p) {
    rd_kafka_message_t *message = front(p);
    us_malformed(u, message, "the core refused the record", false);
    us_ring_put_plain(&u->ring, message);
    pop(p, 1);
    p->told = p->told > 0 ? p->told - 1 : 0;
}

/* Nothing more is read for a while: what is held may make room meanwhile. */
static void wait_for_memory(struct unsalt *u, const struct us_partition *p, uint64_t now) {
    us_log(u, 2, "out of memory: %s [%d] waits", p->topic, (int)p->partition);
    u->retry_at = now + NOMEM_PAUSE;
}

/* Pushes one chunk. Returns true if the partition may go on. */
static bool push_chunk(struct unsalt *u, struct us_partition *p, uint64_t now, bool *moved) {
    uint32_t n = extract(u, p);
    size_t n_out = 0;
    int status = UNSALT_CORE_OK;
    bool faulty = false;
    if (n == 0) {
        wait_for_memory(u, p, now);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        faulty |= u->faults[i] != NULL;
    }
    if (faulty && p->told < n) {
        tell_faults(u, p, p->told, n);
        p->told = n;
    }
    uint32_t took = (uint32_t)unsalt_core_push(u->core, u->in, n, now, u->out, &n_out, &status);
    taken(u, p, took);
    us_pin(p, &p->pending[p->pending_first], took, u->out, n_out);
    us_pipeline_arrived(u, &p->pending[p->pending_first], took, u->out, n_out);
    pop(p, took);
    p->told = p->told > took ? p->told - took : 0;
    us_out_settle(u, u->out, n_out);
    if (u->rehearse) {
        us_rehearse_pushed(u, p, n, took, now);
    }
    *moved |= took > 0;
    switch (status) {
    case UNSALT_CORE_OK:
        return true;
    case UNSALT_CORE_PULL: {
        size_t freed = us_core_events(u);
        freed += us_pull(u, now);
        return freed > 0;
    }
    case UNSALT_CORE_INVAL:
        demote(u, p);
        return true;
    case UNSALT_CORE_NOMEM:
        wait_for_memory(u, p, now);
        return false;
    case UNSALT_CORE_FULL:
        us_full(u);
        return false;
    default: /* blocked: tried again in the next round, and as soon as something is acknowledged */
        u->ack_wakes = true;
        atomic_store(&u->acks.waited_for, true);
        return false;
    }
}

/* Gives pending messages to the core. Returns true if something moved. */
static bool push_pending(struct unsalt *u, struct us_partition *p, uint64_t now) {
    bool moved = false;
    while (p->pending_count > 0 && us_ring_room(&u->ring) >= US_CHUNK) {
        rd_kafka_message_t *message = front(p);
        if (message->err) {
            take_plain(u, p, message, now);
            pop(p, 1);
            moved = true;
        } else if (!push_chunk(u, p, now, &moved)) {
            break;
        }
    }
    return moved;
}

/* ---- reading */

/* Reads up to a batch into the empty pending array. */
static uint32_t read_queue(struct unsalt *u, struct us_partition *p) {
    uint32_t max = (uint32_t)u->conf->read_batch;
    p->pending_first = 0;
    if (!u->versions.batch_one) {
        ssize_t n = rd_kafka_consume_batch_queue(p->queue, 0, p->pending, max);
        return n > 0 ? (uint32_t)n : 0;
    }
    uint32_t count = 0;
    while (count < max && rd_kafka_consume_batch_queue(p->queue, 0, p->pending + count, 1) == 1) {
        count++;
    }
    return count;
}

/* Reads and pushes one batch of a partition. */
static bool read_partition(struct unsalt *u, struct us_partition *p, uint64_t now, bool sweep) {
    bool moved = false;
    if (p->pending_count > 0) {
        moved = push_pending(u, p, now);
    }
    if (p->pending_count > 0 || us_ring_room(&u->ring) < US_CHUNK) {
        return moved;
    }
    bool announced = atomic_exchange(&p->ready, false);
    if (!announced && !sweep) {
        return moved;
    }
    p->pending_count = read_queue(u, p);
    if (p->pending_count == (uint32_t)u->conf->read_batch) {
        atomic_store(&p->ready, true); /* the queue may hold more */
    }
    if (p->pending_count > 0 && !announced) {
        u->own.sweep_hits++;
    }
    return push_pending(u, p, now) || moved;
}

static bool has_work(const struct us_partition *p, bool sweep) {
    return p->assigned && !p->revoking && !p->gated && p->load == US_LOAD_NONE && p->seek_to < 0 &&
           (sweep || p->pending_count > 0 || atomic_load(&p->ready));
}

/* Has something, wasn't found empty in this round, and isn't ahead. */
static bool may_be_read(const struct unsalt *u, const struct us_partition *p) {
    return p->empty_in != u->rounds && has_work(p, false) && u->advice[p->part] != UNSALT_READ_AHEAD;
}

/* Which of two goes first: the core's advice, then time, then whose last turn is longer ago. */
static bool goes_before(const struct unsalt *u, const struct us_partition *p, const struct us_partition *other) {
    bool owed = u->advice[p->part] == UNSALT_READ_OWED, other_owed = u->advice[other->part] == UNSALT_READ_OWED;
    if (owed != other_owed) {
        return owed;
    }
    return p->last_time != other->last_time ? p->last_time < other->last_time : p->turn < other->turn;
}

/*
 * Of the partitions that may be read, the one that is furthest behind in time, by the timestamp of its newest record
 * that was read: so lanes that were written together are read together, and few records have to wait for others.
 * What may hold a lowest missing number goes before the rest, what is ahead isn't read at all. NULL: there is none.
 */
static struct us_partition *furthest_behind(struct unsalt *u) {
    struct us_partition *best = NULL;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (may_be_read(u, p) && (!best || goes_before(u, p, best))) {
            best = p;
        }
    }
    return best;
}

/* The one whose last turn is longest ago: timestamps are the producers' word, and a wrong one must starve nobody. */
static struct us_partition *longest_unread(struct unsalt *u) {
    struct us_partition *best = NULL;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (may_be_read(u, p) && (!best || p->turn < best->turn)) {
            best = p;
        }
    }
    return best;
}

/* Which partitions may be read: asked anew before what was read since could fill more than a small part of a budget. */
static void advise(struct unsalt *u) {
    u->read_records = u->read_bytes = 0;
    unsalt_core_read_advice(u->core, u->advice, u->by_part_count);
}

static bool advice_is_old(const struct unsalt *u) {
    return u->read_records > (uint64_t)u->conf->budget_records / 16 ||
           u->read_bytes > (uint64_t)u->conf->budget_bytes / 16;
}

/* Reads every partition that isn't ahead, whether anything announced data in it or not. */
static bool sweep_partitions(struct unsalt *u, uint64_t now) {
    bool moved = false;
    for (uint32_t i = 0; i < u->partition_count && us_ring_room(&u->ring) >= US_CHUNK; i++) {
        struct us_partition *p = u->partitions[(u->next_partition + i) % u->partition_count];
        if (advice_is_old(u)) {
            advise(u);
        }
        if (has_work(p, true) && u->advice[p->part] != UNSALT_READ_AHEAD) {
            moved |= read_partition(u, p, now, true);
        }
    }
    u->next_partition++;
    return moved;
}

/* Batches read in one round, before the clock, the main queue and the verdicts have their turn again. */
#define BATCHES_IN_ROUND 16
#define ENOUGH_IN_ROUND 128u /* releases after which the application gets them first: they are still in the cache */

bool us_read_partitions(struct unsalt *u, uint64_t now, bool sweep) {
    bool moved = false;
    if (u->ack_wakes) {
        u->ack_wakes = false;
        atomic_store(&u->acks.waited_for, false);
    }
    if (u->rehearse) {
        us_rehearse_due(u, now);
    }
    if (u->full) {
        return false;
    }
    if (u->retry_at) {
        if (now < u->retry_at) {
            return false;
        }
        u->retry_at = 0;
    }
    u->rounds++;
    advise(u);
    if (sweep) {
        moved = sweep_partitions(u, now);
    }
    for (int i = 0; i < BATCHES_IN_ROUND && u->ring.count < ENOUGH_IN_ROUND; i++) {
        if (advice_is_old(u)) {
            advise(u);
        }
        struct us_partition *p = i == 0 ? longest_unread(u) : furthest_behind(u);
        if (!p) {
            break;
        }
        p->turn = ++u->turns;
        bool read = read_partition(u, p, now, false);
        moved |= read;
        if (!read) {
            p->empty_in = u->rounds;
        }
    }
    return moved;
}

/* ---- the main queue: rebalances, errors, and data that leaked into it */

/* Room for one more pending message, at its end. */
static bool pending_room(struct us_partition *p) {
    if (p->pending_first > 0) {
        memmove(p->pending, p->pending + p->pending_first, p->pending_count * sizeof(*p->pending));
        p->pending_first = 0;
    }
    if (p->pending_count < p->pending_capacity) {
        return true;
    }
    uint32_t capacity = 2 * p->pending_capacity;
    rd_kafka_message_t **grown = us_realloc_array(&us_mem_default, p->pending, capacity, sizeof(*grown));
    if (grown) {
        p->pending = grown;
        p->pending_capacity = capacity;
    }
    return grown != NULL;
}

/*
 * A record that came through the main queue although its partition has a queue of its own: librdkafka has made the
 * partition anew, for instance with its topic. It joins what is pending there.
 */
static void take_stray(struct unsalt *u, rd_kafka_message_t *message) {
    struct us_partition *p = us_partition_find(u, rd_kafka_topic_name(message->rkt), message->partition);
    if (!p || !p->assigned || p->seek_to >= 0) {
        rd_kafka_message_destroy(message); /* of an assignment that is over, or before a move: it comes again */
    } else if (pending_room(p)) {
        p->pending[p->pending_count++] = message;
    } else {
        /* Handed out without order rather than lost. */
        us_malformed(u, message, "it came through the main queue and there was no memory to let it wait",
                     false);
        us_ring_put_plain(&u->ring, message);
    }
}

bool us_read_main(struct unsalt *u) {
    bool moved = false;
    for (uint32_t i = 0; i < US_CHUNK && !us_ring_full(&u->ring); i++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(u->rk, 0);
        if (!message) {
            break;
        }
        moved = true;
        if (message->rkt && (!message->err || message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)) {
            take_stray(u, message);
        } else {
            us_ring_put_plain(&u->ring, message);
        }
    }
    return moved;
}

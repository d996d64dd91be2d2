/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of a producer: their counters, and the records in flight. Divided over shards, each with its own
 * lock; a session is known by topic and id. Bounded: a full shard drops its idlest session with nothing in flight,
 * once a record of another one is enqueued, and whoever comes back later gets a higher epoch. Shards fill unevenly: the
 * places that each has make the first one full when almost all are taken.
 */
#ifndef US_KAFKA_PRODUCER_SESSIONS_H
#define US_KAFKA_PRODUCER_SESSIONS_H
#include <kafka/producer_inflight.h>
#include <kafka/producer_lanes.h>
#include <pthread.h>
#include <stdatomic.h>

#define US_PRODUCER_SHARDS_MAX 64
/* Fewer places per shard are not worth a lock of their own. */
#define US_PRODUCER_SHARD_PLACES 4096

struct us_sender; /* one session of a producer */

/* A record whose fate isn't known: what the delivery report needs. Comes from a pool of its shard. */
struct us_sent {
    struct us_shard *shard;
    struct us_sender *sender; /* NULL: sent without a session, or a marker */
    uint64_t seq;
    void *opaque;          /* the application's */
    struct us_sent *next;  /* in the pool */
    uint64_t failed_at_ms; /* when its first attempt failed, monotonic; 0: none has */
    bool maybe;            /* an attempt that failed may have been persisted */
    bool marker;
    uint32_t purges;       /* how many purges there were when it was produced */
    atomic_bool out;       /* librdkafka had it: orders what was written before that with what is read after */
};

struct us_shard {
    pthread_mutex_t lock;
    struct us_senders *owner;
    struct us_sender *table;            /* uthash */
    struct us_sender *idlest, *busiest; /* list of those with nothing in flight; ends: first to go, last to go */
    uint32_t count;
    struct us_sent *pool;
    struct us_sent_chunk *chunks;
};

struct unsalt_producer;

struct us_senders {
    struct unsalt_producer *producer; /* whose they are; not used here */
    const struct unsalt_mem *mem;
    struct us_lane_map map;
    uint64_t seq_first, seed;
    uint32_t shard_count, shard_max; /* shards, a power of two; sessions per shard */
    bool clocked;                    /* epochs are by the clock; else they go on from one that was given */
    atomic_uint_fast64_t epoch;      /* of sessions that are new; above that of every session that was dropped */
    atomic_uint_fast64_t evicted;
    struct us_shard *shards;
};

/* epoch: 0 = by the clock. max: sessions in all, >= 1. Returns false when out of memory: nothing is left to destroy. */
bool us_senders_init(struct us_senders *senders, const struct unsalt_mem *mem, const struct us_lane_map *map,
                     uint64_t seq_first, uint64_t epoch, uint32_t max);
/* No record may be in flight any more as far as librdkafka is concerned. */
void us_senders_destroy(struct us_senders *senders);
/* Sessions in memory now. Any thread. */
uint64_t us_senders_count(struct us_senders *senders);

/* A name of a session: topic and id, both borrowed. Fills `hash`. */
struct us_sender_name {
    const void *bytes; /* topic, a 0 byte, session id */
    size_t size, id_at;
    uint64_t hash;
};
struct us_shard *us_senders_shard(struct us_senders *senders, struct us_sender_name *name);

/* The stamp of the next record of a session. */
struct us_stamp {
    uint64_t seq, epoch, since, una;
    int32_t partition;
    uint16_t lane, lanes;
};

/*
 * All calls below need the shard's lock.
 *
 * us_shard_begin() finds or makes the session, makes room for a record and fills the stamp for S = `lanes`, which is
 * 1..map.lanes; it takes no number yet, and drops nobody. name NULL: a record without a session, stamp isn't filled.
 * Returns the record; NULL: *full says whether the table or the window is full (true) or memory is out. Then one of
 * us_shard_commit() (the record is enqueued; `last` marks the session as ended, so that it goes before others) or
 * us_shard_release() (no number is used, and a session that was made for it is gone), under the same hold of the lock.
 */
struct us_sent *us_shard_begin(struct us_shard *shard, const struct us_sender_name *name, uint16_t lanes,
                               struct us_stamp *stamp, bool *full);
void us_shard_commit(struct us_shard *shard, struct us_sent *sent, const struct us_stamp *stamp, bool last);
/* The lowest number of the record's session whose fate isn't known: what `una` is now. It has a session. */
uint64_t us_shard_una(const struct us_sent *sent);
/*
 * The fate of the record's number is known: acknowledged, or given up. It has no session any more. Returns what `una`
 * is then; 0 if it had none.
 */
uint64_t us_shard_settle(struct us_shard *shard, struct us_sent *sent);
/* The record goes back to the pool. */
void us_shard_release(struct us_shard *shard, struct us_sent *sent);
/* The name of the record's session; valid without the lock, until the record is settled. */
const void *us_sent_name(const struct us_sent *sent, size_t *size);
#endif

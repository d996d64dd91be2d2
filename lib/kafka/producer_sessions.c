/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <kafka/producer_sessions.h>
#include <string.h>
#include <sys/random.h>

/* The table's own memory comes from the default allocator; a failure leaves the element out of the table. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) us_alloc(&us_mem_default, size)
#define uthash_free(ptr, size) us_free(&us_mem_default, ptr)
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

#define CHUNK_RECORDS 128

struct us_sender {
    UT_hash_handle hh;
    struct us_sender *idler, *busier; /* neighbours in the idle list */
    struct us_inflight window;        /* its `next` is the session's next number */
    uint64_t epoch, since;
    bool idle, ended;
    size_t name_size;
    int32_t entries[]; /* partitions of the lanes; then the name */
};

struct us_sent_chunk {
    struct us_sent_chunk *next;
    struct us_sent records[CHUNK_RECORDS];
};

static char *name_of(struct us_sender *sender, const struct us_lane_map *map) {
    return (char *)(sender->entries + us_lane_map_entries(map));
}

/* A seed that producers of session ids can't guess; without one the table is only less well protected. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uintptr_t)&seed;
    return seed;
}

bool us_senders_init(struct us_senders *senders, const struct unsalt_mem *mem, const struct us_lane_map *map,
                     uint64_t seq_first, uint64_t epoch, uint32_t max) {
    memset(senders, 0, sizeof *senders);
    senders->mem = mem;
    senders->map = *map;
    senders->seq_first = seq_first;
    senders->seed = draw_seed();
    senders->shard_count = 1;
    while (senders->shard_count < US_PRODUCER_SHARDS_MAX && senders->shard_count * 2 <= max)
        senders->shard_count *= 2;
    senders->shard_max = max / senders->shard_count;
    atomic_init(&senders->epoch, epoch);
    atomic_init(&senders->evicted, 0);
    senders->shards = us_calloc(mem, senders->shard_count, sizeof *senders->shards);
    if (!senders->shards)
        return false;
    for (uint32_t i = 0; i < senders->shard_count; i++) {
        senders->shards[i].owner = senders;
        pthread_mutex_init(&senders->shards[i].lock, NULL);
    }
    return true;
}

static void destroy_sender(struct us_shard *shard, struct us_sender *sender) {
    us_inflight_destroy(&sender->window, shard->owner->mem);
    us_free(shard->owner->mem, sender);
}

static void destroy_shard(struct us_shard *shard) {
    struct us_sender *sender, *after;
    HASH_ITER(hh, shard->table, sender, after) {
        HASH_DEL(shard->table, sender);
        destroy_sender(shard, sender);
    }
    while (shard->chunks) {
        struct us_sent_chunk *chunk = shard->chunks;
        shard->chunks = chunk->next;
        us_free(shard->owner->mem, chunk);
    }
    pthread_mutex_destroy(&shard->lock);
}

void us_senders_destroy(struct us_senders *senders) {
    for (uint32_t i = 0; i < senders->shard_count; i++)
        destroy_shard(&senders->shards[i]);
    us_free(senders->mem, senders->shards);
}

uint64_t us_senders_count(struct us_senders *senders) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < senders->shard_count; i++) {
        pthread_mutex_lock(&senders->shards[i].lock);
        count += senders->shards[i].count;
        pthread_mutex_unlock(&senders->shards[i].lock);
    }
    return count;
}

/* The table of a shard uses the low half of the hash, so the shard is chosen by the high half. */
struct us_shard *us_senders_shard(struct us_senders *senders, struct us_sender_name *name) {
    name->hash = us_hash(name->bytes, name->size, senders->seed);
    return &senders->shards[(name->hash >> 32) & (senders->shard_count - 1)];
}

static void leave_idle_list(struct us_shard *shard, struct us_sender *sender) {
    if (!sender->idle)
        return;
    *(sender->idler ? &sender->idler->busier : &shard->idlest) = sender->busier;
    *(sender->busier ? &sender->busier->idler : &shard->busiest) = sender->idler;
    sender->idle = false;
}

/* A session that ended goes to the front, any other to the back. */
static void join_idle_list(struct us_shard *shard, struct us_sender *sender) {
    sender->idler = sender->ended ? NULL : shard->busiest;
    sender->busier = sender->ended ? shard->idlest : NULL;
    *(sender->idler ? &sender->idler->busier : &shard->idlest) = sender;
    *(sender->busier ? &sender->busier->idler : &shard->busiest) = sender;
    sender->idle = true;
}

/* Makes the epoch of new sessions higher than that of one that is dropped. */
static void raise_epoch(struct us_senders *senders, uint64_t dropped) {
    uint_fast64_t epoch = atomic_load(&senders->epoch);
    while (epoch <= dropped && !atomic_compare_exchange_weak(&senders->epoch, &epoch, dropped + 1))
        ;
}

/* Drops the idlest session; there is one. */
static void evict(struct us_shard *shard) {
    struct us_sender *sender = shard->idlest;
    raise_epoch(shard->owner, sender->epoch);
    leave_idle_list(shard, sender);
    HASH_DEL(shard->table, sender);
    shard->count--;
    atomic_fetch_add(&shard->owner->evicted, 1);
    destroy_sender(shard, sender);
}

static struct us_sender *make_sender(struct us_shard *shard, const struct us_sender_name *name) {
    const struct us_senders *senders = shard->owner;
    size_t entries = us_lane_map_entries(&senders->map);
    struct us_sender *sender =
        us_calloc(senders->mem, 1, sizeof *sender + entries * sizeof *sender->entries + name->size);
    if (!sender)
        return NULL;
    us_inflight_init(&sender->window, senders->seq_first);
    sender->since = senders->seq_first;
    sender->epoch = atomic_load(&senders->epoch);
    sender->name_size = name->size;
    memcpy(name_of(sender, &senders->map), name->bytes, name->size);
    us_lane_map_fill(&senders->map, (const char *)name->bytes + name->id_at, name->size - name->id_at,
                     sender->entries);
    return sender;
}

/* A full shard drops another session for it, but only once nothing can fail any more. */
static struct us_sender *add_sender(struct us_shard *shard, const struct us_sender_name *name, bool *full) {
    bool crowded = shard->count >= shard->owner->shard_max;
    *full = crowded && !shard->idlest;
    struct us_sender *sender = *full ? NULL : make_sender(shard, name);
    if (!sender)
        return NULL;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->table, name_of(sender, &shard->owner->map), sender->name_size,
                                (unsigned)name->hash, sender);
    if (!sender->hh.tbl) {
        destroy_sender(shard, sender);
        return NULL;
    }
    shard->count++;
    if (crowded)
        evict(shard);
    join_idle_list(shard, sender);
    return sender;
}

static struct us_sender *find_sender(struct us_shard *shard, const struct us_sender_name *name, bool *full) {
    struct us_sender *sender = NULL;
    HASH_FIND_BYHASHVALUE(hh, shard->table, name->bytes, name->size, (unsigned)name->hash, sender);
    return sender ? sender : add_sender(shard, name, full);
}

static struct us_sent *take_record(struct us_shard *shard) {
    if (!shard->pool) {
        struct us_sent_chunk *chunk = us_calloc(shard->owner->mem, 1, sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = shard->chunks;
        shard->chunks = chunk;
        for (size_t i = 0; i < CHUNK_RECORDS; i++) {
            chunk->records[i].next = shard->pool;
            shard->pool = &chunk->records[i];
        }
    }
    struct us_sent *sent = shard->pool;
    shard->pool = sent->next;
    *sent = (struct us_sent){.shard = shard};
    return sent;
}

static void fill_stamp(const struct us_lane_map *map, const struct us_sender *sender, struct us_stamp *stamp) {
    uint64_t seq = sender->window.next;
    uint16_t lane = (uint16_t)(seq % map->lanes);
    *stamp = (struct us_stamp){
        .seq = seq,
        .epoch = sender->epoch,
        .since = sender->since,
        .una = sender->window.low,
        .partition = sender->entries[lane % us_lane_map_entries(map)],
        .lane = lane,
        .lanes = map->lanes,
    };
}

struct us_sent *us_shard_begin(struct us_shard *shard, const struct us_sender_name *name, struct us_stamp *stamp,
                               bool *full) {
    struct us_sender *sender = NULL;
    *full = false;
    if (name) {
        sender = find_sender(shard, name, full);
        if (!sender)
            return NULL;
        if (!us_inflight_reserve(&sender->window, shard->owner->mem)) {
            *full = sender->window.capacity == US_INFLIGHT_MAX;
            return NULL;
        }
        fill_stamp(&shard->owner->map, sender, stamp);
    }
    struct us_sent *sent = take_record(shard);
    if (!sent)
        return NULL;
    sent->sender = sender;
    sent->seq = sender ? stamp->seq : UNSALT_NO_SEQ;
    return sent;
}

void us_shard_commit(struct us_shard *shard, struct us_sent *sent, bool last) {
    struct us_sender *sender = sent->sender;
    if (!sender)
        return;
    us_inflight_take(&sender->window);
    leave_idle_list(shard, sender);
    sender->ended = last;
}

void us_shard_cancel(struct us_shard *shard, struct us_sent *sent) {
    sent->next = shard->pool;
    shard->pool = sent;
}

void us_shard_resolve(struct us_shard *shard, struct us_sent *sent) {
    struct us_sender *sender = sent->sender;
    if (sender && us_inflight_resolve(&sender->window, shard->owner->mem, sent->seq) &&
        us_inflight_is_empty(&sender->window))
        join_idle_list(shard, sender);
    us_shard_cancel(shard, sent);
}

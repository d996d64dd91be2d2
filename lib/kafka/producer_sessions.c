/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <kafka/chance.h>
#include <kafka/producer_epoch.h>
#include <kafka/producer_sessions.h>
#include <string.h>

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
    uint64_t epoch, since;            /* since: the first of the numbers that have `lanes` in a row */
    struct us_lane_table table;       /* its entries are owned */
    uint32_t hash;                    /* for the lane map */
    uint16_t lanes;                   /* of the last number; 0: there was none, as its first record isn't committed */
    bool idle, ended;
    size_t name_size;
    char name[];
};

struct us_sent_chunk {
    struct us_sent_chunk *next;
    struct us_sent records[CHUNK_RECORDS];
};

bool us_senders_init(struct us_senders *senders, const struct unsalt_mem *mem, const struct us_lane_map *map,
                     uint64_t seq_first, uint64_t epoch, uint32_t max) {
    memset(senders, 0, sizeof *senders);
    senders->mem = mem;
    senders->map = *map;
    senders->seq_first = seq_first;
    senders->seed = us_chance();
    senders->shard_count = 1;
    while (senders->shard_count < US_PRODUCER_SHARDS_MAX &&
           senders->shard_count * 2 <= max / US_PRODUCER_SHARD_PLACES)
        senders->shard_count *= 2;
    senders->shard_max = max / senders->shard_count;
    senders->clocked = epoch == 0;
    atomic_init(&senders->epoch, epoch ? epoch : us_epoch_draw());
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
    us_free(shard->owner->mem, sender->table.entries);
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
    while (epoch <= dropped) {
        uint_fast64_t next = senders->clocked ? us_epoch_next() : dropped + 1;
        if (atomic_compare_exchange_weak(&senders->epoch, &epoch, next))
            return;
    }
}

static void forget(struct us_shard *shard, struct us_sender *sender) {
    leave_idle_list(shard, sender);
    HASH_DEL(shard->table, sender);
    shard->count--;
    destroy_sender(shard, sender);
}

/* Drops the idlest session; there is one. */
static void evict(struct us_shard *shard) {
    raise_epoch(shard->owner, shard->idlest->epoch);
    forget(shard, shard->idlest);
    atomic_fetch_add(&shard->owner->evicted, 1);
}

/* The table of a session grows with the largest S that was asked for: most sessions need none. */
static bool reserve_lanes(const struct us_senders *senders, struct us_sender *sender,
                          const struct us_sender_name *name, uint16_t lanes) {
    struct us_lane_table *table = &sender->table;
    uint16_t wanted = us_lane_map_entries(&senders->map, lanes);
    if (wanted <= table->wanted)
        return true;
    int32_t *entries = us_realloc_array(senders->mem, table->entries, wanted, sizeof *entries);
    if (!entries)
        return false;
    uint16_t found = us_lane_map_probe(&senders->map, sender->name + name->id_at, name->size - name->id_at, wanted,
                                       entries);
    *table = (struct us_lane_table){entries, wanted, found};
    return true;
}

static struct us_sender *make_sender(struct us_shard *shard, const struct us_sender_name *name, uint16_t lanes) {
    const struct us_senders *senders = shard->owner;
    struct us_sender *sender = us_calloc(senders->mem, 1, sizeof *sender + name->size);
    if (!sender)
        return NULL;
    us_inflight_init(&sender->window, senders->seq_first);
    sender->epoch = atomic_load(&senders->epoch);
    sender->name_size = name->size;
    memcpy(sender->name, name->bytes, name->size);
    sender->hash = us_lane_map_hash(sender->name + name->id_at, name->size - name->id_at);
    if (!reserve_lanes(senders, sender, name, lanes)) {
        destroy_sender(shard, sender);
        return NULL;
    }
    return sender;
}

/* In a full shard it is one too many until its record is committed, when the idlest goes, or released. */
static struct us_sender *add_sender(struct us_shard *shard, const struct us_sender_name *name, uint16_t lanes,
                                    bool *full) {
    *full = shard->count >= shard->owner->shard_max && !shard->idlest;
    struct us_sender *sender = *full ? NULL : make_sender(shard, name, lanes);
    if (!sender)
        return NULL;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->table, sender->name, sender->name_size,
                                (unsigned)name->hash, sender);
    if (!sender->hh.tbl) {
        destroy_sender(shard, sender);
        return NULL;
    }
    shard->count++;
    return sender;
}

/* Finds or adds the session, with room for one more number over that many lanes. */
static struct us_sender *reserve_number(struct us_shard *shard, const struct us_sender_name *name, uint16_t lanes,
                                        bool *full) {
    struct us_sender *sender = NULL;
    HASH_FIND_BYHASHVALUE(hh, shard->table, name->bytes, name->size, (unsigned)name->hash, sender);
    if (!sender)
        return add_sender(shard, name, lanes, full);
    if (!us_inflight_reserve(&sender->window, shard->owner->mem)) {
        *full = sender->window.capacity == US_INFLIGHT_MAX;
        return NULL;
    }
    return reserve_lanes(shard->owner, sender, name, lanes) ? sender : NULL;
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
    *sent = (struct us_sent){.shard = shard, .seq = UNSALT_NO_SEQ};
    return sent;
}

static void fill_stamp(const struct us_lane_map *map, const struct us_sender *sender, uint16_t lanes,
                       struct us_stamp *stamp) {
    uint64_t seq = sender->window.next;
    uint16_t lane = (uint16_t)(seq % lanes);
    *stamp = (struct us_stamp){
        .seq = seq,
        .epoch = sender->epoch,
        .since = lanes == sender->lanes ? sender->since : seq,
        .una = sender->window.low,
        .partition = us_lane_map_partition(map, sender->hash, &sender->table, lanes, lane),
        .lane = lane,
        .lanes = lanes,
    };
}

struct us_sent *us_shard_begin(struct us_shard *shard, const struct us_sender_name *name, uint16_t lanes,
                               struct us_stamp *stamp, bool *full) {
    struct us_sent *sent = take_record(shard);
    *full = false;
    if (!sent || !name)
        return sent;
    sent->sender = reserve_number(shard, name, lanes, full);
    if (!sent->sender) {
        us_shard_release(shard, sent);
        return NULL;
    }
    fill_stamp(&shard->owner->map, sent->sender, lanes, stamp);
    sent->seq = stamp->seq;
    return sent;
}

void us_shard_commit(struct us_shard *shard, struct us_sent *sent, const struct us_stamp *stamp, bool last) {
    struct us_sender *sender = sent->sender;
    if (!sender)
        return;
    if (shard->count > shard->owner->shard_max)
        evict(shard);
    us_inflight_take(&sender->window);
    leave_idle_list(shard, sender);
    sender->since = stamp->since;
    sender->lanes = stamp->lanes;
    sender->ended = last;
}

uint64_t us_shard_una(const struct us_sent *sent) {
    return sent->sender->window.low;
}

uint64_t us_shard_settle(struct us_shard *shard, struct us_sent *sent) {
    struct us_sender *sender = sent->sender;
    if (!sender)
        return 0;
    sent->sender = NULL;
    if (us_inflight_resolve(&sender->window, shard->owner->mem, sent->seq) && us_inflight_is_empty(&sender->window))
        join_idle_list(shard, sender);
    return sender->window.low;
}

void us_shard_release(struct us_shard *shard, struct us_sent *sent) {
    if (sent->sender && sent->sender->lanes == 0)
        forget(shard, sent->sender);
    sent->next = shard->pool;
    shard->pool = sent;
}

const void *us_sent_name(const struct us_sent *sent, size_t *size) {
    *size = sent->sender->name_size;
    return sent->sender->name;
}

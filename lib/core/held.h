/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Held records, and the FIFOs they wait in. A lane delivers its numbers in ascending order, so what is held of it is
 * a FIFO, not a heap: 32-byte entries in chunks of 1, 3, 7 and 15, about 34 bytes a record in a long one. What the
 * records of a lane mostly share stands in the chunk. One that differs begins another chunk, the smallest; so a record
 * costs at most 72 bytes with the allocator's own, if no two neighbours are alike.
 */
#ifndef US_CORE_HELD_H
#define US_CORE_HELD_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_held {
    uint64_t seq;
    void *msg;
    uint64_t arrived; /* ns */
    uint32_t ticket;  /* low half of the frontier's ticket; the window is below 2^31 */
    uint32_t bytes;
    uint16_t part;
    uint16_t lane;    /* lane if the record says it, else the partition: where it is filed in irregular mode */
    uint16_t flags;   /* UNSALT_F_* */
    uint16_t reserved;
};

/* What all records of a chunk share; as in struct us_held. */
union us_source {
    struct {
        uint16_t part, lane, flags, zero;
    } of;
    uint64_t all; /* to compare with */
};
static inline union us_source us_source(uint16_t part, uint16_t lane, uint16_t flags) {
    return (union us_source){.of = {part, lane, flags, 0}};
}

struct us_held_entry {
    uint64_t seq;
    void *msg;
    uint64_t arrived;
    uint32_t ticket, bytes;
};

static inline struct us_held us_held_join(const struct us_held_entry *entry, union us_source source) {
    return (struct us_held){.seq = entry->seq, .msg = entry->msg, .arrived = entry->arrived, .ticket = entry->ticket,
                            .bytes = entry->bytes, .part = source.of.part, .lane = source.of.lane,
                            .flags = source.of.flags};
}
static inline struct us_held_entry us_held_split(const struct us_held *held) {
    return (struct us_held_entry){.seq = held->seq, .msg = held->msg, .arrived = held->arrived,
                                  .ticket = held->ticket, .bytes = held->bytes};
}

struct us_chunk {
    struct us_chunk *next;
    union us_source source;
    uint16_t capacity; /* entries; fewer than its class has once another chunk follows it before it was full */
    uint16_t class_;
    uint32_t reserved;
    struct us_held_entry entries[];
};

#define US_CHUNK_CLASSES 4
/* Chunks of a core. A few free ones of each class are kept, so that a FIFO that breathes doesn't call the allocator. */
struct us_chunks {
    const struct unsalt_mem *mem;
    uint64_t seed; /* of the sets of held numbers */
    struct us_chunk *spare[US_CHUNK_CLASSES];
    uint32_t spares[US_CHUNK_CLASSES];
    struct us_near_slab *slabs; /* of near.c: those with a free page; */
    uint32_t empty_slabs;       /* and how many of them have no other */
    uint32_t spare_leaves;      /* of near.c: free ones that are kept */
    struct us_near_leaf *leaves;
};
void us_chunks_destroy(struct us_chunks *chunks);

struct us_fifo {
    struct us_chunk *head, *tail; /* valid while count > 0 */
    uint32_t count;
    uint16_t first;               /* index of the oldest entry in head */
    uint16_t end;                 /* index behind the newest entry in tail */
    uint8_t class_;               /* class of the next first chunk: FIFOs that grew before start bigger */
};

/* Room for one more entry at the end, to be filled by the caller; NULL when out of memory: nothing changed. */
struct us_held_entry *us_fifo_grow(struct us_fifo *fifo, struct us_chunks *chunks, union us_source source);
/* Gives the head chunk back after its last entry was popped; called by us_fifo_pop(). */
void us_fifo_next_chunk(struct us_fifo *fifo, struct us_chunks *chunks);
/* Gives every chunk back; the records are the caller's business. */
void us_fifo_clear(struct us_fifo *fifo, struct us_chunks *chunks);
/*
 * Removes every entry of a partition, keeping the order of the others, and calls `gone` with each. Needs no memory.
 * Returns how many were removed.
 */
uint32_t us_fifo_remove_part(struct us_fifo *fifo, struct us_chunks *chunks, uint16_t part,
                             void (*gone)(void *opaque, const struct us_held *held), void *opaque);

static inline struct us_held_entry *us_fifo_add(struct us_fifo *fifo, struct us_chunks *chunks,
                                                union us_source source) {
    if (fifo->count == 0 || fifo->end == fifo->tail->capacity || fifo->tail->source.all != source.all) {
        return us_fifo_grow(fifo, chunks, source);
    }
    fifo->count++;
    return &fifo->tail->entries[fifo->end++];
}
static inline struct us_held_entry *us_fifo_head(const struct us_fifo *fifo) {
    return &fifo->head->entries[fifo->first];
}
/* Where the oldest entry came from; count > 0. */
static inline uint16_t us_fifo_head_part(const struct us_fifo *fifo) {
    return fifo->head->source.of.part;
}
/* Its lane as in struct us_held: it isn't the one that the FIFO is for, if its S is another one. count > 0. */
static inline uint16_t us_fifo_head_lane(const struct us_fifo *fifo) {
    return fifo->head->source.of.lane;
}
/*
 * A walk over a FIFO that isn't changed meanwhile, oldest first; NULL at its end. walk->chunk is the one of the entry
 * that was returned last.
 */
struct us_fifo_walk {
    const struct us_chunk *chunk;
    uint32_t index, left;
};
static inline struct us_fifo_walk us_fifo_walk(const struct us_fifo *fifo) {
    return (struct us_fifo_walk){fifo->head, fifo->first, fifo->count};
}
static inline const struct us_held_entry *us_fifo_walk_next(struct us_fifo_walk *walk) {
    if (walk->left == 0) {
        return NULL;
    }
    walk->left--;
    if (walk->index == walk->chunk->capacity) {
        walk->chunk = walk->chunk->next;
        walk->index = 0;
    }
    return &walk->chunk->entries[walk->index++];
}
/* Removes the oldest entry; count > 0. */
static inline void us_fifo_pop(struct us_fifo *fifo, struct us_chunks *chunks) {
    fifo->first++;
    if (--fifo->count == 0 || fifo->first == fifo->head->capacity) {
        us_fifo_next_chunk(fifo, chunks);
    }
}
#endif

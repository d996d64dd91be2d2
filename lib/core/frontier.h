/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commit frontier of one partition: which offset may be committed. Records are numbered by arrival (tickets),
 * since Kafka's offsets have legal holes of any size (transaction markers, compaction): one bit per outstanding
 * ticket in a ring, and the offset of each stretch of consecutive ones. Open and acknowledge are O(1), in any order
 * (amortised: every ticket is passed over once, up to 64 in a step).
 */
#ifndef US_CORE_FRONTIER_H
#define US_CORE_FRONTIER_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_stretch {
    uint64_t ticket; /* first ticket of a stretch of consecutive offsets */
    int64_t offset;  /* its offset */
};

struct us_frontier {
    uint64_t *done;       /* bit = ticket acknowledged; ring of `bits` tickets, a power of two, >= 64; 0 = none yet */
    uint64_t bits;
    uint64_t limit;       /* tickets that may be outstanding; 2^31 if us_frontier_limit() wasn't called */
    uint64_t room;        /* the smaller of bits and limit, or what us_frontier_narrow() has said */
    uint64_t base, next;  /* tickets outstanding: base..next-1; base itself is not acknowledged unless base == next */
    uint64_t open;        /* tickets in base..next-1 that are not acknowledged; bits outside of base..next-1 are 0 */
    struct us_stretch *stretches; /* ring, a power of two, ascending; the first covers base while base < next */
    uint32_t stretch_capacity, stretch_first, stretch_count;
    int64_t stretch_next; /* the offset that would continue the last stretch; -1 = there is none */
    int64_t next_offset;  /* last seen offset + 1, or the end-of-partition offset; -1 = nothing seen yet */
};

/* start: offset where reading begins, -1 unknown. Allocates nothing. */
void us_frontier_init(struct us_frontier *frontier, int64_t start);
void us_frontier_destroy(struct us_frontier *frontier, const struct unsalt_mem *mem);
/* Bounds the outstanding tickets by limit, 1..2^31; those that there are stay. */
void us_frontier_limit(struct us_frontier *frontier, uint64_t limit);

/* The slow roads of the inline functions; they are not called from elsewhere. */
bool us_frontier_grow(struct us_frontier *frontier, const struct unsalt_mem *mem, uint32_t more);
void us_frontier_stretch(struct us_frontier *frontier, int64_t offset);
void us_frontier_advance(struct us_frontier *frontier);
void us_frontier_drop_stretches(struct us_frontier *frontier);

static inline bool us_frontier_has_room(const struct us_frontier *frontier, uint32_t more) {
    return frontier->next - frontier->base + more <= frontier->room &&
           (uint64_t)frontier->stretch_count + more <= frontier->stretch_capacity;
}
/* Makes room so that `more` opens can't fail. false: out of memory or above the limit; nothing changed. */
static inline bool us_frontier_reserve(struct us_frontier *frontier, const struct unsalt_mem *mem, uint32_t more) {
    return us_frontier_has_room(frontier, more) || us_frontier_grow(frontier, mem, more);
}
/* The caller has room for so many tickets beside the frontier's, and no more, until it says something else. */
void us_frontier_narrow(struct us_frontier *frontier, uint64_t tickets);

/* Opens a ticket for a record; offset >= next_offset (the caller has checked). Room reserved. Returns the ticket. */
static inline uint64_t us_frontier_open(struct us_frontier *frontier, int64_t offset) {
    if (offset != frontier->stretch_next)
        us_frontier_stretch(frontier, offset);
    frontier->open++;
    frontier->stretch_next = frontier->next_offset = offset + 1;
    return frontier->next++;
}

/* Opens `more` further tickets whose offsets continue the last one's. Room reserved. */
static inline void us_frontier_open_more(struct us_frontier *frontier, uint32_t more) {
    frontier->open += more;
    frontier->next += more;
    frontier->next_offset += more;
    frontier->stretch_next = frontier->next_offset;
}

/* Opens a ticket for a record that takes no place of its own in the log; something was seen before. Room reserved. */
static inline uint64_t us_frontier_open_again(struct us_frontier *frontier) {
    int64_t next = frontier->next_offset;
    uint64_t ticket = us_frontier_open(frontier, next);
    frontier->next_offset = next;
    frontier->stretch_next = -1; /* the next record has the same offset or a greater one: a stretch of its own */
    return ticket;
}

/*
 * Acknowledges a ticket. Returns true, also when it was acknowledged before; false: never opened. *first is set to
 * whether this call did it (may be NULL).
 */
static inline bool us_frontier_ack(struct us_frontier *frontier, uint64_t ticket, bool *first) {
    uint64_t index = ticket & (frontier->bits - 1), bit = UINT64_C(1) << (ticket & 63);
    bool fresh = ticket >= frontier->base && ticket < frontier->next && !(frontier->done[index / 64] & bit);
    if (first)
        *first = fresh;
    if (!fresh)
        return ticket < frontier->next;
    frontier->open--;
    if (ticket == frontier->base && frontier->stretch_count == 1 && (bit << 1 & ~frontier->done[index / 64])) {
        frontier->base++; /* in order, the next one of the same word still open: no bit was ever set */
        return true;
    }
    frontier->done[index / 64] |= bit;
    if (ticket == frontier->base)
        us_frontier_advance(frontier);
    return true;
}

/*
 * Acknowledges the oldest `count` outstanding tickets at once, if they are the `count` from `ticket` on and none above
 * them is acknowledged yet: then no bit was ever set. False: nothing changed; they are acknowledged one by one.
 */
static inline bool us_frontier_ack_first(struct us_frontier *frontier, uint64_t ticket, uint64_t count) {
    uint64_t outstanding = frontier->next - frontier->base;
    if (ticket != frontier->base || count > outstanding || frontier->open != outstanding)
        return false;
    frontier->open -= count;
    frontier->base += count;
    if (frontier->stretch_count > 1)
        us_frontier_drop_stretches(frontier);
    return true;
}

/*
 * For several at once: acknowledges a ticket, but leaves the frontier where it is, until us_frontier_pass() is called;
 * nothing else may be between. Without a branch, since the tickets come in no order. Returns as us_frontier_ack().
 */
static inline bool us_frontier_mark(struct us_frontier *frontier, uint64_t ticket) {
    if (frontier->base == frontier->next)
        return ticket < frontier->next;
    uint64_t *word = &frontier->done[(ticket & (frontier->bits - 1)) / 64];
    uint64_t there = ticket - frontier->base < frontier->next - frontier->base, place = ticket & 63;
    frontier->open -= there & ~*word >> place;
    *word |= there << place;
    return ticket < frontier->next;
}
static inline void us_frontier_pass(struct us_frontier *frontier) {
    if (frontier->base < frontier->next)
        us_frontier_advance(frontier);
}

/* Reading has reached the end of the log at `offset`. */
static inline void us_frontier_eof(struct us_frontier *frontier, int64_t offset) {
    if (frontier->next_offset < offset)
        frontier->next_offset = offset;
}

/* The offset that may be committed; -1 when nothing is known. */
static inline int64_t us_frontier_position(const struct us_frontier *frontier) {
    if (frontier->base == frontier->next)
        return frontier->next_offset;
    const struct us_stretch *first = &frontier->stretches[frontier->stretch_first];
    return first->offset + (int64_t)(frontier->base - first->ticket);
}
#endif

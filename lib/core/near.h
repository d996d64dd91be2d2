/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Held numbers that are close to each other, in no order: pages of eight, found by number. Adding, finding and taking
 * the lowest are O(1); no comparison, no hash, so a producer can't choose numbers that make it slow.
 *
 * A leaf has the pages of 128 numbers and says with a bit each which of them are held. A root of a power of two of
 * leaves covers the stretch from the lowest to the highest number; the leaf of numbers n / 128 stands at slot
 * n / 128 mod size. The root grows with what the session holds, one slot for four records, so numbers that are far from
 * all others are refused at first, and the owner keeps them elsewhere (irregular.c). Pages and leaves go when none of
 * their numbers is held. A number costs 35 bytes when all are close together, at most some 450 when each has a page
 * and a leaf of its own; and the root at most 130 KB, whatever is left of what stood there.
 *
 * The earliest arrival: a record that was the highest at its arrival is marked. What is not marked arrived after one
 * that is higher, and only the lowest is ever taken, so the lowest marked one is the earliest of all.
 */
#ifndef US_CORE_NEAR_H
#define US_CORE_NEAR_H
#include <core/held.h>

#define US_NEAR_PAGE 8u   /* numbers */
#define US_NEAR_LEAF 128u /* numbers */

struct us_near_entry {
    void *msg;
    uint64_t arrived; /* ns */
    uint32_t ticket, bytes; /* as in struct us_held */
    uint16_t part, lane, flags, reserved;
};

struct us_near_page {
    struct us_near_slab *slab; /* where its memory is */
    union {
        struct us_near_page *next; /* while it is free */
        struct us_near_entry entries[US_NEAR_PAGE];
    };
};

/*
 * Memory of pages comes in slabs of 4 KiB, since malloc() would touch the neighbours of each page that is freed, which
 * are in no cache if the numbers came in no order. A slab is given back when none of its pages is used.
 */
#define US_NEAR_SLAB 15u /* pages */
struct us_near_slab {
    struct us_near_slab *prev, *next; /* of those with a free page */
    struct us_near_page *free;
    uint32_t used, fresh; /* pages in use; those from here on were never used */
    struct us_near_page pages[US_NEAR_SLAB];
};

/* A bit of each number, at number mod 128: it is held; it is marked. A page is there while a number of it is held. */
struct us_near_leaf {
    uint64_t held[US_NEAR_LEAF / 64], marked[US_NEAR_LEAF / 64];
    union {
        struct us_near_leaf *next; /* while it is free */
        struct us_near_page *pages[US_NEAR_LEAF / US_NEAR_PAGE];
    };
};

/* All zero is an empty one. */
struct us_near {
    struct us_near_leaf **root; /* NULL: no number of that leaf is held */
    uint64_t *used;             /* one bit of each slot: it has a leaf */
    uint32_t mask;
    uint32_t count;             /* of held numbers */
    uint64_t low, high, oldest; /* while count > 0: the lowest, the highest and the lowest marked number */
};

static inline struct us_near_leaf **us_near_slot(const struct us_near *near, uint64_t seq) {
    return &near->root[seq / US_NEAR_LEAF & near->mask];
}
static inline uint64_t us_near_bit(uint64_t seq) {
    return UINT64_C(1) << seq % 64;
}
/* The bits of all numbers of its page. */
static inline uint64_t us_near_page_bits(uint64_t seq) {
    return UINT64_C(255) << (seq % 64 & ~UINT64_C(7));
}
static inline struct us_near_page **us_near_page_of(struct us_near_leaf *leaf, uint64_t seq) {
    return &leaf->pages[seq % US_NEAR_LEAF / US_NEAR_PAGE];
}
static inline bool us_near_has(const struct us_near *near, uint64_t seq) {
    if (near->count == 0 || seq < near->low || seq > near->high) {
        return false;
    }
    const struct us_near_leaf *leaf = *us_near_slot(near, seq);
    return leaf && leaf->held[seq / 64 % 2] & us_near_bit(seq);
}
/*
 * A place for a number that isn't there, to be filled by the caller. held: records that the session holds, here or
 * elsewhere. NULL: the number is too far from the others, or out of memory: nothing changed but, perhaps, the size of
 * the root.
 */
struct us_near_entry *us_near_open(struct us_near *near, struct us_chunks *chunks, uint64_t seq, uint32_t held);

/*
 * Enters a number into its leaf, whose page is there; low and high are set. Without a branch, since numbers come in no
 * order.
 */
static inline struct us_near_entry *us_near_enter(struct us_near *near, struct us_near_leaf *leaf, uint64_t seq) {
    uint64_t bit = us_near_bit(seq), word = seq / 64 % 2;
    leaf->held[word] |= bit;
    leaf->marked[word] |= (uint64_t)(seq > near->high) << seq % 64;
    near->high = seq > near->high ? seq : near->high;
    near->low = seq < near->low ? seq : near->low;
    near->count++;
    return &(*us_near_page_of(leaf, seq))->entries[seq % US_NEAR_PAGE];
}
/* After numbers were entered in another order than they arrived in: marks those that arrived before all above them. */
void us_near_mark_again(struct us_near *near);
/*
 * The same as us_near_open() for one whose page is there and that isn't below the lowest leaf; else NULL, also if the
 * number is there.
 */
static inline struct us_near_entry *us_near_join(struct us_near *near, uint64_t seq) {
    if (near->count == 0 || seq / US_NEAR_LEAF - near->low / US_NEAR_LEAF > near->mask) {
        return NULL;
    }
    struct us_near_leaf *leaf = *us_near_slot(near, seq);
    if (!leaf) {
        return NULL;
    }
    uint64_t held = leaf->held[seq / 64 % 2];
    if (!(held & us_near_page_bits(seq)) || held & us_near_bit(seq)) {
        return NULL;
    }
    return us_near_enter(near, leaf, seq);
}
/* The entry of a held number. */
static inline struct us_near_entry *us_near_at(const struct us_near *near, uint64_t seq) {
    return &(*us_near_page_of(*us_near_slot(near, seq), seq))->entries[seq % US_NEAR_PAGE];
}
/* The same with its number, as it may be filed anywhere. */
static inline struct us_held us_near_held(const struct us_near *near, uint64_t seq) {
    const struct us_near_entry *entry = us_near_at(near, seq);
    return (struct us_held){.seq = seq, .msg = entry->msg, .arrived = entry->arrived, .ticket = entry->ticket,
                            .bytes = entry->bytes, .part = entry->part, .lane = entry->lane, .flags = entry->flags};
}
/* The lowest held number above this one, which is not the highest. O(1) if it is close, else O(root / 64). */
uint64_t us_near_above(const struct us_near *near, uint64_t seq);
/* For a walk over all: the lowest number, and the next one; UINT64_MAX at the end. */
static inline uint64_t us_near_first(const struct us_near *near) {
    return near->count ? near->low : UINT64_MAX;
}
static inline uint64_t us_near_next(const struct us_near *near, uint64_t seq) {
    return seq < near->high ? us_near_above(near, seq) : UINT64_MAX;
}
/*
 * Takes up to max consecutive numbers from the lowest one on, and writes them as us_reasm_pop() does. *bytes grows by
 * what they weigh. Returns how many. max >= 1, count > 0.
 */
struct unsalt_core_out;
uint32_t us_near_pop(struct us_near *near, struct us_chunks *chunks, uint64_t now, struct unsalt_core_out *out,
                     uint32_t max, uint64_t *bytes);
/* Removes every record of a partition; `gone` gets each. Needs no memory. O(held + root). */
void us_near_remove_part(struct us_near *near, struct us_chunks *chunks, uint16_t part,
                         void (*gone)(void *opaque, const struct us_held *held), void *opaque);
/* Frees all; the records are the caller's business. */
void us_near_destroy(struct us_near *near, struct us_chunks *chunks);
/* Frees the slabs and leaves that are kept for later; no page is in use. */
void us_near_spares_destroy(struct us_chunks *chunks);
#endif

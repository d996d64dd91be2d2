/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/near.h>
#include <string.h>
#include <unsalt/core.h>

#define FIRST_SLOTS 2u      /* 129 numbers at least */
#define MAX_SLOTS (1u << 14) /* 2 million numbers */
#define RECORDS_EACH 4u     /* held records for a slot, above FIRST_SLOTS */
#define SLOTS_KEPT 64u      /* a larger root is freed when nothing is held, */
#define SPARSE 4u           /* and shrinks when it is so many times what is needed */
#define SLABS_KEPT 4u       /* without a page in use */
#define LEAVES_KEPT 64u     /* free ones */
#define AHEAD 6u            /* pages that are fetched before they are taken */

/* ---- pages: those of all sessions share the slabs */

static void link_slab(struct us_chunks *chunks, struct us_near_slab *slab) {
    slab->prev = NULL;
    slab->next = chunks->slabs;
    if (slab->next) {
        slab->next->prev = slab;
    }
    chunks->slabs = slab;
}

static void unlink_slab(struct us_chunks *chunks, struct us_near_slab *slab) {
    if (slab->prev) {
        slab->prev->next = slab->next;
    } else {
        chunks->slabs = slab->next;
    }
    if (slab->next) {
        slab->next->prev = slab->prev;
    }
}

static struct us_near_slab *slab_new(struct us_chunks *chunks) {
    struct us_near_slab *slab = us_alloc(chunks->mem, sizeof(*slab));
    if (slab) {
        slab->free = NULL;
        slab->used = slab->fresh = 0;
        link_slab(chunks, slab);
        chunks->empty_slabs++;
    }
    return slab;
}

static struct us_near_page *page_get(struct us_chunks *chunks) {
    struct us_near_slab *slab = chunks->slabs ? chunks->slabs : slab_new(chunks);
    if (!slab) {
        return NULL;
    }
    struct us_near_page *page = slab->free;
    if (page) {
        slab->free = page->next;
    } else {
        page = &slab->pages[slab->fresh++];
        page->slab = slab;
    }
    chunks->empty_slabs -= slab->used == 0;
    if (++slab->used == US_NEAR_SLAB) {
        unlink_slab(chunks, slab);
    }
    return page;
}

static void page_put(struct us_chunks *chunks, struct us_near_page *page) {
    struct us_near_slab *slab = page->slab;
    page->next = slab->free;
    slab->free = page;
    if (slab->used-- == US_NEAR_SLAB) {
        link_slab(chunks, slab);
    }
    if (slab->used > 0) {
        return;
    }
    if (chunks->empty_slabs >= SLABS_KEPT) {
        unlink_slab(chunks, slab);
        us_free(chunks->mem, slab);
    } else {
        chunks->empty_slabs++;
    }
}

/* ---- leaves: a few free ones are kept for all sessions. The pages of a free one are not to be looked at. */

static struct us_near_leaf *leaf_get(struct us_chunks *chunks) {
    struct us_near_leaf *leaf = chunks->leaves;
    if (!leaf) {
        return us_calloc(chunks->mem, 1, sizeof(*leaf));
    }
    chunks->leaves = leaf->next;
    chunks->spare_leaves--;
    return leaf; /* its bits are 0 */
}

static void leaf_put(struct us_chunks *chunks, struct us_near_leaf *leaf) {
    if (chunks->spare_leaves >= LEAVES_KEPT) {
        us_free(chunks->mem, leaf);
        return;
    }
    leaf->next = chunks->leaves;
    chunks->leaves = leaf;
    chunks->spare_leaves++;
}

void us_near_spares_destroy(struct us_chunks *chunks) {
    while (chunks->slabs) {
        struct us_near_slab *slab = chunks->slabs;
        unlink_slab(chunks, slab);
        us_free(chunks->mem, slab);
    }
    chunks->empty_slabs = 0;
    while (chunks->leaves) {
        struct us_near_leaf *next = chunks->leaves->next;
        us_free(chunks->mem, chunks->leaves);
        chunks->leaves = next;
    }
    chunks->spare_leaves = 0;
}

/* ---- the root */

static void set_leaf(struct us_near *near, uint64_t index, struct us_near_leaf *leaf) {
    uint32_t slot = (uint32_t)(index & near->mask);
    uint64_t bit = UINT64_C(1) << slot % 64;
    near->root[slot] = leaf;
    near->used[slot / 64] = leaf ? near->used[slot / 64] | bit : near->used[slot / 64] & ~bit;
}

/* Leaves and `used` are one block. */
static bool resize(struct us_near *near, struct us_chunks *chunks, uint32_t slots) {
    struct us_near other = *near;
    uint32_t words = (slots + 63) / 64;
    other.root = us_calloc(chunks->mem, 1, slots * sizeof(*other.root) + words * sizeof(*other.used));
    if (!other.root) {
        return false;
    }
    other.used = (uint64_t *)(other.root + slots);
    other.mask = slots - 1;
    uint64_t first = near->low / US_NEAR_LEAF;
    for (uint64_t i = 0; near->count && i <= near->mask; i++) {
        struct us_near_leaf *leaf = near->root[(first + i) & near->mask];
        if (leaf) {
            set_leaf(&other, first + i, leaf);
        }
    }
    us_free(chunks->mem, near->root);
    *near = other;
    return true;
}

/* Makes the root cover the number and all that is held. False: too far, or out of memory. */
static bool cover(struct us_near *near, struct us_chunks *chunks, uint64_t seq, uint32_t held) {
    uint64_t first = seq, last = seq;
    if (near->count) {
        first = seq < near->low ? seq : near->low;
        last = seq > near->high ? seq : near->high;
    }
    uint64_t slots = FIRST_SLOTS, distance = last / US_NEAR_LEAF - first / US_NEAR_LEAF;
    if (near->root && distance <= near->mask) {
        return true;
    }
    uint64_t most = held / RECORDS_EACH < MAX_SLOTS ? held / RECORDS_EACH : MAX_SLOTS;
    while (slots <= distance) {
        slots *= 2;
        if (slots > most) {
            return false;
        }
    }
    return resize(near, chunks, (uint32_t)slots);
}

/* After some were taken: a root that is much larger than it need be shrinks, or goes. Without memory it stays. */
static void shrink(struct us_near *near, struct us_chunks *chunks) {
    if (near->mask < SLOTS_KEPT) {
        return;
    }
    if (near->count == 0) {
        us_near_destroy(near, chunks);
        return;
    }
    uint64_t slots = SLOTS_KEPT, distance = near->high / US_NEAR_LEAF - near->low / US_NEAR_LEAF;
    while (slots <= distance) {
        slots *= 2;
    }
    if (slots * SPARSE <= near->mask) {
        resize(near, chunks, (uint32_t)slots);
    }
}

/* A number of the page was taken, or is not entered after all: what holds no number is given back. */
static void drop_page(struct us_chunks *chunks, struct us_near_leaf *leaf, uint64_t seq) {
    if (!(leaf->held[seq / 64 % 2] & us_near_page_bits(seq))) {
        page_put(chunks, *us_near_page_of(leaf, seq));
    }
}

static void drop_leaf(struct us_near *near, struct us_chunks *chunks, struct us_near_leaf *leaf, uint64_t index) {
    if (!(leaf->held[0] | leaf->held[1])) {
        set_leaf(near, index, NULL);
        leaf_put(chunks, leaf);
    }
}

void us_near_destroy(struct us_near *near, struct us_chunks *chunks) {
    for (uint32_t slot = 0; near->count && slot <= near->mask; slot++) {
        struct us_near_leaf *leaf = near->root[slot];
        for (uint32_t i = 0; leaf && i < US_NEAR_LEAF; i += US_NEAR_PAGE) {
            if (leaf->held[i / 64] & us_near_page_bits(i)) {
                page_put(chunks, leaf->pages[i / US_NEAR_PAGE]);
            }
        }
        if (leaf) {
            memset(leaf, 0, sizeof(*leaf));
            leaf_put(chunks, leaf);
        }
    }
    us_free(chunks->mem, near->root);
    memset(near, 0, sizeof(*near));
}

/* The first number / 128 from `index` on whose leaf is there; there is one. The root covers it once. */
static uint64_t leaf_from(const struct us_near *near, uint64_t index) {
    uint32_t words = (near->mask + 64) / 64, slot = (uint32_t)(index & near->mask), at = slot / 64;
    uint64_t word = near->used[at] & (UINT64_MAX << slot % 64);
    while (!word) {
        at = at + 1 < words ? at + 1 : 0;
        word = near->used[at];
    }
    return index + ((at * 64 + (uint32_t)__builtin_ctzll(word) - slot) & near->mask);
}

/* The lowest number from `seq` on that is held, or marked. There is one, so the root covers `seq` too. */
static uint64_t number_from(const struct us_near *near, uint64_t seq, bool marked) {
    const struct us_near_leaf *leaf = *us_near_slot(near, seq);
    uint64_t mask = UINT64_MAX << seq % 64;
    for (;;) {
        const uint64_t *words = leaf && marked ? leaf->marked : leaf ? leaf->held : NULL;
        for (uint64_t at = seq / 64 % 2; words && at < 2; at++, mask = UINT64_MAX) {
            if (words[at] & mask) {
                return (seq & ~(uint64_t)(US_NEAR_LEAF - 1)) + at * 64 + (uint64_t)__builtin_ctzll(words[at] & mask);
            }
        }
        seq = leaf_from(near, seq / US_NEAR_LEAF + 1) * US_NEAR_LEAF;
        leaf = *us_near_slot(near, seq);
        mask = UINT64_MAX;
    }
}

uint64_t us_near_above(const struct us_near *near, uint64_t seq) {
    return number_from(near, seq + 1, false);
}

/* ---- in and out */

struct us_near_entry *us_near_open(struct us_near *near, struct us_chunks *chunks, uint64_t seq, uint32_t held) {
    if (!cover(near, chunks, seq, held)) {
        return NULL;
    }
    struct us_near_leaf *leaf = *us_near_slot(near, seq);
    if (!leaf) {
        leaf = leaf_get(chunks);
        if (!leaf) {
            return NULL;
        }
        set_leaf(near, seq / US_NEAR_LEAF, leaf);
    }
    if (!(leaf->held[seq / 64 % 2] & us_near_page_bits(seq))) {
        struct us_near_page *page = page_get(chunks);
        if (!page) {
            drop_leaf(near, chunks, leaf, seq / US_NEAR_LEAF);
            return NULL;
        }
        *us_near_page_of(leaf, seq) = page;
    }
    if (near->count == 0) {
        near->low = near->high = near->oldest = seq;
        leaf->marked[seq / 64 % 2] |= us_near_bit(seq);
    }
    return us_near_enter(near, leaf, seq);
}

/* Writes n entries of a page. Returns what they weigh. */
static inline uint64_t take(const struct us_near_entry *entry, uint64_t seq, uint32_t n, uint64_t now,
                            struct unsalt_core_out *out) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++, entry++) {
        bytes += entry->bytes;
        out[i] = (unsalt_core_out_t){.msg = entry->msg, .seq = seq + i, .waited_ns = now - entry->arrived,
                                     .ticket = entry->ticket, .part = entry->part, .state = UNSALT_STATE_RELEASED,
                                     .flags = entry->flags, .lane = entry->lane};
    }
    return bytes;
}

/*
 * Fetches a page that is taken soon. Whether it is there is not asked: a prefetch of anything does no harm. Inlined
 * always, since gcc 12 takes a function that only prefetches for one without effect, and leaves out its call.
 */
__attribute__((always_inline)) static inline void fetch_ahead(const struct us_near *near, uint64_t seq) {
    struct us_near_leaf *leaf = *us_near_slot(near, seq);
    if (leaf) {
        const char *page = (const char *)*us_near_page_of(leaf, seq);
        for (uintptr_t line = 0; line < sizeof(struct us_near_page); line += 64) {
            __builtin_prefetch((const void *)((uintptr_t)page + line));
        }
    }
}

uint32_t us_near_pop(struct us_near *near, struct us_chunks *chunks, uint64_t now, struct unsalt_core_out *out,
                     uint32_t max, uint64_t *bytes) {
    uint64_t seq = near->low;
    uint32_t n = 0;
    max = max < near->count ? max : near->count;
    struct us_near_leaf *leaf = *us_near_slot(near, seq);
    while (n < max && leaf) {
        uint64_t word = seq / 64 % 2, in_page = seq % US_NEAR_PAGE, waiting = ~leaf->held[word] >> seq % 64;
        uint64_t run = waiting ? (uint64_t)__builtin_ctzll(waiting) : US_NEAR_PAGE;
        run = run < US_NEAR_PAGE - in_page ? run : US_NEAR_PAGE - in_page;
        run = run < max - n ? run : max - n;
        if (run == 0) {
            break;
        }
        fetch_ahead(near, seq + (uint64_t)AHEAD * US_NEAR_PAGE);
        *bytes += take(&(*us_near_page_of(leaf, seq))->entries[in_page], seq, (uint32_t)run, now, out + n);
        uint64_t taken = ((UINT64_C(1) << run) - 1) << seq % 64;
        leaf->held[word] &= ~taken;
        leaf->marked[word] &= ~taken;
        drop_page(chunks, leaf, seq);
        n += (uint32_t)run;
        seq += run;
        if (seq % US_NEAR_LEAF == 0 && n < max) {
            drop_leaf(near, chunks, leaf, seq / US_NEAR_LEAF - 1);
            leaf = *us_near_slot(near, seq);
        }
    }
    if (leaf) {
        drop_leaf(near, chunks, leaf, (seq - 1) / US_NEAR_LEAF);
    }
    near->count -= n;
    if (near->count) {
        near->low = number_from(near, seq, false);
        near->oldest = near->oldest < near->low ? number_from(near, near->low, true) : near->oldest;
    }
    shrink(near, chunks);
    return n;
}

/* From the highest number down. */
void us_near_mark_again(struct us_near *near) {
    uint64_t earliest = UINT64_MAX, first = near->low / US_NEAR_LEAF;
    for (uint64_t index = near->high / US_NEAR_LEAF + 1; index-- > first;) {
        struct us_near_leaf *leaf = near->root[index & near->mask];
        for (uint64_t at = 2; leaf && at-- > 0;) {
            leaf->marked[at] = 0;
            for (uint64_t left = leaf->held[at]; left;) {
                uint64_t place = 63 - (uint64_t)__builtin_clzll(left), seq = index * US_NEAR_LEAF + at * 64 + place;
                left &= ~us_near_bit(place);
                if (us_near_at(near, seq)->arrived < earliest) {
                    earliest = us_near_at(near, seq)->arrived;
                    leaf->marked[at] |= us_near_bit(place);
                    near->oldest = seq;
                }
            }
        }
    }
}

void us_near_remove_part(struct us_near *near, struct us_chunks *chunks, uint16_t part,
                         void (*gone)(void *opaque, const struct us_held *held), void *opaque) {
    uint64_t seq = near->low, lowest = UNSALT_NO_SEQ, highest = 0;
    uint32_t before = near->count;
    for (uint32_t left = before; left > 0; left--) {
        uint64_t next = left > 1 ? us_near_above(near, seq) : seq;
        struct us_held held = us_near_held(near, seq);
        if (held.part == part) {
            struct us_near_leaf *leaf = *us_near_slot(near, seq);
            leaf->held[seq / 64 % 2] &= ~us_near_bit(seq);
            leaf->marked[seq / 64 % 2] &= ~us_near_bit(seq);
            near->count--;
            drop_page(chunks, leaf, seq);
            drop_leaf(near, chunks, leaf, seq / US_NEAR_LEAF);
            gone(opaque, &held);
        } else {
            lowest = lowest == UNSALT_NO_SEQ ? seq : lowest;
            highest = seq;
        }
        seq = next;
    }
    if (near->count > 0 && near->count < before) {
        near->low = lowest;
        near->high = highest;
        us_near_mark_again(near);
    }
    shrink(near, chunks);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear probing; a removal shifts the words behind it back (Knuth, TAOCP 3, 6.4 R), so there are no tombstones. */
#include <base/seqset.h>

#define FIRST_CAPACITY 8u
#define MAX_CAPACITY (1u << 31)
#define NEIGHBOURS 4u                        /* words of consecutive keys that share a cache line */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)  /* 2^64 / golden ratio: Knuth's multiplier */

static inline uint32_t home(const struct us_seqset *set, uint64_t key) {
    uint64_t spread = (key / NEIGHBOURS + 1) * (GOLDEN ^ (set->seed << 1));
    spread = (spread ^ spread >> 32) * GOLDEN;
    return (uint32_t)((spread >> 32) * NEIGHBOURS + key % NEIGHBOURS) & set->mask;
}

/* Slot of `key`, or the free slot where it would go. The table has a free slot. */
static inline uint32_t find(const struct us_seqset *set, uint64_t key) {
    uint32_t at = home(set, key);
    while (set->words[at].key != key && set->words[at].key != US_SEQSET_FREE)
        at = (at + 1) & set->mask;
    return at;
}

static bool resize(struct us_seqset *set, const struct unsalt_mem *mem, uint32_t capacity) {
    struct us_seqset bigger = {.mask = capacity - 1, .used = set->used, .seed = set->seed};
    bigger.words = us_realloc_array(mem, NULL, capacity, sizeof *bigger.words);
    if (!bigger.words)
        return false;
    for (uint32_t i = 0; i < capacity; i++)
        bigger.words[i] = (struct us_seqset_word){US_SEQSET_FREE, 0};
    for (uint32_t i = 0; set->words && i <= set->mask; i++)
        if (set->words[i].key != US_SEQSET_FREE)
            bigger.words[find(&bigger, set->words[i].key)] = set->words[i];
    us_free(mem, set->words);
    *set = bigger;
    return true;
}

bool us_seqset_reserve(struct us_seqset *set, const struct unsalt_mem *mem, uint32_t more) {
    uint64_t need = (uint64_t)set->used + more;
    uint64_t capacity = set->words ? (uint64_t)set->mask + 1 : 0;
    if (set->words && need * 4 <= capacity * 3)
        return true;
    capacity = capacity ? capacity : FIRST_CAPACITY;
    while (capacity * 3 < need * 4)
        capacity *= 2;
    return capacity <= MAX_CAPACITY && resize(set, mem, (uint32_t)capacity);
}

bool us_seqset_add(struct us_seqset *set, uint64_t seq) {
    struct us_seqset_word *word = &set->words[find(set, seq / 64)];
    uint64_t bit = UINT64_C(1) << seq % 64;
    if (word->key == US_SEQSET_FREE) {
        *word = (struct us_seqset_word){seq / 64, 0};
        set->used++;
    }
    if (word->bits & bit)
        return false;
    word->bits |= bit;
    return true;
}

/* Frees a slot and closes the run behind it. */
static void free_slot(struct us_seqset *set, uint32_t hole) {
    for (uint32_t at = (hole + 1) & set->mask; set->words[at].key != US_SEQSET_FREE; at = (at + 1) & set->mask) {
        /* A word may fill the hole unless its home lies behind the hole. */
        uint32_t way = (at - home(set, set->words[at].key)) & set->mask;
        if (way >= ((at - hole) & set->mask)) {
            set->words[hole] = set->words[at];
            hole = at;
        }
    }
    set->words[hole] = (struct us_seqset_word){US_SEQSET_FREE, 0};
    set->used--;
}

bool us_seqset_remove(struct us_seqset *set, uint64_t seq) {
    if (set->used == 0)
        return false;
    uint32_t at = find(set, seq / 64);
    uint64_t bit = UINT64_C(1) << seq % 64;
    if (!(set->words[at].bits & bit))
        return false;
    set->words[at].bits &= ~bit;
    if (!set->words[at].bits)
        free_slot(set, at);
    return true;
}

bool us_seqset_has(const struct us_seqset *set, uint64_t seq) {
    return set->used && (set->words[find(set, seq / 64)].bits >> seq % 64 & 1);
}

void us_seqset_destroy(struct us_seqset *set, const struct unsalt_mem *mem) {
    us_free(mem, set->words);
    *set = (struct us_seqset){.seed = set->seed};
}

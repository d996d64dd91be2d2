/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of 64-bit sequence numbers: an open-addressing table of 64-number words. Exact, no window, about 0.25
 * bytes a number when they are dense. Words are spread by a multiplicative hash with neighbours kept together,
 * since identity hashing would let a producer pile chosen numbers up; the owner's secret seed picks the multiplier.
 */
#ifndef US_BASE_SEQSET_H
#define US_BASE_SEQSET_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_seqset_word {
    uint64_t key, bits; /* key = number / 64; US_SEQSET_FREE = free slot */
};
#define US_SEQSET_FREE UINT64_MAX

/* All zero is an empty set. */
struct us_seqset {
    struct us_seqset_word *words;
    uint32_t mask, used; /* capacity - 1; words in use, at most three quarters of the capacity */
    uint64_t seed;       /* set by the owner before the first reserve, if it has a secret; 0 will do otherwise */
};

/*
 * Makes room so that `more` further adds can't fail. false: out of memory, or over 2^30 words; nothing changed.
 */
bool us_seqset_reserve(struct us_seqset *set, const struct unsalt_mem *mem, uint32_t more);
/* Adds a number (room reserved). Returns false if it was there. */
bool us_seqset_add(struct us_seqset *set, uint64_t seq);
/* Removes a number; a word without numbers frees its slot. Returns false if it wasn't there. */
bool us_seqset_remove(struct us_seqset *set, uint64_t seq);
bool us_seqset_has(const struct us_seqset *set, uint64_t seq);
/* Frees the table; the set is empty and usable again, under the same seed. */
void us_seqset_destroy(struct us_seqset *set, const struct unsalt_mem *mem);
#endif

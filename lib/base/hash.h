/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded hash of a session id (xxhash, XXH3 64 bits with seed): ids come from producers, so the seed is secret. */
#ifndef US_BASE_HASH_H
#define US_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t us_hash(const void *bytes, size_t size, uint64_t seed);

/* SplitMix64 (Steele, Lea, Flood 2014): what is added to its state for each number, and its finaliser, a bijection. */
#define US_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t us_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
#endif

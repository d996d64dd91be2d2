/* SPDX-License-Identifier: BSD-2-Clause */
/* us_hash() without the call, for a loop that hashes an id per record. It is much code: include it where it pays. */
#ifndef US_BASE_HASH_INLINE_H
#define US_BASE_HASH_INLINE_H
#include <base/hash.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t us_hash_inline(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, size, seed);
}
#endif

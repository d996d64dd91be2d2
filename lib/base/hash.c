/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t us_hash(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, size, seed);
}

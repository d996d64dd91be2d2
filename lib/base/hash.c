/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash_inline.h>

uint64_t us_hash(const void *bytes, size_t size, uint64_t seed) {
    return us_hash_inline(bytes, size, seed);
}

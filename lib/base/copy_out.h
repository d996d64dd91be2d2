/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs of the caller's version: an older one is shorter than ours, a newer one longer. */
#ifndef US_BASE_COPY_OUT_H
#define US_BASE_COPY_OUT_H
#include <string.h>

/* Copies what both have; what only the caller's has becomes 0. */
static inline void us_copy_out(void *to, size_t to_size, const void *from, size_t from_size) {
    size_t both = to_size < from_size ? to_size : from_size;
    memcpy(to, from, both);
    memset((char *)to + both, 0, to_size - both);
}
#endif

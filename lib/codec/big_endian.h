/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in network order. Written so that a compiler makes one load of it, which a loop over the bytes isn't. */
#ifndef US_CODEC_BIG_ENDIAN_H
#define US_CODEC_BIG_ENDIAN_H
#include <stdint.h>

/* The number in at[0..1]. */
static inline uint16_t us_big_endian_16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* The number in at[0..7]. */
static inline uint64_t us_big_endian_64(const uint8_t *at) {
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
           (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 | (uint64_t)at[6] << 8 | at[7];
}
#endif

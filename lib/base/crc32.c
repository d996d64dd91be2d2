/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/crc32.h>

/* A CRC is linear: the remainder of a byte is the sum of the remainders of its bits, which are the numbers here. */
#define BIT(i, k, remainder) ((i) & 1u << (k) ? UINT32_C(remainder) : 0u)
#define T1(i)                                                                                                         \
    (BIT(i, 0, 0x77073096) ^ BIT(i, 1, 0xee0e612c) ^ BIT(i, 2, 0x076dc419) ^ BIT(i, 3, 0x0edb8832) ^                  \
     BIT(i, 4, 0x1db71064) ^ BIT(i, 5, 0x3b6e20c8) ^ BIT(i, 6, 0x76dc4190) ^ BIT(i, 7, 0xedb88320))
#define T4(i) T1(i), T1((i) + 1u), T1((i) + 2u), T1((i) + 3u)
#define T16(i) T4(i), T4((i) + 4u), T4((i) + 8u), T4((i) + 12u)
#define T64(i) T16(i), T16((i) + 16u), T16((i) + 32u), T16((i) + 48u)

static const uint32_t remainders[256] = {T64(0u), T64(64u), T64(128u), T64(192u)};

uint32_t us_crc32(uint32_t crc, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ remainders[(crc ^ at[i]) & 0xff];
    return ~crc;
}

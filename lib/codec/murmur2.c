/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>

#define SEED UINT32_C(0x9747b28c)
#define MIX UINT32_C(0x5bd1e995)

uint32_t us_murmur2(const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint32_t hash = SEED ^ (uint32_t)size;
    for (; size >= 4; size -= 4, at += 4) {
        uint32_t block = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        block *= MIX;
        block ^= block >> 24;
        hash = (hash * MIX) ^ (block * MIX);
    }
    if (size > 0) {
        for (size_t i = 0; i < size; i++)
            hash ^= (uint32_t)at[i] << 8 * i;
        hash *= MIX;
    }
    hash ^= hash >> 13;
    hash *= MIX;
    return hash ^ hash >> 15;
}

int32_t us_murmur2_partition(const void *key, size_t size, int32_t partitions) {
    return (int32_t)(us_murmur2(key, size) & 0x7fffffff) % partitions;
}

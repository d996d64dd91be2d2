/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash of the Java client's default partitioner (org.apache.kafka.common.utils.Utils.murmur2). */
#ifndef US_CODEC_MURMUR2_H
#define US_CODEC_MURMUR2_H
#include <stddef.h>
#include <stdint.h>

/* MurmurHash2, 32 bits, seed 0x9747b28c, little-endian blocks. Public domain algorithm by Austin Appleby. */
uint32_t us_murmur2(const void *bytes, size_t size);
/* Partition of a key as the Java client picks it: (murmur2 & 0x7fffffff) mod partitions; partitions >= 1. */
int32_t us_murmur2_partition(const void *key, size_t size, int32_t partitions);
#endif

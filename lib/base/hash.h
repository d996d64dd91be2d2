/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded hash of a session id (xxhash, XXH3 64 bits with seed): ids come from producers, so the seed is secret. */
#ifndef US_BASE_HASH_H
#define US_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t us_hash(const void *bytes, size_t size, uint64_t seed);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 as in zlib, gzip and PNG (ISO 3309, ITU-T V.42: polynomial 0x04C11DB7, bits reflected, register and result
 * inverted). It finds accidents, it is no defence against who wants to forge.
 */
#ifndef US_BASE_CRC32_H
#define US_BASE_CRC32_H
#include <stddef.h>
#include <stdint.h>

/*
 * The sum of what `crc` is the sum of (0: of nothing), followed by these bytes. The bytes are borrowed, and may be NULL
 * when size is 0. Any thread.
 */
uint32_t us_crc32(uint32_t crc, const void *bytes, size_t size);
#endif

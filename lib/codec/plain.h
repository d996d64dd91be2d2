/* SPDX-License-Identifier: BSD-2-Clause */
/* A plain sequence header that any language can write: 8 bytes big-endian, or ASCII decimal. */
#ifndef US_CODEC_PLAIN_H
#define US_CODEC_PLAIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a sequence from a plain header value.
 *   bytes, size  borrowed. Decimal digits only ('0'..'9', 1 to 20 of them, no sign, no space) are read as decimal;
 *                exactly 8 bytes that are not all digits are read as big-endian binary.
 *   seq          set on success only.
 * Returns true; false if it is neither, or if the number is above UINT64_MAX - 1. Any thread.
 */
bool us_plain_read(const void *bytes, size_t size, uint64_t *seq);

/* Reads 1 to 20 decimal digits as above, never binary. For JSON numbers and salts. */
bool us_decimal_read(const char *text, size_t size, uint64_t *value);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unsigned numbers of up to 64 bits in 1 to 10 bytes (LEB128 as in DWARF, the varint of Protocol Buffers): seven bits
 * in each byte, the lowest first; all bytes but the last have bit 7 set. The fewest bytes are the only way to write a
 * number, so that equal entries are equal bytes.
 */
#ifndef US_CODEC_VARINT_H
#define US_CODEC_VARINT_H
#include <stddef.h>
#include <stdint.h>

#define US_VARINT_MAX 10 /* bytes */

enum us_varint {
    US_VARINT_OK,
    US_VARINT_SHORT, /* the bytes end before the number does */
    US_VARINT_WRONG  /* more than 64 bits, or more bytes than needed */
};

/* Bytes that a number takes, 1..10. */
size_t us_varint_size(uint64_t value);
/* Writes a number to `bytes`, which have room for it. Returns the number of bytes written. */
size_t us_varint_write(uint64_t value, uint8_t *bytes);
/*
 * Reads the number at *at and moves *at behind it. Never looks at or behind `end`. Unless OK is returned, *at and
 * *value are untouched.
 */
enum us_varint us_varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value);
#endif

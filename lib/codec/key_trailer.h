/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sequence at the end of a record key, behind the session id and its salt: 8 bytes big-endian, or a fixed number of
 * decimal digits. The writer is public: unsalt_key_trailer_write() in <unsalt/wire.h>, implemented in key_trailer.c.
 */
#ifndef US_CODEC_KEY_TRAILER_H
#define US_CODEC_KEY_TRAILER_H
#include <unsalt/wire.h>

enum us_trailer {
    US_TRAILER_FOUND,
    US_TRAILER_NONE,    /* the key is shorter than a trailer, or its end isn't made of digits */
    US_TRAILER_RESERVED /* it has the form, but its number is above 2^64 - 2 */
};

/*
 * Reads the trailer of a key.
 *   digits       0: 8 bytes big-endian; 1..20: so many decimal digits, leading zeros included.
 *   key          borrowed; may be NULL when key_len is 0.
 *   seq          set when found.
 *   session_len  set when found: the key without its trailer is so many bytes long, which may be 0.
 * Any thread.
 */
enum us_trailer us_key_trailer_read(unsigned digits, const void *key, size_t key_len, uint64_t *seq,
                                    size_t *session_len);
#endif

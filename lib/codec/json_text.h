/* SPDX-License-Identifier: BSD-2-Clause */
/* Letters and numbers of JSON (RFC 8259, sections 6 and 7), below the level of tokens. */
#ifndef US_CODEC_JSON_TEXT_H
#define US_CODEC_JSON_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Takes the escapes out of the inside of a string token; \uXXXX and surrogate pairs become UTF-8.
 *   out   room for `size` bytes; escapes only ever get shorter.
 * Returns the number of bytes written; SIZE_MAX for an invalid escape or half a surrogate pair. Any thread.
 */
size_t us_json_unescape(const char *text, size_t size, char *out);

/* Is the text exactly one JSON number, of any kind? */
bool us_json_is_number(const char *text, size_t size);

/* Is the text one JSON number, true, false or null? */
bool us_json_is_scalar(const char *text, size_t size);

/* Is there nothing but white space in the text, except `once`, once? once = 0: nothing but white space. */
bool us_json_is_blank(const char *text, size_t size, char once);

/* Do brackets outside of strings nest deeper than `depth`? The text need not be valid. */
bool us_json_is_deep(const char *text, size_t size, size_t depth);
#endif

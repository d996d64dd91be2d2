/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of configuration keys, made from conf_keys.def: text to value and back, one key at a time. */
#ifndef US_KAFKA_CONF_TABLE_H
#define US_KAFKA_CONF_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum us_key_type {
    US_KEY_INT,    /* int64_t: a whole number in min..max */
    US_KEY_MS,     /* int64_t: milliseconds in min..max; INT64_MAX for -1 and "off" where min is -1 */
    US_KEY_BOOL,   /* int64_t: 0 or 1 */
    US_KEY_ENUM,   /* int64_t: index into the allowed values */
    US_KEY_STRING, /* char *: never NULL; length in min..max */
    US_KEY_LIST,   /* char *: comma-separated topic names; NULL when empty */
    US_KEY_U64     /* int64_t: the bits of a uint64_t, 0..2^64 - 2 */
};

struct us_key {
    enum us_key_type type;
    char scope; /* 'C' consumer, 'P' producer, 'B' both, 'R' a relay's input, 'T' its result */
    const char *name, *fallback; /* fallback: the default as text */
    int64_t min, max;
    const char *allowed, *doc;
    size_t offset; /* of the field in struct unsalt_conf */
};

extern const struct us_key us_keys[];
extern const size_t us_keys_count;

/* Returns the key of that name, NULL if there is none. Any thread. */
const struct us_key *us_key_find(const char *name);
/* Returns the name of the known key that is most like `name`, NULL if none is near. Any thread. */
const char *us_key_nearest(const char *name);

/* True if the field is a char *, false if it is an int64_t. */
bool us_key_is_text(const struct us_key *key);
/* Reads the value of a key that is no text. Returns false if it isn't allowed; *number is set on success only. */
bool us_key_read(const struct us_key *key, const char *value, int64_t *number);
/* Tells whether a text is allowed for a key that is a text. */
bool us_key_text_allowed(const struct us_key *key, const char *value);
/* Writes a number as the text that us_key_read() takes. Returns its length; `text` has room for 32 bytes. */
size_t us_key_write(const struct us_key *key, int64_t number, char *text, size_t size);
/* Writes what is allowed, for people: "1..4096", "hash or topics". Returns as snprintf(3). */
int us_key_allowed(const struct us_key *key, char *text, size_t size);
#endif

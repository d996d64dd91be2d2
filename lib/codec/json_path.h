/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a field stands in a JSON object: the name of a top-level member, or a JSON pointer (RFC 6901), which begins
 * with '/': `/meta/seq` is the member seq of the object that is the member meta. In a pointer `~1` stands for '/', `~0`
 * for '~'. A top-level name that begins with '/' must be written as a pointer. Every step is the name of a
 * member: indices of arrays are not known, and a path that meets anything but an object finds nothing.
 */
#ifndef US_CODEC_JSON_PATH_H
#define US_CODEC_JSON_PATH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US_JSON_PATH_BYTES 255 /* of the text */
#define US_JSON_PATH_STEPS 16

/* The step at `at` of a path: so many bytes of `bytes`, unescaped. A name may be empty in a pointer. */
struct us_json_step {
    uint8_t at, len;
};
struct us_json_path {
    char bytes[US_JSON_PATH_BYTES];
    struct us_json_step steps[US_JSON_PATH_STEPS];
    uint8_t depth; /* steps; 0 = there is no such field */
};

/*
 * Reads a path; NULL or "" has no steps. Returns false if it is longer than US_JSON_PATH_BYTES, has more than
 * US_JSON_PATH_STEPS steps, or a '~' in a pointer that isn't followed by 0 or 1: then *path has no steps. Any thread.
 */
bool us_json_path_parse(const char *text, struct us_json_path *path);
#endif

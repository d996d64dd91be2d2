/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sequence and the session id in a JSON payload: {"sessionId": "...", "globalSeq": 17, ...}. Tokenised by
 * jsmn, which doesn't recurse; numbers are read from their digits, so they survive up to 2^64 - 2. The top level of
 * the object is checked strictly, and so is each object on the path to a field; faults inside of other nested values
 * may pass, as this is no validator.
 *
 * Nesting deeper than US_JSON_DEPTH_MAX is refused before jsmn sees it: closing a bracket costs it a step per level,
 * so a hostile payload would cost the square of its depth.
 */
#ifndef US_CODEC_JSON_H
#define US_CODEC_JSON_H
#include <base/mem.h>
#include <codec/json_path.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US_JSON_DEPTH_MAX 256

/* X(CONSTANT, text): why a payload gives no sequence or session. */
#define US_JSON_FAULTS(X)                                                                                             \
    X(OK, "found")                                                                                                    \
    X(SYNTAX, "the payload is not a JSON object")                                                                     \
    X(TOO_LARGE, "the payload has more JSON tokens, or deeper nesting, than the limit")                               \
    X(NOMEM, "out of memory")                                                                                         \
    X(MISSING, "the field is missing")                                                                                \
    X(TYPE, "the sequence is not a number, or the session is neither a string nor a number")                          \
    X(NUMBER, "the sequence is negative, fractional, or above 2^64 - 2")                                              \
    X(ESCAPE, "the session id has an invalid escape, or is empty")

enum us_json_fault {
#define X(C, text) US_JSON_##C,
    US_JSON_FAULTS(X)
#undef X
};
const char *us_json_fault_text(enum us_json_fault fault);

struct us_json; /* a reader: owns a token array that grows up to a limit */

/*
 * seq_field: the field with the sequence, as json_path.h says: a top-level name or a JSON pointer, copied.
 * session_field: the same for the session id; NULL or "": don't look, in both. max_tokens: 16..1,048,576. Returns NULL
 * when out of memory, or if a field is no path (us_json_path_parse()).
 */
struct us_json *us_json_new(const struct unsalt_mem *mem, const char *seq_field, const char *session_field,
                            uint32_t max_tokens);
void us_json_destroy(struct us_json *json); /* NULL is allowed */

struct us_json_found {
    bool has_seq, has_session;
    uint64_t seq;
    const char *session; /* in the payload, or in the reader when it had escapes: valid until the next read */
    size_t session_len;
    enum us_json_fault seq_fault, session_fault; /* why has_* is false */
};

/*
 * Looks the fields up. A name that occurs twice in an object: the last one counts (as most parsers do), on each
 * level of a path. Names are compared after unescaping. A path that meets something else than an object: the field is
 * missing. Returns US_JSON_OK if the payload is an object, whatever was found in it; else the fault, with both
 * has_* false. One thread at a time.
 */
enum us_json_fault us_json_read(struct us_json *json, const void *payload, size_t size, struct us_json_found *found);
#endif

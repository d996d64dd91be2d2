/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json.h>
#include <codec/json_text.h>
#include <codec/plain.h>
#include <limits.h>
#include <string.h>

#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

#define FIRST_TOKENS 64u
#define NAME_MAX_BYTES 255
#define ESCAPED_NAME_MAX (NAME_MAX_BYTES * 6) /* every byte of a name may be written as \uXXXX */
#define ABSENT (-1)

struct name {
    char bytes[NAME_MAX_BYTES];
    uint8_t len;
};

struct us_json {
    struct unsalt_mem mem;
    struct name seq, session;
    jsmntok_t *tokens;
    uint32_t capacity, max;
    char *unescaped; /* of the session id */
    size_t unescaped_size;
};

const char *us_json_fault_text(enum us_json_fault fault) {
    static const char *const texts[] = {
#define X(C, text) text,
        US_JSON_FAULTS(X)
#undef X
    };
    return (unsigned)fault < sizeof texts / sizeof *texts ? texts[fault] : "?";
}

static void set_name(struct name *name, const char *text) {
    size_t len = text ? strlen(text) : 0;
    name->len = (uint8_t)(len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
    if (name->len)
        memcpy(name->bytes, text, name->len);
}

struct us_json *us_json_new(const struct unsalt_mem *mem, const char *seq_field, const char *session_field,
                            uint32_t max_tokens) {
    struct us_json *json = us_calloc(mem, 1, sizeof *json);
    if (!json)
        return NULL;
    json->mem = *mem;
    json->max = max_tokens;
    json->capacity = max_tokens < FIRST_TOKENS ? max_tokens : FIRST_TOKENS;
    json->tokens = us_realloc_array(mem, NULL, json->capacity, sizeof *json->tokens);
    if (!json->tokens) {
        us_free(mem, json);
        return NULL;
    }
    set_name(&json->seq, seq_field);
    set_name(&json->session, session_field);
    return json;
}

void us_json_destroy(struct us_json *json) {
    if (!json)
        return;
    struct unsalt_mem mem = json->mem;
    us_free(&mem, json->unescaped);
    us_free(&mem, json->tokens);
    us_free(&mem, json);
}

static enum us_json_fault more_tokens(struct us_json *json) {
    if (json->capacity >= json->max)
        return US_JSON_TOO_LARGE;
    uint32_t capacity = json->capacity > json->max / 2 ? json->max : json->capacity * 2;
    jsmntok_t *tokens = us_realloc_array(&json->mem, json->tokens, capacity, sizeof *tokens);
    if (!tokens)
        return US_JSON_NOMEM;
    json->tokens = tokens;
    json->capacity = capacity;
    return US_JSON_OK;
}

/* Fills the token array; jsmn goes on where it stopped after the array has grown. */
static enum us_json_fault tokenise(struct us_json *json, const char *text, size_t size, int *count) {
    jsmn_parser parser;
    jsmn_init(&parser);
    while ((*count = jsmn_parse(&parser, text, size, json->tokens, json->capacity)) == JSMN_ERROR_NOMEM) {
        enum us_json_fault fault = more_tokens(json);
        if (fault != US_JSON_OK)
            return fault;
    }
    /* jsmn takes any number of values, and stops at a NUL. */
    if (*count < 1 || json->tokens[0].type != JSMN_OBJECT)
        return US_JSON_SYNTAX;
    size_t end = (size_t)json->tokens[0].end;
    return us_json_is_blank(text + end, size - end, 0) ? US_JSON_OK : US_JSON_SYNTAX;
}

/* Where a token begins and ends, the quotes of a string included. */
static int outer_start(const jsmntok_t *token) {
    return token->start - (token->type == JSMN_STRING);
}

static int outer_end(const jsmntok_t *token) {
    return token->end + (token->type == JSMN_STRING);
}

static bool between(const char *text, int from, int to, char once) {
    return us_json_is_blank(text + from, (size_t)(to - from), once);
}

/* jsmn takes anything that begins like one, even `1:"x":2`, for a number, and `nothing` for null. */
static bool is_value(const char *text, const jsmntok_t *token) {
    return token->type != JSMN_PRIMITIVE || us_json_is_scalar(text + token->start, (size_t)(token->end - token->start));
}

static bool is_named(const char *text, const jsmntok_t *token, const struct name *name) {
    const char *raw = text + token->start;
    size_t size = (size_t)(token->end - token->start);
    if (size == name->len && !memchr(raw, '\\', size))
        return memcmp(raw, name->bytes, size) == 0;
    if (size <= name->len || size > ESCAPED_NAME_MAX || !memchr(raw, '\\', size))
        return false;
    char plain[ESCAPED_NAME_MAX];
    return us_json_unescape(raw, size, plain) == name->len && memcmp(plain, name->bytes, name->len) == 0;
}

/*
 * Walks the top-level members, strictly: "name" : value, with one comma between them. Sets the tokens of the
 * values looked for, or ABSENT. Returns false if it is no well-formed object.
 */
static bool walk(const struct us_json *json, const char *text, int count, int *seq, int *session) {
    const jsmntok_t *tokens = json->tokens;
    int at = 1, end = tokens[0].start + 1;
    while (at < count) {
        const jsmntok_t *key = &tokens[at], *value = key + 1;
        if (key->type != JSMN_STRING || key->size == 0) /* a name without a value */
            return false;
        if (!between(text, end, outer_start(key), at == 1 ? 0 : ',') ||
            !between(text, outer_end(key), outer_start(value), ':') || !is_value(text, value))
            return false;
        if (is_named(text, key, &json->seq))
            *seq = at + 1;
        if (json->session.len && is_named(text, key, &json->session))
            *session = at + 1;
        end = outer_end(value);
        for (at += 2; at < count && tokens[at].start < end; at++) /* over what is nested in it */
            ;
    }
    return between(text, end, tokens[0].end - 1, 0);
}

static enum us_json_fault read_seq(const char *text, const jsmntok_t *token, uint64_t *seq) {
    const char *raw = text + token->start;
    size_t size = (size_t)(token->end - token->start);
    if (token->type != JSMN_PRIMITIVE || !us_json_is_number(raw, size))
        return US_JSON_TYPE;
    return us_decimal_read(raw, size, seq) ? US_JSON_OK : US_JSON_NUMBER;
}

static enum us_json_fault unescape_session(struct us_json *json, const char *raw, size_t size,
                                           struct us_json_found *found) {
    if (size > json->unescaped_size) {
        char *bigger = us_realloc_array(&json->mem, json->unescaped, size, 1);
        if (!bigger)
            return US_JSON_NOMEM;
        json->unescaped = bigger;
        json->unescaped_size = size;
    }
    size_t len = us_json_unescape(raw, size, json->unescaped);
    if (len == SIZE_MAX)
        return US_JSON_ESCAPE;
    found->session = json->unescaped;
    found->session_len = len;
    return US_JSON_OK;
}

static enum us_json_fault read_session(struct us_json *json, const char *text, const jsmntok_t *token,
                                       struct us_json_found *found) {
    const char *raw = text + token->start;
    size_t size = (size_t)(token->end - token->start);
    if (token->type == JSMN_PRIMITIVE ? !us_json_is_number(raw, size) : token->type != JSMN_STRING)
        return US_JSON_TYPE;
    if (size == 0)
        return US_JSON_ESCAPE;
    if (memchr(raw, '\\', size))
        return unescape_session(json, raw, size, found);
    found->session = raw;
    found->session_len = size;
    return US_JSON_OK;
}

enum us_json_fault us_json_read(struct us_json *json, const void *payload, size_t size, struct us_json_found *found) {
    const char *text = payload;
    int count, seq = ABSENT, session = ABSENT;
    *found = (struct us_json_found){.seq_fault = US_JSON_MISSING, .session_fault = US_JSON_MISSING};
    enum us_json_fault fault = US_JSON_SYNTAX;
    if (size > INT_MAX || us_json_is_deep(text, size, US_JSON_DEPTH_MAX))
        fault = US_JSON_TOO_LARGE; /* jsmn counts bytes in int */
    else if (size > 0)
        fault = tokenise(json, text, size, &count);
    if (fault == US_JSON_OK && !walk(json, text, count, &seq, &session))
        fault = US_JSON_SYNTAX;
    if (fault != US_JSON_OK) {
        found->seq_fault = found->session_fault = fault;
        return fault;
    }
    if (seq != ABSENT)
        found->seq_fault = read_seq(text, &json->tokens[seq], &found->seq);
    if (session != ABSENT)
        found->session_fault = read_session(json, text, &json->tokens[session], found);
    found->has_seq = found->seq_fault == US_JSON_OK && seq != ABSENT;
    found->has_session = found->session_fault == US_JSON_OK && session != ABSENT;
    return US_JSON_OK;
}

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
#define ESCAPED_NAME_MAX (US_JSON_PATH_BYTES * 6) /* every byte of a name may be written as \uXXXX */
#define ABSENT (-1)

enum { SEQ, SESSION, FIELDS };

struct us_json {
    struct unsalt_mem mem;
    struct us_json_path paths[FIELDS];
    size_t depth; /* of the deeper one */
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

struct us_json *us_json_new(const struct unsalt_mem *mem, const char *seq_field, const char *session_field,
                            uint32_t max_tokens) {
    struct us_json *json = us_calloc(mem, 1, sizeof *json);
    if (!json)
        return NULL;
    json->mem = *mem;
    json->max = max_tokens;
    json->capacity = max_tokens < FIRST_TOKENS ? max_tokens : FIRST_TOKENS;
    if (us_json_path_parse(seq_field, &json->paths[SEQ]) && us_json_path_parse(session_field, &json->paths[SESSION]))
        json->tokens = us_realloc_array(mem, NULL, json->capacity, sizeof *json->tokens);
    if (!json->tokens) {
        us_free(mem, json);
        return NULL;
    }
    json->depth = json->paths[SEQ].depth;
    if (json->paths[SESSION].depth > json->depth)
        json->depth = json->paths[SESSION].depth;
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
    /* jsmn takes any number of values and commas between them, and stops at a NUL. */
    if (*count < 1 || json->tokens[0].type != JSMN_OBJECT ||
        !us_json_is_blank(text, (size_t)json->tokens[0].start, 0))
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

static bool is_named(const char *text, const jsmntok_t *token, const char *name, size_t len) {
    const char *raw = text + token->start;
    size_t size = (size_t)(token->end - token->start);
    if (size == len && !memchr(raw, '\\', size))
        return memcmp(raw, name, size) == 0;
    if (size <= len || size > ESCAPED_NAME_MAX || !memchr(raw, '\\', size))
        return false;
    char plain[ESCAPED_NAME_MAX];
    return us_json_unescape(raw, size, plain) == len && memcmp(plain, name, len) == 0;
}

/* A field on its way down its path. */
struct search {
    const struct us_json_path *path;
    int object; /* token of the object that the next step is looked up in; ABSENT: the search is over */
    int value;  /* token of what the steps so far have led to; ABSENT: it isn't there */
};

/* The name that a field is looked up by in this object; NULL: it isn't. */
static const char *step_name(const struct search *search, int object, size_t level, size_t *len) {
    if (search->object != object)
        return NULL;
    const struct us_json_step *step = &search->path->steps[level];
    *len = step->len;
    return search->path->bytes + step->at;
}

/*
 * Walks the members of an object, strictly: "name" : value, with one comma between them. Notes the values of the
 * fields that are looked up in it. Returns false if it is no well-formed object.
 */
static bool walk(const struct us_json *json, const char *text, int count, int object, size_t level,
                 struct search *fields) {
    const jsmntok_t *tokens = json->tokens;
    size_t seq_len = 0, session_len = 0;
    const char *seq = step_name(&fields[SEQ], object, level, &seq_len);
    const char *session = step_name(&fields[SESSION], object, level, &session_len);
    int at = object + 1, end = tokens[object].start + 1, last = tokens[object].end;
    while (at < count && tokens[at].start < last) {
        const jsmntok_t *key = &tokens[at], *value = key + 1;
        if (key->type != JSMN_STRING || key->size == 0) /* a name without a value */
            return false;
        if (!between(text, end, outer_start(key), at == object + 1 ? 0 : ',') ||
            !between(text, outer_end(key), outer_start(value), ':') || !is_value(text, value))
            return false;
        if (seq && is_named(text, key, seq, seq_len))
            fields[SEQ].value = at + 1;
        if (session && is_named(text, key, session, session_len))
            fields[SESSION].value = at + 1;
        end = outer_end(value);
        for (at += 2; at < count && tokens[at].start < end; at++) /* over what is nested in it */
            ;
    }
    return between(text, end, last - 1, 0);
}

/* Goes into what a step has led to, if the path has one more step. */
static void descend(const struct us_json *json, size_t level, struct search *search) {
    int value = search->value;
    if (search->object == ABSENT)
        return;
    search->object = ABSENT;
    if (level >= search->path->depth)
        return;
    search->value = ABSENT;
    if (value != ABSENT && json->tokens[value].type == JSMN_OBJECT)
        search->object = value;
}

/* Follows both paths, in one walk where they go through the same object. Returns false at a fault on the way. */
static bool follow(const struct us_json *json, const char *text, int count, struct search *fields) {
    int object = 0, other = ABSENT; /* the top level is walked in any case: it must be well-formed */
    for (size_t level = 0; object != ABSENT; level++) {
        if (!walk(json, text, count, object, level, fields))
            return false;
        if (other != ABSENT && other != object && !walk(json, text, count, other, level, fields))
            return false;
        if (level + 1 >= json->depth)
            break;
        descend(json, level + 1, &fields[SEQ]);
        descend(json, level + 1, &fields[SESSION]);
        object = fields[SEQ].object != ABSENT ? fields[SEQ].object : fields[SESSION].object;
        other = fields[SESSION].object;
    }
    return true;
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
    int count;
    struct search fields[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        fields[i] = (struct search){&json->paths[i], json->paths[i].depth ? 0 : ABSENT, ABSENT};
    *found = (struct us_json_found){.seq_fault = US_JSON_MISSING, .session_fault = US_JSON_MISSING};
    enum us_json_fault fault = US_JSON_SYNTAX;
    if (size > INT_MAX || us_json_is_deep(text, size, US_JSON_DEPTH_MAX))
        fault = US_JSON_TOO_LARGE; /* jsmn counts bytes in int */
    else if (size > 0)
        fault = tokenise(json, text, size, &count);
    if (fault == US_JSON_OK && !follow(json, text, count, fields))
        fault = US_JSON_SYNTAX;
    if (fault != US_JSON_OK) {
        found->seq_fault = found->session_fault = fault;
        return fault;
    }
    int seq = fields[SEQ].value, session = fields[SESSION].value;
    if (seq != ABSENT)
        found->seq_fault = read_seq(text, &json->tokens[seq], &found->seq);
    if (session != ABSENT)
        found->session_fault = read_session(json, text, &json->tokens[session], found);
    found->has_seq = found->seq_fault == US_JSON_OK && seq != ABSENT;
    found->has_session = found->session_fault == US_JSON_OK && session != ABSENT;
    return US_JSON_OK;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequence and session in a JSON payload, against a recursive reader that knows RFC 8259 and nothing else. What is
 * valid must be read, with the same result; what isn't may pass only if its fault lies where the library doesn't look:
 * inside of nested values, and in the bytes of strings.
 *
 * The first two bytes choose: names of the fields, the limit of tokens, an allocation that fails.
 */
#include <codec/json.h>
#include <fuzz/fuzz.h>
#include <support/failmem.h>

enum { DEPTH = US_JSON_DEPTH_MAX, TEXT_MAX = 4096 };

struct value {
    char type; /* 'o', 'a', 's', 'n' number, 'w' word; 0 = none */
    const char *text; /* of a string: inside of its quotes */
    size_t len;
};

/* A reader of one text. */
struct reader {
    const char *at, *end;
    size_t tokens, depth, deepest;
    bool nested; /* a value of the top level has brackets */
    bool loose;  /* a string has a byte that RFC 8259 forbids, or an escape that isn't one: an error, if it is strict */
    const char *seq_name, *session_name;
    struct value seq, session;
};

static bool value(struct reader *r, struct value *found);

static void blank(struct reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool eat(struct reader *r, char c) {
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool escape(struct reader *r) {
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, r->at++)
        if (r->at == r->end || !*r->at || !strchr("0123456789abcdefABCDEF", *r->at))
            return false;
    return true;
}

static bool string(struct reader *r, struct value *found) {
    *found = (struct value){'s', r->at + 1, 0};
    if (!eat(r, '"'))
        return false;
    for (; r->at < r->end && *r->at != '"';) {
        char c = *r->at++;
        if (c == '\0' || (c == '\\' && !escape(r)))
            return false;
        r->loose |= (unsigned char)c < ' ';
    }
    found->len = (size_t)(r->at - found->text);
    r->tokens++;
    return eat(r, '"');
}

static size_t digits(struct reader *r) {
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - from);
}

static bool fraction(struct reader *r) {
    if (eat(r, '.') && !digits(r))
        return false;
    if (!eat(r, 'e') && !eat(r, 'E'))
        return true;
    if (!eat(r, '+'))
        eat(r, '-');
    return digits(r) > 0;
}

static bool scalar(struct reader *r, struct value *found) {
    static const char *const words[] = {"true", "false", "null"};
    *found = (struct value){'w', r->at, 0};
    r->tokens++;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(r->end - r->at) >= n && memcmp(r->at, words[i], n) == 0) {
            r->at += n;
            found->len = n;
            return true;
        }
    }
    found->type = 'n';
    eat(r, '-');
    if (!eat(r, '0') && !digits(r))
        return false;
    if (!fraction(r))
        return false;
    found->len = (size_t)(r->at - found->text);
    return true;
}

/* Without escapes, as the library's user means it. Returns the length, SIZE_MAX for half a surrogate pair. */
static size_t plain_text(const struct value *text, char *out);

static bool is_name(const struct value *name, const char *wanted) {
    char plain[TEXT_MAX];
    size_t n = name->len <= TEXT_MAX ? plain_text(name, plain) : SIZE_MAX;
    return n == strlen(wanted) && memcmp(plain, wanted, n) == 0;
}

static bool member(struct reader *r) {
    struct value name, content;
    blank(r);
    if (!string(r, &name))
        return false;
    blank(r);
    if (!eat(r, ':') || !value(r, &content))
        return false;
    if (r->depth == 1 && is_name(&name, r->seq_name))
        r->seq = content;
    if (r->depth == 1 && *r->session_name && is_name(&name, r->session_name))
        r->session = content;
    return true;
}

/* An object or an array, without its type. */
static bool container(struct reader *r, bool object, char close) {
    struct value content;
    r->tokens++;
    r->at++;
    r->nested |= r->depth > 0;
    if (++r->depth > r->deepest)
        r->deepest = r->depth;
    bool ok = r->depth < 4 * DEPTH;
    blank(r);
    bool empty = ok && eat(r, close);
    while (ok && !empty) {
        ok = object ? member(r) : value(r, &content);
        blank(r);
        if (!ok || eat(r, close))
            break;
        ok = eat(r, ',');
    }
    r->depth--;
    return ok;
}

static bool value(struct reader *r, struct value *found) {
    blank(r);
    if (r->at == r->end)
        return false;
    if (*r->at == '"')
        return string(r, found);
    if (*r->at != '{' && *r->at != '[')
        return scalar(r, found);
    *found = (struct value){*r->at == '{' ? 'o' : 'a', r->at, 0};
    return container(r, *r->at == '{', *r->at == '{' ? '}' : ']');
}

static bool object(struct reader *r) {
    blank(r);
    struct value all;
    if (r->at == r->end || *r->at != '{' || !value(r, &all))
        return false;
    blank(r);
    return r->at == r->end;
}

static uint32_t hex(const char *text) {
    char four[5] = {0};
    memcpy(four, text, 4);
    return (uint32_t)strtoul(four, NULL, 16);
}

static size_t utf8(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

static size_t plain_text(const struct value *text, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        const char *c = text->text + i;
        if (*c != '\\') {
            out[n++] = *c;
            continue;
        }
        i++;
        if (c[1] != 'u') {
            out[n++] = "\"\\/\b\f\n\r\t"[strchr("\"\\/bfnrt", c[1]) - "\"\\/bfnrt"];
            continue;
        }
        uint32_t code = hex(c + 2), low = 0;
        i += 4;
        if (code >= 0xd800 && code < 0xe000) {
            bool pair = code < 0xdc00 && i + 6 < text->len && c[6] == '\\' && c[7] == 'u';
            low = pair ? hex(c + 8) : 0;
            if (low < 0xdc00 || low >= 0xe000)
                return SIZE_MAX;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
        }
        n += utf8(code, out + n);
    }
    return n;
}

/* ---- what was found, held against what should have been */

static void check_seq(const struct reader *r, const struct us_json_found *found) {
    unsigned __int128 sum = 0;
    bool whole = r->seq.len > 0 && r->seq.len <= 20;
    for (size_t i = 0; i < r->seq.len && whole; i++) {
        whole = r->seq.text[i] >= '0' && r->seq.text[i] <= '9';
        sum = sum * 10 + (unsigned)(r->seq.text[i] - '0');
    }
    enum us_json_fault wanted = US_JSON_OK;
    if (r->seq.type == 0)
        wanted = US_JSON_MISSING;
    else if (r->seq.type != 'n')
        wanted = US_JSON_TYPE;
    else if (!whole || sum >= UINT64_MAX)
        wanted = US_JSON_NUMBER;
    FUZZ_CHECK(found->seq_fault == wanted, "sequence: fault %d, not %d", (int)found->seq_fault, (int)wanted);
    FUZZ_CHECK(found->has_seq == (wanted == US_JSON_OK), "has_seq");
    FUZZ_CHECK(!found->has_seq || found->seq == (uint64_t)sum, "sequence %" PRIu64, found->seq);
}

static void check_session(const struct reader *r, const struct us_json_found *found) {
    char plain[TEXT_MAX];
    size_t len = r->session.type == 's' ? plain_text(&r->session, plain) : 0;
    enum us_json_fault wanted = US_JSON_OK;
    if (r->session.type == 0)
        wanted = US_JSON_MISSING;
    else if (r->session.type != 's' && r->session.type != 'n')
        wanted = US_JSON_TYPE;
    else if (r->session.type == 's' && (len == SIZE_MAX || len == 0))
        wanted = US_JSON_ESCAPE;
    FUZZ_CHECK(found->session_fault == wanted, "session: fault %d, not %d", (int)found->session_fault, (int)wanted);
    FUZZ_CHECK(found->has_session == (wanted == US_JSON_OK), "has_session");
    if (!found->has_session)
        return;
    const char *text = r->session.type == 's' ? plain : r->session.text;
    len = r->session.type == 's' ? len : r->session.len;
    FUZZ_CHECK(found->session_len == len && memcmp(found->session, text, len) == 0, "session \"%.*s\"",
               (int)found->session_len, found->session);
}

static void judge(struct reader *r, enum us_json_fault fault, const struct us_json_found *found, uint32_t tokens) {
    bool valid = object(r);
    if (valid && (r->deepest > DEPTH || r->tokens > tokens)) {
        FUZZ_CHECK(fault == US_JSON_TOO_LARGE, "%zu tokens, %zu deep: fault %d", r->tokens, r->deepest, (int)fault);
    } else if (valid && (fault == US_JSON_OK || !r->loose)) {
        FUZZ_CHECK(fault == US_JSON_OK, "a valid payload has fault %d", (int)fault);
        check_seq(r, found);
        check_session(r, found);
    } else {
        FUZZ_CHECK(fault != US_JSON_OK || r->nested, "a flat payload that is not valid was read");
    }
    if (fault != US_JSON_OK)
        FUZZ_CHECK(!found->has_seq && !found->has_session, "fault %d, and something was found", (int)fault);
}

FUZZ(json) {
    static const char *const names[][2] = {{"globalSeq", "sessionId"}, {"s", ""}, {"a\"\\b\n", "i"}, {"\xc3\xa4", "s"}};
    static const uint32_t limits[] = {16, 17, 70, 65536};
    struct failmem mem;
    struct us_json_found found;
    if (size < 2 || size > TEXT_MAX)
        return 0;
    const char *const *name = names[data[0] % 4];
    uint32_t tokens = limits[data[0] / 4 % 4];
    char *text = malloc(size - 2 ? size - 2 : 1);
    if (!text)
        return 0;
    memcpy(text, data + 2, size - 2);
    failmem_init(&mem);
    struct us_json *json = us_json_new(&mem.mem, name[0], name[1], tokens);
    FUZZ_CHECK(json, "no reader");
    if (data[1]) {
        failmem_arm(&mem, data[1], false);
        enum us_json_fault fault = us_json_read(json, text, size - 2, &found);
        FUZZ_CHECK(!mem.failed || fault == US_JSON_NOMEM || found.session_fault == US_JSON_NOMEM, "fault %d",
                   (int)fault);
        failmem_arm(&mem, 0, false);
    }
    enum us_json_fault fault = us_json_read(json, text, size - 2, &found);
    struct reader reader = {
        .at = text, .end = text + size - 2, .seq_name = name[0], .session_name = name[1]};
    judge(&reader, fault, &found, tokens);
    us_json_destroy(json);
    FUZZ_CHECK(failmem_is_balanced(&mem), "memory is left");
    free(text);
    return 0;
}

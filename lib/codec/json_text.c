/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json_text.h>
#include <string.h>

#define INVALID UINT32_MAX

/* Reads four hexadecimal digits. */
static uint32_t hex4(const char *text, size_t size) {
    uint32_t value = 0;
    if (size < 4)
        return INVALID;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            value = value << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            return INVALID;
    }
    return value;
}

/* Reads the code point behind "\u" and says how many bytes it took. */
static uint32_t code_point(const char *text, size_t size, size_t *taken) {
    uint32_t high = hex4(text, size);
    *taken = 4;
    if (high == INVALID || high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || size < 10 || text[4] != '\\' || text[5] != 'u')
        return INVALID;
    uint32_t low = hex4(text + 6, 4);
    *taken = 10;
    if (low < 0xdc00 || low > 0xdfff)
        return INVALID;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* Writes a code point as UTF-8. Returns its length. */
static size_t encode(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf0 << (4 - len) & 0xff) | code);
    return len;
}

/* Takes one escape, `text` standing behind its backslash. Returns the bytes written, 0 if it is invalid. */
static size_t escape(const char *text, size_t size, char *out, size_t *taken) {
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (size == 0)
        return 0;
    if (text[0] == 'u') {
        uint32_t code = code_point(text + 1, size - 1, taken);
        *taken += 1;
        return code == INVALID ? 0 : encode(code, out);
    }
    const char *name = memchr(names, text[0], sizeof names - 1);
    if (!name)
        return 0;
    *taken = 1;
    out[0] = means[name - names];
    return 1;
}

size_t us_json_unescape(const char *text, size_t size, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < size;) {
        if (text[i] != '\\') {
            out[len++] = text[i++];
            continue;
        }
        size_t taken = 0;
        size_t written = escape(text + i + 1, size - i - 1, out + len, &taken);
        if (written == 0)
            return SIZE_MAX;
        len += written;
        i += 1 + taken;
    }
    return len;
}

static size_t digits(const char *text, size_t size, size_t from) {
    size_t at = from;
    while (at < size && text[at] >= '0' && text[at] <= '9')
        at++;
    return at - from;
}

bool us_json_is_number(const char *text, size_t size) {
    size_t at = size > 0 && text[0] == '-';
    size_t whole = digits(text, size, at);
    if (whole == 0 || (whole > 1 && text[at] == '0'))
        return false;
    at += whole;
    if (at < size && text[at] == '.') {
        size_t fraction = digits(text, size, at + 1);
        if (fraction == 0)
            return false;
        at += 1 + fraction;
    }
    if (at < size && (text[at] | 32) == 'e') {
        at++;
        if (at < size && (text[at] == '+' || text[at] == '-'))
            at++;
        size_t exponent = digits(text, size, at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == size;
}

static bool is(const char *text, size_t size, const char *word) {
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

bool us_json_is_scalar(const char *text, size_t size) {
    return us_json_is_number(text, size) || is(text, size, "true") || is(text, size, "false") || is(text, size, "null");
}

bool us_json_is_blank(const char *text, size_t size, char once) {
    bool owed = once != 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r')
            continue;
        if (!owed || text[i] != once)
            return false;
        owed = false;
    }
    return !owed;
}

bool us_json_is_deep(const char *text, size_t size, size_t depth) {
    size_t level = 0;
    bool in_string = false;
    if (size / 2 < depth) /* every level needs two brackets, or the text is cut off and jsmn says so soon */
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '"')
            in_string = !in_string;
        else if (c == '\\' && in_string)
            i++;
        else if (in_string)
            continue;
        else if ((c == '[' || c == '{') && ++level > depth)
            return true;
        else if ((c == ']' || c == '}') && level > 0)
            level--;
    }
    return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/salt.h>
#include <stdio.h>
#include <string.h>

#define NUMBER "<k>"
#define SALT_MAX 65535
#define SALT_DIGITS 5

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool us_salt_pattern_parse(const char *text, struct us_salt_pattern *pattern) {
    const char *number = strstr(text, NUMBER);
    if (!number || number[strlen(NUMBER)] != '\0')
        return false;
    size_t len = (size_t)(number - text);
    if (len == 0 || len >= sizeof pattern->prefix || is_digit(text[len - 1]))
        return false;
    *pattern = (struct us_salt_pattern){.prefix_len = (uint32_t)len};
    memcpy(pattern->prefix, text, len);
    return true;
}

/* A prefix is a character or few, for which a call of memcmp() is the dearest part. */
static bool ends_with_prefix(const struct us_salt_pattern *pattern, const char *end) {
    for (uint32_t i = pattern->prefix_len; i > 0; i--)
        if (*--end != pattern->prefix[i - 1])
            return false;
    return true;
}

/* Finds prefix and number at the key's end. Returns the number, -1 if the key doesn't fit the pattern. */
static int32_t fit(const struct us_salt_pattern *pattern, const char *key, size_t key_len, size_t *session_len) {
    size_t digits = 0;
    uint32_t salt = 0;
    for (uint32_t place = 1; digits < key_len && digits <= SALT_DIGITS; digits++, place *= 10) {
        char c = key[key_len - digits - 1];
        if (!is_digit(c))
            break;
        salt += (uint32_t)(c - '0') * place;
    }
    if (digits == 0 || digits > SALT_DIGITS || key_len <= digits + pattern->prefix_len)
        return -1;
    const char *number = key + key_len - digits;
    if ((number[0] == '0' && digits > 1) || salt > SALT_MAX || !ends_with_prefix(pattern, number))
        return -1;
    *session_len = key_len - digits - pattern->prefix_len;
    return (int32_t)salt;
}

static bool proven(const struct us_salt_evidence *evidence, uint64_t salt) {
    if (evidence->trust)
        return true;
    if (evidence->lanes <= 1)
        return false;
    if (evidence->has_header)
        return salt == evidence->lane;
    return evidence->seq != UINT64_MAX && salt == evidence->seq % evidence->lanes;
}

struct us_salted_key us_salt_split(const struct us_salt_pattern *pattern, const void *key, size_t key_len,
                                   const struct us_salt_evidence *evidence) {
    size_t session_len;
    int32_t salt = fit(pattern, key, key_len, &session_len);
    if (salt < 0 || !proven(evidence, (uint64_t)salt))
        return (struct us_salted_key){key_len, -1};
    return (struct us_salted_key){session_len, salt};
}

size_t us_salt_join(const struct us_salt_pattern *pattern, const void *session, size_t session_len, uint16_t lane,
                    void *key, size_t size) {
    char number[SALT_DIGITS + 1];
    size_t digits = (size_t)snprintf(number, sizeof number, "%u", (unsigned)lane);
    size_t suffix = pattern->prefix_len + digits;
    if (size < suffix || size - suffix < session_len)
        return 0;
    char *at = key;
    if (session_len)
        memcpy(at, session, session_len);
    memcpy(at + session_len, pattern->prefix, pattern->prefix_len);
    memcpy(at + session_len + pattern->prefix_len, number, digits);
    return session_len + suffix;
}

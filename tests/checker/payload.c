/* SPDX-License-Identifier: BSD-2-Clause */
#include "checker.h"
#include <inttypes.h>
#include <string.h>

/* Moves past the next `"<word>":`. Returns NULL if there is none. */
static const char *after_word(const char *at, const char *end) {
    while (at < end && *at != '"')
        at++;
    at = at < end ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    return at && end - at > 2 && at[1] == ':' ? at + 2 : NULL;
}

static const char *number(const char *at, const char *end, uint64_t *value) {
    const char *begin = at;
    *value = 0;
    while (at && at < end && *at >= '0' && *at <= '9')
        *value = *value * 10 + (uint64_t)(*at++ - '0');
    return at == begin ? NULL : at;
}

int checker_parse(const void *payload, size_t len, struct checker_record *record) {
    const char *at = payload, *end, *quote;
    if (!payload)
        return -1;
    end = at + len;
    at = after_word(at, end);
    if (!at || *at != '"')
        return -1;
    quote = memchr(at + 1, '"', (size_t)(end - at - 1));
    if (!quote)
        return -1;
    record->session = at + 1;
    record->session_len = (size_t)(quote - at - 1);
    at = after_word(quote + 1, end);
    if (!at || !(at = number(at, end, &record->seq)))
        return -1;
    at = after_word(at, end);
    record->at = 0;
    return at && number(at, end, &record->epoch) ? 0 : -1;
}

size_t checker_payload(char *buf, size_t len, const char *const words[3], const struct checker_record *record) {
    int used = snprintf(buf, len, "{\"%s\":\"%.*s\",\"%s\":%" PRIu64 ",\"%s\":%" PRIu64 ",\"fill\":\"", words[0],
                        (int)record->session_len, record->session, words[1], record->seq, words[2], record->epoch);
    if (used < 0 || (size_t)used + 2 > len)
        return 0;
    memset(buf + used, 'x', len - (size_t)used - 2);
    memcpy(buf + len - 2, "\"}", 2);
    return len;
}

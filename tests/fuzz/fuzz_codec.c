/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header `unsalt`, plain numbers, salt patterns and salted keys, each against a reader written as plainly as the
 * format is described. The first byte picks one of them.
 */
#include <codec/header.h>
#include <codec/plain.h>
#include <codec/salt.h>
#include <fuzz/fuzz.h>

/* Big-endian, as wire.h counts the bytes. */
static uint64_t number(const uint8_t *data, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value += (uint64_t)data[at + i] << 8 * (size - 1 - i);
    return value;
}

/* The first fault in the order of the table, from the words of wire.h. */
static unsalt_header_fault_t header_fault(const uint8_t *data, size_t size) {
    if (size < 40)
        return UNSALT_HEADER_SHORT;
    if (data[0] != 1)
        return UNSALT_HEADER_UNKNOWN_VERSION;
    uint64_t lane = number(data, 2, 2), lanes = number(data, 4, 2), seq = number(data, 16, 8);
    bool marker = data[1] & UNSALT_F_MARKER, heartbeat = data[1] & UNSALT_F_HEARTBEAT;
    if (lanes == 0 || lane >= lanes)
        return UNSALT_HEADER_LANES;
    if (heartbeat)
        return UNSALT_HEADER_OK;
    if (seq == 0 || seq == UNSALT_NO_SEQ)
        return UNSALT_HEADER_SEQ;
    if (!marker && lane != seq % lanes)
        return UNSALT_HEADER_LANE_RULE;
    if (number(data, 24, 8) > seq || (!marker && number(data, 32, 8) > seq))
        return UNSALT_HEADER_RANGE;
    return UNSALT_HEADER_OK;
}

static bool same(const unsalt_header_t *a, const unsalt_header_t *b) {
    return a->flags == b->flags && a->lane == b->lane && a->lanes == b->lanes && a->epoch == b->epoch &&
           a->seq == b->seq && a->since == b->since && a->una == b->una;
}

static void header(const uint8_t *data, size_t size) {
    unsalt_header_t found = {.flags = 0xa5, .lane = 7, .seq = 9}, before = found, again;
    uint8_t bytes[UNSALT_HEADER_SIZE];
    unsalt_header_fault_t fault = unsalt_header_read(data, size, &found), wanted = header_fault(data, size);
    FUZZ_CHECK(fault == wanted, "fault %d, not %d", (int)fault, (int)wanted);
    if (fault != UNSALT_HEADER_OK) {
        FUZZ_CHECK(same(&found, &before), "a faulty header was filled in");
        return;
    }
    bool heartbeat = data[1] & UNSALT_F_HEARTBEAT;
    FUZZ_CHECK(found.flags == data[1] && found.lane == number(data, 2, 2) && found.lanes == number(data, 4, 2) &&
                   found.epoch == number(data, 8, 8) && found.seq == (heartbeat ? 0 : number(data, 16, 8)) &&
                   found.since == (heartbeat ? 0 : number(data, 24, 8)) &&
                   found.una == (heartbeat ? 0 : number(data, 32, 8)),
               "fields");
    FUZZ_CHECK(unsalt_header_write(&found, bytes) == UNSALT_HEADER_OK, "what was read can't be written");
    FUZZ_CHECK(unsalt_header_read(bytes, sizeof bytes, &again) == UNSALT_HEADER_OK && same(&found, &again),
               "round trip");
    for (size_t i = 0; i < sizeof bytes && !heartbeat; i++)
        FUZZ_CHECK(i == 6 || i == 7 || bytes[i] == data[i], "byte %zu is written as another one", i);
}

/* Decimal digits, 1 to 20 of them, below 2^64 - 1. */
static bool decimal(const uint8_t *data, size_t size, uint64_t *value) {
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] < '0' || data[i] > '9' || i == 20)
            return false;
        sum = sum * 10 + (data[i] - '0');
    }
    *value = (uint64_t)sum;
    return size > 0 && sum < UINT64_MAX;
}

static void plain(const uint8_t *data, size_t size) {
    uint64_t is = 1, wanted = 2;
    bool digits = decimal(data, size, &wanted), read = us_decimal_read((const char *)data, size, &is);
    FUZZ_CHECK(read == digits && (!read || is == wanted), "decimal %" PRIu64 ", not %" PRIu64, is, wanted);
    bool is_plain = digits;
    if (!digits && size == 8) {
        wanted = number(data, 0, 8);
        is_plain = wanted != UINT64_MAX;
    }
    read = us_plain_read(data, size, &is);
    FUZZ_CHECK(read == is_plain && (!read || is == wanted), "plain %" PRIu64 ", not %" PRIu64, is, wanted);
}

/* Is this a text followed by <k>? Returns the length of the text, 0 if it isn't. */
static size_t pattern_len(const char *text) {
    size_t n = strlen(text);
    for (size_t i = 0; i + 3 < n; i++)
        if (memcmp(text + i, "<k>", 3) == 0)
            return 0;
    bool ends = n > 3 && n - 3 <= 31 && memcmp(text + n - 3, "<k>", 3) == 0;
    return ends && (text[n - 4] < '0' || text[n - 4] > '9') ? n - 3 : 0;
}

/* Where the salt of the key begins, by writing down each number that may stand there. -1: there is none. */
static int32_t salt_of(const struct us_salt_pattern *pattern, const uint8_t *key, size_t len, size_t *session_len) {
    for (size_t digits = 1; digits <= 5 && digits < len; digits++) {
        char text[8], suffix[48];
        memcpy(text, key + len - digits, digits);
        text[digits] = '\0';
        long salt = strspn(text, "0123456789") == digits ? atol(text) : 65536;
        int n = snprintf(suffix, sizeof suffix, "%.*s%ld", (int)pattern->prefix_len, pattern->prefix, salt);
        if (salt > 65535 || (size_t)n != pattern->prefix_len + digits || (size_t)n >= len ||
            memcmp(key + len - (size_t)n, suffix, (size_t)n) != 0)
            continue;
        *session_len = len - (size_t)n;
        return (int32_t)salt;
    }
    return -1;
}

static bool is_evidence(const struct us_salt_evidence *e, int32_t salt) {
    if (salt < 0 || e->trust)
        return salt >= 0;
    if (e->has_header)
        return e->lanes > 1 && salt == e->lane;
    return e->lanes > 1 && e->seq != UINT64_MAX && (uint64_t)salt == e->seq % e->lanes;
}

static void round_trip(const struct us_salt_pattern *pattern, const uint8_t *session, size_t len, uint16_t lane) {
    struct us_salt_evidence evidence = {.has_header = true, .lane = lane, .lanes = UINT16_MAX, .seq = 0};
    uint8_t key[512];
    size_t n = us_salt_join(pattern, session, len, lane, key, sizeof key), less;
    FUZZ_CHECK(n ? n > len : len > sizeof key - 40, "joined to %zu bytes of %zu", n, len);
    if (n == 0 || len == 0)
        return;
    struct us_salted_key split = us_salt_split(pattern, key, n, &evidence);
    FUZZ_CHECK(split.session_len == len && split.salt == lane, "lane %d of %zu, not %u of %zu", (int)split.salt,
               split.session_len, lane, len);
    less = us_salt_join(pattern, session, len, lane, key, n - 1);
    FUZZ_CHECK(less == 0, "%zu bytes joined in room for %zu", less, n - 1);
}

/* Evidence (8 bytes), then the pattern up to a zero, then the key. */
static void salt(const uint8_t *data, size_t size) {
    static const char *const known[] = {"#<k>", "#salt_<k>", "_SALT_<k>", "-<k>"};
    const uint8_t *end = size > 8 ? memchr(data + 8, 0, size - 8) : NULL;
    if (!end)
        return;
    const char *text = end == data + 8 ? known[data[7] % 4] : (const char *)data + 8;
    struct us_salt_pattern pattern = {.prefix = "untouched"};
    bool parsed = us_salt_pattern_parse(text, &pattern);
    size_t prefix = pattern_len(text), key_len = size - (size_t)(end + 1 - data), session_len = key_len;
    FUZZ_CHECK(parsed == (prefix > 0), "pattern \"%s\"", text);
    FUZZ_CHECK(parsed ? pattern.prefix_len == prefix && memcmp(pattern.prefix, text, prefix) == 0
                      : strcmp(pattern.prefix, "untouched") == 0,
               "pattern \"%s\"", text);
    if (!parsed)
        return;
    struct us_salt_evidence evidence = {.trust = data[0] & 1,
                                        .has_header = data[0] & 2,
                                        .lane = data[1],
                                        .lanes = (uint16_t)number(data, 2, 2),
                                        .seq = data[0] & 4 ? UINT64_MAX : number(data, 4, 3)};
    int32_t lane = salt_of(&pattern, end + 1, key_len, &session_len);
    if (!is_evidence(&evidence, lane)) {
        lane = -1;
        session_len = key_len;
    }
    struct us_salted_key is = us_salt_split(&pattern, end + 1, key_len, &evidence);
    FUZZ_CHECK(is.salt == lane && is.session_len == session_len, "salt %d of %zu, not %d of %zu", (int)is.salt,
               is.session_len, (int)lane, session_len);
    round_trip(&pattern, end + 1, key_len, (uint16_t)(data[1] % UINT16_MAX));
}

FUZZ(codec) {
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        header(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        plain(data + 1, size - 1);
    else
        salt(data + 1, size - 1);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/salt.h>
#include <support/check.h>

static struct us_salt_pattern pattern(const char *text) {
    struct us_salt_pattern parsed;
    CHECK_THAT(us_salt_pattern_parse(text, &parsed), "\"%s\" is a pattern", text);
    return parsed;
}

/* Expects `key` to be stripped to `session` with `salt`; salt -1: not stripped. */
static void check_split(const char *text, const char *key, struct us_salt_evidence evidence, const char *session,
                        int32_t salt) {
    struct us_salt_pattern parsed = pattern(text);
    struct us_salted_key split = us_salt_split(&parsed, key, strlen(key), &evidence);
    CHECK_THAT(split.salt == salt && split.session_len == strlen(session), "%s of %s: salt %d, session of %zu bytes",
               text, key, (int)split.salt, split.session_len);
}

static const struct us_salt_evidence nothing = {.seq = UINT64_MAX};
static const struct us_salt_evidence trusted = {.trust = true, .seq = UINT64_MAX};

static struct us_salt_evidence header(uint16_t lane, uint16_t lanes) {
    return (struct us_salt_evidence){.has_header = true, .lane = lane, .lanes = lanes, .seq = lane};
}

static struct us_salt_evidence plain(uint16_t lanes, uint64_t seq) {
    return (struct us_salt_evidence){.lanes = lanes, .seq = seq};
}

TEST(salt, patterns_are_parsed) {
    CHECK_U64(pattern("#<k>").prefix_len, 1);
    CHECK_U64(pattern("#salt_<k>").prefix_len, 6);
    CHECK_U64(pattern("#SALT_<k>").prefix_len, 6);
    CHECK_U64(pattern("_SALT_<k>").prefix_len, 6);
    CHECK_U64(pattern("abcdefghijklmnopqrstuvwxyzabcde<k>").prefix_len, 31);
}

TEST(salt, malformed_patterns_are_refused) {
    static const char *const wrong[] = {"", "#", "<k>", "#<k> ", "#<k>#", "#<K>", "#k", "<k>#", "<k>#<k>", "#<k><k>",
                                        "lane1<k>", "abcdefghijklmnopqrstuvwxyzabcdef<k>"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct us_salt_pattern parsed = {.prefix_len = 4711};
        CHECK_THAT(!us_salt_pattern_parse(wrong[i], &parsed), "\"%s\" is no pattern", wrong[i]);
        CHECK_U64(parsed.prefix_len, 4711);
    }
}

TEST(salt, without_evidence_nothing_is_stripped) {
    check_split("#<k>", "room#3", nothing, "room#3", -1);
    check_split("#<k>", "room#3", plain(0, 3), "room#3", -1);          /* S unknown */
    check_split("#<k>", "room#3", plain(4, UINT64_MAX), "room#3", -1); /* no sequence */
}

TEST(salt, a_header_is_evidence_for_its_lane) {
    check_split("#<k>", "room#3", header(3, 4), "room", 3);
    check_split("#<k>", "room#0", header(0, 4), "room", 0);
    check_split("#<k>", "room#2", header(3, 4), "room#2", -1);
    check_split("#<k>", "room#0", header(0, 1), "room#0", -1); /* not salted at all */
    check_split("#<k>", "room", header(3, 4), "room", -1);     /* raw key, salted partition */
}

TEST(salt, a_plain_sequence_is_evidence_when_s_is_known) {
    check_split("#<k>", "room#3", plain(4, 7), "room", 3);
    check_split("#<k>", "room#3", plain(4, 8), "room#3", -1);
    check_split("#<k>", "room#0", plain(1, 8), "room#0", -1); /* S = 1 proves nothing */
    check_split("#<k>", "room#7", plain(4, 7), "room#7", -1); /* beyond S */
    check_split("#<k>", "room#65534", plain(65535, UINT64_MAX - 1), "room", 65534);
    check_split("#<k>", "room#65534", plain(65535, UINT64_MAX - 2), "room#65534", -1);
    check_split("#<k>", "room#65534", plain(65535, 65534), "room", 65534);
}

TEST(salt, trust_strips_whatever_fits) {
    check_split("#<k>", "room#3", trusted, "room", 3);
    check_split("#<k>", "room#65535", trusted, "room", 65535);
    struct us_salt_evidence evidence = header(0, 1);
    evidence.trust = true;
    check_split("#<k>", "room#3", evidence, "room", 3);
}

TEST(salt, what_does_not_fit_is_left_alone) {
    static const char *const keys[] = {
        "room", "room#", "room#03", "room#00", "room#65536", "room#100000", "room#x3", "room3", "room#3x", "room#-1",
        "room#3 ", "#3", "3", "", "#", "room##0 ", "room_3", "room#99999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        check_split("#<k>", keys[i], trusted, keys[i], -1);
}

TEST(salt, the_last_salt_counts) {
    check_split("#<k>", "room#1#2", trusted, "room#1", 2);
    check_split("#<k>", "room##2", trusted, "room#", 2);
    check_split("#<k>", "##2", trusted, "#", 2);
    check_split("_SALT_<k>", "a_SALT_1_SALT_12", trusted, "a_SALT_1", 12);
    check_split("#salt_<k>", "room#SALT_1", trusted, "room#SALT_1", -1);
    check_split("#salt_<k>", "#salt_1", trusted, "#salt_1", -1);
    check_split("#salt_<k>", "x#salt_1", trusted, "x", 1);
}

TEST(salt, keys_are_bytes) {
    struct us_salt_pattern parsed = pattern("#<k>");
    struct us_salted_key split = us_salt_split(&parsed, "a\0b#12", 6, &trusted);
    CHECK_U64(split.session_len, 3);
    CHECK_I64(split.salt, 12);
    split = us_salt_split(&parsed, NULL, 0, &trusted);
    CHECK_U64(split.session_len, 0);
    CHECK_I64(split.salt, -1);
}

TEST(salt, join_and_split_are_inverse) {
    struct us_salt_pattern parsed = pattern("#salt_<k>");
    static const uint16_t lanes[] = {0, 1, 9, 10, 99, 9999, 10000, 65534, 65535};
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        char key[32];
        size_t len = us_salt_join(&parsed, "ro\0m", 4, lanes[i], key, sizeof key);
        CHECK(len > 0);
        struct us_salted_key split = us_salt_split(&parsed, key, len, &trusted);
        CHECK_I64(split.salt, lanes[i]);
        CHECK_BYTES(key, split.session_len, "ro\0m", 4);
    }
}

TEST(salt, join_writes_what_it_says_and_no_more) {
    struct us_salt_pattern parsed = pattern("#<k>");
    char key[16];
    memset(key, '?', sizeof key);
    CHECK_U64(us_salt_join(&parsed, "room", 4, 12, key, 7), 7);
    CHECK_BYTES(key, 8, "room#12?", 8);
    for (size_t size = 0; size < 7; size++)
        CHECK_U64(us_salt_join(&parsed, "room", 4, 12, key, size), 0);
    CHECK_U64(us_salt_join(&parsed, "room", SIZE_MAX, 12, key, sizeof key), 0);
}

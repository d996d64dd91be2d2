/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <support/check.h>

/* XXH3_64bits of the empty string, seed 0, as xxhash's own documentation of test vectors gives it. */
TEST(hash, is_xxh3) {
    CHECK_U64(us_hash("", 0, 0), UINT64_C(0x2d06800538d394c2));
}

TEST(hash, depends_on_every_byte_the_length_and_the_seed) {
    char text[300];
    memset(text, 'x', sizeof text);
    uint64_t whole = us_hash(text, sizeof text, 1);
    CHECK_U64(us_hash(text, sizeof text, 1), whole);
    CHECK(us_hash(text, sizeof text, 2) != whole);
    CHECK(us_hash(text, sizeof text - 1, 1) != whole);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 'y';
        CHECK_THAT(us_hash(text, sizeof text, 1) != whole, "byte %zu doesn't count", i);
        text[i] = 'x';
    }
}

TEST(hash, takes_unaligned_bytes) {
    static const char text[] = "?session-4711";
    char copy[32];
    memcpy(copy, text + 1, sizeof text - 1);
    CHECK_U64(us_hash(text + 1, sizeof text - 1, 7), us_hash(copy, sizeof text - 1, 7));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/key_trailer.h>
#include <stdlib.h>
#include <support/check.h>

/* Reads from memory of the key's exact size, so that a read beyond it is found. */
static enum us_trailer read_key(unsigned digits, const void *key, size_t size, uint64_t *seq, size_t *session_len) {
    char *copy = size ? malloc(size) : NULL;
    CHECK(copy || !size);
    if (size)
        memcpy(copy, key, size);
    enum us_trailer result = us_key_trailer_read(digits, copy, size, seq, session_len);
    free(copy);
    return result;
}

static void check_found(unsigned digits, const char *key, size_t size, uint64_t seq, size_t session_len) {
    uint64_t is = 0;
    size_t len = SIZE_MAX;
    CHECK(read_key(digits, key, size, &is, &len) == US_TRAILER_FOUND);
    CHECK_U64(is, seq);
    CHECK_U64(len, session_len);
}

static void check_not(enum us_trailer wanted, unsigned digits, const char *key, size_t size) {
    uint64_t seq = 4711;
    size_t len = 4711;
    CHECK_THAT(read_key(digits, key, size, &seq, &len) == wanted, "\"%.*s\"", (int)size, size ? key : "");
    CHECK(seq == 4711 && len == 4711);
}

TEST(key_trailer, binary) {
    check_found(0, "room\0\0\0\0\0\0\1\2", 12, 258, 4);
    check_found(0, "room\xff\xff\xff\xff\xff\xff\xff\xfe", 12, UINT64_MAX - 1, 4);
    check_found(0, "\0\0\0\0\0\0\0\0", 8, 0, 0);
    check_not(US_TRAILER_RESERVED, 0, "room\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    check_not(US_TRAILER_NONE, 0, "\0\0\0\0\0\0\1", 7);
    check_not(US_TRAILER_NONE, 0, NULL, 0);
}

TEST(key_trailer, decimal) {
    check_found(20, "room00000000000000000017", 24, 17, 4);
    check_found(20, "room18446744073709551614", 24, UINT64_MAX - 1, 4);
    check_found(3, "room1017", 8, 17, 5); /* digits of the id before it */
    check_found(1, "7", 1, 7, 0);
    check_not(US_TRAILER_RESERVED, 20, "room18446744073709551615", 24);
    check_not(US_TRAILER_RESERVED, 20, "room18446744073709551616", 24);
    check_not(US_TRAILER_RESERVED, 20, "room99999999999999999999", 24);
    check_not(US_TRAILER_NONE, 20, "0000000000000000017", 19);
    check_not(US_TRAILER_NONE, 3, "room 17", 7);
    check_not(US_TRAILER_NONE, 3, "room-17", 7);
    check_not(US_TRAILER_NONE, 3, "room+17", 7);
    check_not(US_TRAILER_NONE, 3, "room1 7", 7);
    check_not(US_TRAILER_NONE, 3, "room\xb2\xb2\xb2", 7);
    check_not(US_TRAILER_NONE, 1, NULL, 0);
}

static void check_written(uint64_t seq, unsigned digits, const char *wanted, size_t size) {
    char bytes[UNSALT_KEY_TRAILER_MAX + 1];
    memset(bytes, 'x', sizeof bytes);
    CHECK_U64(unsalt_key_trailer_write(seq, digits, bytes, size), size);
    CHECK_BYTES(bytes, size, wanted, size);
    CHECK(bytes[size] == 'x');
    memset(bytes, 'x', sizeof bytes);
    CHECK_U64(unsalt_key_trailer_write(seq, digits, bytes, size - 1), 0);
    CHECK(bytes[0] == 'x');
}

TEST(key_trailer, is_written) {
    check_written(258, 0, "\0\0\0\0\0\0\1\2", 8);
    check_written(UINT64_MAX - 1, 0, "\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
    check_written(17, 20, "00000000000000000017", 20);
    check_written(UINT64_MAX - 1, 20, "18446744073709551614", 20);
    check_written(0, 1, "0", 1);
    check_written(999, 3, "999", 3);
}

TEST(key_trailer, is_not_written_if_it_could_not_be_read) {
    char bytes[32];
    memset(bytes, 'x', sizeof bytes);
    CHECK_U64(unsalt_key_trailer_write(UINT64_MAX, 0, bytes, sizeof bytes), 0);
    CHECK_U64(unsalt_key_trailer_write(UINT64_MAX, 20, bytes, sizeof bytes), 0);
    CHECK_U64(unsalt_key_trailer_write(1000, 3, bytes, sizeof bytes), 0);
    CHECK_U64(unsalt_key_trailer_write(1, 21, bytes, sizeof bytes), 0);
    CHECK_U64(unsalt_key_trailer_write(1, 0, NULL, 0), 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK(bytes[i] == 'x');
}

TEST(key_trailer, what_is_written_is_read) {
    for (unsigned digits = 0; digits <= 20; digits++) {
        for (uint64_t seq = 1; seq != UINT64_MAX; seq = seq > UINT64_MAX / 7 ? UINT64_MAX : seq * 7 + 3) {
            char key[32] = "id";
            size_t len = unsalt_key_trailer_write(seq, digits, key + 2, sizeof key - 2);
            if (len)
                check_found(digits, key, 2 + len, seq, 2);
        }
    }
}

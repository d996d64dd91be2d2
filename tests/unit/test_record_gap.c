/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/record_gap.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

/* One header `unsalt` with the value "value"; then a record of 300 bytes whose key has 5. */
#define HEADER "\x02\x0cunsalt\x0avalue"
#define NEXT "\xd8\x04\x00\x0e\x04\x0a"
static const char whole[] = HEADER NEXT;

/* In a block of its own, so that a sanitizer sees each look outside. */
static bool look(const char *bytes, size_t size, size_t next_key_len, const char *name, char *value) {
    void *copy = malloc(size ? size : 1);
    const void *found = NULL;
    size_t len = 0;
    memcpy(copy, bytes, size);
    bool ok = us_record_gap_header(copy, size, next_key_len, name, strlen(name), &found, &len);
    CHECK(ok == (found != NULL));
    if (ok) {
        CHECK((const char *)found >= (char *)copy && (const char *)found + len <= (char *)copy + size && len < 64);
        memcpy(value, found, len);
        value[len] = '\0';
    }
    free(copy);
    return ok;
}

TEST(record_gap, the_only_header_is_found) {
    char value[64];
    CHECK(look(whole, sizeof whole - 1, 5, "unsalt", value));
    CHECK(strcmp(value, "value") == 0);
    CHECK(look("\x02\x06seq\x02" "7" NEXT, 7 + sizeof NEXT - 1, 5, "seq", value));
    CHECK(strcmp(value, "7") == 0);
    CHECK(look("\x02\x06seq\x00" NEXT, 6 + sizeof NEXT - 1, 5, "seq", value)); /* empty, but there */
    CHECK(strcmp(value, "") == 0);
}

TEST(record_gap, what_does_not_fit_is_none) {
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
#define ROW(text) {text, sizeof text - 1}
        ROW(""),
        ROW("\x00" NEXT),                                    /* no header */
        ROW("\x04\x0cunsalt\x0avalue\x02" "a\x02" "b" NEXT), /* two */
        ROW("\x01\x0cunsalt\x0avalue" NEXT),                 /* -1 */
        ROW("\x02\x0cunsalT\x0avalue" NEXT),
        ROW("\x02\x0aunsal\x0avalue" NEXT),
        ROW("\x02\x0cunsalt\x01" NEXT),         /* a value that is null */
        ROW("\x02\x0cunsalt\xff\xff\x03" NEXT), /* longer than what is there */
        ROW("\x82\x00\x0cunsalt\x0avalue" NEXT), /* a number in more bytes than it needs */
        ROW(HEADER),
        ROW(HEADER "\xd8\x04\x01\x0e\x04\x0a"),  /* attributes */
        ROW(HEADER "\xd8\x04\x00\x0e\x03\x0a"),  /* an offset below the batch's */
        ROW(HEADER "\xd8\x04\x00\x0e\x04\x08"),  /* another key length */
        ROW(HEADER "\x14\x00\x0e\x04\x0a"),      /* too short for its key */
        ROW(HEADER NEXT "\x00"),
        ROW("\x02\x0cunsalt\x0avalu" NEXT),
    };
    char value[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_THAT(!look(rows[i].bytes, rows[i].size, 5, "unsalt", value), "row %zu", i);
    CHECK(!look(whole, sizeof whole - 1, 4, "unsalt", value));
    CHECK(!look(whole, sizeof whole - 1, 5, "seq", value));
}

TEST(record_gap, no_part_of_one_is_one) {
    char value[64];
    for (size_t from = 0; from < sizeof whole; from++)
        for (size_t to = from; to < sizeof whole; to++)
            CHECK((from == 0 && to == sizeof whole - 1) == look(whole + from, to - from, 5, "unsalt", value));
}

TEST(record_gap, no_changed_byte_leads_outside) {
    char value[64], bytes[sizeof whole];
    for (size_t at = 0; at < sizeof whole - 1; at++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(bytes, whole, sizeof whole);
            bytes[at] = (char)byte;
            look(bytes, sizeof whole - 1, 5, "unsalt", value);
        }
}

TEST(record_gap, a_long_one_is_left_to_others) {
    char value[64], bytes[US_RECORD_GAP_MAX + 1] = {0};
    CHECK(!look(bytes, sizeof bytes, 5, "unsalt", value));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/plain.h>
#include <support/check.h>

struct row {
    const char *bytes;
    size_t size;
    bool ok;
    uint64_t value;
};
#define ROW(text, ...) {text, sizeof text - 1, __VA_ARGS__}

static const struct row decimal_rows[] = {
    ROW("0", true, 0),
    ROW("17", true, 17),
    ROW("0017", true, 17),
    ROW("00000000000000000017", true, 17),
    ROW("18446744073709551614", true, UINT64_MAX - 1),
    ROW("18446744073709551615", false, 0), /* reserved */
    ROW("18446744073709551616", false, 0), /* one over 64 bits */
    ROW("28446744073709551614", false, 0),
    ROW("99999999999999999999", false, 0),
    ROW("000000000000000000017", false, 0), /* 21 digits */
    ROW("", false, 0),
    ROW("-1", false, 0),
    ROW("+1", false, 0),
    ROW(" 1", false, 0),
    ROW("1 ", false, 0),
    ROW("1\n", false, 0),
    ROW("1\0", false, 0),
    ROW("1.0", false, 0),
    ROW("1e3", false, 0),
    ROW("0x11", false, 0),
    ROW("/", false, 0), /* the neighbours of the digits */
    ROW(":", false, 0),
    ROW("\xb2", false, 0),
};

static const struct row plain_rows[] = {
    ROW("12345678", true, 12345678), /* eight digits are decimal */
    ROW("\0\0\0\0\0\0\0\x11", true, 17),
    ROW("\0\0\0\0\0\0\0\0", true, 0),
    ROW("1234567\x08", true, UINT64_C(0x3132333435363708)),
    ROW("\xff\xff\xff\xff\xff\xff\xff\xfe", true, UINT64_MAX - 1),
    ROW("\xff\xff\xff\xff\xff\xff\xff\xff", false, 0),
    ROW("\x01\x02\x03\x04\x05\x06\x07\x08", true, UINT64_C(0x0102030405060708)),
    ROW("\0\0\0\0\0\0\x11", false, 0), /* seven bytes */
    ROW("\0\0\0\0\0\0\0\0\x11", false, 0),
};

static void check_row(const struct row *row, bool (*read)(const void *, size_t, uint64_t *)) {
    uint64_t value = 4711;
    bool ok = read(row->bytes, row->size, &value);
    CHECK_THAT(ok == row->ok, "\"%s\" (%zu bytes): %d", row->bytes, row->size, ok);
    CHECK_U64(value, row->ok ? row->value : 4711);
}

static bool read_decimal(const void *bytes, size_t size, uint64_t *value) {
    return us_decimal_read(bytes, size, value);
}

TEST(plain, reads_decimals) {
    for (size_t i = 0; i < sizeof decimal_rows / sizeof *decimal_rows; i++) {
        check_row(&decimal_rows[i], read_decimal);
        check_row(&decimal_rows[i], us_plain_read);
    }
}

TEST(plain, reads_eight_binary_bytes) {
    for (size_t i = 0; i < sizeof plain_rows / sizeof *plain_rows; i++)
        check_row(&plain_rows[i], us_plain_read);
}

TEST(plain, an_absent_value_is_refused) {
    uint64_t value = 4711;
    CHECK(!us_plain_read(NULL, 0, &value));
    CHECK_U64(value, 4711);
}

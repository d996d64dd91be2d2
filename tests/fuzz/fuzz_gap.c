/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gap between two records of a batch: any bytes against a reader written as the protocol's page tells of a record,
 * and gaps that are written from a description, which must be read as what they were written from.
 */
#include <codec/record_gap.h>
#include <codec/varint.h>
#include <fuzz/fuzz.h>

/* ---- a plain reader */

/* What is left; failed: it doesn't fit. */
struct rest {
    const uint8_t *bytes;
    size_t size;
    bool failed;
};

static uint8_t byte(struct rest *rest) {
    rest->failed |= rest->size == 0;
    if (rest->failed)
        return 0;
    rest->size--;
    return *rest->bytes++;
}

/* A zigzag number in the fewest bytes, of 64 bits at most. */
static __int128 number(struct rest *rest) {
    unsigned __int128 sum = 0;
    unsigned n = 0;
    uint8_t last;
    do {
        last = byte(rest);
        if (n < 10)
            sum |= (unsigned __int128)(last & 0x7f) << 7 * n;
        n++;
    } while (!rest->failed && last & 0x80);
    rest->failed |= n > 10 || sum > UINT64_MAX || (n > 1 && last == 0);
    return sum % 2 ? -(__int128)(sum / 2) - 1 : (__int128)(sum / 2);
}

/* A length and so many bytes, at most 63. */
static struct rest text(struct rest *rest) {
    __int128 size = number(rest);
    rest->failed |= size < 0 || size > 63 || size > (__int128)rest->size;
    struct rest found = {.bytes = rest->bytes, .size = rest->failed ? 0 : (size_t)size};
    rest->bytes += found.size;
    rest->size -= found.size;
    return found;
}

static bool plain(const uint8_t *gap, size_t size, size_t key_len, const char *name, size_t name_len,
                  struct rest *value) {
    struct rest rest = {.bytes = gap, .size = size};
    rest.failed |= number(&rest) != 1;
    struct rest key = text(&rest);
    *value = text(&rest);
    __int128 length = number(&rest);
    size_t before = rest.size;
    rest.failed |= byte(&rest) != 0;
    number(&rest); /* the time, which may be before the batch's */
    rest.failed |= number(&rest) < 0;
    rest.failed |= number(&rest) != (__int128)key_len;
    /* Behind its length a record has the rest of this gap, its key, and at least a length and a count of headers. */
    rest.failed |= length < (__int128)before + (__int128)key_len + 2;
    return !rest.failed && rest.size == 0 && size <= US_RECORD_GAP_MAX && key.size == name_len &&
           memcmp(key.bytes, name, name_len) == 0;
}

/* first byte: length of the next key; then the gap. */
static void any(const uint8_t *data, size_t size, const char *name) {
    const void *found = NULL;
    size_t found_len = 99;
    struct rest value;
    if (size == 0)
        return;
    bool wanted = plain(data + 1, size - 1, data[0], name, strlen(name), &value);
    bool is = us_record_gap_header(data + 1, size - 1, data[0], name, strlen(name), &found, &found_len);
    FUZZ_CHECK(is == wanted, "%d, not %d", is, wanted);
    FUZZ_CHECK(is ? found == value.bytes && found_len == value.size : !found && found_len == 99,
               "a value of %zu bytes, not %zu", found_len, value.size);
}

/* ---- written and read */

struct gap {
    uint8_t bytes[US_RECORD_GAP_MAX + 64];
    size_t size;
};

static void put(struct gap *gap, uint64_t zigzag) {
    gap->size += us_varint_write(zigzag, gap->bytes + gap->size);
}

static void put_text(struct gap *gap, const void *bytes, size_t size) {
    put(gap, 2 * size);
    memcpy(gap->bytes + gap->size, bytes, size);
    gap->size += size;
}

/* Times of any size, a value of up to 63 bytes, a key of up to 2^32. */
static void written(const uint8_t *data, size_t size, const char *name) {
    uint64_t drawn[3] = {0};
    struct gap gap = {.size = 0};
    const void *found = NULL;
    size_t found_len = 0;
    if (size < sizeof drawn)
        return;
    memcpy(drawn, data, sizeof drawn);
    data += sizeof drawn;
    size = size - sizeof drawn > 63 ? 63 : size - sizeof drawn;
    size_t key_len = (size_t)(drawn[1] >> (32 + drawn[0] % 32));
    put(&gap, 2);
    put_text(&gap, name, strlen(name));
    put_text(&gap, data, size);
    size_t before = gap.size;
    put(&gap, 0);
    put(&gap, drawn[0]);
    put(&gap, drawn[2] & ~UINT64_C(1));
    put(&gap, 2 * (uint64_t)key_len);
    uint64_t length = gap.size - before + key_len + 2;
    struct gap whole = {.size = before};
    memcpy(whole.bytes, gap.bytes, before);
    put(&whole, 2 * length);
    memcpy(whole.bytes + whole.size, gap.bytes + before, gap.size - before);
    whole.size += gap.size - before;
    FUZZ_CHECK(us_record_gap_header(whole.bytes, whole.size, key_len, name, strlen(name), &found, &found_len) &&
                   found_len == size && memcmp(found, data, size) == 0,
               "what was written isn't read");
    FUZZ_CHECK(!us_record_gap_header(whole.bytes, whole.size, key_len + 1, name, strlen(name), &found, &found_len),
               "another key fits");
    whole.bytes[before] -= 2; /* of the length: its lowest bits */
    bool borrows = (whole.bytes[before] & 0x7f) >= 0x7e;
    FUZZ_CHECK(borrows || !us_record_gap_header(whole.bytes, whole.size, key_len, name, strlen(name), &found,
                                                &found_len),
               "a record that is too short for its key fits");
}

FUZZ(gap) {
    static const char *const names[] = {"unsalt", "seq", "a"};
    if (size == 0)
        return 0;
    const char *name = names[data[0] / 2 % 3];
    (data[0] % 2 ? written : any)(data + 1, size - 1, name);
    return 0;
}

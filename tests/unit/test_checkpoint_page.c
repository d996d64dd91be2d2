/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vectors of docs/checkpoint-format.md against the library. A reader and a writer in Python, written from the page,
 * are checked against the same tables by tests/api/wire.sh.
 */
#include <base/crc32.h>
#include <codec/checkpoint.h>
#include <codec/varint.h>
#include <stdlib.h>
#include <support/check.h>
#include <unit/fixture/page.h>

static const char page_path[] = "docs/checkpoint-format.md";

enum { RANGES_MAX = 8 };

static const char *const fault_names[] = {
#define X(C, text) #C,
    US_CHECKPOINT_FAULTS(X)
#undef X
};
static bool seen[US_CHECKPOINT__CNT];

static void check_crc(const struct page_row *row) {
    uint8_t bytes[PAGE_BYTES_MAX];
    size_t size = page_bytes(row->cells[0], bytes);
    CHECK_U64(us_crc32(0, bytes, size), page_number(row->cells[1]));
    for (size_t cut = 0; cut <= size; cut++)
        CHECK_U64(us_crc32(us_crc32(0, bytes, cut), bytes + cut, size - cut), page_number(row->cells[1]));
}

TEST(checkpoint_page, checksums) {
    page_for_each(page_path, "crc", 2, check_crc);
}

static void check_number(const struct page_row *row) {
    static const char *const names[] = {"OK", "SHORT", "NUMBER"};
    uint8_t bytes[PAGE_BYTES_MAX], written[US_VARINT_MAX];
    const uint8_t *at = bytes, *end = bytes + page_bytes(row->cells[0], bytes);
    uint64_t value = 4711;
    enum us_varint is = us_varint_read(&at, end, &value);
    CHECK_THAT((int)is == page_name(row->cells[1], names, 3), "%s:%d: %d", page_path, row->line, (int)is);
    if (is != US_VARINT_OK) {
        CHECK(at == bytes && value == 4711);
        return;
    }
    CHECK_U64(value, page_number(row->cells[2]));
    CHECK_U64(at - bytes, page_number(row->cells[3]));
    CHECK_U64(us_varint_size(value), at - bytes);
    CHECK_BYTES(written, us_varint_write(value, written), bytes, (size_t)(at - bytes));
}

TEST(checkpoint_page, numbers) {
    page_for_each(page_path, "number", 4, check_number);
}

/* "6 9-10" */
static uint32_t ranges_of(const char *cell, unsalt_core_range_t *ranges) {
    uint32_t count = 0;
    char *at;
    if (page_none(cell))
        return 0;
    for (; *cell; cell = at + strspn(at, " ")) {
        CHECK(count < RANGES_MAX);
        ranges[count].first = ranges[count].last = strtoull(cell, &at, 10);
        if (*at == '-')
            ranges[count].last = strtoull(at + 1, &at, 10);
        count++;
    }
    return count;
}

static void check_ranges(const struct us_checkpoint_ranges *list, const unsalt_core_range_t *wanted, uint32_t count) {
    unsalt_core_range_t found[RANGES_MAX];
    CHECK_U64(list->count, count);
    us_checkpoint_ranges_copy(list, found);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_U64(found[i].first, wanted[i].first);
        CHECK_U64(found[i].last, wanted[i].last);
    }
}

/* A row's entry as it is read. */
struct read {
    uint8_t key[PAGE_BYTES_MAX], value[PAGE_BYTES_MAX];
    size_t key_len, value_len;
    struct us_checkpoint_fields entry;
};

/* The value from a block of its own, so that a step beyond its end is noticed. */
static enum us_checkpoint_fault read_copy(struct read *in, bool is_null) {
    void *copy = malloc(in->value_len ? in->value_len : 1);
    CHECK(copy);
    memcpy(copy, in->value, in->value_len);
    enum us_checkpoint_fault fault =
        us_checkpoint_read(in->key, in->key_len, is_null ? NULL : copy, in->value_len, &in->entry);
    free(copy);
    if (fault == US_CHECKPOINT_OK)
        return us_checkpoint_read(in->key, in->key_len, in->value, in->value_len, &in->entry);
    const struct us_checkpoint_fields *e = &in->entry;
    CHECK(!e->flags && !e->epoch && !e->cursor && !e->floor && !e->frontier && !e->era);
    CHECK(!e->done.count && !e->skipped.count);
    if (fault == US_CHECKPOINT_KEY)
        CHECK(!e->kind && !e->topic && !e->session && !e->partition);
    return fault;
}

/* Returns false for a fault, which is the one that the row names. */
static bool read_row(const struct page_row *row, struct read *in) {
    bool is_null = strcmp(row->cells[2], "null") == 0;
    in->key_len = page_bytes(row->cells[1], in->key);
    in->value_len = is_null ? 0 : page_bytes(row->cells[2], in->value);
    memset(&in->entry, 0xee, sizeof in->entry);
    enum us_checkpoint_fault fault = read_copy(in, is_null);
    CHECK_THAT((int)fault == page_name(row->cells[3], fault_names, US_CHECKPOINT__CNT), "%s:%d: %s", page_path,
               row->line, us_checkpoint_fault_text(fault));
    seen[fault] = true;
    return fault == US_CHECKPOINT_OK;
}

static void check_written(const struct page_row *row, const struct read *in, const uint8_t *key, size_t key_len,
                          const uint8_t *value, size_t value_len) {
    CHECK_BYTES(key, key_len, in->key, in->key_len);
    bool is_same = value_len == in->value_len && memcmp(value, in->value, value_len) == 0;
    CHECK_THAT(is_same == (strcmp(row->cells[row->count - 1], "same") == 0), "%s:%d: other bytes were written",
               page_path, row->line);
}

static void check_session(const struct page_row *row) {
    unsalt_core_range_t done[RANGES_MAX], skipped[RANGES_MAX];
    uint8_t id[PAGE_BYTES_MAX], key[UNSALT_CHECKPOINT_KEY_MAX], value[PAGE_BYTES_MAX];
    struct read in;
    if (!read_row(row, &in))
        return;
    const char *topic = row->cells[4];
    size_t id_len = page_bytes(row->cells[5], id), len = 0;
    struct us_checkpoint_session wanted = {
        .epoch = page_number(row->cells[6]),
        .cursor = page_number(row->cells[7]),
        .floor = page_number(row->cells[8]),
        .done = done,
        .done_count = ranges_of(row->cells[9], done),
        .skipped = skipped,
        .skipped_count = ranges_of(row->cells[10], skipped),
        .era = (uint32_t)page_number(row->cells[11]),
    };
    CHECK_U64(in.entry.kind, UNSALT_CHECKPOINT_SESSION);
    CHECK_BYTES(in.entry.topic, in.entry.topic_len, topic, strlen(topic));
    CHECK_BYTES(in.entry.session, in.entry.session_len, id, id_len);
    CHECK_U64(in.entry.epoch, wanted.epoch);
    CHECK_U64(in.entry.cursor, wanted.cursor);
    CHECK_U64(in.entry.floor, wanted.floor);
    CHECK_U64(in.entry.era, wanted.era);
    check_ranges(&in.entry.done, done, wanted.done_count);
    check_ranges(&in.entry.skipped, skipped, wanted.skipped_count);
    size_t key_len = us_checkpoint_session_key(topic, strlen(topic), id, id_len, key, sizeof key);
    enum us_checkpoint_fault fault =
        us_checkpoint_write_session(&wanted, key, key_len, value, sizeof value, &len);
    CHECK_U64(fault, US_CHECKPOINT_OK);
    check_written(row, &in, key, key_len, value, len);
}

static void check_partition(const struct page_row *row) {
    unsalt_core_range_t done[RANGES_MAX];
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[PAGE_BYTES_MAX];
    struct read in;
    if (!read_row(row, &in))
        return;
    const char *topic = row->cells[4];
    struct us_checkpoint_partition wanted = {
        .frontier = (int64_t)page_number(row->cells[6]),
        .done = done,
        .done_count = ranges_of(row->cells[7], done),
        .era = (uint32_t)page_number(row->cells[9]),
    };
    bool truncated = strcmp(row->cells[8], "yes") == 0;
    CHECK_U64(in.entry.kind, UNSALT_CHECKPOINT_PARTITION);
    CHECK_BYTES(in.entry.topic, in.entry.topic_len, topic, strlen(topic));
    CHECK_U64(in.entry.partition, page_number(row->cells[5]));
    CHECK_I64(in.entry.frontier, wanted.frontier);
    CHECK_U64(in.entry.era, wanted.era);
    CHECK_U64(in.entry.flags & UNSALT_CHECKPOINT_TRUNCATED, truncated ? UNSALT_CHECKPOINT_TRUNCATED : 0);
    CHECK_U64(in.entry.skipped.count, 0);
    check_ranges(&in.entry.done, done, wanted.done_count);
    size_t key_len = us_checkpoint_partition_key(topic, strlen(topic), in.entry.partition, key, sizeof key), len = 0;
    uint32_t kept = 0;
    /* One more range, and no room for it. */
    if (truncated)
        done[wanted.done_count++] = (unsalt_core_range_t){INT64_MAX, INT64_MAX};
    size_t size = truncated ? in.value_len : sizeof value;
    CHECK_U64(us_checkpoint_write_partition(&wanted, key, key_len, value, size, &len, &kept), US_CHECKPOINT_OK);
    CHECK_U64(kept, wanted.done_count - truncated);
    check_written(row, &in, key, key_len, value, len);
}

TEST(checkpoint_page, entries) {
    page_for_each(page_path, "session", 13, check_session);
    page_for_each(page_path, "partition", 11, check_partition);
    for (int i = 0; i < US_CHECKPOINT_ROOM; i++)
        CHECK_THAT(seen[i], "no vector for %s", fault_names[i]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of entries, and what stands in both directions: keys, the checksum, the names of the faults. */
#include <base/crc32.h>
#include <codec/checkpoint_inner.h>
#include <codec/varint.h>
#include <string.h>

enum { AT_KIND = 0, AT_TOPIC_LEN = 1, AT_TOPIC = 2, PARTITION_BYTES = 4 };

_Static_assert(UNSALT_CHECKPOINT_KEY_MAX == AT_TOPIC + US_CHECKPOINT_TOPIC_MAX + US_CHECKPOINT_SESSION_MAX,
               "the longest key is a session's");

static uint32_t get_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- keys */

static size_t write_key(uint8_t kind, const char *topic, size_t topic_len, const void *tail, size_t tail_len,
                        uint8_t *key, size_t size) {
    if (topic_len < 1 || topic_len > US_CHECKPOINT_TOPIC_MAX || size < AT_TOPIC + topic_len + tail_len)
        return 0;
    key[AT_KIND] = kind;
    key[AT_TOPIC_LEN] = (uint8_t)topic_len;
    memcpy(key + AT_TOPIC, topic, topic_len);
    memcpy(key + AT_TOPIC + topic_len, tail, tail_len);
    return AT_TOPIC + topic_len + tail_len;
}

size_t us_checkpoint_session_key(const char *topic, size_t topic_len, const void *session, size_t session_len,
                                 void *key, size_t size) {
    if (session_len < 1 || session_len > US_CHECKPOINT_SESSION_MAX)
        return 0;
    return write_key(UNSALT_CHECKPOINT_SESSION, topic, topic_len, session, session_len, key, size);
}

size_t us_checkpoint_partition_key(const char *topic, size_t topic_len, int32_t partition, void *key, size_t size) {
    uint8_t tail[PARTITION_BYTES];
    if (partition < 0)
        return 0;
    for (int i = 0; i < PARTITION_BYTES; i++)
        tail[i] = (uint8_t)((uint32_t)partition >> (24 - 8 * i));
    return write_key(UNSALT_CHECKPOINT_PARTITION, topic, topic_len, tail, sizeof tail, key, size);
}

bool us_checkpoint_read_key(const void *key, size_t key_len, struct us_checkpoint_fields *entry) {
    const uint8_t *at = key;
    *entry = (struct us_checkpoint_fields){0};
    if (key_len == 0)
        return false;
    bool is_session = at[AT_KIND] == UNSALT_CHECKPOINT_SESSION;
    if (!is_session && at[AT_KIND] != UNSALT_CHECKPOINT_PARTITION)
        return true;
    if (key_len < AT_TOPIC || at[AT_TOPIC_LEN] < 1 || at[AT_TOPIC_LEN] > US_CHECKPOINT_TOPIC_MAX ||
        key_len - AT_TOPIC <= at[AT_TOPIC_LEN])
        return false;
    size_t topic_len = at[AT_TOPIC_LEN], tail_len = key_len - AT_TOPIC - topic_len;
    const uint8_t *tail = at + AT_TOPIC + topic_len;
    if (is_session ? tail_len > US_CHECKPOINT_SESSION_MAX : tail_len != PARTITION_BYTES || tail[0] > 0x7f)
        return false;
    entry->kind = at[AT_KIND];
    entry->topic = (const char *)at + AT_TOPIC;
    entry->topic_len = topic_len;
    if (is_session) {
        entry->session = tail;
        entry->session_len = tail_len;
    } else {
        entry->partition = (int32_t)get_u32(tail);
    }
    return true;
}

uint32_t us_checkpoint_sum(const void *key, size_t key_len, const uint8_t *value, size_t len) {
    uint32_t sum = us_crc32(us_crc32(0, key, key_len), value, US_CHECKPOINT_AT_SUM);
    return us_crc32(sum, value + US_CHECKPOINT_AT_BODY, len - US_CHECKPOINT_AT_BODY);
}

/* ---- values */

/* Remembers its first fault, and reads zeros after that. */
struct reader {
    const uint8_t *at, *end;
    enum us_checkpoint_fault fault;
};

static void fail(struct reader *reader, enum us_checkpoint_fault fault) {
    if (reader->fault == US_CHECKPOINT_OK)
        reader->fault = fault;
}

static uint64_t number(struct reader *reader) {
    uint64_t value = 0;
    if (reader->fault != US_CHECKPOINT_OK)
        return 0;
    enum us_varint is = us_varint_read(&reader->at, reader->end, &value);
    if (is != US_VARINT_OK)
        fail(reader, is == US_VARINT_SHORT ? US_CHECKPOINT_SHORT : US_CHECKPOINT_NUMBER);
    return value;
}

/* A list of ranges in base..last. A gap and a length are coded, so no list is out of order; it may only be too long. */
static struct us_checkpoint_ranges list(struct reader *reader, uint64_t base, uint64_t last) {
    uint64_t count = number(reader);
    if (count > UINT32_MAX || count > (uint64_t)(reader->end - reader->at) / 2)
        fail(reader, US_CHECKPOINT_COUNT);
    struct us_checkpoint_ranges found = {reader->at, reader->end, base, (uint32_t)count};
    bool is_full = base > last;
    for (uint64_t i = 0; i < count && reader->fault == US_CHECKPOINT_OK; i++) {
        uint64_t gap = number(reader), more = number(reader);
        if (reader->fault == US_CHECKPOINT_OK && (is_full || gap > last - base || more > last - base - gap))
            fail(reader, US_CHECKPOINT_RANGE);
        is_full = last - base - gap - more < 2;
        base += gap + more + 2;
    }
    return found;
}

/* Two lists that are each in order: side by side. */
static bool disjoint(struct us_checkpoint_ranges a, struct us_checkpoint_ranges b) {
    unsalt_core_range_t x = {0}, y = {0};
    bool more = us_checkpoint_ranges_next(&a, &x) && us_checkpoint_ranges_next(&b, &y);
    while (more) {
        if (x.last < y.first)
            more = us_checkpoint_ranges_next(&a, &x);
        else if (y.last < x.first)
            more = us_checkpoint_ranges_next(&b, &y);
        else
            return false;
    }
    return true;
}

static bool has(struct us_checkpoint_ranges list, uint64_t seq) {
    unsalt_core_range_t range;
    while (us_checkpoint_ranges_next(&list, &range) && range.first <= seq)
        if (seq <= range.last)
            return true;
    return false;
}

static void read_session(struct reader *reader, struct us_checkpoint_fields *entry) {
    entry->epoch = number(reader);
    entry->cursor = number(reader);
    if (entry->cursor > US_CHECKPOINT_SEQ_LAST)
        fail(reader, US_CHECKPOINT_CURSOR);
    entry->floor = number(reader);
    if (entry->floor > entry->cursor)
        fail(reader, US_CHECKPOINT_FLOOR);
    entry->done = list(reader, entry->cursor + 1, US_CHECKPOINT_SEQ_LAST);
    entry->skipped = list(reader, entry->floor, US_CHECKPOINT_SEQ_LAST);
}

static void read_partition(struct reader *reader, struct us_checkpoint_fields *entry) {
    uint64_t frontier = number(reader);
    if (frontier > US_CHECKPOINT_OFFSET_LAST)
        fail(reader, US_CHECKPOINT_CURSOR);
    entry->frontier = (int64_t)frontier;
    entry->done = list(reader, frontier + 1, US_CHECKPOINT_OFFSET_LAST);
}

/* Era 0 has no field, or there would be two values that say the same. */
static void read_era(struct reader *reader, struct us_checkpoint_fields *entry) {
    if (!(entry->flags & UNSALT_CHECKPOINT_ERA))
        return;
    uint64_t era = number(reader);
    if (era < 1 || era > UINT32_MAX)
        fail(reader, US_CHECKPOINT_NUMBER);
    entry->era = (uint32_t)era;
}

/* The lists are read again, thus only when all of them were in order. A partition has none that are skipped. */
static void check_overlap(struct reader *reader, const struct us_checkpoint_fields *entry) {
    if (reader->fault == US_CHECKPOINT_OK &&
        (has(entry->skipped, entry->cursor) || !disjoint(entry->done, entry->skipped)))
        fail(reader, US_CHECKPOINT_OVERLAP);
}

static enum us_checkpoint_fault check_frame(const void *key, size_t key_len, const uint8_t *value, size_t len,
                                            bool is_known) {
    if (!value)
        return is_known ? US_CHECKPOINT_GONE : US_CHECKPOINT_NEWER;
    if (len < US_CHECKPOINT_AT_BODY)
        return US_CHECKPOINT_SHORT;
    if (get_u32(value + US_CHECKPOINT_AT_SUM) != us_checkpoint_sum(key, key_len, value, len))
        return US_CHECKPOINT_CHECKSUM;
    return is_known && value[0] == UNSALT_CHECKPOINT_VERSION ? US_CHECKPOINT_OK : US_CHECKPOINT_NEWER;
}

enum us_checkpoint_fault us_checkpoint_read(const void *key, size_t key_len, const void *value, size_t value_len,
                                            struct us_checkpoint_fields *entry) {
    struct us_checkpoint_fields found;
    const uint8_t *bytes = value;
    if (!us_checkpoint_read_key(key, key_len, entry))
        return US_CHECKPOINT_KEY;
    enum us_checkpoint_fault fault = check_frame(key, key_len, bytes, value_len, entry->kind != 0);
    if (fault != US_CHECKPOINT_OK)
        return fault;
    if (value_len == US_CHECKPOINT_AT_BODY)
        return US_CHECKPOINT_SHORT;
    struct reader reader = {.at = bytes + US_CHECKPOINT_AT_BODY + 1, .end = bytes + value_len};
    found = *entry;
    found.flags = bytes[US_CHECKPOINT_AT_BODY];
    if (found.kind == UNSALT_CHECKPOINT_SESSION)
        read_session(&reader, &found);
    else
        read_partition(&reader, &found);
    read_era(&reader, &found);
    check_overlap(&reader, &found);
    if (reader.fault == US_CHECKPOINT_OK)
        *entry = found;
    return reader.fault;
}

bool us_checkpoint_ranges_next(struct us_checkpoint_ranges *list, unsalt_core_range_t *range) {
    uint64_t gap = 0, more = 0;
    if (list->count == 0)
        return false;
    /* They were checked when the entry was read. */
    us_varint_read(&list->at, list->end, &gap);
    us_varint_read(&list->at, list->end, &more);
    range->first = list->base + gap;
    range->last = range->first + more;
    list->base = range->last + 2;
    list->count--;
    return true;
}

void us_checkpoint_ranges_copy(const struct us_checkpoint_ranges *list, unsalt_core_range_t *ranges) {
    struct us_checkpoint_ranges rest = *list;
    while (us_checkpoint_ranges_next(&rest, ranges))
        ranges++;
}

/* ---- names */

const char *us_checkpoint_fault_text(enum us_checkpoint_fault fault) {
    static const char *const texts[] = {
#define X(C, text) text,
        US_CHECKPOINT_FAULTS(X)
#undef X
    };
    return (unsigned)fault < US_CHECKPOINT__CNT ? texts[fault] : "?";
}

bool us_checkpoint_is_corrupt(enum us_checkpoint_fault fault) {
    return fault != US_CHECKPOINT_OK && fault != US_CHECKPOINT_GONE && fault != US_CHECKPOINT_NEWER &&
           fault != US_CHECKPOINT_ROOM;
}

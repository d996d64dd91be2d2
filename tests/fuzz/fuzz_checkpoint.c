/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoint entries against a reader and a judge of fields written as plainly as the page describes them: with
 * 128 bits, a CRC bit by bit, every range compared with every other. The first byte picks reading or writing. What is
 * read gets its right checksum first, if bit 1 says so, or a fuzzer would never come beyond it.
 */
#include <codec/checkpoint.h>
#include <fuzz/fuzz.h>
#include <support/prng.h>

typedef unsigned __int128 wide;

enum { RANGES_MAX = 4200, DRAWN_MAX = 6 };

struct plain {
    const uint8_t *at, *end;
    enum us_checkpoint_fault fault;
    wide epoch, cursor, floor, era;
    size_t done_count, skipped_count;
    struct {
        wide first, last;
    } done[RANGES_MAX], skipped[RANGES_MAX];
};
static struct plain plain;

static uint32_t crc_bits(uint32_t crc, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < 8 * size; i++) {
        uint32_t bit = (crc ^ (uint32_t)bytes[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? UINT32_C(0xedb88320) : 0);
    }
    return crc;
}

static uint32_t sum_of(const uint8_t *key, size_t key_len, const uint8_t *value, size_t len) {
    return ~crc_bits(crc_bits(crc_bits(UINT32_MAX, key, key_len), value, 1), value + 5, len - 5);
}

static bool fails(bool condition, enum us_checkpoint_fault fault) {
    if (condition && plain.fault == US_CHECKPOINT_OK)
        plain.fault = fault;
    return plain.fault != US_CHECKPOINT_OK;
}

static wide number(void) {
    wide sum = 0;
    for (size_t i = 0; plain.fault == US_CHECKPOINT_OK; i++) {
        if (fails(plain.at == plain.end, US_CHECKPOINT_SHORT))
            break;
        uint8_t byte = *plain.at++;
        if (fails((i == 9 && byte > 1) || (i > 0 && byte == 0), US_CHECKPOINT_NUMBER))
            break;
        sum += (wide)(byte & 0x7f) << 7 * i;
        if (byte < 0x80)
            return sum;
    }
    return 0;
}

#define LIST(list, list_count, base_, limit)                                                                          \
    do {                                                                                                              \
        wide count_ = number(), at_ = (base_), left_ = (wide)(plain.end - plain.at);                                  \
        fails(count_ > UINT32_MAX || 2 * count_ > left_, US_CHECKPOINT_COUNT);                                        \
        for (wide i_ = 0; plain.fault == US_CHECKPOINT_OK && i_ < count_; i_++) {                                     \
            wide first_ = at_ + number(), last_ = first_ + number();                                                  \
            if (fails(last_ > (limit), US_CHECKPOINT_RANGE))                                                          \
                break;                                                                                                \
            plain.list[plain.list_count].first = first_;                                                              \
            plain.list[plain.list_count++].last = last_;                                                              \
            at_ = last_ + 2;                                                                                          \
        }                                                                                                             \
    } while (0)

static bool meets(wide first, wide last, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (plain.skipped[i].first <= last && plain.skipped[i].last >= first)
            return true;
    return false;
}

static void read_fields(bool is_session, bool has_era) {
    if (is_session) {
        plain.epoch = number();
        plain.cursor = number();
        fails(plain.cursor >= UINT64_MAX, US_CHECKPOINT_CURSOR);
        plain.floor = number();
        fails(plain.floor > plain.cursor, US_CHECKPOINT_FLOOR);
        LIST(done, done_count, plain.cursor + 1, UINT64_MAX - 1);
        LIST(skipped, skipped_count, plain.floor, UINT64_MAX - 1);
    } else {
        plain.cursor = number();
        fails(plain.cursor > INT64_MAX, US_CHECKPOINT_CURSOR);
        LIST(done, done_count, plain.cursor + 1, INT64_MAX);
    }
    if (has_era) {
        plain.era = number();
        fails(plain.era == 0 || plain.era >> 32 != 0, US_CHECKPOINT_NUMBER);
    }
    fails(meets(plain.cursor, plain.cursor, plain.skipped_count), US_CHECKPOINT_OVERLAP);
    for (size_t i = 0; i < plain.done_count && plain.fault == US_CHECKPOINT_OK; i++)
        fails(meets(plain.done[i].first, plain.done[i].last, plain.skipped_count), US_CHECKPOINT_OVERLAP);
}

/* -1: malformed; 0: a kind that isn't known; else the kind. */
static int kind_of(const uint8_t *key, size_t len) {
    if (len == 0)
        return -1;
    if (key[0] != 'S' && key[0] != 'P')
        return 0;
    if (len < 2 || key[1] == 0 || key[1] > 249 || len < 2 + (size_t)key[1] + 1)
        return -1;
    size_t rest = len - 2 - key[1];
    if (key[0] == 'S' ? rest > 4096 : rest != 4 || key[len - 4] >= 0x80)
        return -1;
    return key[0];
}

static enum us_checkpoint_fault read_plainly(const uint8_t *key, size_t key_len, const uint8_t *value, size_t len) {
    int kind = kind_of(key, key_len);
    plain.done_count = plain.skipped_count = 0;
    plain.epoch = plain.floor = plain.era = 0;
    plain.fault = US_CHECKPOINT_OK;
    if (kind < 0)
        return US_CHECKPOINT_KEY;
    if (!value)
        return kind ? US_CHECKPOINT_GONE : US_CHECKPOINT_NEWER;
    if (len < 5)
        return US_CHECKPOINT_SHORT;
    uint32_t sum = (uint32_t)value[1] << 24 | (uint32_t)value[2] << 16 | (uint32_t)value[3] << 8 | value[4];
    if (sum != sum_of(key, key_len, value, len))
        return US_CHECKPOINT_CHECKSUM;
    if (!kind || value[0] != 1)
        return US_CHECKPOINT_NEWER;
    if (len == 5)
        return US_CHECKPOINT_SHORT;
    plain.at = value + 6;
    plain.end = value + len;
    read_fields(kind == 'S', value[5] & 2);
    return plain.fault;
}

/* What was found by the library is what was found plainly. */
static void check_fields(const struct us_checkpoint_fields *entry) {
    struct us_checkpoint_ranges done = entry->done, skipped = entry->skipped;
    unsalt_core_range_t range;
    wide cursor = entry->kind == 'S' ? entry->cursor : (uint64_t)entry->frontier;
    FUZZ_CHECK(entry->epoch == plain.epoch && cursor == plain.cursor && entry->floor == plain.floor, "fields");
    FUZZ_CHECK(entry->era == plain.era, "era");
    FUZZ_CHECK(done.count == plain.done_count && skipped.count == plain.skipped_count, "counts");
    for (size_t i = 0; us_checkpoint_ranges_next(&done, &range); i++)
        FUZZ_CHECK(range.first == plain.done[i].first && range.last == plain.done[i].last, "done %zu", i);
    for (size_t i = 0; us_checkpoint_ranges_next(&skipped, &range); i++)
        FUZZ_CHECK(range.first == plain.skipped[i].first && range.last == plain.skipped[i].last, "skipped %zu", i);
}

/* Written again, it is the same but for flags and tail. */
static void check_again(const struct us_checkpoint_fields *entry, const uint8_t *key, size_t key_len,
                        const uint8_t *value, size_t body) {
    static unsalt_core_range_t done[RANGES_MAX], skipped[RANGES_MAX];
    static uint8_t again[US_CHECKPOINT_VALUE_ROOM(2 * RANGES_MAX)];
    enum us_checkpoint_fault fault;
    size_t len = 0;
    uint32_t kept;
    us_checkpoint_ranges_copy(&entry->done, done);
    us_checkpoint_ranges_copy(&entry->skipped, skipped);
    if (entry->kind == 'S') {
        struct us_checkpoint_session session = {entry->epoch,      entry->cursor, entry->floor,         done,
                                                entry->done.count, skipped,       entry->skipped.count, entry->era};
        fault = us_checkpoint_write_session(&session, key, key_len, again, sizeof again, &len);
    } else {
        struct us_checkpoint_partition partition = {entry->frontier, done, entry->done.count, entry->era};
        fault = us_checkpoint_write_partition(&partition, key, key_len, again, sizeof again, &len, &kept);
    }
    FUZZ_CHECK(fault == US_CHECKPOINT_OK, "what was read isn't written: %d", (int)fault);
    FUZZ_CHECK(len == body && memcmp(again + 6, value + 6, len - 6) == 0, "other bytes are written");
}

static void reading(const uint8_t *data, size_t size) {
    struct us_checkpoint_fields entry;
    size_t key_len = size > 1 && data[1] < size - 1 ? data[1] : 0, len = size > 1 ? size - 2 - key_len : 0;
    const uint8_t *key = data + 2;
    bool is_null = data[0] & 4;
    uint8_t *value = malloc(len ? len : 1);
    if (!value)
        abort();
    memcpy(value, key + key_len, len);
    if ((data[0] & 2) && len >= 5) {
        uint32_t sum = sum_of(key, key_len, value, len);
        for (int i = 0; i < 4; i++)
            value[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
    enum us_checkpoint_fault wanted = read_plainly(key, key_len, is_null ? NULL : value, len),
                             fault = us_checkpoint_read(key, key_len, is_null ? NULL : value, len, &entry);
    FUZZ_CHECK(fault == wanted, "fault %d, not %d", (int)fault, (int)wanted);
    FUZZ_CHECK(fault != US_CHECKPOINT_KEY || entry.kind == 0, "kind %d of no key", entry.kind);
    if (fault == US_CHECKPOINT_OK) {
        check_fields(&entry);
        check_again(&entry, key, key_len, value, (size_t)(plain.at - value));
    } else {
        FUZZ_CHECK(!entry.cursor && !entry.epoch && !entry.frontier && !entry.done.count && !entry.skipped.count &&
                       !entry.era,
                   "a cursor came out of fault %d", (int)fault);
    }
    free(value);
}

/* ---- writing: fields from a tape, in order or not */

static uint64_t draw_number(struct prng *prng, uint64_t near) {
    uint64_t n = prng_chance(prng, 90) ? near + prng_below(prng, 6) - 1 : prng_next(prng);
    return prng_chance(prng, 5) ? UINT64_MAX - prng_below(prng, 4) : n;
}

static uint32_t draw_ranges(struct prng *prng, uint64_t near, unsalt_core_range_t *ranges) {
    uint32_t count = (uint32_t)prng_below(prng, DRAWN_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i].first = draw_number(prng, near + 1);
        near = ranges[i].last = draw_number(prng, ranges[i].first);
    }
    return count;
}

/* Every range in itself, and against the one before it. */
static bool in_order(const unsalt_core_range_t *ranges, uint32_t count, wide base) {
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].first > ranges[i].last || ranges[i].last > UINT64_MAX - 1 || ranges[i].first < base)
            return false;
        base = (wide)ranges[i].last + 1;
    }
    return true;
}

static enum us_checkpoint_fault judge(const struct us_checkpoint_session *s) {
    bool overlap = false;
    if (s->cursor == UINT64_MAX)
        return US_CHECKPOINT_CURSOR;
    if (s->floor > s->cursor)
        return US_CHECKPOINT_FLOOR;
    if (!in_order(s->done, s->done_count, (wide)s->cursor + 1) || !in_order(s->skipped, s->skipped_count, 0))
        return US_CHECKPOINT_RANGE;
    for (uint32_t i = 0; i < s->skipped_count; i++) {
        overlap |= s->skipped[i].first <= s->cursor && s->cursor <= s->skipped[i].last;
        for (uint32_t k = 0; k < s->done_count; k++)
            overlap |= s->skipped[i].first <= s->done[k].last && s->done[k].first <= s->skipped[i].last;
    }
    return overlap ? US_CHECKPOINT_OVERLAP : US_CHECKPOINT_OK;
}

/* The members of the coded list are those of the array from `floor` on; ranges of the array may adjoin. */
static void check_members(struct us_checkpoint_ranges list, const unsalt_core_range_t *wanted, uint32_t count,
                          uint64_t floor) {
    unsalt_core_range_t range;
    uint32_t i = 0;
    while (i < count && wanted[i].last < floor)
        i++;
    while (us_checkpoint_ranges_next(&list, &range)) {
        uint64_t first = i < count && wanted[i].first > floor ? wanted[i].first : floor;
        FUZZ_CHECK(i < count && range.first == first, "begin of range %u", i);
        while (i + 1 < count && wanted[i].last != range.last && wanted[i].last + 1 == wanted[i + 1].first)
            i++;
        FUZZ_CHECK(wanted[i].last == range.last, "end of range %u", i);
        i++;
    }
    FUZZ_CHECK(i == count, "%u ranges, not %u", i, count);
}

static void writing(const uint8_t *data, size_t size) {
    static const uint8_t key[] = "S\006ordersorder-17";
    unsalt_core_range_t done[DRAWN_MAX], skipped[DRAWN_MAX];
    uint8_t value[US_CHECKPOINT_VALUE_ROOM(2 * DRAWN_MAX)];
    struct prng prng = prng_tape(data, size);
    struct us_checkpoint_session s = {.done = done, .skipped = skipped};
    struct us_checkpoint_fields entry;
    s.epoch = prng_next(&prng);
    s.cursor = prng_chance(&prng, 80) ? prng_below(&prng, 20) : draw_number(&prng, 1000);
    s.floor = prng_chance(&prng, 80) ? prng_below(&prng, s.cursor / 2 + 1) : draw_number(&prng, 0);
    s.done_count = draw_ranges(&prng, s.cursor, done);
    s.skipped_count = draw_ranges(&prng, prng_chance(&prng, 50) ? s.cursor : s.floor / 2, skipped);
    s.era = prng_chance(&prng, 50) ? 0 : (uint32_t)draw_number(&prng, 1);
    size_t room = prng_below(&prng, sizeof value + 1), len = 0, needed = 0;
    enum us_checkpoint_fault wanted = judge(&s),
                             fault = us_checkpoint_write_session(&s, key, sizeof key - 1, value, room, &len);
    FUZZ_CHECK(fault == wanted || (fault == US_CHECKPOINT_ROOM && wanted == US_CHECKPOINT_OK), "fault %d, not %d",
               (int)fault, (int)wanted);
    if (wanted != US_CHECKPOINT_OK)
        return;
    FUZZ_CHECK((fault == US_CHECKPOINT_ROOM) == (len > room), "%zu bytes in room for %zu", len, room);
    fault = us_checkpoint_write_session(&s, key, sizeof key - 1, value, sizeof value, &needed);
    FUZZ_CHECK(fault == US_CHECKPOINT_OK && len == needed, "%zu bytes, not %zu", needed, len);
    fault = us_checkpoint_read(key, sizeof key - 1, value, len, &entry);
    FUZZ_CHECK(fault == US_CHECKPOINT_OK, "what was written can't be read: %d", (int)fault);
    FUZZ_CHECK(entry.epoch == s.epoch && entry.cursor == s.cursor && entry.floor == s.floor, "fields");
    FUZZ_CHECK(entry.era == s.era && entry.flags == (s.era ? 2 : 0), "era %" PRIu32, entry.era);
    check_members(entry.done, done, s.done_count, 0);
    check_members(entry.skipped, skipped, s.skipped_count, s.floor);
}

FUZZ(checkpoint) {
    if (size > 0 && (data[0] & 1))
        writing(data + 1, size - 1);
    else if (size > 0)
        reading(data, size);
    return 0;
}

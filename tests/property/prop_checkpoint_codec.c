/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoint entries: what was written is read again, whatever it was; a bit that was changed, or an end that was cut
 * off, is always noticed; and what has a right checksum all the same is either refused, or is an entry that keeps all
 * rules, as one flag per number sees them.
 */
#include <base/crc32.h>
#include <codec/checkpoint.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/drive.h>
#include <support/prng.h>

enum { RANGES_MAX = 520, VALUE_MAX = US_CHECKPOINT_VALUE_ROOM(2 * RANGES_MAX) };

struct scene {
    unsalt_core_range_t done[RANGES_MAX], skipped[RANGES_MAX];
    struct us_checkpoint_session session;
    struct us_checkpoint_partition partition;
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[VALUE_MAX];
    size_t key_len, len;
    bool is_session;
    unsigned many; /* percent of lists with hundreds of ranges, whose number takes two bytes */
};

/* Small numbers, and those of any size. */
static uint64_t step(struct prng *prng, uint64_t limit) {
    uint64_t bits = prng_below(prng, prng_chance(prng, 80) ? 9 : 64), n = prng_next(prng) >> (63 - bits);
    return n < limit ? n : limit ? prng_below(prng, limit) : 0;
}

static void draw_key(struct prng *prng, struct scene *s) {
    char topic[US_CHECKPOINT_TOPIC_MAX], id[300];
    size_t topic_len = prng_between(prng, 1, sizeof topic), id_len = prng_between(prng, 1, sizeof id);
    memset(topic, 'a' + (int)prng_below(prng, 26), sizeof topic);
    for (size_t i = 0; i < sizeof id; i++)
        id[i] = (char)prng_next(prng);
    s->key_len = s->is_session ? us_checkpoint_session_key(topic, topic_len, id, id_len, s->key, sizeof s->key)
                               : us_checkpoint_partition_key(topic, topic_len, (int32_t)step(prng, INT32_MAX), s->key,
                                                             sizeof s->key);
    CHECK(s->key_len > 0);
}

/* Ranges of base..last that keep a distance, which go to one list or the other. */
static void draw_ranges(struct prng *prng, struct scene *s, uint64_t base, uint64_t last, bool to_done) {
    unsigned count = (unsigned)prng_below(prng, prng_chance(prng, s->many) ? RANGES_MAX / 2 : 30);
    for (unsigned i = 0; i < count && base <= last; i++) {
        unsalt_core_range_t range;
        range.first = base + step(prng, last - base);
        range.last = range.first + step(prng, last - range.first);
        base = range.last + 2;
        if (to_done && prng_chance(prng, 50))
            s->done[s->session.done_count++] = range;
        else
            s->skipped[s->session.skipped_count++] = range;
        if (last - range.last < 2)
            break;
    }
}

/* Half of them in the era that has no field. */
static uint32_t draw_era(struct prng *prng) {
    return prng_chance(prng, 50) ? 0 : prng_chance(prng, 5) ? UINT32_MAX : 1 + (uint32_t)step(prng, UINT32_MAX);
}

static void draw_session(struct prng *prng, struct scene *s) {
    s->session = (struct us_checkpoint_session){.epoch = step(prng, UINT64_MAX), .cursor = step(prng, UINT64_MAX)};
    s->session.floor = prng_chance(prng, 50) ? 0 : step(prng, s->session.cursor);
    s->session.era = draw_era(prng);
    s->session.done = s->done;
    s->session.skipped = s->skipped;
    if (s->session.cursor > s->session.floor)
        draw_ranges(prng, s, s->session.floor, s->session.cursor - 1, false);
    if (s->session.cursor < UINT64_MAX - 1)
        draw_ranges(prng, s, s->session.cursor + 1, UINT64_MAX - 1, true);
    CHECK_U64(us_checkpoint_write_session(&s->session, s->key, s->key_len, s->value, sizeof s->value, &s->len),
              US_CHECKPOINT_OK);
    CHECK(s->len <= US_CHECKPOINT_VALUE_ROOM(s->session.done_count + s->session.skipped_count));
}

static void draw_partition(struct prng *prng, struct scene *s) {
    uint32_t kept;
    s->session = (struct us_checkpoint_session){0};
    s->partition = (struct us_checkpoint_partition){(int64_t)step(prng, INT64_MAX), s->skipped, 0, 0};
    s->partition.era = draw_era(prng);
    draw_ranges(prng, s, (uint64_t)s->partition.frontier + 1, INT64_MAX, false);
    s->partition.done_count = s->session.skipped_count;
    CHECK_U64(us_checkpoint_write_partition(&s->partition, s->key, s->key_len, s->value, sizeof s->value, &s->len,
                                            &kept),
              US_CHECKPOINT_OK);
    CHECK_U64(kept, s->partition.done_count);
}

static void draw(struct prng *prng, struct scene *s) {
    s->is_session = prng_chance(prng, 60);
    draw_key(prng, s);
    if (s->is_session)
        draw_session(prng, s);
    else
        draw_partition(prng, s);
}

/* From blocks of their own, so that a step beyond an end is noticed. */
static enum us_checkpoint_fault read_copy(const struct scene *s, size_t key_len, size_t len,
                                          struct us_checkpoint_fields *entry, void **key, void **value) {
    *key = malloc(key_len ? key_len : 1);
    *value = malloc(len ? len : 1);
    CHECK(*key && *value);
    memcpy(*key, s->key, key_len);
    memcpy(*value, s->value, len);
    return us_checkpoint_read(*key, key_len, *value, len, entry);
}

static void check_list(const struct us_checkpoint_ranges *list, const unsalt_core_range_t *wanted, uint32_t count) {
    unsalt_core_range_t found[RANGES_MAX];
    CHECK_U64(list->count, count);
    us_checkpoint_ranges_copy(list, found);
    for (uint32_t i = 0; i < count; i++)
        CHECK(found[i].first == wanted[i].first && found[i].last == wanted[i].last);
}

static void check_round_trip(const struct scene *s) {
    struct us_checkpoint_fields entry;
    void *key, *value;
    CHECK_U64(read_copy(s, s->key_len, s->len, &entry, &key, &value), US_CHECKPOINT_OK);
    if (s->is_session) {
        CHECK(entry.epoch == s->session.epoch && entry.cursor == s->session.cursor);
        CHECK_U64(entry.floor, s->session.floor);
        check_list(&entry.done, s->done, s->session.done_count);
        check_list(&entry.skipped, s->skipped, s->session.skipped_count);
    } else {
        CHECK_I64(entry.frontier, s->partition.frontier);
        check_list(&entry.done, s->skipped, s->partition.done_count);
    }
    uint32_t era = s->is_session ? s->session.era : s->partition.era;
    CHECK_U64(entry.era, era);
    CHECK_U64(entry.flags, era ? UNSALT_CHECKPOINT_ERA : 0);
    free(key);
    free(value);
}

TEST(checkpoint_codec, what_was_written_is_read) {
    static struct scene s;
    struct prng prng = prng_start(1);
    s.many = 3;
    for (unsigned i = 0; i < drive_cases(20000); i++) {
        draw(&prng, &s);
        check_round_trip(&s);
    }
}

/* CRC-32 notices every change within 32 bits that follow one another, and so every single bit. */
TEST(checkpoint_codec, every_changed_bit_and_every_cut_is_noticed) {
    static struct scene s;
    struct prng prng = prng_start(2);
    struct us_checkpoint_fields entry;
    for (unsigned i = 0; i < drive_cases(300); i++) {
        draw(&prng, &s);
        for (size_t bit = 0; bit < 8 * (s.key_len + s.len); bit++) {
            uint8_t *byte = bit < 8 * s.key_len ? s.key + bit / 8 : s.value + bit / 8 - s.key_len;
            *byte ^= (uint8_t)(1 << bit % 8);
            CHECK(us_checkpoint_is_corrupt(us_checkpoint_read(s.key, s.key_len, s.value, s.len, &entry)));
            *byte ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < s.len; cut++) {
            void *key, *value;
            CHECK(us_checkpoint_is_corrupt(read_copy(&s, s.key_len, cut, &entry, &key, &value)));
            free(key);
            free(value);
        }
    }
}

static void seal(struct scene *s) {
    uint32_t sum = us_crc32(us_crc32(us_crc32(0, s->key, s->key_len), s->value, 1), s->value + 5, s->len - 5);
    for (int i = 0; i < 4; i++)
        s->value[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
}

/* Ascending, above `base`, with a distance. */
static void check_rules(struct us_checkpoint_ranges list, uint64_t base, uint64_t last, uint64_t cursor) {
    unsalt_core_range_t range;
    bool is_first = true;
    uint64_t before = 0;
    while (us_checkpoint_ranges_next(&list, &range)) {
        CHECK(range.first >= base && range.first <= range.last && range.last <= last);
        CHECK(is_first || range.first - before >= 2);
        CHECK(cursor < range.first || cursor > range.last);
        before = range.last;
        base = range.last;
        is_first = false;
    }
}

static void check_no_overlap(const struct us_checkpoint_fields *entry) {
    struct us_checkpoint_ranges a = entry->done;
    unsalt_core_range_t x, y;
    while (us_checkpoint_ranges_next(&a, &x)) {
        struct us_checkpoint_ranges b = entry->skipped;
        while (us_checkpoint_ranges_next(&b, &y))
            CHECK(x.last < y.first || y.last < x.first);
    }
}

TEST(checkpoint_codec, what_was_changed_and_sealed_again_keeps_the_rules_or_is_refused) {
    static struct scene s;
    struct prng prng = prng_start(3);
    struct us_checkpoint_fields entry;
    unsigned good = 0, cases = drive_cases(60000);
    for (unsigned i = 0; i < cases; i++) {
        draw(&prng, &s);
        for (uint64_t n = prng_between(&prng, 1, 3); n; n--)
            s.value[prng_between(&prng, 5, s.len - 1)] = (uint8_t)(prng_next(&prng) >> prng_below(&prng, 8));
        seal(&s);
        void *key, *value;
        if (read_copy(&s, s.key_len, s.len, &entry, &key, &value) == US_CHECKPOINT_OK) {
            good++;
            CHECK(entry.cursor < UINT64_MAX && entry.floor <= entry.cursor && entry.frontier >= 0);
            uint64_t base = s.is_session ? entry.cursor : (uint64_t)entry.frontier;
            check_rules(entry.done, base + 1, s.is_session ? UINT64_MAX - 1 : INT64_MAX, base);
            check_rules(entry.skipped, entry.floor, UINT64_MAX - 1, entry.cursor);
            check_no_overlap(&entry);
            CHECK((entry.era != 0) == ((entry.flags & UNSALT_CHECKPOINT_ERA) != 0));
        }
        free(key);
        free(value);
    }
    CHECK_THAT(good > cases / 10 && good < cases, "%u of %u were in order", good, cases);
}

/* Whatever the room is: the value fits, has the lowest ranges, says if some are missing, and no other one would fit. */
TEST(checkpoint_codec, a_partition_has_as_many_ranges_as_there_is_room_for) {
    static struct scene s, cut;
    struct prng prng = prng_start(4);
    s.many = 10;
    for (unsigned i = 0; i < drive_cases(300); i++) {
        s.is_session = false;
        draw_key(&prng, &s);
        draw_partition(&prng, &s);
        uint32_t kept = 0, before = 0;
        for (size_t size = 21; size <= s.len; size++, before = kept) {
            struct us_checkpoint_fields entry;
            CHECK_U64(us_checkpoint_write_partition(&s.partition, s.key, s.key_len, cut.value, size, &cut.len, &kept),
                      US_CHECKPOINT_OK);
            CHECK(cut.len <= size && kept >= before && kept <= s.partition.done_count);
            CHECK_U64(us_checkpoint_read(s.key, s.key_len, cut.value, cut.len, &entry), US_CHECKPOINT_OK);
            CHECK_U64(entry.flags & UNSALT_CHECKPOINT_TRUNCATED, kept < s.partition.done_count);
            CHECK_U64(entry.era, s.partition.era);
            check_list(&entry.done, s.skipped, kept);
            if (kept == s.partition.done_count)
                continue;
            struct us_checkpoint_partition more = s.partition;
            more.done_count = kept + 1;
            CHECK_U64(us_checkpoint_write_partition(&more, s.key, s.key_len, cut.value, sizeof cut.value, &cut.len,
                                                    &kept),
                      US_CHECKPOINT_OK);
            CHECK(cut.len > size);
            kept--;
        }
        CHECK(s.len < 21 || kept == s.partition.done_count);
    }
}

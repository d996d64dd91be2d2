/* SPDX-License-Identifier: BSD-2-Clause */
/* What the vectors of the page (test_checkpoint_page.c) don't say: limits, room, and what is left untouched. */
#include <codec/checkpoint.h>
#include <support/check.h>

static const char topic[] = "orders";
static const char id[] = "order-17";

static size_t session_key(uint8_t *key) {
    return us_checkpoint_session_key(topic, 6, id, 8, key, UNSALT_CHECKPOINT_KEY_MAX);
}

static size_t partition_key(uint8_t *key) {
    return us_checkpoint_partition_key(topic, 6, 3, key, UNSALT_CHECKPOINT_KEY_MAX);
}

TEST(checkpoint_codec, a_key_of_the_greatest_lengths) {
    static uint8_t key[UNSALT_CHECKPOINT_KEY_MAX];
    static char long_topic[US_CHECKPOINT_TOPIC_MAX + 1], long_id[US_CHECKPOINT_SESSION_MAX + 1];
    struct us_checkpoint_fields entry;
    memset(long_topic, 't', sizeof long_topic);
    memset(long_id, '\xff', sizeof long_id);
    size_t len = us_checkpoint_session_key(long_topic, US_CHECKPOINT_TOPIC_MAX, long_id, US_CHECKPOINT_SESSION_MAX,
                                           key, sizeof key);
    CHECK_U64(len, UNSALT_CHECKPOINT_KEY_MAX);
    CHECK(us_checkpoint_read(key, len, NULL, 0, &entry) == US_CHECKPOINT_GONE);
    CHECK_BYTES(entry.topic, entry.topic_len, long_topic, US_CHECKPOINT_TOPIC_MAX);
    CHECK_BYTES(entry.session, entry.session_len, long_id, US_CHECKPOINT_SESSION_MAX);
    key[1]--; /* the topic's last letter becomes one of the id, which is too long then */
    CHECK(us_checkpoint_read(key, len, NULL, 0, &entry) == US_CHECKPOINT_KEY);
}

TEST(checkpoint_codec, a_key_out_of_range_is_not_written) {
    static uint8_t key[UNSALT_CHECKPOINT_KEY_MAX + 100];
    static char much[US_CHECKPOINT_SESSION_MAX + 1];
    CHECK_U64(us_checkpoint_session_key(topic, 0, id, 8, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_session_key(much, US_CHECKPOINT_TOPIC_MAX + 1, id, 8, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_session_key(topic, 6, id, 0, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_session_key(topic, 6, much, US_CHECKPOINT_SESSION_MAX + 1, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_session_key(topic, SIZE_MAX, id, SIZE_MAX, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_session_key(topic, 6, id, 8, key, 15), 0);
    CHECK_U64(us_checkpoint_session_key(topic, 6, id, 8, NULL, 0), 0);
    CHECK_U64(us_checkpoint_partition_key(topic, 0, 3, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_partition_key(much, US_CHECKPOINT_TOPIC_MAX + 1, 3, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_partition_key(topic, 6, -1, key, sizeof key), 0);
    CHECK_U64(us_checkpoint_partition_key(topic, 6, 3, key, 11), 0);
    for (size_t i = 0; i < sizeof key; i++)
        CHECK_U64(key[i], 0);
    CHECK_U64(us_checkpoint_session_key(topic, 6, id, 8, key, 16), 16);
    CHECK_U64(us_checkpoint_partition_key(topic, 6, 3, key, 12), 12);
}

/* The epoch of unsalt's own producer, 34 thousand million records. */
TEST(checkpoint_codec, an_ordinary_session_takes_24_bytes) {
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[24];
    struct us_checkpoint_session session = {.epoch = UINT64_C(1767225600000) << 20, .cursor = UINT64_C(1) << 35};
    size_t key_len = session_key(key), len = 0;
    session.cursor--;
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, sizeof value, &len) == US_CHECKPOINT_OK);
    CHECK(len <= 24);
}

static void check_refused(const struct us_checkpoint_session *session, enum us_checkpoint_fault wanted) {
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[256] = {0};
    size_t key_len = session_key(key), len = 4711;
    enum us_checkpoint_fault fault = us_checkpoint_write_session(session, key, key_len, value, sizeof value, &len);
    CHECK_THAT(fault == wanted, "%s, not %s", us_checkpoint_fault_text(fault), us_checkpoint_fault_text(wanted));
    CHECK_U64(len, 4711);
    for (size_t i = 0; i < sizeof value; i++)
        CHECK_U64(value[i], 0);
}

static void check_done_refused(uint64_t cursor, const unsalt_core_range_t *done, uint32_t count) {
    struct us_checkpoint_session session = {.cursor = cursor, .done = done, .done_count = count};
    check_refused(&session, US_CHECKPOINT_RANGE);
}

static void check_skipped_refused(const unsalt_core_range_t *skipped, uint32_t count, enum us_checkpoint_fault fault) {
    static const unsalt_core_range_t done[] = {{103, 105}, {110, 110}};
    struct us_checkpoint_session session = {.cursor = 100, .floor = 10};
    session.done = done;
    session.done_count = 2;
    session.skipped = skipped;
    session.skipped_count = count;
    check_refused(&session, fault);
}

TEST(checkpoint_codec, what_a_reader_would_refuse_is_not_written) {
    check_refused(&(struct us_checkpoint_session){.cursor = UINT64_MAX}, US_CHECKPOINT_CURSOR);
    check_refused(&(struct us_checkpoint_session){.cursor = 5, .floor = 6}, US_CHECKPOINT_FLOOR);
    check_done_refused(5, (unsalt_core_range_t[]){{5, 6}}, 1);
    check_done_refused(5, (unsalt_core_range_t[]){{3, 3}}, 1);
    check_done_refused(5, (unsalt_core_range_t[]){{9, 8}}, 1);
    check_done_refused(5, (unsalt_core_range_t[]){{9, 12}, {12, 13}}, 2);
    check_done_refused(5, (unsalt_core_range_t[]){{9, 12}, {7, 7}}, 2);
    check_done_refused(5, (unsalt_core_range_t[]){{9, UINT64_MAX}}, 1);
    check_done_refused(5, (unsalt_core_range_t[]){{9, UINT64_MAX - 1}, {UINT64_MAX, UINT64_MAX}}, 2);
    check_skipped_refused((unsalt_core_range_t[]){{9, 9}, {8, 8}}, 2, US_CHECKPOINT_RANGE);
    check_skipped_refused((unsalt_core_range_t[]){{20, 20}, {20, 21}}, 2, US_CHECKPOINT_RANGE);
    check_skipped_refused((unsalt_core_range_t[]){{100, 100}}, 1, US_CHECKPOINT_OVERLAP);
    check_skipped_refused((unsalt_core_range_t[]){{50, 60}, {98, 101}}, 2, US_CHECKPOINT_OVERLAP);
    check_skipped_refused((unsalt_core_range_t[]){{102, 103}}, 1, US_CHECKPOINT_OVERLAP);
    check_skipped_refused((unsalt_core_range_t[]){{106, 109}, {110, 110}}, 2, US_CHECKPOINT_OVERLAP);
    check_skipped_refused((unsalt_core_range_t[]){{101, 200}}, 1, US_CHECKPOINT_OVERLAP);
    check_skipped_refused((unsalt_core_range_t[]){{104, 104}}, 1, US_CHECKPOINT_OVERLAP);
}

TEST(checkpoint_codec, a_partition_that_a_reader_would_refuse_is_not_written) {
    static const unsalt_core_range_t at_frontier = {7, 9}, beyond = {9, (uint64_t)INT64_MAX + 1};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[64] = {0};
    size_t key_len = partition_key(key), len = 4711;
    uint32_t kept = 4711;
    struct us_checkpoint_partition partition = {.frontier = -1};
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 64, &len, &kept) == US_CHECKPOINT_CURSOR);
    partition = (struct us_checkpoint_partition){7, &at_frontier, 1, 0};
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 64, &len, &kept) == US_CHECKPOINT_RANGE);
    partition.done = &beyond;
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 64, &len, &kept) == US_CHECKPOINT_RANGE);
    CHECK(len == 4711 && kept == 4711);
    for (size_t i = 0; i < sizeof value; i++)
        CHECK_U64(value[i], 0);
}

TEST(checkpoint_codec, a_value_goes_under_a_key_of_its_kind) {
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], other[UNSALT_CHECKPOINT_KEY_MAX], value[64];
    size_t key_len = session_key(key), other_len = partition_key(other), len;
    uint32_t kept;
    struct us_checkpoint_session session = {.cursor = 1};
    struct us_checkpoint_partition partition = {.frontier = 1};
    CHECK(us_checkpoint_write_session(&session, other, other_len, value, 64, &len) == US_CHECKPOINT_KEY);
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 64, &len, &kept) == US_CHECKPOINT_KEY);
    CHECK(us_checkpoint_write_session(&session, key, 0, value, 64, &len) == US_CHECKPOINT_KEY);
    CHECK(us_checkpoint_write_session(&session, "T\6orders1", 9, value, 64, &len) == US_CHECKPOINT_KEY);
}

TEST(checkpoint_codec, without_room_the_length_is_told) {
    static const unsalt_core_range_t done[] = {{12, 40}, {1000, 1000}}, skipped[] = {{1, 9}};
    struct us_checkpoint_session session = {.epoch = 77, .cursor = 10, .floor = 1, .era = 300};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[US_CHECKPOINT_VALUE_ROOM(3)] = {0};
    size_t key_len = session_key(key), needed = 0, len;
    session.done = done;
    session.done_count = 2;
    session.skipped = skipped;
    session.skipped_count = 1;
    CHECK(us_checkpoint_write_session(&session, key, key_len, NULL, 0, &needed) == US_CHECKPOINT_ROOM);
    for (size_t size = 0; size < needed; size++) {
        CHECK(us_checkpoint_write_session(&session, key, key_len, value, size, &len) == US_CHECKPOINT_ROOM);
        CHECK_U64(len, needed);
        CHECK_U64(value[0], 0);
    }
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, needed, &len) == US_CHECKPOINT_OK);
    CHECK_U64(len, needed);
}

/* How much longer the era makes a value of this kind; both are read again. */
static size_t era_bytes(bool is_session, uint32_t era) {
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[64];
    size_t key_len = is_session ? session_key(key) : partition_key(key), lens[2];
    for (int i = 0; i < 2; i++) {
        struct us_checkpoint_session session = {.epoch = 7, .cursor = 5, .era = i ? era : 0};
        struct us_checkpoint_partition partition = {.frontier = 5, .era = i ? era : 0};
        struct us_checkpoint_fields entry;
        uint32_t kept;
        enum us_checkpoint_fault fault =
            is_session ? us_checkpoint_write_session(&session, key, key_len, value, sizeof value, &lens[i])
                       : us_checkpoint_write_partition(&partition, key, key_len, value, sizeof value, &lens[i], &kept);
        CHECK_U64(fault, US_CHECKPOINT_OK);
        CHECK_U64(us_checkpoint_read(key, key_len, value, lens[i], &entry), US_CHECKPOINT_OK);
        CHECK_U64(entry.era, session.era);
        CHECK_U64(entry.flags, session.era ? UNSALT_CHECKPOINT_ERA : 0);
    }
    return lens[1] - lens[0];
}

TEST(checkpoint_codec, an_era_takes_room_from_1_on) {
    for (int is_session = 0; is_session < 2; is_session++) {
        CHECK_U64(era_bytes(is_session, 0), 0);
        CHECK_U64(era_bytes(is_session, 1), 1);
        CHECK_U64(era_bytes(is_session, 127), 1);
        CHECK_U64(era_bytes(is_session, 128), 2);
        CHECK_U64(era_bytes(is_session, UINT32_MAX), 5);
    }
}

/* The greatest numbers in every field. */
TEST(checkpoint_codec, the_promised_room_is_enough_with_an_era) {
    static const unsalt_core_range_t skipped = {0, (UINT64_C(1) << 63) - 1};
    struct us_checkpoint_session session = {
        .epoch = UINT64_MAX, .cursor = UINT64_MAX - 1, .skipped = &skipped, .skipped_count = 1, .era = UINT32_MAX};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[US_CHECKPOINT_VALUE_ROOM(1)];
    size_t key_len = session_key(key), len;
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, sizeof value, &len) == US_CHECKPOINT_OK);
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, len - 1, &len) == US_CHECKPOINT_ROOM);
    session.floor = session.cursor;
    session.skipped_count = 0;
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, US_CHECKPOINT_VALUE_ROOM(0), &len) ==
          US_CHECKPOINT_OK);
    CHECK_U64(len, 6 + 10 + 10 + 10 + 1 + 1 + 5);
}

TEST(checkpoint_codec, ranges_that_adjoin_are_joined) {
    static const unsalt_core_range_t parts[] = {{6, 6}, {7, 9}, {10, 10}, {12, 12}, {13, 20}};
    static const unsalt_core_range_t whole[] = {{6, 10}, {12, 20}};
    struct us_checkpoint_session session = {.cursor = 5, .done = parts, .done_count = 5};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], a[64], b[64];
    size_t key_len = session_key(key), a_len, b_len;
    CHECK(us_checkpoint_write_session(&session, key, key_len, a, sizeof a, &a_len) == US_CHECKPOINT_OK);
    session.done = whole;
    session.done_count = 2;
    CHECK(us_checkpoint_write_session(&session, key, key_len, b, sizeof b, &b_len) == US_CHECKPOINT_OK);
    CHECK_BYTES(a, a_len, b, b_len);
}

/* A late record from below the floor may be in the application's hands. */
TEST(checkpoint_codec, what_was_skipped_below_the_floor_goes_without_saying) {
    static const unsalt_core_range_t skipped[] = {{1, 2}, {9, 9}, {10, 30}, {40, 40}}, rest[] = {{20, 30}, {40, 40}};
    struct us_checkpoint_session session = {.cursor = 50, .floor = 20, .skipped = skipped, .skipped_count = 4};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], a[64], b[64];
    size_t key_len = session_key(key), a_len, b_len;
    CHECK(us_checkpoint_write_session(&session, key, key_len, a, sizeof a, &a_len) == US_CHECKPOINT_OK);
    session.skipped = rest;
    session.skipped_count = 2;
    CHECK(us_checkpoint_write_session(&session, key, key_len, b, sizeof b, &b_len) == US_CHECKPOINT_OK);
    CHECK_BYTES(a, a_len, b, b_len);
    session.skipped = skipped;
    session.floor = 41;
    CHECK(us_checkpoint_write_session(&session, key, key_len, a, sizeof a, &a_len) == US_CHECKPOINT_OK);
    CHECK_U64(a[a_len - 1], 0);
}

/* An event names the session whose entry is broken; nothing else of such an entry comes out. */
TEST(checkpoint_codec, a_fault_gives_the_key_and_nothing_else) {
    static const unsalt_core_range_t done = {7, 9};
    struct us_checkpoint_session session = {
        .epoch = 7, .cursor = 5, .floor = 2, .done = &done, .done_count = 1, .era = 9};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[64];
    size_t key_len = session_key(key), len;
    struct us_checkpoint_fields entry;
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, sizeof value, &len) == US_CHECKPOINT_OK);
    for (size_t i = 0; i < len; i++) {
        value[i] ^= 0x10;
        memset(&entry, 0xee, sizeof entry);
        CHECK(us_checkpoint_read(key, key_len, value, len, &entry) == US_CHECKPOINT_CHECKSUM);
        CHECK(entry.kind == UNSALT_CHECKPOINT_SESSION && entry.epoch == 0 && entry.cursor == 0 && entry.floor == 0);
        CHECK(entry.done.count == 0 && entry.skipped.count == 0 && entry.flags == 0 && entry.era == 0);
        CHECK_BYTES(entry.topic, entry.topic_len, topic, 6);
        CHECK_BYTES(entry.session, entry.session_len, id, 8);
        value[i] ^= 0x10;
    }
    memset(&entry, 0xee, sizeof entry);
    CHECK(us_checkpoint_read("S", 1, value, len, &entry) == US_CHECKPOINT_KEY);
    CHECK(entry.kind == 0 && entry.topic == NULL && entry.session == NULL && entry.cursor == 0);
    CHECK(us_checkpoint_read(NULL, 0, NULL, 0, &entry) == US_CHECKPOINT_KEY);
}

TEST(checkpoint_codec, a_list_can_be_read_again) {
    static const unsalt_core_range_t done[] = {{7, 9}, {11, 11}};
    struct us_checkpoint_session session = {.cursor = 5, .done = done, .done_count = 2};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[64];
    size_t key_len = session_key(key), len;
    struct us_checkpoint_fields entry;
    unsalt_core_range_t range;
    CHECK(us_checkpoint_write_session(&session, key, key_len, value, sizeof value, &len) == US_CHECKPOINT_OK);
    CHECK(us_checkpoint_read(key, key_len, value, len, &entry) == US_CHECKPOINT_OK);
    for (int round = 0; round < 2; round++) {
        struct us_checkpoint_ranges list = entry.done;
        for (int i = 0; i < 2; i++) {
            CHECK(us_checkpoint_ranges_next(&list, &range));
            CHECK(range.first == done[i].first && range.last == done[i].last);
        }
        CHECK(!us_checkpoint_ranges_next(&list, &range) && !us_checkpoint_ranges_next(&list, &range));
    }
    CHECK(!us_checkpoint_ranges_next(&entry.skipped, &range));
}

TEST(checkpoint_codec, a_partition_without_any_room_is_refused) {
    static const unsalt_core_range_t done[] = {{300, 302}, {400, 900}};
    struct us_checkpoint_partition partition = {200, done, 2, 0};
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX], value[64] = {0};
    size_t key_len = partition_key(key), len = 0;
    uint32_t kept = 4711;
    for (size_t size = 0; size < 9; size++) {
        CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, size, &len, &kept) == US_CHECKPOINT_ROOM);
        CHECK_U64(len, 9);
        CHECK(kept == 4711 && value[0] == 0);
    }
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 9, &len, &kept) == US_CHECKPOINT_OK);
    CHECK(len == 9 && kept == 0 && (value[5] & UNSALT_CHECKPOINT_TRUNCATED));
    partition.era = 200; /* two bytes, and the era is the last thing that is left out */
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 10, &len, &kept) == US_CHECKPOINT_ROOM);
    CHECK_U64(len, 11);
    CHECK(us_checkpoint_write_partition(&partition, key, key_len, value, 11, &len, &kept) == US_CHECKPOINT_OK);
    CHECK(len == 11 && kept == 0 && value[5] == (UNSALT_CHECKPOINT_TRUNCATED | UNSALT_CHECKPOINT_ERA));
}

TEST(checkpoint_codec, faults_have_texts_and_classes) {
    CHECK_STR(us_checkpoint_fault_text(US_CHECKPOINT_SHORT), "the value ends too early");
    CHECK_STR(us_checkpoint_fault_text(US_CHECKPOINT__CNT), "?");
    int corrupt = 0;
    for (int i = 0; i < US_CHECKPOINT__CNT; i++)
        corrupt += us_checkpoint_is_corrupt((enum us_checkpoint_fault)i);
    CHECK_U64(corrupt, US_CHECKPOINT__CNT - 4);
    CHECK(!us_checkpoint_is_corrupt(US_CHECKPOINT_OK) && !us_checkpoint_is_corrupt(US_CHECKPOINT_GONE));
    CHECK(!us_checkpoint_is_corrupt(US_CHECKPOINT_NEWER) && !us_checkpoint_is_corrupt(US_CHECKPOINT_ROOM));
}

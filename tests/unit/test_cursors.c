/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/cursors.h>
#include <stdio.h>
#include <support/check.h>
#include <support/failmem.h>

static bool put(struct us_cursors *cursors, uint32_t set, const char *id, uint64_t epoch, uint64_t cursor) {
    const struct us_cursor value = {epoch, cursor, cursor / 2};
    return us_cursors_put(cursors, &us_mem_default, set, id, (uint32_t)strlen(id), &value);
}

static bool take(struct us_cursors *cursors, uint32_t set, const char *id, uint64_t epoch, uint64_t cursor) {
    struct us_cursor found = {77, 78, 79};
    if (!us_cursors_take(cursors, set, id, (uint32_t)strlen(id), &found)) {
        CHECK_U64(found.epoch, 77);
        CHECK_U64(found.cursor, 78);
        CHECK_U64(found.floor, 79);
        return false;
    }
    CHECK_U64(found.epoch, epoch);
    CHECK_U64(found.cursor, cursor);
    CHECK_U64(found.floor, cursor / 2);
    return true;
}

TEST(cursors, an_entry_is_40_bytes) {
    CHECK_U64(sizeof(struct us_cursor_entry), 40);
}

TEST(cursors, remembers_until_taken) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 100, 1);
    CHECK(!take(&cursors, 0, "room", 0, 0));
    CHECK(put(&cursors, 0, "room", 3, 1000));
    CHECK(put(&cursors, 0, "hall", 4, UINT64_MAX - 1));
    CHECK(take(&cursors, 0, "room", 3, 1000));
    CHECK(!take(&cursors, 0, "room", 3, 1000));
    CHECK(take(&cursors, 0, "hall", 4, UINT64_MAX - 1));
    CHECK_U64(cursors.count, 0);
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, the_same_id_in_two_sets_is_two_sessions) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 100, 1);
    static const uint32_t sets[] = {0, 1, UINT32_MAX - 1, UINT32_MAX};
    for (uint64_t i = 0; i < 4; i++)
        CHECK(put(&cursors, sets[i], "room", i, i + 10));
    for (uint64_t i = 0; i < 4; i++)
        CHECK(take(&cursors, sets[i], "room", i, i + 10));
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, a_second_put_replaces) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 1, 1);
    CHECK(put(&cursors, 0, "room", 1, 10));
    CHECK(put(&cursors, 0, "room", 2, 5)); /* full, yet it can't fail */
    CHECK_U64(cursors.count, 1);
    CHECK(take(&cursors, 0, "room", 2, 5));
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, full_is_refused_and_changes_nothing) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 50, 1);
    char id[16];
    for (uint64_t i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "s%d", (int)i);
        CHECK(put(&cursors, 0, id, i, i));
    }
    CHECK(!put(&cursors, 0, "one more", 0, 0));
    CHECK_U64(cursors.count, 50);
    CHECK(take(&cursors, 0, "s7", 7, 7));
    CHECK(put(&cursors, 0, "one more", 0, 0));
    us_cursors_destroy(&cursors, &us_mem_default);
    us_cursors_init(&cursors, 0, 1);
    CHECK(!put(&cursors, 0, "any", 0, 0));
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, a_set_is_dropped_whole_and_alone) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 100000, 5);
    char id[16];
    for (uint64_t i = 0; i < 3000; i++) {
        snprintf(id, sizeof id, "s%d", (int)i);
        CHECK(put(&cursors, i % 3 == 0 ? UINT32_MAX : 8, id, i, i));
    }
    us_cursors_drop_set(&cursors, 4);
    CHECK_U64(cursors.count, 3000);
    us_cursors_drop_set(&cursors, 8);
    CHECK_U64(cursors.count, 1000);
    for (uint64_t i = 0; i < 3000; i++) {
        snprintf(id, sizeof id, "s%d", (int)i);
        CHECK(!take(&cursors, 8, id, i, i));
        CHECK(take(&cursors, UINT32_MAX, id, i, i) == (i % 3 == 0));
    }
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, ids_are_bytes) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 100, 1);
    struct us_cursor cursor = {1, 1, 0};
    CHECK(us_cursors_put(&cursors, &us_mem_default, 0, "a\0b", 3, &cursor));
    CHECK(!us_cursors_take(&cursors, 0, "a\0c", 3, &cursor));
    CHECK(!us_cursors_take(&cursors, 0, "a", 1, &cursor));
    CHECK(us_cursors_take(&cursors, 0, "a\0b", 3, &cursor));
    us_cursors_destroy(&cursors, &us_mem_default);
}

/* Ids are not kept, so an entry counts only if both hashes and the set are the session's. */
TEST(cursors, every_part_of_an_entry_is_compared) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 100, 1);
    CHECK(put(&cursors, 0, "room", 1, 10));
    struct us_cursor_entry *entry = cursors.entries;
    while (!entry->check)
        entry++;
    CHECK(entry->check & 1);
    entry->check ^= 2;
    CHECK(!take(&cursors, 0, "room", 1, 10));
    entry->check ^= 2;
    entry->set = 5;
    CHECK(!take(&cursors, 0, "room", 1, 10));
    entry->set = 0;
    entry->hash ^= UINT64_C(1) << 63;
    CHECK(!take(&cursors, 0, "room", 1, 10));
    entry->hash ^= UINT64_C(1) << 63;
    CHECK(take(&cursors, 0, "room", 1, 10));
    us_cursors_destroy(&cursors, &us_mem_default);
}

TEST(cursors, memory_is_bounded_by_max) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_cursors cursors;
    us_cursors_init(&cursors, 10000, 1);
    for (uint32_t i = 0; i < 30000; i++)
        CHECK(us_cursors_put(&cursors, &fail.mem, 0, &i, sizeof i, &(struct us_cursor){0, i, 0}) == (i < 10000));
    CHECK_THAT(fail.bytes <= 16384 * sizeof(struct us_cursor_entry), "%zu bytes", fail.bytes);
    us_cursors_destroy(&cursors, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/seqset.h>
#include <support/check.h>
#include <support/failmem.h>

static bool add(struct us_seqset *set, uint64_t seq) {
    CHECK(us_seqset_reserve(set, &us_mem_default, 1));
    return us_seqset_add(set, seq);
}

TEST(seqset, an_empty_set_has_nothing) {
    struct us_seqset set = {0};
    CHECK(!us_seqset_has(&set, 0));
    CHECK(!us_seqset_has(&set, UINT64_MAX));
    CHECK(!us_seqset_remove(&set, 1));
    us_seqset_destroy(&set, &us_mem_default);
}

TEST(seqset, adds_once_and_removes_once) {
    struct us_seqset set = {0};
    CHECK(add(&set, 17));
    CHECK(!add(&set, 17));
    CHECK(us_seqset_has(&set, 17));
    CHECK(!us_seqset_has(&set, 16));
    CHECK(!us_seqset_has(&set, 17 + 64));
    CHECK(us_seqset_remove(&set, 17));
    CHECK(!us_seqset_remove(&set, 17));
    CHECK(!us_seqset_has(&set, 17));
    us_seqset_destroy(&set, &us_mem_default);
}

TEST(seqset, takes_the_ends_of_the_number_range) {
    struct us_seqset set = {0};
    static const uint64_t ends[] = {0, 63, 64, UINT64_MAX - 64, UINT64_MAX - 63, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        CHECK(add(&set, ends[i]));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        CHECK(!add(&set, ends[i]));
    CHECK(!us_seqset_has(&set, 1));
    CHECK(!us_seqset_has(&set, UINT64_MAX - 2));
    us_seqset_destroy(&set, &us_mem_default);
}

TEST(seqset, an_emptied_word_frees_its_slot) {
    struct us_seqset set = {0};
    for (uint64_t seq = 0; seq < 64; seq++)
        CHECK(add(&set, seq));
    CHECK_U64(set.used, 1);
    for (uint64_t seq = 0; seq < 64; seq++)
        CHECK(us_seqset_remove(&set, seq));
    CHECK_U64(set.used, 0);
    us_seqset_destroy(&set, &us_mem_default);
}

TEST(seqset, memory_follows_what_is_held_not_what_passed) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_seqset set = {0};
    for (uint64_t seq = 0; seq < 1000000; seq++) {
        CHECK(us_seqset_reserve(&set, &fail.mem, 1));
        CHECK(us_seqset_add(&set, seq * 1000));
        if (seq >= 100)
            CHECK(us_seqset_remove(&set, (seq - 100) * 1000));
    }
    CHECK_U64(set.used, 100);
    CHECK_THAT(fail.bytes <= 256 * sizeof(struct us_seqset_word), "%zu bytes", fail.bytes);
    us_seqset_destroy(&set, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

TEST(seqset, dense_numbers_cost_a_quarter_of_a_byte_or_two) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_seqset set = {0};
    for (uint64_t seq = 0; seq < 1000000; seq++) {
        CHECK(us_seqset_reserve(&set, &fail.mem, 1));
        CHECK(us_seqset_add(&set, seq));
    }
    CHECK_THAT(fail.bytes <= 1000000, "%zu bytes", fail.bytes);
    us_seqset_destroy(&set, &fail.mem);
}

TEST(seqset, one_reserve_covers_many_scattered_adds) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_seqset set = {.seed = 12345};
    CHECK(us_seqset_reserve(&set, &fail.mem, 1000));
    uint64_t calls = fail.calls;
    for (uint64_t i = 0; i < 1000; i++)
        CHECK(us_seqset_add(&set, i << 40));
    CHECK_U64(fail.calls, calls);
    CHECK_U64(set.used, 1000);
    us_seqset_destroy(&set, &fail.mem);
    CHECK_U64(set.seed, 12345);
    CHECK(failmem_is_balanced(&fail));
}

/* Such numbers would share a slot under identity hashing, and this would run into the time limit. */
TEST(seqset, chosen_numbers_do_not_pile_up) {
    struct us_seqset set = {.seed = 99};
    const uint64_t count = 200000;
    for (uint64_t i = 0; i < count; i++)
        CHECK(add(&set, i << 44));
    for (uint64_t i = 0; i < count; i++)
        CHECK(us_seqset_remove(&set, i << 44));
    CHECK_U64(set.used, 0);
    us_seqset_destroy(&set, &us_mem_default);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/skips.h>
#include <support/check.h>
#include <support/failmem.h>

static void add(struct us_skips *skips, uint32_t max, uint64_t first, uint64_t last) {
    us_skips_add(skips, &us_mem_default, max, first, last);
}

static bool take(struct us_skips *skips, uint32_t max, uint64_t seq) {
    return us_skips_take(skips, &us_mem_default, max, seq);
}

TEST(skips, nothing_was_skipped_at_first) {
    struct us_skips skips = {0};
    CHECK(!us_skips_has(&skips, 0));
    CHECK(!us_skips_has(&skips, UINT64_MAX));
    CHECK(!take(&skips, 4, 5));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, a_number_is_taken_once) {
    struct us_skips skips = {0};
    add(&skips, 8, 10, 20);
    static const uint64_t order[] = {15, 10, 20, 11, 19, 12, 18, 13, 14, 16, 17};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        CHECK(us_skips_has(&skips, order[i]));
        CHECK(take(&skips, 8, order[i]));
        CHECK(!us_skips_has(&skips, order[i]));
        CHECK(!take(&skips, 8, order[i]));
    }
    CHECK_U64(skips.count, 0);
    CHECK_U64(skips.floor, 0);
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, the_numbers_beside_a_range_were_not_skipped) {
    struct us_skips skips = {0};
    add(&skips, 8, 10, 20);
    add(&skips, 8, 30, 30);
    static const uint64_t beside[] = {9, 21, 29, 31};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        CHECK(!us_skips_has(&skips, beside[i]));
        CHECK(!take(&skips, 8, beside[i]));
    }
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, adjacent_ranges_are_one) {
    struct us_skips skips = {0};
    add(&skips, 1, 10, 20);
    add(&skips, 1, 21, 30);
    CHECK_U64(skips.count, 1);
    CHECK_U64(skips.floor, 0);
    CHECK(us_skips_has(&skips, 10));
    CHECK(us_skips_has(&skips, 30));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, the_oldest_range_is_forgotten_first) {
    struct us_skips skips = {0};
    add(&skips, 2, 10, 20);
    add(&skips, 2, 30, 40);
    add(&skips, 2, 50, 60);
    CHECK_U64(skips.count, 2);
    CHECK_U64(skips.floor, 21);
    CHECK(us_skips_has(&skips, 5)); /* unknown counts as skipped */
    CHECK(take(&skips, 2, 5));
    CHECK(take(&skips, 2, 5));
    CHECK(!us_skips_has(&skips, 21));
    CHECK(us_skips_has(&skips, 30));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, a_split_over_the_limit_forgets_the_oldest) {
    struct us_skips skips = {0};
    add(&skips, 2, 10, 20);
    add(&skips, 2, 30, 40);
    CHECK(take(&skips, 2, 35));
    CHECK_U64(skips.floor, 21);
    CHECK_U64(skips.count, 2);
    CHECK(us_skips_has(&skips, 34));
    CHECK(!us_skips_has(&skips, 35));
    CHECK(us_skips_has(&skips, 36));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, a_split_of_the_only_range_forgets_its_lower_half) {
    struct us_skips skips = {0};
    add(&skips, 1, 10, 20);
    CHECK(take(&skips, 1, 15));
    CHECK_U64(skips.count, 1);
    CHECK_U64(skips.floor, 15);
    CHECK(!us_skips_has(&skips, 15));
    CHECK(us_skips_has(&skips, 16));
    CHECK(us_skips_has(&skips, 14));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, huge_ranges_cost_nothing) {
    struct us_skips skips = {0};
    add(&skips, 4, 1, UINT64_MAX - 2);
    CHECK(take(&skips, 4, UINT64_C(1) << 40));
    CHECK_U64(skips.count, 2);
    CHECK(us_skips_has(&skips, UINT64_MAX - 2));
    CHECK(!us_skips_has(&skips, UINT64_MAX - 1));
    us_skips_destroy(&skips, &us_mem_default);
}

TEST(skips, without_memory_the_newest_is_forgotten_too) {
    struct failmem fail;
    failmem_init(&fail);
    failmem_arm(&fail, 1, true);
    struct us_skips skips = {0};
    us_skips_add(&skips, &fail.mem, 8, 10, 20);
    CHECK_U64(skips.count, 0);
    CHECK_U64(skips.floor, 21);
    CHECK_U64(fail.failed, 1);
    CHECK(us_skips_has(&skips, 15));
    CHECK(us_skips_has(&skips, 9));
    CHECK(!us_skips_has(&skips, 21));
    us_skips_destroy(&skips, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

TEST(skips, destroy_forgets_the_floor) {
    struct us_skips skips = {.floor = 100};
    CHECK(us_skips_has(&skips, 99));
    us_skips_destroy(&skips, &us_mem_default);
    CHECK(!us_skips_has(&skips, 99));
}

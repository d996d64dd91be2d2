/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Skipped ranges against one flag per number. Numbers below the floor are unknown; the floor may rise only when the
 * ranges are at their limit or memory is out, and never above what had to be forgotten.
 */
#include <base/skips.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

#define NUMBERS 6000

static bool skipped[NUMBERS];

static uint32_t model_ranges(uint64_t floor) {
    uint32_t count = 0;
    for (uint64_t i = floor; i < NUMBERS; i++)
        count += skipped[i] && (i == floor || !skipped[i - 1]);
    return count;
}

/* The floor that forgetting the oldest range leaves. */
static uint64_t forget(uint64_t floor) {
    while (floor < NUMBERS && !skipped[floor])
        floor++;
    while (floor < NUMBERS && skipped[floor])
        floor++;
    return floor;
}

static void check_whole(const struct us_skips *skips, uint64_t floor) {
    CHECK_U64(skips->floor, floor);
    CHECK_U64(skips->count, model_ranges(floor));
    for (uint64_t i = 0; i < NUMBERS; i++)
        CHECK_U64(us_skips_has(skips, i), i < floor || skipped[i]);
    for (uint32_t i = 0; i < skips->count; i++) {
        CHECK(skips->ranges[i].first <= skips->ranges[i].last);
        CHECK(i == 0 || skips->ranges[i - 1].last < skips->ranges[i].first);
    }
}

static uint64_t add(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t floor, uint64_t first,
                    uint64_t last) {
    us_skips_add(skips, mem, max, first, last);
    memset(skipped + first, true, last - first + 1);
    return model_ranges(floor) > max ? forget(floor) : floor;
}

static uint64_t take(struct us_skips *skips, const struct unsalt_mem *mem, uint32_t max, uint64_t floor, uint64_t seq) {
    CHECK_U64(us_skips_take(skips, mem, max, seq), seq < floor || skipped[seq]);
    if (seq >= floor)
        skipped[seq] = false;
    return model_ranges(floor) > max ? forget(floor) : floor;
}

static void run(struct prng *prng, struct failmem *fail) {
    struct us_skips skips = {0};
    uint32_t max = (uint32_t)prng_between(prng, 1, 40);
    uint64_t floor = 0, cursor = 0;
    memset(skipped, 0, sizeof skipped);
    for (int round = 0; cursor < NUMBERS - 100; round++) {
        if (prng_chance(prng, 20)) {
            uint64_t first = cursor + prng_below(prng, 3), last = first + prng_below(prng, 40);
            floor = add(&skips, &fail->mem, max, floor, first, last);
            cursor = last + 1;
        } else if (cursor > 0) {
            uint64_t reach = cursor < 300 || prng_chance(prng, 5) ? cursor : 300;
            floor = take(&skips, &fail->mem, max, floor, cursor - 1 - prng_below(prng, reach));
        }
        if (round % 8 == 0)
            check_whole(&skips, floor);
    }
    check_whole(&skips, floor);
    us_skips_destroy(&skips, &fail->mem);
}

TEST(skips, behave_like_a_flag_per_number) {
    struct prng prng = prng_start(3);
    struct failmem fail;
    failmem_init(&fail);
    for (int i = 0; i < 40; i++)
        run(&prng, &fail);
    CHECK(failmem_is_balanced(&fail));
}

/* When allocations fail, what is known stays true: a skipped number is never taken for a released one. */
TEST(skips, forget_but_never_lie_without_memory) {
    struct prng prng = prng_start(4);
    struct failmem fail;
    failmem_init(&fail);
    for (int i = 0; i < 400; i++) {
        struct us_skips skips = {0};
        uint64_t cursor = 1;
        memset(skipped, 0, sizeof skipped);
        failmem_arm(&fail, prng_between(&prng, 1, 5), true);
        while (cursor < 1000) {
            uint64_t last = cursor + prng_below(&prng, 20);
            us_skips_add(&skips, &fail.mem, 32, cursor, last);
            memset(skipped + cursor, true, last - cursor + 1);
            cursor = last + 2;
            uint64_t seq = prng_below(&prng, cursor);
            bool known = seq >= skips.floor;
            CHECK_U64(us_skips_take(&skips, &fail.mem, 32, seq), !known || skipped[seq]);
            if (known)
                skipped[seq] = false;
        }
        for (uint64_t k = skips.floor; k < cursor; k++)
            CHECK_U64(us_skips_has(&skips, k), skipped[k]);
        us_skips_destroy(&skips, &fail.mem);
    }
    CHECK(failmem_is_balanced(&fail));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/producer_inflight.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

static void take(struct us_inflight *window, const struct unsalt_mem *mem, int count) {
    for (int i = 0; i < count; i++) {
        CHECK(us_inflight_reserve(window, mem));
        us_inflight_take(window);
    }
}

TEST(producer_inflight, lowest_unresolved) {
    struct us_inflight w;
    us_inflight_init(&w, 1);
    CHECK(us_inflight_is_empty(&w));
    take(&w, &us_mem_default, 4);
    CHECK_U64(w.low, 1);
    CHECK(us_inflight_resolve(&w, &us_mem_default, 2));
    CHECK(us_inflight_resolve(&w, &us_mem_default, 4));
    CHECK_U64(w.low, 1);
    CHECK(us_inflight_resolve(&w, &us_mem_default, 1));
    CHECK_U64(w.low, 3);
    CHECK(us_inflight_resolve(&w, &us_mem_default, 3));
    CHECK_U64(w.low, 5);
    CHECK(us_inflight_is_empty(&w));
    us_inflight_destroy(&w, &us_mem_default);
}

TEST(producer_inflight, what_is_not_open_is_refused) {
    struct us_inflight w;
    us_inflight_init(&w, 10);
    take(&w, &us_mem_default, 3);
    CHECK(!us_inflight_resolve(&w, &us_mem_default, 9));
    CHECK(!us_inflight_resolve(&w, &us_mem_default, 13));
    CHECK(us_inflight_resolve(&w, &us_mem_default, 11));
    CHECK(!us_inflight_resolve(&w, &us_mem_default, 11));
    CHECK(us_inflight_resolve(&w, &us_mem_default, 10));
    CHECK(!us_inflight_resolve(&w, &us_mem_default, 10));
    CHECK_U64(w.low, 12);
    us_inflight_destroy(&w, &us_mem_default);
}

TEST(producer_inflight, numbers_near_the_end) {
    struct us_inflight w;
    us_inflight_init(&w, UINT64_MAX - 101);
    take(&w, &us_mem_default, 100);
    for (int i = 99; i >= 0; i--)
        CHECK(us_inflight_resolve(&w, &us_mem_default, UINT64_MAX - 101 + (uint64_t)i));
    CHECK_U64(w.low, UINT64_MAX - 1);
    us_inflight_destroy(&w, &us_mem_default);
}

TEST(producer_inflight, the_window_is_bounded) {
    struct us_inflight w;
    us_inflight_init(&w, 1);
    while (us_inflight_reserve(&w, &us_mem_default))
        us_inflight_take(&w);
    CHECK_U64(w.next - w.low, US_INFLIGHT_MAX);
    CHECK(us_inflight_resolve(&w, &us_mem_default, 1));
    CHECK(us_inflight_reserve(&w, &us_mem_default));
    us_inflight_destroy(&w, &us_mem_default);
}

TEST(producer_inflight, a_failed_allocation_changes_nothing) {
    struct failmem fail;
    struct us_inflight w;
    failmem_init(&fail);
    us_inflight_init(&w, 5);
    take(&w, &fail.mem, 64);
    CHECK_U64(fail.calls, 0); /* the ordinary case allocates nothing */
    for (int round = 0; round < 3; round++) {
        struct us_inflight before = w;
        failmem_arm(&fail, 1, false);
        CHECK(!us_inflight_reserve(&w, &fail.mem));
        CHECK(w.low == before.low && w.next == before.next && w.capacity == before.capacity);
        take(&w, &fail.mem, (int)w.capacity);
    }
    for (uint64_t n = 5; n < w.next; n++)
        CHECK(us_inflight_resolve(&w, &fail.mem, n));
    us_inflight_destroy(&w, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

/* Against the plainest model: an array of flags. */
TEST(producer_inflight, random_order) {
    enum { N = 60000 };
    static bool resolved[N];
    struct us_inflight w;
    struct prng prng = prng_start(1);
    us_inflight_init(&w, 0);
    uint64_t low = 0;
    while (low < N) {
        if (w.next < N && prng_chance(&prng, 55)) {
            take(&w, &us_mem_default, 1);
        } else if (w.next > low) {
            uint64_t span = w.next - low, near = span < 9 ? span : 9;
            uint64_t n = low + prng_below(&prng, prng_chance(&prng, 98) ? near : span);
            CHECK_U64(us_inflight_resolve(&w, &us_mem_default, n), !resolved[n]);
            resolved[n] = true;
            while (low < N && resolved[low])
                low++;
        }
        CHECK_U64(w.low, low);
    }
    us_inflight_destroy(&w, &us_mem_default);
}

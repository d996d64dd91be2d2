/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of near numbers against a plain array: what is held, the lowest, the earliest arrival, what comes out. */
#include <core/near.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>
#include <unsalt/core.h>

enum { SPAN = 8000, PARTS = 3, STEPS = 20000 };

struct world {
    struct us_near near;
    struct us_chunks chunks;
    struct failmem fail;
    uint64_t base, now; /* numbers base..base+SPAN-1 */
    bool held[SPAN];
    uint64_t arrived[SPAN];
    uint16_t part[SPAN];
    uint32_t count, gone;
};

static char marks[SPAN];

static void add(struct world *w, struct prng *prng, uint32_t at) {
    uint64_t seq = w->base + at;
    CHECK_U64(us_near_has(&w->near, seq), w->held[at]);
    if (w->held[at]) {
        CHECK(!us_near_join(&w->near, seq));
        return;
    }
    struct us_near_entry *entry = us_near_join(&w->near, seq);
    if (!entry && prng_chance(prng, 10)) {
        failmem_arm(&w->fail, 1, false);
        entry = us_near_open(&w->near, &w->chunks, seq, w->count);
        failmem_arm(&w->fail, 0, false);
    } else if (!entry) {
        entry = us_near_open(&w->near, &w->chunks, seq, SPAN);
        CHECK(entry);
    }
    if (!entry)
        return;
    w->held[at] = true;
    w->arrived[at] = w->now;
    w->part[at] = (uint16_t)prng_below(prng, PARTS);
    *entry = (struct us_near_entry){.msg = &marks[at], .arrived = w->now, .part = w->part[at], .bytes = at};
    w->count++;
}

static void pop(struct world *w, struct prng *prng) {
    unsalt_core_out_t out[64];
    uint32_t max = (uint32_t)prng_between(prng, 1, 64), at = 0;
    uint64_t bytes = 0, expected = 0;
    while (!w->held[at])
        at++;
    uint32_t n = us_near_pop(&w->near, &w->chunks, w->now, out, max, &bytes);
    for (uint32_t i = 0; i < n; i++, at++) {
        CHECK(w->held[at]);
        CHECK_U64(out[i].seq, w->base + at);
        CHECK(out[i].msg == &marks[at]);
        CHECK_U64(out[i].waited_ns, w->now - w->arrived[at]);
        CHECK_U64(out[i].part, w->part[at]);
        expected += at;
        w->held[at] = false;
        w->count--;
    }
    CHECK(n == max || at == SPAN || !w->held[at]);
    CHECK_U64(bytes, expected);
}

static void gone(void *opaque, const struct us_held *held) {
    struct world *w = opaque;
    uint64_t at = held->seq - w->base;
    CHECK(w->held[at] && held->msg == &marks[at]);
    w->held[at] = false;
    w->count--;
    w->gone++;
}

static void revoke(struct world *w, uint16_t part) {
    uint32_t expected = 0;
    for (int i = 0; i < SPAN; i++)
        expected += w->held[i] && w->part[i] == part;
    w->gone = 0;
    us_near_remove_part(&w->near, &w->chunks, part, gone, w);
    CHECK_U64(w->gone, expected);
}

static void check(const struct world *w) {
    uint64_t seq = us_near_first(&w->near), earliest = UNSALT_NEVER;
    CHECK_U64(w->near.count, w->count);
    for (int i = 0; i < SPAN; i++) {
        CHECK_U64(us_near_has(&w->near, w->base + (uint64_t)i), w->held[i]);
        if (!w->held[i])
            continue;
        CHECK_U64(seq, w->base + (uint64_t)i);
        seq = us_near_next(&w->near, seq);
        earliest = w->arrived[i] < earliest ? w->arrived[i] : earliest;
    }
    CHECK_U64(seq, UINT64_MAX);
    if (w->count)
        CHECK_U64(us_near_at(&w->near, w->near.oldest)->arrived, earliest);
    CHECK(!us_near_has(&w->near, w->base + SPAN) && !us_near_has(&w->near, w->base - 1));
}

TEST(near, behaves_like_an_array) {
    static const uint64_t bases[] = {1, 1000000, UINT64_MAX - SPAN, (UINT64_C(1) << 63) - SPAN / 2};
    struct prng prng = prng_start(5);
    for (size_t round = 0; round < 12; round++) {
        static struct world w;
        w = (struct world){.base = bases[round % 4] + prng_below(&prng, round % 4 == 2 ? 1 : 5), .now = 1};
        failmem_init(&w.fail);
        w.chunks.mem = &w.fail.mem;
        uint32_t width = round < 4 ? 30 : SPAN, from = 0;
        for (int step = 0; step < STEPS; step++) {
            w.now += prng_below(&prng, 3);
            from = prng_chance(&prng, 1) ? (uint32_t)prng_below(&prng, SPAN - width + 1) : from;
            if (prng_chance(&prng, 70))
                add(&w, &prng, from + (uint32_t)prng_below(&prng, width));
            else if (w.count && prng_chance(&prng, 50))
                pop(&w, &prng);
            if (prng_below(&prng, 1000) == 0)
                revoke(&w, (uint16_t)prng_below(&prng, PARTS));
            for (bool drain = prng_below(&prng, 3000) == 0; drain && w.count > 20;) /* the directory shrinks */
                pop(&w, &prng);
            if (step % 200 == 0)
                check(&w);
        }
        us_near_destroy(&w.near, &w.chunks);
        us_chunks_destroy(&w.chunks);
        CHECK(failmem_is_balanced(&w.fail));
    }
}

/* Numbers that are far from each other are refused, and nothing is allocated for them, until many are held. */
TEST(near, memory_is_in_proportion_to_what_is_held) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_chunks chunks = {.mem = &fail.mem};
    struct us_near near = {0};
    CHECK(us_near_open(&near, &chunks, 1000, 0));
    CHECK(us_near_open(&near, &chunks, 1010, 1));
    uint64_t calls = fail.calls;
    CHECK(!us_near_open(&near, &chunks, 1300, 2));
    CHECK(!us_near_open(&near, &chunks, 700, 2));
    CHECK(!us_near_open(&near, &chunks, 1, 2));
    CHECK(!us_near_open(&near, &chunks, UINT64_MAX - 1, UINT32_MAX));
    CHECK_U64(fail.calls, calls);
    CHECK(us_near_open(&near, &chunks, 1300, 16));
    CHECK(us_near_open(&near, &chunks, 700, 32));
    CHECK_U64(near.low, 700);
    CHECK_U64(near.high, 1300);
    us_near_destroy(&near, &chunks);
    us_chunks_destroy(&chunks);
    CHECK(failmem_is_balanced(&fail));
}

/* What a session has held once costs nothing once it is gone, though one far away is still held. */
TEST(near, memory_goes_with_what_is_released) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_chunks chunks = {.mem = &fail.mem};
    struct us_near near = {0};
    static unsalt_core_out_t out[1000];
    uint64_t bytes = 0;
    for (uint64_t seq = 1; seq <= 100000; seq++)
        CHECK(us_near_open(&near, &chunks, seq, (uint32_t)seq));
    struct us_near_entry *far = us_near_open(&near, &chunks, 2000000, 100001);
    CHECK(far);
    *far = (struct us_near_entry){.arrived = 7};
    size_t most = fail.bytes;
    for (uint32_t n = 0; n < 100000;)
        n += us_near_pop(&near, &chunks, 0, out, 1000, &bytes);
    CHECK_THAT(fail.bytes < 50000, "%zu bytes of %zu are left", fail.bytes, most);
    CHECK_U64(near.count, 1);
    CHECK_U64(near.low, 2000000);
    CHECK_U64(us_near_at(&near, near.oldest)->arrived, 7);
    us_near_destroy(&near, &chunks);
    us_chunks_destroy(&chunks);
    CHECK(failmem_is_balanced(&fail));
}

/* However much stood there: what is left, even if it is as far apart as can be, pays for itself and for the root. */
TEST(near, what_is_left_far_apart_costs_little) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_chunks chunks = {.mem = &fail.mem};
    struct us_near near = {0};
    static unsalt_core_out_t out[1000];
    uint64_t bytes = 0;
    const uint64_t middle = 1000000, last = 2000000;
    for (uint64_t seq = 1; seq <= 100000; seq++)
        CHECK(us_near_open(&near, &chunks, seq, (uint32_t)seq));
    CHECK(us_near_open(&near, &chunks, last, 100001));
    CHECK(us_near_open(&near, &chunks, middle, 100002));
    for (uint32_t n = 0; n < 99999;)
        n += us_near_pop(&near, &chunks, 0, out, n + 1000 > 99999 ? 99999 - n : 1000, &bytes);
    CHECK_U64(near.count, 3);
    CHECK_U64(near.low, 100000);
    size_t slabs = 6 * sizeof(struct us_near_slab), leaves = 70 * sizeof(struct us_near_leaf);
    CHECK_THAT(fail.bytes < 140000 + slabs + leaves, "%zu bytes are left", fail.bytes);
    CHECK_U64(us_near_next(&near, 100000), middle);
    CHECK_U64(us_near_next(&near, middle), last);
    us_near_destroy(&near, &chunks);
    us_chunks_destroy(&chunks);
    CHECK(failmem_is_balanced(&fail));
}

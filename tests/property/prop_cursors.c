/* SPDX-License-Identifier: BSD-2-Clause */
/* Remembered cursors against a plain array per (set, id). */
#include <core/cursors.h>
#include <stdio.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

#define SETS 3
#define IDS 700

static struct {
    bool in;
    struct us_cursor cursor;
} model[SETS][IDS];

static uint32_t count_in(void) {
    uint32_t count = 0;
    for (int set = 0; set < SETS; set++)
        for (int id = 0; id < IDS; id++)
            count += model[set][id].in;
    return count;
}

static void put(struct us_cursors *cursors, struct failmem *fail, struct prng *prng, uint32_t set, uint64_t id) {
    struct us_cursor cursor = {.epoch = prng_next(prng), .cursor = prng_next(prng), .floor = prng_next(prng)};
    bool fits = model[set][id].in || cursors->count < cursors->max;
    CHECK_U64(us_cursors_put(cursors, &fail->mem, set, &id, sizeof id, &cursor), fits);
    if (!fits)
        return;
    model[set][id].in = true;
    model[set][id].cursor = cursor;
}

static void take(struct us_cursors *cursors, uint32_t set, uint64_t id) {
    struct us_cursor cursor;
    bool found = us_cursors_take(cursors, set, &id, sizeof id, &cursor);
    CHECK_U64(found, model[set][id].in);
    if (!found)
        return;
    CHECK_U64(cursor.epoch, model[set][id].cursor.epoch);
    CHECK_U64(cursor.cursor, model[set][id].cursor.cursor);
    CHECK_U64(cursor.floor, model[set][id].cursor.floor);
    model[set][id].in = false;
}

static void step(struct us_cursors *cursors, struct failmem *fail, struct prng *prng, unsigned grow) {
    uint32_t set = (uint32_t)prng_below(prng, SETS);
    uint64_t id = prng_below(prng, IDS);
    if (prng_below(prng, 4000) == 0) {
        us_cursors_drop_set(cursors, set);
        for (int i = 0; i < IDS; i++)
            model[set][i].in = false;
        CHECK_U64(cursors->count, count_in());
    } else if (prng_chance(prng, grow)) {
        put(cursors, fail, prng, set, id);
    } else {
        take(cursors, set, id);
    }
}

TEST(cursors, behave_like_an_array) {
    struct prng prng = prng_start(6);
    struct failmem fail;
    failmem_init(&fail);
    for (int run = 0; run < 10; run++) {
        struct us_cursors cursors;
        us_cursors_init(&cursors, (uint32_t)prng_between(&prng, 1, SETS * IDS), prng_next(&prng));
        memset(model, 0, sizeof model);
        for (int round = 0; round < 40000; round++)
            step(&cursors, &fail, &prng, round / 8000 % 2 ? 25 : 75);
        CHECK_U64(cursors.count, count_in());
        for (uint32_t set = 0; set < SETS; set++)
            for (uint64_t id = 0; id < IDS; id++)
                take(&cursors, set, id);
        CHECK_U64(cursors.count, 0);
        us_cursors_destroy(&cursors, &fail.mem);
    }
    CHECK(failmem_is_balanced(&fail));
}

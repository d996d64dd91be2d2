/* SPDX-License-Identifier: BSD-2-Clause */
/* Which cursors are forgotten when there are too many: the oldest. */
#include <core/remembered.h>
#include <support/check.h>
#include <support/failmem.h>

static void put(struct us_remembered *remembered, struct failmem *mem, uint64_t id) {
    const struct us_cursor cursor = {id, id + 1, id + 2};
    CHECK(us_remembered_put(remembered, &mem->mem, (uint32_t)(id % 3), &id, sizeof id, &cursor));
}

static bool take(struct us_remembered *remembered, uint64_t id) {
    struct us_cursor cursor = {77, 78, 79};
    bool found = us_remembered_take(remembered, (uint32_t)(id % 3), &id, sizeof id, &cursor);
    CHECK_U64(cursor.epoch, found ? id : 77);
    CHECK_U64(cursor.cursor, found ? id + 1 : 78);
    CHECK_U64(cursor.floor, found ? id + 2 : 79);
    return found;
}

static void begin(struct us_remembered *remembered, struct failmem *mem, uint32_t max) {
    failmem_init(mem);
    us_remembered_init(remembered, max, 5);
}

static void end(struct us_remembered *remembered, struct failmem *mem) {
    us_remembered_destroy(remembered, &mem->mem);
    CHECK(failmem_is_balanced(mem));
}

TEST(remembered, the_last_half_always_and_never_more_than_max) {
    for (uint32_t max = 1; max < 40; max++) {
        struct us_remembered remembered;
        struct failmem mem;
        begin(&remembered, &mem, max);
        for (uint64_t id = 0; id < 400; id++) {
            put(&remembered, &mem, id);
            CHECK_THAT(us_remembered_count(&remembered) <= max, "%u of %u", us_remembered_count(&remembered), max);
        }
        CHECK(max == 1 || remembered.turns >= 2);
        for (uint64_t id = 400 - (max + 1) / 2; id < 400; id++)
            CHECK_THAT(take(&remembered, id), "max %u: id %d of the last half was forgotten", max, (int)id);
        CHECK(!take(&remembered, 400 - max - 1));
        end(&remembered, &mem);
    }
}

TEST(remembered, what_is_put_again_is_young_again) {
    struct us_remembered remembered;
    struct failmem mem;
    begin(&remembered, &mem, 20);
    put(&remembered, &mem, 1000);
    for (uint64_t id = 0; id < 100; id++) {
        put(&remembered, &mem, id);
        put(&remembered, &mem, 1000);
        CHECK(us_remembered_count(&remembered) <= 20);
    }
    CHECK(take(&remembered, 1000));
    CHECK(!take(&remembered, 1000));
    end(&remembered, &mem);
}

TEST(remembered, nothing_may_be_remembered) {
    struct us_remembered remembered;
    struct failmem mem;
    uint64_t id = 1;
    begin(&remembered, &mem, 0);
    CHECK(!us_remembered_put(&remembered, &mem.mem, 0, &id, sizeof id, &(struct us_cursor){1, 1, 1}));
    CHECK(!take(&remembered, 1));
    end(&remembered, &mem);
}

TEST(remembered, what_was_taken_can_be_put_back_without_memory) {
    struct us_remembered remembered;
    struct failmem mem;
    begin(&remembered, &mem, 64);
    for (uint64_t id = 0; id < 100; id++)
        put(&remembered, &mem, id);
    for (uint64_t id = 99; id > 60; id--) {
        if (!take(&remembered, id))
            continue;
        failmem_arm(&mem, 1, true);
        const struct us_cursor cursor = {id, id + 1, id + 2};
        us_remembered_put_back(&remembered, &mem.mem, (uint32_t)(id % 3), &id, sizeof id, &cursor);
        failmem_arm(&mem, 0, false);
        CHECK_THAT(take(&remembered, id), "id %d", (int)id);
        put(&remembered, &mem, id);
    }
    end(&remembered, &mem);
}

TEST(remembered, a_set_is_dropped_from_both_generations) {
    struct us_remembered remembered;
    struct failmem mem;
    begin(&remembered, &mem, 100);
    for (uint64_t id = 0; id < 90; id++)
        put(&remembered, &mem, id);
    CHECK(remembered.young.count && remembered.old.count);
    us_remembered_drop_set(&remembered, 1);
    CHECK_U64(us_remembered_count(&remembered), 60);
    for (uint64_t id = 0; id < 90; id++)
        CHECK_U64(take(&remembered, id), id % 3 != 1);
    end(&remembered, &mem);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/frontier.h>
#include <support/check.h>
#include <support/failmem.h>

static uint64_t open_at(struct us_frontier *frontier, int64_t offset) {
    CHECK(us_frontier_reserve(frontier, &us_mem_default, 1));
    return us_frontier_open(frontier, offset);
}

static void ack(struct us_frontier *frontier, uint64_t ticket) {
    bool first = false;
    CHECK(us_frontier_ack(frontier, ticket, &first));
    CHECK(first);
}

TEST(frontier, knows_nothing_until_told) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, -1);
    CHECK_I64(us_frontier_position(&frontier), -1);
    us_frontier_eof(&frontier, 5);
    CHECK_I64(us_frontier_position(&frontier), 5);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, an_idle_partition_may_commit_where_reading_began) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    CHECK_I64(us_frontier_position(&frontier), 0);
    us_frontier_destroy(&frontier, &us_mem_default);
    us_frontier_init(&frontier, 1000);
    CHECK_I64(us_frontier_position(&frontier), 1000);
    us_frontier_eof(&frontier, 900); /* never back */
    CHECK_I64(us_frontier_position(&frontier), 1000);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, stays_at_the_oldest_that_is_not_acknowledged) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 10);
    uint64_t ticket[4];
    for (int i = 0; i < 4; i++)
        ticket[i] = open_at(&frontier, 10 + i);
    CHECK_I64(us_frontier_position(&frontier), 10);
    ack(&frontier, ticket[2]);
    ack(&frontier, ticket[1]);
    CHECK_I64(us_frontier_position(&frontier), 10);
    CHECK_U64(frontier.open, 2);
    ack(&frontier, ticket[0]);
    CHECK_I64(us_frontier_position(&frontier), 13);
    ack(&frontier, ticket[3]);
    CHECK_I64(us_frontier_position(&frontier), 14);
    CHECK_U64(frontier.open, 0);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, a_run_is_opened_in_one_call) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    CHECK(us_frontier_reserve(&frontier, &us_mem_default, 100));
    uint64_t first = us_frontier_open(&frontier, 5);
    us_frontier_open_more(&frontier, 99);
    CHECK_U64(frontier.open, 100);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_I64(us_frontier_position(&frontier), 5 + (int64_t)i);
        ack(&frontier, first + i);
    }
    CHECK_I64(us_frontier_position(&frontier), 105);
    CHECK_U64(frontier.open, 0);
    CHECK_U64(open_at(&frontier, 105), first + 100);
    CHECK_U64(frontier.stretch_count, 1);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, jumps_over_holes_of_any_size) {
    static const int64_t offsets[] = {0, 1, 7, 8, 1000000000, INT64_C(1) << 62, (INT64_C(1) << 62) + 1, INT64_MAX - 1};
    enum { COUNT = sizeof offsets / sizeof *offsets };
    struct us_frontier frontier;
    uint64_t ticket[COUNT];
    us_frontier_init(&frontier, 0);
    for (int i = 0; i < COUNT; i++)
        ticket[i] = open_at(&frontier, offsets[i]);
    for (int i = 0; i < COUNT; i++) {
        CHECK_I64(us_frontier_position(&frontier), offsets[i]);
        ack(&frontier, ticket[i]);
    }
    CHECK_I64(us_frontier_position(&frontier), INT64_MAX);
    CHECK_U64(frontier.bits, 64);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, the_end_of_the_log_counts_when_nothing_is_outstanding) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    uint64_t first = open_at(&frontier, 0);
    us_frontier_eof(&frontier, 3); /* a transaction's markers stand at 1 and 2 */
    CHECK_I64(us_frontier_position(&frontier), 0);
    ack(&frontier, first);
    CHECK_I64(us_frontier_position(&frontier), 3);
    uint64_t second = open_at(&frontier, 3);
    CHECK_I64(us_frontier_position(&frontier), 3);
    ack(&frontier, second);
    CHECK_I64(us_frontier_position(&frontier), 4);
    us_frontier_destroy(&frontier, &us_mem_default);
}

/* The next offset after an end-of-partition event is where that event stood, not where the last record ended. */
TEST(frontier, a_record_behind_the_end_event_starts_a_stretch) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    uint64_t first = open_at(&frontier, 0);
    us_frontier_eof(&frontier, 3);
    uint64_t second = open_at(&frontier, 3);
    uint64_t third = open_at(&frontier, 4);
    ack(&frontier, first);
    CHECK_I64(us_frontier_position(&frontier), 3);
    ack(&frontier, third);
    ack(&frontier, second);
    CHECK_I64(us_frontier_position(&frontier), 5);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, acknowledging_twice_is_no_fault_and_counts_once) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    uint64_t first = open_at(&frontier, 0), second = open_at(&frontier, 1);
    bool fresh = false;
    ack(&frontier, second);
    CHECK(us_frontier_ack(&frontier, second, &fresh)); /* still outstanding */
    CHECK(!fresh);
    CHECK_U64(frontier.open, 1);
    ack(&frontier, first);
    fresh = true;
    CHECK(us_frontier_ack(&frontier, first, &fresh)); /* long gone */
    CHECK(!fresh);
    CHECK_U64(frontier.open, 0);
    CHECK_I64(us_frontier_position(&frontier), 2);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, a_ticket_never_opened_is_refused) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    CHECK(!us_frontier_ack(&frontier, 0, NULL));
    uint64_t ticket = open_at(&frontier, 0);
    bool fresh = true;
    CHECK(!us_frontier_ack(&frontier, ticket + 1, &fresh));
    CHECK(!fresh);
    CHECK(!us_frontier_ack(&frontier, UINT64_MAX, NULL));
    CHECK_U64(frontier.open, 1);
    CHECK(us_frontier_ack(&frontier, ticket, NULL));
    us_frontier_destroy(&frontier, &us_mem_default);
}

/* The ring is full and its first ticket stands in the middle of a word: the case where growing shares memory. */
TEST(frontier, grows_while_full_and_turned) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    int64_t offset = 0;
    for (; offset < 70; offset++)
        ack(&frontier, open_at(&frontier, offset));
    CHECK(us_frontier_reserve(&frontier, &us_mem_default, 64));
    CHECK_U64(frontier.bits, 64);
    uint64_t base = frontier.base;
    for (int i = 0; i < 64; i++)
        us_frontier_open(&frontier, offset++);
    for (int i = 1; i < 64; i += 2)
        ack(&frontier, base + (uint64_t)i);
    open_at(&frontier, offset++); /* grows */
    CHECK(frontier.bits > 64);
    for (int i = 0; i < 64; i += 2) {
        CHECK_I64(us_frontier_position(&frontier), 70 + i);
        ack(&frontier, base + (uint64_t)i);
    }
    CHECK_I64(us_frontier_position(&frontier), 134);
    CHECK_U64(frontier.open, 1);
    us_frontier_destroy(&frontier, &us_mem_default);
}

TEST(frontier, steady_state_allocates_nothing) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    CHECK(us_frontier_reserve(&frontier, &fail.mem, 512));
    uint64_t calls = fail.calls;
    uint64_t oldest = 0;
    for (int64_t i = 0; i < 100000; i++) {
        CHECK(us_frontier_reserve(&frontier, &fail.mem, 1));
        us_frontier_open(&frontier, i * 2); /* every offset starts a stretch */
        if (i >= 400)
            ack(&frontier, oldest++);
    }
    CHECK_U64(fail.calls, calls);
    CHECK_U64(frontier.open, 400);
    us_frontier_destroy(&frontier, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

TEST(frontier, consecutive_offsets_cost_a_bit_each) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    for (int64_t i = 0; i < 1000000; i++) {
        CHECK(us_frontier_reserve(&frontier, &fail.mem, 1));
        us_frontier_open(&frontier, i);
    }
    CHECK_THAT(fail.bytes < 200000, "%zu bytes", fail.bytes);
    for (uint64_t i = 1; i < 1000000; i++)
        ack(&frontier, i);
    CHECK_I64(us_frontier_position(&frontier), 0);
    ack(&frontier, 0); /* one step over a million */
    CHECK_I64(us_frontier_position(&frontier), 1000000);
    us_frontier_destroy(&frontier, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

TEST(frontier, more_than_two_billion_outstanding_are_refused) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    CHECK(!us_frontier_reserve(&frontier, &fail.mem, (UINT32_C(1) << 31) + 1));
    CHECK_U64(fail.calls, 0);
    us_frontier_destroy(&frontier, &fail.mem);
}

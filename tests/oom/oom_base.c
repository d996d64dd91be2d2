/* SPDX-License-Identifier: BSD-2-Clause */
/* Every allocation of the base, of the codec and of the core's tables fails once, and leaves no trace. */
#include <base/heap.h>
#include <base/seqset.h>
#include <codec/json.h>
#include <core/collisions.h>
#include <core/cursors.h>
#include <core/frontier.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/failmem.h>

/*
 * Runs `scenario` with its first, second, ... allocation failing, until one run meets no failure. The scenario
 * itself compares the state before and after a failure, and goes on.
 */
static void fail_each(void (*scenario)(struct failmem *fail), uint64_t at_least) {
    uint64_t nth = 0;
    struct failmem fail;
    do {
        failmem_init(&fail);
        failmem_arm(&fail, ++nth, false);
        scenario(&fail);
        CHECK_THAT(failmem_is_balanced(&fail), "not balanced after failure %d", (int)nth);
    } while (fail.failed);
    CHECK_THAT(nth > at_least, "only %d allocations were met", (int)nth - 1);
}

static void use_heap(struct failmem *fail) {
    struct us_heap heap = {0};
    struct us_heap_node node[100];
    for (uint64_t i = 0; i < 100; i++) {
        struct us_heap before = heap;
        if (!us_heap_reserve(&heap, &fail->mem, 1)) {
            CHECK_BYTES(&heap, sizeof heap, &before, sizeof before);
            CHECK(us_heap_reserve(&heap, &fail->mem, 1));
        }
        us_heap_push(&heap, 100 - i, &node[i]);
        CHECK_U64(us_heap_key(&heap), 100 - i);
    }
    us_heap_destroy(&heap, &fail->mem);
}

TEST(oom_base, heap) {
    fail_each(use_heap, 3);
}

static void use_seqset(struct failmem *fail) {
    struct us_seqset set = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        struct us_seqset before = set;
        if (!us_seqset_reserve(&set, &fail->mem, 1)) {
            CHECK_BYTES(&set, sizeof set, &before, sizeof before);
            CHECK(us_seqset_reserve(&set, &fail->mem, 1));
        }
        CHECK(us_seqset_add(&set, i * 100));
    }
    for (uint64_t i = 0; i < 1000; i++)
        CHECK(us_seqset_remove(&set, i * 100));
    us_seqset_destroy(&set, &fail->mem);
}

TEST(oom_base, seqset) {
    fail_each(use_seqset, 5);
}

/* Field by field: there is padding between them. */
static void check_same_frontier(const struct us_frontier *is, const struct us_frontier *was) {
    CHECK(is->done == was->done && is->bits == was->bits);
    CHECK(is->base == was->base && is->next == was->next && is->open == was->open);
    CHECK(is->stretches == was->stretches && is->stretch_capacity == was->stretch_capacity);
    CHECK(is->stretch_first == was->stretch_first && is->stretch_count == was->stretch_count);
    CHECK(is->stretch_next == was->stretch_next && is->next_offset == was->next_offset);
}

/* Every offset starts a stretch, so both rings grow, and the second may fail when the first has grown. */
static void use_frontier(struct failmem *fail) {
    struct us_frontier frontier;
    us_frontier_init(&frontier, 0);
    for (int64_t i = 0; i < 1000; i++) {
        struct us_frontier before = frontier;
        if (!us_frontier_reserve(&frontier, &fail->mem, 1)) {
            check_same_frontier(&frontier, &before);
            CHECK(us_frontier_reserve(&frontier, &fail->mem, 1));
        }
        us_frontier_open(&frontier, i * 3);
        if (i % 2)
            CHECK(us_frontier_ack(&frontier, (uint64_t)i, NULL));
    }
    for (int64_t i = 0; i < 1000; i += 2) {
        CHECK_I64(us_frontier_position(&frontier), i * 3);
        CHECK(us_frontier_ack(&frontier, (uint64_t)i, NULL));
    }
    CHECK_I64(us_frontier_position(&frontier), 999 * 3 + 1);
    us_frontier_destroy(&frontier, &fail->mem);
}

TEST(oom_base, frontier) {
    fail_each(use_frontier, 8);
}

static void use_cursors(struct failmem *fail) {
    struct us_cursors cursors;
    us_cursors_init(&cursors, 1000, 3);
    for (uint64_t i = 0; i < 1000; i++) {
        struct us_cursors before = cursors;
        struct us_cursor cursor = {i, i, i};
        if (!us_cursors_put(&cursors, &fail->mem, 1, &i, sizeof i, &cursor)) {
            CHECK(cursors.entries == before.entries && cursors.capacity == before.capacity);
            CHECK(cursors.count == before.count && cursors.max == before.max && cursors.seed == before.seed);
            CHECK(us_cursors_put(&cursors, &fail->mem, 1, &i, sizeof i, &cursor));
        }
    }
    for (uint64_t i = 0; i < 1000; i++) {
        struct us_cursor cursor;
        CHECK(us_cursors_take(&cursors, 1, &i, sizeof i, &cursor));
        CHECK(cursor.epoch == i && cursor.cursor == i && cursor.floor == i);
    }
    us_cursors_destroy(&cursors, &fail->mem);
}

TEST(oom_base, cursors) {
    fail_each(use_cursors, 6);
}

/* A payload with 2,000 numbers, whose session has escapes. */
static size_t big_payload(char *out) {
    size_t len = (size_t)sprintf(out, "{\"sessionId\":\"\\u0041bc\",\"list\":[1");
    for (int i = 0; i < 2000; i++)
        len += (size_t)sprintf(out + len, ",1");
    return len + (size_t)sprintf(out + len, "],\"globalSeq\":17}");
}

static void use_collisions(struct failmem *fail) {
    struct us_collisions c;
    if (!us_collisions_init(&c, &fail->mem)) {
        CHECK(!c.entries && !c.told);
        CHECK(us_collisions_init(&c, &fail->mem));
    }
    us_collisions_destroy(&c, &fail->mem);
}

TEST(oom_base, collisions) {
    fail_each(use_collisions, 2);
}

static void use_json(struct failmem *fail) {
    char payload[8192];
    size_t size = big_payload(payload);
    struct us_json_found found;
    struct us_json *json = us_json_new(&fail->mem, "/globalSeq", "sessionId", 4096);
    if (!json) {
        CHECK(failmem_is_balanced(fail));
        json = us_json_new(&fail->mem, "/globalSeq", "sessionId", 4096);
        CHECK(json != NULL);
    }
    uint64_t failed = fail->failed;
    enum us_json_fault fault = us_json_read(json, payload, size, &found);
    if (fault != US_JSON_OK || !found.has_session) {
        CHECK_U64(fail->failed, failed + 1);
        CHECK(found.session_fault == US_JSON_NOMEM && !found.has_session);
        CHECK(fault == US_JSON_OK ? found.seq == 17 : fault == US_JSON_NOMEM && !found.has_seq);
        CHECK(us_json_read(json, payload, size, &found) == US_JSON_OK);
    }
    CHECK_U64(found.seq, 17);
    CHECK_BYTES(found.session, found.session_len, "Abc", 3);
    us_json_destroy(json);
}

TEST(oom_base, json) {
    fail_each(use_json, 7);
}

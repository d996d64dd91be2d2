/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/heap.h>
#include <support/check.h>
#include <support/failmem.h>

#define NODES 200

static struct us_heap_node nodes[NODES];

static void fill(struct us_heap *heap, const struct unsalt_mem *mem) {
    CHECK(us_heap_reserve(heap, mem, NODES));
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i].index = US_HEAP_OUT;
        us_heap_push(heap, (i * 37) % NODES, &nodes[i]); /* 37 is prime to 200: every key once */
    }
}

static void drain_from(struct us_heap *heap, uint64_t key, uint64_t step) {
    for (; !us_heap_empty(heap); key += step) {
        CHECK_U64(us_heap_key(heap), key);
        struct us_heap_node *node = us_heap_top(heap);
        us_heap_remove(heap, node);
        CHECK_U64(node->index, US_HEAP_OUT);
    }
}

TEST(heap, is_empty_at_first) {
    struct us_heap heap = {0};
    CHECK(us_heap_empty(&heap));
    CHECK_U64(us_heap_key(&heap), UINT64_MAX);
    CHECK(us_heap_top(&heap) == NULL);
    us_heap_destroy(&heap, &us_mem_default);
}

TEST(heap, gives_keys_in_order) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_heap heap = {0};
    fill(&heap, &fail.mem);
    drain_from(&heap, 0, 1);
    CHECK(us_heap_reserve(&heap, &fail.mem, NODES));
    CHECK_U64(heap.count, 0);
    us_heap_destroy(&heap, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

TEST(heap, removes_from_the_middle) {
    struct us_heap heap = {0};
    fill(&heap, &us_mem_default);
    for (uint32_t i = 0; i < NODES; i++)
        if ((i * 37) % NODES % 2)
            us_heap_remove(&heap, &nodes[i]);
    CHECK_U64(heap.count, NODES / 2);
    drain_from(&heap, 0, 2);
    us_heap_destroy(&heap, &us_mem_default);
}

TEST(heap, updates_both_ways) {
    struct us_heap heap = {0};
    fill(&heap, &us_mem_default);
    for (uint32_t i = 0; i < NODES; i++)
        us_heap_update(&heap, &nodes[i], NODES - 1 - (i * 37) % NODES);
    CHECK(us_heap_top(&heap) == &nodes[(NODES - 1) * 173 % NODES]); /* 173 * 37 = 1 modulo 200: had key 199 */
    drain_from(&heap, 0, 1);
    us_heap_destroy(&heap, &us_mem_default);
}

TEST(heap, takes_equal_and_extreme_keys) {
    struct us_heap heap = {0};
    struct us_heap_node node[4];
    CHECK(us_heap_reserve(&heap, &us_mem_default, 4));
    us_heap_push(&heap, UINT64_MAX, &node[0]);
    us_heap_push(&heap, UINT64_MAX, &node[1]);
    us_heap_push(&heap, 0, &node[2]);
    us_heap_push(&heap, 0, &node[3]);
    CHECK_U64(us_heap_key(&heap), 0);
    us_heap_remove(&heap, &node[2]);
    CHECK(us_heap_top(&heap) == &node[3]);
    us_heap_remove(&heap, &node[3]);
    CHECK_U64(us_heap_key(&heap), UINT64_MAX);
    CHECK_U64(heap.count, 2);
    us_heap_destroy(&heap, &us_mem_default);
}

TEST(heap, reserve_covers_what_it_says) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_heap heap = {0};
    CHECK(us_heap_reserve(&heap, &fail.mem, 100));
    uint64_t calls = fail.calls;
    CHECK(us_heap_reserve(&heap, &fail.mem, 100));
    CHECK(us_heap_reserve(&heap, &fail.mem, 0));
    CHECK_U64(fail.calls, calls);
    CHECK(heap.capacity >= 100);
    CHECK(!us_heap_reserve(&heap, &fail.mem, UINT32_MAX));
    us_heap_destroy(&heap, &fail.mem);
    CHECK(failmem_is_balanced(&fail));
}

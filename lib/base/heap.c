/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/heap.h>

#define FIRST_CAPACITY 8
#define ARITY 4

bool us_heap_reserve(struct us_heap *heap, const struct unsalt_mem *mem, uint32_t more) {
    uint64_t need = (uint64_t)heap->count + more;
    if (need <= heap->capacity)
        return true;
    if (need >= US_HEAP_OUT)
        return false;
    uint64_t capacity = heap->capacity ? heap->capacity : FIRST_CAPACITY;
    while (capacity < need)
        capacity *= 2;
    if (capacity > US_HEAP_OUT)
        capacity = US_HEAP_OUT;
    struct us_heap_slot *slots = us_realloc_array(mem, heap->slots, capacity, sizeof *slots);
    if (!slots)
        return false;
    heap->slots = slots;
    heap->capacity = (uint32_t)capacity;
    return true;
}

static inline void put(struct us_heap *heap, uint32_t at, struct us_heap_slot slot) {
    heap->slots[at] = slot;
    slot.node->index = at;
}

/* Moves the hole at `at` towards the root until `slot` fits into it. */
static void sift_up(struct us_heap *heap, uint32_t at, struct us_heap_slot slot) {
    while (at > 0) {
        uint32_t parent = (at - 1) / ARITY;
        if (heap->slots[parent].key <= slot.key)
            break;
        put(heap, at, heap->slots[parent]);
        at = parent;
    }
    put(heap, at, slot);
}

/* Moves the hole at `at` towards the leaves until `slot` fits into it. */
static void sift_down(struct us_heap *heap, uint32_t at, struct us_heap_slot slot) {
    for (;;) {
        uint64_t child = (uint64_t)at * ARITY + 1;
        if (child >= heap->count)
            break;
        uint64_t end = child + ARITY < heap->count ? child + ARITY : heap->count;
        uint64_t least = child;
        for (uint64_t i = child + 1; i < end; i++)
            if (heap->slots[i].key < heap->slots[least].key)
                least = i;
        if (slot.key <= heap->slots[least].key)
            break;
        put(heap, at, heap->slots[least]);
        at = (uint32_t)least;
    }
    put(heap, at, slot);
}

static void settle(struct us_heap *heap, uint32_t at, struct us_heap_slot slot) {
    if (at > 0 && slot.key < heap->slots[(at - 1) / ARITY].key)
        sift_up(heap, at, slot);
    else
        sift_down(heap, at, slot);
}

void us_heap_push(struct us_heap *heap, uint64_t key, struct us_heap_node *node) {
    sift_up(heap, heap->count++, (struct us_heap_slot){key, node});
}

void us_heap_remove(struct us_heap *heap, struct us_heap_node *node) {
    uint32_t at = node->index;
    struct us_heap_slot last = heap->slots[--heap->count];
    node->index = US_HEAP_OUT;
    if (at < heap->count)
        settle(heap, at, last);
}

void us_heap_update(struct us_heap *heap, struct us_heap_node *node, uint64_t key) {
    settle(heap, node->index, (struct us_heap_slot){key, node});
}

void us_heap_destroy(struct us_heap *heap, const struct unsalt_mem *mem) {
    us_free(mem, heap->slots);
    *heap = (struct us_heap){0};
}

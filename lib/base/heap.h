/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An intrusive 4-ary min-heap keyed by uint64_t. The array holds key and node pointer side by side, so a sift
 * touches the nodes only to store their index. A node is in at most one heap at a time.
 *
 * us_heap_reserve() may fail; after it has succeeded the pushes that it covers can't.
 */
#ifndef US_BASE_HEAP_H
#define US_BASE_HEAP_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

#define US_HEAP_OUT UINT32_MAX

struct us_heap_node {
    uint32_t index; /* US_HEAP_OUT while in no heap */
};

struct us_heap_slot {
    uint64_t key;
    struct us_heap_node *node;
};

struct us_heap {
    struct us_heap_slot *slots;
    uint32_t count, capacity;
};

/* Makes room for `more` further nodes. Returns false when out of memory; then nothing changed. */
bool us_heap_reserve(struct us_heap *heap, const struct unsalt_mem *mem, uint32_t more);
/* Adds a node that is in no heap. Room must have been reserved. Equal keys come out in no promised order. */
void us_heap_push(struct us_heap *heap, uint64_t key, struct us_heap_node *node);
/* Removes a node of this heap, wherever it stands. Its index becomes US_HEAP_OUT. */
void us_heap_remove(struct us_heap *heap, struct us_heap_node *node);
/* Changes the key of a node of this heap. */
void us_heap_update(struct us_heap *heap, struct us_heap_node *node, uint64_t key);
/* Frees the array; the nodes are not touched. */
void us_heap_destroy(struct us_heap *heap, const struct unsalt_mem *mem);

static inline bool us_heap_empty(const struct us_heap *heap) {
    return heap->count == 0;
}
/* Key of the least node, UINT64_MAX when empty. */
static inline uint64_t us_heap_key(const struct us_heap *heap) {
    return heap->count ? heap->slots[0].key : UINT64_MAX;
}
/* The least node, NULL when empty. */
static inline struct us_heap_node *us_heap_top(const struct us_heap *heap) {
    return heap->count ? heap->slots[0].node : NULL;
}
#endif

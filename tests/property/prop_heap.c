/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap against a plain array that is searched for its least key. */
#include <base/heap.h>
#include <support/check.h>
#include <support/prng.h>

#define NODES 300

struct item {
    struct us_heap_node node;
    uint64_t key;
    bool in;
};

static struct item items[NODES];

static uint64_t least_key(void) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < NODES; i++)
        if (items[i].in && items[i].key < least)
            least = items[i].key;
    return least;
}

/* Every node in the heap knows its place, no key is below its parent's, and the others are out. */
static void check_whole(const struct us_heap *heap) {
    uint32_t in = 0;
    for (int i = 0; i < NODES; i++) {
        in += items[i].in;
        if (!items[i].in) {
            CHECK_U64(items[i].node.index, US_HEAP_OUT);
            continue;
        }
        uint32_t at = items[i].node.index;
        CHECK(at < heap->count && heap->slots[at].node == &items[i].node);
        CHECK_U64(heap->slots[at].key, items[i].key);
        CHECK(at == 0 || heap->slots[(at - 1) / 4].key <= items[i].key);
    }
    CHECK_U64(heap->count, in);
}

static uint64_t random_key(struct prng *prng) {
    uint64_t key = prng_chance(prng, 50) ? prng_below(prng, 20) : prng_next(prng);
    return prng_chance(prng, 2) ? UINT64_MAX : key;
}

static void step(struct us_heap *heap, struct prng *prng, unsigned grow) {
    struct item *item = &items[prng_below(prng, NODES)];
    if (!item->in) {
        if (!prng_chance(prng, grow))
            return;
        CHECK(us_heap_reserve(heap, &us_mem_default, 1));
        item->key = random_key(prng);
        item->in = true;
        us_heap_push(heap, item->key, &item->node);
    } else if (prng_chance(prng, 50)) {
        item->key = random_key(prng);
        us_heap_update(heap, &item->node, item->key);
    } else if (prng_chance(prng, 100 - grow)) {
        struct us_heap_node *node = prng_chance(prng, 50) ? us_heap_top(heap) : &item->node;
        us_heap_remove(heap, node);
        ((struct item *)node)->in = false; /* the node stands first */
    }
}

TEST(heap, behaves_like_a_searched_array) {
    struct prng prng = prng_start(1);
    struct us_heap heap = {0};
    for (int i = 0; i < NODES; i++)
        items[i] = (struct item){.node = {US_HEAP_OUT}};
    for (int round = 0; round < 60000; round++) {
        step(&heap, &prng, round / 5000 % 2 ? 20 : 80);
        CHECK_U64(us_heap_key(&heap), least_key());
        if (round % 16 == 0)
            check_whole(&heap);
    }
    us_heap_destroy(&heap, &us_mem_default);
}

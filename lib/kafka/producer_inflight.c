/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/producer_inflight.h>

#define WORD_BITS UINT64_C(64)
/* A ring wider than this is given back when the window empties. */
#define KEPT_BITS UINT64_C(8192)

static uint64_t *word_of(struct us_inflight *window, uint64_t number) {
    uint64_t bit = number & (window->capacity - 1);
    return window->capacity == WORD_BITS ? &window->resolved.word : &window->resolved.words[bit / WORD_BITS];
}

static uint64_t mask_of(uint64_t number) {
    return UINT64_C(1) << (number % WORD_BITS);
}

void us_inflight_init(struct us_inflight *window, uint64_t first) {
    *window = (struct us_inflight){.low = first, .next = first, .capacity = WORD_BITS};
}

void us_inflight_destroy(struct us_inflight *window, const struct unsalt_mem *mem) {
    if (window->capacity > WORD_BITS)
        us_free(mem, window->resolved.words);
    us_inflight_init(window, window->next);
}

/* Every word keeps its numbers: a wider ring has the same words at other places. */
static bool widen(struct us_inflight *window, const struct unsalt_mem *mem) {
    struct us_inflight wide = *window;
    wide.capacity = window->capacity * 2;
    wide.resolved.words = us_calloc(mem, wide.capacity / WORD_BITS, sizeof *wide.resolved.words);
    if (!wide.resolved.words)
        return false;
    for (uint64_t n = window->low; n < window->next; n++)
        if (*word_of(window, n) & mask_of(n))
            *word_of(&wide, n) |= mask_of(n);
    if (window->capacity > WORD_BITS)
        us_free(mem, window->resolved.words);
    *window = wide;
    return true;
}

bool us_inflight_reserve(struct us_inflight *window, const struct unsalt_mem *mem) {
    if (window->next - window->low < window->capacity)
        return true;
    return window->capacity < US_INFLIGHT_MAX && widen(window, mem);
}

void us_inflight_take(struct us_inflight *window) {
    window->next++;
}

bool us_inflight_resolve(struct us_inflight *window, const struct unsalt_mem *mem, uint64_t number) {
    if (number < window->low || number >= window->next || *word_of(window, number) & mask_of(number))
        return false;
    *word_of(window, number) |= mask_of(number);
    for (; window->low < window->next && *word_of(window, window->low) & mask_of(window->low); window->low++)
        *word_of(window, window->low) &= ~mask_of(window->low);
    if (window->low == window->next && window->capacity > KEPT_BITS)
        us_inflight_destroy(window, mem);
    return true;
}

bool us_inflight_is_empty(const struct us_inflight *window) {
    return window->low == window->next;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of one session that are in flight: taken in ascending order, resolved in any. The lowest unresolved
 * one is what a record carries as `una`. Up to 64 numbers stand in the struct itself; a wider window has a ring of
 * bits. All calls are O(1), amortised.
 */
#ifndef US_KAFKA_PRODUCER_INFLIGHT_H
#define US_KAFKA_PRODUCER_INFLIGHT_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

/* The widest window, 512 KiB of bits: one number that stays open can't make others pile up without end. */
#define US_INFLIGHT_MAX (UINT64_C(1) << 22)

struct us_inflight {
    uint64_t low, next; /* open or resolved: low..next-1; low itself is open unless low == next */
    uint64_t capacity;  /* bits, a power of two, >= 64 */
    union {
        uint64_t word;   /* capacity == 64 */
        uint64_t *words; /* owned */
    } resolved;          /* bit = number mod capacity; clear outside low..next-1 */
};

/* first: the first number that will be taken. Allocates nothing. */
void us_inflight_init(struct us_inflight *window, uint64_t first);
void us_inflight_destroy(struct us_inflight *window, const struct unsalt_mem *mem);
/* Makes room for one more number. Returns false when out of memory or at US_INFLIGHT_MAX: nothing changed. */
bool us_inflight_reserve(struct us_inflight *window, const struct unsalt_mem *mem);
/* Takes the number `next`. Room reserved. */
void us_inflight_take(struct us_inflight *window);
/* Resolves a number, once. Returns false, and does nothing, if it isn't open. */
bool us_inflight_resolve(struct us_inflight *window, const struct unsalt_mem *mem, uint64_t number);
/* True if nothing is open. */
bool us_inflight_is_empty(const struct us_inflight *window);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls through the allocator that every object is given; sizes are checked for overflow. */
#ifndef US_BASE_MEM_H
#define US_BASE_MEM_H
#include <stddef.h>
#include <stdint.h>
#include <unsalt/types.h>

/* The default allocator: malloc(3) and friends. */
extern const struct unsalt_mem us_mem_default;

void *us_alloc(const struct unsalt_mem *mem, size_t size);            /* NULL: out of memory; size >= 1 */
void *us_calloc(const struct unsalt_mem *mem, size_t n, size_t size); /* zeroed; NULL also on overflow */
/* Resizes an array to n elements; on NULL the old array is untouched. */
void *us_realloc_array(const struct unsalt_mem *mem, void *ptr, size_t n, size_t size);
/*
 * The array, with room for one more element than the `count` that it has: as it is, or moved to where it is twice as
 * large, at first `least` elements. *capacity follows. NULL: out of memory, or above 2^32 - 1 elements; the old array
 * and *capacity are untouched.
 */
void *us_array_room(const struct unsalt_mem *mem, void *array, uint32_t *capacity, uint32_t count, uint32_t least,
                    size_t size);
void us_free(const struct unsalt_mem *mem, void *ptr);                /* NULL is allowed */
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls through the allocator that every object is given; sizes are checked for overflow. */
#ifndef US_BASE_MEM_H
#define US_BASE_MEM_H
#include <stddef.h>
#include <unsalt/types.h>

/* The default allocator: malloc(3) and friends. */
extern const struct unsalt_mem us_mem_default;

void *us_alloc(const struct unsalt_mem *mem, size_t size);            /* NULL: out of memory; size >= 1 */
void *us_calloc(const struct unsalt_mem *mem, size_t n, size_t size); /* zeroed; NULL also on overflow */
/* Resizes an array to n elements; on NULL the old array is untouched. */
void *us_realloc_array(const struct unsalt_mem *mem, void *ptr, size_t n, size_t size);
void us_free(const struct unsalt_mem *mem, void *ptr);                /* NULL is allowed */
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting in place, in O(n log n) whatever the order, without memory: glibc's qsort(3) may call malloc(3). */
#ifndef US_BASE_SORT_H
#define US_BASE_SORT_H
#include <stdbool.h>
#include <stddef.h>

#define US_SORT_SIZE_MAX 64

/* less: is *a to stand before *b? size: of an element, 1..US_SORT_SIZE_MAX bytes. Not stable. */
void us_sort(void *base, size_t n, size_t size, bool (*less)(const void *a, const void *b));
#endif

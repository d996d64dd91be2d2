/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <string.h>

void *us_alloc(const struct unsalt_mem *mem, size_t size) {
    return mem->alloc(mem->user, size);
}

void *us_calloc(const struct unsalt_mem *mem, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    void *ptr = mem->alloc(mem->user, bytes);
    if (ptr)
        memset(ptr, 0, bytes);
    return ptr;
}

void *us_realloc_array(const struct unsalt_mem *mem, void *ptr, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return mem->resize(mem->user, ptr, bytes);
}

void *us_array_room(const struct unsalt_mem *mem, void *array, uint32_t *capacity, uint32_t count, uint32_t least,
                    size_t size) {
    if (count < *capacity)
        return array;
    if (*capacity > UINT32_MAX / 2)
        return NULL;
    uint32_t larger = *capacity ? 2 * *capacity : least;
    void *moved = us_realloc_array(mem, array, larger, size);
    if (moved)
        *capacity = larger;
    return moved;
}

void us_free(const struct unsalt_mem *mem, void *ptr) {
    if (ptr)
        mem->release(mem->user, ptr);
}

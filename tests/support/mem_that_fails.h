/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's default allocator, replaced by one that fails when the program's own `static bool fails(void)` says so,
 * which stands above the line that includes this. Once in a program, on any thread.
 */
#ifndef TESTS_SUPPORT_MEM_THAT_FAILS_H
#define TESTS_SUPPORT_MEM_THAT_FAILS_H
#include <base/mem.h>
#include <stdlib.h>

static void *alloc(void *user, size_t size) {
    (void)user;
    return fails() ? NULL : malloc(size);
}

static void *resize(void *user, void *ptr, size_t size) {
    (void)user;
    return fails() ? NULL : realloc(ptr, size);
}

static void release(void *user, void *ptr) {
    (void)user;
    free(ptr);
}

/* Instead of that of base/mem_default.c, which then isn't linked. */
const struct unsalt_mem us_mem_default = {NULL, alloc, resize, release};
#endif

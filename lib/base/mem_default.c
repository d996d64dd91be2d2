/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The default allocator; the one file that names malloc(3). For large blocks it asks for huge pages where the system
 * gives them to who asks (Documentation/admin-guide/mm/transhuge.rst of Linux): with 1,000,000 sessions nearly every
 * look-up is in a page that the processor's table of pages doesn't know, which costs as much as the memory itself.
 */
#define _DEFAULT_SOURCE
#include <base/mem.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE ((size_t)4 << 20) /* such a block has a huge page of 2 MiB wherever it begins */
#define PAGE ((uintptr_t)4096)

/* Advice only: whether it is followed makes no difference but of speed. */
static void *advised(void *ptr, size_t size) {
#ifdef MADV_HUGEPAGE
    if (ptr && size >= LARGE) {
        uintptr_t begin = ((uintptr_t)ptr + PAGE - 1) & ~(PAGE - 1), end = ((uintptr_t)ptr + size) & ~(PAGE - 1);
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
#endif
    return ptr;
}

static void *default_alloc(void *user, size_t size) {
    (void)user;
    return advised(malloc(size), size);
}

static void *default_resize(void *user, void *ptr, size_t size) {
    (void)user;
    return advised(realloc(ptr, size), size);
}

static void default_release(void *user, void *ptr) {
    (void)user;
    free(ptr);
}

const struct unsalt_mem us_mem_default = {NULL, default_alloc, default_resize, default_release};

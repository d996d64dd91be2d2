/* SPDX-License-Identifier: BSD-2-Clause */
/* The default allocator; the one file that names malloc(3). */
#include <base/mem.h>
#include <stdlib.h>

static void *default_alloc(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void *default_resize(void *user, void *ptr, size_t size) {
    (void)user;
    return realloc(ptr, size);
}

static void default_release(void *user, void *ptr) {
    (void)user;
    free(ptr);
}

const struct unsalt_mem us_mem_default = {NULL, default_alloc, default_resize, default_release};

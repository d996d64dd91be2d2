/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <support/check.h>
#include <support/failmem.h>

static void use(const struct unsalt_mem *mem) {
    unsigned char *bytes = us_alloc(mem, 10);
    CHECK(bytes != NULL);
    memset(bytes, 7, 10);
    unsigned char *more = us_realloc_array(mem, bytes, 100, 2);
    CHECK(more != NULL);
    CHECK_U64(more[9], 7);
    memset(more, 8, 200);
    us_free(mem, more);
    us_free(mem, NULL);
}

TEST(mem, default_allocator_works) {
    use(&us_mem_default);
}

TEST(mem, calls_go_through_the_allocator) {
    struct failmem fail;
    failmem_init(&fail);
    use(&fail.mem);
    CHECK_U64(fail.calls, 2);
    CHECK_U64(fail.peak, 210); /* failmem moves: both are alive for a moment */
    CHECK(failmem_is_balanced(&fail));
}

TEST(mem, calloc_gives_zeros) {
    struct failmem fail;
    failmem_init(&fail);
    unsigned char *bytes = us_calloc(&fail.mem, 50, 3);
    CHECK(bytes != NULL);
    CHECK_U64(fail.bytes, 150);
    for (int i = 0; i < 150; i++)
        CHECK_U64(bytes[i], 0);
    us_free(&fail.mem, bytes);
    CHECK(failmem_is_balanced(&fail));
}

TEST(mem, sizes_that_overflow_are_refused) {
    struct failmem fail;
    failmem_init(&fail);
    void *array = us_realloc_array(&fail.mem, NULL, 4, 4);
    CHECK(array != NULL);
    CHECK(us_calloc(&fail.mem, SIZE_MAX / 2, 3) == NULL);
    CHECK(us_realloc_array(&fail.mem, array, SIZE_MAX / 8 + 2, 8) == NULL);
    CHECK_U64(fail.calls, 1);
    CHECK_U64(fail.bytes, 16);
    us_free(&fail.mem, array);
}

TEST(mem, failure_leaves_the_old_array) {
    struct failmem fail;
    failmem_init(&fail);
    char *array = us_realloc_array(&fail.mem, NULL, 4, 1);
    CHECK(array != NULL);
    memcpy(array, "abc", 4);
    failmem_arm(&fail, 1, false);
    CHECK(us_realloc_array(&fail.mem, array, 8, 1) == NULL);
    CHECK_STR(array, "abc");
    us_free(&fail.mem, array);
    CHECK(failmem_is_balanced(&fail));
}

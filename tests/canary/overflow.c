/* SPDX-License-Identifier: BSD-2-Clause */
/* canary asan: AddressSanitizer */
/* canary valgrind: valgrind report */
/* One byte read behind the end of a block. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(canary, overflow, .timeout = 30) {
    volatile char *block = calloc(8, 1);
    volatile size_t index = 8;
    cr_assert(block[index] || index);
    free((void *)block);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* canary valgrind: valgrind report */
/* A branch on memory that was never written. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(canary, uninit, .timeout = 30) {
    volatile int *block = malloc(sizeof *block);
    volatile int seen = 0;
    if (*block == 12345)
        seen = 1;
    cr_assert(seen || !seen);
    free((void *)block);
}

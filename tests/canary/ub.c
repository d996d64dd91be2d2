/* SPDX-License-Identifier: BSD-2-Clause */
/* canary ubsan: runtime error */
/* A signed overflow: without -fno-sanitize-recover the test passes and the report scrolls by. */
#include <criterion/criterion.h>
#include <limits.h>

static volatile int big = INT_MAX;

Test(canary, ub, .timeout = 30) {
    volatile int sum = big + 1;
    cr_assert(sum || !sum);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* canary asan: AddressSanitizer|LeakSanitizer */
/* canary valgrind: valgrind report */
/* A block that nobody frees: Criterion ends with 0 although the sanitizer reports it. */
#include <criterion/criterion.h>
#include <stdlib.h>

static void *volatile lost;

Test(canary, leak, .timeout = 30) {
    lost = malloc(100);
    lost = malloc(200);
    cr_assert_not_null(lost);
    lost = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: failing tests */
/* A test that dies by a signal. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(canary, crash, .timeout = 30) {
    abort();
}

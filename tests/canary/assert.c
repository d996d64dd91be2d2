/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: failing tests */
/* An assertion that doesn't hold. */
#include <criterion/criterion.h>

Test(canary, assert, .timeout = 30) {
    cr_assert_eq(1, 2);
}

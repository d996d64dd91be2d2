/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: 2 skipped */
/* Tests that don't run must not look like tests that passed. */
#include <criterion/criterion.h>

Test(canary, skip, .timeout = 30) {
    cr_skip_test("no reason");
}

Test(canary, disabled, .disabled = true, .timeout = 30) {
    cr_assert(1);
}

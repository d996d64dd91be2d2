/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: Assertion Failed */
/* An assertion that fails in a teardown: Criterion prints it and says that the test passed. */
#include <criterion/criterion.h>

static void teardown(void) {
    cr_assert(0, "in the teardown");
}

Test(canary, teardown, .fini = teardown, .timeout = 30) {
    cr_assert(1);
}

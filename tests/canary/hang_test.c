/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: still running */
/* A test that forgot its timeout: the alarm of the program ends it. */
#include <criterion/criterion.h>
#include <unistd.h>

Test(canary, hang_test) {
    for (;;)
        pause();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: failing tests */
/* A plain program that reports a failed test and ends with 0. */
#include <stdio.h>

int main(void) {
    puts("ok - first");
    puts("not ok - second");
    return 0;
}

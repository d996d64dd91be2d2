/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: exit 3 */
/* A plain program that claims a passed test and ends with an error. */
#include <stdio.h>

int main(void) {
    puts("ok - claimed");
    return 3;
}

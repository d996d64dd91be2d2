/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the table of configuration properties, for the README. */
#include <unsalt/unsalt.h>
#include <stdio.h>

int main(void) {
    unsalt_conf_print_table(stdout);
    return 0;
}

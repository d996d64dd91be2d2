/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: no test in it */
/* A program of the framework without a test: Criterion ends with 0. */
#include <criterion/criterion.h>

extern int unused_symbol_that_keeps_the_file_from_being_empty;

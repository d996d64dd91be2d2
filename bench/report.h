/* SPDX-License-Identifier: BSD-2-Clause */
/* What benchmarks share: clocks, medians, and the two forms of output. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H
#include <stddef.h>

/* Seconds since an arbitrary moment; processor time of this process so far, of all its threads. */
double bench_wall(void);
double bench_cpu(void);

/* The median; sorts the values. */
double bench_median(double *values, size_t count);

/*
 * Prints a figure: a line of a table, or with FORMAT=json in the environment a JSON object on a line of its own.
 * `against` is what it was measured against, and `other` the figure of that; NULL and 0 if there is nothing.
 * ratio = value / other: below 1 is better.
 */
void bench_figure(const char *bench, const char *metric, double value, const char *unit, const char *against,
                  double other);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What benchmarks share: clocks, runs that are compared in pairs, and the two forms of output: a table, or with
 * FORMAT=json in the environment a JSON object on a line of its own for each figure. All of it on one thread.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H
#include <stdbool.h>
#include <stddef.h>

/* Seconds since an arbitrary moment; processor time of this process so far, of all its threads. */
double bench_wall(void);
double bench_cpu(void);

/* Was the whole matrix asked for (FULL=1 in the environment)? */
bool bench_full(void);

/*
 * How many there are to be: `count`, or with UNSALT_BENCH_TINY=1 a hundredth. Then the figures mean nothing, and their
 * JSON lines say so; names remain. It is for tests of the programs themselves.
 */
size_t bench_size(size_t count);

/* The median; sorts the values. count >= 1. */
double bench_median(double *values, size_t count);
/* The value that `share` (0..1) of them do not exceed; sorts the values. count >= 1. */
double bench_percentile(double *values, size_t count, double share);

/* What a side took in each round. What was run beside each other, in turns, stands at the same index. */
enum { BENCH_RUNS_MAX = 64 };
struct bench_runs {
    double wall[BENCH_RUNS_MAX], cpu[BENCH_RUNS_MAX];
    size_t count;
};
struct bench_clock {
    double wall, cpu;
};
struct bench_clock bench_start(void);
/* Adds a run: the time since `began`, times `scale` (1e9 / records: nanoseconds per record). More than fit: lost. */
void bench_stop(struct bench_clock began, double scale, struct bench_runs *runs);
/* Adds a run whose times are known, already in the unit of the figure. */
void bench_add(struct bench_runs *runs, double wall, double cpu);

/*
 * Prints a figure: `value`, and what it was measured against with the figure of that; NULL and 0 if there is nothing.
 * ratio = value / other: below 1 is better.
 */
void bench_figure(const char *bench, const char *metric, double value, const char *unit, const char *against,
                  double other);
/*
 * Prints a figure of several rounds: median, lowest and highest of both sides; the ratio of the medians, and the lowest
 * and highest ratio of a round. others: values of the same rounds, NULL if there is nothing to compare with.
 */
void bench_spread(const char *bench, const char *metric, const char *unit, const double *values, const char *against,
                  const double *others, size_t runs);
/* The two figures of bench_runs: `metric` is wall time, and `metric`_cpu processor time. */
void bench_compare(const char *bench, const char *metric, const char *unit, const struct bench_runs *ours,
                   const char *against, const struct bench_runs *theirs);
#endif

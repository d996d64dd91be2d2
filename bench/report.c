/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

double bench_wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void print_json(const char *bench, const char *metric, double value, const char *unit, const char *against,
                       double other) {
    printf("{\"bench\":\"%s\",\"metric\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",", bench, metric, value, unit);
    if (against)
        printf("\"against\":\"%s\",\"ratio\":%.4f}\n", against, value / other);
    else
        printf("\"against\":null,\"ratio\":null}\n");
}

void bench_figure(const char *bench, const char *metric, double value, const char *unit, const char *against,
                  double other) {
    static int lines;
    const char *format = getenv("FORMAT");
    if (format && strcmp(format, "json") == 0) {
        print_json(bench, metric, value, unit, against, other);
    } else {
        if (!lines++)
            printf("%-32s %-22s %10s %-10s %10s  %6s  %s\n", "bench", "metric", "unsalt", "unit", "other", "ratio",
                   "against");
        printf("%-32s %-22s %10.1f %-10s ", bench, metric, value, unit);
        if (against)
            printf("%10.1f  %6.3f  %s\n", other, value / other, against);
        else
            printf("%10s  %6s\n", "-", "-");
    }
    fflush(stdout);
}

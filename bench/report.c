/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_wall(void) {
    return seconds_of(CLOCK_MONOTONIC);
}

double bench_cpu(void) {
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

bool bench_full(void) {
    return is_set("FULL");
}

static bool is_tiny(void) {
    return is_set("UNSALT_BENCH_TINY");
}

size_t bench_size(size_t count) {
    return is_tiny() ? (count + 99) / 100 : count;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_percentile(double *values, size_t count, double share) {
    double at = share * (double)count;
    size_t index = at < 1 ? 0 : (size_t)at - ((double)(size_t)at == at);
    qsort(values, count, sizeof *values, ascending);
    return values[index < count ? index : count - 1];
}

struct bench_clock bench_start(void) {
    return (struct bench_clock){bench_wall(), bench_cpu()};
}

void bench_stop(struct bench_clock began, double scale, struct bench_runs *runs) {
    double wall = bench_wall(), cpu = bench_cpu();
    bench_add(runs, (wall - began.wall) * scale, (cpu - began.cpu) * scale);
}

void bench_add(struct bench_runs *runs, double wall, double cpu) {
    if (runs->count == BENCH_RUNS_MAX)
        return;
    runs->wall[runs->count] = wall;
    runs->cpu[runs->count++] = cpu;
}

/* Median, lowest and highest of some runs. */
struct spread {
    double median, min, max;
};

static struct spread spread_of(const double *values, size_t count) {
    double sorted[BENCH_RUNS_MAX];
    count = count < BENCH_RUNS_MAX ? count : BENCH_RUNS_MAX;
    memcpy(sorted, values, count * sizeof *sorted);
    double median = bench_median(sorted, count);
    return (struct spread){median, sorted[0], sorted[count - 1]};
}

/* One figure as it is printed. against == NULL: nothing is compared. runs == 1: no spread. */
struct figure {
    const char *bench, *metric, *unit, *against;
    struct spread ours, theirs, ratio;
    size_t runs;
};

static void print_json(FILE *out, const struct figure *f) {
    fprintf(out, "{%s\"bench\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"runs\":%zu,",
            is_tiny() ? "\"tiny\":true," : "", f->bench, f->metric, f->unit, f->runs);
    fprintf(out, "\"value\":%.4f,\"min\":%.4f,\"max\":%.4f,", f->ours.median, f->ours.min, f->ours.max);
    if (f->against)
        fprintf(out, "\"against\":\"%s\",\"other\":%.4f,\"other_min\":%.4f,\"other_max\":%.4f,"
                "\"ratio\":%.4f,\"ratio_min\":%.4f,\"ratio_max\":%.4f}\n",
                f->against, f->theirs.median, f->theirs.min, f->theirs.max, f->ratio.median, f->ratio.min,
                f->ratio.max);
    else
        fprintf(out, "\"against\":null,\"other\":null,\"ratio\":null}\n");
}

static const char *range(char *text, size_t size, const struct spread *spread, size_t runs, int digits) {
    if (runs > 1)
        snprintf(text, size, "%.*f..%.*f", digits, spread->min, digits, spread->max);
    else
        snprintf(text, size, "-");
    return text;
}

static void print_row(const struct figure *f) {
    static int lines;
    char ours[48], theirs[48], ratio[48];
    if (!lines++)
        printf("%-44s %-28s %-4s %10s %-18s %10s %-18s %6s %-12s %s\n", "bench", "metric", "unit", "unsalt", "min..max",
               "other", "min..max", "ratio", "min..max", "against");
    printf("%-44s %-28s %-4s %10.1f %-18s ", f->bench, f->metric, f->unit, f->ours.median,
           range(ours, sizeof ours, &f->ours, f->runs, 1));
    if (f->against)
        printf("%10.1f %-18s %6.3f %-12s %s\n", f->theirs.median, range(theirs, sizeof theirs, &f->theirs, f->runs, 1),
               f->ratio.median, range(ratio, sizeof ratio, &f->ratio, f->runs, 2), f->against);
    else
        printf("%10s %-18s %6s\n", "-", "-", "-");
}

/* Beside the table, if a file is named. */
static void keep(const struct figure *figure) {
    const char *path = getenv("UNSALT_BENCH_JSON");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    print_json(file, figure);
    fclose(file);
}

static void print(const struct figure *figure) {
    const char *format = getenv("FORMAT");
    keep(figure);
    if (format && strcmp(format, "json") == 0)
        print_json(stdout, figure);
    else
        print_row(figure);
    fflush(stdout);
}

void bench_figure(const char *bench, const char *metric, double value, const char *unit, const char *against,
                  double other) {
    bench_spread(bench, metric, unit, &value, against, against ? &other : NULL, 1);
}

void bench_spread(const char *bench, const char *metric, const char *unit, const double *values, const char *against,
                  const double *others, size_t runs) {
    struct figure figure = {.bench = bench, .metric = metric, .unit = unit, .runs = runs};
    figure.ours = spread_of(values, runs);
    if (others) {
        double ratios[BENCH_RUNS_MAX];
        for (size_t i = 0; i < runs && i < BENCH_RUNS_MAX; i++)
            ratios[i] = values[i] / others[i];
        figure.against = against;
        figure.theirs = spread_of(others, runs);
        figure.ratio = spread_of(ratios, runs);
        figure.ratio.median = figure.ours.median / figure.theirs.median;
    }
    print(&figure);
}

void bench_compare(const char *bench, const char *metric, const char *unit, const struct bench_runs *ours,
                   const char *against, const struct bench_runs *theirs) {
    char cpu[64];
    bench_spread(bench, metric, unit, ours->wall, against, theirs ? theirs->wall : NULL, ours->count);
    snprintf(cpu, sizeof cpu, "%s_cpu", metric);
    bench_spread(bench, cpu, unit, ours->cpu, against, theirs ? theirs->cpu : NULL, ours->count);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every statistic once: the field of unsalt_stats_t, which is its name in JSON, and what it is called and means for
 * Prometheus. Both formatters walk over this table, so a new statistic is a field of the struct and a line here.
 */
#ifndef US_KAFKA_STATS_TABLE_H
#define US_KAFKA_STATS_TABLE_H
#include <stdbool.h>
#include <unsalt/stats.h>

enum us_stat_kind {
    US_STAT_COUNTER,  /* only goes up; its metric ends in _total */
    US_STAT_GAUGE,    /* goes up and down */
    US_STAT_FLAG,     /* an int, true or false: a gauge of 1 or 0 */
    US_STAT_HISTOGRAM /* the buckets of a waiting time; the row that follows is its sum, in ns */
};

/* The elements of a field that is an array: one series each, told apart by a label. */
struct us_stat_set {
    const char *label;
    int count;
    const char *(*name)(int index);
    const bool *gauge; /* by index; NULL: all are what the row says. Else the row stands for those of its kind only */
};

struct us_stat {
    const char *field;             /* NULL: another row has put it into the JSON text */
    const char *metric;            /* NULL: it is part of another row's metric */
    const char *help;              /* one line without backslashes */
    const struct us_stat_set *set; /* NULL: one number */
    const struct us_stat_set *inner; /* of an array of arrays: the elements of each; else NULL */
    size_t offset;                 /* in the struct: unsalt_stats_t, or another that has a table */
    enum us_stat_kind kind;
};

extern const struct us_stat us_stats_table[];
extern const size_t us_stats_table_size;

/* A whole struct out of one that may be an older, shorter one: what it lacks is 0. */
unsalt_stats_t us_stats_whole(const unsalt_stats_t *stats, size_t size);
/* The number at `index` of a row's field, 0 for one that is no array; of an array of arrays in the order of memory. */
uint64_t us_stat_value(const struct us_stat *stat, const void *stats, int index);

/* The two formatters, for any whole struct and its table of `rows`. As unsalt_stats_json() and _prometheus(). */
int us_stats_write_json(const struct us_stat *table, size_t rows, const void *stats, char *buf, size_t size);
int us_stats_write_prometheus(const struct us_stat *table, size_t rows, const void *stats, const char *labels,
                              char *buf, size_t size);
#endif

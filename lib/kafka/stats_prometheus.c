/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics in Prometheus' text format, version 0.0.4: HELP and TYPE before the series of each metric, names and units
 * by its conventions (prometheus.io, "Metric and label naming"). Numbers are integers, and seconds are written by
 * hand: the decimal point is a point whatever locale the application has set.
 */
#include <inttypes.h>
#include <kafka/stats_table.h>
#include <kafka/stats_text.h>

#define SECOND UINT64_C(1000000000)

struct writer {
    struct us_text text;
    const char *labels; /* of the application, "" = none */
};

static void add_head(struct writer *w, const struct us_stat *stat) {
    static const char *const types[] = {
        [US_STAT_COUNTER] = "counter", [US_STAT_GAUGE] = "gauge", [US_STAT_FLAG] = "gauge",
        [US_STAT_HISTOGRAM] = "histogram"};
    us_text_add(&w->text, "# HELP %s %s\n# TYPE %s %s\n", stat->metric, stat->help, stat->metric, types[stat->kind]);
}

/* The name of a series, its labels up to where the value of `label` is written; NULL: all of them, and a blank. */
static void add_name(struct writer *w, const char *metric, const char *suffix, const char *label) {
    us_text_add(&w->text, "%s%s", metric, suffix);
    if (label) {
        us_text_add(&w->text, "{%s%s%s=\"", w->labels, *w->labels ? "," : "", label);
    } else if (*w->labels) {
        us_text_add(&w->text, "{%s} ", w->labels);
    } else {
        us_text_add(&w->text, " ");
    }
}

static void add_seconds(struct writer *w, uint64_t ns) {
    uint64_t rest = ns % SECOND;
    int digits = 9;
    us_text_add(&w->text, "%" PRIu64, ns / SECOND);
    if (rest == 0) {
        return;
    }
    for (; rest % 10 == 0; rest /= 10) {
        digits--;
    }
    us_text_add(&w->text, ".%0*" PRIu64, digits, rest);
}

/* Elements of arrays: a label for each of the two. */
static void add_inner(struct writer *w, const struct us_stat *stat, const void *stats) {
    for (int i = 0; i < stat->set->count; i++) {
        for (int j = 0; j < stat->inner->count; j++) {
            add_name(w, stat->metric, "", stat->set->label);
            us_text_add(&w->text, "%s\",%s=\"%s\"} %" PRIu64 "\n", stat->set->name(i), stat->inner->label,
                        stat->inner->name(j), us_stat_value(stat, stats, i * stat->inner->count + j));
        }
    }
}

static void add_set(struct writer *w, const struct us_stat *stat, const void *stats) {
    const struct us_stat_set *set = stat->set;
    for (int i = 0; i < set->count; i++) {
        if (!set->gauge || set->gauge[i] == (stat->kind == US_STAT_GAUGE)) {
            add_name(w, stat->metric, "", set->label);
            us_text_add(&w->text, "%s\"} %" PRIu64 "\n", set->name(i), us_stat_value(stat, stats, i));
        }
    }
}

/* Buckets count what is at or below their bound, so each one includes those before it. */
static void add_histogram(struct writer *w, const struct us_stat *stat, const void *stats) {
    const uint64_t *bounds = unsalt_wait_bounds();
    uint64_t count = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        count += us_stat_value(stat, stats, i);
        add_name(w, stat->metric, "_bucket", "le");
        if (bounds[i] == UNSALT_NEVER) {
            us_text_add(&w->text, "+Inf");
        } else {
            add_seconds(w, bounds[i]);
        }
        us_text_add(&w->text, "\"} %" PRIu64 "\n", count);
    }
    add_name(w, stat->metric, "_sum", NULL);
    add_seconds(w, us_stat_value(stat + 1, stats, 0));
    us_text_add(&w->text, "\n");
    add_name(w, stat->metric, "_count", NULL);
    us_text_add(&w->text, "%" PRIu64 "\n", count);
}

int us_stats_write_prometheus(const struct us_stat *table, size_t rows, const void *stats, const char *labels,
                              char *buf, size_t size) {
    struct writer w = {.text = {.at = buf, .size = size}, .labels = labels ? labels : ""};
    for (size_t i = 0; i < rows; i++) {
        const struct us_stat *stat = &table[i];
        if (!stat->metric) {
            continue;
        }
        add_head(&w, stat);
        if (stat->inner) {
            add_inner(&w, stat, stats);
        } else if (stat->set) {
            add_set(&w, stat, stats);
        } else if (stat->kind == US_STAT_HISTOGRAM) {
            add_histogram(&w, stat, stats);
        } else {
            add_name(&w, stat->metric, "", NULL);
            us_text_add(&w.text, "%" PRIu64 "\n", us_stat_value(stat, stats, 0));
        }
    }
    return (int)w.text.used;
}

int unsalt_stats_prometheus(const unsalt_stats_t *stats, size_t stats_size, const char *labels, char *buf,
                            size_t size) {
    const unsalt_stats_t whole = us_stats_whole(stats, stats_size);
    return us_stats_write_prometheus(us_stats_table, us_stats_table_size, &whole, labels, buf, size);
}

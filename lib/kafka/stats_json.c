/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics as one JSON object, names as in the struct. */
#include <inttypes.h>
#include <kafka/stats_table.h>
#include <kafka/stats_text.h>

/* The numbers from index `first` on, under the names of a set. */
static void add_numbers(struct us_text *text, const struct us_stat_set *set, const struct us_stat *stat,
                        const void *stats, int first) {
    us_text_add(text, "{");
    for (int i = 0; i < set->count; i++) {
        us_text_add(text, "%s\"%s\":%" PRIu64, i ? "," : "", set->name(i), us_stat_value(stat, stats, first + i));
    }
    us_text_add(text, "}");
}

static void add_set(struct us_text *text, const struct us_stat *stat, const void *stats) {
    if (!stat->inner) {
        add_numbers(text, stat->set, stat, stats, 0);
        return;
    }
    us_text_add(text, "{");
    for (int i = 0; i < stat->set->count; i++) {
        us_text_add(text, "%s\"%s\":", i ? "," : "", stat->set->name(i));
        add_numbers(text, stat->inner, stat, stats, i * stat->inner->count);
    }
    us_text_add(text, "}");
}

/* Each bucket under its upper bound in nanoseconds, the last one under "inf". */
static void add_waits(struct us_text *text, const struct us_stat *stat, const void *stats) {
    const uint64_t *bounds = unsalt_wait_bounds();
    us_text_add(text, "{");
    for (int i = 0; i + 1 < UNSALT_WAIT_BUCKETS; i++) {
        us_text_add(text, "\"%" PRIu64 "\":%" PRIu64 ",", bounds[i], us_stat_value(stat, stats, i));
    }
    us_text_add(text, "\"inf\":%" PRIu64 "}", us_stat_value(stat, stats, UNSALT_WAIT_BUCKETS - 1));
}

static void add_value(struct us_text *text, const struct us_stat *stat, const void *stats) {
    if (stat->set) {
        add_set(text, stat, stats);
    } else if (stat->kind == US_STAT_HISTOGRAM) {
        add_waits(text, stat, stats);
    } else if (stat->kind == US_STAT_FLAG) {
        us_text_add(text, us_stat_value(stat, stats, 0) ? "true" : "false");
    } else {
        us_text_add(text, "%" PRIu64, us_stat_value(stat, stats, 0));
    }
}

int us_stats_write_json(const struct us_stat *table, size_t rows, const void *stats, char *buf, size_t size) {
    struct us_text text = {.at = buf, .size = size};
    for (size_t i = 0; i < rows; i++) {
        const struct us_stat *stat = &table[i];
        if (stat->field) {
            us_text_add(&text, "%s\"%s\":", text.used ? "," : "{", stat->field);
            add_value(&text, stat, stats);
        }
    }
    us_text_add(&text, "}");
    return (int)text.used;
}

int unsalt_stats_json(const unsalt_stats_t *stats, size_t stats_size, char *buf, size_t size) {
    const unsalt_stats_t whole = us_stats_whole(stats, stats_size);
    return us_stats_write_json(us_stats_table, us_stats_table_size, &whole, buf, size);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics as one JSON object, names as in the struct; written without allocating, like snprintf(3). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unsalt/stats.h>

struct text {
    char *buf;
    size_t size, used; /* used counts what didn't fit, too */
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...) {
    va_list args;
    size_t room = t->used < t->size ? t->size - t->used : 0;
    va_start(args, format);
    int n = vsnprintf(room ? t->buf + t->used : NULL, room, format, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

/* The fields that are one number. In the order of the struct, around the arrays. */
#define BEFORE_GAPS(X) X(held_bytes)
#define AFTER_GAPS(X)                                                                                                  \
    X(gaps_open) X(sessions) X(sessions_created) X(sessions_expired) X(sessions_remembered)                            \
    X(restarts) X(epochs) X(starts_seen)
#define AFTER_BUDGETS(X)                                                                                               \
    X(in_order) X(irregular) X(questions) X(answers) X(question_failures) X(malformed) X(unacked) X(partitions)        \
    X(generations) X(commits) X(commit_failures) X(offset_jumps) X(clock_regressions)                                  \
    X(polls) X(sweeps) X(sweep_hits)

#define NUMBER(field) add(t, ",\"" #field "\":%" PRIu64, stats->field);

static void add_states(struct text *t, const unsalt_stats_t *stats) {
    add(t, ",\"state\":");
    for (int i = 0; i < UNSALT_STATE__CNT; i++)
        add(t, "%c\"%s\":%" PRIu64, i ? ',' : '{', unsalt_state_name((unsalt_state_t)i), stats->state[i]);
    add(t, "},\"conserved\":%s", stats->conserved ? "true" : "false");
}

static void add_reasons(struct text *t, const char *name, const uint64_t *counts) {
    add(t, ",\"%s\":", name);
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        add(t, "%c\"%s\":%" PRIu64, i ? ',' : '{', unsalt_gap_reason_name((unsalt_gap_reason_t)i), counts[i]);
    add(t, "}");
}

static void add_budgets(struct text *t, const unsalt_stats_t *stats) {
    static const char *const names[] = {"records", "bytes", "session_records", "session_bytes"};
    add(t, ",\"budget_full\":");
    for (int i = 0; i < 4; i++)
        add(t, "%c\"%s\":%" PRIu64, i ? ',' : '{', names[i], stats->budget_full[i]);
    add(t, "}");
}

/* Each bucket with its upper bound in ns; the last has none. */
static void add_waits(struct text *t, const unsalt_stats_t *stats) {
    const uint64_t *bounds = unsalt_wait_bounds();
    add(t, ",\"wait_count\":[");
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        add(t, "%s{\"below_ns\":", i ? "," : "");
        if (bounds[i] == UNSALT_NEVER)
            add(t, "null");
        else
            add(t, "%" PRIu64, bounds[i]);
        add(t, ",\"count\":%" PRIu64 "}", stats->wait_count[i]);
    }
    add(t, "]");
}

int unsalt_stats_json(const unsalt_stats_t *stats, char *buf, size_t size) {
    struct text text = {buf, size, 0}, *t = &text;
    add(t, "{\"received\":%" PRIu64, stats->received);
    add_states(t, stats);
    BEFORE_GAPS(NUMBER)
    add_reasons(t, "gaps", stats->gaps);
    add_reasons(t, "gap_numbers", stats->gap_numbers);
    AFTER_GAPS(NUMBER)
    add_budgets(t, stats);
    AFTER_BUDGETS(NUMBER)
    add_waits(t, stats);
    add(t, ",\"wait_sum_ns\":%" PRIu64 "}", stats->wait_sum_ns);
    return (int)text.used;
}

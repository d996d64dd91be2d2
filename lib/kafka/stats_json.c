/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics as one JSON object, names as in the struct. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unsalt/stats.h>

struct text {
    char *at;
    size_t size, used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...) {
    size_t room = text->used < text->size ? text->size - text->used : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? text->at + text->used : NULL, room, format, args);
    va_end(args);
    text->used += n > 0 ? (size_t)n : 0;
}

static void add_states(struct text *text, const unsalt_stats_t *stats) {
    add(text, ",\"state\":{");
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        add(text, "%s\"%s\":%" PRIu64, i ? "," : "", unsalt_state_name((unsalt_state_t)i), stats->state[i]);
    }
    add(text, "}");
}

static void add_reasons(struct text *text, const char *name, const uint64_t *values) {
    add(text, ",\"%s\":{", name);
    for (int i = 0; i < UNSALT_GAP__CNT; i++) {
        add(text, "%s\"%s\":%" PRIu64, i ? "," : "", unsalt_gap_reason_name((unsalt_gap_reason_t)i), values[i]);
    }
    add(text, "}");
}

static void add_budgets(struct text *text, const uint64_t *values) {
    add(text, ",\"budget_full\":{");
    for (int i = 0; i < UNSALT_BUDGET__CNT; i++) {
        add(text, "%s\"%s\":%" PRIu64, i ? "," : "", unsalt_budget_name((unsalt_budget_t)i), values[i]);
    }
    add(text, "}");
}

/* Each bucket under its upper bound in nanoseconds, the last one under "inf". */
static void add_waits(struct text *text, const uint64_t *values) {
    const uint64_t *bounds = unsalt_wait_bounds();
    add(text, ",\"wait_count\":{");
    for (int i = 0; i + 1 < UNSALT_WAIT_BUCKETS; i++) {
        add(text, "\"%" PRIu64 "\":%" PRIu64 ",", bounds[i], values[i]);
    }
    add(text, "\"inf\":%" PRIu64 "}", values[UNSALT_WAIT_BUCKETS - 1]);
}

/* Fields that are one number, in the order of the struct. */
#define NUMBERS(X)                                                                                                    \
    X(held_bytes) X(gaps_open) X(sessions) X(sessions_created) X(sessions_expired) X(sessions_remembered) X(restarts)  \
    X(epochs) X(starts_seen) X(in_order) X(irregular) X(questions) X(answers) X(question_failures) X(malformed)        \
    X(unacked) X(partitions) X(generations) X(commits) X(commit_failures) X(offset_jumps) X(clock_regressions)         \
    X(polls) X(sweeps) X(sweep_hits) X(wait_sum_ns)

int unsalt_stats_json(const unsalt_stats_t *stats, char *buf, size_t size) {
    struct text text = {.at = buf, .size = size};
    add(&text, "{\"received\":%" PRIu64, stats->received);
    add_states(&text, stats);
    add(&text, ",\"conserved\":%s", stats->conserved ? "true" : "false");
#define X(field) add(&text, ",\"" #field "\":%" PRIu64, stats->field);
    NUMBERS(X)
#undef X
    add_reasons(&text, "gaps", stats->gaps);
    add_reasons(&text, "gap_numbers", stats->gap_numbers);
    add_budgets(&text, stats->budget_full);
    add_waits(&text, stats->wait_count);
    add(&text, "}");
    return (int)text.used;
}

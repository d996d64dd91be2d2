/* SPDX-License-Identifier: BSD-2-Clause */
/* Every statistic of a pipeline once, as in stats_table.c. */
#include <base/copy_out.h>
#include <kafka/pipeline.h>
#include <kafka/stats_table.h>
#include <string.h>

static const char *state_name(int i) {
    return unsalt_pipeline_state_name((unsalt_pipeline_state_t)i);
}

static const char *outcome_name(int i) {
    return unsalt_pipeline_outcome_name((unsalt_pipeline_outcome_t)i);
}

static const char *phase_name(int i) {
    return unsalt_pipeline_phase_name((unsalt_pipeline_phase_t)i);
}

static const bool all_gauges[UNSALT_PIPELINE_IN__CNT] = {
#define X(C, name, text) [UNSALT_PIPELINE_IN_##C] = true,
    UNSALT_PIPELINE_STATES(X)
#undef X
};

static const struct us_stat_set states = {"state", UNSALT_PIPELINE_IN__CNT, state_name, all_gauges};
static const struct us_stat_set outcomes = {"outcome", UNSALT_PIPELINE_WAS__CNT, outcome_name, NULL};
static const struct us_stat_set phases = {"phase", UNSALT_PIPELINE_PHASE__CNT, phase_name, NULL};

#define ROW(kind, field, set, metric, help)                                                                           \
    {#field, metric, help, set, NULL, offsetof(unsalt_pipeline_stats_t, field), US_STAT_##kind}

static const struct us_stat table[] = {
    ROW(COUNTER, entered, NULL, "unsalt_pipeline_records_entered_total", "Records that came into the pipeline."),
    ROW(GAUGE, state, &states, "unsalt_pipeline_records_inside", "Records in the pipeline, by where they are."),
    ROW(COUNTER, outcome, &outcomes, "unsalt_pipeline_records_total", "Records that left, by what became of them."),
    ROW(FLAG, conserved, NULL, "unsalt_pipeline_records_conserved",
        "1 if every record that entered is inside or has left: a 0 is a fault of the library."),
    ROW(GAUGE, waiting_turn, NULL, "unsalt_pipeline_records_waiting_turn", "Records inside whose turn has not come."),
    ROW(GAUGE, waiting_room, NULL, "unsalt_pipeline_records_waiting_room",
        "Records held by the core that found no room for phase 1."),
    ROW(GAUGE, bytes, NULL, "unsalt_pipeline_bytes", "Key and payload of the records inside."),
    ROW(GAUGE, sessions, NULL, "unsalt_pipeline_sessions", "Sessions with a record inside."),
    ROW(GAUGE, sessions_halted, NULL, "unsalt_pipeline_sessions_halted", "Sessions that stand."),
    ROW(GAUGE, halted_records, NULL, "unsalt_pipeline_halted_records", "Records inside that belong to them."),
    ROW(GAUGE, strays, NULL, "unsalt_pipeline_strays", "Calls of prepare that run though nobody waits for them."),
    ROW(COUNTER, attempts, &phases, "unsalt_pipeline_attempts_total", "Calls of the callbacks."),
    ROW(COUNTER, retries, &phases, "unsalt_pipeline_retries_total", "Calls for a record that had failed before."),
    ROW(COUNTER, failures, &phases, "unsalt_pipeline_failures_total",
        "Calls that failed; of prepare also those that took too long."),
    ROW(COUNTER, timeouts, &phases, "unsalt_pipeline_timeouts_total", "Calls that took longer than their limit."),
    ROW(COUNTER, final_failures, &phases, "unsalt_pipeline_final_failures_total",
        "Records that failed for good, and were not cancelled meanwhile."),
    ROW(COUNTER, dead_letter_failures, NULL, "unsalt_pipeline_dead_letter_failures_total",
        "Attempts to store a dead letter that failed."),
    ROW(COUNTER, halts, NULL, "unsalt_pipeline_halts_total", "Times that a session was halted."),
    ROW(COUNTER, full, NULL, "unsalt_pipeline_full_total", "Times that reading stopped for want of room."),
    ROW(HISTOGRAM, prepare_count, NULL, "unsalt_pipeline_prepare_seconds", "How long calls of prepare took."),
    ROW(COUNTER, prepare_sum_ns, NULL, NULL, NULL),
    ROW(HISTOGRAM, deliver_count, NULL, "unsalt_pipeline_deliver_seconds", "How long calls of deliver took."),
    ROW(COUNTER, deliver_sum_ns, NULL, NULL, NULL),
    ROW(HISTOGRAM, queue_count, NULL, "unsalt_pipeline_queue_seconds", "How long records waited for a worker."),
    ROW(COUNTER, queue_sum_ns, NULL, NULL, NULL),
    ROW(HISTOGRAM, turn_count, NULL, "unsalt_pipeline_turn_seconds",
        "From the end of phase 1 to the beginning of phase 2."),
    ROW(COUNTER, turn_sum_ns, NULL, NULL, NULL),
};
#define ROWS (sizeof(table) / sizeof(*table))

/* ---- collecting */

static void copy_times(const struct us_pipe_times *times, uint64_t *count, uint64_t *sum_ns) {
    memcpy(count, times->count, sizeof(times->count));
    *sum_ns = times->sum_ns;
}

static void add_counters(const struct us_pipe_counters *c, unsalt_pipeline_stats_t *stats) {
    stats->entered = c->entered;
    memcpy(stats->state, c->state, sizeof(stats->state));
    memcpy(stats->outcome, c->outcome, sizeof(stats->outcome));
    memcpy(stats->attempts, c->attempts, sizeof(stats->attempts));
    memcpy(stats->retries, c->retries, sizeof(stats->retries));
    memcpy(stats->failures, c->failures, sizeof(stats->failures));
    memcpy(stats->timeouts, c->timeouts, sizeof(stats->timeouts));
    memcpy(stats->final_failures, c->final_failures, sizeof(stats->final_failures));
    stats->dead_letter_failures = c->burial_failures;
    stats->sessions = c->sessions;
    stats->sessions_halted = c->standing;
    stats->strays = c->strays;
    stats->halts = c->halts;
    copy_times(&c->took[US_PIPE_PREPARE], stats->prepare_count, &stats->prepare_sum_ns);
    copy_times(&c->took[US_PIPE_DELIVER], stats->deliver_count, &stats->deliver_sum_ns);
    copy_times(&c->queued, stats->queue_count, &stats->queue_sum_ns);
    copy_times(&c->turn, stats->turn_count, &stats->turn_sum_ns);
}

static bool sums_up(const unsalt_pipeline_stats_t *stats) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_PIPELINE_IN__CNT; i++) {
        sum += stats->state[i];
    }
    for (int i = 0; i < UNSALT_PIPELINE_WAS__CNT; i++) {
        sum += stats->outcome[i];
    }
    return sum == stats->entered;
}

int unsalt_pipeline_stats(const unsalt_pipeline_t *p, unsalt_pipeline_stats_t *stats, size_t size) {
    struct unsalt_pipeline *mine = (struct unsalt_pipeline *)p; /* for the lock */
    unsalt_pipeline_stats_t now = {0};
    if (!stats || size == 0) {
        return -1;
    }
    pthread_mutex_lock(&mine->lock);
    const struct us_pipe *pipe = &mine->pipe;
    add_counters(&pipe->counters, &now);
    now.waiting_turn = pipe->waits.records;
    now.bytes = pipe->waits.bytes + pipe->turned.bytes + pipe->halted.bytes;
    now.halted_records = pipe->halted.records;
    now.full = mine->full;
    pthread_mutex_unlock(&mine->lock);
    now.waiting_room = mine->early.waiting;
    now.conserved = sums_up(&now);
    us_copy_out(stats, size, &now, sizeof(now));
    return 0;
}

/* ---- formats */

static unsalt_pipeline_stats_t whole(const unsalt_pipeline_stats_t *stats, size_t size) {
    unsalt_pipeline_stats_t all = {0};
    memcpy(&all, stats, size < sizeof(all) ? size : sizeof(all));
    return all;
}

int unsalt_pipeline_stats_json(const unsalt_pipeline_stats_t *stats, size_t stats_size, char *buf, size_t size) {
    const unsalt_pipeline_stats_t all = whole(stats, stats_size);
    return us_stats_write_json(table, ROWS, &all, buf, size);
}

int unsalt_pipeline_stats_prometheus(const unsalt_pipeline_stats_t *stats, size_t stats_size, const char *labels,
                                     char *buf, size_t size) {
    const unsalt_pipeline_stats_t all = whole(stats, stats_size);
    return us_stats_write_prometheus(table, ROWS, &all, labels, buf, size);
}

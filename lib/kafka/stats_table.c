/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/stats_table.h>
#include <string.h>

static const char *state_name(int i) {
    return unsalt_state_name((unsalt_state_t)i);
}

static const char *reason_name(int i) {
    return unsalt_gap_reason_name((unsalt_gap_reason_t)i);
}

static const char *budget_name(int i) {
    return unsalt_budget_name((unsalt_budget_t)i);
}

/* A record leaves `held` and `ready` again and stays in the other states: a metric can't be of two types. */
static const bool state_is_gauge[UNSALT_STATE__CNT] = {
#define X(C, name, gauge, text) [UNSALT_STATE_##C] = gauge,
    UNSALT_STATES(X)
#undef X
};

static const struct us_stat_set states = {"state", UNSALT_STATE__CNT, state_name, state_is_gauge};
static const struct us_stat_set reasons = {"reason", UNSALT_GAP__CNT, reason_name, NULL};
static const char *outcome_name(int i) {
    return unsalt_budget_outcome_name((unsalt_budget_outcome_t)i);
}

static const char *rehearsal_name(int i) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_REHEARSALS(X)
#undef X
    };
    return names[i];
}

static const struct us_stat_set outcomes = {"outcome", UNSALT_OUTCOME__CNT, outcome_name, NULL};
static const struct us_stat_set rehearsals = {"fault", UNSALT_REHEARSAL__CNT, rehearsal_name, NULL};
static const struct us_stat_set budgets = {"budget", UNSALT_BUDGET__CNT, budget_name, NULL};

#define ROW(kind, field, set, metric, help)                                                                           \
    {#field, metric, help, set, NULL, offsetof(unsalt_stats_t, field), US_STAT_##kind}
/* A second metric out of a field that is in the table already. */
#define ALSO(kind, field, set, metric, help)                                                                          \
    {NULL, metric, help, set, NULL, offsetof(unsalt_stats_t, field), US_STAT_##kind}

const struct us_stat us_stats_table[] = {
    ROW(COUNTER, received, NULL, "unsalt_records_received_total", "Records read from the partitions."),
    ROW(COUNTER, state, &states, "unsalt_records_total", "Records received, by the state that they ended in."),
    ALSO(GAUGE, state, &states, "unsalt_records_pending", "Records that wait for their turn, or to be handed out."),
    ROW(FLAG, conserved, NULL, "unsalt_records_conserved",
        "1 if every record received is in exactly one state: a 0 is a fault of the library."),
    ROW(GAUGE, held_bytes, NULL, "unsalt_held_bytes", "Memory that held records pin, estimated."),
    ROW(GAUGE, gaps_open, NULL, "unsalt_gaps_open", "Sessions that wait for a missing number."),
    ROW(COUNTER, gaps, &reasons, "unsalt_gaps_total", "Gaps given up."),
    ROW(COUNTER, gap_numbers, &reasons, "unsalt_gap_numbers_total", "Sequence numbers in the gaps given up."),
    ROW(GAUGE, sessions, NULL, "unsalt_sessions", "Sessions in memory."),
    ROW(COUNTER, sessions_created, NULL, "unsalt_sessions_started_total", "Sessions that came into memory."),
    ROW(COUNTER, sessions_expired, NULL, "unsalt_sessions_expired_total", "Idle sessions that left the memory."),
    ROW(GAUGE, sessions_remembered, NULL, "unsalt_sessions_remembered",
        "Sessions that left the memory, of which the cursor is remembered."),
    ROW(COUNTER, restarts, NULL, "unsalt_restarts_total", "Producers that went back without a higher epoch."),
    ROW(COUNTER, epochs, NULL, "unsalt_epochs_total", "Higher epochs that took over a session."),
    ROW(COUNTER, starts_seen, NULL, "unsalt_starts_seen_total", "Sessions joined in the middle."),
    ROW(COUNTER, budget_full, &budgets, "unsalt_budget_full_total", "Times that a record found a budget full."),
    {"budget_outcome", "unsalt_budget_outcomes_total", "What came of records that found a budget full.", &budgets,
     &outcomes, offsetof(unsalt_stats_t, budget_outcome), US_STAT_COUNTER},
    ROW(COUNTER, rehearsed, &rehearsals, "unsalt_rehearsed_total", "Faults that were rehearsed (rehearse.*)."),
    ROW(COUNTER, in_order, NULL, "unsalt_records_in_order_total", "Records released without having been held."),
    ROW(COUNTER, irregular, NULL, "unsalt_records_irregular_total", "Records held outside their lane's order."),
    ROW(COUNTER, malformed, NULL, "unsalt_records_malformed_total", "Records without a usable number or session."),
    ROW(COUNTER, collisions, NULL, "unsalt_lane_collisions_total",
        "Sessions seen with two lanes in one partition; a session may count again."),
    ROW(COUNTER, questions, NULL, "unsalt_horizon_questions_total", "Questions to leaders for the ends of their logs."),
    ROW(COUNTER, answers, NULL, "unsalt_horizon_answers_total", "Questions answered."),
    ROW(HISTOGRAM, overdue_count, NULL, "unsalt_gap_overdue_seconds",
        "Time from when a gap fell due to when it was given up as timeout: the wait for evidence."),
    ROW(COUNTER, overdue_sum_ns, NULL, NULL, NULL),
    ROW(COUNTER, proofs_off, NULL, "unsalt_proofs_off_total",
        "Runs of sessions for which the premise of proof was found broken."),
    ROW(COUNTER, question_failures, NULL, "unsalt_horizon_question_failures_total", "Questions without an answer."),
    ROW(GAUGE, unacked, NULL, "unsalt_records_unacked", "Records handed out and not acknowledged."),
    ROW(GAUGE, partitions, NULL, "unsalt_partitions", "Partitions assigned."),
    ROW(COUNTER, generations, NULL, "unsalt_partitions_opened_total", "Partitions opened by an assignment or a seek."),
    ROW(GAUGE, cursors_changed, NULL, "unsalt_cursors_changed", "Sessions whose cursor a checkpoint hasn't taken yet."),
    ROW(COUNTER, cursors_restored, NULL, "unsalt_cursors_restored_total", "Entries taken from a checkpoint."),
    ROW(COUNTER, done_before, NULL, "unsalt_done_before_total", "Duplicates that an earlier owner had done already."),
    ROW(COUNTER, checkpoint_loads, NULL, "unsalt_checkpoint_loads_total", "Lane sets whose cursors were read."),
    ROW(COUNTER, checkpoint_refused, NULL, "unsalt_checkpoint_refused_total",
        "Entries of a checkpoint that could not be used."),
    ROW(COUNTER, misplaced, NULL, "unsalt_records_misplaced_total",
        "Records read where their lane doesn't belong: the producer has another layout, S or N."),
    ROW(COUNTER, colocation_refused, NULL, "unsalt_colocation_refused_total",
        "Times that lane sets were refused since parts of them were not assigned here."),
    ROW(COUNTER, commits, NULL, "unsalt_commits_total", "Commits asked for."),
    ROW(COUNTER, commit_failures, NULL, "unsalt_commit_failures_total", "Commits that failed."),
    ROW(COUNTER, offset_jumps, NULL, "unsalt_offset_jumps_total",
        "Offsets passed over between two records of a partition, such as those of transaction markers."),
    ROW(COUNTER, clock_regressions, NULL, "unsalt_clock_regressions_total", "Times that the clock went back."),
    ROW(COUNTER, polls, NULL, "unsalt_polls_total", "Calls of poll, batch and callback."),
    ROW(COUNTER, sweeps, NULL, "unsalt_sweeps_total", "Rounds that read every partition, announced or not."),
    ROW(COUNTER, sweep_hits, NULL, "unsalt_sweep_hits_total", "Data found that no event had announced."),
    ROW(HISTOGRAM, wait_count, NULL, "unsalt_wait_seconds",
        "Time that a record released in sequence waited for its turn."),
    ROW(COUNTER, wait_sum_ns, NULL, NULL, NULL),
};

const size_t us_stats_table_size = sizeof(us_stats_table) / sizeof(*us_stats_table);

unsalt_stats_t us_stats_whole(const unsalt_stats_t *stats, size_t size) {
    unsalt_stats_t whole = {0};
    memcpy(&whole, stats, size < sizeof(whole) ? size : sizeof(whole));
    return whole;
}

uint64_t us_stat_value(const struct us_stat *stat, const void *stats, int index) {
    const char *field = (const char *)stats + stat->offset;
    if (stat->kind == US_STAT_FLAG) {
        int flag;
        memcpy(&flag, field, sizeof(flag));
        return flag != 0;
    }
    uint64_t value;
    memcpy(&value, field + (size_t)index * sizeof(value), sizeof(value));
    return value;
}

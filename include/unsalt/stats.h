/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_STATS_H
#define UNSALT_STATS_H
/** @file stats.h  @brief Statistics of a consumer: a struct, and the same as JSON and for Prometheus. */
#include <unsalt/consumer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is rehearsed (keys rehearse.*). X(CONSTANT, name, text). */
#define UNSALT_REHEARSALS(X)                                                                        \
    X(VANISH, vanish, "records that vanished: they count as control")                               \
    X(DUPLICATE, duplicate, "records that came twice")                                              \
    X(LATE, late, "records that were kept back: their placeholders count as unsequenced")           \
    X(BUDGET, budget, "records for which a budget counted as full")

/** A fault that is rehearsed. */
typedef enum unsalt_rehearsal {
#define X(C, name, text) UNSALT_REHEARSAL_##C,
    UNSALT_REHEARSALS(X)
#undef X
    UNSALT_REHEARSAL__CNT
} unsalt_rehearsal_t;

/** Statistics. What isn't said to be of now counts since the consumer was created. */
typedef struct unsalt_stats {
    uint64_t received;                 /**< records that came in */
    uint64_t state[UNSALT_STATE__CNT]; /**< the conservation ledger: sums up to received */
    int conserved;                     /**< 1 if it does */
    uint64_t held_bytes;               /**< estimate of what the held messages pin now: see docs/budgets.md */
    uint64_t gaps[UNSALT_GAP__CNT];    /**< gaps given up, by reason */
    uint64_t gap_numbers[UNSALT_GAP__CNT]; /**< numbers in them (saturating) */
    uint64_t gaps_open;                /**< sessions that wait for a number now */
    uint64_t sessions;                 /**< in memory now */
    uint64_t sessions_created;         /**< that came into memory */
    uint64_t sessions_expired;         /**< idle ones that left it */
    uint64_t sessions_remembered;      /**< that left it and whose cursor is remembered now */
    uint64_t restarts;                 /**< producers that went back without a higher epoch */
    uint64_t epochs;                   /**< sessions that a higher epoch took over */
    uint64_t starts_seen;              /**< sessions joined in the middle */
    uint64_t budget_full[UNSALT_BUDGET__CNT]; /**< times that a record found the budget full */
    uint64_t budget_outcome[UNSALT_BUDGET__CNT][UNSALT_OUTCOME__CNT]; /**< and what came of it */
    uint64_t rehearsed[UNSALT_REHEARSAL__CNT]; /**< rehearsed faults; all 0 unless a key rehearse.* is set */
    uint64_t in_order;                 /**< released without waiting */
    uint64_t irregular;                /**< held outside their lane's order */
    uint64_t questions;                /**< questions to leaders for the ends of their logs */
    uint64_t answers;                  /**< questions answered */
    uint64_t question_failures;        /**< questions without an answer */
    uint64_t overdue_count[UNSALT_WAIT_BUCKETS]; /**< gaps given up as `timeout`, by how long after their due time */
    uint64_t overdue_sum_ns;           /**< sum of what overdue_count counts */
    uint64_t proofs_off;               /**< runs of sessions for which the premise of proof was found broken */
    uint64_t malformed;                /**< records whose sequence or session could not be used */
    uint64_t collisions;               /**< sessions seen with two lanes in one partition (a session may count again) */
    uint64_t unacked;                  /**< handed out, not acknowledged */
    uint64_t partitions;               /**< assigned now */
    uint64_t generations;              /**< partitions opened so far: by an assignment or a seek, each counts */
    uint64_t commits;                  /**< commits asked for */
    uint64_t commit_failures;          /**< commits that failed */
    uint64_t offset_jumps;             /**< offsets passed over between two records of a partition */
    uint64_t clock_regressions;        /**< times that the clock went back */
    uint64_t polls;                    /**< calls of poll, batch and callback */
    uint64_t sweeps;                   /**< rounds that read every partition */
    uint64_t sweep_hits;               /**< data found that no event had announced */
    uint64_t wait_count[UNSALT_WAIT_BUCKETS]; /**< released records by waiting time; unsalt_wait_bounds() */
    uint64_t wait_sum_ns;              /**< sum of what wait_count counts */
    uint64_t cursors_changed;          /**< sessions whose cursor has changed since a checkpoint took it, now */
    uint64_t cursors_restored;         /**< entries of cursors taken from a checkpoint; one session may have several,
                                            until the topic is compacted, and each counts */
    uint64_t done_before;              /**< duplicates that an earlier owner had done already */
    uint64_t checkpoint_loads;         /**< lane sets whose cursors were read */
    uint64_t checkpoint_refused;       /**< entries of a checkpoint that could not be used */
    uint64_t misplaced;                /**< records whose lane doesn't belong where they were read (layouts `topics` and
                                            `block`): the producer has another layout, S or N */
    uint64_t colocation_refused;       /**< times that lane sets were refused, since parts of them aren't assigned */
} unsalt_stats_t;

/**
 * Copies the statistics. Any thread; the figures are those of the end of the last call into the consumer.
 * @param size sizeof(unsalt_stats_t) of the caller: a shorter one gets the first fields only.
 * @returns 0, or -1 when size is 0.
 */
UNSALT_EXPORT int unsalt_stats(const unsalt_t *u, unsalt_stats_t *stats, size_t size);

/**
 * Formats statistics as one JSON object, names as in the struct.
 * @param stats_size sizeof(unsalt_stats_t) of the caller: fields beyond it count as 0.
 * @param buf receives the text, always terminated when size > 0.
 * @returns the length it has or would have, as snprintf(3). Any thread.
 */
UNSALT_EXPORT int unsalt_stats_json(const unsalt_stats_t *stats, size_t stats_size, char *buf, size_t size);

/**
 * Formats statistics in Prometheus' text format (0.0.4): names `unsalt_...`, base units, HELP and TYPE for each.
 * Labels are of fixed sets (state, reason, budget, le), so the number of series doesn't depend on topics or sessions.
 * docs/metrics.md lists the metrics. 16 KiB are enough without labels.
 * @param stats_size as for unsalt_stats_json().
 * @param labels labels added to every series, in the format's own syntax without braces and properly escaped, such as
 *               `client="orders-1"`; NULL or "": none. Borrowed.
 * @param buf receives the text, always terminated when size > 0.
 * @returns the length it has or would have, as snprintf(3). Any thread.
 */
UNSALT_EXPORT int unsalt_stats_prometheus(const unsalt_stats_t *stats, size_t stats_size, const char *labels, char *buf,
                                          size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_STATS_H
#define UNSALT_STATS_H
/** @file stats.h  @brief Statistics of a consumer: a struct, and the same as JSON. */
#include <unsalt/consumer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Upper bounds, in ns, of the buckets of the waiting time; the last bucket has none. */
#define UNSALT_WAIT_BUCKETS 16

typedef struct unsalt_stats {
    uint64_t received;
    uint64_t state[UNSALT_STATE__CNT]; /**< the conservation ledger: sums up to received */
    int conserved;                     /**< 1 if it does */
    uint64_t held_bytes;
    uint64_t gaps[UNSALT_GAP__CNT];
    uint64_t gap_numbers[UNSALT_GAP__CNT];
    uint64_t gaps_open;
    uint64_t sessions, sessions_created, sessions_expired, sessions_remembered;
    uint64_t restarts, epochs, starts_seen;
    uint64_t budget_full[UNSALT_BUDGET__CNT]; /**< times that a record found the budget full */
    uint64_t in_order;                 /**< released without waiting */
    uint64_t irregular;
    uint64_t questions, answers, question_failures;
    uint64_t malformed;
    uint64_t unacked;                  /**< handed out, not acknowledged */
    uint64_t partitions;
    uint64_t generations;              /**< partitions opened so far: by an assignment or a seek, each counts */
    uint64_t commits, commit_failures;
    uint64_t offset_jumps;             /**< offsets passed over between two records of a partition */
    uint64_t clock_regressions;
    uint64_t polls, sweeps, sweep_hits; /**< sweep_hits: data found that no event had announced */
    uint64_t wait_count[UNSALT_WAIT_BUCKETS]; /**< released records by waiting time */
    uint64_t wait_sum_ns;
} unsalt_stats_t;

/** The bounds of wait_count, in ns; UNSALT_NEVER for the last. Static storage. Any thread. */
UNSALT_EXPORT const uint64_t *unsalt_wait_bounds(void);

/**
 * Copies the statistics. Any thread; the figures are those of the end of the last call into the consumer.
 * @param size sizeof(unsalt_stats_t) of the caller: a shorter one gets the first fields only.
 * @returns 0, or -1 when size is 0.
 */
UNSALT_EXPORT int unsalt_stats(const unsalt_t *u, unsalt_stats_t *stats, size_t size);

/**
 * Formats statistics as one JSON object, names as in the struct.
 * @param buf receives the text, always terminated when size > 0.
 * @returns the length it has or would have, as snprintf(3). Any thread.
 */
UNSALT_EXPORT int unsalt_stats_json(const unsalt_stats_t *stats, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif

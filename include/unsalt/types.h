/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_TYPES_H
#define UNSALT_TYPES_H
/**
 * @file types.h
 * @brief Words that every other public header uses: export macro, time, the states of the conservation
 *        ledger, the verdicts on a gap, record flags and the allocator.
 *
 * Times are monotonic nanoseconds in `uint64_t`. UNSALT_NEVER stands for "no such time".
 */
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/** Marks what the shared library exports. */
#define UNSALT_EXPORT __attribute__((visibility("default")))
#else
#define UNSALT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** "No such time": a deadline that is not set. */
#define UNSALT_NEVER UINT64_MAX
/** Buckets of waiting times in statistics; see unsalt_wait_bounds(). */
#define UNSALT_WAIT_BUCKETS 16
/** The reserved sequence: never a record's number. Valid numbers end at UINT64_MAX - 1. */
#define UNSALT_NO_SEQ UINT64_MAX

/**
 * The conservation ledger: every record that was received is in exactly one of these states.
 * X(CONSTANT, name, gauge, text); gauge is 1 for the states that a record leaves again.
 */
#define UNSALT_STATES(X)                                                                            \
    X(HELD, held, 1, "received, its turn has not come or it was not pulled yet")                    \
    X(READY, ready, 1, "its turn has come, not handed to the application yet")                      \
    X(RELEASED, released, 0, "handed out in sequence")                                              \
    X(LATE, late, 0, "below the cursor, never released before: handed out, flagged")                \
    X(STALE, stale, 0, "of an epoch that is over: handed out, flagged")                             \
    X(UNSEQUENCED, unsequenced, 0, "without a usable sequence: handed out in partition order")      \
    X(DUPLICATE, duplicate, 0, "a copy of a record that is held or was released: dropped")          \
    X(DROPPED, dropped, 0, "late or stale, dropped because the policy says so")                     \
    X(DEAD_LETTERED, dead_lettered, 0, "given to the dead-letter callback")                         \
    X(CONTROL, control, 0, "marker or heartbeat: never delivered")                                  \
    X(REVOKED, revoked, 0, "dropped when its partition was taken away: it will be read again")      \
    X(FENCED, fenced, 0, "of an old generation or already seen offset: dropped")

/** A state of the ledger. */
typedef enum unsalt_state {
#define X(C, name, gauge, text) UNSALT_STATE_##C,
    UNSALT_STATES(X)
#undef X
    UNSALT_STATE__CNT /**< how many there are */
} unsalt_state_t;

/** Why a gap was given up. X(CONSTANT, name, text). */
#define UNSALT_GAP_REASONS(X)                                                                       \
    X(MARKER, marker, "the producer said that the numbers will never come")                         \
    X(PROVEN, proven, "the lane that carries the number has shown that it was lost")                \
    X(TIMEOUT, timeout, "due, and every partition that may carry it was read past the due time")    \
    X(STALLED, stalled, "an owed partition showed nothing for gap.stall.max.ms of reading")         \
    X(OVERFLOW, overflow, "a budget was exhausted")                                                 \
    X(FLUSH, flush, "the application, a revoke or a close asked for it")                            \
    X(RESUMED, resumed, "the numbers were consumed before the partition was joined: no alarm")      \
    X(EPOCH, epoch, "the producer restarted and every lane was read past the restart")

/** A verdict on a gap. */
typedef enum unsalt_gap_reason {
#define X(C, name, text) UNSALT_GAP_##C,
    UNSALT_GAP_REASONS(X)
#undef X
    UNSALT_GAP__CNT /**< how many there are */
} unsalt_gap_reason_t;

/** Budgets. X(CONSTANT, name, text). */
#define UNSALT_BUDGETS(X)                                                                           \
    X(RECORDS, records, "records held in all")                                                      \
    X(BYTES, bytes, "bytes held in all")                                                            \
    X(SESSION_RECORDS, session_records, "records held of one session")                              \
    X(SESSION_BYTES, session_bytes, "bytes held of one session")                                    \
    X(WINDOW, window, "records of a partition between the oldest that is not acknowledged and the newest") \
    X(SESSIONS, sessions, "sessions in memory")

/** A budget. */
typedef enum unsalt_budget {
#define X(C, name, text) UNSALT_BUDGET_##C,
    UNSALT_BUDGETS(X)
#undef X
    UNSALT_BUDGET__CNT /**< how many there are */
} unsalt_budget_t;

/** What happened when a budget was full. X(CONSTANT, name, text). */
#define UNSALT_BUDGET_OUTCOMES(X)                                                                   \
    X(GAVE_WAY, gave_way, "a gap gave way, reason overflow")                                        \
    X(BLOCKED, blocked, "a record was refused for a while")                                         \
    X(DEAD_LETTERED, dead_lettered, "the arriving record was given to the dead-letter callback")    \
    X(FAILED, failed, "a record was refused until the application makes room")                      \
    X(EXCEEDED, exceeded, "it was exceeded: nothing could be let go")

/** What happened when a budget was full. */
typedef enum unsalt_budget_outcome {
#define X(C, name, text) UNSALT_OUTCOME_##C,
    UNSALT_BUDGET_OUTCOMES(X)
#undef X
    UNSALT_OUTCOME__CNT
} unsalt_budget_outcome_t;

/** Flags of a record, as they stand in the `unsalt` header (wire values). */
enum {
    UNSALT_F_FIRST = 0x01,     /**< first record of the session */
    UNSALT_F_LAST = 0x02,      /**< last record of the session: its state goes after the release */
    UNSALT_F_MARKER = 0x04,    /**< gap marker: since..seq will never come; not delivered */
    UNSALT_F_RESEND = 0x08,    /**< sent again with the number it had before */
    UNSALT_F_HEARTBEAT = 0x10, /**< no sequence; not delivered */
};

/**
 * An allocator. Every function is called with `user`; `alloc` and `resize` may return NULL, which the
 * library takes as "out of memory" and reports without a trace. `resize` follows realloc(3).
 */
typedef struct unsalt_mem {
    void *user;                                          /**< the caller's, passed to each function */
    void *(*alloc)(void *user, size_t size);             /**< as malloc(3) */
    void *(*resize)(void *user, void *ptr, size_t size); /**< as realloc(3) */
    void (*release)(void *user, void *ptr);              /**< as free(3) */
} unsalt_mem_t;

/** @returns 1 if a record of this state is handed to the application, which acknowledges it; 0 otherwise. */
static inline int unsalt_state_handed_out(unsalt_state_t state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_UNSEQUENCED;
}

/** The upper bounds of the buckets of waiting times, in ns; UNSALT_NEVER for the last. Static storage. Any thread. */
UNSALT_EXPORT const uint64_t *unsalt_wait_bounds(void);
/**
 * @param count records by bucket.
 * @param share 0..1, such as 0.99.
 * @returns the upper bound, in ns, of the bucket in which that share of all is reached; 0 if there are none,
 *          UNSALT_NEVER if it is the last one. Any thread.
 */
UNSALT_EXPORT uint64_t unsalt_wait_quantile(const uint64_t count[UNSALT_WAIT_BUCKETS], double share);

/** @returns the name of a ledger state ("held"), or "?" for a value out of range. Any thread. */
UNSALT_EXPORT const char *unsalt_state_name(unsalt_state_t state);
/** @returns the name of a budget ("session_bytes"), or "?" for a value out of range. Any thread. */
UNSALT_EXPORT const char *unsalt_budget_name(unsalt_budget_t budget);
/** @returns the name of what a full budget led to ("gave_way"), or "?" for a value out of range. Any thread. */
UNSALT_EXPORT const char *unsalt_budget_outcome_name(unsalt_budget_outcome_t outcome);
/** @returns the name of a verdict ("timeout"), or "?" for a value out of range. Any thread. */
UNSALT_EXPORT const char *unsalt_gap_reason_name(unsalt_gap_reason_t reason);

#ifdef __cplusplus
}
#endif
#endif

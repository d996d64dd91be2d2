/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_EVENT_H
#define UNSALT_EVENT_H
/** @file event.h  @brief What the library tells the application while it works. */
#include <unsalt/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(CONSTANT, name, severity as in syslog(3), text). */
#define UNSALT_EVENTS(X)                                                                                \
    X(GAP, gap, 4, "a range of numbers was given up")                                                   \
    X(RESUMED, resumed, 6, "numbers consumed before the partition was joined were passed over")         \
    X(LATE, late, 4, "a record below the cursor that was never released")                               \
    X(STALE, stale, 4, "a record of an epoch that is over")                                             \
    X(DUPLICATE, duplicate, 6, "a copy was dropped")                                                    \
    X(EPOCH, epoch, 5, "a higher epoch took over a session")                                            \
    X(RESTART, restart, 4, "a producer went back without a higher epoch")                               \
    X(START, start, 6, "a session was joined in the middle")                                            \
    X(BUDGET, budget, 4, "a budget is full: first = which (unsalt_budget_t), last = unsalt_budget_outcome_t") \
    X(MALFORMED, malformed, 4, "no usable sequence or session in a record that should have one")        \
    X(PROOF_OFF, proof_off, 4, "the premise of proof is broken: no gap of this run of the session is proven any more") \
    X(OFFSET_BACK, offset_back, 4, "an offset at or below one already read: fenced")                    \
    X(FORGOTTEN, forgotten, 5, "cursors were forgotten: unknown sessions of the set start by `seen`")   \
    X(COLOCATION, colocation, 3, "partitions of a lane set are not all assigned here")                  \
    X(COLLISION, collision, 6, "lanes of a session share a partition, so that spreading it gains less") \
    X(PARTITIONS_CHANGED, partitions_changed, 4, "a topic has another number of partitions than configured") \
    X(OUTSTANDING, outstanding, 4, "a message was handed out and not acknowledged when its partition went") \
    X(DESTROY_BLOCKED, destroy_blocked, 3, "destroy waits for messages that the application has not destroyed") \
    X(HORIZON_FAILED, horizon_failed, 5, "a leader did not answer the question for its end")            \
    X(COMMIT_FAILED, commit_failed, 4, "a commit failed")                                               \
    X(CHECKPOINT_PROGRESS, checkpoint_progress, 6, "cursors of a lane set are being read: `count` so far") \
    X(CHECKPOINT_LOADED, checkpoint_loaded, 6, "`count` entries of a lane set were read; its records are read now") \
    X(CHECKPOINT_REFUSED, checkpoint_refused, 3, "an entry of the checkpoint can't be used: corrupt, or newer") \
    X(CHECKPOINT_IGNORED, checkpoint_ignored, 4, "the cursors of a lane set don't belong to its committed offsets") \
    X(ASSIGNMENT_LOST, assignment_lost, 4, "the group gave `count` partitions away before they were given up here") \
    X(NOT_OPENED, not_opened, 3, "`count` assigned partitions can't be opened for lack of memory: tried again") \
    X(PIPELINE_HALTED, pipeline_halted, 3, "a phase failed for good: its session stands at this record") \
    X(PIPELINE_HALTED_FULL, pipeline_halted_full, 3, "halted sessions piled up what they may: nothing is read on") \
    X(PIPELINE_SKIPPED, pipeline_skipped, 4, "a phase failed for good: the record was skipped")          \
    X(PIPELINE_BURIED, pipeline_buried, 4, "a phase failed for good: it is stored as a dead letter") \
    X(PIPELINE_NOT_BURIED, pipeline_not_buried, 3, "a dead letter could not be stored: tried again") \
    X(PIPELINE_SLOW, pipeline_slow, 4, "a `deliver` takes longer than its limit: its session waits for it") \
    X(MISPLACED, misplaced, 4, "a record's lane doesn't belong where it was read: producer and consumer disagree") \
    X(PIPELINE_NO_WORKER, pipeline_no_worker, 3, "calls of `prepare` that nobody waits for hold every worker")

/** Type of an event. */
typedef enum unsalt_event_type {
#define X(C, name, severity, text) UNSALT_EVENT_##C,
    UNSALT_EVENTS(X)
#undef X
    UNSALT_EVENT__CNT /**< how many there are */
} unsalt_event_type_t;

/** An event; pointers are valid during the callback only. Fields that don't apply are NULL, -1 or 0. */
typedef struct unsalt_event {
    size_t size;                /**< sizeof(unsalt_event_t) of the library */
    unsalt_event_type_t type;   /**< what happened */
    int severity;               /**< as in syslog(3) */
    unsalt_gap_reason_t reason; /**< of GAP and RESUMED */
    const char *text;           /**< one line for people, always set */
    const void *session;        /**< session id, not terminated; NULL if none */
    size_t session_len;         /**< in bytes */
    const char *topic;          /**< of the record or partition concerned */
    int32_t partition;          /**< partition concerned */
    int32_t lane;               /**< lane concerned */
    int64_t offset;             /**< of the record concerned */
    uint64_t epoch;             /**< run of the producer */
    uint64_t first;             /**< range of numbers, both included; of COLLISION the two lanes; 0: none */
    uint64_t last;              /**< its end */
    uint64_t overdue_ns;        /**< of a GAP by timeout or stalled: how long it had been due: what evidence cost. The
                                     partition is that of the number, or the one that was waited for last. Of one that
                                     is RESUMED: the same; 0 = it wasn't due */
    uint64_t waited_ns;         /**< how long it was waited for */
    uint64_t count;             /**< how many; of COLLISION and MISPLACED so far, raised for the 1st,
                                     2nd, 4th, 8th, ...; of PIPELINE_* the calls of the phase */
} unsalt_event_t;

/**
 * Called on the thread that is in poll, batch, callback, assign, seek, commit, flush_gaps, close or destroy, also of a
 * pipeline, or in unsalt_relay_poll();
 * DESTROY_BLOCKED on a thread of the library while destroy waits. It may call unsalt_ack(), unsalt_stats() and
 * unsalt_wakeup(), no other function of that handle.
 */
typedef void(unsalt_event_cb)(void *opaque, const unsalt_event_t *event);

/** @returns the name of an event type ("gap"), or "?". Any thread. */
UNSALT_EXPORT const char *unsalt_event_name(unsalt_event_type_t type);

#ifdef __cplusplus
}
#endif
#endif

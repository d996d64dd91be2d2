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
    X(BUDGET, budget, 4, "a budget is full")                                                            \
    X(MALFORMED, malformed, 4, "no usable sequence in a record that should have one: passed on as unsequenced") \
    X(OFFSET_BACK, offset_back, 4, "an offset at or below one already read: fenced")                    \
    X(FORGOTTEN, forgotten, 5, "cursors were forgotten: unknown sessions of the set start by `seen`")   \
    X(COLOCATION, colocation, 3, "partitions of a lane set are not all assigned here")                  \
    X(PARTITIONS_CHANGED, partitions_changed, 4, "a topic has another number of partitions than configured") \
    X(OUTSTANDING, outstanding, 4, "a message was handed out and not acknowledged when its partition went") \
    X(DESTROY_BLOCKED, destroy_blocked, 3, "destroy waits for messages that the application has not destroyed") \
    X(HORIZON_FAILED, horizon_failed, 5, "a leader did not answer the question for its end")            \
    X(COMMIT_FAILED, commit_failed, 4, "a commit failed")

typedef enum unsalt_event_type {
#define X(C, name, severity, text) UNSALT_EVENT_##C,
    UNSALT_EVENTS(X)
#undef X
    UNSALT_EVENT__CNT
} unsalt_event_type_t;

/** An event; pointers are valid during the callback only. Fields that don't apply are NULL, -1 or 0. */
typedef struct unsalt_event {
    size_t size;                /**< sizeof(unsalt_event_t) of the library */
    unsalt_event_type_t type;
    int severity;               /**< as in syslog(3) */
    unsalt_gap_reason_t reason; /**< of GAP and RESUMED */
    const char *text;           /**< one line for people, always set */
    const void *session;        /**< session id, not terminated; NULL if none */
    size_t session_len;
    const char *topic;
    int32_t partition;
    int32_t lane;
    int64_t offset;
    uint64_t epoch;
    uint64_t first, last;       /**< range of numbers, both included */
    uint64_t waited_ns;
    uint64_t count;
} unsalt_event_t;

/**
 * Called on the thread that is in poll, batch, callback, assign, seek, commit, flush_gaps, close or destroy;
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

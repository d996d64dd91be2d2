/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_CONSUMER_H
#define UNSALT_CONSUMER_H
/**
 * @file consumer.h
 * @brief The consumer: rd_kafka_consumer_poll() with the order of every session restored.
 *
 * Threads: subscribe, unsubscribe, assign, poll, batch, callback, pause, resume, seek, commit, flush_gaps,
 * io_event_enable, poll_deadline_ms and close on one thread at a time; a second thread gets an error
 * (RD_KAFKA_RESP_ERR__CONFLICT), not a race. The same error gets who calls them from a callback.
 * unsalt_message_info() on that thread too, between two calls; nothing checks it, but for the consumer of a pipeline,
 * of which it knows nothing: unsalt_pipeline_job_t has it. unsalt_ack(), unsalt_stats(),
 * unsalt_wakeup() and unsalt_handle() from any thread. unsalt_destroy() when no other thread is in, or will call, any
 * function of the consumer.
 *
 * What the library forces on the rd_kafka_conf_t: enable.auto.offset.store=false, enable.partition.eof=true
 * (the event is hidden unless the application had asked for it), enable.auto.commit=false (if it was true, the
 * library commits the frontier itself at auto.commit.interval.ms and at revoke and close), and
 * auto.offset.reset as the key offset.reset says. By default that is earliest unless the application set it or any
 * other topic-level property, such as acks or a default topic configuration (librdkafka doesn't tell them apart): then
 * it stays as it is, by default `largest`.
 * group.id must be set: subscribe and commits need it.
 */
#include <librdkafka/rdkafka.h>
#include <sys/types.h>
#include <unsalt/conf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A consumer. Opaque. */
typedef struct unsalt unsalt_t;

/** Names one record of one assignment; may outlive the message. Opaque: don't read it. */
typedef struct unsalt_token {
    uint32_t part;       /**< partition */
    uint32_t generation; /**< its assignment */
    uint64_t ticket;     /**< the record in it */
} unsalt_token_t;

/** What the library knows of a message it handed out. */
typedef struct unsalt_message_info {
    size_t size;             /**< in: sizeof(unsalt_message_info_t) */
    unsalt_state_t state;    /**< RELEASED, LATE, STALE or UNSEQUENCED */
    const void *session;     /**< session id, not terminated, lives as long as this info; NULL if unsequenced */
    size_t session_len;      /**< in bytes */
    uint64_t seq;            /**< UNSALT_NO_SEQ if it has none */
    uint64_t epoch;          /**< 0 if it has none */
    int32_t lane;            /**< as its header, its salt or its lane topic says; -1 unknown */
    uint16_t flags;          /**< UNSALT_F_* */
    int after_gap;           /**< 1: the numbers just below were given up */
    uint64_t waited_ns;      /**< how long it waited for its turn */
    unsalt_token_t token;    /**< for unsalt_ack() */
} unsalt_message_info_t;

/**
 * Creates a consumer.
 * @param rk_conf, conf  taken on success; on failure both stay the caller's, unchanged as far as the application
 *                       can see. `conf` may be NULL: all defaults. The application's callbacks and opaque on
 *                       rk_conf keep working; its rebalance callback is called around the library's (it may
 *                       change offsets of the list, it needn't assign).
 * @param errstr  the reason on failure.
 * @returns the consumer, or NULL.
 */
UNSALT_EXPORT unsalt_t *unsalt_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf, char *errstr, size_t errstr_size);

/**
 * @returns librdkafka's handle, for everything that needs no wrapping; owned by the consumer. Don't poll, pause,
 * seek, commit or close through it.
 */
UNSALT_EXPORT rd_kafka_t *unsalt_handle(const unsalt_t *u);

/**
 * As rd_kafka_subscribe(); with layout `topics` the lane topics of a subscribed base topic are added. The list is
 * borrowed. With checkpoint=topic the first call sees to it that the topic of checkpoints is there, and may make it:
 * that takes up to checkpoint.timeout.ms, and a second.
 * @returns as rd_kafka_subscribe(); with checkpoint=topic also __INVALID_ARG (that topic has another number
 *          of partitions than `partitions`; or it is named by the subscription, or fits a pattern of it: each commit
 *          would be read, and lead to the next), UNKNOWN_TOPIC_OR_PART (it isn't there, checkpoint.create=false),
 *          __TIMED_OUT, or the broker's word on its making (TOPIC_AUTHORIZATION_FAILED, ...). The log says which topic
 *          and why.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_subscribe(unsalt_t *u, const rd_kafka_topic_partition_list_t *topics);
/**
 * As rd_kafka_unsubscribe(). The partitions go at the next polls, as at a revoke: commits, and with ack=manual the wait
 * for acknowledgements.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_unsubscribe(unsalt_t *u);

/**
 * As rd_kafka_assign(): the full assignment, NULL to give it up. The list is borrowed. Lane sets must be complete.
 * With ack=auto what the last call handed out doesn't count as processed by this: it comes again if its partition is
 * read again, and a transaction that has its output can't be committed any more (checkpoint.h).
 * @returns RD_KAFKA_RESP_ERR__INVALID_ARG if they aren't and colocation=refuse: nothing changed. With checkpoint=topic
 * the errors of unsalt_subscribe() on its topic, and as long. __CONFLICT and __STATE (closed) change nothing either.
 * On any other error the old assignment is gone, and the new one may be there in part: assign again, or close.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_assign(unsalt_t *u, const rd_kafka_topic_partition_list_t *partitions);

/**
 * As rd_kafka_pause_partitions() and rd_kafka_resume_partitions(), but nothing that was read is read again; per-
 * partition `err` is set. Records that were read before a pause keep coming as their turn comes, and those of other
 * lanes of their sessions; those of the paused partition that weren't read are waited for.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_pause(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions);
/** See unsalt_pause(). */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_resume(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions);

/**
 * Goes to another offset of assigned partitions. Held records of them are dropped, their generation ends, their
 * sessions start again as after a restart. Records that are ready to be handed out are dropped too if all assigned
 * partitions of their lane set are in the list; else they are handed out first, so that the set's numbers come in
 * order, and their acknowledgements have no effect (__STATE). A revoke does the same. Per-partition `err` is set.
 * With ack=auto what the last call handed out doesn't count as processed, as with unsalt_assign().
 * @param timeout_ms as rd_kafka_seek_partitions().
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_seek(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/**
 * The drop-in for rd_kafka_consumer_poll(): one message, in order within its session.
 * @param timeout_ms 0 = don't wait, -1 = for ever.
 * @returns a genuine message, destroyed by the application with rd_kafka_message_destroy(); it may carry an error
 *          in `err` as librdkafka's does. An end-of-partition event (if the application asked for them) comes when
 *          reading got there: it may overtake records of its partition that are held. With budget.policy=fail a full
 *          budget gives one message with RD_KAFKA_RESP_ERR__QUEUE_FULL, without a topic, and nothing is read until
 *          unsalt_flush_gaps(), unsalt_seek() or a rebalance makes room. NULL on timeout or wake-up, or on an error of
 *          the call: then unsalt_last_error() of this thread says which.
 */
UNSALT_EXPORT rd_kafka_message_t *unsalt_consumer_poll(unsalt_t *u, int timeout_ms);

/**
 * Up to `n` messages; returns as soon as there is one, with what is ready then.
 * @returns how many were written to `messages` (each owned by the application); 0 on timeout or wake-up; -1 on an
 *          error of the call: unsalt_last_error().
 */
UNSALT_EXPORT ssize_t unsalt_consume_batch(unsalt_t *u, int timeout_ms, rd_kafka_message_t **messages, size_t n);

/** The message is borrowed for the time of the call; unsalt_message_info() works inside it. */
typedef void(unsalt_consume_cb)(rd_kafka_message_t *message, void *opaque);

/**
 * Calls `cb` for every message that is ready, waiting up to `timeout_ms` for the first; the library destroys each
 * afterwards. With ack=auto a message is acknowledged when its callback returns.
 * @returns how many were given to `cb`; -1 on an error of the call: unsalt_last_error().
 */
UNSALT_EXPORT int unsalt_consume_callback(unsalt_t *u, int timeout_ms, unsalt_consume_cb *cb, void *opaque);

/** Makes a poll, batch or callback that waits, or the next one, return at once. Any thread. */
UNSALT_EXPORT void unsalt_wakeup(unsalt_t *u);

/**
 * For an application with an event loop of its own (poll(2), epoll, libuv, ...). From now on, `payload` is written to
 * `fd` when there may be something to do: then call poll, batch or callback with timeout 0 until it returns nothing.
 * Edge-triggered: nothing is written again before such a call has been made. In the manner of
 * rd_kafka_queue_io_event_enable(). The loop also has to call when unsalt_poll_deadline_ms() is over, or gaps aren't
 * given up, nothing is committed, and the group takes the member for dead.
 * @param fd the write end of a pipe, an eventfd or a socket, non-blocking: what can't be written at once is left out.
 *           The caller's; not to be closed before it is disabled here, or unsalt_destroy() has returned.
 *           < 0: no more wake-ups (`payload` and `size` are ignored).
 * @param payload copied, 1..64 bytes: for an eventfd, a uint64_t of 1.
 * @returns NO_ERROR; __INVALID_ARG, __CONFLICT, __STATE (closed): nothing changed.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_io_event_enable(unsalt_t *u, int fd, const void *payload, size_t size);

/**
 * How long an event loop may sleep before it has to call poll, batch or callback, if no wake-up comes before: the
 * timeout of poll(2). To be asked after the last call into the consumer, whichever it was.
 * @returns ms, 0 = call at once; never more than min(1 s, max.poll.interval.ms / 3).
 *          -1 on an error of the call (__CONFLICT, __STATE: closed), see unsalt_last_error().
 */
UNSALT_EXPORT int unsalt_poll_deadline_ms(unsalt_t *u);

/**
 * @returns RD_KAFKA_RESP_ERR_NO_ERROR, or why the last poll, batch or callback of this thread failed: __CONFLICT
 * (another thread is in it, or called from a callback), __STATE (closed), __CRIT_SYS_RESOURCE (out of memory: nothing
 * was handed out, nothing is lost, call again).
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_last_error(void);

/**
 * Tells about a message handed out by the last poll, batch or callback; valid until the next one, whichever other
 * function is called in between. The message must not have been destroyed. On the polling thread only.
 * @returns 0; -1 if it wasn't handed out by the last call (or carries an error), or info->size is 0.
 */
UNSALT_EXPORT int unsalt_message_info(const unsalt_t *u, const rd_kafka_message_t *message,
                                      unsalt_message_info_t *info);

/** What is known of a partition's horizon: why gaps that are due still wait for it. */
typedef struct unsalt_horizon_info {
    size_t size;         /**< in: sizeof(unsalt_horizon_info_t) */
    int stand;           /**< unsalt_stand_t of core.h; why the horizon stands */
    const char *text;    /**< the same in words, static storage */
    int64_t age_ms;      /**< everything that stood in the partition so long ago was read; -1: nothing is known yet */
    int64_t behind_ms;   /**< how far the horizon is behind what waits for it; 0 = nothing waits */
    int64_t read;        /**< everything below this offset was read; -1 unknown */
    int64_t end;         /**< the end that its leader told and reading has not reached; -1 none */
    uint64_t waiting;    /**< gaps and starts that wait for this partition first */
    uint32_t failures;   /**< questions in a row that its leader did not answer */
} unsalt_horizon_info_t;

/**
 * Tells why the horizon of an assigned partition stands where it is. Thread rule as poll.
 * @returns NO_ERROR; __UNKNOWN_PARTITION: not assigned; __INVALID_ARG; __CONFLICT; __STATE: closed.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_horizon_info(unsalt_t *u, const char *topic, int32_t partition,
                                                      unsalt_horizon_info_t *info);

/**
 * Explains in words, line by line, what a session waits for: its cursor, what is missing, what is held since when, when
 * the gap falls due, and for which partitions of its lane set it waits, with their horizons. One paragraph for each
 * lane set that knows the session. Thread rule as poll.
 * @param session borrowed.
 * @param buf receives the text, always terminated when size > 0.
 * @returns the length it has or would have, as snprintf(3); 0: no lane set has the session in memory, and all are
 *          read; -1 on an error of the call: unsalt_last_error().
 */
UNSALT_EXPORT int unsalt_explain(unsalt_t *u, const void *session, size_t session_len, char *buf, size_t size);

/**
 * ack=manual: the application is done with the message. Any thread, any order, also after the message is gone.
 * @returns NO_ERROR: it is part of the next commit, also if its partition is just going; __STATE: its assignment is
 * over, or its last commit is under way: it will be read again by the next owner (and a transaction that has its output
 * must be aborted); __INVALID_ARG: no such token.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_ack(unsalt_t *u, unsalt_token_t token);

/**
 * Commits the frontier of every partition that moved. With ack=auto that doesn't include what the last call handed
 * out: that counts as processed at the next poll, batch, callback or close (and close commits it).
 * With a checkpoint it carries the cursors of sessions too: see checkpoint.h for what it covers then.
 * @param async 0: waits for the broker, with checkpoint=topic for checkpoint.timeout.ms at most. Else the application's
 *        offset_commit_cb, if any, gets the result. One asynchronous commit is under way at a time: what is asked for
 *        meanwhile follows it.
 * @returns as rd_kafka_commit(); NO_ERROR when nothing moved; __ASSIGNMENT_LOST: the group has given the partitions
 *          away. With checkpoint=topic also __IN_PROGRESS: the outcome isn't known yet, the next call waits for it;
 *          __STATE: nothing was subscribed; or why the transaction was refused (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
 *          FENCED_INSTANCE_ID, __FENCED) or failed. With checkpoint=callback __APPLICATION: the callback has failed.
 *          What failed is part of the next commit.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_commit(unsalt_t *u, int async);

/**
 * Gives up every open gap now (reason `flush`): what is held comes by the next polls. Thread rule as poll; raises the
 * events of the gaps before it returns. Goes on reading if budget.policy=fail had stopped it.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_flush_gaps(unsalt_t *u);

/**
 * Leaves the group: acknowledges (ack=auto), waits up to revoke.timeout.ms for acknowledgements (ack=manual),
 * names each message handed out and not acknowledged (event OUTSTANDING, which may still acknowledge), commits the
 * frontier (unless the application set enable.auto.commit=false: then it commits before, by unsalt_commit()), drops
 * what is held. Messages stay valid, and what unsalt_message_info() knows of them. Idempotent.
 * @returns NO_ERROR, or the error of the last commit or of rd_kafka_consumer_close().
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_consumer_close(unsalt_t *u);

/**
 * Closes if that wasn't done, and frees. Every message must have been destroyed before: librdkafka waits for
 * ever for one that wasn't; a watchdog reports that (event DESTROY_BLOCKED and a log line, every 5 s). NULL is allowed.
 * While a broker doesn't answer, closing and this together may take checkpoint.timeout.ms with checkpoint=topic (else
 * 10 s, if something is committed), 5 s that librdkafka gives the group's coordinator to hear of the leave, and 2 s.
 * Members of a group must be polled by others than the thread that closes one: in the middle of a rebalance the commit
 * stands behind the request to join, which is answered when the others have joined; librdkafka waits for it then, up to
 * its socket.timeout.ms. A handle of the library's own that librdkafka doesn't end (librdkafka#4131) is left behind
 * after 5 s, with a log line.
 * One thread, when no other uses the consumer any more; not from a callback.
 */
UNSALT_EXPORT void unsalt_destroy(unsalt_t *u);

#ifdef __cplusplus
}
#endif
#endif

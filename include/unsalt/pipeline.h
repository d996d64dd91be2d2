/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_PIPELINE_H
#define UNSALT_PIPELINE_H
/**
 * @file pipeline.h
 * @brief Two phases: heavy work at once and on many threads, effects in the order of each session.
 *
 * A record goes through `prepare` (phase 1) and `deliver` (phase 2). `prepare` is called on one of `pipeline.workers`
 * threads, in any order, as soon as the record was read: while it still waits for its turn, too. `deliver` is called
 * when its turn has come, when its phase 1 is done, and when `deliver` of the record of its session before it is over:
 * strictly one after the other within a session, sessions side by side on `pipeline.delivery.threads` threads, or on
 * the thread that is in unsalt_pipeline_poll() if that is 0. The same idea as Linux' padata (parallel work, serial
 * completion in the order of submission), per session.
 *
 * What the library promises, and what it asks for:
 *
 * * Phase 1 is at-least-once. A retry, a time limit that is over, a revoke or a crash may run `prepare` of a record
 *   again, here or at another member; (session, epoch, seq) of the job is the key by which its effects can be made
 *   idempotent; for a record without a sequence that is (topic, partition, offset) of the message. Where the source
 *   tells no epochs (it is 0 then) and producers begin again at the first number, two records have that key: take the
 *   place there, too; a copy that a producer has sent twice has two.
 * * Phase 2 is at-least-once too, in order: a record is acknowledged when `deliver` has returned UNSALT_PIPELINE_OK,
 *   its dead letter was stored, or it was skipped by policy or by the application; no error counts as done. Commits
 *   cover what was acknowledged (docs/guarantees.md); what was delivered above that is delivered again by the next
 *   owner.
 * * Within a session `deliver` follows the order of release: by number; late and stale records, flagged by `state`,
 *   where the library found them. Records without a sequence follow their arrival, per base key: the record key,
 *   without its salt if `salt.trust` is set; so an unsalted topic, or a single partition, gains as well. Those without
 *   a key are in one order per partition. The same id in topics that don't belong together is two sessions.
 * * Bounds: `pipeline.records` and `pipeline.bytes` (one record may exceed the latter). At most half of both is taken
 *   by records that wait for their turn; one that finds no room there is read all the same, its phase 1 merely starts
 *   later: when there is room, or when its turn has come. So a missing record always gets through. What has been
 *   released and is not done is bounded by not reading on.
 * * Time limits: a `prepare` that takes longer than `pipeline.prepare.timeout.ms` counts as failed; it can't be
 *   stopped, so another attempt may run beside it, and what it returns in the end is discarded. A `deliver` that takes
 *   longer than `pipeline.deliver.timeout.ms` raises an event (without delivery threads: when it has returned); its
 *   session waits for its return, which counts: a second one beside it would break the order.
 * * A failed phase is tried again, `pipeline.prepare.retries` or `pipeline.deliver.retries` times, after
 *   `pipeline.retry.backoff.ms`, doubled each time up to `pipeline.retry.backoff.max.ms`, of which a random half is
 *   left out ("equal jitter", M. Brooker, Exponential Backoff And Jitter, 2015). Then `pipeline.prepare.failure` or
 *   `pipeline.deliver.failure` says what becomes of the record, when its turn has come: `halt` its session,
 *   `dead-letter` it, or `skip` it.
 * * Dead letters are stored in the order of their session: by the dead_letter callback if there is one, else in
 *   `pipeline.dead.letter.topic`, by an idempotent producer of the library; the record is done, and its session goes
 *   on, when the broker has acknowledged it. Its key is the session, so that those of a session stay in one partition;
 *   its headers are listed below and in docs/dead-letters.md.
 * * A halted session delivers nothing until unsalt_pipeline_resolve(), or a revoke. The others go on. What comes for
 *   halted sessions meanwhile counts for `pipeline.halted.records` instead of `pipeline.records`; when that is full,
 *   event PIPELINE_HALTED_FULL, and nothing is read on until a session is resolved.
 * * Revoke and close: what wasn't started is cancelled; of a session, what is being worked on or was prepared is still
 *   delivered, in order, as long as nothing before it was cancelled, for `revoke.timeout.ms` at most. Then the
 *   generation is over: nothing of it is delivered, results that still come are discarded. (If only a part of a lane
 *   set goes, what was released of it is delivered all the same, as unsalt_seek() says, so that the rest follows in
 *   order.) A member that was thrown out, or hasn't polled for max.poll.interval.ms, starts no `deliver`.
 *
 * Exactly once: `deliver` may produce in a transaction of the application's, which spans polls and to which
 * unsalt_send_offsets_to_transaction() of the consumer is called between them (checkpoint.h), if it runs on the thread
 * that polls. With delivery threads that call is refused with __STATE: a `deliver` that is under way has produced, and
 * its record isn't done. `prepare` must not produce, since it runs again; a `deliver` must have produced nothing when
 * it fails, or the transaction is to be aborted. After an abort: unsalt_rewind(), and what isn't committed comes again.
 *
 * Threads: unsalt_pipeline_poll() and unsalt_pipeline_close() on one thread at a time, together with the functions of
 * its consumer that have this rule; resolve, halted, stats, unsalt_wakeup() from any. From `prepare`, `deliver` and
 * `dead_letter` only unsalt_pipeline_wanted(), unsalt_pipeline_resolve(), unsalt_pipeline_halted(),
 * unsalt_pipeline_stats() and what takes any thread in consumer.h may be called; the others return __CONFLICT. The
 * library holds no lock while a callback runs. The callbacks must not throw or jump past the library.
 *
 * An event loop: unsalt_io_event_enable() and unsalt_poll_deadline_ms() of the consumer tell when to call
 * unsalt_pipeline_poll() with timeout 0; results of `prepare` wake it, too.
 */
#include <unsalt/consumer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A pipeline, with its consumer. Opaque. */
typedef struct unsalt_pipeline unsalt_pipeline_t;

/** The phases. X(CONSTANT, name, text). */
#define UNSALT_PIPELINE_PHASES(X)                                                                   \
    X(PREPARE, prepare, "phase 1: in any order, in parallel")                                       \
    X(DELIVER, deliver, "phase 2: in the order of the session")

/** A phase. */
typedef enum unsalt_pipeline_phase {
#define X(C, name, text) UNSALT_PIPELINE_##C,
    UNSALT_PIPELINE_PHASES(X)
#undef X
    UNSALT_PIPELINE_PHASE__CNT /**< how many there are */
} unsalt_pipeline_phase_t;

/** Why a record failed for good. X(CONSTANT, name, text). */
#define UNSALT_PIPELINE_REASONS(X)                                                                  \
    X(EXHAUSTED, exhausted, "every attempt has failed")                                             \
    X(REFUSED, refused, "the callback said that trying again makes no sense")                       \
    X(TIMEOUT, timeout, "the last attempt took longer than its limit")                              \
    X(RESOLVED, resolved, "the application said so, by unsalt_pipeline_resolve()")                 \
    X(MALFORMED, malformed, "of a relay (relay.h) only: its sequence or session can't be read")

/** Why a record failed for good. */
typedef enum unsalt_pipeline_reason {
#define X(C, name, text) UNSALT_PIPELINE_BY_##C,
    UNSALT_PIPELINE_REASONS(X)
#undef X
    UNSALT_PIPELINE_BY__CNT /**< how many there are */
} unsalt_pipeline_reason_t;

/** What a callback returns. Any other value counts as UNSALT_PIPELINE_RETRY. */
typedef enum unsalt_pipeline_res {
    UNSALT_PIPELINE_OK = 0,    /**< done */
    UNSALT_PIPELINE_RETRY = 1, /**< failed; try again, as long as there are attempts left */
    UNSALT_PIPELINE_FAIL = 2   /**< failed for good: the policy decides now */
} unsalt_pipeline_res_t;

/** One call of a phase: what it works on. Borrowed for the time of the call, with all that it points to. */
typedef struct unsalt_pipeline_job {
    size_t size;                       /**< sizeof(unsalt_pipeline_job_t) of the library */
    const rd_kafka_message_t *message; /**< the record; not to be changed or destroyed. Two attempts of `prepare` may
                                            look at it at the same time */
    const void *session;               /**< session id, or base key, not terminated; NULL: without a key */
    size_t session_len;                /**< in bytes */
    uint64_t seq;                      /**< UNSALT_NO_SEQ if it has none */
    uint64_t epoch;                    /**< run of the producer; 0 if it has none */
    int32_t lane;                      /**< -1 unknown */
    uint16_t flags;                    /**< UNSALT_F_* */
    unsalt_state_t state;              /**< in `deliver`: RELEASED, LATE, STALE or UNSEQUENCED. In `prepare`: HELD as
                                            long as its turn has not come */
    int after_gap;                     /**< in `deliver`, 1: the numbers just below were given up */
    unsalt_pipeline_phase_t phase;     /**< which is called */
    uint32_t attempt;                  /**< 1 for the first */
    uint64_t waited_ns;                /**< in `deliver`: how long it waited for its turn */
    char *errstr;                      /**< what went wrong, for events and dead letters: the callback may write a
                                            terminated text here. "" before the call; never NULL */
    size_t errstr_size;                /**< room there, in bytes */
    const void *inner;                 /**< the library's */
} unsalt_pipeline_job_t;

/**
 * Phase 1. On a worker thread, several at a time.
 * @param result receives what `deliver` gets; NULL before the call. Whatever is left there becomes the library's,
 *               whatever is returned: unsalt_pipeline_discard_cb is called for it once.
 */
typedef unsalt_pipeline_res_t(unsalt_pipeline_prepare_cb)(void *opaque, const unsalt_pipeline_job_t *job,
                                                         void **result);

/**
 * Phase 2. On a delivery thread, or on the thread that is in poll or close.
 * @param result what the `prepare` of this record that was counted as done has left; NULL without a `prepare`.
 *               Borrowed: it goes to unsalt_pipeline_discard_cb when the record is done, and comes again with a retry.
 */
typedef unsalt_pipeline_res_t(unsalt_pipeline_deliver_cb)(void *opaque, const unsalt_pipeline_job_t *job, void *result);

/**
 * Takes the end of a result that isn't NULL: exactly once for each, after its last use, whether the record was
 * delivered, failed, or was cancelled. Any thread of the pipeline, or the one that is in a call.
 */
typedef void(unsalt_pipeline_discard_cb)(void *opaque, void *result);

/** Why a record becomes a dead letter, of a pipeline or of a relay (relay.h), which is a `prepare` of its own. */
typedef struct unsalt_pipeline_failure {
    size_t size;                     /**< sizeof(unsalt_pipeline_failure_t) of the library */
    unsalt_pipeline_phase_t phase;   /**< which has failed */
    unsalt_pipeline_reason_t reason; /**< and why */
    uint32_t attempts;               /**< how many calls of that phase there were */
    const char *error;               /**< what the last one has written into errstr, or what the library says of it */
    uint64_t cursor;                 /**< the number that the session releases next, of its newest epoch: what is below
                                          was released or given up. Of a late record with which nothing newer is inside:
                                          the number above it, at least. UNSALT_NO_SEQ for a record without a sequence,
                                          for a stale one with which nothing newer is inside, and of a relay, which
                                          doesn't know */
} unsalt_pipeline_failure_t;

/**
 * Stores a dead letter, instead of `pipeline.dead.letter.topic`. Where `deliver` is called, at its place in the order.
 * @param job as in `deliver`; `attempt` counts the calls for this dead letter.
 * @returns UNSALT_PIPELINE_OK: it is stored, the record is done. Anything else: tried again, after a back-off, until it
 *          is; its session waits.
 */
typedef unsalt_pipeline_res_t(unsalt_pipeline_dead_letter_cb)(void *opaque, const unsalt_pipeline_job_t *job,
                                                             const unsalt_pipeline_failure_t *failure);

/** A message that carries an error, or (if the application asked for them) tells the end of a partition. Borrowed. */
typedef void(unsalt_pipeline_error_cb)(void *opaque, const rd_kafka_message_t *message);

/** The application's side. Set `size` and `deliver`, the rest as needed or 0. Copied. */
typedef struct unsalt_pipeline_callbacks {
    size_t size;                                 /**< sizeof(unsalt_pipeline_callbacks_t) of the caller */
    unsalt_pipeline_prepare_cb *prepare;         /**< NULL: there is no phase 1, and no worker */
    unsalt_pipeline_deliver_cb *deliver;         /**< required */
    unsalt_pipeline_discard_cb *discard;         /**< NULL: results need no end */
    unsalt_pipeline_dead_letter_cb *dead_letter; /**< NULL: dead letters go to pipeline.dead.letter.topic */
    unsalt_pipeline_error_cb *error;             /**< on the thread in poll; NULL: such messages are logged only */
    void *opaque;                                /**< passed to each; the caller's */
} unsalt_pipeline_callbacks_t;

/**
 * Creates a pipeline and its consumer, and starts its threads.
 * @param rk_conf, conf as for unsalt_new(): taken on success; on failure both stay the caller's. `conf` may be NULL.
 *        The key `ack` is taken as `manual`: the library acknowledges.
 * @param callbacks copied.
 * @param errstr the reason on failure: what unsalt_new() refuses; no `deliver`; a policy `dead-letter` with neither a
 *        topic nor a callback; threads that can't be started.
 * @returns the pipeline, or NULL.
 */
UNSALT_EXPORT unsalt_pipeline_t *unsalt_pipeline_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf,
                                                     const unsalt_pipeline_callbacks_t *callbacks, char *errstr,
                                                     size_t errstr_size);

/**
 * @returns its consumer, owned by the pipeline: for unsalt_subscribe(), unsalt_assign(), pause, resume, seek, commit,
 * unsalt_stats(), unsalt_wakeup(), the functions for an event loop and the like. Its poll, batch and callback return
 * __CONFLICT, as does unsalt_consumer_close(); unsalt_destroy() must not be called, and unsalt_ack() has nothing to do.
 */
UNSALT_EXPORT unsalt_t *unsalt_pipeline_consumer(const unsalt_pipeline_t *p);

/**
 * Does the work of the thread that polls: reads, starts what has come, calls `deliver` (without delivery threads) and
 * events, acknowledges, commits. Call it all the time; max.poll.interval.ms counts from call to call. Without delivery
 * threads a `deliver` delays it, so one call gives way after about a second of them.
 * @param timeout_ms how long to wait until something is done; 0 = don't wait, -1 = for ever.
 * @returns how many records were done (delivered, stored as dead letters, skipped) since the last call; 0 on timeout or
 *          unsalt_wakeup(); -1 on an error of the call: unsalt_last_error() says __CONFLICT (another thread is in the
 *          consumer, or called from a callback), __STATE (closed) or __CRIT_SYS_RESOURCE (out of memory; nothing is
 *          lost, call again).
 */
UNSALT_EXPORT int unsalt_pipeline_poll(unsalt_pipeline_t *p, int timeout_ms);

/**
 * For long work that can be cut short. Only within the callback, on any thread.
 * @returns 1 if the outcome of this call is still wanted; 0 when its time limit is over, or its record was revoked.
 */
UNSALT_EXPORT int unsalt_pipeline_wanted(const unsalt_pipeline_job_t *job);

/** What becomes of the record at which a session was halted. */
typedef enum unsalt_pipeline_action {
    UNSALT_PIPELINE_TRY_AGAIN = 0,  /**< the phase that failed is run again, with all its attempts */
    UNSALT_PIPELINE_SKIP_IT = 1,    /**< it counts as done, with event PIPELINE_SKIPPED */
    UNSALT_PIPELINE_DEAD_LETTER = 2 /**< it becomes a dead letter; reason RESOLVED */
} unsalt_pipeline_action_t;

/**
 * Lets a halted session go on. Any thread, also from a callback.
 * @param topic, partition, session as event PIPELINE_HALTED told them: of the record at which it stands. Borrowed.
 * @returns NO_ERROR; __NOENT: no session of this name is halted there (a revoke has ended it, or it was resolved
 *          before); __INVALID_ARG: an argument; __NOT_CONFIGURED, with a line in the log: UNSALT_PIPELINE_DEAD_LETTER
 *          without `pipeline.dead.letter.topic` and without a dead_letter callback. The session stands as before.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_pipeline_resolve(unsalt_pipeline_t *p, const char *topic, int32_t partition,
                                                          const void *session, size_t session_len,
                                                          unsalt_pipeline_action_t action);

/** A halted session, and the record at which it stands. Borrowed for the time of the call, with all it points to. */
typedef struct unsalt_pipeline_halt {
    size_t size;                     /**< sizeof(unsalt_pipeline_halt_t) of the library */
    const char *topic;               /**< of the record; with partition and session what resolve takes */
    int32_t partition;               /**< of the record */
    int64_t offset;                  /**< of the record */
    const void *session;             /**< session id, or base key; NULL: records without a key. Also terminated */
    size_t session_len;              /**< in bytes */
    uint64_t seq;                    /**< number of the record; UNSALT_NO_SEQ if it has none */
    uint64_t epoch;                  /**< run of the producer; 0 if it has none */
    unsalt_pipeline_phase_t phase;   /**< which has failed */
    unsalt_pipeline_reason_t reason; /**< and why */
    uint32_t attempts;               /**< how many calls of that phase there were */
    const char *error;               /**< what the last one has written into errstr; "": nothing */
    int64_t age_ms;                  /**< since when it stands */
    uint64_t records;                /**< piled up: this one, and those behind it whose turn has come */
    uint64_t bytes;                  /**< key and payload of these */
} unsalt_pipeline_halt_t;

/** Told of each halted session. It may call what takes any thread, unsalt_pipeline_resolve() among it. */
typedef void(unsalt_pipeline_halted_cb)(void *opaque, const unsalt_pipeline_halt_t *halt);

/**
 * Lists the sessions that stand, as they are now, longest first: which, since when, at which record and why. Any
 * thread, also from a callback. One session in words: unsalt_explain(); their number: `sessions_halted`.
 * @param cb called for each, on this thread, without a lock.
 * @returns how many there are; -1 on an error of the call: unsalt_last_error() says __INVALID_ARG (no cb) or
 *          __CRIT_SYS_RESOURCE (out of memory: cb was not called).
 */
UNSALT_EXPORT int64_t unsalt_pipeline_halted(const unsalt_pipeline_t *p, unsalt_pipeline_halted_cb *cb, void *opaque);

/** Where records are that are not done. X(CONSTANT, name, text). */
#define UNSALT_PIPELINE_STATES(X)                                                                   \
    X(QUEUED, queued, "phase 1 is to be started")                                                   \
    X(RUNNING, running, "phase 1 runs")                                                             \
    X(RETRYING, retrying, "phase 1 has failed and is tried again after its back-off")               \
    X(PREPARED, prepared, "phase 1 is done: waiting for its turn, or for those before it")          \
    X(FAILED, failed, "phase 1 has failed for good: its policy applies when its turn has come")     \
    X(DELIVERING, delivering, "phase 2 runs")                                                       \
    X(REDELIVERING, redelivering, "phase 2 has failed and is tried again after its back-off")       \
    X(HALTED, halted, "its session stands here until it is resolved")                               \
    X(BURYING, burying, "its dead letter is being stored")                                          \
    X(REBURYING, reburying, "its dead letter could not be stored: tried again after a back-off")

/** Where a record is. */
typedef enum unsalt_pipeline_state {
#define X(C, name, text) UNSALT_PIPELINE_IN_##C,
    UNSALT_PIPELINE_STATES(X)
#undef X
    UNSALT_PIPELINE_IN__CNT /**< how many there are */
} unsalt_pipeline_state_t;

/** What became of records that left. X(CONSTANT, name, text). */
#define UNSALT_PIPELINE_OUTCOMES(X)                                                                 \
    X(DELIVERED, delivered, "deliver has returned OK")                                              \
    X(BURIED, buried, "its dead letter is stored")                                                  \
    X(SKIPPED, skipped, "it failed and was skipped")                                                \
    X(CANCELLED, cancelled, "dropped at a revoke, a seek or a close, or by the core: not acknowledged")

/** What became of a record. */
typedef enum unsalt_pipeline_outcome {
#define X(C, name, text) UNSALT_PIPELINE_WAS_##C,
    UNSALT_PIPELINE_OUTCOMES(X)
#undef X
    UNSALT_PIPELINE_WAS__CNT /**< how many there are */
} unsalt_pipeline_outcome_t;

/** Statistics. What isn't said to be of now counts since the pipeline was created. */
typedef struct unsalt_pipeline_stats {
    uint64_t entered;                             /**< records whose phase 1 could be started, or whose turn came */
    uint64_t state[UNSALT_PIPELINE_IN__CNT];      /**< where those are that have not left, now */
    uint64_t outcome[UNSALT_PIPELINE_WAS__CNT];   /**< what became of the others */
    int conserved;                                /**< 1 if `state` and `outcome` sum up to `entered` */
    uint64_t waiting_turn;                        /**< of those inside: their turn has not come, now */
    uint64_t waiting_room;                        /**< records held by the core that found no room for phase 1, now */
    uint64_t bytes;                               /**< key and payload of those inside, now */
    uint64_t sessions;                            /**< with a record inside, now */
    uint64_t sessions_halted;                     /**< that stand, now */
    uint64_t halted_records;                      /**< records inside that belong to them, now */
    uint64_t strays;                              /**< calls of `prepare` that still run though nobody waits, now */
    uint64_t attempts[UNSALT_PIPELINE_PHASE__CNT]; /**< calls of the callbacks */
    uint64_t retries[UNSALT_PIPELINE_PHASE__CNT];  /**< of which for a record that had failed before */
    uint64_t failures[UNSALT_PIPELINE_PHASE__CNT]; /**< calls that failed; a slow `prepare` has, a slow `deliver`
                                                        that returns OK has not */
    uint64_t timeouts[UNSALT_PIPELINE_PHASE__CNT]; /**< calls that took longer than their limit */
    uint64_t final_failures[UNSALT_PIPELINE_PHASE__CNT]; /**< records that failed for good; without those whose last
                                                              call failed while a revoke or a close cancelled them */
    uint64_t dead_letter_failures;                /**< dead letters that could not be stored at an attempt */
    uint64_t halts;                               /**< times that a session was halted */
    uint64_t full;                                /**< times that reading stopped for want of room */
    uint64_t prepare_count[UNSALT_WAIT_BUCKETS];  /**< calls of `prepare`, by how long they took */
    uint64_t prepare_sum_ns;                      /**< sum of what prepare_count counts */
    uint64_t deliver_count[UNSALT_WAIT_BUCKETS];  /**< calls of `deliver`, by how long they took */
    uint64_t deliver_sum_ns;                      /**< sum of what deliver_count counts */
    uint64_t queue_count[UNSALT_WAIT_BUCKETS];    /**< first calls of `prepare`, by how long they waited */
    uint64_t queue_sum_ns;                        /**< sum of what queue_count counts */
    uint64_t turn_count[UNSALT_WAIT_BUCKETS];     /**< records that went to `deliver`, by time since phase 1 */
    uint64_t turn_sum_ns;                         /**< sum of what turn_count counts */
} unsalt_pipeline_stats_t;

/**
 * Copies the statistics, as they are now. Any thread.
 * @param size sizeof(unsalt_pipeline_stats_t) of the caller: a shorter one gets the first fields only.
 * @returns 0, or -1 when size is 0.
 */
UNSALT_EXPORT int unsalt_pipeline_stats(const unsalt_pipeline_t *p, unsalt_pipeline_stats_t *stats, size_t size);
/** As unsalt_stats_json(). */
UNSALT_EXPORT int unsalt_pipeline_stats_json(const unsalt_pipeline_stats_t *stats, size_t stats_size, char *buf,
                                             size_t size);
/** As unsalt_stats_prometheus(); the names begin with `unsalt_pipeline_`, so both texts may follow each other. */
UNSALT_EXPORT int unsalt_pipeline_stats_prometheus(const unsalt_pipeline_stats_t *stats, size_t stats_size,
                                                   const char *labels, char *buf, size_t size);

/**
 * Cancels what wasn't started, waits up to revoke.timeout.ms for what was, commits and leaves the group, as
 * unsalt_consumer_close() does. Then up to revoke.timeout.ms more for callbacks that still run. Idempotent.
 * @returns as unsalt_consumer_close(); __CONFLICT from a callback, or while another thread is in the consumer.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_pipeline_close(unsalt_pipeline_t *p);

/**
 * Closes if that wasn't done, ends the threads and frees, with the consumer. It waits for callbacks that still run, as
 * long as they do. NULL is allowed. One thread, when no other uses the pipeline any more; not from a callback.
 */
UNSALT_EXPORT void unsalt_pipeline_destroy(unsalt_pipeline_t *p);

/** @returns the name of a phase ("prepare"), or "?". Any thread. */
UNSALT_EXPORT const char *unsalt_pipeline_phase_name(unsalt_pipeline_phase_t phase);
/** @returns the name of a reason ("exhausted"), or "?". Any thread. */
UNSALT_EXPORT const char *unsalt_pipeline_reason_name(unsalt_pipeline_reason_t reason);
/** @returns the name of a state ("queued"), or "?". Any thread. */
UNSALT_EXPORT const char *unsalt_pipeline_state_name(unsalt_pipeline_state_t state);
/** @returns the name of an outcome ("delivered"), or "?". Any thread. */
UNSALT_EXPORT const char *unsalt_pipeline_outcome_name(unsalt_pipeline_outcome_t outcome);

/** @name Headers of a dead-letter record, of a pipeline or of a relay
 * Its key is the session (none for a record without a key), its payload and its timestamp are the record's, and so are
 * its headers, but for one `unsalt`, which is found under UNSALT_DEAD_HEADER, and those of an earlier dead letter, when
 * one is buried again. Those below follow. Numbers are decimal
 * ASCII, texts are not terminated. What doesn't apply is absent. docs/dead-letters.md has the rules for readers.
 * @{ */
#define UNSALT_DEAD_VERSION "unsalt.dead.version"     /**< version of this list of headers: "1" */
#define UNSALT_DEAD_REASON "unsalt.dead.reason"       /**< name of an unsalt_pipeline_reason_t */
#define UNSALT_DEAD_PHASE "unsalt.dead.phase"         /**< name of an unsalt_pipeline_phase_t */
#define UNSALT_DEAD_ERROR "unsalt.dead.error"         /**< error text of the last attempt */
#define UNSALT_DEAD_ATTEMPTS "unsalt.dead.attempts"   /**< calls of that phase */
#define UNSALT_DEAD_STATE "unsalt.dead.state"         /**< released, late, stale or unsequenced; not of a relay */
#define UNSALT_DEAD_SESSION "unsalt.dead.session"     /**< session id, bytes */
#define UNSALT_DEAD_SEQ "unsalt.dead.seq"             /**< its sequence; absent: it has none */
#define UNSALT_DEAD_EPOCH "unsalt.dead.epoch"         /**< run of its producer; absent: it has no sequence */
#define UNSALT_DEAD_CURSOR "unsalt.dead.cursor"       /**< the number that its session released next at that time; what
                                                           is below is dropped as a copy if it is sent again so */
#define UNSALT_DEAD_TOPIC "unsalt.dead.topic"         /**< where the record stands: topic */
#define UNSALT_DEAD_PARTITION "unsalt.dead.partition" /**< partition */
#define UNSALT_DEAD_OFFSET "unsalt.dead.offset"       /**< offset */
#define UNSALT_DEAD_KEY "unsalt.dead.key"             /**< its key, bytes, salt included; absent: it has none */
#define UNSALT_DEAD_HEADER "unsalt.dead.header"       /**< its `unsalt` header (wire.h); absent: it has none */
#define UNSALT_DEAD_GROUP "unsalt.dead.group"         /**< group.id of who gave it up */
/** @} */

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_RELAY_H
#define UNSALT_RELAY_H
/**
 * @file relay.h
 * @brief Heavy work on many machines: a relay consumes, transforms and produces to result lanes, with session and
 *        sequence preserved, one transaction per batch. An ordinary consumer of the result lanes releases in order.
 *
 * Any number of relays share a group. They work on records in any order and on any partition, so every lane may be read
 * by a member of its own. What a result is called (session, epoch, number) comes from its input alone: whoever does the
 * work, and however often, the number is the same, and no state has to move. Offsets are sent to the transaction with
 * the group's metadata (KIP-447): of a member that has lost its partitions the broker refuses them, and nothing of that
 * batch is ever seen by a reader of committed records. So each input has one result there, whatever is killed when.
 *
 * What a result carries, how long a reader waits for what, and what is asked of that reader: docs/workers.md.
 *
 * What the library forces on the consumer's rd_kafka_conf_t: enable.auto.commit=false, enable.auto.offset.store=false,
 * enable.partition.eof=false, isolation.level=read_committed (set to something else it is refused: by it a member waits
 * for the transactions of those before it), auto.offset.reset=earliest, the rebalance callback; and
 * partition.assignment.strategy=roundrobin if it is librdkafka's default, since `range` gives partition 0 of all lanes
 * to the same member. On the producer's: partitioner=murmur2 (for dead letters; results name their partition),
 * transaction.timeout.ms as `relay.timeout.ms`, and a transactional.id that is drawn, if there is none. Two relays must
 * not have the same; it needn't outlive the process, for the group fences, but one that does lets the next run end what
 * the last one left open at once, instead of after `relay.timeout.ms`.
 */
#include <librdkafka/rdkafka.h>
#include <unsalt/conf.h>
#include <unsalt/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A relay. Opaque. */
typedef struct unsalt_relay unsalt_relay_t;

/** What is known of a record that is to be transformed. (session, epoch, seq) is an idempotency key. */
typedef struct unsalt_relay_info {
    size_t size;         /**< sizeof(unsalt_relay_info_t) of the library */
    const void *session; /**< session id, not terminated; NULL if the record has no usable sequence */
    size_t session_len;  /**< in bytes */
    uint64_t seq;        /**< UNSALT_NO_SEQ if it has none */
    uint64_t epoch;      /**< run of the producer; 0 if the source tells none */
    uint16_t flags;      /**< UNSALT_F_FIRST, UNSALT_F_LAST, UNSALT_F_RESEND */
    unsigned attempt;    /**< 1, and one more each time that it failed before in this batch; of a dead letter how many
                              there were, 0 of a malformed record */
    char *errstr;        /**< what went wrong, for the error of a halt and for dead letters: the callback may write a
                              terminated text here. "" before the call; NULL only in a dead-letter callback */
    size_t errstr_size;  /**< room there, in bytes */
} unsalt_relay_info_t;

/** The result of a record. Before the call it is the record itself: what isn't changed goes on as it is. */
typedef struct unsalt_relay_out {
    size_t size;                      /**< sizeof(unsalt_relay_out_t) of the library */
    const void *payload;              /**< NULL: a tombstone. Must stay valid until `release` is called */
    size_t len;                       /**< in bytes */
    void (*release)(void *payload);   /**< called once with `payload` when it is done with, on the thread that polls,
                                           also after a failure; e.g. free. NULL: nothing is to be done. After a
                                           failed attempt the thread that has made it waits for this call before it
                                           goes on, and that comes in unsalt_relay_poll() or unsalt_relay_destroy():
                                           who has nothing to hand over sets nothing before it fails */
    rd_kafka_headers_t *headers;      /**< NULL: those of the record. Else taken over. `unsalt` is always written by
                                           the library */
} unsalt_relay_out_t;

/** What a transform callback returns. */
typedef enum unsalt_relay_res {
    UNSALT_RELAY_DONE = 0,  /**< `out` is the result */
    UNSALT_RELAY_DROP = 1,  /**< there is none: a gap marker takes the place of its number, so that nobody waits for it.
                                 A record without a sequence just isn't there */
    UNSALT_RELAY_FAILED = 2 /**< tried again after `relay.retry.ms`, up to `relay.retries` times, then as
                                 `relay.failure` says. Any other value counts as this one */
} unsalt_relay_res_t;

/**
 * Transforms one record into one result (several would need numbers that are not there; put them into one payload).
 * Called on the relay's threads (`relay.threads`), for the records of a batch at the same time and in any order, also
 * while no thread is in unsalt_relay_poll(), and at least once for each: again after an abort, a rebalance or a crash.
 * Effects elsewhere must bear that; `info` is their idempotency key. `message` is borrowed and must not be changed. Of
 * that relay it may call unsalt_relay_stats() only. All records of a batch have to be done within max.poll.interval.ms.
 */
typedef unsalt_relay_res_t(unsalt_relay_cb)(void *opaque, const rd_kafka_message_t *message,
                                            const unsalt_relay_info_t *info, unsalt_relay_out_t *out);
/** Sets it on the input's configuration; `opaque` is the caller's. NULL: records go on as they are. */
UNSALT_EXPORT void unsalt_conf_set_relay_cb(unsalt_conf_t *conf, unsalt_relay_cb *cb, void *opaque);

/**
 * Stores a dead letter, with relay.failure=dead-letter or malformed=dead-letter, instead of `relay.dead.letter.topic`.
 * Called on the thread that polls, in the order of the partition, within the transaction of the batch but not part of
 * it: at least once, and again if the batch is aborted. Records of a session come from as many partitions and members
 * as it has lanes: they are in no order of their own. It may call no function of that relay.
 * @param message, info, failure are borrowed. Of the failure `phase` is UNSALT_PIPELINE_PREPARE, `reason` EXHAUSTED or
 *        MALFORMED, `cursor` UNSALT_NO_SEQ.
 * @returns UNSALT_PIPELINE_OK: it is stored, and a gap marker takes the place of its number. Anything else: the batch
 *          is aborted and comes again, and unsalt_relay_poll() returns __APPLICATION.
 */
typedef unsalt_pipeline_res_t(unsalt_relay_dead_letter_cb)(void *opaque, const rd_kafka_message_t *message,
                                                          const unsalt_relay_info_t *info,
                                                          const unsalt_pipeline_failure_t *failure);
/** Sets it on the input's configuration; `opaque` is the caller's. NULL: they go to `relay.dead.letter.topic`. */
UNSALT_EXPORT void unsalt_conf_set_relay_dead_letter_cb(unsalt_conf_t *conf, unsalt_relay_dead_letter_cb *cb,
                                                        void *opaque);

/**
 * Creates a relay. It talks to the cluster from unsalt_relay_subscribe() on.
 * @param reads  librdkafka's configuration of the consumer: group.id is needed.
 * @param input  how the input is read: layout, lanes, where sequences and sessions are found; the keys `relay.*`; event
 *               callback (MALFORMED; of a record that failed for good PIPELINE_SKIPPED or PIPELINE_BURIED, once its
 *               batch is committed), log callback, the callbacks above. One with defaults suits topics of
 *               unsalt_producer with layout `hash`.
 * @param writes librdkafka's configuration of the producer.
 * @param result where results go: relay.topic, layout, partitions, lanes, lane.topics, salt.pattern, as for a producer.
 * All four are taken on success; on failure they stay the caller's, unchanged as far as the application can see.
 * @returns the relay, or NULL with errstr; a key `relay.*` or a relay's callback that is set on the one of `input` and
 * `result` that doesn't read it is refused, too.
 */
UNSALT_EXPORT unsalt_relay_t *unsalt_relay_new(rd_kafka_conf_t *reads, unsalt_conf_t *input, rd_kafka_conf_t *writes,
                                               unsalt_conf_t *result, char *errstr, size_t errstr_size);

/** @returns the consumer's handle, owned by the relay. Don't poll, seek, commit or close through it. */
UNSALT_EXPORT rd_kafka_t *unsalt_relay_consumer(const unsalt_relay_t *r);

/**
 * As rd_kafka_subscribe(); with the input's layout `topics` the lane topics of a base topic are added. The list is
 * borrowed. Where the group has committed nothing, reading begins at the start of the log. If dead letters go to
 * `relay.dead.letter.topic`, that is looked for first, which may block for 10 s. By the thread that polls.
 * @returns NO_ERROR; UNKNOWN_TOPIC_OR_PART: the topic of dead letters isn't there, which the log says, and nothing is
 *          subscribed to; or as rd_kafka_subscribe(), or the broker's word on that topic. If nobody answers the
 *          question for it, that is logged and no error.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_relay_subscribe(unsalt_relay_t *r,
                                                         const rd_kafka_topic_partition_list_t *topics);

/**
 * Relays one batch: commits results and offsets of up to `relay.batch.records` records in one transaction. Up to three
 * batches are in hand: while one is committed, the next is already worked on by `relay.threads`, and while that is so
 * the one behind it is read; so work goes on during a commit, and between two calls. Results are produced in the order
 * of the batches, each when the transaction before it is over. (With relay.threads=0 nothing overlaps.) A batch that is
 * aborted takes those behind it along. When the group takes partitions away, a call finishes and commits the batch that
 * is worked on before it answers, and gives up what was read behind it; if the group has already given them to others,
 * both are given up. So no result is committed for a partition that this member has no more.
 * A transaction that can't be committed within `relay.timeout.ms` is aborted, which may take as long again. But while
 * the group's coordinator is away, librdkafka heeds no time when offsets are sent (librdkafka#5511): two seconds after
 * that time their producer is left behind, and __TIMED_OUT returned. Nothing of it becomes visible: the next producer
 * has the same transactional.id, which ends what the last one began, before anything is read again.
 * To be called in a loop by one thread.
 * @param timeout_ms for the first record if nothing is in hand; 0 = don't wait. Else it returns when a transaction is
 *        over.
 * @param relayed receives how many records of the input were committed, 0 if there were none. NULL is allowed.
 * @returns NULL; also if a batch was given up because its partitions went. Or an error, to be destroyed by the caller;
 *          with one `relayed` is 0. What was in hand is aborted and comes again with the next call, but where the
 *          consumer has an error to report that says nothing of what it had read:
 *          __APPLICATION: the transformation of a record has failed for good (`relay.failure=halt`), or the
 *          callback could not store its dead letter;
 *          __FATAL: nothing can be done with this relay any more but destroy it;
 *          __CONFLICT: another thread is in a call; __CRIT_SYS_RESOURCE: out of memory;
 *          or librdkafka's word on what failed, such as UNKNOWN_TOPIC_OR_PART, __TIMED_OUT, __UNKNOWN_PARTITION.
 */
UNSALT_EXPORT rd_kafka_error_t *unsalt_relay_poll(unsalt_relay_t *r, int timeout_ms, size_t *relayed);

/** What a relay did so far. Records that come again count again. */
typedef struct unsalt_relay_stats {
    uint64_t received;    /**< records that came in */
    uint64_t batches;     /**< transactions committed */
    uint64_t aborts;      /**< batches that were given up, for whatever reason */
    uint64_t relayed;     /**< results committed */
    uint64_t dropped;     /**< of records: no result; a marker if there was a number */
    uint64_t markers;     /**< gap markers committed: of dropped records, and passed on from the input */
    uint64_t unsequenced; /**< of `relayed`: without a sequence */
    uint64_t malformed;   /**< records whose sequence or session couldn't be used */
    uint64_t heartbeats;  /**< swallowed */
    uint64_t relaned;     /**< of `relayed`: went to another lane than in the input, and prove nothing of others */
    uint64_t retries;     /**< transformations made again */
    uint64_t failed;      /**< transformations that failed for good */
    uint64_t producers;   /**< times that a new producer was needed */
} unsalt_relay_stats_t;

/** @param size sizeof(unsalt_relay_stats_t) of the caller. @returns 0, or -1 when size is 0. Any thread. */
UNSALT_EXPORT int unsalt_relay_stats(const unsalt_relay_t *r, unsalt_relay_stats_t *stats, size_t size);

/**
 * Leaves the group and frees. What is in hand is given up, and comes again to whoever has its partitions then; calls of
 * the transform callback that have begun are waited for. NULL is allowed. No other thread may be in a call.
 * A handle of librdkafka that isn't gone after 5 s is left behind, which is logged, as is a producer whose call does
 * not come back (unsalt_relay_poll()); it goes when it can. Its log callback isn't called any more; callbacks for
 * sockets and certificates that were set on `reads` or `writes`, and their opaque, must stay valid for it.
 */
UNSALT_EXPORT void unsalt_relay_destroy(unsalt_relay_t *r);

#ifdef __cplusplus
}
#endif
#endif

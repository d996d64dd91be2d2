/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_PRODUCER_H
#define UNSALT_PRODUCER_H
/**
 * @file producer.h
 * @brief The stamping producer: numbers the records of a session, picks the lane, sends to an explicit partition.
 *
 * Idempotence is forced on. The epoch is the wall clock at creation, in milliseconds times 2^20 and with random low
 * bits: producers that start at the same moment differ, and a later run is higher as long as the clock doesn't go back
 * between two runs, also when the runs are on different machines. Within a process a later producer is always higher.
 * `producer.epoch` sets it from a source of your own, and is used as it is; sessions that come back after an eviction
 * take the numbers above it, one each time, so leave room up to the next run. If a later run has a lower epoch all the
 * same, consumers hand its records out as stale until `restart.k` of them in a row reveal it; nothing is lost. One
 * producer per session at a time; a session may move on to a later producer, but not back.
 *
 * What becomes of a send that fails. librdkafka retries by itself until `message.timeout.ms`, with the same number.
 * When it gives a record up, this producer sends it again with the same number (flag RESEND), for
 * `producer.resend.max.ms` from the first such failure. So it does with a record that librdkafka takes for acknowledged
 * only because a later one was. The application's delivery report comes once, with the final result;
 * rd_kafka_message_status() speaks of the last attempt only. A record that is abandoned in the end, and of which no
 * attempt can have reached the broker, is followed by a gap marker, so that consumers needn't wait for it; of one that
 * may have reached it, nothing is said. In both cases `una` passes it. A record without a session has no number by
 * which a second copy could be told: it is not sent again. What the application itself purges, or is still queued at
 * unsalt_producer_destroy(), is abandoned without a marker; see unsalt_producer_purge(). With a `transactional.id`
 * nothing is sent again and no marker is written, as the transaction decides: numbers of an aborted one are gaps to
 * its readers.
 *
 * Resends and markers are sent from unsalt_producer_poll(), unsalt_producer_flush() and the produce calls: who
 * doesn't poll, doesn't resend. A fatal error of librdkafka's (rd_kafka_fatal_error()) ends the producer: everything is
 * abandoned, a new one has a higher epoch.
 */
#include <librdkafka/rdkafka.h>
#include <unsalt/conf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A producer. Opaque. */
typedef struct unsalt_producer unsalt_producer_t;

/**
 * @param rk_conf, conf taken on success; the caller's on failure. `partitions` (N) and `lanes` (the most there may be,
 *        and S of every topic until unsalt_producer_set_lanes()) must be set.
 *        The application's delivery report callback on rk_conf keeps working; its message opaque is its own.
 *        Delivery reports as events (rd_kafka_conf_set_events()) are refused.
 * @returns the producer, or NULL with errstr: both configurations are as they were.
 */
UNSALT_EXPORT unsalt_producer_t *unsalt_producer_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf, char *errstr,
                                                     size_t errstr_size);

/**
 * @returns librdkafka's handle, owned by the producer. Poll, flush and transactions through it are allowed, also
 *          unsalt_send_offsets_to_transaction(): with checkpoint=topic the application's delivery report callback
 *          hears of entries, too, without an opaque, and they count nowhere here. Producing is not allowed: the
 *          delivery report of a record with an opaque that this producer didn't send can't be told apart. Purge with
 *          unsalt_producer_purge(): rd_kafka_purge() doesn't know of the records that wait to be sent again.
 */
UNSALT_EXPORT rd_kafka_t *unsalt_producer_handle(const unsalt_producer_t *p);

/** One record to be sent. Set `size`, `topic` and what is needed; the rest 0. Everything is copied. */
typedef struct unsalt_record {
    size_t size;                 /**< sizeof(unsalt_record_t) of the caller; what a later version adds must be 0 */
    const char *topic;           /**< base topic; with layout `topics` the lane topic is picked from it (with
                                      `lane.topics` it must be the first of them). The same session id in two topics
                                      is two sessions */
    const void *session;         /**< session id, 1..session.id.max bytes; NULL: goes out unstamped, to any partition */
    size_t session_len;          /**< in bytes */
    const void *payload;         /**< NULL: a tombstone */
    size_t len;                  /**< of the payload, in bytes */
    rd_kafka_headers_t *headers; /**< further headers, none of them `unsalt`; stays the caller's. NULL: none */
    int64_t timestamp;           /**< creation time, ms since the epoch; 0: now */
    uint16_t lanes;              /**< S for this record, 1..`lanes` of the configuration; 0: that of the topic */
    uint8_t flags;               /**< UNSALT_F_LAST or 0 */
    void *opaque;                /**< for the delivery report */
} unsalt_record_t;

/**
 * Stamps and enqueues a record: one step per session, also under concurrent callers. Any thread, also from a delivery
 * report callback. The first use of a topic asks the cluster whether it has, with layout `topics` whether all its lane
 * topics have, N partitions; that may take `producer.check.ms`.
 * @returns NO_ERROR. On an error no number was used up, and nothing was sent:
 *          __QUEUE_FULL and others of rd_kafka_producev(); __QUEUE_FULL also while older records wait to be sent again,
 *          when producer.sessions.max sessions have records in flight (above 8,191: almost as many, since they are
 *          divided by a hash), or one session 4,194,304 of them: poll, then try again.
 *          __UNKNOWN_TOPIC, __UNKNOWN_PARTITION: a topic doesn't exist, or has fewer partitions than N;
 *          __TIMED_OUT, __TRANSPORT: the cluster couldn't be asked. A log line says which; asked again at the next
 *          call, at most once a second.
 *          __INVALID_ARG: an argument, or the session's numbers are used up. __CRIT_SYS_RESOURCE: out of memory.
 *          __FATAL: librdkafka's fatal error. __DESTROY: called from a delivery report of unsalt_producer_destroy().
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_produce_record(unsalt_producer_t *p, const unsalt_record_t *record);

/** As unsalt_produce_record() with topic, session, payload and opaque. */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_produce(unsalt_producer_t *p, const char *topic, const void *session,
                                                 size_t session_len, const void *payload, size_t len, void *opaque);

/**
 * Sets S of a topic, from the next record on: cold to hot and back while its sessions live. Consumers merge by number,
 * so the order doesn't depend on S. Any thread.
 * @param topic base topic, borrowed.
 * @param lanes 1..`lanes` of the configuration.
 * @returns NO_ERROR, __INVALID_ARG, or __CRIT_SYS_RESOURCE: out of memory, or 65,536 topics have a setting.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_producer_set_lanes(unsalt_producer_t *p, const char *topic, uint16_t lanes);

/**
 * As rd_kafka_poll(), and sends what is to be sent again. One call in a while is needed for delivery reports. Any
 * thread, also from a delivery report callback: there it serves librdkafka's events, but abandons nothing. From one of
 * unsalt_producer_destroy(): 0 at once.
 */
UNSALT_EXPORT int unsalt_producer_poll(unsalt_producer_t *p, int timeout_ms);
/**
 * As rd_kafka_flush(), resends and markers included: NO_ERROR means that the fate of every record is known. Any
 * thread; from a delivery report callback it can't succeed, as that record's fate is still being reported.
 * @returns also __DESTROY: called from a delivery report of unsalt_producer_destroy().
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_producer_flush(unsalt_producer_t *p, int timeout_ms);
/**
 * As rd_kafka_purge(). With RD_KAFKA_PURGE_F_QUEUE nothing that was produced before is sent again either: what waits
 * for that is reported with __PURGE_QUEUE, and what is in flight with its own error, from later polls or flushes.
 * Markers that wait are dropped. Any thread.
 * @param purge_flags RD_KAFKA_PURGE_F_.. of librdkafka's.
 * @returns what rd_kafka_purge() returns; __INVALID_ARG: an unknown flag, and nothing is purged.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_producer_purge(unsalt_producer_t *p, int purge_flags);

/** What a producer did so far. */
typedef struct unsalt_producer_stats {
    uint64_t stamped;     /**< records enqueued with a sequence */
    uint64_t unstamped;   /**< records enqueued without a session */
    uint64_t acked;       /**< of both: acknowledged by the broker */
    uint64_t abandoned;   /**< of both: given up in the end */
    uint64_t uncertain;   /**< of those: may have reached the broker all the same */
    uint64_t resent;      /**< times that a record was sent again */
    uint64_t waiting;     /**< records and markers that wait to be sent again now */
    uint64_t markers;     /**< gap markers acknowledged by the broker */
    uint64_t marked;      /**< numbers that they cover */
    uint64_t sessions;    /**< in memory now */
    uint64_t evicted;     /**< sessions that left the memory: they come back under a higher epoch */
    uint64_t epoch;       /**< of sessions that are new now */
} unsalt_producer_stats_t;

/**
 * Copies the figures. Any thread.
 * @param size sizeof(unsalt_producer_stats_t) of the caller: a shorter one gets the first fields only.
 * @returns 0, or -1 when size is 0.
 */
UNSALT_EXPORT int unsalt_producer_stats(unsalt_producer_t *p, unsalt_producer_stats_t *stats, size_t size);

/**
 * Frees the producer; what is still queued is purged, its delivery reports are served. Flush before. No other
 * thread may be in a call. NULL is allowed.
 */
UNSALT_EXPORT void unsalt_producer_destroy(unsalt_producer_t *p);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_PRODUCER_H
#define UNSALT_PRODUCER_H
/**
 * @file producer.h
 * @brief The stamping producer: numbers the records of a session, picks the lane, sends to an explicit partition.
 *
 * Idempotence is forced on. The epoch is the wall clock in milliseconds at creation, so a later run is higher
 * as long as the clock doesn't go back between two runs; `producer.epoch` sets it.
 */
#include <librdkafka/rdkafka.h>
#include <unsalt/conf.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unsalt_producer unsalt_producer_t;

/**
 * @param rk_conf, conf taken on success; the caller's on failure. `partitions` (N) and `lanes` (S) must be set.
 *        The application's delivery report callback on rk_conf keeps working; its message opaque is its own.
 *        Delivery reports as events (rd_kafka_conf_set_events()) are refused.
 * @returns the producer, or NULL with errstr: both configurations are as they were.
 */
UNSALT_EXPORT unsalt_producer_t *unsalt_producer_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf, char *errstr,
                                                     size_t errstr_size);

/**
 * @returns librdkafka's handle, owned by the producer. Poll, flush, purge and transactions through it are allowed;
 *          producing is not: the delivery report of a record that this producer didn't send can't be told apart.
 */
UNSALT_EXPORT rd_kafka_t *unsalt_producer_handle(const unsalt_producer_t *p);

/**
 * Stamps and enqueues a record: one step per session, also under concurrent callers. Any thread.
 * @param topic   base topic; with layout `topics` the lane topic is picked from it (with `lane.topics` it must be
 *                the first of them). The same session id in two topics is two sessions.
 * @param session session id, 1..session.id.max bytes; NULL: the record goes out unstamped to any partition.
 * @param payload copied. NULL: a tombstone.
 * @param opaque  for the delivery report.
 * @returns NO_ERROR; __QUEUE_FULL and others of rd_kafka_producev(): then no number was used up. __QUEUE_FULL also
 *          when all producer.sessions.max sessions have records in flight, or one session 4,194,304 of them: poll,
 *          then try again. __INVALID_ARG: an argument, or the session's numbers are used up. __CRIT_SYS_RESOURCE:
 *          out of memory.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_produce(unsalt_producer_t *p, const char *topic, const void *session,
                                                 size_t session_len, const void *payload, size_t len, void *opaque);

/** As unsalt_produce(), with flags (UNSALT_F_LAST) for the record. */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_produce_flags(unsalt_producer_t *p, const char *topic, const void *session,
                                                       size_t session_len, const void *payload, size_t len,
                                                       uint8_t flags, void *opaque);

/** As rd_kafka_poll(). */
UNSALT_EXPORT int unsalt_producer_poll(unsalt_producer_t *p, int timeout_ms);
/** As rd_kafka_flush(). */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_producer_flush(unsalt_producer_t *p, int timeout_ms);

/** What a producer did so far. */
typedef struct unsalt_producer_stats {
    uint64_t stamped;     /**< records enqueued with a sequence */
    uint64_t unstamped;   /**< records enqueued without a session */
    uint64_t acked;       /**< of both: acknowledged by the broker */
    uint64_t abandoned;   /**< of both: given up by librdkafka; their numbers won't come */
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

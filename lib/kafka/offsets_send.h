/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets into the open transaction of a producer of the library's own, within a bound. While the group's coordinator
 * is away, rd_kafka_send_offsets_to_transaction() heeds no time, and nothing interrupts it (librdkafka#5511; 2.0.2 and
 * 2.16.0 alike). Then it is left with its producer. Nothing of that transaction ever becomes visible: nobody is there
 * to ask for its commit, and it is aborted by the next producer with the same transactional.id, which fences this one
 * in rd_kafka_init_transactions(), or when its time is over.
 */
#ifndef US_KAFKA_OFFSETS_SEND_H
#define US_KAFKA_OFFSETS_SEND_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

/* Beyond its time, in ms: how long a call is waited for. */
#define US_OFFSETS_LEAVE_MS 2000

struct us_offsets {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt; /* of rk; NULL: none. Nothing else refers to rk: topics, queues, another thread's call */
    rd_kafka_topic_partition_list_t *offsets;
    rd_kafka_consumer_group_metadata_t *metadata;
};

/*
 * rd_kafka_send_offsets_to_transaction(), once.
 *
 * @param what     owned by the caller; all four NULL after it was left: a thread destroys them, when it can. The
 *   handle calls no log callback then; other callbacks that librdkafka's threads call it may call until it is gone.
 * @param until_ms of us_clock_ms(): the time it is given; US_OFFSETS_LEAVE_MS later it is left
 * @param error    receives its word, the caller's, NULL if it was done; if it was left __TIMED_OUT, not retriable
 * @return false: it was left. Any thread but librdkafka's own. Without memory, or a thread to be left, the caller's
 *   thread makes the call, which nothing bounds then.
 */
bool us_offsets_send(struct us_offsets *what, uint64_t until_ms, rd_kafka_error_t **error);

/* Frees offsets and metadata, if there are any, and makes them NULL. */
void us_offsets_drop(struct us_offsets *what);
#endif

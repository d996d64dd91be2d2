/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries into a transaction that is open, of the library's own producer or of an application's. Keeps no state. See
 * checkpoint_topic.h for why they come first, and are in the log before offsets are sent.
 */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_SEND_H
#define US_KAFKA_CHECKPOINT_TOPIC_SEND_H
#include <kafka/checkpoint_topic_reader.h>

/*
 * Enqueues an entry (`offset` isn't read); librdkafka copies key and value. While its queue is full, serves delivery
 * reports and waits, until the moment `until` of us_clock_ms().
 * @return 0; __QUEUE_FULL: not enqueued in time; another code: librdkafka's word. Nothing was enqueued then.
 */
rd_kafka_resp_err_t us_checkpoint_put(rd_kafka_t *rk, rd_kafka_topic_t *rkt, const struct us_checkpoint_record *entry,
                                      uint64_t until);

/* Waits until everything that is enqueued is delivered or has failed, until that moment: 0, or __TIMED_OUT. */
rd_kafka_resp_err_t us_checkpoint_flush(rd_kafka_t *rk, uint64_t until);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The committed offsets of a group, asked for until its coordinator is there. */
#ifndef US_KAFKA_COMMITTED_H
#define US_KAFKA_COMMITTED_H
#include <librdkafka/rdkafka.h>
#include <stdint.h>

/*
 * As rd_kafka_committed(), which gives up at once when the coordinator is loading or has moved: such an answer is asked
 * again, so that a consumer that is started beside its brokers doesn't begin without its offsets.
 *   list      borrowed; offsets and errors of its partitions are set on success.
 *   until_ms  us_clock_ms() at which to give up.
 * Returns as rd_kafka_committed(), the last answer. Any thread that may call that.
 */
rd_kafka_resp_err_t us_committed(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, uint64_t until_ms);
#endif

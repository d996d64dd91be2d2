/* SPDX-License-Identifier: BSD-2-Clause */
/* Where reading of a partition begins, and where it goes back to: consumer_start.c. */
#ifndef US_KAFKA_CONSUMER_START_H
#define US_KAFKA_CONSUMER_START_H
#include <librdkafka/rdkafka.h>
#include <stdint.h>

struct unsalt;
struct us_partition;

/* Where the start of a partition comes from. */
enum us_origin {
    US_ORIGIN_GIVEN,      /* the caller's own offset */
    US_ORIGIN_COMMITTED,  /* the group's */
    US_ORIGIN_UNCOMMITTED /* the group has none, or hasn't answered */
};

/* Says at birth what auto.offset.reset=latest means, since nobody may have meant it. */
void us_start_warn(struct unsalt *u);
/*
 * Finds the start position of each partition of the list: its own offset, else the committed one, else the end that
 * auto.offset.reset names. Known ones replace the offsets of the list and are noted as start; log_start and committed
 * are noted too. What can't be found within US_START_WAIT_MS stays as it is, start -1. All partitions are in the table.
 * An offset below the log's beginning is replaced in the list by that; us_start_raise() does only this.
 */
void us_start_resolve(struct unsalt *u, rd_kafka_topic_partition_list_t *list);
void us_start_raise(struct unsalt *u, rd_kafka_topic_partition_list_t *list);
/*
 * The same for partitions that go back to the last commit, whose offsets in the list are all STORED, in timeout_ms. A
 * partition without a commit goes back to where reading of it began: at its assignment, or where it was sought to last;
 * or to its first record, if nobody knew the start. What auto.offset.reset names may lie beyond what was handed out.
 */
void us_start_again(struct unsalt *u, rd_kafka_topic_partition_list_t *list, int timeout_ms);
/* The end of a partition's log as its leader tells it; -1: not in time. */
int64_t us_start_end(struct unsalt *u, const struct us_partition *p, int timeout_ms);
#endif

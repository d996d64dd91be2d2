/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * budget.policy=fail: the core refuses a record until somebody makes room. The application is told once, by a message
 * with an error, and nothing more is read until it calls unsalt_flush_gaps(), or partitions go. Nothing is lost: the
 * refused record waits at its partition.
 */
#include <kafka/consumer.h>

static char text[] = "a budget is full and budget.policy is fail: nothing is read until unsalt_flush_gaps(), or close";

/*
 * A message that is not librdkafka's own, and lives for ever: no one may free it. rd_kafka_message_destroy() looks at
 * what librdkafka keeps behind the public part; all zero, that says that there is nothing to free.
 */
static union {
    rd_kafka_message_t message;
    unsigned char with_private_part[1024];
} full = {.message = {.err = RD_KAFKA_RESP_ERR__QUEUE_FULL,
                      .partition = RD_KAFKA_PARTITION_UA,
                      .payload = text,
                      .len = sizeof(text) - 1,
                      .offset = RD_KAFKA_OFFSET_INVALID}};

void us_full(struct unsalt *u) {
    if (!u->full && !us_ring_full(&u->ring)) {
        u->full = true;
        us_ring_put_plain(&u->ring, &full.message);
    }
}

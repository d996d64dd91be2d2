/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that asks leaders where the logs of a topic's partitions end, for as long as somebody wants to know: at
 * once, then each second. Each leader is asked by itself, so one that is away costs the others a second at most.
 */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_ENDS_H
#define US_KAFKA_CHECKPOINT_TOPIC_ENDS_H
#include <kafka/checkpoint_topic.h>

struct us_checkpoint_ends;

struct us_checkpoint_end {
    int64_t end;             /* the lowest one told since us_checkpoint_ends_want(); -1: none yet */
    rd_kafka_resp_err_t err; /* of the last question; 0: it was answered, or none was asked */
};

/*
 * What *client points to and the topic's name are borrowed. `wake` is called by the thread when something is told.
 * NULL: out of memory, or no thread. All functions: any thread, but nobody may be in one during destroy().
 */
struct us_checkpoint_ends *us_checkpoint_ends_new(const struct us_checkpoint_client *client, const char *topic,
                                                  int32_t partitions, void (*wake)(void *opaque), void *opaque);
/*
 * NULL is allowed. Waits for the thread: for an answer that is under way, a second or so at most.
 * @return false: as us_handle_end()
 */
bool us_checkpoint_ends_destroy(struct us_checkpoint_ends *ends);
/* Questions that are sent from now on count, earlier ones don't. 0 <= partition < partitions. */
void us_checkpoint_ends_want(struct us_checkpoint_ends *ends, int32_t partition);
/* Nobody wants to know any more. */
void us_checkpoint_ends_unwant(struct us_checkpoint_ends *ends, int32_t partition);
struct us_checkpoint_end us_checkpoint_ends_get(struct us_checkpoint_ends *ends, int32_t partition);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the consumer asks of its checkpoint, whose inside is checkpoint.h. All but the enum is nothing without one. */
#ifndef US_KAFKA_CONSUMER_CURSORS_H
#define US_KAFKA_CONSUMER_CURSORS_H
#ifndef UNSALT_ENABLE_CORE_API
#define UNSALT_ENABLE_CORE_API
#endif
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/core.h>

struct unsalt;
struct us_partition;

/* Whether the cursors of a partition's lane set are known; see checkpoint_load.c. */
enum us_load {
    US_LOAD_NONE,    /* known, or none are kept */
    US_LOAD_WAITING, /* the set isn't here whole */
    US_LOAD_LOADING  /* they are being read */
};

bool us_checkpoint_init(struct unsalt *u, char *errstr, size_t size);
void us_checkpoint_stop(struct unsalt *u); /* ends threads and handles: before the consumer's handle is destroyed */
void us_checkpoint_free(struct unsalt *u);
/* Before a subscription or an assignment: sees to it that the topic is there. */
rd_kafka_resp_err_t us_checkpoint_ready(struct unsalt *u);
/* __INVALID_ARG, said in the log, if the topic of checkpoints is in the list, or fits a pattern in it. */
rd_kafka_resp_err_t us_checkpoint_unread(const struct unsalt *u, const rd_kafka_topic_partition_list_t *list);
/* A partition that was just assigned waits for its cursors, if any are kept. */
void us_checkpoint_opened(const struct unsalt *u, struct us_partition *p);
/* Once a round: outcomes of commits, loads. True: something moved. */
bool us_checkpoint_round(struct unsalt *u, uint64_t now);
uint64_t us_checkpoint_deadline(const struct unsalt *u);
/* Reading of these was moved: what their sets' entries say is void. */
void us_checkpoint_void(struct unsalt *u, const rd_kafka_topic_partition_list_t *list);
/* A commit with cursors. timeout_ms as us_commit(). */
rd_kafka_resp_err_t us_checkpoint_commit(struct unsalt *u, int timeout_ms);
/* A commit that is under way: waits for its outcome so long, and no longer than a commit may take. */
void us_checkpoint_wait(struct unsalt *u, int timeout_ms);
/* The same at the end, when no round will begin the commit that was to follow it: that is made, too. */
void us_checkpoint_last(struct unsalt *u, int timeout_ms);
/* An automatic commit could not begin: when to try again; `otherwise` if that isn't so. */
uint64_t us_checkpoint_commit_again(struct unsalt *u, uint64_t now, uint64_t otherwise);
/* Notes what an entry said of a partition. False: out of memory: nothing is known then. */
bool us_partition_found(struct us_partition *p, int64_t frontier, const unsalt_core_range_t *ranges, uint32_t n);
#endif

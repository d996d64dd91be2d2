/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topics of a producer: over how many lanes their sessions are spread, and whether the cluster has them with N
 * partitions, which is asked once, before the first record. Bounded: above, the oldest without a setting is forgotten.
 */
#ifndef US_KAFKA_PRODUCER_TOPICS_H
#define US_KAFKA_PRODUCER_TOPICS_H
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/types.h>

#define US_TOPICS_MAX 65536

struct us_topic; /* one topic of a producer */
struct unsalt_producer;

struct us_topics {
    const struct unsalt_mem *mem;
    uint32_t max;
    pthread_rwlock_t lock;   /* of the table and its elements */
    struct us_topic *table;  /* uthash */
    pthread_mutex_t asking;  /* taken before `lock` */
    pthread_cond_t asked;    /* some answer is there */
};

void us_topics_init(struct us_topics *topics, const struct unsalt_mem *mem, uint32_t max);
void us_topics_destroy(struct us_topics *topics);

/* Returns false when out of memory, or when `max` topics have a setting. lanes >= 1. Any thread. */
bool us_topics_set_lanes(struct us_topics *topics, const char *topic, uint16_t lanes);

/* How the cluster is asked, by the producer or a test. Returns NO_ERROR if the topic may be used. */
typedef rd_kafka_resp_err_t(us_topic_ask)(void *opaque, const char *topic);
/*
 * May records go to this topic? Asks unless that is known: of several threads one asks, the others wait for its
 * answer. After a bad one nobody asks for a second. *lanes: what was set, or untouched. ask NULL: the topic is taken
 * for good. Returns NO_ERROR, what `ask` returned, or __CRIT_SYS_RESOURCE. Any thread, no lock held.
 */
rd_kafka_resp_err_t us_topics_use(struct us_topics *topics, const char *topic, us_topic_ask *ask, void *opaque,
                                  uint16_t *lanes);

/* ---- producer_check.c: asks the cluster; `opaque` is the producer. */
us_topic_ask us_topic_check;
#endif

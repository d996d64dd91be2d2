/* SPDX-License-Identifier: BSD-2-Clause */
/* The topic that the consumers are compared on, and configurations for it. One in a process. */
#ifndef BENCH_TOPIC_H
#define BENCH_TOPIC_H
#include <unsalt/unsalt.h>

_Noreturn void topic_fail(const char *why);
/* What is in the topic: 100 bytes a record, 8 partitions. */
enum traffic {
    TRAFFIC_ONE_HOT, /* a session over four lanes has half of the records, 1,000 cold ones on one lane the other half */
    TRAFFIC_ALL_HOT  /* 100 sessions, each over four lanes, in turns */
};
/* Creates the topic and fills it. */
void topic_open(enum traffic traffic, long records);
void topic_close(void);
rd_kafka_topic_partition_list_t *topic_partitions(void); /* from the beginning; the caller's */
rd_kafka_conf_t *topic_consumer_conf(void);
unsalt_conf_t *topic_unsalt_conf(void);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done on which librdkafka, and why: the one table (issue numbers of confluentinc/librdkafka). */
#ifndef US_KAFKA_VERSIONS_H
#define US_KAFKA_VERSIONS_H
#include <stdbool.h>
#include <stdint.h>

/*
 * X(field, first, end, issue, why): the field is true for versions first <= v < end; numbers as rd_kafka_version().
 * A batch before 2.1.0 loses records when another thread pauses or seeks (#4208): pause, resume and seek of the
 * consumer serialise with reading instead, so it needs no row. Resuming what isn't paused goes back before 2.4.0
 * (#4637): nobody needs to, so that is never done, on any version.
 */
#define US_VERSIONS(X) \
    X(batch_one, 0x020200ff, 0x020d02ff, 4844, "an end-of-partition event in a batch moves the position") \
    X(incremental_one, 1, 0x020100ff, 4208, "an incremental rebalance pauses what stays, perhaps amid a batch") \
    X(cooperative_loses, 0x010600ff, 0x020a00ff, 4059, "a commit that a rebalance overtakes loses all partitions") \
    X(protocol_early, 0x020400ff, 0x020c00ff, 5210, "group.protocol=consumer is a preview")

struct us_versions {
    bool batch_one;         /* read one message at a time */
    bool incremental_one;   /* the same once a group has an incremental protocol */
    bool cooperative_loses; /* warn of cooperative-sticky */
    bool protocol_early;    /* warn of group.protocol=consumer */
};
/* version as rd_kafka_version(). Any thread. */
struct us_versions us_versions(int version);
#endif

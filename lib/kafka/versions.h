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
#define US_VERSIONS(X)                                                                                                \
    X(batch_one, 0x020200ff, 0x020d02ff, 4844, "an end-of-partition event in a batch moves the position")

struct us_versions {
    bool batch_one; /* read one message at a time */
};
/* version as rd_kafka_version(). Any thread. */
struct us_versions us_versions(int version);
#endif

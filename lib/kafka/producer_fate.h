/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a record once librdkafka is through with it (DESIGN 11), as values in, values out.
 *
 * librdkafka (2.0.2 to 2.16 at least) acknowledges records of which it has no answer from the broker: when one request
 * of a partition fails and the next one, which was on its way too, succeeds, it concludes that the first has been
 * persisted. If the broker knew nothing of the producer in this partition, it takes the second without the first, and
 * the first is lost (confluentinc/confluent-kafka-go#921, confluentinc/librdkafka#4134). Such an acknowledgement has no
 * offset; it is taken for a failure after which the record may have been persisted: a copy does no harm.
 */
#ifndef US_KAFKA_PRODUCER_FATE_H
#define US_KAFKA_PRODUCER_FATE_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

enum us_fate {
    US_FATE_ACKED,  /* the broker has it */
    US_FATE_RESEND, /* to be sent again with the same number */
    US_FATE_MARK,   /* abandoned, and surely in no log: a gap marker follows */
    US_FATE_GIVE_UP /* abandoned, nothing is said */
};

/* One delivery report, and what was known before. */
struct us_attempt {
    rd_kafka_resp_err_t err;
    rd_kafka_msg_status_t status; /* of this attempt */
    bool unproven;                /* acknowledged, but not by an answer of the broker's: see above */
    bool maybe;                   /* an earlier attempt may have been persisted */
    bool numbered;                /* false: a record without a session; a second copy of it would pass for another */
    bool ended;                   /* the producer is being destroyed, or has a fatal error */
    bool purged;                  /* the application has purged since it was produced */
    bool transactional;           /* the transaction decides */
    uint64_t waited_ms;           /* since the first attempt failed */
    uint64_t limit_ms;            /* producer.resend.max.ms; 0 = never send again, INT64_MAX = for ever */
};

/* Any thread. */
enum us_fate us_fate(const struct us_attempt *attempt);
/* May any attempt, this one included, have been persisted although it was not acknowledged? */
bool us_fate_maybe(const struct us_attempt *attempt);
/* True for an error that the next attempt may not meet any more: time, network, leaders, quotas. */
bool us_fate_is_passing(rd_kafka_resp_err_t err);
#endif

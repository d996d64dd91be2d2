/* SPDX-License-Identifier: BSD-2-Clause */
/* What an error of librdkafka's transactional calls means for the commit that it happened in. */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_FATE_H
#define US_KAFKA_CHECKPOINT_TOPIC_FATE_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

enum us_checkpoint_next {
    US_CHECKPOINT_GO_ON,  /* no error */
    US_CHECKPOINT_AGAIN,  /* the same call again, and no other: it goes on where it was */
    US_CHECKPOINT_FENCED, /* the member or its producer has been replaced: abort */
    US_CHECKPOINT_ABORT   /* this transaction can't be committed: abort, a later one may be */
};

struct us_checkpoint_verdict {
    enum us_checkpoint_next next;
    bool dead; /* the producer is good for nothing any more, not even for an abort: destroy it */
};

/* NULL: no error. The error stays the caller's. Any thread. */
struct us_checkpoint_verdict us_checkpoint_fate(const rd_kafka_error_t *error);
#endif

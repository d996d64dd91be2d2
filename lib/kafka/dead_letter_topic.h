/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether there is a topic for dead letters is found out before anything is read, and not by the first one. */
#ifndef US_KAFKA_DEAD_LETTER_TOPIC_H
#define US_KAFKA_DEAD_LETTER_TOPIC_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>

struct us_dead_letter_topic {
    const rd_kafka_conf_t *conf; /* where the cluster is: of any client of the application's */
    const char *key, *name;      /* the setting that names the topic, and the topic */
    bool create;                 /* it is made if it isn't there */
    const char *create_key;      /* the setting that allows this; NULL: none does */
};

/*
 * Asks for 10 s at most, in which it blocks. All is borrowed.
 *   known     receives whether it is there for certain: if not, it may be asked for again.
 *   text      receives what is to be said, with the name of the setting; "": nothing. size > 0.
 * Returns NO_ERROR: it is there, or nobody said anything, which is no reason not to begin: `text` tells then; or
 * UNKNOWN_TOPIC_OR_PART, or as us_checkpoint_topic_ensure(). Any thread.
 */
rd_kafka_resp_err_t us_dead_letter_topic(const struct us_dead_letter_topic *topic, bool *known, char *text,
                                         size_t size);
#endif

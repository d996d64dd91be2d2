/* SPDX-License-Identifier: BSD-2-Clause */
/* What a dead letter says of itself, whoever stores it: docs/dead-letters.md, and UNSALT_DEAD_* in pipeline.h. */
#ifndef US_KAFKA_DEAD_LETTER_H
#define US_KAFKA_DEAD_LETTER_H
#include <librdkafka/rdkafka.h>
#include <stddef.h>
#include <stdint.h>

/* A record and why it is one. All borrowed. */
struct us_dead_letter {
    const rd_kafka_message_t *message;
    const char *reason, *phase, *error, *group;
    const char *state;   /* NULL: not known */
    uint64_t attempts;
    const void *session; /* NULL: none */
    size_t session_len;
    uint64_t seq, epoch; /* seq UNSALT_NO_SEQ: none, and no epoch */
    uint64_t cursor;     /* UNSALT_NO_SEQ: not known */
};

/* The headers of the record that stores it; the caller's. Any thread. */
rd_kafka_headers_t *us_dead_letter_headers(const struct us_dead_letter *letter);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways to read the topic of topic.h from its beginning to its end: librdkafka's own and unsalt's. All have the same
 * configuration of librdkafka, take the messages one by one or 1,000 at a time, and destroy each.
 */
#ifndef BENCH_READERS_H
#define BENCH_READERS_H
#include "report.h"
#include "topic.h"

enum reader {
    READER_POLL,          /* rd_kafka_consumer_poll() */
    READER_POLL_LOOK,     /* and the application reads the number of each record, where the form has it */
    READER_BATCH,         /* rd_kafka_consume_batch_queue() on the consumer's queue */
    READER_BATCH_LOOK,
    READER_SPLIT,         /* the same, each partition from its own queue, in turns */
    READER_SPLIT_LOOK,
    READER_ORDERED_POLL,  /* unsalt_consumer_poll() */
    READER_ORDERED_BATCH, /* unsalt_consume_batch() */
    READER_ORDERED_CALLBACK,
    READER_ORDERED_EXTRACT, /* unsalt_consume_batch(), and the number comes from the application's extract callback */
    READER__CNT
};

/* A word for a reader, and what it is; NULL out of range. */
const char *reader_word(enum reader reader);
const char *reader_text(enum reader reader);

/* Reads so many records of a form; adds wall and processor time per record, from the first record to the last. */
void reader_run(enum reader reader, enum form form, long records, struct bench_runs *runs);
#endif

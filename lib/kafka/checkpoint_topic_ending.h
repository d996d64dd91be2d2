/* SPDX-License-Identifier: BSD-2-Clause */
/* The writer inside: what its caller's side and its thread's side share. */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_ENDING_H
#define US_KAFKA_CHECKPOINT_TOPIC_ENDING_H
#include <kafka/checkpoint_topic_writer.h>
#include <pthread.h>

/*
 * NONE -> STARTING -> READY -> OPEN -> ENDING -> ENDED -> READY, or NONE when the producer had to go. The caller's
 * thread moves from NONE, READY, OPEN and ENDED, the other one from STARTING and ENDING: so whoever may move the
 * state owns everything below `state` at that time, and no lock is held during calls of librdkafka.
 */
enum us_writer_state {
    US_WRITER_NONE,     /* no producer */
    US_WRITER_STARTING, /* the thread makes one */
    US_WRITER_READY,    /* no transaction */
    US_WRITER_OPEN,     /* a transaction takes entries */
    US_WRITER_ENDING,   /* the thread ends it */
    US_WRITER_ENDED     /* the outcome is known and waits to be told */
};

struct us_checkpoint_writer {
    struct us_checkpoint_writer_settings settings;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;                  /* under the lock */
    enum us_writer_state state; /* under the lock */
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    uint64_t opened;    /* us_clock_ms() when the transaction was begun */
    uint64_t put_until; /* bound of put() */
    rd_kafka_resp_err_t put_err; /* the first entry that could not be enqueued */
    bool commit;                 /* what the thread shall do; false: abort */
    bool left;                   /* the last producer was left behind; there is no other yet */
    rd_kafka_topic_partition_list_t *offsets;
    rd_kafka_consumer_group_metadata_t *metadata;
    struct us_checkpoint_outcome outcome; /* of the start that failed, or of the transaction */
};

/* The thread's main function; its argument is the writer. */
void *us_writer_main(void *opaque);
/* Destroys the producer, if there is one; false: as us_handle_end(), and the next one fences it. Whoever owns it. */
bool us_writer_drop_producer(struct us_checkpoint_writer *writer);
/* Frees offsets and metadata. Whoever owns them. */
void us_writer_drop_offsets(struct us_checkpoint_writer *writer);
#endif

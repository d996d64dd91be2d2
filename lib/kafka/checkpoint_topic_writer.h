/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes checkpoints: each is one transaction of a producer of its own, with entries and the consumer's offsets, so
 * both become visible together or not at all, and only if the member is of the present generation (KIP-447).
 *
 *   open -> put, put, .. -> finish -> (resume)*          or          open -> put.. -> abandon
 *
 * A thread makes the producer, brings the entries into the log and ends the transaction: some of librdkafka's calls
 * take longer than their time while a broker is frozen. So every call here keeps its own time, and with a time of 0 a
 * commit goes on by itself while the caller does something else; `wake` says when its outcome is known.
 *
 * All functions: one thread at a time, the caller's.
 */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_WRITER_H
#define US_KAFKA_CHECKPOINT_TOPIC_WRITER_H
#include <kafka/checkpoint_topic_send.h>

struct us_checkpoint_writer;

#define US_CHECKPOINT_TRANSACTION_MS 10000 /* default of transaction_timeout_ms */

struct us_checkpoint_writer_settings {
    struct us_checkpoint_client client;
    const char *topic;            /* borrowed */
    const char *transactional_id; /* borrowed; no two members at a time may have the same */
    /*
     * transaction.timeout.ms, >= 1000. A dead member's open transaction keeps a new owner waiting for so long, and up
     * to another 10 s, since brokers look for such ones only so often
     * (transaction.abort.timed.out.transaction.cleanup.interval.ms); less if a producer with the same transactional.id
     * comes before. A commit that takes longer fails. Entries have as long to be delivered, requests half as long.
     */
    int transaction_timeout_ms;
    bool compress;              /* lz4 */
    void (*wake)(void *opaque); /* an outcome is known, or the producer is ready; by another thread; may be NULL */
    void *opaque;
};

enum us_checkpoint_result {
    US_CHECKPOINT_DONE,    /* committed; after open(): open; after abandon(): nothing was written */
    US_CHECKPOINT_REFUSED, /* a broker has fenced the member or its producer; aborted, nothing is visible */
    US_CHECKPOINT_FAILED,  /* nothing is visible, and the same may be tried again in a new transaction */
    US_CHECKPOINT_UNKNOWN  /* still under way: resume() until it is known; nothing else can be opened before */
};

struct us_checkpoint_outcome {
    enum us_checkpoint_result result;
    /*
     * With FAILED: the producer died after it had asked for the commit, so it may have been done all the same.
     * Committing the same or later entries and offsets again is harmless and settles it; rd_kafka_committed() tells.
     */
    bool maybe;
    rd_kafka_resp_err_t err; /* 0 with DONE */
    char text[512];          /* a sentence; "" with DONE */
};

/* Makes a writer; talks to nobody. NULL: out of memory. *settings is copied. */
struct us_checkpoint_writer *us_checkpoint_writer_new(const struct us_checkpoint_writer_settings *settings);

/*
 * NULL is allowed. A transaction that is open, or whose end is under way, is left to the brokers: whoever wants to know
 * its outcome calls resume() before. While the group's coordinator is away it takes as long as offsets are sent: up to
 * transaction_timeout_ms and US_OFFSETS_LEAVE_MS.
 * @return false: its producer isn't gone, as us_handle_end(), or the last one was left behind, as us_offsets_send()
 */
bool us_checkpoint_writer_destroy(struct us_checkpoint_writer *writer);

/*
 * Starts a producer in the background if there is none: rd_kafka_init_transactions() fences earlier ones of the same
 * transactional.id, and ends their open transactions. Without effect otherwise.
 */
void us_checkpoint_writer_prepare(struct us_checkpoint_writer *writer);

/*
 * Opens a transaction; prepares, and waits up to timeout_ms for the producer to be ready.
 * @return DONE; FAILED: no producer within the time (it goes on in the background), or it can't be had (err, text);
 *   UNKNOWN: an earlier commit is under way still; REFUSED: the producer was fenced while it was made
 */
enum us_checkpoint_result us_checkpoint_writer_open(struct us_checkpoint_writer *writer, int timeout_ms,
                                                    struct us_checkpoint_outcome *outcome);

/*
 * An entry into the open transaction; see us_checkpoint_put(). Allocates nothing but librdkafka's copy. Waits at most
 * until timeout_ms after open() while librdkafka's queue is full. What fails here makes finish() fail.
 */
rd_kafka_resp_err_t us_checkpoint_writer_put(struct us_checkpoint_writer *writer,
                                             const struct us_checkpoint_record *entry);

/*
 * Ends the open transaction with these offsets, and waits up to timeout_ms (0: not at all) for the outcome. Without
 * entries, without offsets, or without both is allowed; without offsets the broker fences no old generation.
 *
 * @param offsets   owned by the writer from here on, whatever the result; NULL or empty: none
 * @param metadata  likewise; of the consumer whose offsets they are (rd_kafka_consumer_group_metadata()), taken when
 *   the entries are: a later one would pass off old entries as a new generation's. NULL only without offsets.
 */
enum us_checkpoint_result us_checkpoint_writer_finish(struct us_checkpoint_writer *writer,
                                                      rd_kafka_topic_partition_list_t *offsets,
                                                      rd_kafka_consumer_group_metadata_t *metadata, int timeout_ms,
                                                      struct us_checkpoint_outcome *outcome);

/*
 * Waits for the outcome of what finish() or abandon() left UNKNOWN. Told once; later: FAILED with __STATE. If the
 * producer was left behind (us_offsets_send()), it is FAILED with __TIMED_OUT, and prepare() is called, so that what
 * was begun is over soon.
 */
enum us_checkpoint_result us_checkpoint_writer_resume(struct us_checkpoint_writer *writer, int timeout_ms,
                                                      struct us_checkpoint_outcome *outcome);

/* Aborts the open transaction. The result is that of a finish() that failed on purpose: DONE when it is aborted. */
enum us_checkpoint_result us_checkpoint_writer_abandon(struct us_checkpoint_writer *writer, int timeout_ms,
                                                       struct us_checkpoint_outcome *outcome);

/* Whether an outcome is under way, and resume() would have to wait for it. */
bool us_checkpoint_writer_busy(struct us_checkpoint_writer *writer);
#endif

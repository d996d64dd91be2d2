/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads partitions of the topic of checkpoints from their beginning to where their logs ended after begin(), committed
 * entries only. It sleeps never: the caller steps while there is more, then waits to be woken.
 *
 * The end is the high watermark (asked for with read_uncommitted), so that a transaction which is still open is seen:
 * the broker hands out nothing behind its first record, and reading waits until its owner or its coordinator has
 * ended it. It is asked for again each second while a partition is read, and the lowest answer counts, so a log that
 * was cut off by an unclean election completes too. Completeness goes by positions that librdkafka has reached (also by
 * its end-of-partition event), never by counting: compaction, aborted entries and markers of transactions leave holes.
 *
 * Speed: batches of up to 1,024 entries a call of librdkafka, answers of up to 8 MiB a partition.
 */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_READER_H
#define US_KAFKA_CHECKPOINT_TOPIC_READER_H
#include <kafka/checkpoint_topic.h>

struct us_checkpoint_reader;

struct us_checkpoint_record {
    int32_t partition;
    const void *key; /* NULL: it has none */
    size_t key_len;
    const void *value; /* NULL: a tombstone */
    size_t value_len;
    int64_t offset;
};

struct us_checkpoint_reader_settings {
    struct us_checkpoint_client client;
    const char *topic;  /* borrowed */
    int32_t partitions; /* of the topic, >= 1 */
    /*
     * An entry, in the order of its partition; borrowed for the call. With several entries of one key the last counts.
     * Entries behind the end that was asked for may come too. Called within step(), as is `complete`; neither may call
     * the reader, except for us_checkpoint_reader_progress().
     */
    void (*entry)(void *opaque, const struct us_checkpoint_record *entry);
    /* All of a partition was handed out. It isn't being read any more. */
    void (*complete)(void *opaque, int32_t partition);
    /* There may be something to step for. Called by other threads, at any time until destroy() returns. */
    void (*wake)(void *opaque);
    void *opaque;
};

enum us_checkpoint_wait {
    US_CHECKPOINT_IDLE,       /* not begun, or cancelled */
    US_CHECKPOINT_ENTRIES,    /* entries are on their way */
    US_CHECKPOINT_END,        /* the leader hasn't said where the log ends yet */
    US_CHECKPOINT_TRANSACTION, /* all that is visible was read; behind it stands a transaction without an end */
    US_CHECKPOINT_COMPLETE
};

struct us_checkpoint_progress {
    enum us_checkpoint_wait wait;
    uint64_t entries, bytes;  /* handed out since begin(); bytes of keys and values */
    int64_t position;         /* next offset to be read; 0 before anything was */
    int64_t end;              /* -1: not known yet */
    int64_t remaining;        /* offsets up to the end, an upper bound of entries; -1: not known yet */
    rd_kafka_resp_err_t err;  /* why the leader doesn't answer; 0: the last thing it did was to answer */
};

/* Makes a reader; talks to nobody. NULL: out of memory. *settings is copied. All functions: one thread at a time. */
struct us_checkpoint_reader *us_checkpoint_reader_new(const struct us_checkpoint_reader_settings *settings);

/*
 * NULL is allowed. Ends its thread and its handles; takes as long as an answer that is waited for, <= 1 s or so.
 * @return false: one of its handles isn't gone, as us_handle_end()
 */
bool us_checkpoint_reader_destroy(struct us_checkpoint_reader *reader);

/*
 * Begins to read partitions; one that is being read, or was read, begins anew. The first call makes handles and a
 * thread. Doesn't wait for anybody.
 * @return 0; __INVALID_ARG: no such partition; __CRIT_SYS_RESOURCE, __FAIL: no thread, no handle. On failure nothing
 *   has begun that hadn't before; those of the list that were being read are cancelled.
 */
rd_kafka_resp_err_t us_checkpoint_reader_begin(struct us_checkpoint_reader *reader, const int32_t *partitions,
                                               uint32_t n, char *errstr, size_t errstr_size);

/* Stops reading a partition; nothing of it is handed out any more. One that isn't being read: no effect. */
void us_checkpoint_reader_cancel(struct us_checkpoint_reader *reader, int32_t partition);

/*
 * Hands out what has arrived: at most max_entries (>= 1, in steps of up to 1,024), and none after max_ms have passed.
 * Never waits. Calls `complete` for partitions that are.
 * @return whether there may be more at once; false: `wake` comes when there is
 */
bool us_checkpoint_reader_step(struct us_checkpoint_reader *reader, uint32_t max_entries, uint32_t max_ms);

/* Number of partitions that are being read. */
uint32_t us_checkpoint_reader_loading(const struct us_checkpoint_reader *reader);

/* What is known of a partition. 0 <= partition < partitions. */
void us_checkpoint_reader_progress(const struct us_checkpoint_reader *reader, int32_t partition,
                                   struct us_checkpoint_progress *progress);
#endif

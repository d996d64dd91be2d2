/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints of a consumer: cursors of sessions beside the offsets. The core says what they are (unsalt/core.h), the
 * codec how they look as bytes, the topic of checkpoints keeps them (checkpoint_topic.h), or the application does.
 *
 *   checkpoint.c              birth and death, what the configuration says
 *   checkpoint_load.c         a lane set has come here whole: its cursors are read before its records
 *   checkpoint_entry.c        one entry that was read
 *   checkpoint_collect.c      what a commit carries
 *   checkpoint_commit.c       commits, each one transaction of a producer of ours
 *   checkpoint_callback.c     commits and loads by the application's callbacks
 *   checkpoint_transaction.c  the application's own transactions, and going back to the last commit
 *
 * Entries of a lane set carry its era. When cursors and committed offsets don't fit together (somebody has reset the
 * offsets) or reading was moved by a seek, what older entries say is void: the set goes on in the next era, and older
 * entries are passed over for ever.
 *
 * Everything here belongs to the thread that is in a call.
 */
#ifndef US_KAFKA_CHECKPOINT_H
#define US_KAFKA_CHECKPOINT_H
#include <codec/checkpoint.h>
#include <kafka/checkpoint_topic_writer.h>
#include <kafka/consumer.h>
#include <unsalt/checkpoint.h>

/* A lane set whose cursors are being read. */
struct us_load_set {
    uint32_t set;
    int32_t partition; /* of the topic of checkpoints */
    uint32_t era;      /* the highest that was seen */
    uint64_t entries;  /* cursors that were taken */
    uint64_t refused;
    uint64_t began;
    uint64_t ask_at;   /* checkpoint=callback: not before */
    bool moving;       /* checkpoint=callback: everything was taken, but reading could not be moved to it yet */
};

struct us_checkpoint {
    rd_kafka_conf_t *conf; /* owned: the application's, as it was */
    char *bootstrap;       /* owned: of a mock cluster inside the handle; NULL: as in conf */
    char *topic;           /* owned */
    char *transactional_id; /* owned */
    bool ensured;           /* the topic was seen */
    struct us_checkpoint_reader *reader;
    struct us_checkpoint_writer *writer;

    struct us_load_set *loads; /* owned */
    uint32_t load_count, load_capacity;
    uint64_t retry_at; /* when loads are begun again; UNSALT_NEVER: nothing failed */
    uint64_t tell_at;  /* when the next progress is told */
    int ask_ms;        /* how long the last question for committed offsets had, if it failed; else 0 */

    rd_kafka_topic_partition_list_t *under_way; /* owned: offsets of a commit whose outcome isn't known; NULL: none */
    bool follows; /* the application asked for another, asynchronously, while that one was under way */
    uint64_t close_by;                          /* us_clock_ms(): bound of all waits of a close; 0 = none yet */
    bool soon;                                  /* the last automatic commit could not begin: it is tried again soon */
    uint64_t received, unacked;                 /* of the core, when a commit was last taken */

    unsalt_core_range_t *ranges; /* owned, for one entry at a time */
    uint32_t range_capacity;
    uint8_t key[UNSALT_CHECKPOINT_KEY_MAX];
    uint8_t *value; /* owned */
    size_t value_size;
};

/* ---- checkpoint.c (what consumer.h doesn't declare) */

/* Of a lane set, where its entries stand; -1: nowhere, the partition lies beyond the configured N. */
int32_t us_checkpoint_partition_of(const struct unsalt *u, uint32_t set);
const char *us_checkpoint_base(const struct unsalt *u, uint32_t set);
/* Room for so many ranges, for a value of so many bytes. False: out of memory. */
bool us_checkpoint_ranges_reserve(struct us_checkpoint *c, uint32_t n);
bool us_checkpoint_value_reserve(struct us_checkpoint *c, size_t size);
void us_checkpoint_event(struct unsalt *u, unsalt_event_type_t type, const char *topic, int32_t partition,
                         uint64_t count, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* ---- checkpoint_load.c */

/* The load that takes entries of a partition of the topic and a base topic; NULL: none. */
struct us_load_set *us_load_of(const struct unsalt *u, int32_t partition, const char *base, size_t base_len);
/* Everything of a load was read. It ends, unless reading can't be moved to where it says: then that is tried again. */
void us_load_done(struct unsalt *u, struct us_load_set *load);
/* What was restored for a load is void. */
void us_load_void(struct unsalt *u, struct us_load_set *load);
/*
 * Sets that have lost a part: what stays of them is given up in the core, too, and its tokens are void, since no commit
 * from here will cover them any more.
 */
void us_load_leave(struct unsalt *u);
/*
 * All partitions of the sets that are read must be read again from the last commit; the caller has opened them anew in
 * the core. A load that goes on goes on: it began at the last commit. With checkpoint=callback it begins anew, since
 * what it was told may be of the application's transaction that is rolled back.
 */
void us_load_again(struct unsalt *u);

/* ---- checkpoint_entry.c */

/*
 * Takes an entry that was read; its offset is -1 if it isn't out of a topic. 0; __INVALID_ARG: refused, with an event;
 * __CRIT_SYS_RESOURCE: out of memory.
 */
rd_kafka_resp_err_t us_checkpoint_enter(struct unsalt *u, const struct us_checkpoint_record *record);

/* ---- checkpoint_collect.c */

struct us_checkpoint_sink {
    rd_kafka_resp_err_t (*put)(void *opaque, const struct us_checkpoint_record *record);
    void *opaque;
};

/* Has anything changed since a commit was last taken? */
bool us_checkpoint_anything(struct unsalt *u);
/*
 * Puts everything that has changed into the sink, and the offsets into *offsets (the caller's; NULL on failure). The
 * core's cursors are taken then, until us_checkpoint_settle().
 */
rd_kafka_resp_err_t us_checkpoint_collect(struct unsalt *u, const struct us_checkpoint_sink *sink,
                                          rd_kafka_topic_partition_list_t **offsets);
/* What was collected went nowhere; nobody is told. */
void us_checkpoint_undo(struct unsalt *u, const rd_kafka_topic_partition_list_t *offsets);
/* What became of what was collected. */
void us_checkpoint_settle(struct unsalt *u, rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *offsets);

/* ---- checkpoint_commit.c */

/* Hears of the outcome of a commit that is under way, and begins the one that follows it. */
void us_checkpoint_commit_round(struct unsalt *u, uint64_t now);

/* ---- checkpoint_callback.c */

rd_kafka_resp_err_t us_callback_commit(struct unsalt *u);
/* Asks the application for a load. False: it has none to give now. */
bool us_callback_load(struct unsalt *u, struct us_load_set *load);
#endif

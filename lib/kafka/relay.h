/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of a relay share. A batch is either relayed as a whole or given up as a whole:
 *
 *   relay_conf.c     what is forced on the application's configurations, and what is refused
 *   relay_step.c     which batch is read, worked on and committed when
 *   relay_read.c     takes records into a batch
 *   relay_work.c     transforms them, on the threads of relay_pool.c
 *   relay_write.c    where results go, and what goes out; relay_header.c decides on lane and header
 *   relay_dead.c     dead letters
 *   relay_told.c     events about records
 *   relay_commit.c   the transaction, and a new producer if one is done for
 *   relay_rewind.c   what was given up comes again
 *   relay_group.c    what comes and goes by rebalances, and whether this member may commit
 *
 * Up to three batches are in hand, one behind the other in every partition of the input: one is committed, one is at
 * work in the pool, one is read. The thread that polls reads and commits in turns, so it never does both; the pool
 * works while it does either. What follows from that, and what the rest relies on:
 *
 * * librdkafka calls back for a rebalance only while a record is read. So partitions never go while a transaction is
 *   under way, as far as this member knows. What it doesn't know, the group's coordinator does.
 * * A revoke leaves nothing in hand. The batch at work is finished and committed before the revoke is answered, for the
 *   partitions are this member's until then, or is given up if they are lost; what was read behind it is given up. So
 *   whatever is in hand was read in the assignment that this member has, and no batch outlives its partitions.
 * * A batch that is given up takes all behind it along. So what is committed is, of each partition, a beginning of what
 *   was read, without holes, and reading begins anew where the group's offset is; nothing is read before that.
 */
#ifndef US_KAFKA_RELAY_H
#define US_KAFKA_RELAY_H
#include <core/pipeline.h>
#include <kafka/extract.h>
#include <kafka/producer_lanes.h>
#include <kafka/relay_header.h>
#include <kafka/relay_pool.h>
#include <unsalt/relay.h>

/* One record of a batch. */
struct us_relay_item {
    rd_kafka_message_t *message; /* owned */
    unsalt_core_in_t in;         /* what it is; `session` lives as long as the item */
    char *session;               /* owned: a copy, if it stands neither in key nor payload; else NULL */
    const char *fault;           /* of a malformed one, static storage */
    unsalt_relay_out_t out;      /* payload and headers are owned if res is DONE and the callback has set them */
    unsalt_relay_res_t res;
    unsigned attempts; /* calls of the callback */
    char *error;       /* owned: what the last one that failed has said; NULL: nothing, or no memory for it */
    bool cut; /* FAILED, but not for good: another one has, and the batch is given up */
};

struct us_relay_batch {
    struct us_relay_item *items; /* owned */
    uint32_t count, capacity;
    uint64_t bytes;
    uint64_t until; /* ms of us_clock_ms(): it waits for no more records then, if it could be worked on */
};

/* Counted as they happen, and read by any thread. */
#define US_RELAY_COUNTERS(X)                                                                                           \
    X(received) X(batches) X(aborts) X(relayed) X(dropped) X(markers) X(unsequenced) X(malformed) X(heartbeats)        \
    X(relaned) X(retries) X(failed) X(producers)

struct us_relay_counters {
#define X(name) atomic_uint_fast64_t name;
    US_RELAY_COUNTERS(X)
#undef X
};

/* What a batch would add to the counters once it is committed. */
struct us_relay_sums {
    uint64_t relayed, dropped, markers, unsequenced, heartbeats, relaned;
};

struct unsalt_relay {
    rd_kafka_t *consumer, *producer; /* producer NULL: a new one is needed */
    rd_kafka_conf_t *writes;         /* owned: what a producer is made of */
    struct unsalt_conf *input, *result; /* owned */
    struct us_conf_lanes input_lanes, result_lanes;
    struct us_extractor extractor;
    struct us_lane_map map;          /* of the result */
    int32_t *probed;                 /* owned: room for the lanes of a session in layout hash */
    struct us_relay_pool pool;
    struct us_relay_batch batches[3];
    /* Each one of them: what is being done with it, if it has records. `worked` is the pool's until that is done. */
    struct us_relay_batch *committed, *worked, *read;
    struct us_relay_sums sums;       /* of `committed` */
    size_t relayed;                  /* records of the input that transactions of the present call cover */
    rd_kafka_error_t *error;         /* owned: the next call's answer */
    rd_kafka_queue_t *queue;         /* owned: the consumer's, at which the thread that polls waits */
    rd_kafka_topic_partition_list_t *behind; /* what must be read again before anything else is; NULL: nothing */
    bool ending;                     /* it is being destroyed: nothing of what is assigned will be read */
    bool subscribed;                 /* it is, or was, a member of the group */
    uint64_t nobody_at;              /* when a commit first found no member of the group here, in ms; 0: it is one */
    rd_kafka_topic_partition_list_t *rejoin; /* owned: topics it has left to subscribe to them anew; NULL: none */
    bool letters_ready;              /* the topic of dead letters was there */
    bool initialised;                /* the producer has initialised its transactions */
    atomic_uint_fast64_t random;     /* of the next back-off's jitter */
    atomic_bool busy;                /* a thread is in a call */
    struct us_relay_counters counters;
};

/* Writes a log line to the log callback, or to stderr. printf-like. */
void us_relay_log(const struct unsalt_relay *r, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Destroys a handle, which may be left behind: as us_handle_end(), and logged. Nobody's messages may be in it. */
void us_relay_end_handle(const struct unsalt_relay *r, rd_kafka_t *rk, const char *what);
/* Destroys what the batch owns. */
void us_relay_drop_batch(struct us_relay_batch *batch);

/* ---- relay_conf.c. Each returns false with errstr. */

bool us_relay_check(const struct unsalt_conf *input, const struct unsalt_conf *result, char *errstr, size_t size);
bool us_relay_reads(rd_kafka_conf_t *reads, char *errstr, size_t size);
/* Sets a transactional.id if there is none. */
bool us_relay_writes(rd_kafka_conf_t *writes, const rd_kafka_conf_t *reads, const struct unsalt_conf *input,
                     char *errstr, size_t size);

/* ---- relay_step.c */

/*
 * Relays until a transaction is over, or nothing has come until us_clock_ms(). NULL or an error; sets `relayed` and,
 * with both, `error`.
 */
rd_kafka_error_t *us_relay_step(struct unsalt_relay *r, uint64_t until);
/* Partitions go: finishes the batch at work, unless they are lost, and gives up all that is in hand then. */
void us_relay_part(struct unsalt_relay *r, bool lost);
/* Gives up the batch at work, which is stopped, and the one that is read: they are noted to be read again. */
void us_relay_abandon(struct unsalt_relay *r);

/* ---- relay_read.c */

/* No more records fit in, or there is no memory for more. False as long as there are none. */
bool us_relay_is_full(struct unsalt_relay *r);
/*
 * Reads one record, waiting so long for it, and serves rebalances. NULL, or what the consumer said: nothing in hand is
 * touched by that; or __CRIT_SYS_RESOURCE: the record can't be taken; if it was read, all in hand is given up.
 */
rd_kafka_error_t *us_relay_read(struct unsalt_relay *r, int timeout_ms);

/* ---- relay_work.c */

us_relay_work us_relay_transform; /* opaque: the relay */
/* What a callback is told of the item, without room for an error text. */
unsalt_relay_info_t us_relay_info(const struct us_relay_item *item);
/* Why the item has failed for good, never NULL. */
const char *us_relay_error(const struct us_relay_item *item);

/* ---- relay_write.c */

/* Enqueues all that goes out for `committed`, and sums it up. Waits while the queue is full, until us_clock_ms(). */
rd_kafka_resp_err_t us_relay_write(struct unsalt_relay *r, uint64_t until);

/* ---- relay_dead.c */

/* Before a subscription: 0, or as us_dead_letter_topic(), and logged, if letters go to a topic that isn't there. */
rd_kafka_resp_err_t us_relay_letters_ready(struct unsalt_relay *r);
/* Stores the item as a dead letter, for a topic in the present transaction. Waits as us_relay_write(). */
rd_kafka_resp_err_t us_relay_bury(struct unsalt_relay *r, const struct us_relay_item *item, uint64_t until);

/* ---- relay_told.c */

/* That the item's sequence or session can't be used; as often as it is read. */
void us_relay_tell_malformed(struct unsalt_relay *r, const struct us_relay_item *item);
/* Of a batch that is committed: which records failed for good, and have a marker or nothing instead of a result. */
void us_relay_tell_failed(struct unsalt_relay *r, const struct us_relay_batch *batch);

/* ---- relay_commit.c */

/* Makes one. NULL, or __FATAL. */
rd_kafka_error_t *us_relay_make_producer(struct unsalt_relay *r);
/* Makes sure that there is a producer with initialised transactions. NULL or an error; __FATAL: there will be none. */
rd_kafka_error_t *us_relay_ready(struct unsalt_relay *r);
/*
 * Writes `committed` in one transaction. *done: it is committed. Else it is aborted, or its producer is gone, or left
 * behind, and the next one ends it. NULL: as its partitions went.
 */
rd_kafka_error_t *us_relay_commit(struct unsalt_relay *r, bool *done);
/* Destroys the producer and whatever it has under way. */
void us_relay_end_producer(struct unsalt_relay *r);

/* ---- relay_rewind.c */

/* The batch will not be relayed: what it has of assigned partitions is noted to be read again. First those in front. */
void us_relay_give_up(struct unsalt_relay *r, const struct us_relay_batch *batch);
/* Is there anything to be read again, before anything else is? */
bool us_relay_is_behind(const struct unsalt_relay *r);
/* Goes back to what the group has committed. NULL, or an error: nothing may be read before it succeeds. */
rd_kafka_error_t *us_relay_rewind(struct unsalt_relay *r);
/*
 * Says where to begin with partitions that are given: where the group's offset is, once no transaction has another one
 * under way, or at the beginning if there is none. librdkafka asks if it isn't told, but takes the answer that an
 * offset isn't stable for the one that there is none, if it comes after another rebalance (up to 2.16.1 at least:
 * rd_kafka_assignment_apply_offsets() puts the partition back without a wish to ask again). What isn't known in time
 * is noted to be read again, so that nothing is read before it is known. Waits for the end of a transaction of a member
 * that died, but not beyond us_relay_limited(): meanwhile no rebalance is answered.
 */
void us_relay_place(struct unsalt_relay *r, rd_kafka_topic_partition_list_t *list);
/* These partitions are gone; NULL: all. */
void us_relay_forget(struct unsalt_relay *r, const rd_kafka_topic_partition_list_t *gone);

/* ---- relay_group.c */

/* Takes and gives up partitions. For rd_kafka_conf_set_rebalance_cb(). */
void us_relay_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t why, rd_kafka_topic_partition_list_t *list, void *opaque);
/* The relay that this thread polls or destroys, to which its rebalances come. Returns the one before, NULL: none. */
struct unsalt_relay *us_relay_polls(struct unsalt_relay *r);
/*
 * With what offsets are sent to a transaction, owned by the caller: of the generation in which all in hand was read.
 * NULL: this member has lost its partitions, as far as librdkafka knows, or is none of the group any more.
 */
rd_kafka_consumer_group_metadata_t *us_relay_metadata(struct unsalt_relay *r);
/* If us_relay_metadata() has found for a while that this is no member of the group, subscribes anew. */
void us_relay_join_anew(struct unsalt_relay *r);
void us_relay_forget_join(struct unsalt_relay *r); /* nothing is to be subscribed to anew */
/*
 * How long one question in a call may be waited for, in ms: so long as is asked for, and a third of
 * max.poll.interval.ms at most, since a call may have two to ask, and one more in a rebalance.
 */
uint64_t us_relay_limited(const struct unsalt_relay *r, uint64_t ms);
#endif

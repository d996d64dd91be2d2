/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer inside. The core decides; this layer translates between it and librdkafka. One file per concern:
 *
 *   consumer.c             new and destroy, the guard against a second thread, subscribe
 *   consumer_conf.c        what is forced on the rd_kafka_conf_t, and put back
 *   consumer_registry.c    rd_kafka_t -> unsalt_t for callbacks, whose opaque stays the application's
 *   consumer_wake.c        sleeping and being woken
 *   consumer_poll.c        the one loop that poll, batch and callback share
 *   consumer_read.c        queues of partitions -> core -> hand-out buffer
 *   consumer_ring.c        the hand-out buffer
 *   consumer_partitions.c  the table of partitions, lane sets
 *   consumer_colocation.c  whether lane sets are complete
 *   consumer_start.c       where reading begins
 *   consumer_leave.c       what becomes of ready records whose partition goes
 *   consumer_assign.c      opening and closing partitions in the core and in librdkafka
 *   consumer_rebalance.c   librdkafka's rebalance callback, and revokes that span several polls
 *   consumer_pause.c       pause, resume, seek
 *   consumer_ack.c         acknowledgements from any thread
 *   consumer_commit.c      commits of the frontier
 *   consumer_horizon.c     asking leaders for the ends of their logs
 *   consumer_events.c      events of the core -> events of the application, log
 *   consumer_text.c        the line of an event
 *   consumer_info.c        what is known of a message
 *   consumer_stats.c       statistics
 *   consumer_gaps.c        giving up gaps at the application's word
 *   consumer_close.c       close, and the watchdog of destroy
 *
 * All state belongs to the thread that is in a call (the guard sees to it), except where a lock or an atomic is named.
 */
#ifndef US_KAFKA_CONSUMER_H
#define US_KAFKA_CONSUMER_H
#include <kafka/clock.h>
#include <kafka/conf.h>
#include <kafka/extract.h>
#include <kafka/versions.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unsalt/consumer.h>
#include <unsalt/stats.h>

#define US_MS UINT64_C(1000000)
#define US_CHUNK 256            /* records that are extracted and pushed at a time */
#define US_RING_SLACK 64        /* slots of the hand-out buffer that only messages outside the ledger may take */
#define US_START_WAIT_MS 3000   /* bound of the search for start positions at an assignment */
#define US_COMMIT_WAIT_MS 10000 /* bound of the synchronous commit at revoke and close */
#define US_NO_PART UINT32_MAX   /* `part` of a message outside the ledger: an error or an end of partition */

/* ---- partitions */

/* A partition that was ever assigned; lives until the consumer is destroyed, since its queue keeps a pointer to it. */
struct us_partition {
    struct unsalt *u;
    char *topic; /* owned */
    int32_t partition;
    rd_kafka_queue_t *queue; /* owned; not forwarded. NULL after close */
    atomic_bool ready;       /* the queue may hold something: set by any thread */
    bool assigned;           /* open in the core */
    bool revoking;           /* its revoke waits for acknowledgements */
    bool paused;             /* by the application */
    bool leaving;            /* the call under way takes it away */
    uint32_t part;           /* index in the core, while assigned */
    uint32_t generation;     /* of the core, while assigned */
    uint32_t set;            /* lane set */
    uint32_t live;           /* partitions that its topic had when a group gave it; 0 = not asked */
    int32_t lane;            /* -1 any */
    rd_kafka_message_t **pending; /* owned: read, not taken by the core yet: pending_first.. */
    uint32_t pending_first, pending_count, pending_capacity;
    uint32_t told; /* of how many pending ones the faults were told */
    int64_t start, log_start; /* -1 unknown */
    int64_t committed;        /* what the last commit asked for; -1 none, or it failed */
    int64_t last_read;        /* offset of the newest record that the core took; -1 none */
    int64_t last_time;        /* greatest timestamp of a record that the core took, in ms; -1 none */
    uint64_t empty_in;        /* the round in which it was found empty */
    int64_t back_to;          /* the log went back to this offset; -1 = it didn't */
    uint64_t turn;            /* number of its last batch; 0 = none yet */
    uint32_t question_failures; /* in a row */
    bool question_single;       /* the last question got no answer: the next is not asked together with others */
    uint64_t answer_at;         /* when the failure of a question is told to the core; UNSALT_NEVER = none */
    uint64_t complain_at;       /* no event HORIZON_FAILED before */
};

/* ---- the hand-out buffer */

struct us_ring {
    unsalt_core_out_t *slots; /* owned; capacity is a power of two */
    uint32_t capacity, first, count;
    uint32_t orphans; /* of the buffered: their generation is over, but they are handed out */
    uint64_t ready[UNSALT_STATE__CNT];   /* how many of the buffered will be handed out as what */
    uint64_t revoked[UNSALT_STATE__CNT]; /* dropped from the buffer at a revoke, by what they would have been */
};

/* ---- acknowledgements */

struct us_handed {
    uint64_t ticket;
    int64_t offset;
    uint32_t part; /* US_NO_PART: free */
    uint32_t generation;
};
struct us_ack_part {
    uint64_t top;         /* highest ticket handed out in this generation + 1 */
    uint32_t generation;  /* 0 = not assigned */
    uint32_t outstanding; /* handed out and not acknowledged */
};
/* ack=manual keeps every record that is in the application's hands; ack=auto keeps only the generations. */
struct us_acks {
    pthread_mutex_t lock;     /* guards everything below */
    struct us_handed *table;  /* open addressing, capacity a power of two */
    uint32_t capacity, count; /* at most half full */
    unsalt_token_t *queue;    /* acknowledged, not told to the core yet; room for every record in the table */
    uint32_t queue_count, queue_capacity;
    struct us_ack_part *parts; /* by index of the core */
    uint32_t parts_count;
    atomic_bool waited_for; /* the consumer sleeps until acknowledgements come */
};

/* ---- questions to leaders */

struct us_question {
    const char *topic; /* borrowed from the partition */
    int32_t partition;
    uint32_t part, generation;
    int64_t end; /* the answer; -1 failed */
    rd_kafka_resp_err_t err;
    bool single; /* it failed before: not to be asked together with others */
    bool passed; /* it wasn't asked by itself: another one of its leader failed, or others took the time */
    int32_t leader; /* -1 unknown */
};
struct us_asker {
    rd_kafka_conf_t *conf; /* owned until the handle is made */
    rd_kafka_t *handle;    /* made by the thread at the first question */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;
    struct us_question *asked, *answered; /* owned; `capacity` each */
    uint32_t asked_count, answered_count;
    uint32_t under_way, capacity; /* asked and not taken back yet: never above capacity */
    bool stop;
};

/* ---- the rest */

/* What stood in the application's rd_kafka_conf_t before it was changed. */
struct us_before {
    char eof[8], store[8], commit[8], reset[32];
    bool reset_set; /* the application has set topic-level properties, so reset is its choice */
    void (*rebalance_cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void (*commit_cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void (*log_cb)(const rd_kafka_t *, int, const char *, const char *);
    void *opaque;
    bool eof_wanted, commit_wanted;
    int64_t commit_interval_ms, max_poll_ms;
    int log_level;
};

struct us_log_limit {
    uint64_t window; /* start of the current second */
    uint32_t written, suppressed;
};

/*
 * What hand-outs from the buffer have changed since the statistics were copied, without a lock: one thread writes. A
 * reader may see one hand-out's figures in part, but every record is taken out of `ready` by the same number that puts
 * it elsewhere, so the ledger sums up at any moment.
 */
struct us_tally {
    _Atomic uint64_t handed[UNSALT_STATE__CNT];
    _Atomic uint64_t acked; /* by ack=auto */
    _Atomic uint64_t polls; /* these three since the beginning */
    _Atomic uint64_t wait_count[UNSALT_WAIT_BUCKETS];
    _Atomic uint64_t wait_sum_ns;
};

/* A revoke that waits for acknowledgements. */
struct us_revoke {
    bool active;
    uint64_t until;
    rd_kafka_topic_partition_list_t *partitions; /* owned */
};

/* Session ids of messages that were asked about: valid until the next call. */
struct us_info_text {
    struct us_info_text *next;
    char bytes[];
};

struct unsalt {
    struct unsalt_conf *conf; /* owned */
    rd_kafka_t *rk;           /* owned */
    rd_kafka_queue_t *main_queue;
    struct us_before before;
    struct us_versions versions;
    struct us_conf_lanes lanes;
    struct us_extractor extractor, info_extractor;
    unsalt_core_t *core;
    struct unsalt *next_registered;

    atomic_bool busy;      /* a thread is in a call */
    atomic_bool woken;     /* unsalt_wakeup() */
    atomic_bool signalled; /* something happened since the last round began */
    atomic_bool sleeping;  /* the reader is about to wait on wake_fd */
    int wake_fd;
    bool closed, closing;
    uint64_t stranded; /* handed out and not acknowledged at close */
    rd_kafka_resp_err_t close_err;

    struct us_partition **partitions; /* owned, all that were ever assigned */
    uint32_t partition_count, partition_capacity;
    uint32_t next_partition; /* where the next sweep begins to read */
    uint64_t rounds;         /* of reading, so far */
    bool went_back;          /* some partition's back_to is set */
    uint64_t turns;          /* batches, so far */
    struct us_partition **by_part; /* by index of the core */
    uint32_t by_part_count;
    unsalt_read_t *advice; /* by index of the core; by_part_count */
    char **bases;          /* owned: base topics, their index numbers the lane sets */
    uint32_t base_count;

    struct us_ring ring;
    unsalt_core_in_t *in;
    const char **faults;
    unsalt_core_out_t *out;
    unsalt_core_out_t *handed; /* by the last call */
    uint32_t handed_count, handed_capacity, handed_hint;
    struct us_info_text *info_texts;

    struct us_acks acks;
    struct us_asker asker;
    struct us_revoke revoke;
    uint64_t now;       /* of the round */
    uint64_t sweep_at, sweep_ns;
    uint64_t commit_at; /* UNSALT_NEVER when the application commits itself */
    uint64_t retry_at;  /* after NOMEM; 0 = none */

    struct us_log_limit limits[UNSALT_EVENT__CNT];
    pthread_mutex_t stats_lock; /* guards stats */
    unsalt_stats_t stats;       /* after the last rounds; unsalt_stats() adds the tally */
    unsalt_stats_t own;         /* fields that are counted here and not in the core; no lock */
    struct us_tally tally;
};

/* ---- consumer.c */

/* Takes the guard. False: unsalt_last_error() is __CONFLICT or __STATE (closed). */
bool us_enter(struct unsalt *u);
void us_leave(struct unsalt *u);
void us_set_last_error(rd_kafka_resp_err_t err);
/* Frees everything but the handle; tolerates what was never made. */
void us_consumer_free(struct unsalt *u);
char *us_text_dup(const char *text); /* NULL: out of memory */

/* ---- consumer_conf.c */

/* Reads what the application had, then forces what the library needs. False with errstr; then nothing changed. */
bool us_conf_force(rd_kafka_conf_t *rk_conf, struct us_before *before, char *errstr, size_t size);
void us_conf_restore(rd_kafka_conf_t *rk_conf, const struct us_before *before);

/* ---- consumer_registry.c (any thread) */

void us_registry_add(struct unsalt *u);
void us_registry_remove(struct unsalt *u);
struct unsalt *us_registry_find(const rd_kafka_t *rk); /* NULL: not registered */

/* ---- consumer_wake.c */

void us_signal(struct unsalt *u);                    /* any thread */
void us_sleep(struct unsalt *u, uint64_t timeout_ns); /* returns at a signal, or after the time */
void us_main_queue_event(rd_kafka_t *rk, void *opaque);
void us_partition_queue_event(rd_kafka_t *rk, void *opaque);

/* ---- consumer_poll.c */

/* One round: acknowledgements, answers, rebalances, reading, verdicts, commits. True: something moved. */
bool us_round(struct unsalt *u, uint64_t now);
/* ack=auto: what the last call handed out is done. */
void us_handed_done(struct unsalt *u);
/* When the next round must come at the latest. */
uint64_t us_next_deadline(const struct unsalt *u);

/* ---- consumer_read.c */

void us_seek_back(struct unsalt *u); /* consumer_pause.c: reads again what the log has put below what was read */
bool us_read_main(struct unsalt *u);                                      /* true: something came */
bool us_read_partitions(struct unsalt *u, uint64_t now, bool sweep);      /* true: something was taken */
uint32_t us_pull(struct unsalt *u, uint64_t now);                         /* records that came out of the core */
void us_drain(struct unsalt *u, uint64_t now);                            /* pulls and events until nothing comes */
void us_pending_drop(struct us_partition *p);                             /* destroys what was read and not taken */
/* Sorts what came out of the core: into the buffer, or destroyed. */
void us_out_settle(struct unsalt *u, const unsalt_core_out_t *out, size_t n);

/* ---- consumer_ring.c */

bool us_ring_init(struct us_ring *ring, uint32_t capacity);
void us_ring_destroy(struct us_ring *ring);
uint32_t us_ring_room(const struct us_ring *ring); /* for records */
bool us_ring_full(const struct us_ring *ring);     /* also for messages outside the ledger */
void us_ring_put(struct us_ring *ring, const unsalt_core_out_t *out);
void us_ring_put_plain(struct us_ring *ring, rd_kafka_message_t *message);
uint32_t us_ring_take(struct us_ring *ring, unsalt_core_out_t *out, uint32_t max);
/*
 * A partition's generation ends, but its lane set stays: its records stay in the buffer, so that the set's come out in
 * order. They are marked: `reserved` is US_ORPHAN, and the ticket, which means nothing any more, is the lane set.
 */
#define US_ORPHAN 1
void us_ring_orphan(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set);
/* Destroys the records of a partition's generation and the orphans of its lane set, and counts them as revoked. */
void us_ring_revoke(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set);
void us_ring_revoke_all(struct us_ring *ring); /* messages outside the ledger too */

/* ---- consumer_partitions.c */

struct us_partition *us_partition_find(const struct unsalt *u, const char *topic, int32_t partition);
/* Finds or makes it, its queue split from the main queue. NULL: out of memory. */
struct us_partition *us_partition_get(struct unsalt *u, const char *topic, int32_t partition);
/* The partition that a core index names now; NULL if none. */
struct us_partition *us_partition_of(const struct unsalt *u, uint32_t part);
bool us_by_part_set(struct unsalt *u, uint32_t part, struct us_partition *p); /* false: out of memory */
void us_partitions_close(struct unsalt *u);  /* gives the queues back */
void us_partitions_free(struct unsalt *u);

/* ---- consumer_colocation.c */

/*
 * Verifies that every lane set of the owned partitions is complete; raises COLOCATION if not. `incremental`: sets may
 * come in pieces, so the event says that they wait. `group`: the group gave them, so with layout `hash` and without a
 * configured N the cluster is asked how many there are (for up to a second). Returns the number of missing partitions.
 */
size_t us_colocation_check(struct unsalt *u, const struct us_owned *owned, size_t n, bool incremental, bool group);
/* How many partitions p's lane set must have before its sessions are released; 0 = it isn't known, or reported only. */
uint32_t us_colocation_set_size(const struct unsalt *u, const struct us_partition *p);

/* ---- consumer_start.c */

/* Says at birth what auto.offset.reset=latest means, since nobody may have meant it. */
void us_start_warn(struct unsalt *u);
/*
 * Finds the start position of each partition of the list: its own offset, else the committed one, else the end that
 * auto.offset.reset names. Known ones replace the offsets of the list and are noted as start; log_start and committed
 * are noted too. What can't be found within US_START_WAIT_MS stays as it is, start -1. All partitions are in the table.
 */
void us_start_resolve(struct unsalt *u, rd_kafka_topic_partition_list_t *list);

/* ---- consumer_leave.c */

/*
 * Notes which assigned partitions one call takes away, NULL: all; until us_leave_end(). What can be released is
 * moved to the buffer before if a lane set goes in part.
 */
void us_leave_begin(struct unsalt *u, const rd_kafka_topic_partition_list_t *list);
void us_leave_end(struct unsalt *u);
bool us_leave_whole(const struct unsalt *u, const struct us_partition *p); /* all that is assigned of its set goes */
/* Drops the ready records of a partition that leaves if its whole set goes; else they become orphans. */
void us_leave_ready(struct unsalt *u, const struct us_partition *p);

/* ---- consumer_assign.c */

/*
 * Opens partitions: splits queues, resolves starts, tells librdkafka and the core. `call_app` is called with the list
 * after the queues were split. incremental: added to what is assigned; else everything assigned before must be closed.
 */
rd_kafka_resp_err_t us_assign_open(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool incremental,
                                   bool call_app);
/*
 * Closes partitions in the core; held records are dropped, buffered ones too if their whole lane set goes. Tells
 * librdkafka nothing.
 */
void us_assign_close(struct unsalt *u, const rd_kafka_topic_partition_list_t *list);
void us_assign_close_all(struct unsalt *u);
/* Reopens assigned partitions under new generations, from their offsets (< 0: unknown). Sets err of what fails. */
void us_assign_reopen(struct unsalt *u, rd_kafka_topic_partition_list_t *list);
/* One event OUTSTANDING for each record in the application's hands, of partitions that are revoking, or of all. */
void us_outstanding_report(struct unsalt *u, bool all);

/* ---- consumer_rebalance.c */

void us_rebalance_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque);
void us_revoke_continue(struct unsalt *u, uint64_t now); /* finishes a waiting revoke if it may */
void us_revoke_forget(struct unsalt *u);                 /* ends the wait; the caller gives the partitions up */

/* ---- consumer_ack.c */

bool us_acks_init(struct us_acks *acks);
void us_acks_destroy(struct us_acks *acks);
/* Room so that n more records can be handed out and acknowledged without an allocation. False: out of memory. */
bool us_acks_reserve(struct us_acks *acks, uint32_t n);
bool us_acks_open(struct us_acks *acks, uint32_t part, uint32_t generation); /* false: out of memory */
void us_acks_close(struct us_acks *acks, uint32_t part);
void us_acks_hand(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n); /* reserved before */
void us_acks_apply(struct unsalt *u);  /* tells the core */
uint32_t us_acks_outstanding(struct us_acks *acks, uint32_t part); /* US_NO_PART: of all partitions */

/* ---- consumer_commit.c */

/* Commits moved frontiers. timeout_ms: < 0 for ever, 0 asynchronously. Errors are counted and raise COMMIT_FAILED. */
rd_kafka_resp_err_t us_commit(struct unsalt *u, bool only_revoking, int timeout_ms);
void us_commit_due(struct unsalt *u, uint64_t now);
void us_commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque);

/* ---- consumer_horizon.c */

bool us_asker_init(struct us_asker *asker);
void us_asker_stop(struct unsalt *u); /* joins the thread, destroys the helper handle */
void us_asker_destroy(struct us_asker *asker);
void us_questions(struct unsalt *u, uint64_t now); /* takes the core's questions, starts the thread at the first */
void us_answers(struct unsalt *u, uint64_t now);   /* gives answers to the core */

/* ---- consumer_events.c (thread of the call) */

void us_event_init(unsalt_event_t *event, unsalt_event_type_t type);
void us_event_raise(struct unsalt *u, unsalt_event_t *event); /* writes the text if there is none */
/* Takes the core's events; returns how many. */
size_t us_core_events(struct unsalt *u);
void us_malformed(struct unsalt *u, const rd_kafka_message_t *message, const char *fault);
void us_log(const struct unsalt *u, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- consumer_text.c */

void us_event_text(const unsalt_event_t *event, char *text, size_t size);

/* ---- consumer_info.c */

void us_info_forget(struct unsalt *u);

/* ---- consumer_stats.c */

void us_stats_init(struct unsalt *u);
void us_stats_handed(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n); /* figures of a hand-out */
void us_stats_acked(struct unsalt *u);                                            /* one record, by ack=auto */
void us_stats_refresh(struct unsalt *u);                                          /* all figures */

/* ---- consumer_close.c */

rd_kafka_resp_err_t us_close(struct unsalt *u);
void us_destroy_watched(struct unsalt *u); /* rd_kafka_destroy() with the watchdog */
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer inside. The core decides; this layer translates between it and librdkafka. One file per concern:
 *
 *   consumer.c             new and destroy, the guard against a second thread, subscribe
 *   consumer_conf.c        what is forced on the rd_kafka_conf_t, and put back
 *   consumer_registry.c    rd_kafka_t -> unsalt_t for callbacks, whose opaque stays the application's
 *   consumer_wake.c        sleeping and being woken
 *   consumer_poll.c        the one loop that poll, batch and callback share
 *   consumer_loop.c        for an event loop of the application's own: wake-up and deadline
 *   consumer_read.c        queues of partitions -> core -> hand-out buffer
 *   consumer_ring.c        the hand-out buffer
 *   consumer_partitions.c  the table of partitions, lane sets
 *   consumer_colocation.c  whether lane sets are complete
 *   consumer_group.h       what a group of several members needs
 *   consumer_start.h       where reading begins, and where it goes back to
 *   consumer_leave.c       what becomes of ready records whose partition goes
 *   consumer_assign.c      opening and closing partitions in the core and in librdkafka
 *   consumer_rebalance.c   librdkafka's rebalance callback, and revokes that span several polls
 *   consumer_hook.c        telling the application of assignments and revokes
 *   consumer_fence.c       a member that may have been thrown out
 *   consumer_pause.c       pause, resume, seek
 *   consumer_ack.h         acknowledgements from any thread
 *   consumer_commit.c      commits of the frontier
 *   consumer_horizon.c     asking leaders for the ends of their logs
 *   consumer_events.c      events of the core -> events of the application, log
 *   consumer_text.c        the line of an event
 *   consumer_info.c        what is known of a message
 *   consumer_stats.c       statistics
 *   consumer_collisions.c, consumer_misplaced.c  telling of lanes that share a partition, or don't belong there
 *   consumer_gaps.c        giving up gaps at the application's word
 *   consumer_close.c       close, and the watchdog of destroy
 *   consumer_pinned.c      what a held message pins
 *   consumer_full.c        what budget.policy=fail means here
 *   consumer_explain.c     why a session waits, why a horizon stands
 *   rehearse.c             rehearsal of faults
 *   pipeline*.c            two phases; see pipeline.h
 *   checkpoint*.c          cursors of sessions beside the offsets; see checkpoint.h
 *
 * All state belongs to the thread that is in a call (the guard sees to it), except where a lock or an atomic is named.
 */
#ifndef US_KAFKA_CONSUMER_H
#define US_KAFKA_CONSUMER_H
#include <core/collisions.h>
#include <kafka/clock.h>
#include <kafka/conf.h>
#include <kafka/consumer_ack.h>
#include <kafka/consumer_cursors.h>
#include <kafka/consumer_group.h>
#include <kafka/consumer_start.h>
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
#define US_IDS_BYTES 16384      /* room for the ids of a chunk that don't stand in their messages */
#define US_START_WAIT_MS 3000   /* bound of the search for start positions at an assignment */
#define US_COMMIT_WAIT_MS 10000 /* bound of the synchronous commit at revoke and close */
#define US_NO_PART UINT32_MAX   /* `part` of a message outside the ledger: an error or an end of partition */

/* ---- partitions */

/* A buffer of librdkafka, as far as the partition's messages in it show; see consumer_pinned.c. */
struct us_buffer {
    int64_t first;       /* offset of the first of them; they go up to the next buffer's first */
    uint64_t bytes, own; /* of all of them, and of those that are held: key and payload */
    uint32_t held;       /* by the core; 0: it pins nothing any more */
};
/* The buffers of a partition from which something is held, by offset; the last one is that of the newest message. */
struct us_pins {
    struct us_buffer *buffers; /* owned */
    uint32_t count, capacity;
    uint32_t hint;    /* where the last one was found */
    uint32_t gap;     /* between the last two messages in memory */
    uintptr_t newest; /* end of the newest message; 0 = none yet */
};

/* A partition that was ever assigned; lives until the consumer is destroyed, since its queue keeps a pointer to it. */
struct us_partition {
    struct unsalt *u;
    char *topic; /* owned */
    int32_t partition;
    atomic_bool ready;       /* the queue may hold something: set by any thread; see consumer_wake.c for its place */
    rd_kafka_queue_t *queue; /* owned; not forwarded. NULL after close */
    bool assigned;           /* open in the core */
    bool again;              /* not open in the core for lack of memory, though assigned: it is opened a bit later */
    bool given;              /* the group gave it, not unsalt_assign() */
    bool revoking;           /* its revoke waits for acknowledgements */
    bool dropping;           /* its whole lane set is revoking: nothing of it is handed out any more */
    uint32_t dropped;        /* released by the core, dropped since: not acknowledged while it is assigned */
    bool paused;             /* by the application */
    bool gated;              /* not read: its lane set is incomplete here */
    enum us_load load;       /* not read unless it is NONE */
    bool stale;              /* its set was incomplete meanwhile, so it is read again from what is committed */
    bool under_way;          /* its offset is in a commit whose outcome isn't known: what the group has isn't either */
    uint32_t era;            /* of its lane set's checkpoint */
    uint64_t saved, saving;  /* hash of its entry in the checkpoint, in the one under way; 0 = none */
    uint64_t saved_at;       /* when it was written last */
    int64_t found;           /* the frontier that its entry told while cursors are read; -1 = none */
    unsalt_core_range_t *found_done; /* owned: and what is done beyond */
    uint32_t found_count;
    bool leaving;            /* the call under way takes it away */
    uint32_t part;           /* index in the core, while assigned */
    uint32_t generation;     /* of the core, while assigned */
    uint32_t set;            /* lane set */
    uint32_t live;           /* partitions that its topic had when a group gave it; 0 = not asked, US_LIVE_UNKNOWN */
    int32_t lane;            /* -1 any */
    rd_kafka_message_t **pending; /* owned: read, not taken by the core yet: pending_first.. */
    uint32_t pending_first, pending_count, pending_capacity;
    uint32_t told; /* of how many pending ones the faults were told */
    int64_t start, log_start; /* -1 unknown */
    int64_t began;            /* where it goes back to without a commit: see us_start_again(); -1 unknown */
    enum us_origin origin;    /* of `start` */
    int64_t committed;        /* what the last commit asked for; -1 none, it failed, or an older one came after it */
    int64_t confirmed;        /* what the group has, as far as answers tell; -1 unknown */
    int64_t last_read;        /* offset of the newest record that the core took; -1 none */
    int64_t last_time;        /* greatest timestamp of a record that the core took, in ms; -1 none */
    struct us_pins pins;
    int64_t rehearsed;        /* offset of the record that last found a rehearsed full budget; -1 none */
    uint64_t empty_in;        /* the round in which it was found empty */
    int64_t back_to;          /* the log went back to this offset; -1 = it didn't */
    bool back_anew;           /* and what stands there is newer than what was read: it is another log */
    int64_t seek_to;          /* it must be moved there, and isn't read before; -1 = it is where it should be */
    uint64_t turn;            /* number of its last batch; 0 = none yet */
    uint32_t question_failures; /* in a row */
    bool question_single;       /* the last question got no answer: the next is not asked together with others */
    uint64_t answer_at;         /* when the failure of a question is told to the core; UNSALT_NEVER = none */
    uint64_t complain_at;       /* no event HORIZON_FAILED before */
};

/* Assigned, as librdkafka sees it: open in the core, or to be opened again. */
static inline bool us_partition_ours(const struct us_partition *p) {
    return p->assigned || p->again;
}

/* ---- the hand-out buffer */

struct us_ring {
    unsalt_core_out_t *slots; /* owned; capacity is a power of two */
    uint32_t capacity, first, count;
    uint32_t orphans; /* of the buffered: their generation is over, but they are handed out */
    uint64_t ready[UNSALT_STATE__CNT];   /* how many of the buffered will be handed out as what */
    uint64_t revoked[UNSALT_STATE__CNT]; /* dropped from the buffer at a revoke, by what they would have been */
    struct unsalt_pipeline *pipeline;    /* may have work for what is dropped; NULL: none */
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
    char eof[8], store[8], commit[8];
    char reset[32];     /* auto.offset.reset; "" = no topic-level property was set */
    char reset_now[32]; /* what it is now */
    bool reset_set; /* the application has set topic-level properties, so reset is its choice */
    void (*rebalance_cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void (*commit_cb)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *, void *);
    void (*log_cb)(const rd_kafka_t *, int, const char *, const char *);
    void *opaque;
    bool eof_wanted, commit_wanted;
    bool fixed; /* group.instance.id is set: the member doesn't leave its group at a close */
    int64_t commit_interval_ms, max_poll_ms, fetch_max, metadata_ms;
    int log_level;
    char protocol[16];        /* group.protocol; "" = this version has none */
    char assignor[256];       /* that of the protocol */
    const char *assignor_now; /* what was set instead; NULL: nothing */
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
    bool incremental; /* other partitions stay, and what was read of them goes on */
    uint64_t until;
    rd_kafka_topic_partition_list_t *partitions; /* owned */
};

/* What an event loop of the application's own needs; see consumer_loop.c. */
#define US_LOOP_PAYLOAD_MAX 64
struct us_loop {
    pthread_mutex_t lock; /* guards fd and payload; size is changed under it, by the thread of the call */
    int fd;               /* the application's; -1 none */
    char payload[US_LOOP_PAYLOAD_MAX];
    size_t size;              /* of the payload; 0 = no fd */
    atomic_bool armed;        /* the next signal writes to fd */
    _Atomic uint64_t told_at; /* when fd was written to since the last call; UNSALT_NEVER = it wasn't */
    bool settled;             /* the last call left nothing to be done before a signal or a deadline */
    bool outside;             /* reading time goes on outside of our calls, from rested_at to `due` at most */
    uint64_t rested_at, due;
};

/* Session ids of messages that were asked about: valid as long as these are known, see us_handed_out_forget(). */
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
    char *ids; /* owned: US_IDS_BYTES */
    unsalt_core_out_t *out;
    unsalt_core_out_t *handed; /* by the last call */
    uint32_t handed_count, handed_capacity, handed_hint;
    bool handed_acked;         /* ack=auto: what the last call handed out counts as processed */
    struct us_info_text *info_texts;

    struct us_collisions collisions; /* empty but in layout hash */
    uint64_t collisions_seed;

    struct us_acks acks;
    struct us_asker asker;
    struct us_checkpoint *checkpoint; /* owned; NULL: none is kept */
    rd_kafka_topic_partition_list_t *sent; /* owned: offsets in the application's open transaction; NULL: none */
    bool loose; /* something was acknowledged that no transaction of the application has been told of */
    bool torn;  /* and it will never be: its partition has gone meanwhile; until unsalt_rewind() */
    struct us_watch watch;
    struct us_revoke revoke;
    struct us_loop loop;
    uint64_t now;       /* of the round */
    uint64_t sweep_at, sweep_ns;
    uint64_t commit_at; /* UNSALT_NEVER when the application commits itself */
    bool commit_flying; /* an asynchronous commit has no answer yet: two could be applied in either order */
    bool commit_again;  /* another one was asked for meanwhile */
    bool subscribed;    /* to a group */
    bool member;        /* it was subscribed at some time: what is `given` is given by a group */
    uint64_t served_at; /* when the main queue was served last; 0 = never */
    uint64_t doubt_until, kept_at; /* consumer_fence.c */
    bool thrown_out;      /* the same: librdkafka doesn't say so */
    bool replaced;        /* the same: for ever, by another one with its group.instance.id */
    uint64_t rejoin_at;   /* the same: when to subscribe anew; 0 = not at all */
    rd_kafka_topic_partition_list_t *rejoin; /* owned: to these topics, which are unsubscribed; NULL: none are */
    uint64_t again_at;    /* when partitions are opened again; 0 = none waits for it */
    uint64_t retry_at;  /* after NOMEM; 0 = none */
    uint64_t seek_at;   /* when partitions with a `seek_to` are moved again; 0 = none waits for it */
    uint64_t read_records, read_bytes; /* taken by the core since its last advice */
    uint64_t pinned;    /* bytes of records that are not held, in buffers of others that are */
    bool full;          /* budget.policy=fail: nothing is read until there is room */
    bool ack_wakes;     /* a partition is refused, perhaps until something is acknowledged */
    struct us_rehearse *rehearse; /* owned; NULL: nothing is rehearsed */
    struct unsalt_pipeline *pipeline; /* owns this consumer; NULL: the application does */

    struct us_log_limit limits[UNSALT_EVENT__CNT];
    pthread_mutex_t stats_lock; /* guards stats */
    unsalt_stats_t stats;       /* after the last rounds; unsalt_stats() adds the tally */
    unsalt_stats_t own;         /* fields that are counted here and not in the core; no lock */
    struct us_tally tally;
};

/* ---- consumer.c */

/* Takes the guard. False: unsalt_last_error() is __CONFLICT or __STATE (closed). */
bool us_enter(struct unsalt *u);
bool us_enter_to_poll(struct unsalt *u); /* __CONFLICT too if a pipeline polls */
bool us_enter_to_look(struct unsalt *u); /* the same for a call that changes nothing */
void us_leave(struct unsalt *u);
void us_set_last_error(rd_kafka_resp_err_t err);
void us_consumer_free(struct unsalt *u); /* everything but the handle; tolerates what was never made */
char *us_text_dup(const char *text); /* NULL: out of memory */

/* ---- consumer_conf.c */

/* Reads what the application had, then forces what the library needs. False with errstr; then nothing changed. */
bool us_conf_force(const struct unsalt *u, rd_kafka_conf_t *rk_conf, struct us_before *before, char *errstr,
                   size_t size);
void us_conf_restore(rd_kafka_conf_t *rk_conf, const struct us_before *before);

/* ---- consumer_registry.c (any thread) */

void us_registry_add(struct unsalt *u);
void us_registry_remove(struct unsalt *u);
struct unsalt *us_registry_find(const rd_kafka_t *rk); /* NULL: not registered */

/* ---- consumer_wake.c */

void us_signal(struct unsalt *u);                    /* any thread */
void us_sleep(struct unsalt *u, uint64_t timeout_ns); /* returns at a signal, or after the time */
int us_rounded_up_ms(uint64_t ns);                    /* INT_MAX at most */
void us_main_queue_event(rd_kafka_t *rk, void *opaque);
void us_partition_queue_event(rd_kafka_t *rk, void *opaque);

/* ---- consumer_loop.c */

bool us_loop_init(struct us_loop *loop);
void us_loop_destroy(struct us_loop *loop);
void us_loop_notify(struct unsalt *u);             /* any thread: writes to the application's fd if that is armed */
void us_loop_rest(struct unsalt *u, bool settled); /* a call that reads ends: stops the reading time, arms */
void us_loop_back(struct unsalt *u);               /* a call begins */

/* ---- consumer_poll.c */

/* One round: acknowledgements, answers, rebalances, reading, verdicts, commits. True: something moved. */
bool us_round(struct unsalt *u, uint64_t now);
/* ack=auto: what the last call handed out is done. It is still known: see us_handed_out_forget(). */
void us_handed_done(struct unsalt *u);
/*
 * unsalt_message_info() knows nothing of what the last call handed out any more, and what it told of it is freed: only
 * in poll, batch and callback, until which the application may use it.
 */
void us_handed_out_forget(struct unsalt *u);
/* Moves up to `max` messages from the buffer to u->handed. Returns how many; 0: out of memory, nothing moved. */
uint32_t us_hand_out(struct unsalt *u, size_t max);
/* When the next round must come at the latest. */
uint64_t us_next_deadline(const struct unsalt *u);

/* ---- consumer_read.c */

/*
 * consumer_pause.c: rd_kafka_seek_partitions() that takes its time on any version. What it has moved has no `seek_to`
 * any more; what it hasn't keeps what it had, and says so in the list, or all by the error.
 */
rd_kafka_error_t *us_seek(struct unsalt *u, rd_kafka_topic_partition_list_t *list, int timeout_ms);
/* consumer_pause.c: reads again what the log has put below what was read; makes moves that failed. When due. */
void us_seek_back(struct unsalt *u);
bool us_read_main(struct unsalt *u);                                      /* true: something came */
bool us_read_partitions(struct unsalt *u, uint64_t now, bool sweep);      /* true: something was taken */
uint32_t us_pull(struct unsalt *u, uint64_t now);                         /* records that came out of the core */
void us_drain(struct unsalt *u, uint64_t now);                            /* pulls and events until nothing comes */
void us_pending_drop(struct us_partition *p);                             /* destroys what was read and not taken */
/* Sorts what came out of the core: into the buffer, or destroyed. A rehearsal may change `out`. */
void us_out_settle(struct unsalt *u, unsalt_core_out_t *out, size_t n);

/* ---- consumer_pinned.c */

/* n messages were taken by the core, in their order; those that it gave back at once are in `out`, still alive. */
void us_pin(struct us_partition *p, rd_kafka_message_t *const *messages, uint32_t n, const unsalt_core_out_t *out,
            size_t n_out);
/* These were held; the messages are still alive. */
void us_unpin(struct unsalt *u, const unsalt_core_out_t *out, size_t n);
void us_pins_drop(struct us_partition *p); /* nothing is held any more: its generation ends */

/* ---- consumer_full.c */

/* The core refuses a record until there is room: nothing more is read, and the application gets a message about it. */
void us_full(struct unsalt *u);

/* ---- consumer_ring.c */

bool us_ring_init(struct us_ring *ring, uint32_t capacity);
void us_ring_destroy(struct us_ring *ring);
uint32_t us_ring_room(const struct us_ring *ring); /* for records */
bool us_ring_full(const struct us_ring *ring);     /* also for messages outside the ledger */
void us_ring_put(struct us_ring *ring, const unsalt_core_out_t *out);
void us_ring_put_plain(struct us_ring *ring, rd_kafka_message_t *message);
/* Destroys what says that the end of a partition was reached. */
void us_ring_drop_eof(struct us_ring *ring, const char *topic, int32_t partition);
/* Destroys a record instead of putting it, and counts it as revoked. */
void us_ring_refuse(struct us_ring *ring, const unsalt_core_out_t *out);
/* Whether a record of the partition's generation is in the buffer. */
bool us_ring_has(const struct us_ring *ring, uint32_t part, uint32_t generation);
uint32_t us_ring_take(struct us_ring *ring, unsalt_core_out_t *out, uint32_t max);
void us_ring_prefetch(const struct us_ring *ring, const unsalt_core_out_t *taken, uint32_t n); /* and the next one */
/*
 * A partition's generation ends, but its lane set stays: its records stay in the buffer, so that the set's come out in
 * order. They are marked: `reserved` is US_ORPHAN, and the ticket, which means nothing any more, is the lane set.
 */
#define US_ORPHAN 1
void us_ring_orphan(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set);
/*
 * Destroys the records of a partition's generation and the orphans of its lane set, and counts them as revoked. Returns
 * how many of the first there were.
 */
uint32_t us_ring_revoke(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set);
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
 * come in pieces, so the event says that they wait. `group`: the group gave them; some complete sets are reason enough
 * to take the others too, which then aren't read. With layout `hash` and without a configured N they all are
 * US_LIVE_UNKNOWN then. Returns the number of missing partitions, 0 if the assignment is taken; SIZE_MAX: no memory.
 */
size_t us_colocation_check(struct unsalt *u, const struct us_owned *owned, size_t n, bool incremental, bool group);
/* Raises COLOCATION if what is assigned now is incomplete; for_long: it has been for long. */
void us_colocation_tell(struct unsalt *u, bool for_long);
/* How many partitions p's lane set must have before its sessions are released; 0 = it isn't known, or reported only. */
uint32_t us_colocation_set_size(const struct unsalt *u, const struct us_partition *p);

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
 * What only the core has no memory for is opened later, without an error. On an error librdkafka has none of the list.
 */
rd_kafka_resp_err_t us_assign_open(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool incremental,
                                   bool call_app);
/*
 * Closes partitions in the core; held records are dropped, buffered ones too if their whole lane set goes. Tells
 * librdkafka nothing.
 */
void us_assign_close(struct unsalt *u, const rd_kafka_topic_partition_list_t *list);
void us_assign_close_all(struct unsalt *u);
/*
 * Reopens assigned partitions under new generations, from their offsets (< 0: unknown). Sets err of what can't be
 * opened now for lack of memory: that isn't read, its lane set waits, and it is opened by us_assign_again(), whatever
 * the caller does about it. With a checkpoint it begins then as at an assignment, at what is committed.
 */
void us_assign_reopen(struct unsalt *u, rd_kafka_topic_partition_list_t *list);
void us_assign_again(struct unsalt *u, uint64_t now); /* once a round */
/* One event OUTSTANDING for each record in hand, of what is revoking, or of all. It may acknowledge, so before
 * us_acks_close_going(). */
void us_outstanding_report(struct unsalt *u, bool all);

/* ---- consumer_commit.c */

/* Commits moved frontiers. timeout_ms: < 0 for ever, 0 asynchronously. Errors are counted and raise COMMIT_FAILED. */
rd_kafka_resp_err_t us_commit(struct unsalt *u, bool only_revoking, int timeout_ms);
void us_commit_due(struct unsalt *u, uint64_t now);
void us_commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque);

/* Notes the answer to a commit: what failed counts as not committed. */
void us_commit_settle(struct unsalt *u, rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *list);

/* ---- consumer_horizon.c */

bool us_asker_init(struct us_asker *asker);
void us_asker_stop(struct unsalt *u); /* joins the thread, destroys the helper handle */
void us_asker_destroy(struct us_asker *asker);
void us_questions(struct unsalt *u, uint64_t now); /* takes the core's questions, starts the thread at the first */
void us_answers(struct unsalt *u, uint64_t now);   /* gives answers to the core */

/* ---- consumer_events.c (thread of the call) */

void us_event_init(unsalt_event_t *event, unsalt_event_type_t type);
void us_event_raise(struct unsalt *u, unsalt_event_t *event); /* writes the text if there is none */
/* An event about a record that was read at `p`: what it says of itself and where it stands. The id is borrowed. */
unsalt_event_t us_event_of(unsalt_event_type_t type, const struct us_partition *p, const unsalt_core_in_t *in);
size_t us_core_events(struct unsalt *u); /* takes the core's events; returns how many */
/* MALFORMED; `dead_letter`: the record goes to the dead-letter callback, else it is handed out as unsequenced. */
void us_malformed(struct unsalt *u, const rd_kafka_message_t *message, const char *fault, bool dead_letter);
void us_log(const struct unsalt *u, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- consumer_collisions.c, consumer_misplaced.c */

/* A record that tells its lanes, when the core took it, while it is still there. Raises COLLISION or MISPLACED. */
void us_collision_look(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in);
void us_misplaced_look(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in);

/* ---- consumer_text.c */

void us_event_text(const unsalt_event_t *event, char *text, size_t size);

/* ---- consumer_info.c */

void us_info_forget(struct unsalt *u);

/* ---- consumer_stats.c */

void us_stats_init(struct unsalt *u);
void us_stats_handed(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n); /* figures of a hand-out */
void us_stats_acked(struct unsalt *u, uint64_t n);                                /* records, by ack=auto */
void us_stats_refresh(struct unsalt *u);                                          /* all figures */

/* ---- consumer_close.c */

rd_kafka_resp_err_t us_close(struct unsalt *u);
/* Logs that a handle of the library's own isn't gone (us_handle_end()), if so. What it does: in the third person. */
void us_handle_told(const struct unsalt *u, bool gone, const char *what_it_does);
void us_destroy_watched(struct unsalt *u); /* rd_kafka_destroy() with the watchdog */
#endif

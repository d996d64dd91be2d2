/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline inside: threads and librdkafka around the decisions of core/pipeline.h. One file per concern:
 *
 *   pipeline.c           new, close, destroy
 *   pipeline_poll.c      the work of the thread that polls
 *   pipeline_read.c      records on their way from the core: phase 1 at their arrival, phase 2 at their turn
 *   pipeline_early.c     which messages have a job, or wait for one, before their turn
 *   pipeline_jobs.c      memory of jobs, what is known of a record
 *   pipeline_threads.c   workers and delivery threads
 *   pipeline_call.c      calls of the application's callbacks
 *   pipeline_dead.c      dead letters to a topic
 *   pipeline_topic.c     that this topic is there
 *   pipeline_done.c      records that are done: acknowledgements, events, memory
 *   pipeline_revoke.c    partitions that go
 *   pipeline_resolve.c   the application's word on halted sessions
 *   pipeline_halted.c    which they are
 *   pipeline_explain.c   where a session stands, in words
 *   pipeline_stats.c     statistics
 *
 * `lock` guards the pipe and every field named so; no callback runs under it. The early table, and everything of the
 * consumer, belong to the thread that is in a call. A job is given back by that thread alone, but for one that has
 * left while a run of its phase 1 is under way: by the thread of the last such run.
 */
#ifndef US_KAFKA_PIPELINE_H
#define US_KAFKA_PIPELINE_H
#include <core/pipeline.h>
#include <kafka/consumer.h>
#include <unsalt/pipeline.h>

#define US_PIPELINE_CHUNK 64    /* records that get their turn at a time */
#define US_PIPELINE_ERROR 256   /* room for an error text */
#define US_PIPELINE_NAP (100 * US_MS / 1000)
#define US_PIPELINE_PAUSE (10 * US_MS) /* the longest sleep while other threads deliver; after a lack of memory */

/* ---- records */

struct us_job {
    struct us_pipe_job pipe; /* the first member: the core gives pointers to it */
    struct us_job *next;     /* of the pool */
    rd_kafka_message_t *message; /* the core's or the buffer's until its turn has come; NULL: gone */
    uint64_t ticket, waited_ns;
    int32_t lane;
    uint32_t base_len; /* of the key without its salt, for records without a sequence */
    uint16_t flags;    /* UNSALT_F_* */
    uint16_t state;    /* unsalt_state_t; HELD until its turn has come */
    bool after_gap;
    bool acks;         /* it has a token */
    bool settled;      /* it was told as done, and waits for its strays */
    void *result;      /* the library's */
    char *error;       /* owned: of the last failure; NULL: none */
    char *unburied;    /* owned: why its dead letter could not be stored the last time; NULL: unknown */
};

static inline struct us_job *us_job_of(struct us_pipe_job *job) {
    return (struct us_job *)(void *)job;
}

/* What a call leaves to be done without the lock. */
struct us_after {
    bool any;
    bool last;    /* nobody waits for the job any more: it ends */
    bool wakes;   /* the thread that polls is to look */
    void *result; /* to be ended */
    char *error;  /* to be freed */
};

/* One call of a callback; filled under the lock. */
struct us_call {
    unsalt_pipeline_job_t job;
    unsalt_pipeline_failure_t failure;
    struct unsalt_pipeline *pipeline;
    struct us_job *of;
    uint32_t run;
    uint64_t began;
    bool bury;
    struct us_after after;
    char errstr[US_PIPELINE_ERROR];
    char error[US_PIPELINE_ERROR]; /* of the failure */
};

/* ---- messages that have a job, or wait for one, before their turn */

struct us_early_slot {
    const rd_kafka_message_t *message; /* NULL: free */
    struct us_job *job;                /* NULL: it found no room */
    uint64_t ticket;                   /* of its entry in the queue; 0: it has none */
};
/*
 * The address of a message that has gone may be that of a later one: an entry counts only if the slot has its ticket.
 */
struct us_early_entry {
    const rd_kafka_message_t *message;
    uint64_t ticket;
};
struct us_early {
    struct us_early_slot *slots; /* owned: open addressing by address; a power of two, at most half full */
    uint32_t capacity, count;
    /* owned: those without room, oldest first; some have gone since. At most four times the most that ever waited. */
    struct us_early_entry *queue;
    uint32_t queue_capacity, queue_first, queue_count;
    uint64_t tickets; /* the last one given */
    _Atomic uint32_t waiting; /* slots without a job */
};

/* ---- the pipeline */

struct unsalt_pipeline {
    struct unsalt *u; /* owned */
    unsalt_pipeline_callbacks_t callbacks;
    uint32_t workers, delivery_threads;
    pthread_mutex_t lock;
    pthread_cond_t work, deliver, quiet;

    /* lock */
    struct us_pipe pipe;
    struct us_job *pool;
    uint32_t pool_count;
    void **slabs; /* owned */
    uint32_t slab_count, slab_capacity;
    uint32_t sleeping_workers, sleeping_deliverers; /* those that were woken, too, until they run */
    uint32_t waking_workers, waking_deliverers;     /* woken, not running yet */
    uint64_t wakes_at; /* the thread that polls looks at time limits and back-offs then, if nothing wakes it */
    uint64_t full;    /* times that reading stopped */
    bool stop;

    /* the thread in a call */
    struct us_early early;
    unsalt_core_in_t *in; /* owned: US_PIPELINE_CHUNK */
    char *ids;            /* owned */
    uint64_t finished;    /* since poll returned last */
    bool blocked;         /* what is ready finds no room */
    bool starved;         /* nor memory */
    bool flows;           /* something was delivered since it slept */
    bool told_full;       /* PIPELINE_HALTED_FULL was told */
    bool told_no_worker;  /* PIPELINE_NO_WORKER was told */

    _Atomic uint64_t open_until; /* no `deliver` is started from then on: the member may have been thrown out */
    uint32_t done_wakes;         /* delivery threads wake the poll when so many are done */

    pthread_t *threads; /* owned */
    uint32_t thread_count;

    pthread_mutex_t dead_lock; /* of `dead`, for whoever isn't the thread in a call; that one takes it to replace it */
    rd_kafka_t *dead; /* owned; NULL: no topic */
    rd_kafka_queue_t *dead_queue;
    const char *dead_topic, *group;
    char *group_text; /* owned */
    atomic_uint dead_flying;
    bool dead_ready; /* the topic was there; the thread in a call */
};

/* ---- pipeline_jobs.c */

/* lock. Room for n jobs without an allocation. False: out of memory. */
bool us_jobs_reserve(struct unsalt_pipeline *pl, uint32_t n);
struct us_job *us_jobs_take(struct unsalt_pipeline *pl);              /* lock; reserved */
void us_jobs_give(struct unsalt_pipeline *pl, struct us_job *job);    /* lock */
void us_jobs_free(struct unsalt_pipeline *pl);
/* What a record is; `in` as extracted. p: its partition, NULL: unknown. */
void us_job_describe(const struct unsalt_pipeline *pl, const struct us_partition *p, rd_kafka_message_t *message,
                     const unsalt_core_in_t *in, struct us_pipe_record *record);
/* lock. Enters it into the pipe; room was reserved. */
struct us_job *us_job_enter(struct unsalt_pipeline *pl, rd_kafka_message_t *message, const unsalt_core_in_t *in,
                            const struct us_pipe_record *record, uint64_t now);
/* Session id or base key; NULL: none. */
const void *us_job_session(const struct us_job *job, size_t *len);

/* ---- pipeline_early.c */

/*
 * job: NULL = there is no room. fits: there may be some before its turn; else it never is the oldest one, which those
 * behind it wait for. False: no memory.
 */
bool us_early_put(struct us_early *early, const rd_kafka_message_t *message, struct us_job *job, bool fits);
/* Takes a message out. False: it isn't there. */
bool us_early_take(struct us_early *early, const rd_kafka_message_t *message, struct us_job **job);
/* The oldest that waits for room, and is still there; NULL: none. It stays. */
const rd_kafka_message_t *us_early_oldest(struct us_early *early);
void us_early_started(struct us_early *early, const rd_kafka_message_t *message, struct us_job *job);
bool us_early_has(const struct us_early *early, const rd_kafka_message_t *message);
bool us_early_has_job(const struct us_early *early, const rd_kafka_message_t *message);
void us_early_free(struct us_early *early);

/* ---- pipeline_read.c (the thread in a call) */

/* n messages were taken by the core; what it gave back at once is in `out`, still alive. */
void us_pipeline_arrived(struct unsalt *u, rd_kafka_message_t *const *messages, uint32_t n,
                         const unsalt_core_out_t *out, size_t n_out);
/* Destroys a message that is not handed out; u->pipeline may be NULL. */
void us_pipeline_drop(struct unsalt_pipeline *pl, rd_kafka_message_t *message);
bool us_pipeline_take(struct unsalt_pipeline *pl, uint64_t now); /* gives records their turn; true: some */
void us_pipeline_start_waiting(struct unsalt_pipeline *pl, uint64_t now); /* phase 1 of those that found no room */

/* ---- pipeline_threads.c */

/* Starts them. False with errstr: none runs. */
bool us_threads_start(struct unsalt_pipeline *pl, char *errstr, size_t size);
void us_threads_stop(struct unsalt_pipeline *pl); /* joins them */
/* lock: wakes those that are needed for what is queued. */
void us_threads_wake(struct unsalt_pipeline *pl);

/* ---- pipeline_call.c */

/* lock: notes what a call is about. */
void us_call_begin(struct unsalt_pipeline *pl, struct us_call *call, struct us_job *job, bool prepares);
/* lock: calls prepare without it, and settles the result. What is left to do goes into call->after. */
void us_call_prepare(struct us_call *call);
/* Without the lock: what us_call_prepare() has left to do, if call->after.any. */
void us_call_after(struct us_call *call);
/* Without the lock: delivers or buries, and settles the result. */
void us_call_step(struct us_call *call);
bool us_pipeline_inside(const struct unsalt_pipeline *pl); /* this thread is in a callback of it */
/* lock: keeps the text of a failure, which the caller frees when it is given back: the former one. */
char *us_job_error(struct us_job *job, char *error);
/* lock: keeps why a dead letter could not be stored; the caller frees what is given back. */
char *us_job_unburied(struct us_job *job, char *error);
/* What the last attempt of the phase that failed has said. NULL: nothing, or it was not waited for. */
const char *us_job_said(const struct us_job *job);

/* ---- pipeline_topic.c */

/*
 * That the topic of dead letters is there, once: as checkpoint_topic.h has it. An error is logged, with what is to be
 * done, and nothing is read. Brokers that don't answer in time are no reason: a dead letter will find out, and says so.
 * u->pipeline may be NULL: 0.
 */
rd_kafka_resp_err_t us_dead_ready(struct unsalt *u);

/* ---- pipeline_dead.c */

bool us_dead_init(struct unsalt_pipeline *pl, rd_kafka_conf_t *rk_conf, const struct unsalt_conf *conf, char *errstr,
                  size_t size);
void us_dead_watch(struct unsalt_pipeline *pl); /* its answers wake the consumer */
/* Sends; the answer comes by us_dead_serve(). __QUEUE_FULL and others: it was not sent. */
rd_kafka_resp_err_t us_dead_send(struct unsalt_pipeline *pl, const struct us_call *call);
/* What the error of a dead letter means, in words: the caller's. NULL: out of memory. */
char *us_dead_reason(struct unsalt_pipeline *pl, rd_kafka_resp_err_t err);
void us_dead_serve(struct unsalt_pipeline *pl);
void us_dead_stop(struct unsalt_pipeline *pl);

/* ---- pipeline_done.c */

bool us_done_settle(struct unsalt_pipeline *pl); /* true: something was done */
void us_done_notices(struct unsalt_pipeline *pl);
/* Says that halted sessions leave no room, and which of them has piled up most. */
void us_done_full(struct unsalt_pipeline *pl);
/* Says that runs of phase 1 which nobody waits for hold every worker, once until one of them has returned. */
void us_done_workers(struct unsalt_pipeline *pl);
/* Without the lock: ends what a job has, and gives it back. It was settled, and has no strays. */
void us_done_end(struct unsalt_pipeline *pl, struct us_job *job);

/* ---- pipeline_poll.c */

/* Everything but rounds; from `until` on no `deliver` is started on this thread. True: something moved. */
bool us_pipeline_serve(struct unsalt_pipeline *pl, uint64_t now, uint64_t until);
uint64_t us_pipeline_deadline(struct unsalt_pipeline *pl);
/* Something is to be done before anybody wakes us. */
bool us_pipeline_has_work(struct unsalt_pipeline *pl);

/* ---- pipeline_halted.c */

/* lock: where the session stands that has piled up most; NULL: none stands. */
struct us_job *us_halted_largest(struct unsalt_pipeline *pl);

/* ---- pipeline_explain.c; u->pipeline may be NULL */

struct us_text;
/* What a lane set's session has in the pipeline, if anything. The thread in a call. */
void us_pipeline_explain(const struct unsalt *u, uint32_t set, const void *id, size_t len, struct us_text *text,
                         uint64_t now);

/* ---- pipeline_revoke.c; u->pipeline may be NULL */

void us_pipeline_stop(struct unsalt *u, struct us_partition *p); /* goes with its whole lane set: starts nothing more */
/* What has left is acknowledged or taken back: so what was cancelled is nothing to wait for. */
void us_pipeline_settle(struct unsalt *u);
void us_pipeline_leave(struct unsalt *u, const struct us_partition *p, bool whole);
void us_pipeline_close_begin(struct unsalt *u);
void us_pipeline_close_serve(struct unsalt *u, uint64_t until); /* starts nothing from then on */
/* How long a close may sleep, at most `most_ns`. */
uint64_t us_pipeline_close_rest(struct unsalt *u, uint64_t most_ns);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two phases (DESIGN 10): which record is worked on next, and what becomes of it after a result, a failure, a time
 * limit or a revoke. Values in, values out: no thread, no clock, no lock; whoever has threads calls under a lock of its
 * own, and calls no callback of the application meanwhile.
 *
 *   pipeline.c           records come in, get their turn, and leave
 *   pipeline_prepare.c   phase 1: what is started next, results, time limits
 *   pipeline_deliver.c   phase 2 and dead letters: what a session does next, results
 *   pipeline_halt.c      sessions that stand, and go on
 *   pipeline_revoke.c    records whose generation ends
 *   pipeline_verdict.c   what a failure leads to, how long a retry is put off
 *   pipeline_session.c   the table of sessions
 *   pipeline_conserved.c the invariants below, counted anew
 *
 * Invariants, checked by us_pipe_conserved() in tests after each step:
 *
 *   - every record that entered is in exactly one state, or has left with exactly one outcome
 *   - of a session at most one record is DELIVERING or BURYING, and it is the first of those whose turn has come
 *   - a session is in the ready list if and only if it is READY: its first record can be delivered or buried
 *   - a record that left is told once, by us_pipe_take_done()
 *   - what is to be told of a record is told once, by us_pipe_take_notice(), or when it is told as done
 *
 * A record's memory is the caller's: from us_pipe_enter() to us_pipe_forget(), which may be called once it was told as
 * done and no run of its phase 1 is under way any more (strays).
 */
#ifndef US_CORE_PIPELINE_H
#define US_CORE_PIPELINE_H
#include <base/heap.h>
#include <base/links.h>
#include <unsalt/types.h>

enum us_pipe_phase { US_PIPE_PREPARE, US_PIPE_DELIVER, US_PIPE_PHASES };

/* In the order of UNSALT_PIPELINE_STATES. */
enum us_pipe_state {
    US_PIPE_QUEUED,
    US_PIPE_RUNNING,
    US_PIPE_RETRYING,
    US_PIPE_PREPARED,
    US_PIPE_FAILED, /* for good, in either phase: the policy of that phase applies when it is the first */
    US_PIPE_DELIVERING,
    US_PIPE_REDELIVERING,
    US_PIPE_HALTED,
    US_PIPE_BURYING,
    US_PIPE_REBURYING,
    US_PIPE_STATES
};

/* In the order of UNSALT_PIPELINE_OUTCOMES. */
enum us_pipe_outcome { US_PIPE_DELIVERED, US_PIPE_BURIED, US_PIPE_SKIPPED, US_PIPE_CANCELLED, US_PIPE_OUTCOMES };

enum us_pipe_res { US_PIPE_OK, US_PIPE_RETRY, US_PIPE_FAIL, US_PIPE_LATE /* the time limit */ };
enum us_pipe_policy { US_PIPE_HALT, US_PIPE_DEAD_LETTER, US_PIPE_SKIP };
/* In the order of UNSALT_PIPELINE_REASONS. */
enum us_pipe_reason { US_PIPE_EXHAUSTED, US_PIPE_REFUSED, US_PIPE_TIMEOUT, US_PIPE_RESOLVED };

struct us_pipe_params {
    struct unsalt_mem mem;
    uint64_t seed;   /* of hashes and of jitter; secret */
    uint32_t id_max; /* longest session id in bytes; longer ones are cut, so such sessions may share an order */
    bool prepares;   /* there is a phase 1 */
    uint64_t records, bytes, halted_records, halted_bytes;
    uint64_t limit_ns[US_PIPE_PHASES]; /* UNSALT_NEVER: none */
    uint32_t retries[US_PIPE_PHASES];
    enum us_pipe_policy policy[US_PIPE_PHASES];
    uint64_t backoff_ns, backoff_max_ns;
};

/* ---- verdicts: pure functions */

enum us_pipe_verdict { US_PIPE_DONE, US_PIPE_AGAIN, US_PIPE_GIVE_UP };
/* attempts: how many calls of the phase there were, this one included. */
enum us_pipe_verdict us_pipe_judge(enum us_pipe_res res, uint32_t attempts, uint32_t retries);
enum us_pipe_reason us_pipe_reason_of(enum us_pipe_res res);
/*
 * How long the retry after so many failures (1..) is put off: base * 2^(failures - 1), at most `max`, of which a random
 * half is left out ("equal jitter": Brooker 2015). random: any 64 bits. At least 1 when base is.
 */
uint64_t us_pipe_backoff(uint64_t base, uint64_t max, uint32_t failures, uint64_t random);

/* ---- sessions */

enum us_pipe_stand {
    US_PIPE_IDLE,    /* its first record isn't far enough, or there is none */
    US_PIPE_READY,   /* its first record can be delivered or buried */
    US_PIPE_BUSY,    /* that is under way */
    US_PIPE_WAITING, /* that is put off */
    US_PIPE_STANDS   /* halted */
};

struct us_pipe_session {
    struct us_pipe_session *chain; /* of its bucket; of the pool */
    struct us_link ready, stands;
    struct us_links turn;  /* its records whose turn has come, in order */
    struct us_links early; /* its other records */
    uint64_t hash, space;
    uint64_t cursor;         /* one above the highest number of `epoch` whose turn has come; UNSALT_NO_SEQ: none */
    uint64_t epoch;          /* of the newest number */
    uint64_t records, bytes; /* of `turn` */
    uint32_t refs;           /* records that name it */
    uint32_t id_len;
    enum us_pipe_stand stand;
    bool stopping; /* its partitions go: nothing more is started, and what fails is cancelled */
    unsigned char id[];
};

/* ---- records */

struct us_pipe_job {
    struct us_link all;     /* of the pipe */
    struct us_link of;      /* of the session: turn or early */
    struct us_link queue;   /* to be started; running; delivering; done */
    struct us_link notice;
    struct us_heap_node timer;
    struct us_pipe_session *session;
    uint64_t seq, epoch, set;
    uint64_t since;    /* of what it waits for, or when its call began; HALTED: since when its session stands */
    uint64_t turn_at;  /* when phase 1 ended */
    uint32_t bytes, part, generation;
    uint32_t run;      /* number of its newest run of phase 1 */
    uint32_t strays;   /* runs of phase 1 that are under way though nobody waits for them */
    uint32_t attempts[US_PIPE_PHASES]; /* begun anew when the application says so */
    uint32_t burials;  /* attempts to store its dead letter */
    uint8_t state;     /* enum us_pipe_state */
    uint8_t outcome;   /* enum us_pipe_outcome, once it has left */
    uint8_t phase;     /* that failed */
    uint8_t reason;    /* enum us_pipe_reason */
    uint8_t untold;    /* a bit for each enum us_pipe_notice that is to be told */
    bool turned;       /* its turn has come */
    bool behind;       /* late or stale: its number says nothing of what comes next; set before its turn */
    bool orphan;       /* its generation is over, but it is delivered: see us_pipe_leave() */
    bool over;         /* its generation is over while it is delivered or buried */
    bool left;
    bool parked;       /* not in the queue, since its session stands or stops */
    bool bury;         /* the application has said: as a dead letter */
    bool slow;         /* its deliver was told to be slow */
    bool late;         /* its newest run of phase 1 took longer than its limit */
    bool called[US_PIPE_PHASES];
};

/* In the order in which they are told. */
enum us_pipe_notice { US_PIPE_TELL_NOTHING, US_PIPE_TELL_SLOW, US_PIPE_TELL_NOT_BURIED, US_PIPE_TELL_HALTED };

struct us_pipe_times {
    uint64_t count[UNSALT_WAIT_BUCKETS], sum_ns;
};

struct us_pipe_counters {
    uint64_t entered, state[US_PIPE_STATES], outcome[US_PIPE_OUTCOMES];
    uint64_t strays, sessions, standing, halts;
    uint64_t attempts[US_PIPE_PHASES], retries[US_PIPE_PHASES], failures[US_PIPE_PHASES], timeouts[US_PIPE_PHASES];
    uint64_t final_failures[US_PIPE_PHASES], burial_failures;
    struct us_pipe_times took[US_PIPE_PHASES], queued, turn;
};

/* Records and bytes of key and payload of one kind. */
struct us_pipe_load {
    uint64_t records, bytes;
};

struct us_pipe {
    struct us_pipe_params params;
    struct us_pipe_session **buckets; /* owned; a power of two */
    struct us_pipe_session *pool;     /* owned: unused sessions */
    uint32_t bucket_count, pool_count;
    struct us_links all;
    struct us_links urgent, early; /* QUEUED: those whose turn has come go first */
    uint32_t queued;               /* in both */
    struct us_links running, delivering; /* in the order in which they began, so the first is the first one due */
    struct us_links ready;               /* sessions */
    struct us_links standing;            /* sessions */
    struct us_links done, notices;
    uint32_t done_count;
    struct us_heap timers;      /* RETRYING, REDELIVERING, REBURYING */
    struct us_pipe_load waits;  /* their turn has not come */
    struct us_pipe_load turned; /* it has */
    struct us_pipe_load halted; /* it has, and their session stands */
    uint64_t random;
    uint64_t now; /* the last one that was given: when a session is halted */
    struct us_pipe_counters counters;
};

/* Returns false when out of memory. Nothing is allocated for limits. */
bool us_pipe_init(struct us_pipe *pipe, const struct us_pipe_params *params);
/* Every record must have been forgotten. */
void us_pipe_destroy(struct us_pipe *pipe);
/* Makes room so that `more` records can enter without an allocation. False: out of memory, nothing changed. */
bool us_pipe_reserve(struct us_pipe *pipe, uint32_t more);

/* ---- coming in */

/* What a record is, apart from its memory. */
struct us_pipe_record {
    uint64_t space;    /* sessions of different spaces are different ones */
    uint64_t set;      /* lane set */
    const void *id;    /* borrowed */
    uint32_t id_len;
    uint32_t bytes;    /* of key and payload */
    uint64_t seq;      /* UNSALT_NO_SEQ */
    uint64_t epoch;    /* run of the producer that counts it */
    uint32_t part, generation;
};

/* Whether a record of this size may ever enter before its turn. */
bool us_pipe_fits_early(const struct us_pipe *pipe, uint64_t bytes);
/* Whether a record may enter whose turn has not come. */
bool us_pipe_room_early(const struct us_pipe *pipe, uint64_t bytes);
/*
 * How many records may get their turn now, as far as numbers go; of bytes, the caller stops at *bytes. 0: none. One
 * record may always exceed the bytes. *full_halted: it is the halted sessions that leave no room.
 */
uint64_t us_pipe_room(const struct us_pipe *pipe, uint64_t *bytes, bool *full_halted);

/* A record enters; its turn has not come. The room was reserved. `job` is overwritten. */
void us_pipe_enter(struct us_pipe *pipe, struct us_pipe_job *job, const struct us_pipe_record *record, uint64_t now);
/* Its turn has come: it is the next of its session. */
void us_pipe_turn(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now);

/* ---- phase 1 */

/* The record that is prepared next, RUNNING from now on; NULL: none. Its run has number job->run. */
struct us_pipe_job *us_pipe_next_prepare(struct us_pipe *pipe, uint64_t now);
/*
 * A run has returned. True: its result counts. False: nobody waits for it, or it took longer than its limit, which is
 * a failure: the caller discards the result, and counts how long it took, as it alone knows when it began
 * (us_pipe_count).
 */
bool us_pipe_prepared(struct us_pipe *pipe, struct us_pipe_job *job, uint32_t run, enum us_pipe_res res, uint64_t now);
/* Whether somebody waits for the run. */
bool us_pipe_wanted(const struct us_pipe_job *job, uint32_t run);
/*
 * Whether the call of a record that is RUNNING or DELIVERING has reached its time limit; else false. By the clock, for
 * us_pipe_expire() may be late: who calls it may be the one that is in the callback.
 */
bool us_pipe_is_overdue(const struct us_pipe *pipe, const struct us_pipe_job *job, uint64_t now);

/* ---- phase 2 */

/* The record to be delivered (DELIVERING) or buried (BURYING) next; NULL: none now. */
struct us_pipe_job *us_pipe_next_step(struct us_pipe *pipe, uint64_t now);
bool us_pipe_may_step(const struct us_pipe *pipe);
void us_pipe_delivered(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_res res, uint64_t now);
void us_pipe_buried(struct us_pipe *pipe, struct us_pipe_job *job, bool stored, uint64_t now);

/* ---- time */

uint64_t us_pipe_deadline(const struct us_pipe *pipe); /* UNSALT_NEVER */
void us_pipe_expire(struct us_pipe *pipe, uint64_t now);

/* ---- the application's word on a session that stands */

enum us_pipe_action { US_PIPE_TRY_AGAIN, US_PIPE_SKIP_IT, US_PIPE_BURY_IT };
/* False: no such session stands. */
bool us_pipe_resolve(struct us_pipe *pipe, uint64_t space, const void *id, uint32_t id_len, enum us_pipe_action action,
                     uint64_t now);

/* ---- generations */

/*
 * A partition of a lane set that goes as a whole: of its sessions, what was not started is cancelled, and everything
 * behind it; those before go on, but nothing is tried again.
 */
void us_pipe_stop(struct us_pipe *pipe, uint32_t part, uint32_t generation);
/*
 * Its generation is over. whole: its records, and orphans of lane set `set`, are cancelled (what runs is no longer
 * waited for; what is delivered ends as cancelled), and no session of the set is stopped any more. Else they become
 * orphans: still delivered, as later ones of their sessions are behind them. Records whose turn has not come:
 * us_pipe_cancel() by whoever gives them up.
 */
void us_pipe_leave(struct us_pipe *pipe, uint32_t part, uint32_t generation, uint64_t set, bool whole);
/* A record whose turn has not come is given up. */
void us_pipe_cancel(struct us_pipe *pipe, struct us_pipe_job *job);

/* ---- going out */

/* A record that has left, once; NULL: none. What is `untold` is to be told by the caller. */
struct us_pipe_job *us_pipe_take_done(struct us_pipe *pipe);
/* A record of which something is to be told, and that has not left; *what. NULL: none. */
struct us_pipe_job *us_pipe_take_notice(struct us_pipe *pipe, enum us_pipe_notice *what);
/*
 * The same of one record that was taken as done: what was not told before it left. That it was halted is no news then.
 */
enum us_pipe_notice us_pipe_take_untold(struct us_pipe_job *job);
/* The caller is through with it: its memory is the caller's again. It was told as done, and has no strays. */
void us_pipe_forget(struct us_pipe *pipe, struct us_pipe_job *job);

/* Counts everything anew. False: an invariant is broken. For tests: O(records). */
bool us_pipe_conserved(const struct us_pipe *pipe);

/* ---- inside */

/* pipeline_session.c: found or made (room was reserved), with one more reference. */
struct us_pipe_session *us_pipe_session_get(struct us_pipe *pipe, uint64_t space, const void *id, uint32_t id_len);
struct us_pipe_session *us_pipe_session_find(const struct us_pipe *pipe, uint64_t space, const void *id,
                                             uint32_t id_len);
void us_pipe_session_drop(struct us_pipe *pipe, struct us_pipe_session *session); /* one reference less */
bool us_pipe_sessions_reserve(struct us_pipe *pipe, uint32_t more);

/* pipeline.c */
void us_pipe_set_state(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_state state);
void us_pipe_finish(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_outcome outcome);
void us_pipe_tell(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_notice what);
void us_pipe_tell_not(struct us_pipe_job *job, enum us_pipe_notice what); /* it is no longer so */
void us_pipe_tell_slow(struct us_pipe *pipe, struct us_pipe_job *job);
void us_pipe_put_off(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_state state, uint32_t failures,
                     uint64_t now);
void us_pipe_count(struct us_pipe_times *times, uint64_t ns);

/* pipeline_prepare.c: into the queue; or parked, if its session stands or stops. */
void us_pipe_queue(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now);
void us_pipe_unqueue(struct us_pipe *pipe, struct us_pipe_job *job); /* it is in the queue */
void us_pipe_failed_late(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now); /* its run, by the limit */

/* pipeline_deliver.c: what the session does next, after its first record has changed. */
void us_pipe_settle(struct us_pipe *pipe, struct us_pipe_session *session);
/* Failed for good; or, if its session stops, for the last time before it is cancelled. */
void us_pipe_give_up(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_phase phase,
                     enum us_pipe_reason reason);

/* pipeline_halt.c */
void us_pipe_halt(struct us_pipe *pipe, struct us_pipe_session *session);
void us_pipe_halt_end(struct us_pipe *pipe, struct us_pipe_session *session); /* if it stands */

/* pipeline_revoke.c: cancels the record and everything behind it; its session stops. */
void us_pipe_cut(struct us_pipe *pipe, struct us_pipe_job *job);

static inline struct us_pipe_job *us_pipe_first(const struct us_pipe_session *session) {
    struct us_link *link = us_links_first(&session->turn);
    return link ? US_LINKED(link, struct us_pipe_job, of) : NULL;
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_CORE_H
#define UNSALT_CORE_H
/**
 * @file core.h
 * @brief EXPERIMENTAL: the ordering engine without Kafka. It includes no librdkafka, reads no clock, does no
 *        I/O and takes no lock. Define UNSALT_ENABLE_CORE_API before including it; it may change in any release.
 *
 * The life of a record: unsalt_core_push() takes it; it comes back exactly once, through `out` of the push or
 * through unsalt_core_pull(), with the ledger state that it ended in. What came back as RELEASED, LATE, STALE or
 * UNSEQUENCED is acknowledged with unsalt_core_ack(); everything else the core has acknowledged itself. What may
 * be committed for a partition is unsalt_core_position().
 *
 * Time is an argument: monotonic nanoseconds. A `now` that is smaller than an earlier one counts as that earlier
 * one (counted in unsalt_core_counters_t::clock_regressions). One core, one thread at a time.
 *
 * Validate, reserve, then mutate: a call that fails changes nothing, except that a batch push says how many
 * records it took before it stopped.
 */
#ifdef UNSALT_ENABLE_CORE_API

#include <stdbool.h>
#include <unsalt/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unsalt_core unsalt_core_t;

/** Results. Negative is an error. */
typedef enum unsalt_core_err {
    UNSALT_CORE_OK = 0,
    UNSALT_CORE_PULL = 1,    /**< push stopped early: pull releases (or events) first, then push the rest */
    UNSALT_CORE_BLOCKED = 2, /**< push stopped early: a budget with policy `block` refuses the next record */
    UNSALT_CORE_NOMEM = -1,  /**< an allocation failed; nothing of the refused record was taken */
    UNSALT_CORE_INVAL = -2,  /**< an argument is out of its range */
    UNSALT_CORE_FENCED = -3, /**< the generation is over */
    UNSALT_CORE_EXISTS = -4, /**< what should be opened is open */
    UNSALT_CORE_LIMIT = -5   /**< more than 65,535 partitions */
} unsalt_core_err_t;

/** Where an unknown session starts (DESIGN: first, seen, resume). */
typedef enum { UNSALT_START_FIRST, UNSALT_START_SEEN, UNSALT_START_RESUME } unsalt_start_t;
/** What happens to a late or stale record. */
typedef enum { UNSALT_LATE_DELIVER, UNSALT_LATE_DEAD_LETTER, UNSALT_LATE_DROP } unsalt_late_t;
/** What a due gap waits for: evidence (horizon) or nothing (wall). */
typedef enum { UNSALT_CLOCK_HORIZON, UNSALT_CLOCK_WALL } unsalt_gap_clock_t;
/** What happens when a budget is full. */
typedef enum { UNSALT_BUDGET_SKIP_GAP, UNSALT_BUDGET_BLOCK } unsalt_budget_policy_t;

/**
 * Parameters. Fill with unsalt_core_params_init(), then change what differs.
 */
typedef struct unsalt_core_params {
    size_t size;                    /**< sizeof(unsalt_core_params_t): set by init */
    unsalt_mem_t mem;               /**< allocator; init sets malloc(3) and friends */
    uint64_t hash_seed;             /**< secret seed of the session table; init sets 0: the caller draws one */
    uint64_t seq_first;             /**< number of a session's first record; default 1 */
    unsalt_start_t start;           /**< default RESUME */
    unsalt_late_t late;             /**< default DELIVER */
    uint16_t lanes;                 /**< S of records that say neither lanes nor since; 0 = unknown (default) */
    unsalt_gap_clock_t gap_clock;   /**< default HORIZON */
    uint64_t gap_timeout_ns;        /**< 0 = at once, UNSALT_NEVER = never; default 500 ms */
    uint64_t gap_stall_max_ns;      /**< reading time without progress of an owed partition; default 60 s */
    uint64_t gap_wait_max_ns;       /**< bound of the whole wait of a gap; default UNSALT_NEVER */
    uint64_t budget_records;        /**< records held in all, >= 1; default 1,000,000 */
    uint64_t budget_bytes;          /**< bytes held in all, >= 1; default 1 GiB */
    uint64_t session_budget_records;/**< records held per session, >= 1; default 1,000,000 */
    uint64_t session_budget_bytes;  /**< bytes held per session, >= 1; default 1 GiB */
    unsalt_budget_policy_t budget_policy; /**< default SKIP_GAP */
    uint64_t block_max_ns;          /**< policy BLOCK: the oldest gap gives way after this; default 30 s */
    uint32_t release_max;           /**< records of one session per turn of pull, >= 1; default 1,024 */
    uint64_t session_ttl_ns;        /**< idle sessions without held records expire; default 1 h; UNSALT_NEVER */
    uint32_t sessions_max;          /**< sessions in memory, >= 1: above, the idlest goes; default 4,000,000 */
    uint32_t remembered_max;        /**< cursors of expired sessions remembered compactly; default 1,000,000 */
    uint32_t skips_max;             /**< skipped ranges remembered per session, >= 1; default 32 */
    uint32_t session_id_max;        /**< longest session id in bytes, 1..4096; default 256 */
    uint32_t restart_k;             /**< consecutive records that reveal a restart backwards, >= 2; default 5 */
    uint64_t restart_quiet_ns;      /**< or a silence of this length after the first of them; default 1 s */
} unsalt_core_params_t;

/** Kinds of what is pushed. */
typedef enum {
    UNSALT_KIND_SEQUENCED,   /**< session, seq are set */
    UNSALT_KIND_UNSEQUENCED, /**< passes through in partition order */
    UNSALT_KIND_CONTROL      /**< marker or heartbeat: counted, comes back as CONTROL */
} unsalt_kind_t;

/** One record on its way in. `session` is borrowed during the push; `msg` is given back by push or pull. */
typedef struct unsalt_core_in {
    void *msg;           /**< the caller's handle, passed through; may be NULL */
    const void *session; /**< session id, 1..session_id_max bytes, for kind SEQUENCED */
    uint32_t session_len;
    uint32_t part;       /**< index returned by unsalt_core_assign() */
    uint64_t seq;        /**< seq_first..UINT64_MAX-1 */
    uint64_t epoch;      /**< 0 = the producer doesn't number its runs */
    uint64_t since;      /**< first number to which `lanes` applies; UNSALT_NO_SEQ = unknown: the configured S is
                              assumed, if there is one; with lanes 0 any other value: don't assume it */
    uint64_t una;        /**< lowest number unresolved when this one was stamped; UNSALT_NO_SEQ = unknown */
    int64_t offset;      /**< offset in the partition, 0..INT64_MAX-1, ascending within a generation */
    int64_t timestamp;   /**< creation time in ms of the record; < 0 unknown. Only told apart: copy or restart */
    uint32_t bytes;      /**< estimate of the memory that the record pins while it is held */
    uint16_t lane;       /**< lane, < lanes; ignored when lanes is 0 */
    uint16_t lanes;      /**< number of lanes of the session; 0 = unknown */
    uint16_t flags;      /**< UNSALT_F_* */
    uint16_t kind;       /**< unsalt_kind_t */
} unsalt_core_in_t;

/** One record on its way out. */
typedef struct unsalt_core_out {
    void *msg;
    uint64_t seq;        /**< UNSALT_NO_SEQ if it has none */
    uint64_t waited_ns;  /**< from the push that took it to the call that gave it out */
    uint64_t ticket;     /**< for unsalt_core_ack() */
    uint32_t part;
    uint32_t generation; /**< of the assignment, for unsalt_core_ack() */
    uint16_t state;      /**< unsalt_state_t */
    uint16_t flags;      /**< UNSALT_F_* | UNSALT_OUT_* */
    uint16_t lane;       /**< lane it was filed under: its own if known, else its source's */
    uint16_t reserved;
} unsalt_core_out_t;
/** Set in unsalt_core_out_t::flags of the first record above a gap that was given up. */
#define UNSALT_OUT_AFTER_GAP 0x8000u
/** Set for a record of a run that is over, whatever the policy made of it: tells stale from late. */
#define UNSALT_OUT_STALE 0x4000u

/** Events of the core. X(CONSTANT, name, text). */
#define UNSALT_CORE_EVENTS(X)                                                                       \
    X(GAP, gap, "a range of numbers was given up: first..last, reason, waited")                     \
    X(LATE, late, "a record below the cursor that was never released")                              \
    X(STALE, stale, "a record of an epoch that is over")                                            \
    X(DUPLICATE, duplicate, "a copy was dropped")                                                   \
    X(EPOCH, epoch, "a higher epoch took over: first = old cursor, last = new cursor")              \
    X(RESTART, restart, "the producer went back without a higher epoch; first = new, last = old cursor") \
    X(START, start, "a session was joined in the middle at first")                                  \
    X(BUDGET, budget, "a budget is full: first = which, count = held records")                                    \
    X(BELOW_FIRST, below_first, "a number below seq.first or reserved: passed on as unsequenced")   \
    X(OVERSIZED, oversized, "a session id over session.id.max: passed on as unsequenced")           \
    X(OFFSET_BACK, offset_back, "an offset at or below one already read: fenced")                   \
    X(FORGOTTEN, forgotten, "cursors of the set were forgotten: its unknown sessions start by `seen`")

typedef enum unsalt_core_event_type {
#define X(C, name, text) UNSALT_CORE_EV_##C,
    UNSALT_CORE_EVENTS(X)
#undef X
    UNSALT_CORE_EV__CNT
} unsalt_core_event_type_t;

typedef struct unsalt_core_event {
    unsalt_core_event_type_t type;
    unsalt_gap_reason_t reason; /**< for GAP */
    const void *session;        /**< valid until the next call into the core; NULL if none */
    uint32_t session_len;
    uint32_t part;              /**< partition concerned, UINT32_MAX if none in particular */
    int64_t offset;             /**< of the record concerned, -1 if none */
    uint64_t epoch;
    uint64_t first, last;       /**< range of numbers, both included; see the event's text */
    uint64_t waited_ns;         /**< how long the gap was open */
    uint64_t count;
    int32_t lane;               /**< -1 unknown */
} unsalt_core_event_t;

/** Counters: a copy of the core's, cheap to take. */
typedef struct unsalt_core_counters {
    uint64_t received;
    uint64_t state[UNSALT_STATE__CNT]; /**< sums up to received, always; READY stays 0 in the core */
    uint64_t held_bytes;
    uint64_t gaps[UNSALT_GAP__CNT];    /**< gaps given up, by reason */
    uint64_t gap_numbers[UNSALT_GAP__CNT]; /**< numbers in them (saturating) */
    uint64_t gaps_open;                /**< sessions that wait for a number now */
    uint64_t sessions, sessions_created, sessions_expired, sessions_remembered;
    uint64_t restarts, epochs, starts_seen;
    uint64_t budget_full[UNSALT_BUDGET__CNT]; /**< times that a record found the budget full */
    uint64_t in_order;                 /**< released without having been held */
    uint64_t irregular;                /**< held outside their lane's order */
    uint64_t questions, answers;       /**< horizon questions asked for, and answered */
    uint64_t clock_regressions;
    uint64_t partitions;               /**< assigned now */
    uint64_t unacked;                  /**< given out, not acknowledged, in live generations */
} unsalt_core_counters_t;

/** A partition to be assigned. */
typedef struct unsalt_core_partition {
    uint32_t set;         /**< lane set: sessions are one per (set, id); any number the caller likes */
    uint32_t set_size;    /**< partitions the set must have before its sessions are released; 0 = don't wait */
    int32_t lane;         /**< lane that the partition carries for every session of the set; -1 = any */
    int64_t start_offset; /**< where reading begins, >= 0; -1 = unknown: counts as the middle of the log */
    int64_t log_start;    /**< first offset of the log; -1 unknown. Reading from there on misses nothing that exists */
} unsalt_core_partition_t;

/** Fills `params` with the defaults named above. */
UNSALT_EXPORT void unsalt_core_params_init(unsalt_core_params_t *params);

/**
 * @param params borrowed; every value is checked against its range.
 * @param errstr receives the reason on failure (borrowed, may be NULL with size 0).
 * @returns a new core, or NULL: a value out of range, or out of memory.
 */
UNSALT_EXPORT unsalt_core_t *unsalt_core_new(const unsalt_core_params_t *params, char *errstr, size_t errstr_size);

/**
 * Frees the core. Records that it still holds are lost to the caller: revoke every partition and pull until
 * nothing comes before, if their `msg` must be released. NULL is allowed.
 */
UNSALT_EXPORT void unsalt_core_destroy(unsalt_core_t *core);

/**
 * Opens a partition under a new generation.
 * @returns its index, >= 0, smallest free first; UNSALT_CORE_NOMEM, UNSALT_CORE_INVAL (start_offset < -1,
 *          set_size > 65,535) or UNSALT_CORE_LIMIT.
 */
UNSALT_EXPORT int unsalt_core_assign(unsalt_core_t *core, const unsalt_core_partition_t *partition);

/**
 * Takes a partition away: what is held from it comes out of the next pulls as REVOKED, its generation ends, its
 * index is free for the next assignment. Sessions of the set that keep other partitions start again as if they
 * had been joined in the middle; with the last partition of a set its sessions are forgotten.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL (not assigned); UNSALT_CORE_NOMEM: nothing changed, try again.
 */
UNSALT_EXPORT int unsalt_core_revoke(unsalt_core_t *core, uint32_t part, uint64_t now);

/** @returns the generation of an assigned partition; 0 = not assigned. */
UNSALT_EXPORT uint32_t unsalt_core_generation(const unsalt_core_t *core, uint32_t part);

/**
 * Takes records of one or several partitions, in partition order.
 * @param in    `n` records, borrowed; sessions too.
 * @param out   room for at least `n` records: what leaves at once (in order, duplicate, unsequenced, ...) is
 *              written here, in the order in which it is to be used.
 * @param n_out set to the number written.
 * @param status set to UNSALT_CORE_OK, or why it stopped before the end: UNSALT_CORE_PULL, UNSALT_CORE_BLOCKED,
 *              UNSALT_CORE_NOMEM, UNSALT_CORE_INVAL (kind, partition or lane out of range).
 * @returns the number of records taken; the rest is untouched and stays the caller's.
 * The records of `out` come after everything that earlier pulls gave out, before what later ones give.
 */
UNSALT_EXPORT size_t unsalt_core_push(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, uint64_t now,
                                      unsalt_core_out_t *out, size_t *n_out, int *status);

/**
 * Gives out up to `max` records whose turn has come. Sessions take turns of at most release_max records.
 * @returns how many were written to `out`; fewer than `max` only if nothing more is releasable.
 */
UNSALT_EXPORT size_t unsalt_core_pull(unsalt_core_t *core, uint64_t now, unsalt_core_out_t *out, size_t max);

/**
 * Moves events to `ev`; push and expire stop early while the queue of events is full (256), so none is lost.
 * @returns how many; their session ids stay valid until the next call into the core.
 */
UNSALT_EXPORT size_t unsalt_core_events(unsalt_core_t *core, unsalt_core_event_t *ev, size_t max);

/**
 * @returns the time at which unsalt_core_expire() should be called next, a lower bound; UNSALT_NEVER if only an
 *          arrival, an answer or a pull can change anything. 0 = at once.
 */
UNSALT_EXPORT uint64_t unsalt_core_deadline(const unsalt_core_t *core);

/** Gives up what is due and proven by now. Bounded work: call again while unsalt_core_deadline() <= now. */
UNSALT_EXPORT void unsalt_core_expire(unsalt_core_t *core, uint64_t now);

/**
 * The application is done with a record. O(1), any order.
 * @returns UNSALT_CORE_OK (also when it was acknowledged before), or UNSALT_CORE_FENCED: the generation is over,
 *          nothing was touched; UNSALT_CORE_INVAL: a ticket that doesn't exist. Tickets of records that are still
 *          held exist, but only those that were given out may be acknowledged: that is the caller's part.
 */
UNSALT_EXPORT int unsalt_core_ack(unsalt_core_t *core, uint32_t part, uint32_t generation, uint64_t ticket);

/** @returns the offset that may be committed: everything below is acknowledged; -1 if not assigned or unknown. */
UNSALT_EXPORT int64_t unsalt_core_position(const unsalt_core_t *core, uint32_t part);

/** Reading has reached the end of the log at `offset` (an end-of-partition event). Feeds position and horizon. */
UNSALT_EXPORT void unsalt_core_eof(unsalt_core_t *core, uint32_t part, int64_t offset, uint64_t now);

/**
 * Which partitions should be asked for their end now: gaps are due whose verdict needs it. Each is given once
 * until it is answered or its failure is reported, so a question serves all gaps that were due before it.
 * @returns how many were written to `parts`. The question counts as sent at `now`.
 */
UNSALT_EXPORT size_t unsalt_core_questions(unsalt_core_t *core, uint64_t now, uint32_t *parts, size_t max);

/**
 * The leader's answer to a question: the end of the log, uncommitted records included. The horizon of the
 * partition becomes the time the question was sent once reading has passed `end`.
 * @param generation of the partition when the question was taken; an old one is ignored.
 * @param end  >= 0; or -1: the question failed and may be asked again.
 */
UNSALT_EXPORT void unsalt_core_answer(unsalt_core_t *core, uint32_t part, uint32_t generation, int64_t end,
                                      uint64_t now);

/** States a partition's horizon directly: everything that stood in it at `t` was pushed. Never goes back. */
UNSALT_EXPORT void unsalt_core_horizon(unsalt_core_t *core, uint32_t part, uint64_t t, uint64_t now);

/** Reading stops (the application has control) or goes on: only reading time counts for `stalled`. */
UNSALT_EXPORT void unsalt_core_reading(unsalt_core_t *core, bool on, uint64_t now);
/** The application paused or resumed a partition: a paused one never stalls. */
UNSALT_EXPORT void unsalt_core_pause(unsalt_core_t *core, uint32_t part, bool paused, uint64_t now);

/** Whether a partition should be read now. */
typedef enum {
    UNSALT_READ_OWED, /**< it may hold a lowest missing number: read it first */
    UNSALT_READ_FREE, /**< read it */
    UNSALT_READ_AHEAD /**< more than half a budget is used and others are owed: leave it unread */
} unsalt_read_t;
/** Writes the advice for every partition index < n to `advice`. Cheap while less than half a budget is used. */
UNSALT_EXPORT void unsalt_core_read_advice(unsalt_core_t *core, unsalt_read_t *advice, size_t n);

/** Gives up every open gap (reason `flush`); the records come by pull. Bounded by the room for events. */
UNSALT_EXPORT void unsalt_core_flush(unsalt_core_t *core, uint64_t now);

/** Copies the counters. */
UNSALT_EXPORT void unsalt_core_counters(const unsalt_core_t *core, unsalt_core_counters_t *counters);
/** @returns true if every record received is in exactly one state. */
UNSALT_EXPORT bool unsalt_core_conserved(const unsalt_core_t *core);

/** @returns the name of an event ("gap"), or "?". */
UNSALT_EXPORT const char *unsalt_core_event_name(unsalt_core_event_type_t type);

#ifdef __cplusplus
}
#endif
#endif
#endif

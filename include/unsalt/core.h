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
 * UNSEQUENCED is acknowledged with unsalt_core_ack() or unsalt_core_ack_batch(); everything else the core has
 * acknowledged itself. What may be committed for a partition is unsalt_core_position().
 *
 * Time is an argument: monotonic nanoseconds. A `now` that is smaller than an earlier one counts as a nanosecond after
 * the last one (counted in unsalt_core_counters_t::clock_regressions). One core, one thread at a time.
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

/** A core. Opaque. */
typedef struct unsalt_core unsalt_core_t;

/** Results. Negative is an error. */
typedef enum unsalt_core_err {
    UNSALT_CORE_OK = 0,
    UNSALT_CORE_PULL = 1,    /**< push stopped early: pull releases (or events) first, then push the rest */
    UNSALT_CORE_BLOCKED = 2, /**< push stopped early: a full budget refuses the next record for a while */
    UNSALT_CORE_FULL = 3,    /**< push stopped early: a full budget with policy `fail` refuses the next record until
                                  room is made, by unsalt_core_flush() for example */
    UNSALT_CORE_NOMEM = -1,  /**< an allocation failed; nothing of the refused record was taken */
    UNSALT_CORE_INVAL = -2,  /**< an argument is out of its range */
    UNSALT_CORE_FENCED = -3, /**< the generation is over */
    UNSALT_CORE_EXISTS = -4, /**< what should be opened is open */
    UNSALT_CORE_LIMIT = -5   /**< more than 65,535 partitions */
} unsalt_core_err_t;

/** Where an unknown session starts (`start`). */
typedef enum { UNSALT_START_FIRST, UNSALT_START_SEEN, UNSALT_START_RESUME } unsalt_start_t;
/** What happens to a late or stale record. */
typedef enum { UNSALT_LATE_DELIVER, UNSALT_LATE_DEAD_LETTER, UNSALT_LATE_DROP } unsalt_late_t;
/** What happens to a record whose sequence or session can't be used. */
typedef enum { UNSALT_MALFORMED_DELIVER, UNSALT_MALFORMED_DEAD_LETTER } unsalt_malformed_t;
/** What a due gap waits for: evidence (horizon) or nothing (wall). */
typedef enum { UNSALT_CLOCK_HORIZON, UNSALT_CLOCK_WALL } unsalt_gap_clock_t;
/** What is taken as proof that a number was lost (verdict `proven`). */
typedef enum {
    UNSALT_PROOF_OFF,  /**< nothing */
    UNSALT_PROOF_AUTO, /**< `una` above it, shown by its lane */
    UNSALT_PROOF_TRUST /**< a higher number too, shown by its lane, or by every partition if the lane is unknown */
} unsalt_gap_proof_t;
/** What happens when a budget is full. */
typedef enum {
    UNSALT_BUDGET_SKIP_GAP,    /**< the oldest gap gives way, reason `overflow` */
    UNSALT_BUDGET_BLOCK,       /**< the arriving record is refused; after block_max_ns the oldest gap gives way */
    UNSALT_BUDGET_DEAD_LETTER, /**< the arriving record comes back as DEAD_LETTERED, flag UNSALT_OUT_BUDGET: nobody
                                    waits for its number, and a copy that comes later is late. A full `window`, which
                                    that would not relieve, is treated as by SKIP_GAP */
    UNSALT_BUDGET_FAIL         /**< the arriving record is refused (UNSALT_CORE_FULL) until there is room */
} unsalt_budget_policy_t;

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
    unsalt_malformed_t malformed;   /**< default DELIVER; also for numbers below seq_first and ids over the limit */
    uint16_t lanes;                 /**< S of records that say neither lanes nor since; 0 = unknown (default) */
    unsalt_gap_clock_t gap_clock;   /**< default HORIZON */
    unsalt_gap_proof_t gap_proof;   /**< default AUTO */
    uint64_t gap_timeout_ns;        /**< 0 = at once, UNSALT_NEVER = never; default 500 ms */
    uint64_t gap_stall_max_ns;      /**< reading time without progress of an owed partition; default 60 s */
    uint64_t question_min_ns;       /**< a partition's leader is asked once in this at most; default 10 ms */
    uint64_t gap_wait_max_ns;       /**< bound of the whole wait of a gap; default UNSALT_NEVER */
    uint64_t budget_records;        /**< records held in all, >= 1; default 1,000,000 */
    uint64_t budget_bytes;          /**< bytes held in all, >= 1; default 1 GiB */
    uint64_t session_budget_records;/**< records held per session, >= 1; default 1,000,000 */
    uint64_t session_budget_bytes;  /**< bytes held per session, >= 1; default 1 GiB */
    uint64_t budget_window;         /**< tickets of a partition from the oldest that is not acknowledged on,
                                         1..2^31; default 16,777,216. A bit each, and 16 bytes a jump of offsets */
    unsalt_budget_policy_t budget_policy; /**< default SKIP_GAP */
    uint64_t block_max_ns;          /**< policy BLOCK: the oldest gap gives way after this; default 30 s */
    uint32_t release_max;           /**< records of one session per turn of pull, >= 1; default 1,024 */
    uint64_t session_ttl_ns;        /**< idle sessions without held records expire; >= 1 ms; default 1 h; NEVER */
    uint32_t sessions_max;          /**< sessions in memory, >= 1: above, the idlest goes; default 4,000,000 */
    uint32_t remembered_max;        /**< cursors of expired and restored sessions remembered compactly, half of them for
                                         certain; default 4,000,000 */
    uint32_t skips_max;             /**< skipped ranges remembered per session, >= 1; default 32 */
    uint32_t session_id_max;        /**< longest session id in bytes, 1..4096; default 256 */
    uint32_t restart_k;             /**< consecutive records that reveal a restart backwards, >= 2; default 5 */
    uint64_t restart_quiet_ns;      /**< or a silence of this length after the first of them; default 1 s */
    bool cursors;                   /**< keep what unsalt_core_cursors_begin() needs: 24 bytes for each ticket of a
                                         partition's window, and sessions stay in memory until their change was taken
                                         and kept; default false */
} unsalt_core_params_t;

/** Kinds of what is pushed. */
typedef enum {
    UNSALT_KIND_SEQUENCED,   /**< session, seq are set */
    UNSALT_KIND_UNSEQUENCED, /**< passes through in partition order */
    UNSALT_KIND_CONTROL,     /**< marker or heartbeat: counted, comes back as CONTROL. With flag MARKER, session and
                                  seq set, the numbers since..seq of this epoch will never come */
    UNSALT_KIND_MALFORMED    /**< as UNSEQUENCED, or to the dead letters, as `malformed` says */
} unsalt_kind_t;

/** One record on its way in. `session` is borrowed during the push; `msg` is given back by push or pull. */
typedef struct unsalt_core_in {
    void *msg;           /**< the caller's handle, passed through; may be NULL */
    const void *session; /**< session id, 1..session_id_max bytes, for kind SEQUENCED */
    uint32_t session_len; /**< in bytes */
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
/**
 * Set in unsalt_core_in_t::flags to rehearse trouble. AGAIN: the record takes no place of its own in the log, so its
 * offset may be one that was read before. FULL: if it needs room, it finds the budget `records` full.
 */
#define UNSALT_IN_AGAIN 0x1000u
#define UNSALT_IN_FULL 0x0800u /**< see UNSALT_IN_AGAIN */

/** One record on its way out. */
typedef struct unsalt_core_out {
    void *msg;           /**< the caller's handle, as it was pushed */
    uint64_t seq;        /**< UNSALT_NO_SEQ if it has none */
    uint64_t waited_ns;  /**< from the push that took it to the call that gave it out */
    uint64_t ticket;     /**< for unsalt_core_ack() */
    uint32_t part;       /**< partition that it came from */
    uint32_t generation; /**< of the assignment, for unsalt_core_ack() */
    uint16_t state;      /**< unsalt_state_t */
    uint16_t flags;      /**< UNSALT_F_* | UNSALT_OUT_* */
    uint16_t lane;       /**< lane it was filed under: its own if known, else its source's */
    uint16_t reserved;   /**< 0 */
} unsalt_core_out_t;
/** Set in unsalt_core_out_t::flags of the first record above a gap that was given up. */
#define UNSALT_OUT_AFTER_GAP 0x8000u
/** Set for a record of a run that is over, whatever the policy made of it: tells stale from late. */
#define UNSALT_OUT_STALE 0x4000u
/** Set for a record that went to the dead letters because it was malformed. */
#define UNSALT_OUT_MALFORMED 0x2000u
/** Set for a record that was dead-lettered because a budget was full. */
#define UNSALT_OUT_BUDGET 0x1000u

/** Events of the core. X(CONSTANT, name, text). */
#define UNSALT_CORE_EVENTS(X)                                                                       \
    X(GAP, gap, "a range of numbers was given up: first..last, reason, waited")                     \
    X(LATE, late, "a record below the cursor that was never released")                              \
    X(STALE, stale, "a record of an epoch that is over")                                            \
    X(DUPLICATE, duplicate, "a copy was dropped")                                                   \
    X(EPOCH, epoch, "a higher epoch took over: first = old cursor, last = new cursor")              \
    X(RESTART, restart, "the producer went back without a higher epoch; first = new, last = old cursor") \
    X(START, start, "a session was joined in the middle at first")                                  \
    X(BUDGET, budget, "a budget is full: first = which, last = outcome, count = held records")      \
    X(BELOW_FIRST, below_first, "a number below seq.first or reserved: taken as malformed")         \
    X(OVERSIZED, oversized, "a session id over session.id.max: taken as malformed")                 \
    X(OFFSET_BACK, offset_back, "an offset at or below one already read: fenced")                   \
    X(PROOF_OFF, proof_off, "the premise of proof is broken: for this run of the session no gap is proven any more") \
    X(FORGOTTEN, forgotten, "cursors of the set were forgotten: its unknown sessions start by `seen`")

/** Type of an event of the core. */
typedef enum unsalt_core_event_type {
#define X(C, name, text) UNSALT_CORE_EV_##C,
    UNSALT_CORE_EVENTS(X)
#undef X
    UNSALT_CORE_EV__CNT /**< how many there are */
} unsalt_core_event_type_t;

/** An event of the core. Fields that don't apply are NULL, -1 or 0. */
typedef struct unsalt_core_event {
    unsalt_core_event_type_t type; /**< what happened */
    unsalt_gap_reason_t reason; /**< for GAP */
    const void *session;        /**< valid until the next call into the core; NULL if none */
    uint32_t session_len;          /**< in bytes */
    uint32_t part;              /**< partition concerned, UINT32_MAX if none in particular */
    int64_t offset;             /**< of the record concerned, -1 if none */
    uint64_t epoch;                /**< run of the producer */
    uint64_t first;             /**< range of numbers, both included; see the event's text */
    uint64_t last;              /**< its end */
    uint64_t waited_ns;         /**< how long the gap was open */
    uint64_t overdue_ns;        /**< of a GAP by timeout or stalled: how long it had been due; `part` is then the
                                     partition that it waited for last, unless the number's own is known. Of one that
                                     is `resumed`: how long it had been due; 0 = it wasn't */
    uint64_t count;                /**< see the event's text */
    int32_t lane;               /**< -1 unknown */
} unsalt_core_event_t;

/** Counters: a copy of the core's, cheap to take. */
typedef struct unsalt_core_counters {
    uint64_t received;                 /**< records that came in */
    uint64_t state[UNSALT_STATE__CNT]; /**< sums up to received, always; READY stays 0 in the core */
    uint64_t held_bytes;               /**< bytes that held records pin now, estimated */
    uint64_t pinned_bytes;             /**< as unsalt_core_pinned() has told */
    uint64_t gaps[UNSALT_GAP__CNT];    /**< gaps given up, by reason */
    uint64_t gap_numbers[UNSALT_GAP__CNT]; /**< numbers in them (saturating) */
    uint64_t gaps_open;                /**< sessions that wait for a number now */
    uint64_t sessions;                 /**< in memory now */
    uint64_t sessions_created;         /**< that came into memory */
    uint64_t sessions_expired;         /**< idle ones that left it */
    uint64_t sessions_remembered;      /**< that left it and whose cursor is remembered now */
    uint64_t restarts;                 /**< producers that went back without a higher epoch */
    uint64_t epochs;                   /**< sessions that a higher epoch took over */
    uint64_t starts_seen;              /**< sessions joined in the middle */
    uint64_t proofs_off;               /**< runs of sessions whose premise of proof was found broken */
    uint64_t budget_full[UNSALT_BUDGET__CNT]; /**< times that a record found the budget full */
    uint64_t budget_outcome[UNSALT_BUDGET__CNT][UNSALT_OUTCOME__CNT]; /**< and what came of it */
    uint64_t in_order;                 /**< released without having been held */
    uint64_t irregular;                /**< held outside their lane's order */
    uint64_t questions;                /**< horizon questions asked for */
    uint64_t answers;                  /**< of those, answered */
    uint64_t overdue_count[UNSALT_WAIT_BUCKETS]; /**< gaps given up as `timeout`, by how long after their due time */
    uint64_t overdue_sum_ns;           /**< sum of what overdue_count counts */
    uint64_t clock_regressions;        /**< times that the clock went back */
    uint64_t partitions;               /**< assigned now */
    uint64_t unacked;                  /**< given out, not acknowledged, in live generations */
    uint64_t cursors_changed;          /**< sessions whose cursor has changed since it was taken, now */
    uint64_t cursors_restored;         /**< cursors that unsalt_core_restore() took */
    uint64_t done_before;              /**< of the duplicates: records that the last owner had done already */
} unsalt_core_counters_t;

/** Numbers or offsets first..last, both included. */
typedef struct unsalt_core_range {
    uint64_t first; /**< <= last */
    uint64_t last;  /**< its end */
} unsalt_core_range_t;

/** A partition to be assigned. */
typedef struct unsalt_core_partition {
    uint32_t set;         /**< lane set: sessions are one per (set, id); any number the caller likes */
    uint32_t set_size;    /**< partitions the set must have before its sessions are released; 0 = don't wait */
    int32_t lane;         /**< lane that the partition carries for every session of the set; -1 = any */
    int64_t start_offset; /**< where reading begins, >= 0; -1 = unknown: counts as the middle of the log */
    int64_t log_start;    /**< first offset of the log; -1 unknown. Reading from there on misses nothing that exists */
} unsalt_core_partition_t;

/**
 * What of a session is done, as a commit has to carry it beside the positions. A number of the run `epoch` is done if
 * it is below `cursor` or in `done`: acknowledged, dropped, or given up. The ranges are ascending and apart.
 */
typedef struct unsalt_core_cursor {
    const void *session;  /**< id */
    uint32_t session_len; /**< in bytes */
    uint32_t set;         /**< lane set, as given to unsalt_core_assign() */
    uint64_t epoch;       /**< run of the producer */
    uint64_t cursor;      /**< the lowest number that isn't done */
    uint64_t floor;       /**< <= cursor: below it nobody knows any more which numbers were given up; 0 = known */
    const unsalt_core_range_t *done;    /**< above the cursor */
    const unsalt_core_range_t *skipped; /**< given up, below or above the cursor: a record of these is late */
    uint32_t done_count;    /**< of `done` */
    uint32_t skipped_count; /**< of `skipped` */
} unsalt_core_cursor_t;

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
 *              UNSALT_CORE_FULL, UNSALT_CORE_NOMEM, UNSALT_CORE_INVAL (kind, partition or lane out of range).
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

/**
 * The application is done with all of these: as unsalt_core_ack() for each of out[0..n-1] that was handed out
 * (unsalt_state_handed_out()); the others are passed over, so what a push or a pull wrote may be given as it is.
 * Tickets of a partition that follow each other cost less together. O(n), any order.
 * @param out what push or pull wrote; read only, and not kept. Of each `state`, `part`, `generation` and `ticket`
 *        count
 * @param n how many; 0 is allowed
 * @returns for how many unsalt_core_ack() would have said UNSALT_CORE_OK. One that it would have refused changes
 *          nothing for the others.
 */
UNSALT_EXPORT size_t unsalt_core_ack_batch(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n);

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

/** Why the horizon of a partition stands where it is. X(CONSTANT, name, text). */
#define UNSALT_STANDS(X)                                                                            \
    X(NOTHING, nothing, "nothing waits for it")                                                     \
    X(INCOMPLETE, incomplete, "its lane set is not complete here")                                  \
    X(CURSORS, cursors, "the cursors of its lane set are being read")                               \
    X(PAUSED, paused, "the application has paused it")                                              \
    X(REFUSED, refused, "a budget refuses its next record, so it isn't read")                       \
    X(STALLED, stalled, "it has shown nothing for gap.stall.max.ms: it isn't waited for any more")  \
    X(BEHIND, behind, "reading has not reached the end that its leader told")                       \
    X(ASKED, asked, "its leader was asked for the end and has not answered yet")                    \
    X(TO_ASK, to_ask, "its leader will be asked for the end")

/** Where a partition stands. */
typedef enum unsalt_stand {
#define X(C, name, text) UNSALT_STAND_##C,
    UNSALT_STANDS(X)
#undef X
    UNSALT_STAND__CNT /**< how many there are */
} unsalt_stand_t;

/** What is known of a partition's horizon. Times are those of the core. */
typedef struct unsalt_core_horizon_info {
    unsalt_stand_t stand; /**< what stands between it and its horizon */
    uint64_t reached;    /**< the horizon: everything that stood in the partition then was pushed; 0 = none yet */
    uint64_t needed;     /**< the latest due time that waits, or waited, for it; 0 = none */
    uint64_t waiting;    /**< gaps and starts that wait for this partition first */
    uint64_t asked;      /**< when its leader was asked last; 0 = never */
    int64_t read;        /**< everything below this offset was pushed; -1 unknown */
    int64_t end;         /**< the nearest end that the leader told and reading has not reached; -1 = none */
} unsalt_core_horizon_info_t;

/** @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: not assigned. Reads only. */
UNSALT_EXPORT int unsalt_core_horizon_info(const unsalt_core_t *core, uint32_t part, unsalt_core_horizon_info_t *info);

/** What is known of a session: why it waits. Times are those of the core. */
typedef struct unsalt_core_session_info {
    uint64_t epoch;      /**< run of the producer */
    uint64_t cursor;     /**< the next number it releases; UNSALT_NO_SEQ while its start is being found out */
    uint64_t lowest;     /**< the lowest number held; UNSALT_NO_SEQ = none. cursor..lowest-1 is missing */
    uint64_t held;       /**< records held */
    uint64_t held_bytes; /**< bytes that they pin, estimated */
    uint64_t opened;     /**< when the earliest held record arrived; UNSALT_NEVER = none */
    uint64_t due;        /**< when the gap falls, or fell, due; while starting: until when records that may be on their
                              way are waited for; UNSALT_NEVER = no gap, or never */
    uint64_t later_runs; /**< later epochs that wait for this one to end */
    uint32_t waits_for;  /**< the partition whose horizon it waits for first; UINT32_MAX = none: not due, or no gap */
    uint16_t lanes;      /**< S of what is missing, if it is known; 0 = unknown */
    bool starting;       /**< its start is being found out */
    bool ready;          /**< it has records to release */
    bool ending;         /**< its epoch is over */
    bool proof_off;      /**< the premise of proof is broken */
} unsalt_core_session_info_t;

/**
 * @param set as it was given to unsalt_core_assign(). `session` is borrowed.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: no such session in memory. Reads only.
 */
UNSALT_EXPORT int unsalt_core_session_info(const unsalt_core_t *core, uint32_t set, const void *session,
                                           uint32_t session_len, unsalt_core_session_info_t *info);
/** @returns the name of a stand ("behind"), or "?". */
UNSALT_EXPORT const char *unsalt_stand_name(unsalt_stand_t stand);
/** @returns what it means, in words, or "?". */
UNSALT_EXPORT const char *unsalt_stand_text(unsalt_stand_t stand);

/** Whether a partition should be read now. */
typedef enum {
    UNSALT_READ_OWED, /**< it may hold a lowest missing number: read it first */
    UNSALT_READ_FREE, /**< read it */
    UNSALT_READ_AHEAD /**< much is held and others are owed: leave it unread */
} unsalt_read_t;
/**
 * Writes the advice for every partition index < n to `advice`. Reading becomes selective above half of the records or
 * bytes that may be held in all, and stays so until a quarter of both is reached, so that advice doesn't flap; until
 * then it is cheap. A partition that is left unread on this advice doesn't count as stalled.
 */
UNSALT_EXPORT void unsalt_core_read_advice(unsalt_core_t *core, unsalt_read_t *advice, size_t n);

/** Gives up every open gap (reason `flush`); the records come by pull. Bounded by the room for events. */
UNSALT_EXPORT void unsalt_core_flush(unsalt_core_t *core, uint64_t now);

/**
 * What held records pin beyond their own bytes: records that have passed, in buffers that they share with held ones. It
 * counts for the budget `bytes` from now on, and for no session.
 */
UNSALT_EXPORT void unsalt_core_pinned(unsalt_core_t *core, uint64_t bytes);

/*
 * Checkpoints: what a commit carries so that the next owner goes on where this one was, and not only from the
 * committed offsets on. A commit takes the cursors that have changed (begin, next until it returns 0), the positions
 * and what is done beyond them, all without another call in between; writes them as one; and says by end whether they
 * were kept. The next owner gives what is done to unsalt_core_done_before() and the cursors to unsalt_core_restore(),
 * before it pushes the first record of the lane set.
 */

/**
 * Begins to take cursors, if params.cursors is set. What changes after this call belongs to the next time.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: not kept (params), or the last ones were not ended; UNSALT_CORE_NOMEM:
 *          nothing changed.
 */
UNSALT_EXPORT int unsalt_core_cursors_begin(unsalt_core_t *core);
/**
 * Takes the next cursor that has changed. Sessions whose start is still being found out have none.
 * @param cursor filled; what it points to is valid until the next call into the core.
 * @returns 1; 0: no more; UNSALT_CORE_NOMEM: call again, or end with false; UNSALT_CORE_INVAL: nothing was begun.
 */
UNSALT_EXPORT int unsalt_core_cursors_next(unsalt_core_t *core, unsalt_core_cursor_t *cursor);
/** Ends it. kept: the cursors taken stand in a checkpoint now; else they count as changed again. */
UNSALT_EXPORT void unsalt_core_cursors_end(unsalt_core_t *core, bool kept);

/**
 * What is done beyond the position of a partition: acknowledged, dropped or given back by the core.
 * @param from   only what ends at or above this offset; 0 = all. To go on: one above the last range's end.
 * @param ranges room for `max`; offsets that hold no record may lie in a range.
 * @returns how many were written.
 */
UNSALT_EXPORT size_t unsalt_core_done(const unsalt_core_t *core, uint32_t part, int64_t from,
                                      unsalt_core_range_t *ranges, size_t max);

/**
 * States that reading of a partition begins elsewhere than unsalt_core_assign() was told. start_offset and log_start as
 * there.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: not assigned, a record of it was pushed, or start_offset < -1.
 */
UNSALT_EXPORT int unsalt_core_start(unsalt_core_t *core, uint32_t part, int64_t start_offset, int64_t log_start);

/**
 * States what an earlier owner had done beyond its position: records of these offsets come back as DUPLICATE, whatever
 * they are. Replaces what was stated before.
 * @param ranges ascending, apart; copied.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: not assigned, or not ascending and apart; UNSALT_CORE_NOMEM. An error
 *          changes nothing.
 */
UNSALT_EXPORT int unsalt_core_done_before(unsalt_core_t *core, uint32_t part, const unsalt_core_range_t *ranges,
                                          size_t count);

/**
 * Enters the cursor of a session; the last one of several counts. The set has a partition, and nothing of the session
 * was pushed since.
 * @returns UNSALT_CORE_OK; UNSALT_CORE_INVAL: no such set, id longer than session_id_max, cursor UNSALT_NO_SEQ, ranges
 *          that are not ascending and apart; UNSALT_CORE_EXISTS: records of the session were pushed; UNSALT_CORE_NOMEM.
 *          An error changes nothing.
 */
UNSALT_EXPORT int unsalt_core_restore(unsalt_core_t *core, const unsalt_core_cursor_t *cursor, uint64_t now);
/** Takes back what unsalt_core_restore() has entered for a session, if no record of it was pushed since. */
UNSALT_EXPORT void unsalt_core_restore_undo(unsalt_core_t *core, uint32_t set, const void *session,
                                            uint32_t session_len);

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

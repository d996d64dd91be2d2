/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's own structures. Each rule of the design is one file; they meet in these structs and in the calls
 * declared at the end of this header.
 */
#ifndef US_CORE_ENGINE_H
#define US_CORE_ENGINE_H
#ifndef UNSALT_ENABLE_CORE_API
#define UNSALT_ENABLE_CORE_API
#endif
#include <base/hash.h>
#include <base/heap.h>
#include <base/mem.h>
#include <base/skips.h>
#include <core/cursors.h>
#include <core/frontier.h>
#include <core/horizon.h>
#include <core/reasm.h>
#include <stddef.h>
#include <unsalt/core.h>

struct us_session;
struct us_set;

/* ---- waiting: something that is due at a time, and then perhaps waits for partitions to be read past it ---- */

enum us_wait_kind {
    US_WAIT_GAP,   /* the head gap of a session */
    US_WAIT_START, /* first sight of an unknown session */
    US_WAIT_EPOCH, /* first sight of a later run */
    US_WAIT_QUIET  /* silence after a record that may be the sign of a restart: time only */
};
#define US_WHERE_NONE UINT32_MAX
#define US_WHERE_CLOCK (UINT32_MAX - 1)

struct us_wait {
    struct us_heap_node node;
    uint32_t where; /* US_WHERE_NONE, US_WHERE_CLOCK, or the index of the partition whose heap it stands in */
    uint32_t step;  /* index in the set's list of partitions of the one it waits for */
    enum us_wait_kind kind;
    bool stalled;   /* a partition was passed over because it counts as stalled */
    uint64_t due;
    struct us_session *session;
};

static inline struct us_wait *us_wait_of(struct us_heap_node *node) {
    return (struct us_wait *)((char *)node - offsetof(struct us_wait, node));
}

/* ---- what a session has shown where, since it or its run was first seen ---- */

struct us_shown_entry {
    uint64_t first; /* the first number shown */
    uint32_t part;
    uint16_t lane;
    uint16_t has_lane;
};
struct us_shown {
    struct us_shown_entry *entries;
    uint32_t count, capacity;
};

/* A session that was joined in the middle: its start, and afterwards what `resumed` needs. */
struct us_start {
    struct us_wait wait;
    struct us_shown shown;
    uint64_t first_sight;
    bool back;       /* of a run that the producer went back to: it needn't begin at seq_first */
    bool first_seen; /* seq_first, or a record flagged as the session's first, is held */
};

/* A later run that has shown up while the current one isn't over. */
struct us_later {
    struct us_later *next; /* of a still higher epoch */
    struct us_wait wait;
    struct us_shown shown;
    struct us_reasm reasm;
    uint64_t epoch;
    int64_t newest;         /* greatest timestamp in it */
    struct us_start *start; /* if it starts like an unknown session: it goes back, or was joined in the middle */
    bool back;              /* the producer went back to it without a higher epoch */
    bool over;              /* every lane has shown it or was read past its first sight: the runs before it are over */
};

/* Records below the cursor that may reveal a restart; kept until the verdict. */
struct us_suspects {
    struct us_wait wait;
    uint32_t count, capacity;
    int64_t newest;
    uint16_t lanes;
    struct us_held *held;
};

/* Why a session isn't in its ordinary state; 0 = a record at the cursor passes at once. */
enum {
    US_SPECIAL_STARTING = 0x01, /* cursor unknown: everything is held */
    US_SPECIAL_STARTED = 0x02,  /* started in the middle: `start` still tells resumed gaps from real ones */
    US_SPECIAL_LATER = 0x04,    /* `later` is not empty */
    US_SPECIAL_ENDING = 0x08,   /* the current run is over: its gaps give way, then the later one takes over */
    US_SPECIAL_SUSPECTS = 0x10, /* `suspects` is not empty */
    US_SPECIAL_STALE = 0x20,    /* the last records were of a lower epoch: `stale_run` counts */
    US_SPECIAL_RESTARTED = 0x40 /* it went back without an epoch: `before` tells the run before from this one */
};

struct us_session {
    struct us_set *set;
    struct us_reasm reasm;
    struct us_wait gap;
    uint64_t gap_cursor; /* cursor when `gap` began to wait for partitions */
    struct us_skips skips;
    uint64_t epoch;
    uint64_t since;  /* of the highest header: first number to which `lanes` applies */
    uint64_t upto;   /* the highest number for which `lanes` and `since` are known to hold */
    uint64_t refused_since; /* policy block: since when its own budget refuses; UNSALT_NEVER */
    uint64_t active; /* time of the last record */
    int64_t newest;  /* greatest timestamp of a record that was accepted */
    int64_t before;  /* greatest timestamp of the run that a restart backwards has ended */
    uint64_t began;  /* when the current run took over from another; 0: it didn't */
    struct us_start *start;
    struct us_later *later;
    struct us_suspects *suspects;
    struct us_session *ready_prev, *ready_next;
    struct us_session *idle_prev, *idle_next; /* from the idlest; refreshed lazily */
    uint64_t idle_since;                      /* `active` when it was put at the list's end */
    uint16_t lanes;                           /* S as the newest record or the configuration says; 0 unknown */
    uint16_t stale_run;
    uint8_t special;
    bool ready;     /* in the list of sessions with something to release */
    bool blocked;   /* holds records and waits for a lower number */
    bool after_gap; /* the next release is the first above a gap */
    bool last;      /* its last record was released */
    bool lanes_vary; /* some records say their lanes, or have them by configuration, and some have none */
    bool flushing;  /* gaps below what arrived up to core->flush_time give way */
    uint32_t hash;
    uint32_t id_len;
    unsigned char *id; /* stands behind the session in the same block */
};

/* ---- partitions and lane sets ---- */

struct us_part {
    /* what every record touches, side by side */
    struct us_set *set;      /* NULL: the slot is free */
    int64_t last_offset;     /* of the last record; -1 none yet */
    uint32_t generation;
    int32_t lane;
    bool at_end;             /* an end-of-partition event was the last thing it showed */
    bool joined_middle;      /* reading didn't begin at offset 0 of the log */
    bool above_start;        /* it began above the first offset that the log had, or nobody knows */
    bool refused;            /* a budget refuses its next record, so it isn't being read */
    bool paused, stalled;
    bool moved;              /* the horizon moved: `waiting` is to be looked at */
    struct us_frontier frontier;
    struct us_horizon horizon;
    struct us_heap waiting;  /* waits whose due time its horizon has not reached */
    uint64_t need;           /* latest due time that something waits, or waited, for it to reach */
    uint64_t read_mark;      /* reading clock at the last progress */
};

struct us_set {
    struct us_set *next, *prev;
    void *table;                 /* sessions by id: uthash, known to sessions.c only */
    uint32_t tag;                /* the caller's number */
    uint32_t size;               /* partitions it must have; 0 = doesn't matter */
    uint32_t *parts;
    uint32_t part_count, part_capacity;
    bool joined_middle;          /* any partition was joined in the middle */
    bool forgot;                 /* a cursor of it was forgotten */
};

/* ---- events ---- */

#define US_EVENTS_CAPACITY 256
#define US_EVENTS_ROOM 8 /* free places that a record or a verdict may need */
struct us_event_ring {
    unsalt_core_event_t *events;
    unsigned char *ids;
    uint32_t first, count;
};

/* Records that leave otherwise than by a session's turn: revoked ones, suspects that were copies. */
struct us_leaving {
    unsalt_core_out_t *records; /* ring */
    uint32_t capacity, first, count;
    uint32_t promised; /* places that a later step may fill without asking */
};

struct unsalt_core {
    unsalt_core_params_t params;
    struct unsalt_mem mem;
    unsalt_core_counters_t counters;
    uint64_t now;
    struct us_chunks chunks;
    struct us_part *parts;
    uint32_t part_count;     /* slots, free ones included */
    uint32_t part_capacity;
    uint32_t part_free;      /* no slot below is free */
    uint32_t generation;
    struct us_set *sets;
    void *sets_by_tag;       /* uthash, known to set.c only */
    uint64_t flush_time;     /* of the last flush: what arrived up to then goes */
    struct us_heap clock;    /* waits that are not due */
    uint32_t waits;          /* waits that exist: the clock has room for each */
    struct us_session *ready_first, *ready_last;
    struct us_session *idle_first, *idle_last;
    struct us_session *last_session; /* of the last record: records come in runs */
    struct us_cursors cursors;
    struct us_event_ring events;
    struct us_leaving leaving;
    uint64_t reading_ns;     /* reading clock: total, up to reading_since */
    uint64_t reading_since;  /* UNSALT_NEVER: not reading */
    uint64_t blocked_since;  /* policy block: since when a budget of all refuses; UNSALT_NEVER */
    uint32_t blocked_part;   /* the partition whose record it refused first */
    uint64_t refused_until;  /* policy block: when the earliest session's own refusal is over */
    bool budget_told[UNSALT_BUDGET__CNT]; /* the BUDGET event was raised and the budget has not fallen to half since */
    bool any_moved;
    bool any_owed;           /* a partition is owed, or was when it was last looked */
};

/* ---- small helpers that everything uses ---- */

/* The time as the core sees it: never goes back. */
static inline uint64_t us_core_time(struct unsalt_core *core, uint64_t now) {
    if (now < core->now) {
        core->counters.clock_regressions++;
        return core->now;
    }
    return core->now = now;
}
static inline uint64_t us_time_add(uint64_t t, uint64_t delta) {
    return delta > UNSALT_NEVER - 1 - t ? UNSALT_NEVER - 1 : t + delta;
}
static inline struct us_part *us_part_get(const struct unsalt_core *core, uint32_t part) {
    return part < core->part_count && core->parts[part].set ? &core->parts[part] : NULL;
}

/* events.c: raises an event; the caller has made sure of room (US_EVENTS_ROOM). */
bool us_events_init(struct unsalt_core *core);
void us_events_destroy(struct unsalt_core *core);
unsalt_core_event_t *us_event(struct unsalt_core *core, unsalt_core_event_type_t type,
                              const struct us_session *session);
/* Names the session of an event by its id; a longer one than session_id_max is cut. */
void us_event_session(struct unsalt_core *core, unsalt_core_event_t *event, const void *id, uint32_t len);
static inline bool us_events_room(const struct unsalt_core *core) {
    return core->events.count + US_EVENTS_ROOM <= US_EVENTS_CAPACITY;
}

/* sessions.c */
struct us_session *us_session_find(const struct us_set *set, const void *id, uint32_t len, uint32_t hash);
/* NULL: out of memory. The session is in the table, the idle list and nothing else. */
struct us_session *us_session_new(struct unsalt_core *core, struct us_set *set, const void *id, uint32_t len,
                                  uint32_t hash);
/* Frees a session that holds nothing. */
void us_session_free(struct unsalt_core *core, struct us_session *session);
struct us_session *us_session_first(const struct us_set *set);
struct us_session *us_session_next(const struct us_session *session);

/* expiry.c */
void us_idle_touch(struct unsalt_core *core, struct us_session *session); /* to the end of the idle list */
void us_idle_unlink(struct unsalt_core *core, struct us_session *session);
bool us_session_is_idle(const struct us_session *session);
void us_session_retire(struct unsalt_core *core, struct us_session *session); /* remembers the cursor, frees */
void us_idlest_goes(struct unsalt_core *core); /* if there are too many sessions */
void us_expire_sessions(struct unsalt_core *core);
uint64_t us_expiry_deadline(const struct unsalt_core *core);

/* Reading of the partition has passed its last record. Returns true if the horizon moved. */
static inline bool us_part_passed(struct us_part *part) {
    return part->last_offset >= 0 && us_horizon_passed(&part->horizon, part->last_offset + 1);
}

/* waiting.c; owed: something waits, or waited, for the partition to be read on */
static inline bool us_part_owed(const struct us_part *part) {
    return part->set && part->need > part->horizon.reached;
}
bool us_wait_reserve(struct unsalt_core *core);
void us_wait_init(struct us_wait *wait, enum us_wait_kind kind, struct us_session *session);
void us_wait_at(struct unsalt_core *core, struct us_wait *wait, uint64_t due);
void us_wait_cancel(struct unsalt_core *core, struct us_wait *wait);
void us_wait_gone(struct unsalt_core *core, struct us_wait *wait); /* cancel, and give its room back */
void us_wait_for_parts(struct unsalt_core *core, struct us_wait *wait);
/* The partition has shown what the wait is for: if it stands there, it goes on. */
void us_wait_let_off(struct unsalt_core *core, struct us_wait *wait, uint32_t part);
void us_wait_moved(struct unsalt_core *core, struct us_part *part);
/* Waits of the partition that were due at or before `due` are over, whatever was read. */
void us_wait_impatient(struct unsalt_core *core, struct us_part *part, uint64_t due);

/* owed.c: may this partition still carry what the wait is for? */
bool us_owed_by(const struct unsalt_core *core, const struct us_wait *wait, const struct us_part *part, uint32_t index);

/* shown.c */
bool us_shown_reserve(struct us_shown *shown, const struct unsalt_mem *mem);
void us_shown_add(struct us_shown *shown, const unsalt_core_in_t *in); /* room reserved */
const struct us_shown_entry *us_shown_part(const struct us_shown *shown, uint32_t part);
const struct us_shown_entry *us_shown_lane(const struct us_shown *shown, uint16_t lane);

/* start.c; does an unknown session of the set start at seq_first, without being found out? */
bool us_starts_at_first(const struct unsalt_core *core, const struct us_set *set);
struct us_start *us_start_alloc(struct unsalt_core *core, struct us_session *session);
void us_start_begin(struct unsalt_core *core, struct us_session *session, struct us_start *start);
void us_start_free(struct unsalt_core *core, struct us_start *start); /* NULL is allowed */
void us_start_saw(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
void us_start_now(struct unsalt_core *core, struct us_session *session);
void us_start_look(struct unsalt_core *core, struct us_session *session); /* may it start? else it waits */
void us_start_done(struct unsalt_core *core, struct us_session *session);

/*
 * What a header says of the lanes holds for since..seq. The rule of the highest number is kept; a lower one that says
 * otherwise speaks of the past. A record that says nothing ends what the configured S (since 0) is good for.
 */
static inline void us_lanes_learn(struct us_session *session, const unsalt_core_in_t *in) {
    if (in->lanes == 0) {
        session->lanes_vary = true;
    } else if (session->lanes == 0 || in->seq >= session->upto) {
        session->lanes = in->lanes;
        session->since = in->since;
        session->upto = in->seq;
    }
}
/* Is the lane of every number of first..last known: number mod session->lanes? */
static inline bool us_lanes_known(const struct us_session *session, uint64_t first, uint64_t last) {
    return session->lanes && session->since <= first && last <= session->upto && !session->lanes_vary;
}

/* Is the lane of every number from the session's first one known? */
static inline bool us_lanes_from_first(const struct unsalt_core *core, const struct us_session *session) {
    return session->lanes && session->since <= core->params.seq_first && !session->lanes_vary;
}

/* resumed.c */
bool us_resumed_proven(const struct unsalt_core *core, const struct us_session *session);
bool us_resumed_likely(const struct unsalt_core *core, const struct us_session *session);

/* epoch.c */
int us_epoch_arrival(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                     unsalt_core_out_t *out, size_t *n_out);
int us_stale(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
             unsalt_core_out_t *out, size_t *n_out);
void us_epoch_over(struct unsalt_core *core, struct us_later *later);
void us_epoch_continue(struct unsalt_core *core, struct us_session *session);
void us_later_free(struct unsalt_core *core, struct us_later *later);
struct us_later *us_later_new(struct unsalt_core *core, struct us_session *session, uint64_t epoch);
void us_later_insert(struct us_session *session, struct us_later *later);
struct us_later *us_later_of(const struct us_wait *wait);
/* Returned by us_epoch_arrival(): the record belongs to the current run. */
#define US_EPOCH_CURRENT 100

/* restart.c */
bool us_restart_suspect(struct unsalt_core *core, const struct us_session *session, const unsalt_core_in_t *in);
int us_restart_keep(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in,
                    unsalt_core_out_t *out, size_t *n_out);
void us_restart_copies(struct unsalt_core *core, struct us_session *session);
void us_restart_unresolved(struct unsalt_core *core, struct us_session *session);
void us_restart_reveal(struct unsalt_core *core, struct us_session *session);

/* run.c: takes the ordinary records at the head of a batch; 0 = the first one isn't ordinary. */
size_t us_run(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out, size_t *n_out);

/* arrival.c: one record; *n_out grows by at most one. */
int us_arrival(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out);
int us_hold(struct unsalt_core *core, struct us_session *session, struct us_reasm *reasm, const unsalt_core_in_t *in,
            unsalt_core_out_t *out, size_t *n_out);
/* After a record of the current run has passed or is held; room in `shown` was reserved. May retire the session. */
void us_arrival_taken(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
void us_arrival_out(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_state_t state,
                    unsalt_core_out_t *out, size_t *n_out);
struct us_held us_held_of(const struct unsalt_core *core, const unsalt_core_in_t *in);

/* pull.c */
void us_ready(struct unsalt_core *core, struct us_session *session);
void us_unready(struct unsalt_core *core, struct us_session *session);
/* After its held records or its cursor changed, while it isn't ready. May retire the session. */
void us_settle(struct unsalt_core *core, struct us_session *session);
/* Something is held above a gap: makes sure that the gap is timed. */
void us_blocked(struct unsalt_core *core, struct us_session *session);

/* Is a record of this state handed to the application, which acknowledges it? Everything else the core does. */
static inline bool us_state_handed_out(unsalt_state_t state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_UNSEQUENCED;
}
/* What becomes of a late record. */
static inline unsalt_state_t us_late_state(const struct unsalt_core *core, unsalt_state_t delivered) {
    switch (core->params.late) {
    case UNSALT_LATE_DROP:
        return UNSALT_STATE_DROPPED;
    case UNSALT_LATE_DEAD_LETTER:
        return UNSALT_STATE_DEAD_LETTERED;
    case UNSALT_LATE_DELIVER:
        break;
    }
    return delivered;
}

/* leaving.c */
bool us_leaving_reserve(struct unsalt_core *core, uint32_t more);
void us_leaving_add(struct unsalt_core *core, const struct us_held *held, unsalt_state_t state);

/* verdict.c */
void us_give_up(struct unsalt_core *core, struct us_session *session, unsalt_gap_reason_t reason);
void us_gap_due(struct unsalt_core *core, struct us_session *session);
void us_gap_evidence(struct unsalt_core *core, struct us_session *session, bool stalled);
uint64_t us_gap_due_at(const struct unsalt_core *core, const struct us_session *session);

/* flush.c: is the head gap of the session to be flushed? */
bool us_flush_wanted(const struct unsalt_core *core, struct us_session *session);

/* stalled.c */
void us_stall_progress(struct unsalt_core *core, struct us_part *part);
void us_stall_check(struct unsalt_core *core);
uint64_t us_stall_deadline(const struct unsalt_core *core);

/* budget.c */
int us_budget_check(struct unsalt_core *core, struct us_session *session, const struct us_reasm *reasm,
                    const unsalt_core_in_t *in);
uint64_t us_budget_deadline(const struct unsalt_core *core);
void us_budget_block_over(struct unsalt_core *core);
bool us_overflow(struct unsalt_core *core, struct us_session *session);
bool us_budget_half(const struct unsalt_core *core);

/* set.c */
struct us_set *us_set_get(struct unsalt_core *core, uint32_t tag); /* finds or makes; NULL: out of memory */
bool us_set_add(struct unsalt_core *core, struct us_set *set, uint32_t part);
void us_set_remove(struct unsalt_core *core, struct us_set *set, uint32_t part);
static inline bool us_set_complete(const struct us_set *set) {
    return set->part_count >= set->size;
}
#endif

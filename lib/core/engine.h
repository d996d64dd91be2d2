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
#include <core/checkpoint.h>
#include <core/frontier.h>
#include <core/horizon.h>
#include <core/reasm.h>
#include <core/remembered.h>
#include <core/rows.h>
#include <stddef.h>
#include <unsalt/core.h>

struct us_session;
struct us_set;
struct us_view; /* doze.h */

/* ---- waiting: something that is due at a time, and then perhaps waits for partitions to be read past it ---- */

enum us_wait_kind {
    US_WAIT_GAP,   /* the head gap of a session */
    US_WAIT_START, /* first sight of an unknown session */
    US_WAIT_EPOCH, /* first sight of a later run */
    US_WAIT_QUIET, /* silence after a record that may be the sign of a restart: time only */
    US_WAIT_DOZE   /* as GAP, of a session that dozes: `session` is NULL; in the clock's heap */
};
#define US_WHERE_NONE UINT32_MAX
#define US_WHERE_CLOCK (UINT32_MAX - 1)

struct us_wait {
    struct us_heap_node node;
    uint32_t where; /* US_WHERE_NONE, US_WHERE_CLOCK, or the index of the partition whose heap it stands in */
    uint32_t step;  /* index in the set's list of partitions of the one it waits for */
    uint32_t last;  /* the partition that it waited for last, UINT32_MAX = none */
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
    uint64_t una;   /* the highest told; UNSALT_NO_SEQ = a record told none */
    uint32_t part;
    uint16_t lane;
    uint16_t lanes; /* 0: the lane isn't known */
};
struct us_shown {
    struct us_shown_entry *entries;
    uint32_t count, capacity;
};

/*
 * What is known of the lanes of a run: for since..upto the lane is number mod lanes. The rule of the highest number is
 * kept; a lower one that says otherwise speaks of the past.
 */
struct us_lane_rule {
    uint64_t since, upto;
    uint16_t lanes; /* 0 = unknown */
    bool vary;      /* some records say their lanes, or have them by configuration, and some have none */
};

/* A session that was joined in the middle: its start, and afterwards what `resumed` needs. */
#define US_START_RULES 8
struct us_start {
    struct us_wait wait;
    struct us_shown shown;
    struct us_lane_rule rules[US_START_RULES]; /* each rule of lanes that was seen, and how far: S may have changed */
    uint32_t rule_count;
    uint64_t una; /* highest that a record told: what is below was resolved; UNSALT_NO_SEQ = none told */
    uint64_t first_sight;
    uint64_t caught_up; /* when all that stood in the logs at first sight had been read, as far as known; 0 = not yet */
    bool back;       /* of a run that the producer went back to: it needn't begin at seq_first */
    bool first_seen; /* seq_first, or a record flagged as the session's first, is held */
};

/* A later run that has shown up while the current one isn't over. */
struct us_later {
    struct us_later *next; /* of a still higher epoch */
    struct us_wait wait;
    struct us_shown shown;
    struct us_reasm reasm;
    struct us_lane_rule rule;
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
    US_SPECIAL_RESTARTED = 0x40, /* it went back without an epoch: `before` tells the run before from this one */
    US_SPECIAL_REDO = 0x80 /* `redo` is not NULL */
};

/* A session that is awake: see rows.h and sessions.c. */
struct us_session {
    struct us_set *set;
    struct us_reasm reasm;
    struct us_wait gap;
    uint64_t gap_cursor; /* cursor when `gap` began to wait for partitions */
    struct us_skips skips;
    uint64_t epoch;
    struct us_lane_rule rule; /* lanes as the newest record or the configuration says */
    uint64_t refused_since; /* policy block: since when its own budget refuses; UNSALT_NEVER */
    int64_t newest;  /* greatest timestamp of a record that was accepted */
    int64_t before;  /* greatest timestamp of the run that a restart backwards has ended */
    uint64_t began;  /* when the current run took over from another; 0: it didn't */
    uint64_t stale_since; /* when it was met with a lower epoch, before anything of its run was accepted; 0: not */
    struct us_start *start;
    struct us_later *later;
    struct us_suspects *suspects;
    struct us_session *ready_prev, *ready_next;
    struct us_session *awake_prev, *awake_next; /* of its set, in the order in which they woke */
    struct us_session *change_prev, *change_next; /* of the list that `change` names */
    struct us_redo *redo;    /* of a restored cursor; NULL when it has been passed */
    uint64_t takeover_at;    /* when a later run takes over although the application has records; 0 = it doesn't wait */
    uint32_t open;           /* records in the application's hands, if cursors are kept */
    uint32_t former;         /* the same of runs that are over: the cursor waits for them */
    uint8_t change;          /* enum us_change */
    bool restored;           /* from a cursor, and nothing of it has arrived yet */
    uint16_t stale_run;
    uint8_t special;
    bool ready;     /* in the list of sessions with something to release */
    bool blocked;   /* holds records and waits for a lower number */
    bool after_gap; /* the next release is the first above a gap */
    bool last;      /* its last record was released */
    uint8_t told;   /* bit = budget of its own: it was told to be full, and it has not fallen to half since */
    bool flushing;  /* gaps below what arrived up to core->flush_time give way */
    uint32_t id_len;
    const unsigned char *id; /* in the row */
    struct us_row *row;
    uint32_t ref; /* of the row */
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
    bool done_ahead;         /* `done_before` isn't passed yet */
    bool paused, stalled;
    bool moved;              /* the horizon moved: `waiting` is to be looked at */
    struct us_frontier frontier;
    struct us_handed_ring handed;
    struct us_done_before done_before;
    struct us_horizon horizon;
    struct us_heap waiting;  /* waits whose due time its horizon has not reached */
    uint64_t need;           /* latest due time that something waits, or waited, for it to reach */
    uint64_t read_mark;      /* reading clock at the last progress */
    uint64_t window_since;   /* policy block: since when its full window refuses; UNSALT_NEVER */
    uint64_t window_told;    /* the ticket whose acknowledgement lets the BUDGET event be raised again */
};

struct us_set {
    struct us_set *next, *prev;
    struct us_row_table table;   /* sessions by id */
    struct us_session *awake_first, *awake_last;
    struct us_doze *doze_first, *doze_last;
    uint32_t tag;                /* the caller's number */
    uint32_t size;               /* partitions it must have; 0 = doesn't matter */
    uint32_t *parts;
    uint32_t part_count, part_capacity;
    bool joined_middle;          /* any partition was joined in the middle */
    bool forgot;                 /* a cursor of it was forgotten, and that was told */
    bool remembers;              /* a cursor of it was ever remembered, first when ... */
    uint64_t remembers_from;     /* ... remembered.turns was this */
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

#define US_AWAKE_MAX 1024 /* sessions that are awake, whatever they hold, before the first of them dozes */

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
    struct us_rows rows;
    uint32_t idle_first, idle_last;  /* rows, from the idlest; refreshed lazily */
    struct us_session *last_session; /* of the last record, if it is awake: records come in runs */
    struct us_session *spare_sessions; /* blocks for those that wake, linked by ready_next */
    uint32_t spare_session_count;
    uint32_t awake_count, awake_max; /* sessions that are awake; with more of them some doze */
    struct us_ahead *ahead; /* during a push: what was looked at ahead; see ahead.h */
    struct us_remembered remembered;
    struct us_change_list changed, taken;
    struct us_taking taking;
    uint64_t handed_changes; /* times that what the application has of any session changed; see handed.c */
    struct us_event_ring events;
    struct us_leaving leaving;
    uint64_t reading_ns;     /* reading clock: total, up to reading_since */
    uint64_t reading_since;  /* UNSALT_NEVER: not reading */
    uint64_t blocked_since;  /* policy block: since when a budget of all refuses; UNSALT_NEVER */
    uint32_t blocked_part;   /* the partition whose record it refused first */
    uint64_t refused_until;  /* policy block: when the earliest refusal by a session or a partition is over */
    int blocked_budget;      /* the budget of all that refuses */
    bool budget_told[UNSALT_BUDGET__CNT]; /* the BUDGET event was raised and the budget has not fallen to half since */
    bool any_told;           /* of `budget_told` or of a session */
    bool failing;            /* policy fail: a record is refused until room is made */
    bool make_room;          /* policy fail: a flush came after that, and what still is in the way gives way */
    bool selective;          /* reading is selective: see advice.c */
    bool any_moved;
    bool any_owed;           /* a partition is owed, or was when it was last looked */
};

/* ---- small helpers that everything uses ---- */

static inline uint64_t us_time_add(uint64_t t, uint64_t delta) {
    return delta > UNSALT_NEVER - 1 - t ? UNSALT_NEVER - 1 : t + delta;
}
/*
 * The time as the core sees it: never goes back. Until a clock that went back has caught up, each call is a nanosecond
 * after the last one: if time stood still, a question to a leader would count as sent when a record came that came
 * after it, and what was written in between would count as read.
 */
static inline uint64_t us_core_time(struct unsalt_core *core, uint64_t now) {
    if (now < core->now) {
        core->counters.clock_regressions++;
        now = us_time_add(core->now, 1);
    }
    return core->now = now;
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
uint32_t us_session_hash(const struct unsalt_core *core, const void *id, uint32_t len);
/* The row of a session; 0: it isn't in memory. */
uint32_t us_session_find(const struct unsalt_core *core, const struct us_set *set, const void *id, uint32_t len,
                         uint32_t hash);
/* Wakes it, if it isn't awake. NULL: out of memory, nothing changed. */
struct us_session *us_session_wake(struct unsalt_core *core, struct us_set *set, uint32_t ref);
/* The session, or what it would be if it were awake, written to *view. */
const struct us_session *us_session_view(const struct unsalt_core *core, struct us_set *set, uint32_t ref,
                                         struct us_view *view);
/* The last record was of this one: it stays awake. The one before may go to rest. */
void us_session_current(struct unsalt_core *core, struct us_session *session);
/* It may have become idle: puts it to rest, if it may and isn't that of the last record. Then it is gone. */
void us_idle_awake(struct unsalt_core *core, struct us_session *session);
/* NULL: out of memory. The session is awake, in the table, the idle list and nothing else. */
struct us_session *us_session_new(struct unsalt_core *core, struct us_set *set, const void *id, uint32_t len,
                                  uint32_t hash);
/* Frees a session that holds nothing; the other one too if it is at rest. */
void us_session_free(struct unsalt_core *core, struct us_session *session);
void us_session_forget(struct unsalt_core *core, struct us_set *set, uint32_t ref);
/* Frees all of a set; those at rest; and what is kept for others that wake. */
void us_sessions_drop(struct unsalt_core *core, struct us_set *set);
void us_sessions_drop_resting(struct unsalt_core *core, struct us_set *set);
void us_sessions_destroy(struct unsalt_core *core);

/* expiry.c */
void us_idle_touch(struct unsalt_core *core, uint32_t ref); /* to the end of the idle list */
void us_idle_unlink(struct unsalt_core *core, uint32_t ref);
bool us_session_is_idle(const struct us_session *session);
/* Remembers the cursor and frees. The session may be a view of one at rest. */
void us_session_retire(struct unsalt_core *core, const struct us_session *session);
void us_set_remembers(const struct unsalt_core *core, struct us_set *set); /* a cursor of it is remembered */
/* Tells, once for each set, that a cursor of it was forgotten, if that is so. */
void us_tell_forgotten(struct unsalt_core *core, const struct us_session *session, bool forgot);
/* Was a cursor of the set forgotten? */
static inline bool us_set_forgot(const struct unsalt_core *core, const struct us_set *set) {
    return set->forgot || (set->remembers && core->remembered.turns >= set->remembers_from + 2);
}
void us_idlest_goes(struct unsalt_core *core); /* if there are too many sessions */
void us_expire_sessions(struct unsalt_core *core);
uint64_t us_expiry_deadline(const struct unsalt_core *core);

/*
 * Makes room for one more ticket, also for what is kept beside it; see handed.c. False: out of memory, or above the
 * limit of the window.
 */
bool us_ticket_grow(struct unsalt_core *core, struct us_part *part);
static inline bool us_ticket_reserve(struct unsalt_core *core, struct us_part *part) {
    return us_frontier_has_room(&part->frontier, 1) || us_ticket_grow(core, part);
}

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
void us_shown_forget(struct us_shown *shown, uint32_t part); /* the partition is gone; its index may come again */
const struct us_shown_entry *us_shown_part(const struct us_shown *shown, uint32_t part);
/* A record of the partition was stamped when every number below this one was resolved, as far as it told. */
bool us_shown_past(const struct us_shown *shown, uint32_t part, uint64_t number);
const struct us_shown_entry *us_shown_lane(const struct us_shown *shown, uint16_t lane, uint16_t lanes);

/* start.c; does an unknown session of the set start at seq_first, without being found out? */
bool us_starts_at_first(const struct unsalt_core *core, const struct us_set *set);
struct us_start *us_start_alloc(struct unsalt_core *core, struct us_session *session);
void us_start_begin(struct unsalt_core *core, struct us_session *session, struct us_start *start);
void us_start_free(struct unsalt_core *core, struct us_start *start); /* NULL is allowed */
void us_start_note(struct us_start *start, const unsalt_core_in_t *in); /* what a record shows; room reserved */
/*
 * stay.c; the session starts again as a partition goes, `part`, which is forgotten. What the others of its set have
 * shown is not shown again: it stays known, in that nothing below the cursor so far comes from them any more. Reserve
 * for a set of so many partitions: false: out of memory, nothing changed.
 */
bool us_start_stay_reserve(struct unsalt_core *core, struct us_session *session, uint32_t parts);
void us_start_stay(const struct unsalt_core *core, struct us_session *session, uint32_t part);
/* S of all of first..last, as far as any record told; 0 = unknown, or not one. */
uint16_t us_start_lanes(const struct us_start *start, uint64_t first, uint64_t last);
void us_start_saw(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
void us_start_now(struct unsalt_core *core, struct us_session *session);
void us_start_look(struct unsalt_core *core, struct us_session *session); /* may it start? else it waits */
void us_start_done(struct unsalt_core *core, struct us_session *session);

/* A header's rule holds for since..seq. A record that says nothing ends what the configured S (since 0) is good for. */
static inline void us_lanes_learn(struct us_lane_rule *rule, const unsalt_core_in_t *in) {
    if (in->lanes == 0) {
        rule->vary = true;
    } else if (rule->lanes == 0 || in->seq >= rule->upto) {
        rule->lanes = in->lanes;
        rule->since = in->since;
        rule->upto = in->seq;
    }
}
/* Is the lane of every number of first..last known: number mod session->rule.lanes? */
static inline bool us_lanes_known(const struct us_session *session, uint64_t first, uint64_t last) {
    return session->rule.lanes && session->rule.since <= first && last <= session->rule.upto && !session->rule.vary;
}

/* Is the lane of every number from the session's first one known? */
static inline bool us_lanes_from_first(const struct unsalt_core *core, const struct us_session *session) {
    return session->rule.lanes && session->rule.since <= core->params.seq_first && !session->rule.vary;
}

/* resumed.c; first..last: numbers of the head gap */
bool us_resumed_proven(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                       uint64_t last);
/* A due gap, all partitions that may carry it were read past its due time (or `stalled`): was it consumed before? */
bool us_resumed_likely(const struct unsalt_core *core, struct us_session *session, bool stalled);

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

/*
 * run.c: takes the ordinary records at the head of a batch, of the session of the last record if that is awake, and
 * else of one that is at rest; 0 = the first one isn't ordinary. us_run_resting() is for push.c alone, n >= 1; when it
 * has looked ahead, all of them were looked at.
 */
size_t us_run_resting(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out,
                      size_t *n_out);
size_t us_run(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out, size_t *n_out);

/* Where a record is filed: its lane if it says one, else its partition. */
static inline uint16_t us_lane_of(const unsalt_core_in_t *in) {
    return in->lanes ? in->lane : (uint16_t)in->part;
}
/* What comes out of a record that isn't held. */
static inline void us_out_of(const unsalt_core_in_t *in, uint32_t generation, uint64_t ticket, unsalt_state_t state,
                             unsalt_core_out_t *out) {
    out->msg = in->msg;
    out->seq = in->seq;
    out->waited_ns = 0;
    out->ticket = ticket;
    out->part = in->part;
    out->generation = generation;
    out->state = (uint16_t)state;
    out->flags = in->flags;
    out->lane = us_lane_of(in);
    out->reserved = 0;
}

/* arrival.c: one record; *n_out grows by at most one. */
int us_arrival(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out);
int us_hold(struct unsalt_core *core, struct us_session *session, struct us_reasm *reasm, const unsalt_core_in_t *in,
            unsalt_core_out_t *out, size_t *n_out);
/* Opens the record's ticket; room was reserved. */
uint64_t us_arrival_open(struct unsalt_core *core, const unsalt_core_in_t *in);
/* After a record of the current run has passed or is held; room in `shown` was reserved. May retire the session. */
void us_arrival_taken(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
void us_arrival_out(struct unsalt_core *core, const unsalt_core_in_t *in, unsalt_state_t state,
                    unsalt_core_out_t *out, size_t *n_out);
struct us_held us_held_of(const struct unsalt_core *core, const unsalt_core_in_t *in);

/* pull.c */
void us_ready(struct unsalt_core *core, struct us_session *session);
void us_unready(struct unsalt_core *core, struct us_session *session);
/* After its held records or its cursor changed, while it isn't ready. May retire the session, or put it to rest. */
void us_settle(struct unsalt_core *core, struct us_session *session);
/* Something is held above a gap: makes sure that the gap is timed. */
void us_blocked(struct unsalt_core *core, struct us_session *session);

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
const unsalt_core_out_t *us_leaving_add(struct unsalt_core *core, const struct us_held *held, unsalt_state_t state);

/* evidence.h; the run's evidence, made if need be. NULL: out of memory. */
struct us_evidence *us_evidence_of(struct unsalt_core *core, struct us_reasm *reasm);

/*
 * proof.c; notes what a record that is held has shown. Never fails: without memory there is less proof. Raises
 * PROOF_OFF if the record breaks the premise.
 */
void us_proof_note(struct unsalt_core *core, const struct us_session *session, struct us_reasm *reasm,
                   const unsalt_core_in_t *in);
/* Is it proven that none of first..last, which are missing at the head of the session, will come? O(S). */
bool us_proven(const struct unsalt_core *core, const struct us_session *session, uint64_t first, uint64_t last);
/* Remembers what was given up as proven; and says that a record of these numbers has come after all. */
void us_proof_given_up(struct unsalt_core *core, struct us_session *session, uint64_t first, uint64_t last);
void us_proof_contradicted(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
/* One above what a record has shown of its lane: below it every missing number is decided. 0: it says nothing. */
static inline uint64_t us_proof_shown(const struct unsalt_core *core, uint64_t seq, uint64_t una) {
    uint64_t by_una = una + 1; /* unknown becomes 0 */
    bool trust = core->params.gap_proof == UNSALT_PROOF_TRUST;
    return trust && seq + 1 > by_una ? seq + 1 : by_una;
}

/* marker.c */
int us_marker(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in);
/* The mark that covers a number, or the first one above it; NULL if there is none. */
const struct us_range *us_marker_at(const struct us_reasm *reasm, uint64_t number);

/* fate.c; gives up the head gap if the fate of every number of it is known. Room for events is there. */
bool us_fate_known(struct unsalt_core *core, struct us_session *session);
/* Time ends the gap: what is known of its first numbers goes with its own reason before; at least one number stays. */
void us_fate_first(struct unsalt_core *core, struct us_session *session);

/*
 * The last number of the head gap: below the lowest held one, and below what an earlier owner has done. Something is
 * held.
 */
static inline uint64_t us_gap_last(const struct us_session *session) {
    uint64_t above = us_reasm_lowest(&session->reasm);
    if (session->redo && session->redo->ranges[session->redo->at].first < above) {
        above = session->redo->ranges[session->redo->at].first;
    }
    return above - 1;
}

/* verdict.c; the gap cursor..last, which is the head gap or its beginning */
void us_give_up_to(struct unsalt_core *core, struct us_session *session, uint64_t last, unsalt_gap_reason_t reason);
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

/* turned_away.c; gives the record back as dead-lettered. NOMEM: nothing changed. */
int us_turn_away(struct unsalt_core *core, const struct us_session *session, struct us_reasm *reasm,
                 const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out);
/* The cursor passes over numbers that were turned away. True: the session is ready then, or goes on at once. */
bool us_away_pass(struct unsalt_core *core, struct us_session *session);
static inline bool us_any_away(const struct us_reasm *reasm) {
    return reasm->evidence && reasm->evidence->away.count;
}

/* set.c */
struct us_set *us_set_find(const struct unsalt_core *core, uint32_t tag); /* NULL: there is none */
struct us_set *us_set_get(struct unsalt_core *core, uint32_t tag); /* finds or makes; NULL: out of memory */
bool us_set_add(struct unsalt_core *core, struct us_set *set, uint32_t part);
void us_set_remove(struct unsalt_core *core, struct us_set *set, uint32_t part);
static inline bool us_set_complete(const struct us_set *set) {
    return set->part_count >= set->size;
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of the property tests: what DESIGN 4 and 5 say, done in the most obvious way. It keeps everything that
 * a session has received in sorted arrays and looks through them again and again; no heap, no hash, no batches.
 *
 * It is a judge, not a twin: where the contract leaves the moment of a decision open (which gap gives way to a
 * budget, when a verdict is spoken), it follows the events of the core and says whether they were justified; at
 * rest it says whether something that must have happened is missing. A judgement is NULL, or the reason of the
 * objection (a static buffer, valid until the next judgement).
 */
#ifndef TESTS_SUPPORT_MODEL_H
#define TESTS_SUPPORT_MODEL_H
#include <unsalt/core.h>

enum { MODEL_PARTS = 64, MODEL_SESSIONS = 64, MODEL_ANSWERS = 16, MODEL_TOLD = 64 };

/* One pushed record; a pointer to it is the `msg` that the core passes through. */
struct model_rec {
    unsalt_core_in_t in; /* as it was pushed, without msg and session */
    uint32_t session;    /* index, for sequenced records */
    uint32_t generation; /* of its partition when it was pushed */
    uint64_t taken_at, ticket;
    int state;      /* state in which it came back; -1 = the core still has it */
    int expect;     /* state that the model expects; UNSALT_STATE_HELD = its turn has not come */
    bool acked;     /* by the application, or by the core itself */
    bool after_gap; /* it must carry UNSALT_OUT_AFTER_GAP */
    bool any_flag;  /* ... or it may */
    bool malformed; /* its number or session can't be used */
};

struct model_list {
    struct model_rec **v;
    size_t n, cap;
};

struct model_range {
    uint64_t first, last;
    bool never;     /* it was said to be proven, or marked, that none of it comes */
    uint64_t epoch; /* of a mark */
};

struct model_session {
    char id[16];
    uint32_t id_len, set;
    bool known, started;
    bool loose; /* the contract leaves the outcome open from here on: only the ledger is checked */
    uint64_t epoch, cursor, first_sight;
    struct {
        uint64_t since, lanes;
    } told[MODEL_TOLD]; /* every S that a record told, and from which number on it holds */
    size_t told_n;
    uint64_t lanes, since;               /* newest that a record told; lanes 0 = unknown */
    uint64_t shown_parts, shown_lanes;   /* bit sets, since it became known */
    uint64_t first_by_part[MODEL_PARTS]; /* number of the first record that the partition showed */
    uint64_t first_by_lane[64];          /* the same by lane, */
    uint32_t part_of_lane[64];           /* and where that was */
    struct model_list held, ready;       /* by number; in order of release */
    struct model_range *skips;
    size_t skip_n, skip_cap;
    struct model_range *marks; /* numbers that markers of the current run cover, or of the next one */
    size_t mark_n, mark_cap;
    uint64_t floor; /* started in the middle: nothing is known of the numbers below */
    bool switching;
    uint64_t next_epoch, next_sight, next_shown, switched_at;
    uint64_t parked, parked_at, parked_reading,
        parked_cursor; /* due time of the last gap that was due and still open at rest, and when; 0 = none */
    struct model_list next;
    uint32_t stale_row;
};

struct model_part {
    bool assigned, asked_open, paused;
    uint64_t silent; /* reading time since the last sign of progress */
    uint32_t set, generation;
    int32_t lane;
    bool joined_middle;
    int64_t passed, last; /* read below; last record's offset, -1 none */
    uint64_t horizon, asked;
    struct {
        uint64_t asked;
        int64_t end;
    } answers[MODEL_ANSWERS];
    size_t answer_n;
};

struct model {
    unsalt_core_params_t p;
    struct model_part parts[MODEL_PARTS];
    struct model_session sessions[MODEL_SESSIONS];
    uint64_t held, held_bytes; /* records that the core has, whether their turn has come or not */
    uint64_t overflow_need;    /* bytes of the record that is being pushed, for the budget check */
    uint32_t overflow_session;
    uint64_t blocked_since; /* policy block: first refusal, UNSALT_NEVER = none */
    bool flushed;           /* a flush was asked for ... */
    uint64_t flush_time;    /* ... at this time: every gap below what had arrived gives way */
    bool reading, ever_paused;
    const char *wrong; /* an objection that taking a record has raised */
    uint64_t reading_ns;
    uint64_t events[UNSALT_CORE_EV__CNT], gaps[UNSALT_GAP__CNT];
};

void model_init(struct model *model, const unsalt_core_params_t *params);
void model_destroy(struct model *model);
/* Names a session; index < MODEL_SESSIONS. */
void model_session(struct model *model, uint32_t index, uint32_t set);
void model_assign(struct model *model, uint32_t part, uint32_t generation, const unsalt_core_partition_t *partition);

/* Time goes on by `ns`. */
void model_advance(struct model *model, uint64_t ns);
/* The core has taken this record. Sets rec->expect, and releases what it can in the model. */
void model_take(struct model *model, struct model_rec *rec, uint64_t now);
void model_eof(struct model *model, uint32_t part, int64_t offset);
void model_horizon(struct model *model, uint32_t part, uint64_t t);
void model_ask(struct model *model, uint32_t part, uint64_t now);
void model_answer(struct model *model, uint32_t part, int64_t end);

/* Does this event fit the state as it is, before the record that is being pushed was taken? */
bool model_fits(const struct model *model, const unsalt_core_event_t *event, const struct model_rec *next);
/* Judges an event and follows it. */
const char *model_event(struct model *model, const unsalt_core_event_t *event, uint64_t now);
/* Judges a record that came back, and follows it. */
const char *model_out(struct model *model, const unsalt_core_out_t *out);
/* Judges the rest: nothing pending, everything given up that must be; `deadline` is what the core says. */
const char *model_rest(struct model *model, uint64_t now, uint64_t deadline);
/* Is a gap of the set due whose verdict nobody is asked for? `asked` says which partitions just were. */
bool model_must_ask(const struct model *model, uint32_t set, uint64_t now, const bool *asked);

/* Used by the two halves of the model. */
uint64_t model_due(const struct model *model, const struct model_session *session);
uint64_t model_opened(const struct model_session *session);
bool model_read_past(const struct model *model, uint64_t parts, uint64_t t);
uint64_t model_set_parts(const struct model *model, uint32_t set);
void model_settle(struct model *model, struct model_session *session);
void model_insert(struct model_list *list, struct model_rec *rec);
void model_append(struct model_list *list, struct model_rec *rec);
/* Notes what a record tells of the lanes of its run. */
void model_tell(struct model_session *session, const unsalt_core_in_t *in);
/* Will the number never come, as far as what was received says? */
bool model_decided(const struct model *model, const struct model_session *session, uint64_t m);
bool model_marked(const struct model_session *session, uint64_t m);
bool model_can_start(const struct model *model, const struct model_session *session);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator: several members of a group, each with a core of its own, a coordinator that assigns partitions and
 * keeps what was committed, producers and the logs that they write, all on one virtual clock. A schedule is a setup and
 * an array of operations, both drawn from a seed; an operation means something in whatever state it meets, so every
 * part of a schedule is a schedule too, which is what shrinking works on. Which operations a schedule favours, and
 * which it does without, is drawn as well (swarm testing: Groce et al., ISSTA 2012).
 *
 * After each operation the checks look at the members that it touched; in the end all faults are healed and everything
 * must come to rest. The checks know the logs, which no member does.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H
#include <sim/coverage.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/core.h>

enum {
    SIM_MEMBERS = 4,
    SIM_SETS = 3,
    SIM_LANES = 4,
    SIM_PARTS = SIM_SETS * SIM_LANES,
    SIM_SESSIONS = 4,
    SIM_RUNS = 3,
    SIM_NUMBERS = 64,
    SIM_LOG = 200,
    SIM_COPIES = 4,
    SIM_STEPS = 260,
    SIM_OPEN = 8,
    SIM_TOKENS = 1024,
    SIM_ASKED = 2 * SIM_PARTS,
    SIM_TIMES = 32,
    SIM_RANGES = 128
};
#define SIM_MS  UINT64_C(1000000)
#define SIM_SEC (1000 * SIM_MS)

/* ---- the plan */

/* X(CONSTANT, name, weight): weight is how often it comes, as long as the swarm says nothing else. */
#define SIM_OPS(X)                                                                                  \
    X(PRODUCE, produce, 160)                                                                        \
    X(RESOLVE, resolve, 40)                                                                         \
    X(READ, read, 180)                                                                              \
    X(TIME, time, 70)                                                                               \
    X(PULL, pull, 20)                                                                               \
    X(ASK, ask, 30)                                                                                 \
    X(ANSWER, answer, 40)                                                                           \
    X(EOF, eof, 20)                                                                                 \
    X(HORIZON, horizon, 6)                                                                          \
    X(ACK, ack, 90)                                                                                 \
    X(COMMIT, commit, 40)                                                                           \
    X(ARRIVE, arrive, 40)                                                                           \
    X(REBALANCE, rebalance, 16)                                                                     \
    X(ASSIGN, assign, 40)                                                                           \
    X(CRASH, crash, 5)                                                                              \
    X(START, start, 10)                                                                             \
    X(CUT, cut, 7)                                                                                  \
    X(LEARN, learn, 8)                                                                              \
    X(PAUSE, pause, 5)                                                                              \
    X(BUSY, busy, 10)                                                                               \
    X(FREEZE, freeze, 6)                                                                            \
    X(RESIZE, resize, 10)                                                                           \
    X(RESTART, restart, 8)                                                                          \
    X(JUMP, jump, 3)                                                                                \
    X(LAST, last, 2)                                                                                \
    X(TRIM, trim, 3)                                                                                \
    X(CLOCK, clock, 5)                                                                              \
    X(FLUSH, flush, 2)                                                                              \
    X(NOISE, noise, 6)

enum sim_kind {
#define X(C, name, weight) SIM_OP_##C,
    SIM_OPS(X)
#undef X
    SIM_OP__CNT
};

/* What the numbers mean is up to the operation. */
struct sim_op {
    uint8_t kind, who;
    uint16_t a;
    uint32_t b;
};

/* Faults that are planted on purpose, to see that they are found. X(CONSTANT, name, text). */
#define SIM_PLANTS(X)                                                                               \
    X(NONE, none, "nothing is planted")                                                             \
    X(FENCE, fence, "the coordinator takes commits of any generation")                              \
    X(FRONTIER, frontier, "members commit one offset too much")                                     \
    X(DEDUPE, dedupe, "members hand duplicates out")                                                \
    X(UNA, una, "producers stamp a una that knows nothing of what is open")                         \
    X(HORIZON, horizon, "leaders answer with an end that lies below the real one")                  \
    X(SKIP, skip, "readers leave a record out now and then")                                        \
    X(BEGIN, begin, "new owners begin one record above what was committed")                         \
    X(SWAP, swap, "members exchange two records that were pulled together")                         \
    X(LOSE, lose, "a record that was pulled gets lost before the application has it")               \
    X(ATOMIC, atomic, "a commit that is refused leaves its cursors behind")                         \
    X(CURSORS, cursors, "the coordinator stores offsets without the cursors of the same commit")    \
    X(FORGET, forget, "new owners don't restore the cursors that were committed")

enum sim_plant {
#define X(C, name, text) SIM_PLANT_##C,
    SIM_PLANTS(X)
#undef X
    SIM_PLANT__CNT
};

struct sim_setup {
    unsigned members, sets, lanes, sessions, steps; /* lanes: partitions of a set, and the most that S can be */
    bool hash;       /* lanes of a session fall on any partition of the one set */
    bool plain;      /* records say a number and nothing else */
    bool configured; /* plain: S is known from the configuration */
    bool una, epochs, checkpoint, lazy, advice;
    bool exact;      /* no budget is small, nothing is forgotten or given up for time alone: verdicts are judged */
    bool forgetful; /* sessions leave the memory soon: their order isn't looked at */
    bool timestamps;
    unsigned lost, late, twice, doubtful; /* percent of the records that are produced */
    unsigned marked;                      /* percent of the lost ones that a marker follows */
    int64_t base;                         /* first offset of all logs */
    enum sim_plant plant;
    unsalt_core_params_t params;
};

struct sim_plan {
    uint64_t seed;
    struct sim_setup setup;
    unsigned n;
    struct sim_op ops[SIM_STEPS];
};

void sim_plan_draw(struct sim_plan *plan, uint64_t seed, enum sim_plant plant);
void sim_plan_print(const struct sim_plan *plan);
const char *sim_op_name(enum sim_kind kind);
/* A number that depends on both and on nothing else. */
uint64_t sim_mix(uint64_t a, uint64_t b);

/* ---- logs and the numbers of producers */

struct sim_rec {
    unsalt_core_in_t in; /* without msg, session and part */
    uint8_t session, run;
    uint8_t number;  /* place in its run, not its sequence */
    bool resent;     /* it may stand behind a higher one */
    bool handed;     /* handed out by anyone, or turned away as the policy says */
    bool committed;  /* done by a commit that was applied */
    uint64_t at;     /* true time at which it was written */
    uint64_t shown[SIM_MEMBERS]; /* what the clock of each member showed then */
};

struct sim_log {
    struct sim_rec recs[SIM_LOG];
    unsigned n, start; /* recs below `start` were deleted */
    int64_t end, start_offset;
    bool frozen; /* its leader gives nothing and answers nothing */
};

/* What became of a number: one of a session's run, whatever copies of it there are. */
struct sim_id {
    uint8_t copies;
    struct {
        uint8_t part, index;
    } copy[SIM_COPIES];
    bool handed;  /* at least once, by anyone */
    bool passed;  /* someone has given it up, or begun above it */
    bool settled; /* someone has said that it will never come */
    bool committed; /* acknowledged, and covered by a cursor that was committed */
    uint8_t acked_by; /* bit = member that has acknowledged it since it got its partition */
    uint16_t passed_in[SIM_MEMBERS];   /* pass of the member in which it was given up; 0 = none */
    uint16_t given_up[SIM_MEMBERS];    /* `assignments` of the member when it gave it up; 0 = its core can't know */
    uint16_t released_in[SIM_MEMBERS]; /* pass in which it was released */
    uint16_t handed_in[SIM_MEMBERS];   /* or handed out in any way */
};

struct sim_run {
    uint64_t epoch, jump_by;
    unsigned jump_at, next;
};

struct sim_open {
    uint8_t run, number, fate;
    uint16_t lanes;
    uint64_t since, at; /* at: when it was created */
};
enum { SIM_FATE_LOST, SIM_FATE_RESENT, SIM_FATE_DOUBTFUL };

struct sim_session {
    uint8_t set, run_n;
    bool ended;
    bool loose; /* its producer went back without an epoch: what belongs to which run isn't told by the records */
    bool tainted; /* a member took its runs in another order, so order across members says nothing */
    bool runs_unseen; /* a later run was released by a member that had not met the one before */
    uint16_t lanes;
    uint64_t since;
    struct sim_run runs[SIM_RUNS];
    struct sim_open open[SIM_OPEN];
    unsigned open_n, tail; /* tail: records that arrive behind the first of a later run */
    uint64_t highest[SIM_RUNS]; /* one above the highest number that was released of a run, by anyone */
};

/* ---- members */

enum { SIM_UNREAD, SIM_IN_CORE, SIM_HANDED, SIM_DONE };

struct sim_part {
    bool owned, pending; /* pending: it was given to the member, which has not begun yet */
    bool paused;
    int index;           /* in its core */
    uint16_t assignment; /* which one of the member this is, from 1 on */
    uint32_t generation; /* in its core */
    unsigned first, next, base; /* records: where it began, the next to read, the first that isn't done */
    int64_t began, position;
    int64_t eof;
    uint8_t state[SIM_LOG];
};

struct sim_token {
    uint8_t part, index;
    int core_index;
    uint32_t generation;
    uint64_t ticket;
};

struct sim_question {
    uint8_t part;
    int core_index;
    uint32_t generation;
    int64_t end;
};

/* What a member did with a session, within one pass: as long as no partition of its set is taken away. */
struct sim_pass {
    uint16_t pass;
    bool any, loose;
    bool unrestored; /* its cursor could not be restored: records of it had been read */
    bool restored[SIM_RUNS];
    unsigned stale; /* records that were stale */
    unsigned again; /* records of runs before the restored one that were read again */
    uint64_t epoch, seq;
    uint64_t sight[SIM_RUNS]; /* when the member met the run; 0 = never */
    unsigned read[SIM_RUNS], turned[SIM_RUNS]; /* records of the run: read or held; turned away by a budget */
    bool shown[SIM_RUNS][SIM_PARTS];
};

struct sim_member {
    bool alive, joined, cut, busy, revoking, flushing;
    uint32_t incarnation, generation; /* of the group, as far as it knows */
    unsalt_core_t *core;
    struct sim_part parts[SIM_PARTS];
    uint8_t part_of[SIM_PARTS + 1]; /* by index in the core */
    uint16_t pass[SIM_SETS];
    uint16_t assignments;
    struct sim_pass sessions[SIM_SESSIONS];
    struct sim_token tokens[SIM_TOKENS];
    unsigned token_n;
    struct sim_question asked[SIM_ASKED];
    unsigned asked_n;
    int batch_part;      /* whose events are being looked at: a push of this partition's records ... */
    unsigned batch_from; /* ... from this one on; -1 = no push */
    uint64_t in_core; /* records that the core has */
    uint64_t expired;
    uint64_t floor; /* greatest time that its core was told */
    int64_t offset; /* of its clock from the true time */
    unsigned clock_n; /* times that it was changed */
    uint64_t born;  /* true time of its start */
};

/* ---- the group */

/* The cursor of a session, as a checkpoint stores it. */
struct sim_cursor {
    bool there;
    unsalt_core_cursor_t head; /* without what it points to */
    unsalt_core_range_t done[SIM_RANGES], skipped[SIM_RANGES];
};

/* What is done of a partition beyond its committed offset. */
struct sim_done {
    size_t n;
    unsalt_core_range_t ranges[SIM_RANGES];
};

struct sim_commit {
    bool used;
    uint8_t member;
    uint32_t incarnation, generation;
    int64_t offsets[SIM_PARTS]; /* -1: not of this member */
    /* With checkpoint: */
    struct sim_cursor cursors[SIM_SESSIONS];
    struct sim_done done[SIM_PARTS];
    bool numbers[SIM_SESSIONS][SIM_RUNS][SIM_NUMBERS]; /* that are covered */
    bool records[SIM_PARTS][SIM_LOG];
};

struct sim_group {
    uint32_t generation;
    int owner[SIM_PARTS]; /* -1 = nobody */
    int64_t committed[SIM_PARTS];
    int64_t returned[SIM_PARTS]; /* the highest that a member was told to be committed */
    struct sim_commit flying[SIM_MEMBERS];
    struct sim_cursor cursors[SIM_SESSIONS];
    struct sim_done done[SIM_PARTS];
};

/* Which check has failed: shrinking keeps to it. */
enum sim_check {
    SIM_OK,
    SIM_CONSERVED,
    SIM_FRONTIER,
    SIM_ORDER,
    SIM_ACROSS,
    SIM_TWICE,
    SIM_DUPLICATE,
    SIM_LATE,
    SIM_FALSE_GAP,
    SIM_LOST,
    SIM_COMMIT,
    SIM_AGAIN,
    SIM_REST,
    SIM_FENCE,
    SIM_CALL
};

struct sim {
    const struct sim_plan *plan;
    const struct sim_setup *setup;
    struct sim_coverage *coverage;
    bool trace;
    uint64_t now;
    unsigned step;
    bool healing;
    uint64_t blocks; /* of memory, alive */
    unsigned parts;
    struct sim_log logs[SIM_PARTS];
    struct sim_session sessions[SIM_SESSIONS];
    struct sim_id ids[SIM_SESSIONS][SIM_RUNS][SIM_NUMBERS];
    struct sim_member members[SIM_MEMBERS];
    struct sim_group group;
    enum sim_check failed;
    char why[400];
};

/* Plays the plan. Returns which check failed, SIM_OK = none; sim->why says more. Frees all cores. */
enum sim_check sim_play(struct sim *sim, const struct sim_plan *plan, struct sim_coverage *coverage, bool trace);
/* Makes the plan as short as it gets while it fails in the same way. */
void sim_shrink(struct sim *sim, struct sim_plan *plan, enum sim_check check);

__attribute__((format(printf, 3, 4))) void sim_fail(struct sim *sim, enum sim_check check, const char *format, ...);
__attribute__((format(printf, 2, 3))) void sim_say(const struct sim *sim, const char *format, ...);

/* logs.c */
void sim_append(struct sim *sim, unsigned part, const struct sim_rec *rec);
void sim_trim(struct sim *sim, const struct sim_op *op);
unsigned sim_first_at(const struct sim_log *log, int64_t offset);
uint64_t sim_seq(const struct sim *sim, const struct sim_run *run, unsigned number);
struct sim_run *sim_run_of(struct sim *sim, unsigned session, uint64_t epoch);

/* producers.c */
void sim_produce(struct sim *sim, const struct sim_op *op);
void sim_resolve(struct sim *sim, const struct sim_op *op);
void sim_restart(struct sim *sim, const struct sim_op *op);
void sim_resize(struct sim *sim, const struct sim_op *op);
void sim_jump(struct sim *sim, const struct sim_op *op);
void sim_last(struct sim *sim, const struct sim_op *op);
void sim_noise(struct sim *sim, const struct sim_op *op);
void sim_settle_producers(struct sim *sim);

/* member.c */
bool sim_member_start(struct sim *sim, unsigned member);
void sim_member_crash(struct sim *sim, unsigned member);
void sim_member_assign(struct sim *sim, unsigned member, unsigned part);
void sim_member_revoke(struct sim *sim, unsigned member, unsigned part);
void sim_flush(struct sim *sim, unsigned member);
void sim_member_events(struct sim *sim, unsigned member);
void sim_member_turn(struct sim *sim, unsigned member);
void sim_member_pull(struct sim *sim, unsigned member, size_t most);
void sim_ack(struct sim *sim, unsigned member, unsigned share, uint64_t seed);

/* reading.c */
void sim_read(struct sim *sim, unsigned member, unsigned part, unsigned most);
void sim_eof(struct sim *sim, unsigned member, unsigned part);
void sim_ask(struct sim *sim, unsigned member);
void sim_answer(struct sim *sim, unsigned member, unsigned which, bool fails);
void sim_horizon(struct sim *sim, unsigned member, unsigned part);
uint64_t sim_time(struct sim *sim, unsigned member);
void sim_clock_trouble(struct sim *sim, unsigned member, const struct sim_op *op);
/* The time as the member's core sees it, which never goes back, to be noted when a record is written. */
uint64_t sim_clock_shows(const struct sim *sim, unsigned member);
/* What the member's clock showed when the record was written. */
uint64_t sim_clock_at(const struct sim *sim, unsigned member, const struct sim_rec *rec);

/* group.c */
void sim_commit_send(struct sim *sim, unsigned member);
void sim_commit_arrive(struct sim *sim, unsigned member, unsigned outcome);
void sim_rebalance(struct sim *sim, const struct sim_op *op);
void sim_learn(struct sim *sim, unsigned member);

/* checkpoint.c: without checkpoint they do nothing */
void sim_checkpoint_fill(struct sim *sim, unsigned member, struct sim_commit *commit);
void sim_checkpoint_apply(struct sim *sim, const struct sim_commit *commit);
void sim_checkpoint_end(struct sim *sim, const struct sim_commit *commit, bool kept);
void sim_checkpoint_restore(struct sim *sim, unsigned member, unsigned part);
bool sim_set_is_whole(const struct sim *sim, unsigned member, unsigned set);

/* judge.c: what comes out of a core, and what must hold at any time */
void sim_judge_out(struct sim *sim, unsigned member, const unsalt_core_out_t *out);
void sim_judge_position(struct sim *sim, unsigned member, unsigned part, int64_t position);
void sim_judge_member(struct sim *sim, unsigned member);
void sim_judge_end(struct sim *sim);
struct sim_pass *sim_pass_of(struct sim *sim, unsigned member, unsigned session);

/* verdicts.c: events */
void sim_judge_event(struct sim *sim, unsigned member, const unsalt_core_event_t *event);
/* A partition of the set was taken away: of sessions that the core has dropped it knows no verdict any more. */
void sim_verdicts_forget(struct sim *sim, unsigned member, unsigned set);
#endif

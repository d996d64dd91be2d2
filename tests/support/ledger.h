/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A core whose every record is written down: for hostile and long schedules, in which no model can say what should
 * happen, but in which this must hold whatever happens:
 *
 *   every record that was taken comes back exactly once, with its own partition, generation and number;
 *   the ledger of the core agrees with this one, and no budget is exceeded;
 *   a position is never above what is outstanding, and never goes back within a generation;
 *   a session's released numbers ascend within an epoch, unless a restart was announced, an assignment has changed or
 *   cursors were forgotten;
 *   expiring comes to rest; in the end everything comes out, and no memory is left.
 *
 * It keeps nothing of a record that is done with, so it runs for ever. The first thing that is wrong is kept in `why`;
 * everything after that does nothing.
 */
#ifndef TESTS_SUPPORT_LEDGER_H
#define TESTS_SUPPORT_LEDGER_H
#include <stdbool.h>
#include <support/failmem.h>
#include <unsalt/core.h>

enum { LEDGER_PARTS = 64, LEDGER_SETS = 4, LEDGER_BATCH = 64, LEDGER_DONE = 8 };

/* A record that the core has, or that holds a position back. */
struct ledger_rec {
    uint64_t seq, epoch, ticket, taken_at;
    int64_t offset;
    uint32_t session, part, generation, bytes;
    uint16_t kind, state;
    bool listed; /* stands in its partition's list */
    bool back, acked;
    bool done; /* an earlier owner is said to have done it */
    void *user; /* the caller's */
};

struct ledger_part {
    unsalt_core_partition_t spec;
    struct ledger_rec **recs; /* ring, by offset; its head is not acknowledged */
    size_t capacity, first, count;
    int64_t next, last, position, unsequenced; /* last: offset of the last record, -1 none */
    uint32_t generation;
    bool assigned, asked;
    unsalt_core_range_t done[LEDGER_DONE]; /* by an earlier owner, as was stated */
    size_t done_n;
};

/* What a session released last. */
struct ledger_last {
    uint64_t seq, epoch;
    uint32_t jumps; /* restarts that were announced and not used yet */
    bool any;
};

struct ledger {
    unsalt_core_t *core;
    unsalt_core_params_t params; /* set by ledger_init(); change before ledger_open() */
    struct failmem mem;
    uint64_t now; /* set by the caller */
    struct ledger_part parts[LEDGER_PARTS];
    uint32_t parts_end; /* none above was ever assigned */
    struct ledger_last *last; /* owned, LEDGER_SETS for each session */
    uint32_t sessions;
    uint64_t taken, back[UNSALT_STATE__CNT], bytes, unacked;
    uint64_t held_peak;
    uint64_t events[UNSALT_CORE_EV__CNT], gaps[UNSALT_GAP__CNT];
    bool forgotten, failed;
    bool trace; /* say on stderr what goes in and comes out */
    void *user; /* the caller's, for its callbacks; each may be NULL */
    void (*on_out)(struct ledger *ledger, struct ledger_rec *rec, const unsalt_core_out_t *out);
    void (*on_event)(struct ledger *ledger, const unsalt_core_event_t *event);
    char why[512];
};

/*
 * Defaults of the core, with a counting allocator; the clock begins at 1 s. The order of sessions 0..sessions-1 is
 * looked at; there may be more.
 */
void ledger_init(struct ledger *ledger, uint32_t sessions);
/* Makes the core and starts reading. */
bool ledger_open(struct ledger *ledger);
/* Takes everything back, checks that it is all, and frees. Returns whether nothing was ever wrong. */
bool ledger_close(struct ledger *ledger);
/* Notes the first failure. Returns false. */
__attribute__((format(printf, 2, 3))) bool ledger_fail(struct ledger *ledger, const char *format, ...);

/* Assigns a partition; set tags below LEDGER_SETS. Returns the index, or -1: out of memory, or failed. */
int ledger_assign(struct ledger *ledger, const unsalt_core_partition_t *partition);
/* Takes a partition away; its records come with the next pulls. False: out of memory, or failed. */
bool ledger_revoke(struct ledger *ledger, uint32_t part);

/* States what an earlier owner has done, at most LEDGER_DONE ranges; nothing, if they are not ascending and apart. */
void ledger_done_before(struct ledger *ledger, uint32_t part, const unsalt_core_range_t *ranges, size_t n);

/* Writes the id of a session, of at least `pad` bytes. Returns its length; `id` has room for 16 + pad bytes. */
uint32_t ledger_id(uint32_t session, uint32_t pad, char *id);
/*
 * Pushes records; everything of `in` but msg counts, and sessions[i] says whose record it is. Pulls and reads
 * events if the core asks for it. `user` (may be NULL) is noted in each record. Returns how many were taken, with the
 * status of the last push: less than all if the core is blocked or out of memory, or something failed.
 */
size_t ledger_push(struct ledger *ledger, const uint32_t *sessions, const unsalt_core_in_t *in, size_t n, void *user,
                   int *status);
bool ledger_pull(struct ledger *ledger, size_t max, size_t *pulled);
bool ledger_events(struct ledger *ledger, size_t *seen);
/* Expires, reads events and pulls until nothing is due; then ledger_check(). */
bool ledger_rest(struct ledger *ledger);
/* Flushes until that changes nothing any more. */
bool ledger_flush(struct ledger *ledger);
/* Acknowledges a record that was handed out: the nth of the partition's list, if it is one. */
void ledger_ack(struct ledger *ledger, uint32_t part, size_t nth);
/* All of them. */
void ledger_ack_all(struct ledger *ledger);
void ledger_eof(struct ledger *ledger, uint32_t part, int64_t above);
void ledger_questions(struct ledger *ledger);
/* above < 0: the question failed; else the end is so far above what was read. Nothing, if there is no question. */
void ledger_answer(struct ledger *ledger, uint32_t part, int64_t above);
/* The horizon of every partition becomes now. */
void ledger_horizons(struct ledger *ledger);

/* Everything that must hold now. `whole`: what the core has decided was pulled too. */
bool ledger_check(struct ledger *ledger, bool whole);
#endif

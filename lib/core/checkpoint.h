/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine keeps so that a commit can carry the cursors of sessions (params.cursors), and what it does with
 * those of an earlier owner:
 *
 *   handed.c      which session and number a record in the application's hands belongs to
 *   changed.c     which sessions have changed since their cursor was taken
 *   cursor_out.c  the cursor of a session, and what is done beyond a partition's position
 *   restored.c    cursors of an earlier owner: numbers above the cursor that are done already
 *   done_before.c offsets that an earlier owner had done beyond its position
 *
 * The idea: a number below a session's cursor is done, but for those whose records the application still has. They are
 * few, so they are what is kept, and not the many that are done.
 */
#ifndef US_CORE_CHECKPOINT_H
#define US_CORE_CHECKPOINT_H
#include <base/skips.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/core.h>

struct us_session;
struct us_part;
struct us_set;

/* ---- handed.c */

/* A record in the application's hands. session NULL: the ticket is none of a session, or was acknowledged. */
struct us_handed {
    struct us_session *session;
    uint64_t seq;
    bool late;   /* it was given up before it came: if it comes again it is late again */
    bool former; /* of a run before the session's current one */
};
/* By ticket, a ring as large as the frontier's; NULL while nothing is kept. */
struct us_handed_ring {
    struct us_handed *slots;
    uint64_t size;
};

/* A record of the session leaves as RELEASED or LATE; its ticket is set, and the ring was made large enough. */
void us_handed_note(struct unsalt_core *core, struct us_session *session, const unsalt_core_out_t *out);
/* unsalt_core_ack() if cursors are kept, of a live generation. */
int us_handed_ack(struct unsalt_core *core, struct us_part *part, uint64_t ticket);
/* A later run of the session begins: what the application still holds is of a former one. */
void us_handed_former(struct unsalt_core *core, struct us_session *session);
/* Nothing that the application holds belongs to sessions of the set any more: they go, or start again. */
void us_handed_forget_set(struct unsalt_core *core, const struct us_set *set);

/* ---- changed.c */

/* Lists of sessions; a session stands in one of them or in none. */
enum us_change { US_CHANGE_NONE, US_CHANGE_CHANGED, US_CHANGE_TAKEN };
struct us_change_list {
    struct us_session *first, *last;
};

void us_changed(struct unsalt_core *core, struct us_session *session); /* nothing if cursors aren't kept */
void us_changed_taken(struct unsalt_core *core, struct us_session *session);
void us_changed_unlink(struct unsalt_core *core, struct us_session *session); /* it goes, or has no cursor */

/* ---- cursor_out.c */

/* A number of a session in the application's hands. */
struct us_open {
    const struct us_session *session;
    uint64_t seq;
    bool late;
};
struct us_ranges {
    unsalt_core_range_t *ranges;
    uint32_t count, capacity;
};
struct us_taking {
    bool active;             /* begun, not ended */
    bool all;                /* and all were taken */
    struct us_open *open;    /* of all sessions, sorted */
    uint32_t open_count, open_capacity;
    uint64_t handed; /* core->handed_changes when they were found */
    struct us_ranges done, skipped; /* of the cursor that was taken last */
};

void us_taking_destroy(struct unsalt_core *core);

/* ---- restored.c */

/* Numbers above the cursor of a restored session that are done already. */
struct us_redo_range {
    uint64_t first, last;
    bool skipped; /* given up */
};
struct us_redo {
    uint32_t count, at; /* those before `at` lie below the cursor */
    struct us_redo_range ranges[];
};

/* The range that covers the number; NULL if none does. */
const struct us_redo_range *us_redo_find(const struct us_redo *redo, uint64_t seq);
/* The cursor passes the ranges that it has come to. Frees the redo when that was the last one. */
void us_redo_pass(struct unsalt_core *core, struct us_session *session);
void us_redo_free(struct unsalt_core *core, struct us_session *session);

/* ---- done_before.c */

struct us_done_before {
    unsalt_core_range_t *ranges; /* owned; NULL when reading has passed all of them */
    uint32_t count, at;
};

void us_done_before_destroy(struct us_done_before *done, const struct unsalt_mem *mem);
/* The position, or if the offset there was done before, the next one that wasn't. */
int64_t us_done_before_pass(const struct us_done_before *done, int64_t position);
/* Is the offset, which is above the last one taken, among them? They go when all are passed. */
bool us_done_before_has(struct unsalt_core *core, struct us_part *part, int64_t offset);
/* Is each of n ranges in order, and above the one before it? */
bool us_ranges_ascending(const unsalt_core_range_t *ranges, size_t n);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions that doze: each holds one record above a gap, waits for nothing but time, and takes the memory of little
 * more than that record. See doze.c. US_AWAKE_MAX sessions may be awake before the first of them dozes.
 */
#ifndef US_CORE_DOZE_H
#define US_CORE_DOZE_H
#include <core/engine.h>

struct us_doze {
    struct us_wait wait;
    struct us_held held;
    uint64_t cursor, upto; /* of its reassembly, and of the rule of its lanes */
    struct us_evidence *evidence; /* of its reassembly; owned */
    struct us_set *set;
    struct us_doze *prev, *next; /* of the set */
    uint32_t ref;                /* of the row */
    uint16_t modulus;            /* of its reassembly; 0: irregular mode */
    bool flushing;               /* as of a session */
};
static inline struct us_doze *us_doze_of(struct us_wait *wait) {
    return (struct us_doze *)((char *)wait - offsetof(struct us_doze, wait));
}

/* Room for a session that isn't awake, seen as if it were: to be read only. */
struct us_view {
    struct us_session session;
    struct us_lane lane;
    union {
        struct us_chunk is;
        char room[sizeof(struct us_chunk) + sizeof(struct us_held_entry)];
    } chunk;
};

/* Lets it doze, if it may. Then it is gone. */
bool us_doze(struct unsalt_core *core, struct us_session *session);
/* Lets the one doze that has been awake longest; if it may not, it is asked again when all others were. */
void us_doze_oldest(struct unsalt_core *core, struct us_set *set);
/* NULL: out of memory, it dozes on. */
struct us_session *us_doze_wake(struct unsalt_core *core, struct us_doze *doze);
bool us_doze_wake_all(struct unsalt_core *core, struct us_set *set); /* false: some doze on, likewise */
/* It as if it were awake, written to *view; to be read only. */
const struct us_session *us_doze_view(const struct unsalt_core *core, const struct us_doze *doze, struct us_view *view);
/* Frees those of a set; the records that they hold are the caller's business. */
void us_dozes_drop(struct unsalt_core *core, struct us_set *set);

/* ---- sessions.c, for doze.c alone */

/* A session that is nothing yet but awake; its timer has room already. NULL: out of memory, nothing changed. */
struct us_session *us_session_block(struct unsalt_core *core, struct us_set *set, uint32_t ref);
/* Gives the memory of one that holds nothing back. */
void us_session_block_back(struct unsalt_core *core, struct us_session *session);
/* To the end of the list of those that are awake; and out of it. */
void us_session_link_awake(struct unsalt_core *core, struct us_session *session);
void us_session_unlink_awake(struct unsalt_core *core, struct us_session *session);
/* Has it nothing that a row has no place for, but for its reassembly, its skips and its timer? */
bool us_session_is_plain(const struct us_session *session);
/* Writes what the row has a place for, but for the cursor; and reads it, with the cursor. */
void us_session_keep(const struct us_session *session);
void us_session_remember(struct us_session *session, uint64_t cursor);
/* A view of a session that is nothing yet. */
void us_session_view_begin(const struct unsalt_core *core, struct us_set *set, uint32_t ref, struct us_view *view);
#endif

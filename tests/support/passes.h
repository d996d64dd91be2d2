/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several members of a group may deliver, in the order in which they did: every session from its first number on,
 * nothing left out. A record may come again, but only as part of a pass: a run of numbers without a hole that begins
 * with a new assignment of its member, and above what was committed. What is wrong ends the process with a line that
 * says it.
 */
#ifndef TESTS_SUPPORT_PASSES_H
#define TESTS_SUPPORT_PASSES_H
#include <stddef.h>
#include <stdint.h>

enum { PASSES_MEMBERS = 64, PASSES_SESSIONS = 128, PASSES_PLACES = 256, PASSES_NAME = 24 };

/* What a member delivered of a session last. */
struct passes_at {
    uint64_t seq;        /* 0: nothing yet */
    uint32_t generation; /* the highest of its tokens so far */
};
struct passes_session {
    char name[PASSES_NAME];
    uint64_t highest; /* that anybody delivered */
    struct passes_at at[PASSES_MEMBERS];
};
struct passes {
    struct passes_session sessions[PASSES_SESSIONS];
    size_t count;
    int64_t committed[PASSES_PLACES]; /* by partition: nothing below may come from now on */
    uint64_t records, again;          /* all, and those that came again */
    uint64_t by_member[PASSES_MEMBERS];
};

/* Too large for a stack: zeroed, the caller's, to be freed with free(3). */
struct passes *passes_new(void);
/* Sequences start at 1. `place` numbers the partition, -1: not known. `generation` is that of the record's token. */
void passes_add(struct passes *passes, unsigned member, const char *session, uint64_t seq, uint32_t generation,
                int place, int64_t offset);
/* The group has this offset. */
void passes_commit(struct passes *passes, int place, int64_t offset);
/* The highest number of a session that was delivered; 0: none. */
uint64_t passes_highest(const struct passes *passes, const char *session);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedules for the engine, drawn from a seed: producers number and salt their records, lose some, repeat some, send
 * some again later, jump and restart; every partition is a log of its own; and a reader takes stretches of these
 * logs in any order while a virtual clock, horizons, questions, acknowledgements and flushes go on between them.
 *
 * A script is a plain array, so any part of it is a script too: that is what shrinking works on.
 */
#ifndef TESTS_SUPPORT_SCRIPT_H
#define TESTS_SUPPORT_SCRIPT_H
#include <support/prng.h>
#include <unsalt/core.h>

enum script_kind {
    OP_RECORD,    /* push `in`; `joined`: in one batch with the next record */
    OP_ADVANCE,   /* the clock goes on by `value` ns */
    OP_PULL,      /* pull at most `value` (matters to a lazy drive only) */
    OP_HORIZON,   /* everything that stood in the partition `value` ns ago was pushed */
    OP_QUESTIONS, /* take the questions that are there */
    OP_ANSWER,    /* answer the question on the partition; the end is `value` above what was read */
    OP_FAIL,      /* the question on the partition failed */
    OP_EOF,       /* end of partition, `value` above what was read (a control record stood there) */
    OP_ACK,       /* acknowledge: `value` chooses among what is outstanding */
    OP_FLUSH,
    OP_PAUSE,   /* value: on or off */
    OP_READING, /* value: on or off */
    OP_REVOKE,  /* take the partition away ... */
    OP_ASSIGN   /* ... and give it back at its committed position */
};

struct script_op {
    enum script_kind kind;
    bool joined;
    uint32_t session, part;
    uint64_t value; /* for OP_RECORD: by how many the offset jumps, >= 1 */
    unsalt_core_in_t in;
};

struct script {
    struct script_op *ops;
    size_t n;
};

/* Shares are percent: of records, or of steps. */
struct script_conf {
    unsigned steps;
    unsigned sets, parts, sessions; /* parts: of each set */
    unsigned lanes;                 /* S; 0 = the records don't tell, numbers go to partitions at random */
    bool topics;                    /* lane = partition within the set */
    bool hide_lanes;                /* salted over `lanes`, but the records don't tell */
    uint64_t seq_first;
    unsigned burst, ahead;        /* longest stretch that is read; records that a producer is ahead of the reader */
    unsigned loss, twice, again;  /* lost; repeated at once; sent (again) later */
    unsigned jump, epoch, resize; /* of produced records: far jump, restart under a higher epoch, other S */
    bool una;                     /* records carry una, and the producer keeps it as a real one does */
    unsigned marker;              /* of the numbers that are abandoned: followed by a gap marker */
    unsigned trim;                /* records per partition that were consumed before, at most */
    unsigned odd;                 /* unsequenced, control, malformed, below the first number */
    unsigned advance;
    uint64_t advance_max;
    unsigned horizon, question, eof, ack, pull, flush, pause, revoke;
};

void script_make(struct script *script, const struct script_conf *conf, struct prng *prng);
void script_free(struct script *script);
/* The same script without the operations first..first+n-1. */
void script_without(struct script *less, const struct script *script, size_t first, size_t n);
/* Writes the script to stderr, one operation a line; the first 200 of them. */
void script_print(const struct script *script);
#endif

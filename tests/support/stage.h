/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A core with a virtual clock and what it said and gave back as text, so that a unit test reads as a story:
 *
 *     stage_push(&s, 0, "a", 3);
 *     stage_push(&s, 0, "a", 1);
 *     CHECK_STR(stage_took(&s), "a1");
 *     stage_wait(&s, 500 * MS);
 *     CHECK_STR(stage_said(&s), "gap:a2-2:timeout");
 *     CHECK_STR(stage_took(&s), "a3!");
 *
 * "a1" = number 1 of session a was released; "a3!" = with the after-gap flag; "late:a2", "duplicate:a1" ... = by
 * state. A label names what was pushed, so an unsequenced record shows the number it was pushed with.
 */
#ifndef TESTS_SUPPORT_STAGE_H
#define TESTS_SUPPORT_STAGE_H
#include <stdbool.h>
#include <support/failmem.h>
#include <unsalt/core.h>

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum { STAGE_PARTS = 256, STAGE_TEXT = 16384 };

struct stage {
    unsalt_core_params_t params; /* set by stage_init(); change before stage_open() */
    unsalt_core_t *core;
    struct failmem mem;
    uint64_t now;
    unsalt_core_in_t in;       /* template of the next pushes: lane, lanes, epoch, flags, timestamp, bytes ... */
    bool lazy;                 /* don't pull behind each call */
    bool ack;                  /* acknowledge what comes out */
    int status;                /* of the last push */
    int64_t next[STAGE_PARTS]; /* next offset of each partition */
    unsalt_core_out_t last;    /* last record that came out */
    unsalt_core_event_t event; /* last event; its session is not kept */
    char took[STAGE_TEXT], said[STAGE_TEXT], text[STAGE_TEXT];
    struct stage_label *labels;
};

/* Defaults of the core, with a counting allocator. The clock begins at 1 s. */
void stage_init(struct stage *stage);
/* Makes the core and starts reading. */
void stage_open(struct stage *stage);
/* stage_init(), stage_open() and n partitions of set 0, read from the start of the log. */
void stage_default(struct stage *stage, uint32_t n);
/* Assigns a partition; returns its index. */
uint32_t stage_assign(struct stage *stage, uint32_t set, uint32_t set_size, int32_t lane, int64_t start,
                      int64_t log_start);
/* n partitions of one set, lane = index if `topics`. */
void stage_parts(struct stage *stage, uint32_t set, uint32_t n, bool topics, int64_t start, int64_t log_start);

/* Pushes one record behind the last one of its partition. Returns whether it was taken. */
bool stage_push(struct stage *stage, uint32_t part, const char *session, uint64_t seq);
/* The same with lane = seq mod lanes of the template. */
bool stage_push_lane(struct stage *stage, uint32_t part, const char *session, uint64_t seq);
/* Pulls at most max records. */
size_t stage_pull(struct stage *stage, size_t max);
/* Expires until nothing is due. */
void stage_expire(struct stage *stage);
/* The clock goes on, then stage_expire(). */
void stage_wait(struct stage *stage, uint64_t ns);
/* The horizon of partitions first..last becomes now; then stage_expire(). */
void stage_horizon(struct stage *stage, uint32_t first, uint32_t last);
void stage_flush(struct stage *stage);
unsalt_core_counters_t stage_counters(const struct stage *stage);

/* What came out, and what was said, since the last call of the same function. */
const char *stage_took(struct stage *stage);
const char *stage_said(struct stage *stage);
/* Revokes everything, takes back what is held, frees the core; checks the ledger and that no memory is left. */
void stage_close(struct stage *stage);
#endif

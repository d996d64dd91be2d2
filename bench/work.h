/* SPDX-License-Identifier: BSD-2-Clause */
/* The topic of topic.h worked off by many threads: by unsalt's pipeline in order, and by a pool without any order. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H
#include "report.h"
#include <stdbool.h>

enum { WORKERS_MAX = 1000 };

enum work_kind {
    WORK_SLEEP, /* so many microseconds; 0: nothing */
    WORK_RANDOM, /* sleeps 0 to so many, by the record's offset */
    WORK_BURN   /* so much processor time */
};
struct work {
    enum work_kind kind;
    unsigned us;
};

const char *work_word(enum work_kind kind); /* sleep, random, burn */
bool work_has_pipeline(void);               /* whether this build has it */

/*
 * Works off so many records; adds microseconds per record, from the start of the first work to the end of the last.
 * The pipeline is given more than that, for it reads on: of its `keys` keys, which come in turns, the numbers up to
 * records / keys are worked on and counted, and what comes behind them costs no work, as the pool doesn't do it either.
 */
void work_pipeline(const struct work *work, int workers, long records, long keys, struct bench_runs *runs);
void work_pool(const struct work *work, int workers, long records, struct bench_runs *runs);
#endif

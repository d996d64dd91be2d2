/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives a core through a script and looks after every step at what must hold whatever happens: every record comes
 * back exactly once and is in one state of the ledger; the records of a session are released in ascending order,
 * none twice; the commit position is the lowest outstanding offset and never goes back within a generation. Unless
 * told not to, it holds everything against the naive model too. If params.cursors is set, cursors are taken now and
 * then, and must be right; see <support/carry.h>.
 */
#ifndef TESTS_SUPPORT_DRIVE_H
#define TESTS_SUPPORT_DRIVE_H
#include <support/script.h>
#include <unsalt/core.h>

struct drive_conf {
    unsalt_core_params_t params;
    unsigned sets, parts; /* parts: of each set */
    bool topics;          /* partition i of a set carries lane i */
    int64_t start_offset, log_start;
    bool no_model; /* what must always hold is checked, and no more */
    bool single;   /* push one record at a time, and come to rest after each */
    bool lazy;     /* pull only when the script says so */
    bool trace;    /* say on stderr what goes in and comes out */
    uint32_t awake_max; /* sessions that are awake before the others doze */
};

/* Plays the script. Returns true if nothing was wrong; else `why` says what was, and at which operation. */
bool drive_play(const struct drive_conf *conf, const struct script *script, char *why, size_t why_size);

/* Draws case number `number` of the run's seed into both structures. */
typedef void drive_draw_t(struct prng *prng, struct drive_conf *drive, struct script_conf *script);

/*
 * Plays `cases` scripts (times UNSALT_ITER / 100, if that is set). At a failure it shrinks the script, prints what is
 * left, and ends the test.
 */
void drive_property(const char *name, unsigned cases, drive_draw_t *draw);
/* Number of cases after UNSALT_ITER, at least 1. */
unsigned drive_cases(unsigned cases);
#endif

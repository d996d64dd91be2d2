/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy is told from a late record exactly, as long as the skipped ranges are remembered. */
#include <support/check.h>
#include <support/drive.h>

static void copies(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    script->sessions = (unsigned)prng_between(prng, 1, 3);
    script->lanes = (unsigned)prng_below(prng, 12);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 30);
    script->ahead = (unsigned)prng_between(prng, 2, 60);
    script->loss = (unsigned)prng_below(prng, 20);
    script->twice = (unsigned)prng_below(prng, 60);
    script->again = (unsigned)prng_below(prng, 80);
    script->jump = prng_chance(prng, 20) ? 5 : 0;
    script->seq_first = drive->params.seq_first = prng_below(prng, 3);
    drive->params.start = UNSALT_START_FIRST;
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.gap_clock = (unsalt_gap_clock_t)prng_below(prng, 2);
    drive->params.gap_timeout_ns = prng_between(prng, 1, 100000000);
    drive->params.skips_max = 100000;
    drive->single = prng_chance(prng, 50);
    script->advance = 40;
    script->advance_max = 100000000;
    script->horizon = 40;
    script->flush = 20;
    script->ack = 20;
    drive->lazy = prng_chance(prng, 20);
    script->pull = drive->lazy ? 60 : 0;
}

TEST(engine_duplicates, copies_and_late_records) {
    drive_property("duplicates", 250, copies);
}

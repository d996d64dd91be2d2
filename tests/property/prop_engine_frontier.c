/* SPDX-License-Identifier: BSD-2-Clause */
/* The commit position is the lowest offset that is held or was handed out and not acknowledged, to the offset. */
#include <support/check.h>
#include <support/drive.h>

static void positions(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 3);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 4);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, 5);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 40);
    script->loss = (unsigned)prng_below(prng, 10);
    script->twice = (unsigned)prng_below(prng, 10);
    script->odd = 20;
    script->eof = 20;
    script->ack = 70;
    script->seq_first = drive->params.seq_first = 1;
    drive->params.start = UNSALT_START_FIRST;
    drive->params.skips_max = 100000;
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.malformed = (unsalt_malformed_t)prng_below(prng, 2);
    drive->start_offset = prng_chance(prng, 50) ? 0 : (int64_t)1 << prng_below(prng, 61);
    script->advance = 40;
    script->advance_max = 300000000;
    script->horizon = 40;
    drive->lazy = prng_chance(prng, 30);
    script->pull = drive->lazy ? 60 : 0;
}

TEST(engine_frontier, is_the_lowest_outstanding_offset) {
    drive_property("frontier", 300, positions);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A session that is joined in the middle starts at the lowest number that may still come, as soon as that is known. */
#include <support/check.h>
#include <support/drive.h>

static void middle(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->sessions = (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 60);
    script->loss = (unsigned)prng_below(prng, 10);
    script->trim = (unsigned)prng_below(prng, 30);
    script->seq_first = drive->params.seq_first = 1;
    script->advance = 40;
    script->advance_max = 200000000;
    script->horizon = (unsigned)prng_below(prng, 40);
    drive->params.start = prng_chance(prng, 50) ? UNSALT_START_SEEN : UNSALT_START_RESUME;
    drive->start_offset = prng_chance(prng, 20) ? 0 : 1000;
    drive->log_start = prng_chance(prng, 50) ? 0 : drive->start_offset;
    drive->params.skips_max = 100000;
    drive->single = true;
}

TEST(engine_start, joined_in_the_middle) {
    drive_property("start", 600, middle);
}

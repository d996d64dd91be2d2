/* SPDX-License-Identifier: BSD-2-Clause */
/* A gap is given up when it is due and proven, not before and not later, whatever finds the horizons. */
#include <support/check.h>
#include <support/drive.h>

static void gaps(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 50);
    script->loss = (unsigned)prng_between(prng, 1, 30);
    script->again = (unsigned)prng_below(prng, 10);
    script->jump = prng_chance(prng, 40) ? 20 : 0;
    script->seq_first = drive->params.seq_first = 1;
    script->advance = 60;
    script->advance_max = 200000000;
    drive->params.skips_max = 100000;
    drive->params.start = UNSALT_START_FIRST;
    drive->single = true;
    script->flush = prng_chance(prng, 30) ? 10 : 0;
}

static void by_horizon(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    gaps(prng, drive, script);
    drive->params.gap_timeout_ns = prng_chance(prng, 10) ? 0 : prng_between(prng, 1, 500000000);
    script->horizon = (unsigned)prng_below(prng, 60);
    script->question = (unsigned)prng_below(prng, 60);
    script->eof = (unsigned)prng_below(prng, 40);
}

static void by_wall(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    gaps(prng, drive, script);
    drive->params.gap_clock = UNSALT_CLOCK_WALL;
    drive->params.gap_timeout_ns = prng_chance(prng, 20) ? 0 : prng_between(prng, 1, 500000000);
}

static void by_silence(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    by_horizon(prng, drive, script);
    drive->params.gap_stall_max_ns = prng_between(prng, 100000000, 2000000000);
    script->pause = prng_chance(prng, 50) ? 50 : 0;
}

static void by_patience(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    by_horizon(prng, drive, script);
    drive->params.gap_wait_max_ns = prng_between(prng, 600000000, 3000000000);
}

TEST(engine_gaps, by_horizon) {
    drive_property("gaps.horizon", 250, by_horizon);
}

TEST(engine_gaps, by_wall) {
    drive_property("gaps.wall", 150, by_wall);
}

TEST(engine_gaps, by_silence) {
    drive_property("gaps.silence", 200, by_silence);
}

TEST(engine_gaps, by_the_longest_wait) {
    drive_property("gaps.patience", 200, by_patience);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A higher epoch takes over when every partition has shown it or was read past its first sight, and not before. */
#include <support/check.h>
#include <support/drive.h>

static void epochs(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    drive->topics = script->topics = prng_chance(prng, 30);
    script->sessions = (unsigned)prng_between(prng, 1, 3);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 40);
    script->loss = (unsigned)prng_below(prng, 10);
    script->twice = (unsigned)prng_below(prng, 10);
    script->epoch = (unsigned)prng_between(prng, 5, 60);
    script->seq_first = drive->params.seq_first = prng_below(prng, 2);
    script->advance = 40;
    script->advance_max = 200000000;
    script->horizon = (unsigned)prng_below(prng, 40);
    drive->params.start = UNSALT_START_FIRST;
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.skips_max = 100000;
    drive->params.restart_k = 1024;
    drive->single = true;
}

static void epochs_and_restarts(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    epochs(prng, drive, script);
    script->again = (unsigned)prng_below(prng, 30);
    drive->params.restart_k = (uint32_t)prng_between(prng, 2, 8);
    drive->params.start = (unsalt_start_t)prng_below(prng, 3);
    drive->single = prng_chance(prng, 50);
    drive->lazy = prng_chance(prng, 50);
    script->pull = 50;
    drive->no_model = true;
}

TEST(engine_epoch, the_higher_one_takes_over) {
    drive_property("epoch", 600, epochs);
}

TEST(engine_epoch, with_producers_that_go_back) {
    drive_property("epoch.back", 800, epochs_and_restarts);
}

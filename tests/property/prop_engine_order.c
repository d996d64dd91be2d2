/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever the lanes, bursts and batches, a session comes out in the order of its numbers, and all of it. */
#include <support/check.h>
#include <support/drive.h>

static void shape(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 8);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->resize = prng_chance(prng, 20) ? 10 : 0;
    script->burst = (unsigned)prng_between(prng, 1, 60);
    script->ahead = (unsigned)prng_between(prng, 2, 150);
    script->seq_first = prng_chance(prng, 70) ? 1 : prng_chance(prng, 50) ? 0 : UINT64_MAX - 700;
    drive->params.seq_first = script->seq_first;
    drive->params.start = prng_chance(prng, 50) ? UNSALT_START_FIRST : UNSALT_START_RESUME;
    drive->params.skips_max = 100000;
    drive->params.lanes = 0;
    script->advance = 30;
    script->advance_max = 200000000;
    script->horizon = 20;
    script->ack = 30;
    drive->lazy = prng_chance(prng, 30);
    script->pull = drive->lazy ? 60 : 0;
    drive->params.release_max = (uint32_t)prng_between(prng, 1, 40);
}

static void nothing_lost(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    shape(prng, drive, script);
    drive->params.gap_timeout_ns = UNSALT_NEVER;
    script->odd = 10;
    drive->params.malformed = (unsalt_malformed_t)prng_below(prng, 2);
}

static void sent_again_out_of_place(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    shape(prng, drive, script);
    script->loss = (unsigned)prng_below(prng, 10);
    script->again = (unsigned)prng_between(prng, 1, 30);
    script->twice = (unsigned)prng_below(prng, 20);
    script->question = 20;
    script->eof = 10;
}

TEST(engine_order, nothing_is_lost) {
    drive_property("order.nothing_lost", 150, nothing_lost);
}

TEST(engine_order, records_are_sent_again_out_of_place) {
    drive_property("order.again", 150, sent_again_out_of_place);
}

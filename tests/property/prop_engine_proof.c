/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof and markers: what is given up on them never comes, however records are lost, repeated and sent again behind
 * higher ones; and a gap whose fate is known doesn't stay open. The producers of the scripts keep `una` as a real
 * one does. The clock is nearly out of the play, so that most of what is given up is given up on evidence.
 */
#include <support/check.h>
#include <support/drive.h>

static void producers(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_between(prng, 1, script->parts);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 50);
    script->loss = (unsigned)prng_between(prng, 1, 30);
    script->twice = (unsigned)prng_below(prng, 10);
    script->jump = prng_chance(prng, 30) ? 20 : 0;
    script->seq_first = drive->params.seq_first = 1;
    script->advance = 20;
    script->advance_max = 50000000;
    script->una = true;
    drive->params.skips_max = 100000;
    drive->params.start = UNSALT_START_FIRST;
    drive->params.restart_k = 1000000;
    drive->params.gap_timeout_ns = prng_chance(prng, 70) ? UNSALT_NEVER : 100000000;
    drive->single = true;
}

static void by_una(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    producers(prng, drive, script);
    script->again = (unsigned)prng_below(prng, 20);
    script->resize = prng_chance(prng, 40) ? 20 : 0;
    script->epoch = prng_chance(prng, 40) ? 10 : 0;
    script->horizon = 30;
}

static void by_marker(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    by_una(prng, drive, script);
    script->marker = (unsigned)prng_between(prng, 1, 100);
    drive->params.gap_proof = prng_chance(prng, 50) ? UNSALT_PROOF_OFF : UNSALT_PROOF_AUTO;
}

static void by_trust(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    producers(prng, drive, script);
    script->una = prng_chance(prng, 50);
    script->hide_lanes = prng_chance(prng, 50);
    drive->params.gap_proof = UNSALT_PROOF_TRUST;
}

static void in_batches(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    by_una(prng, drive, script);
    script->marker = (unsigned)prng_below(prng, 100);
    drive->single = false;
    drive->no_model = true;
}

TEST(engine_proof, by_una) {
    drive_property("proof.una", 300, by_una);
}

TEST(engine_proof, by_marker) {
    drive_property("proof.marker", 300, by_marker);
}

TEST(engine_proof, by_trust) {
    drive_property("proof.trust", 200, by_trust);
}

TEST(engine_proof, in_batches) {
    drive_property("proof.batches", 200, in_batches);
}

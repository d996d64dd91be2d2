/* SPDX-License-Identifier: BSD-2-Clause */
/* No budget is ever exceeded, none gives up a gap without need, and nothing gets stuck behind one. */
#include <support/check.h>
#include <support/drive.h>

static void small(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 5);
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 6);
    script->lanes = (unsigned)prng_below(prng, 9);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 30);
    script->ahead = (unsigned)prng_between(prng, 10, 100);
    script->loss = (unsigned)prng_below(prng, 15);
    script->twice = (unsigned)prng_below(prng, 10);
    script->seq_first = drive->params.seq_first = 1;
    script->advance = 20;
    script->advance_max = 100000000;
    script->horizon = 10;
    drive->params.start = UNSALT_START_FIRST;
    drive->params.skips_max = 100000;
    drive->params.release_max = (uint32_t)prng_between(prng, 1, 20);
    if (prng_chance(prng, 60))
        drive->params.budget_records = prng_between(prng, 1, 60);
    if (prng_chance(prng, 30))
        drive->params.budget_bytes = prng_between(prng, 400, 10000);
    if (prng_chance(prng, 30))
        drive->params.session_budget_records = prng_between(prng, 1, 30);
    if (prng_chance(prng, 30))
        drive->params.session_budget_bytes = prng_between(prng, 400, 5000);
    drive->single = true;
}

static void skip_gap(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    small(prng, drive, script);
}

static void block(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    small(prng, drive, script);
    drive->params.budget_policy = UNSALT_BUDGET_BLOCK;
    drive->params.block_max_ns = prng_between(prng, 1, 1000000000);
    drive->params.gap_timeout_ns = prng_chance(prng, 50) ? UNSALT_NEVER : 500000000;
}

/* Batches, lazy pulls, oversized records: only what must always hold is checked. */
static void careless(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    small(prng, drive, script);
    drive->no_model = true;
    drive->single = false;
    drive->lazy = prng_chance(prng, 60);
    script->pull = 50;
    script->epoch = prng_chance(prng, 30) ? 10 : 0;
    drive->params.budget_bytes = prng_between(prng, 1, 3000);
    drive->params.start = (unsalt_start_t)prng_below(prng, 3);
    drive->start_offset = prng_chance(prng, 50) ? 0 : 10;
}

/* Records are given back, or refused until somebody flushes: order, ledger and positions hold all the same. */
static void dead_letter(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    careless(prng, drive, script);
    drive->params.budget_bytes = 1 << 20;
    drive->params.budget_records = prng_between(prng, 1, 30);
    drive->params.budget_policy = UNSALT_BUDGET_DEAD_LETTER;
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    script->again = 10;
    script->una = prng_chance(prng, 50);
    script->marker = script->una ? 30 : 0;
    script->revoke = prng_chance(prng, 30) ? 2 : 0;
}

static void fail(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    careless(prng, drive, script);
    drive->params.budget_policy = UNSALT_BUDGET_FAIL;
    drive->params.gap_timeout_ns = prng_chance(prng, 50) ? UNSALT_NEVER : 500000000;
}

/* A small window with every policy. What was handed out is acknowledged in any order, or only when all stands still. */
static void window(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    small(prng, drive, script);
    drive->no_model = true;
    drive->single = prng_chance(prng, 30);
    drive->lazy = prng_chance(prng, 30);
    drive->params.budget_window = prng_between(prng, 1, 200);
    drive->params.budget_policy = (unsalt_budget_policy_t)prng_below(prng, 4);
    drive->params.block_max_ns = prng_between(prng, 1, 1000000000);
    script->ack = prng_chance(prng, 60) ? 60 : 0;
    script->pull = 50;
    script->epoch = prng_chance(prng, 30) ? 5 : 0;
    script->revoke = prng_chance(prng, 30) ? 2 : 0;
}

TEST(engine_budget, the_oldest_gap_gives_way) {
    drive_property("budget.skip_gap", 250, skip_gap);
}

TEST(engine_budget, block_waits_then_gives_way) {
    drive_property("budget.block", 150, block);
}

TEST(engine_budget, batches_and_lazy_pulls) {
    drive_property("budget.careless", 600, careless);
}

TEST(engine_budget, what_is_turned_away_is_not_waited_for) {
    drive_property("budget.dead_letter", 500, dead_letter);
}

TEST(engine_budget, what_is_refused_comes_after_a_flush) {
    drive_property("budget.fail", 300, fail);
}

TEST(engine_budget, a_small_window_stalls_nothing) {
    drive_property("budget.window", 500, window);
}

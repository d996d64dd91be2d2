/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core against the naive model. The bytes are the tape from which the parameters and the whole schedule are drawn:
 * what producers stamp, lose, repeat and send again, what is read in which stretches, times, horizons, questions and
 * answers, ends of partitions, acknowledgements, flushes, pauses, revokes. Records follow the rules of the format, or
 * the model would have nothing to say about them; what breaks the rules is the matter of fuzz_hostile.c.
 *
 * The first byte picks a family: a combination of rules that the model judges in full. The last family is everything
 * at once, of which only what always holds is checked.
 */
#include <fuzz/fuzz.h>
#include <support/drive.h>

enum { STEPS_MAX = 2000 };

/* What all families have in common: shape, pace, losses. */
static void common(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    unsalt_core_params_t *p = &drive->params;
    unsalt_core_params_init(p);
    p->question_min_ns = 0;
    p->skips_max = 100000;
    p->start = UNSALT_START_FIRST;
    p->release_max = (uint32_t)prng_between(prng, 1, 20);
    drive->sets = script->sets = (unsigned)prng_between(prng, 1, 2);
    drive->parts = script->parts = (unsigned)prng_between(prng, 1, 6);
    drive->topics = script->topics = prng_chance(prng, 50);
    script->steps = STEPS_MAX;
    script->sessions = script->sets * (unsigned)prng_between(prng, 1, 4);
    script->lanes = (unsigned)prng_below(prng, script->parts + 1);
    script->hide_lanes = prng_chance(prng, 30);
    script->burst = (unsigned)prng_between(prng, 1, 20);
    script->ahead = (unsigned)prng_between(prng, 2, 40);
    script->loss = (unsigned)prng_below(prng, 30);
    script->seq_first = p->seq_first = 1;
    script->advance = 40;
    script->advance_max = 200000000;
    script->horizon = (unsigned)prng_below(prng, 60);
    drive->single = true;
}

static void order(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    script->seq_first = prng_chance(prng, 70) ? 1 : prng_chance(prng, 50) ? 0 : UINT64_MAX - 700;
    drive->params.seq_first = script->seq_first;
    drive->params.start = prng_chance(prng, 50) ? UNSALT_START_FIRST : UNSALT_START_RESUME;
    script->resize = prng_chance(prng, 20) ? 10 : 0;
    script->again = (unsigned)prng_below(prng, 30);
    script->twice = (unsigned)prng_below(prng, 20);
    script->question = script->eof = 15;
    drive->single = false;
    drive->lazy = prng_chance(prng, 30);
    script->pull = drive->lazy ? 60 : 0;
}

static void copies(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    script->twice = (unsigned)prng_below(prng, 60);
    script->again = (unsigned)prng_below(prng, 80);
    script->jump = prng_chance(prng, 20) ? 5 : 0;
    script->flush = script->ack = 20;
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.gap_clock = (unsalt_gap_clock_t)prng_below(prng, 2);
    drive->params.gap_timeout_ns = prng_between(prng, 1, 100000000);
    drive->single = prng_chance(prng, 50);
}

static void gaps(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    uint64_t rule = prng_below(prng, 4);
    script->again = (unsigned)prng_below(prng, 10);
    script->jump = prng_chance(prng, 40) ? 20 : 0;
    script->flush = prng_chance(prng, 30) ? 10 : 0;
    drive->params.gap_timeout_ns = prng_chance(prng, 10) ? 0 : prng_between(prng, 1, 500000000);
    if (rule == 0)
        drive->params.gap_clock = UNSALT_CLOCK_WALL;
    else
        script->question = script->eof = (unsigned)prng_below(prng, 60);
    if (rule == 2) {
        drive->params.gap_stall_max_ns = prng_between(prng, 100000000, 2000000000);
        script->pause = prng_chance(prng, 50) ? 50 : 0;
    }
    if (rule == 3)
        drive->params.gap_wait_max_ns = prng_between(prng, 600000000, 3000000000);
}

static void epochs(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    script->loss = (unsigned)prng_below(prng, 10);
    script->twice = (unsigned)prng_below(prng, 10);
    script->epoch = (unsigned)prng_between(prng, 5, 60);
    script->seq_first = drive->params.seq_first = prng_below(prng, 2);
    drive->params.late = (unsalt_late_t)prng_below(prng, 3);
    drive->params.restart_k = 1024;
    drive->sets = script->sets = 1;
}

static void middle(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    script->loss = (unsigned)prng_below(prng, 10);
    script->trim = (unsigned)prng_below(prng, 30);
    drive->sets = script->sets = 1;
    drive->params.start = prng_chance(prng, 50) ? UNSALT_START_SEEN : UNSALT_START_RESUME;
    drive->start_offset = prng_chance(prng, 20) ? 0 : 1000;
    drive->log_start = prng_chance(prng, 50) ? 0 : drive->start_offset;
}

static void budgets(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    script->loss = (unsigned)prng_below(prng, 15);
    script->twice = (unsigned)prng_below(prng, 10);
    if (prng_chance(prng, 60))
        drive->params.budget_records = prng_between(prng, 1, 60);
    if (prng_chance(prng, 30))
        drive->params.budget_bytes = prng_between(prng, 400, 10000);
    if (prng_chance(prng, 30))
        drive->params.session_budget_records = prng_between(prng, 1, 30);
    if (prng_chance(prng, 30))
        drive->params.session_budget_bytes = prng_between(prng, 400, 5000);
    if (prng_chance(prng, 50)) {
        drive->params.budget_policy = UNSALT_BUDGET_BLOCK;
        drive->params.block_max_ns = prng_between(prng, 1, 1000000000);
        drive->params.gap_timeout_ns = prng_chance(prng, 50) ? UNSALT_NEVER : 500000000;
    }
}

static void proofs(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    bool trust = prng_chance(prng, 30);
    script->lanes = (unsigned)prng_between(prng, 1, script->parts);
    script->hide_lanes = trust && prng_chance(prng, 50);
    script->una = !trust || prng_chance(prng, 50);
    script->twice = (unsigned)prng_below(prng, 10);
    script->jump = prng_chance(prng, 30) ? 20 : 0;
    script->advance_max = 50000000;
    drive->params.restart_k = 1000000;
    drive->params.gap_timeout_ns = prng_chance(prng, 70) ? UNSALT_NEVER : 100000000;
    drive->params.gap_proof = trust ? UNSALT_PROOF_TRUST : UNSALT_PROOF_AUTO;
    if (trust)
        return;
    script->again = (unsigned)prng_below(prng, 20);
    script->resize = prng_chance(prng, 40) ? 20 : 0;
    script->epoch = prng_chance(prng, 40) ? 10 : 0;
    script->marker = (unsigned)prng_below(prng, 101);
    drive->params.gap_proof = prng_chance(prng, 20) ? UNSALT_PROOF_OFF : UNSALT_PROOF_AUTO;
}

static void everything(struct prng *prng, struct drive_conf *drive, struct script_conf *script) {
    unsalt_core_params_t *p = &drive->params;
    script->twice = script->again = script->odd = (unsigned)prng_below(prng, 15);
    script->jump = script->epoch = script->flush = script->pause = (unsigned)prng_below(prng, 15);
    script->resize = (unsigned)prng_below(prng, 10);
    script->trim = (unsigned)prng_below(prng, 10);
    script->revoke = (unsigned)prng_between(prng, 10, 200);
    script->question = script->eof = script->ack = script->pull = 30;
    p->start = (unsalt_start_t)prng_below(prng, 3);
    p->late = (unsalt_late_t)prng_below(prng, 3);
    p->session_ttl_ns = prng_chance(prng, 50) ? 100000000 : UNSALT_NEVER;
    p->sessions_max = (uint32_t)prng_between(prng, 1, 5);
    p->remembered_max = (uint32_t)prng_below(prng, 4);
    p->skips_max = (uint32_t)prng_between(prng, 1, 8);
    p->budget_records = prng_chance(prng, 50) ? 1000 : prng_between(prng, 1, 40);
    p->restart_k = (uint32_t)prng_between(prng, 2, 6);
    drive->start_offset = prng_chance(prng, 50) ? 0 : 100;
    drive->no_model = true;
    drive->single = false;
    drive->lazy = prng_chance(prng, 50);
}

FUZZ(core) {
    static drive_draw_t *const families[] = {order, copies, gaps, epochs, middle, budgets, proofs, everything};
    struct prng prng = prng_tape(data, size);
    struct drive_conf drive = {.sets = 1};
    struct script_conf conf = {0};
    struct script script;
    char why[1024] = "";
    if (size < 16)
        return 0;
    drive_draw_t *family = families[prng_below(&prng, sizeof families / sizeof *families)];
    common(&prng, &drive, &conf);
    family(&prng, &drive, &conf);
    /* The model knows no run that waits for acknowledgements. */
    drive.params.cursors = (conf.epoch == 0 || drive.no_model) && prng_chance(&prng, 50);
    script_make(&script, &conf, &prng);
    drive.trace = getenv("UNSALT_FUZZ_TRACE") != NULL;
    if (drive.trace)
        script_print(&script);
    FUZZ_CHECK(drive_play(&drive, &script, why, sizeof why), "%s", why);
    script_free(&script);
    return 0;
}

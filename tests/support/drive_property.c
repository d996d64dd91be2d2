/* SPDX-License-Identifier: BSD-2-Clause */
/* Many scripts from one seed; the one that fails is made small before it is shown. */
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/drive.h>

enum { SHRINK_BUDGET = 4000 };

unsigned drive_cases(unsigned cases) {
    const char *text = getenv("UNSALT_ITER");
    unsigned long percent = text && *text ? strtoul(text, NULL, 10) : 100;
    unsigned long scaled = cases * percent / 100;
    return scaled ? (unsigned)scaled : 1;
}

/* Drops pieces of the script as long as it still fails: halves first, then smaller ones, down to single operations. */
static void shrink(const struct drive_conf *conf, struct script *script, char *why, size_t why_size) {
    unsigned plays = 0;
    for (size_t piece = script->n / 2; piece >= 1; piece = piece > 1 ? (piece + 1) / 2 : 0) {
        bool dropped = true;
        while (dropped && plays < SHRINK_BUDGET) {
            dropped = false;
            size_t at = script->n;
            while (at > 0 && plays < SHRINK_BUDGET) {
                size_t n = piece < at ? piece : at;
                struct script less;
                at -= n;
                plays++;
                script_without(&less, script, at, n);
                if (drive_play(conf, &less, why, why_size)) {
                    script_free(&less);
                } else {
                    script_free(script);
                    *script = less;
                    dropped = true;
                }
            }
        }
    }
    struct drive_conf loud = *conf;
    loud.trace = true;
    drive_play(&loud, script, why, why_size);
}

static void print_conf(const struct drive_conf *conf) {
    const unsalt_core_params_t *p = &conf->params;
    fprintf(stderr,
            "sets %u parts %u topics %d start_offset %" PRId64 " log_start %" PRId64 " single %d lazy %d\n"
            "start %d late %d malformed %d seq_first %" PRIu64 " clock %d timeout %" PRIu64 " stall %" PRIu64
            " wait %" PRIu64 "\n"
            "budget %" PRIu64 "/%" PRIu64 " session %" PRIu64 "/%" PRIu64 " policy %d release_max %u ttl %" PRIu64
            " sessions_max %u skips_max %u restart_k %u awake_max %u\n",
            conf->sets, conf->parts, conf->topics, conf->start_offset, conf->log_start, conf->single, conf->lazy,
            (int)p->start, (int)p->late, (int)p->malformed, p->seq_first, (int)p->gap_clock, p->gap_timeout_ns,
            p->gap_stall_max_ns, p->gap_wait_max_ns, p->budget_records, p->budget_bytes,
            p->session_budget_records, p->session_budget_bytes, (int)p->budget_policy, p->release_max,
            p->session_ttl_ns, p->sessions_max, p->skips_max, p->restart_k,
            conf->awake_max);
}

void drive_property(const char *name, unsigned cases, drive_draw_t *draw) {
    uint64_t stream = 0;
    for (const char *c = name; *c; c++)
        stream = stream * 131 + (unsigned char)*c;
    unsigned n = drive_cases(cases);
    for (unsigned i = 0; i < n; i++) {
        struct prng prng = prng_start(stream + i);
        struct drive_conf conf = {.sets = 1, .parts = 1};
        struct script_conf script_conf = {.steps = 100, .sets = 1, .parts = 1, .sessions = 1, .burst = 8, .ahead = 32};
        struct script script;
        char why[1024] = "";
        unsalt_core_params_init(&conf.params);
        conf.params.question_min_ns = 0;
        draw(&prng, &conf, &script_conf);
        conf.awake_max = i % 4;
        script_make(&script, &script_conf, &prng);
        if (drive_play(&conf, &script, why, sizeof(why))) {
            script_free(&script);
            continue;
        }
        fprintf(stderr, "property %s, case %u of seed %" PRIu64 ": %s\n", name, i, prng_seed(), why);
        shrink(&conf, &script, why, sizeof(why));
        fprintf(stderr, "after shrinking: %s\n", why);
        print_conf(&conf);
        script_print(&script);
        script_free(&script);
        cr_assert_fail("property %s, case %u, UNSALT_SEED=%" PRIu64 ": %s", name, i, prng_seed(), why);
    }
}

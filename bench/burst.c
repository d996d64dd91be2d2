/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gap is filled in front of 1,000,000 records that are held, in the order of their lanes and in no order: what each
 * costs to release, and what becomes of other sessions meanwhile. These bring two records at a time, the second one
 * first, so that they too have to be released by turns; their delay is from the push to the pull that gives them out.
 * The application takes one batch at a time, as with a poll.
 */
#include "arrivals.h"
#include "engine.h"
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 4, OTHERS = 1000, EACH = 32, ROUNDS = 3, CYCLES_QUIET = 4000, ID = 12 };

static char ids[OTHERS + 1][ID];

struct world {
    unsalt_core_t *core;
    int64_t offsets[LANES];
    uint64_t now, next[OTHERS];
    double *delays; /* us */
    size_t delay_count, delay_room, held, turn;
};

static unsalt_core_in_t record(struct world *w, int session, uint64_t seq) {
    unsalt_core_in_t in = engine_record(ids[session], ID, seq, LANES, 0);
    in.offset = w->offsets[in.part]++;
    in.una = UNSALT_NO_SEQ;
    in.msg = &w->next[session];
    return in;
}

static void shuffle(uint64_t *values, size_t count) {
    uint64_t seed = UINT64_C(88172645463325252);
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = bench_random(&seed) % (i + 1);
        uint64_t value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

/* Number 1 is missing. Returns ns for each record that is held. */
static double hold(struct world *w, size_t held, bool random) {
    uint64_t *seqs = engine_alloc(held, sizeof *seqs);
    unsalt_core_in_t batch[ENGINE_BATCH];
    for (size_t i = 0; i < held; i++)
        seqs[i] = i + 2;
    if (random)
        shuffle(seqs, held);
    double began = bench_cpu();
    for (size_t i = 0; i < held;) {
        size_t n = 0;
        for (; n < ENGINE_BATCH && i < held; i++)
            batch[n++] = record(w, OTHERS, seqs[i]);
        if (engine_drive(w->core, batch, n, n, &w->now) != 0)
            engine_failed("burst: a record was released");
    }
    w->held = held;
    free(seqs);
    return (bench_cpu() - began) * 1e9 / (double)held;
}

/* One batch of others, one pull. Returns how many of the big session came out. */
static size_t cycle(struct world *w) {
    static unsalt_core_out_t out[ENGINE_BATCH];
    unsalt_core_in_t in[2 * EACH];
    size_t n = 0, n_out, big = 0;
    int status;
    for (int i = 0; i < EACH; i++) {
        int session = (int)(w->turn++ % OTHERS);
        in[n++] = record(w, session, w->next[session] + 1);
        in[n++] = record(w, session, w->next[session]);
        w->next[session] += 2;
    }
    double pushed = bench_wall();
    if (unsalt_core_push(w->core, in, n, w->now += 1000, out, &n_out, &status) != n || status != UNSALT_CORE_OK)
        engine_failed("burst: a record was refused");
    for (int pulls = 0; pulls < 2; pulls++) {
        double delay = (bench_wall() - pushed) * 1e6;
        for (size_t i = 0; i < n_out; i++) {
            bool other = out[i].msg != &w->next[OTHERS - 1] + 1;
            big += !other;
            if (other && w->delay_count < w->delay_room)
                w->delays[w->delay_count++] = delay;
        }
        engine_ack(w->core, out, n_out);
        n_out = pulls == 0 ? unsalt_core_pull(w->core, w->now, out, ENGINE_BATCH) : 0;
    }
    return big;
}

static void open_world(struct world *w, bool delays) {
    unsalt_core_params_t params;
    engine_params(&params);
    memset(w, 0, sizeof *w);
    w->core = engine_new(&params, LANES);
    w->now = 1000;
    for (int i = 0; i < OTHERS; i++)
        w->next[i] = 1;
    w->delay_room = 2000000;
    w->delays = delays ? engine_alloc(w->delay_room, sizeof *w->delays) : NULL;
}

static void close_world(struct world *w) {
    unsalt_core_destroy(w->core);
    free(w->delays);
}

/* Alone: ns for each record, released in batches and acknowledged. */
static void released(bool random, size_t held, struct bench_runs *held_runs, struct bench_runs *runs) {
    struct world w;
    open_world(&w, false);
    double each = hold(&w, held, random);
    bench_add(held_runs, each, each);
    unsalt_core_in_t first = record(&w, OTHERS, 1);
    struct bench_clock began = bench_start();
    if (engine_drive(w.core, &first, 1, 1, &w.now) != held + 1)
        engine_failed("burst: records are missing");
    bench_stop(began, 1e9 / (double)held, runs);
    close_world(&w);
}

/* The 99th percentile of the others' delay, in us, while nothing else is going on and during the burst. */
static void others(bool random, size_t held, double *quiet, double *burst) {
    struct world w;
    open_world(&w, true);
    for (int i = 0; i < CYCLES_QUIET; i++)
        cycle(&w);
    w.delay_count = 0;
    for (int i = 0; i < CYCLES_QUIET; i++)
        cycle(&w);
    *quiet = bench_percentile(w.delays, w.delay_count, 0.99);
    hold(&w, held, random);
    unsalt_core_in_t first = record(&w, OTHERS, 1);
    unsalt_core_out_t out[1];
    size_t n_out, got = 0;
    int status;
    unsalt_core_push(w.core, &first, 1, w.now, out, &n_out, &status);
    engine_ack(w.core, out, n_out);
    for (w.delay_count = 0; got < held;)
        got += cycle(&w);
    *burst = bench_percentile(w.delays, w.delay_count, 0.99);
    close_world(&w);
}

int main(void) {
    const size_t held = bench_size(1000000);
    int rounds = bench_full() ? 7 : ROUNDS;
    for (int i = 0; i <= OTHERS; i++) {
        char text[32];
        snprintf(text, sizeof text, "session-%04d", i);
        memcpy(ids[i], text, ID);
    }
    for (int random = 0; random < 2; random++) {
        struct bench_runs held_runs = {.count = 0}, runs = {.count = 0};
        double quiet[8], burst[8];
        for (int i = 0; i < rounds; i++) {
            released(random, held, &held_runs, &runs);
            others(random, held, &quiet[i], &burst[i]);
        }
        const char *name = random ? "burst in no order" : "burst in lane order";
        bench_compare(name, "hold", "ns", &held_runs, NULL, NULL);
        bench_compare(name, "release", "ns", &runs, NULL, NULL);
        bench_spread(name, "others_p99", "us", burst, "the same while quiet", quiet, (size_t)rounds);
    }
    return 0;
}

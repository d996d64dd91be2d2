/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ten thousand healthy sessions and a sick one, whose first number never comes and of which every thousandth is
 * missing, so that it always holds as much as its own budget allows and never gets well. What a healthy record costs
 * is compared with the same run without the sick one; and, where the sick one is hot and brings every tenth record,
 * with the same run in which it is healthy too. The core alone, in turns in one process, medians.
 */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/core.h>

enum { ROUNDS = 9, HEALTHY = 10000, EACH = 100, LANES = 4, BURST = 64, ID = 8, BATCH = 256 };

struct load {
    unsalt_core_in_t *in;
    size_t count;
};

static char ids[HEALTHY + 1][ID];

static void fail(const char *what) {
    fprintf(stderr, "bench: healthy: %s\n", what);
    exit(1);
}

/* How the last session is: there is none, it is well, it has holes. */
enum kind { NONE, WELL, SICK };

static bool missing(enum kind kind, uint64_t seq) {
    return kind == SICK && (seq == 1 || seq % 1000 == 0);
}

static void add(struct load *load, int64_t *offsets, uint32_t session, uint64_t seq) {
    uint16_t lane = (uint16_t)(seq % LANES);
    load->in[load->count++] = (unsalt_core_in_t){
        .session = ids[session],
        .session_len = ID,
        .part = lane,
        .seq = seq,
        .epoch = 1,
        .since = 1,
        .una = 1,
        .offset = offsets[lane]++,
        .timestamp = -1,
        .bytes = 500,
        .lane = lane,
        .lanes = LANES,
        .kind = UNSALT_KIND_SEQUENCED,
    };
}

/* In bursts per lane, as a reader brings them: of a stretch of the log, first what is of lane 0, then of lane 1 .. */
static struct load sort_by_lane(const struct load *log) {
    struct load load = {.in = calloc(log->count, sizeof(*load.in))};
    if (!load.in)
        fail("out of memory");
    for (size_t from = 0; from < log->count; from += BURST * LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (size_t i = from; i < from + BURST * LANES && i < log->count; i++)
                if (log->in[i].part == lane)
                    load.in[load.count++] = log->in[i];
    return load;
}

/* every: after how many healthy records one of the last session comes. */
static struct load make(enum kind kind, unsigned every) {
    struct load log = {.in = calloc((size_t)HEALTHY * EACH * 2, sizeof(*log.in))};
    int64_t offsets[LANES] = {0};
    uint64_t sick = 1, n = 0;
    if (!log.in)
        fail("out of memory");
    for (uint64_t seq = 1; seq <= EACH; seq++)
        for (uint32_t session = 0; session < HEALTHY; session++) {
            add(&log, offsets, session, seq);
            if (kind == NONE || ++n % every)
                continue;
            if (!missing(kind, sick))
                add(&log, offsets, HEALTHY, sick);
            sick++;
        }
    struct load load = sort_by_lane(&log);
    free(log.in);
    return load;
}

static unsalt_core_t *new_core(void) {
    unsalt_core_partition_t partition = {.set_size = LANES};
    unsalt_core_params_t params;
    char errstr[256];
    unsalt_core_params_init(&params);
    params.start = UNSALT_START_FIRST;
    params.gap_timeout_ns = UNSALT_NEVER;
    params.session_budget_records = 10000;
    unsalt_core_t *core = unsalt_core_new(&params, errstr, sizeof errstr);
    if (!core)
        fail(errstr);
    for (int lane = 0; lane < LANES; lane++) {
        partition.lane = lane;
        if (unsalt_core_assign(core, &partition) != lane)
            fail("assign");
    }
    return core;
}

static void acknowledge(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        unsalt_core_ack(core, out[i].part, out[i].generation, out[i].ticket);
}

/* What a consumer does between two batches: events, releases, advice. */
static void between(unsalt_core_t *core, uint64_t now) {
    static unsalt_core_out_t out[BATCH];
    unsalt_core_event_t events[32];
    unsalt_read_t advice[LANES];
    size_t n;
    while (unsalt_core_events(core, events, 32) == 32)
        ;
    while ((n = unsalt_core_pull(core, now, out, BATCH)) > 0)
        acknowledge(core, out, n);
    unsalt_core_read_advice(core, advice, LANES);
}

/* Nanoseconds for each healthy record. */
static double run(const struct load *load) {
    static unsalt_core_out_t out[BATCH];
    unsalt_core_t *core = new_core();
    uint64_t now = 1000;
    size_t at = 0, n_out;
    double began = bench_cpu();
    while (at < load->count) {
        size_t left = load->count - at;
        int status;
        at += unsalt_core_push(core, load->in + at, left < BURST ? left : BURST, now, out, &n_out, &status);
        if (status < 0)
            fail("push");
        acknowledge(core, out, n_out);
        between(core, now);
        now += 1000;
    }
    double took = bench_cpu() - began;
    unsalt_core_counters_t counters;
    unsalt_core_counters(core, &counters);
    if (counters.state[UNSALT_STATE_RELEASED] < (uint64_t)HEALTHY * EACH || !unsalt_core_conserved(core))
        fail("healthy records are missing");
    unsalt_core_destroy(core);
    return took * 1e9 / (HEALTHY * EACH);
}

static void compare(const char *name, unsigned every, enum kind against, const char *words) {
    struct load sick = make(SICK, every), other = make(against, every);
    double with[ROUNDS], without[ROUNDS];
    run(&sick); /* caches and the allocator are warm after this */
    run(&other);
    for (int round = 0; round < ROUNDS; round++) {
        with[round] = run(&sick);
        without[round] = run(&other);
    }
    bench_spread(name, "time_per_healthy_record", "ns", with, words, without, ROUNDS);
    free(sick.in);
    free(other.in);
}

int main(void) {
    for (uint32_t i = 0; i <= HEALTHY; i++) {
        char text[16];
        snprintf(text, sizeof text, "s%07u", i % 10000000);
        memcpy(ids[i], text, ID);
    }
    compare("healthy", HEALTHY, NONE, "without the sick one");
    compare("healthy hot", 9, WELL, "with a hot one that is well");
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session over four lanes of which one is a million records behind the others, merged with a budget of 10,000 records
 * by a reader that follows the advice; against the same logs read so that the lanes stay together. The core alone, in
 * turns in one process, medians.
 */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/core.h>

enum { ROUNDS = 5, LANES = 4, BEHIND = 1000000, EACH = 250000, COLD = 100, ID = 8, BATCH = 64 };

static char ids[COLD + 1][ID];

struct reader {
    unsalt_core_t *core;
    size_t read[LANES], length[LANES];
    uint64_t now, released, held_most;
};

static void fail(const char *what) {
    fprintf(stderr, "bench: slow_lane: %s\n", what);
    exit(1);
}

/* What stands at an offset: in lane 0 first a million records of cold sessions, then, as in the others, the hot one. */
static unsalt_core_in_t record_at(uint32_t lane, size_t at) {
    bool cold = lane == 0 && at < BEHIND;
    size_t n = lane == 0 ? at - BEHIND : at;
    return (unsalt_core_in_t){
        .session = cold ? ids[1 + at % COLD] : ids[0],
        .session_len = ID,
        .part = lane,
        .seq = cold ? at / COLD + 1 : (lane ? lane : LANES) + LANES * n,
        .epoch = 1,
        .since = 1,
        .una = 1,
        .offset = (int64_t)at,
        .timestamp = -1,
        .bytes = 500,
        .lane = cold ? 0 : (uint16_t)lane,
        .lanes = cold ? 1 : LANES,
        .kind = UNSALT_KIND_SEQUENCED,
    };
}

static void open_reader(struct reader *reader) {
    unsalt_core_params_t params;
    char errstr[256];
    memset(reader, 0, sizeof *reader);
    unsalt_core_params_init(&params);
    params.start = UNSALT_START_FIRST;
    params.budget_records = 10000;
    reader->core = unsalt_core_new(&params, errstr, sizeof errstr);
    if (!reader->core)
        fail(errstr);
    for (int lane = 0; lane < LANES; lane++) {
        unsalt_core_partition_t partition = {.set_size = LANES, .lane = lane};
        if (unsalt_core_assign(reader->core, &partition) != lane)
            fail("assign");
        reader->length[lane] = EACH + (lane ? 0 : BEHIND);
    }
}

static void take(struct reader *reader, const unsalt_core_out_t *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        unsalt_core_ack(reader->core, out[i].part, out[i].generation, out[i].ticket);
    reader->released += n;
}

static void read_batch(struct reader *reader, uint32_t lane) {
    unsalt_core_in_t in[BATCH];
    unsalt_core_out_t out[BATCH];
    size_t n = 0, n_out;
    int status;
    for (; n < BATCH && reader->read[lane] + n < reader->length[lane]; n++)
        in[n] = record_at(lane, reader->read[lane] + n);
    reader->read[lane] += unsalt_core_push(reader->core, in, n, reader->now, out, &n_out, &status);
    if (status < 0)
        fail("push");
    take(reader, out, n_out);
    while ((n = unsalt_core_pull(reader->core, reader->now, out, BATCH)) > 0)
        take(reader, out, n);
    reader->now += 1000;
}

/* The next lane by the advice; without lag that of which least was read. */
static uint32_t next_lane(struct reader *reader, bool lagging) {
    unsalt_read_t advice[LANES];
    uint32_t best = LANES;
    unsalt_core_read_advice(reader->core, advice, LANES);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        bool readable = reader->read[lane] < reader->length[lane] && advice[lane] != UNSALT_READ_AHEAD;
        if (!readable)
            continue;
        if (best == LANES || advice[lane] < advice[best] ||
            (advice[lane] == advice[best] && !lagging && reader->read[lane] < reader->read[best]) ||
            (advice[lane] == advice[best] && lagging && reader->read[lane] > reader->read[best]))
            best = lane;
    }
    return best;
}

/* Nanoseconds for each record. */
static double run(bool lagging) {
    struct reader reader;
    open_reader(&reader);
    double began = bench_cpu();
    while (!lagging && reader.read[0] < BEHIND)
        read_batch(&reader, 0);
    for (uint32_t lane = 1; !lagging && lane < LANES; lane++)
        reader.length[lane] = EACH;
    for (uint32_t lane; (lane = next_lane(&reader, lagging)) < LANES;)
        read_batch(&reader, lane);
    double took = bench_cpu() - began;
    unsalt_core_counters_t counters;
    unsalt_core_counters(reader.core, &counters);
    if (reader.released != BEHIND + (uint64_t)LANES * EACH || counters.gaps[UNSALT_GAP_OVERFLOW] ||
        counters.budget_full[UNSALT_BUDGET_RECORDS])
        fail("records are missing, or a budget was full");
    unsalt_core_destroy(reader.core);
    return took * 1e9 / (double)reader.released;
}

int main(void) {
    double behind[ROUNDS], together[ROUNDS];
    for (uint32_t i = 0; i <= COLD; i++) {
        char text[16];
        snprintf(text, sizeof text, "s%07u", i);
        memcpy(ids[i], text, ID);
    }
    run(true); /* caches and the allocator are warm after this */
    run(false);
    for (int round = 0; round < ROUNDS; round++) {
        behind[round] = run(true);
        together[round] = run(false);
    }
    bench_spread("slow_lane", "time_per_record", "ns", behind, "lanes read together", together, ROUNDS);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory, beside the messages: of a record that is held with many others of its session, and alone with what its
 * session needs for it; of the process with 1,000,000 held; and how often a record in order asks for some. What the
 * core asks of its allocator is counted.
 */
#include "engine.h"
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID = 12, LANES_MAX = 64 };

/* Pushes one record; its session's `released` says whether it must come out. */
static void push(unsalt_core_t *core, const char *id, uint64_t seq, int lanes, int64_t *offsets, size_t released) {
    static uint64_t now = 1000;
    unsalt_core_in_t in = engine_record(id, ID, seq, lanes, 0);
    in.offset = offsets[in.part]++;
    in.una = UNSALT_NO_SEQ;
    if (engine_drive(core, &in, 1, 1, &now) != released)
        engine_failed("memory: not what was expected came out");
}

/* A session that has released its first number waits for the second one with so many held on each lane. */
static void many(int lanes, int per_lane) {
    struct engine_memory memory = {0, 0};
    int64_t offsets[LANES_MAX] = {0};
    unsalt_core_params_t params;
    engine_params(&params);
    params.mem = engine_counted(&memory);
    unsalt_core_t *core = engine_new(&params, lanes);
    push(core, "session-0001", 1, lanes, offsets, 1);
    uint64_t held = (uint64_t)lanes * (uint64_t)per_lane;
    size_t before = memory.bytes;
    for (uint64_t seq = 3; seq < 3 + held; seq++)
        push(core, "session-0001", seq, lanes, offsets, 0);
    char name[32];
    snprintf(name, sizeof name, "memory %dx%d", lanes, per_lane);
    bench_figure(name, "bytes_per_held_record", (double)(memory.bytes - before) / (double)held, "bytes", NULL, 0);
    unsalt_core_destroy(core);
}

/* Sessions that are known and hold one record each, over `lanes` lanes. */
static void alone(int lanes) {
    enum { SESSIONS = 100000 };
    struct engine_memory memory = {0, 0};
    int64_t offsets[LANES_MAX] = {0};
    unsalt_core_params_t params;
    engine_params(&params);
    params.mem = engine_counted(&memory);
    unsalt_core_t *core = engine_new(&params, lanes);
    char(*ids)[16] = engine_alloc(SESSIONS, sizeof *ids);
    for (unsigned i = 0; i < SESSIONS; i++) {
        snprintf(ids[i], sizeof ids[i], "session-%04x%c%c", i >> 8 & 0xffff, 'a' + (char)(i >> 4 & 15),
                 'a' + (char)(i & 15));
        memmove(ids[i], ids[i] + 2, ID);
        push(core, ids[i], 1, lanes, offsets, 1);
    }
    size_t before = memory.bytes;
    for (int i = 0; i < SESSIONS; i++)
        push(core, ids[i], 3, lanes, offsets, 0);
    char name[32];
    snprintf(name, sizeof name, "memory one alone, %d lanes", lanes);
    bench_figure(name, "bytes_per_held_record", (double)(memory.bytes - before) / SESSIONS, "bytes", NULL, 0);
    unsalt_core_destroy(core);
    free(ids);
}

/* What is asked of the allocator for a record that comes in order, once the session is known. */
static void in_order(void) {
    enum { WARM = 10000, COUNTED = 100000 };
    struct engine_memory memory = {0, 0};
    int64_t offsets[LANES_MAX] = {0};
    size_t before = 0;
    unsalt_core_params_t params;
    engine_params(&params);
    params.mem = engine_counted(&memory);
    unsalt_core_t *core = engine_new(&params, 4);
    for (uint64_t seq = 1; seq <= WARM + COUNTED; seq++) {
        push(core, "session-0001", seq, 4, offsets, 1);
        if (seq == WARM)
            before = memory.calls;
    }
    double each = (double)(memory.calls - before) / COUNTED;
    bench_figure("memory in order", "allocations_per_record", each, "calls", NULL, 0);
    unsalt_core_destroy(core);
}

static double resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        engine_failed("memory: /proc/self/statm can't be read");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void process(void) {
    int64_t offsets[LANES_MAX] = {0};
    unsalt_core_params_t params;
    engine_params(&params);
    unsalt_core_t *core = engine_new(&params, 4);
    push(core, "session-0001", 1, 4, offsets, 1);
    double before = resident();
    for (uint64_t seq = 3; seq < 1000003; seq++)
        push(core, "session-0001", seq, 4, offsets, 0);
    double after = resident();
    bench_figure("memory 1000000 held", "resident", after / 1e6, "MB", NULL, 0);
    bench_figure("memory 1000000 held", "resident_grown", (after - before) / 1e6, "MB", NULL, 0);
    unsalt_core_destroy(core);
}

int main(void) {
    process(); /* first: nothing was allocated and freed before */
    for (int lanes = 1; lanes <= 64; lanes *= 4) {
        many(lanes, 100);
        many(lanes, 1000);
    }
    alone(1);
    alone(4);
    alone(16);
    in_order();
    return 0;
}

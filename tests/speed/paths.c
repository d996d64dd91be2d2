/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * paths NAME: takes one path of the core, of which check.sh counts the instructions in measured(). paths: lists the
 * names and how many records each takes. With UNSALT_SPEED_SLOW=1 every path does a little more for each record, as a
 * slowdown would; the canary uses that.
 */
#include "engine.h"
#include <core/frontier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 20000, SESSIONS = 2000, ID = 16, LANES = 4, BURST = 10 };

static unsalt_core_in_t in[2 * RECORDS];
static char ids[SESSIONS][ID];
static unsalt_core_t *core;
static uint64_t now = 1000;
static size_t count, batch = ENGINE_BATCH;
static volatile unsigned slow;

static void run(void) {
    engine_drive(core, in, count, batch, &now);
}

static void open_core(int lanes) {
    unsalt_core_params_t params;
    engine_params(&params);
    core = engine_new(&params, lanes);
}

static void add(unsigned session, uint64_t seq, int lanes, int64_t offset) {
    in[count++] = engine_record(ids[session], ID, seq, lanes, offset);
}

static void in_order(void) {
    open_core(1);
    for (int i = 0; i < RECORDS; i++)
        add(0, (uint64_t)i + 1, 1, i);
}

static void interleaved(void) {
    int64_t offsets[LANES] = {0};
    open_core(LANES);
    for (int round = 0; count < RECORDS; round++)
        for (int lane = 0; lane < LANES; lane++)
            for (int b = 0; b < BURST; b++) {
                uint64_t seq = (uint64_t)(round * LANES * BURST + b * LANES + lane + 1);
                add(0, seq, LANES, offsets[seq % LANES]++);
            }
}

/* Nothing says how many lanes there are. */
static void irregular(void) {
    interleaved();
    for (size_t i = 0; i < count; i++) {
        in[i].lanes = in[i].lane = 0;
        in[i].since = UNSALT_NO_SEQ;
    }
}

static void sessions_batch(void) {
    open_core(1);
    for (int i = 0; i < RECORDS; i++)
        add((unsigned)(i % SESSIONS), (uint64_t)(i / SESSIONS) + 1, 1, i);
    engine_drive(core, in, SESSIONS, batch, &now); /* all are known */
    memmove(in, in + SESSIONS, (count -= SESSIONS) * sizeof(*in));
}

static void sessions_single(void) {
    sessions_batch();
    batch = 1;
}

/* Each session's next but one comes first. */
static void sessions_swapped(void) {
    open_core(1);
    for (int i = 0; i < RECORDS; i++)
        add((unsigned)(i % SESSIONS), (uint64_t)((i / SESSIONS) ^ 1) + 1, 1, i);
}

static void release(void) {
    open_core(1);
    for (int i = 0; i < RECORDS; i++) {
        add(0, (uint64_t)i + 2, 1, i);
        in[i].una = 1; /* else it would prove that number 1 was lost */
    }
    run();
    in[0] = engine_record(ids[0], ID, 1, 1, (int64_t)count);
    count = 1;
}

static void duplicates(void) {
    open_core(1);
    for (int i = 0; i < RECORDS; i++)
        add(0, (uint64_t)i / 2 + 1, 1, i);
}

/* Every other number was given up, and comes then. */
static void late(void) {
    unsalt_core_params_t params;
    engine_params(&params);
    params.gap_timeout_ns = 0;
    params.gap_clock = UNSALT_CLOCK_WALL;
    core = engine_new(&params, 1);
    for (int i = 0; i < RECORDS; i++) {
        in[0] = engine_record(ids[0], ID, 2 * (uint64_t)i + 2, 1, i);
        in[0].una = 1;
        engine_drive(core, in, 1, 1, &now);
        unsalt_core_event_t event;
        unsalt_core_expire(core, now);
        while (unsalt_core_events(core, &event, 1) == 1)
            ;
    }
    for (int i = 0; i < RECORDS; i++) {
        add(0, 2 * (uint64_t)i + 1, 1, RECORDS + i);
        in[i].una = 1;
        in[i].timestamp = 1;
    }
}

static struct us_frontier frontier;

static void frontier_path(void) {
    us_frontier_init(&frontier, 0);
}

/* A window of 10,000, acknowledged in no order. */
static void run_frontier(void) {
    const struct unsalt_mem *mem = &us_mem_default;
    for (uint64_t window = 0; window < RECORDS / 10000; window++) {
        for (int64_t i = 0; i < 10000; i++) {
            if (!us_frontier_reserve(&frontier, mem, 1))
                engine_failed("speed: out of memory");
            us_frontier_open(&frontier, (int64_t)window * 10000 + i);
        }
        for (uint64_t i = 0; i < 10000; i++)
            us_frontier_ack(&frontier, window * 10000 + (i * 7919 + 7) % 10000, NULL);
    }
}

static const struct path {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
    size_t records;
} paths[] = {
    {"in_order", in_order, run, RECORDS},
    {"interleaved", interleaved, run, RECORDS},
    {"irregular", irregular, run, RECORDS},
    {"sessions_batch", sessions_batch, run, RECORDS - SESSIONS},
    {"sessions_single", sessions_single, run, RECORDS - SESSIONS},
    {"sessions_swapped", sessions_swapped, run, RECORDS},
    {"release", release, run, RECORDS},
    {"duplicates", duplicates, run, RECORDS},
    {"late", late, run, RECORDS},
    {"frontier", frontier_path, run_frontier, RECORDS},
};
enum { PATHS = sizeof(paths) / sizeof(*paths) };

__attribute__((noinline)) void measured(const struct path *path);
void measured(const struct path *path) {
    path->run();
    for (size_t i = 0; getenv("UNSALT_SPEED_SLOW") && i < path->records; i++)
        slow++;
}

int main(int argc, char **argv) {
    for (unsigned i = 0; i < SESSIONS; i++)
        snprintf(ids[i], ID, "session-%06u", i % 1000000);
    for (int i = 0; i < PATHS; i++) {
        if (argc < 2) {
            printf("%s %zu\n", paths[i].name, paths[i].records);
        } else if (strcmp(argv[1], paths[i].name) == 0) {
            paths[i].prepare();
            measured(&paths[i]);
            unsalt_core_destroy(core);
            us_frontier_destroy(&frontier, &us_mem_default);
            return 0;
        }
    }
    return argc >= 2;
}

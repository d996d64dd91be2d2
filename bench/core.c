/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core against a binary heap of records. One session over S lanes; the records arrive in bursts of B per lane: B of
 * lane 0, B of lane 1, and so on. Both take the arrivals in batches of at most 256 and give out what is next in
 * sequence. The core does what it does in a consumer: session look-up, ledger, budgets, acknowledgement of every
 * record, commit frontier. Both run in turns in one process, and medians are compared.
 */
#include "heap_of_records.h"
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/core.h>

enum { ROUNDS = 9, BATCH = 256, LANES_MAX = 64 };

static const int lane_counts[] = {1, 4, 16, 64}, bursts[] = {1, 10, 100, 1000};

struct arrivals {
    unsalt_core_in_t *in;
    char *sessions; /* each record has its own copy of the session id, as messages do */
    size_t count;
    int lanes;
};

static void fail(const char *what) {
    fprintf(stderr, "bench: core: %s\n", what);
    exit(1);
}

static void *allocate(size_t count, size_t size) {
    void *ptr = calloc(count, size);
    if (!ptr)
        fail("out of memory");
    return ptr;
}

static const char session[] = "order-4711";
enum { SESSION_LEN = sizeof session - 1 };

static void arrive_one(struct arrivals *arrivals, size_t i, int lane, uint64_t seq, int64_t offset) {
    memcpy(arrivals->sessions + i * SESSION_LEN, session, SESSION_LEN);
    arrivals->in[i] = (unsalt_core_in_t){
        .msg = &arrivals->in[i],
        .session = arrivals->sessions + i * SESSION_LEN,
        .session_len = SESSION_LEN,
        .part = (uint32_t)lane,
        .seq = seq,
        .epoch = 1,
        .since = 1,
        .una = 1,
        .offset = offset,
        .timestamp = -1,
        .bytes = 200,
        .lane = (uint16_t)lane,
        .lanes = (uint16_t)arrivals->lanes,
        .kind = UNSALT_KIND_SEQUENCED,
    };
}

static void make_room(struct arrivals *arrivals, int lanes, size_t count) {
    arrivals->count = count;
    arrivals->lanes = lanes;
    arrivals->in = allocate(count, sizeof *arrivals->in);
    arrivals->sessions = allocate(count, SESSION_LEN);
}

/* Number n is on lane n mod S. A round brings `burst` records of each lane, beginning with the lane of number 1. */
static void arrive(struct arrivals *arrivals, int lanes, int burst, size_t at_least) {
    size_t round = (size_t)lanes * (size_t)burst, rounds = (at_least + round - 1) / round, r, i = 0;
    int64_t offsets[LANES_MAX] = {0};
    int k, b;
    make_room(arrivals, lanes, rounds * round);
    for (r = 0; r < rounds; r++)
        for (k = 1; k <= lanes; k++)
            for (b = 0; b < burst; b++, i++) {
                int64_t offset = offsets[k % lanes]++;
                arrive_one(arrivals, i, k % lanes, (uint64_t)k + (uint64_t)offset * (uint64_t)lanes, offset);
            }
}

static void free_arrivals(struct arrivals *arrivals) {
    free(arrivals->sessions);
    free(arrivals->in);
}

static unsalt_core_t *new_core(int lanes, const unsalt_mem_t *mem) {
    unsalt_core_partition_t partition = {.set = 1, .start_offset = 0, .log_start = 0};
    unsalt_core_params_t params;
    unsalt_core_t *core;
    char errstr[256];
    int k;
    unsalt_core_params_init(&params);
    params.start = UNSALT_START_FIRST;
    if (mem)
        params.mem = *mem;
    core = unsalt_core_new(&params, errstr, sizeof errstr);
    if (!core)
        fail(errstr);
    partition.set_size = (uint32_t)lanes;
    for (k = 0; k < lanes; k++) {
        partition.lane = -1;
        if (unsalt_core_assign(core, &partition) != k)
            fail("assign");
    }
    return core;
}

/* Acknowledges what came out and checks its order: that is the application's side, done for both. */
static size_t take(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n, uint64_t *next) {
    size_t i;
    for (i = 0; i < n; i++) {
        if (out[i].seq != (*next)++)
            fail("out of order");
        unsalt_core_ack(core, out[i].part, out[i].generation, out[i].ticket);
    }
    return n;
}

/* Seconds for all arrivals through a fresh core. Making and ending the core is not counted. */
static double time_core(const struct arrivals *arrivals) {
    unsalt_core_t *core = new_core(arrivals->lanes, NULL);
    static unsalt_core_out_t out[BATCH];
    size_t at = 0, got = 0, n, n_out;
    uint64_t next = 1, now = 1000;
    double began = bench_wall(), took;
    int status;
    while (at < arrivals->count) {
        size_t left = arrivals->count - at;
        at += unsalt_core_push(core, arrivals->in + at, left < BATCH ? left : BATCH, now, out, &n_out, &status);
        if (status < 0)
            fail("push");
        got += take(core, out, n_out, &next);
        while ((n = unsalt_core_pull(core, now, out, BATCH)) > 0)
            got += take(core, out, n, &next);
        now += 1000;
    }
    took = bench_wall() - began;
    if (got != arrivals->count || !unsalt_core_conserved(core))
        fail("records are missing");
    unsalt_core_destroy(core);
    return took;
}

static double time_heap(const struct arrivals *arrivals) {
    struct heap_of_records heap;
    struct heap_record record;
    size_t at = 0, got = 0;
    uint64_t next = 1;
    double began, took;
    heap_init(&heap, 1024, 1);
    began = bench_wall();
    while (at < arrivals->count) {
        size_t left = arrivals->count - at, end = at + (left < BATCH ? left : BATCH);
        for (; at < end; at++) {
            const unsalt_core_in_t *in = &arrivals->in[at];
            record = (struct heap_record){in->seq, in->msg, in->offset, in->part};
            heap_push(&heap, &record);
        }
        for (; heap_release(&heap, &record); got++)
            if (record.seq != next++)
                fail("heap: out of order");
    }
    took = bench_wall() - began;
    if (got != arrivals->count)
        fail("heap: records are missing");
    heap_free(&heap);
    return took;
}

static void compare(int lanes, int burst) {
    struct arrivals arrivals;
    double core[ROUNDS], heap[ROUNDS], per_record;
    char name[32];
    int round;
    arrive(&arrivals, lanes, burst, 200000);
    time_core(&arrivals); /* caches and the allocator are warm after this */
    time_heap(&arrivals);
    for (round = 0; round < ROUNDS; round++) {
        core[round] = time_core(&arrivals);
        heap[round] = time_heap(&arrivals);
    }
    per_record = 1e9 / (double)arrivals.count;
    snprintf(name, sizeof name, "core %dx%d", lanes, burst);
    bench_figure(name, "time_per_record", bench_median(core, ROUNDS) * per_record, "ns", "binary heap of records",
                 bench_median(heap, ROUNDS) * per_record);
    free_arrivals(&arrivals);
}

/* An allocator that counts what is allocated now. The size of a block stands in front of it. */
static size_t allocated;

static void *count_alloc(void *user, size_t size) {
    size_t *block = malloc(size + 16);
    (void)user;
    if (!block)
        return NULL;
    *block = size;
    allocated += size;
    return block + 2;
}

static void count_release(void *user, void *ptr) {
    size_t *block = ptr;
    (void)user;
    if (!block)
        return;
    allocated -= block[-2];
    free(block - 2);
}

static void *count_resize(void *user, void *ptr, size_t size) {
    void *more = count_alloc(user, size);
    if (more && ptr) {
        size_t old = ((size_t *)ptr)[-2];
        memcpy(more, ptr, old < size ? old : size);
        count_release(user, ptr);
    }
    return more;
}

/* A session that has released its first S records, and then waits for number S + 1 with all later ones held. */
static void arrive_without_one(struct arrivals *arrivals, int lanes, int per_lane) {
    size_t i = 0;
    int k, b;
    make_room(arrivals, lanes, (size_t)lanes * ((size_t)per_lane + 1) - 1);
    for (k = 1; k <= lanes; k++)
        arrive_one(arrivals, i++, k % lanes, (uint64_t)k, 0);
    for (k = 1; k <= lanes; k++)
        for (b = k == 1 ? 2 : 1; b <= per_lane; b++)
            arrive_one(arrivals, i++, k % lanes, (uint64_t)k + (uint64_t)b * (uint64_t)lanes, b);
}

/* Pushes arrivals [from, to). Returns how many came out at once. */
static size_t push_all(unsalt_core_t *core, const struct arrivals *arrivals, size_t from, size_t to) {
    static unsalt_core_out_t out[BATCH];
    size_t n_out, released = 0;
    int status;
    while (from < to) {
        from += unsalt_core_push(core, arrivals->in + from, to - from < BATCH ? to - from : BATCH, 1000, out, &n_out,
                                 &status);
        if (status < 0)
            fail("memory: push");
        released += n_out;
    }
    return released;
}

/* What the core allocates while it holds records, over their number. The message itself is the caller's. */
static void measure_memory(int lanes, int per_lane) {
    const unsalt_mem_t mem = {NULL, count_alloc, count_resize, count_release};
    unsalt_core_t *core = new_core(lanes, &mem);
    struct arrivals arrivals;
    size_t before, held;
    char name[32];
    arrive_without_one(&arrivals, lanes, per_lane);
    held = arrivals.count - (size_t)lanes;
    if (push_all(core, &arrivals, 0, (size_t)lanes) != (size_t)lanes)
        fail("memory: the first records were not released");
    before = allocated;
    if (push_all(core, &arrivals, (size_t)lanes, arrivals.count) != 0)
        fail("memory: a record was not held");
    snprintf(name, sizeof name, "core %dx%d", lanes, per_lane);
    bench_figure(name, "bytes_per_held_record", (double)(allocated - before) / (double)held, "bytes", NULL, 0);
    unsalt_core_destroy(core);
    free_arrivals(&arrivals);
}

int main(void) {
    size_t s, b;
    for (s = 0; s < sizeof lane_counts / sizeof *lane_counts; s++)
        for (b = 0; b < sizeof bursts / sizeof *bursts; b++)
            compare(lane_counts[s], bursts[b]);
    for (s = 0; s < sizeof lane_counts / sizeof *lane_counts; s++) {
        measure_memory(lane_counts[s], 100);
        measure_memory(lane_counts[s], 1000);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency that the core adds in one process, at 1,000,000 records a second: a thread hands records to another one,
 * which puts them in order (session, ledger, budgets, frontier, acknowledgement), against the same hand-over without a
 * core. 1,000 sessions, two records of each in turn; of one pair in a hundred the second one comes first.
 *
 * Coordinated omission: record i is due at start + i us, whatever became of those before it, and its latency counts
 * from then, not from when the sender came to it; so a stall of either thread is paid for by every record that was due
 * in it.
 */
#include "arrivals.h"
#include "engine.h"
#include "report.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 65536, SESSIONS = 1000, ID = 12, PART_RECORDS = 500000, WARM = 100000 };
#define INTERVAL 1e-6

static struct {
    _Alignas(64) _Atomic size_t sent;
    _Alignas(64) _Atomic size_t taken;
    _Alignas(64) double start;
} ring;
static unsalt_core_in_t *records;
static size_t count;

static void *sender(void *unused) {
    (void)unused;
    size_t taken = 0; /* as it was known last: the other thread's line is looked at only when the ring seems full */
    for (size_t i = 0; i < count; i++) {
        double due = ring.start + (double)i * INTERVAL;
        while (bench_wall() < due)
            ;
        while (i - taken >= RING)
            taken = atomic_load_explicit(&ring.taken, memory_order_acquire);
        atomic_store_explicit(&ring.sent, i + 1, memory_order_release);
    }
    return NULL;
}

/* The time between when a record was due and now, in us. */
static void note(double *latencies, const unsalt_core_in_t *record, double now) {
    size_t i = (size_t)(record - records);
    latencies[i] = (now - ring.start - (double)i * INTERVAL) * 1e6;
}

static void take(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n, double *latencies) {
    double now = n ? bench_wall() : 0;
    for (size_t i = 0; i < n; i++)
        note(latencies, out[i].msg, now);
    engine_ack(core, out, n);
}

static void receive_core(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, double *latencies) {
    static unsalt_core_out_t out[ENGINE_BATCH];
    uint64_t now = (uint64_t)(bench_wall() * 1e9);
    size_t n_out;
    int status;
    if (unsalt_core_push(core, in, n, now, out, &n_out, &status) != n)
        engine_failed("handover: a record was refused");
    take(core, out, n_out, latencies);
    while ((n_out = unsalt_core_pull(core, now, out, ENGINE_BATCH)) > 0)
        take(core, out, n_out, latencies);
}

static void receive_plain(const unsalt_core_in_t *in, size_t n, double *latencies) {
    double now = bench_wall();
    for (size_t i = 0; i < n; i++)
        note(latencies, &in[i], now);
}

static void run(bool with_core, double *latencies) {
    unsalt_core_params_t params;
    engine_params(&params);
    unsalt_core_t *core = engine_new(&params, 4);
    pthread_t thread;
    atomic_store(&ring.sent, 0);
    atomic_store(&ring.taken, 0);
    ring.start = bench_wall() + 0.002;
    if (pthread_create(&thread, NULL, sender, NULL) != 0)
        engine_failed("handover: no thread");
    for (size_t at = 0; at < count;) {
        size_t n = atomic_load_explicit(&ring.sent, memory_order_acquire) - at;
        n = n < ENGINE_BATCH ? n : ENGINE_BATCH;
        if (n == 0)
            continue;
        if (with_core)
            receive_core(core, records + at, n, latencies);
        else
            receive_plain(records + at, n, latencies);
        at += n;
        atomic_store_explicit(&ring.taken, at, memory_order_release);
    }
    pthread_join(thread, NULL);
    unsalt_core_destroy(core);
}

static void make(void) {
    static char ids[SESSIONS][ID];
    int64_t offsets[4] = {0};
    uint64_t seed = UINT64_C(88172645463325252);
    for (int i = 0; i < SESSIONS; i++) {
        char text[32];
        snprintf(text, sizeof text, "session-%04d", i);
        memcpy(ids[i], text, ID);
    }
    records = engine_alloc(count, sizeof *records);
    for (size_t i = 0; i < count; i += 2) {
        size_t session = i / 2 % SESSIONS, round = i / 2 / SESSIONS;
        bool swapped = bench_random(&seed) % 100 == 0;
        for (size_t k = 0; k < 2; k++) {
            unsalt_core_in_t *in = &records[i + k];
            *in = engine_record(ids[session], ID, 2 * round + 1 + (k ^ swapped), 4, 0);
            in->offset = offsets[in->part]++;
            in->msg = in;
        }
    }
}

int main(void) {
    static const double shares[] = {0.5, 0.99, 0.999, 0.9999};
    static const char *const names[] = {"p50", "p99", "p99.9", "p99.99"};
    int rounds = bench_full() ? 11 : 5;
    size_t warm = bench_size(WARM);
    count = bench_size(bench_full() ? 4 * PART_RECORDS : PART_RECORDS) + warm;
    make();
    double *latencies = engine_alloc(count, sizeof *latencies), figures[2][4][16];
    for (int round = 0; round < rounds; round++)
        for (int side = 0; side < 2; side++) {
            run(side == 0, latencies);
            for (int i = 0; i < 4; i++)
                figures[side][i][round] = bench_percentile(latencies + warm, count - warm, shares[i]);
        }
    for (int i = 0; i < 4; i++)
        bench_spread("handover 1000000/s", names[i], "us", figures[0][i], "hand-over without a core", figures[1][i],
                     (size_t)rounds);
    free(latencies);
    free(records);
    return 0;
}

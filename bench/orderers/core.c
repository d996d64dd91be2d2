/* SPDX-License-Identifier: BSD-2-Clause */
#include "orderers.h"
#include "engine.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char session[] = "order-4711";

void order_failed(const char *who, const char *what) {
    fprintf(stderr, "bench: %s: %s\n", who, what);
    exit(1);
}

/* Checks the order of what was handed out, and acknowledges it if `acks`. */
static uint64_t take(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n, uint64_t next, bool acks) {
    for (size_t i = 0; i < n; i++) {
        if (out[i].state != UNSALT_STATE_RELEASED)
            continue;
        if (out[i].seq != next++)
            order_failed("core", "out of order");
    }
    if (acks)
        unsalt_core_ack_batch(core, out, n);
    return next;
}

static uint64_t release(unsalt_core_t *core, uint64_t now, uint64_t next, bool acks) {
    static unsalt_core_out_t out[ARRIVALS_BATCH];
    size_t n;
    while ((n = unsalt_core_pull(core, now, out, ARRIVALS_BATCH)) > 0)
        next = take(core, out, n, next, acks);
    return next;
}

/* Fills the records of a batch into the buffers of the one before: what differs from record to record. */
static size_t fill(unsalt_core_in_t *in, const struct arrivals *arrivals, size_t at, int64_t *offsets) {
    size_t n = arrivals->count - at < ARRIVALS_BATCH ? arrivals->count - at : ARRIVALS_BATCH;
    const struct arrival *arrival = arrivals->at + at;
    for (size_t i = 0; i < n; i++, arrival++) {
        in[i].seq = arrival->seq;
        in[i].part = in[i].lane = arrival->lane;
        in[i].offset = offsets[arrival->lane]++;
    }
    return n;
}

static void order(const struct arrivals *arrivals, struct bench_runs *runs, bool acks) {
    static unsalt_core_out_t out[ARRIVALS_BATCH];
    static unsalt_core_in_t in[ARRIVALS_BATCH];
    static int64_t offsets[65536];
    unsalt_core_params_t params;
    unsalt_core_event_t events[32];
    engine_params(&params);
    params.budget_window = 1 << 24; /* room for all of them without an acknowledgement */
    unsalt_core_t *core = engine_new(&params, arrivals->lanes);
    for (int k = 0; k < arrivals->lanes; k++)
        offsets[k] = 0;
    for (int i = 0; i < ARRIVALS_BATCH; i++) {
        in[i] = engine_record(session, sizeof session - 1, 1, arrivals->lanes, 0);
        in[i].una = 1; /* nothing is ever proven lost: copies and late ones would contradict it */
    }
    uint64_t next = 1, now = 1000;
    size_t at = 0, n_out;
    struct bench_clock began = bench_start();
    while (at < arrivals->count) {
        size_t n = fill(in, arrivals, at, offsets), done = 0;
        while (done < n) {
            int status;
            done += unsalt_core_push(core, in + done, n - done, now, out, &n_out, &status);
            next = take(core, out, n_out, next, acks);
            if (status == UNSALT_CORE_PULL)
                unsalt_core_events(core, events, 32);
            else if (status < 0)
                order_failed("core", "a record was refused");
        }
        next = release(core, now, next, acks);
        now += 1000;
        at += n;
    }
    bench_stop(began, 1e9 / (double)arrivals->count, runs);
    if (next != arrivals->highest + 1 || !unsalt_core_conserved(core))
        order_failed("core", "records are missing");
    unsalt_core_destroy(core);
}

void order_by_core(const struct arrivals *arrivals, struct bench_runs *runs) {
    order(arrivals, runs, true);
}

void order_by_core_unacknowledged(const struct arrivals *arrivals, struct bench_runs *runs) {
    order(arrivals, runs, false);
}

/* What stays if nothing is put in order: a record is written where a push reads it, and read where a pull wrote it. */
void order_by_nothing(const struct arrivals *arrivals, struct bench_runs *runs) {
    static unsalt_core_out_t out[ARRIVALS_BATCH];
    static unsalt_core_in_t in[ARRIVALS_BATCH];
    static int64_t offsets[65536];
    uint64_t sum = 0, copied = 0;
    struct bench_clock began = bench_start();
    for (size_t at = 0; at < arrivals->count;) {
        size_t n = fill(in, arrivals, at, offsets);
        for (size_t i = 0; i < n; i++)
            out[i] = (unsalt_core_out_t){.msg = in[i].msg, .seq = in[i].seq, .ticket = (uint64_t)in[i].offset,
                                         .part = in[i].part, .generation = 1, .state = UNSALT_STATE_RELEASED,
                                         .lane = in[i].lane};
        __asm__ volatile("" : : "r"(out) : "memory"); /* it is written */
        for (size_t i = 0; i < n; i++) {
            sum += out[i].seq;
            copied += out[i].state == UNSALT_STATE_RELEASED;
        }
        at += n;
    }
    bench_stop(began, 1e9 / (double)arrivals->count, runs);
    if (copied != arrivals->count || sum < arrivals->highest)
        order_failed("floor", "records are missing");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commit frontier alone: open and acknowledge with 10,000 outstanding, acknowledged in no order; and the oldest of
 * 1,000,000 acknowledged last, after which the position jumps over all of them.
 */
#include "arrivals.h"
#include "engine.h"
#include "report.h"
#include <core/frontier.h>
#include <stdlib.h>

enum { WINDOW = 10000, WINDOWS = 100, ALL = 1000000, ROUNDS = 11 };

static void open_tickets(struct us_frontier *frontier, int64_t *offset, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!us_frontier_reserve(frontier, &us_mem_default, 1))
            engine_failed("frontier: out of memory");
        *offset += (i & 1023) == 0 ? 2 : 1; /* markers of transactions take offsets too */
        us_frontier_open(frontier, *offset);
    }
}

static void window(const uint32_t *order, struct bench_runs *runs) {
    struct us_frontier frontier;
    int64_t offset = 0;
    us_frontier_init(&frontier, 0);
    struct bench_clock began = bench_start();
    for (uint64_t w = 0; w < WINDOWS; w++) {
        open_tickets(&frontier, &offset, WINDOW);
        for (size_t i = 0; i < WINDOW; i++)
            us_frontier_ack(&frontier, w * WINDOW + order[i], NULL);
    }
    bench_stop(began, 1e9 / ((double)WINDOW * WINDOWS), runs);
    if (us_frontier_position(&frontier) != offset + 1)
        engine_failed("frontier: the position is wrong");
    us_frontier_destroy(&frontier, &us_mem_default);
}

static void oldest_last(struct bench_runs *runs, struct bench_runs *last) {
    struct us_frontier frontier;
    int64_t offset = 0;
    us_frontier_init(&frontier, 0);
    struct bench_clock began = bench_start();
    open_tickets(&frontier, &offset, ALL);
    for (uint64_t ticket = 1; ticket < ALL; ticket++)
        us_frontier_ack(&frontier, ticket, NULL);
    struct bench_clock then = bench_start();
    us_frontier_ack(&frontier, 0, NULL);
    bench_stop(then, 1e6, last);
    bench_stop(began, 1e9 / ALL, runs);
    if (us_frontier_position(&frontier) != offset + 1)
        engine_failed("frontier: the position is wrong");
    us_frontier_destroy(&frontier, &us_mem_default);
}

int main(void) {
    struct bench_runs windows = {.count = 0}, oldest = {.count = 0}, last = {.count = 0};
    uint32_t *order = engine_alloc(WINDOW, sizeof *order);
    uint64_t seed = UINT64_C(88172645463325252);
    for (uint32_t i = 0; i < WINDOW; i++) {
        uint32_t at = (uint32_t)(bench_random(&seed) % (i + 1));
        order[i] = order[at];
        order[at] = i;
    }
    for (int round = 0; round <= ROUNDS; round++) {
        window(order, &windows);
        oldest_last(&oldest, &last);
        if (round == 0)
            windows.count = oldest.count = last.count = 0;
    }
    bench_compare("frontier window 10000", "open_and_acknowledge", "ns", &windows, NULL, NULL);
    bench_compare("frontier oldest last", "open_and_acknowledge", "ns", &oldest, NULL, NULL);
    bench_compare("frontier oldest last", "last_acknowledgement", "us", &last, NULL, NULL);
    free(order);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* DPDK's rte_reorder, without huge pages, in memory only. Built without it if libdpdk isn't there. */
#include "orderers.h"
#include <stdlib.h>
#ifdef BENCH_DPDK
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_reorder.h>
#include <sched.h>
#include <stdio.h>

static struct rte_mempool *pool;

const char *order_by_reorder_start(void) {
    char lcores[32];
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed))
        cpu++;
    snprintf(lcores, sizeof lcores, "--lcores=0@%d", cpu);
    char *args[] = {"bench",    "--no-huge", "--no-shconf",    "-m",         "512",
                    "--no-pci", lcores,      "--no-telemetry", "--log-level=1", NULL};
    if (rte_eal_init((int)(sizeof args / sizeof *args) - 1, args) < 0)
        return "rte_eal_init() has failed";
    sched_setaffinity(0, sizeof allowed, &allowed); /* it has pinned this thread */
    pool = rte_pktmbuf_pool_create("records", 262143, 0, 0, 128, SOCKET_ID_ANY);
    return pool ? NULL : "no pool of mbufs";
}

static unsigned power_of_two(size_t need) {
    unsigned size = 64;
    while (size < need)
        size *= 2;
    return size;
}

/*
 * Mbufs that are free. A stack: the one that was given back last is taken first, and is still in the cache. A circle:
 * the one that was given back first.
 */
struct free_ones {
    struct rte_mbuf **mbufs;
    unsigned count, mask; /* mask: of the circle, 0 for a stack */
    unsigned first;
};

static inline struct rte_mbuf *take(struct free_ones *spare) {
    spare->count--;
    return spare->mask ? spare->mbufs[spare->first++ & spare->mask] : spare->mbufs[spare->count];
}

static inline void give_back(struct free_ones *spare, struct rte_mbuf *mbuf) {
    unsigned at = spare->mask ? (spare->first + spare->count) & spare->mask : spare->count;
    spare->mbufs[at] = mbuf;
    spare->count++;
}

/* The library's numbers have 32 bits; ours begin at 1. */
static uint64_t drain(struct rte_reorder_buffer *buffer, struct free_ones *spare, uint64_t next) {
    struct rte_mbuf *out[ARRIVALS_BATCH];
    unsigned n;
    do {
        n = rte_reorder_drain(buffer, out, ARRIVALS_BATCH);
        for (unsigned i = 0; i < n; i++) {
            if (*rte_reorder_seqn(out[i]) != (uint32_t)next++)
                order_failed("rte_reorder", "out of order");
            give_back(spare, out[i]);
        }
    } while (n == ARRIVALS_BATCH);
    return next;
}

static void order(const struct arrivals *arrivals, struct free_ones spare, struct bench_runs *runs) {
    struct rte_reorder_buffer *buffer =
        rte_reorder_create("bench", (unsigned)SOCKET_ID_ANY, power_of_two(arrivals->window));
    unsigned all = spare.count;
    spare.mbufs = calloc(all, sizeof *spare.mbufs);
    if (!buffer || !spare.mbufs || rte_pktmbuf_alloc_bulk(pool, spare.mbufs, all) != 0)
        order_failed("rte_reorder", "out of memory");
    uint64_t next = 1;
    size_t at = 0;
    struct bench_clock began = bench_start();
    while (at < arrivals->count) {
        size_t end = at + ARRIVALS_BATCH < arrivals->count ? at + ARRIVALS_BATCH : arrivals->count;
        for (; at < end; at++) {
            struct rte_mbuf *mbuf = take(&spare);
            *rte_reorder_seqn(mbuf) = (uint32_t)arrivals->at[at].seq;
            if (rte_reorder_insert(buffer, mbuf) < 0)
                order_failed("rte_reorder", "a record was refused");
        }
        next = drain(buffer, &spare, next);
    }
    bench_stop(began, 1e9 / (double)arrivals->count, runs);
    if (next != arrivals->highest + 1)
        order_failed("rte_reorder", "records are missing");
    rte_pktmbuf_free_bulk(spare.mbufs, all); /* all of them are back */
    rte_reorder_free(buffer);
    free(spare.mbufs);
}

void order_by_reorder(const struct arrivals *arrivals, struct bench_runs *runs) {
    order(arrivals, (struct free_ones){.count = (unsigned)arrivals->held + ARRIVALS_BATCH}, runs);
}

void order_by_reorder_circle(const struct arrivals *arrivals, struct bench_runs *runs) {
    size_t need = arrivals->held + ARRIVALS_BATCH;
    unsigned count = power_of_two(need > 1024 ? need : 1024);
    order(arrivals, (struct free_ones){.count = count, .mask = count - 1}, runs);
}
#else
const char *order_by_reorder_start(void) {
    return "libdpdk-dev isn't installed";
}

void order_by_reorder(const struct arrivals *arrivals, struct bench_runs *runs) {
    (void)arrivals;
    (void)runs;
    order_failed("rte_reorder", "it isn't there");
}

void order_by_reorder_circle(const struct arrivals *arrivals, struct bench_runs *runs) {
    order_by_reorder(arrivals, runs);
}
#endif

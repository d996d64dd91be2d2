/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session that is put in order again: the core against DPDK's rte_reorder, a binary heap and std::map, all on the
 * same arrivals, in turns in one process. Lanes in bursts; records displaced at random, which breaks the rule that a
 * lane is in order; one record of a hundred late; copies. FULL=1: more lanes, bursts and distances.
 *
 * The core is measured twice: with the acknowledgement of each batch (time_per_record), which moves the commit
 * frontier; and push and pull only (push_pull), since none of the others knows what may be committed. `floor` is the
 * same loop around a mere copy of what push takes to what pull gives. Arguments: only courses whose name contains one
 * of them.
 */
#include "orderers/orderers.h"
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 11, ARRIVALS = 300000 };
#define SEED UINT64_C(88172645463325252)

static bool reorder_there;
static char **wanted; /* words of names, up to a NULL; none: all */

static bool is_wanted(const char *name) {
    for (char **word = wanted; *word; word++)
        if (strstr(name, *word))
            return true;
    return !*wanted;
}

static void compare(const char *name, const struct arrivals *arrivals, bool copies) {
    struct bench_runs core = {.count = 0}, heap = {.count = 0}, map = {.count = 0}, reorder = {.count = 0};
    struct bench_runs circle = {.count = 0}, pure = {.count = 0}, floor = {.count = 0};
    if (!is_wanted(name))
        return;
    bool with_reorder = reorder_there && !copies;
    for (int round = 0; round <= ROUNDS; round++) {
        order_by_core(arrivals, &core);
        order_by_core_unacknowledged(arrivals, &pure);
        order_by_nothing(arrivals, &floor);
        if (with_reorder) {
            order_by_reorder(arrivals, &reorder);
            order_by_reorder_circle(arrivals, &circle);
        }
        order_by_heap(arrivals, &heap);
        order_by_map(arrivals, &map);
        if (round == 0) /* caches and allocators are warm after this */
            core.count = pure.count = floor.count = heap.count = map.count = reorder.count = circle.count = 0;
    }
    if (with_reorder) {
        bench_compare(name, "push_pull", "ns", &pure, "rte_reorder, hot mbufs", &reorder);
        bench_compare(name, "time_per_record", "ns", &core, "rte_reorder, hot mbufs", &reorder);
        bench_compare(name, "time_per_record", "ns", &core, "rte_reorder, mbufs in a circle", &circle);
    }
    bench_compare(name, "push_pull", "ns", &pure, "floor", &floor);
    bench_compare(name, "time_per_record", "ns", &core, "binary heap of records", &heap);
    bench_compare(name, "time_per_record", "ns", &core, "std::map", &map);
}

static void bursts(void) {
    static const int all_lanes[] = {1, 2, 4, 8, 16, 32, 64}, all_bursts[] = {1, 3, 10, 30, 100, 300, 1000};
    int step = bench_full() ? 1 : 2;
    for (int s = 0; s < 7; s += step)
        for (int b = 0; b < 7; b += step) {
            struct arrivals arrivals = arrivals_in_bursts(all_lanes[s], all_bursts[b], ARRIVALS);
            char name[32];
            snprintf(name, sizeof name, "core %dx%d", all_lanes[s], all_bursts[b]);
            compare(name, &arrivals, false);
            arrivals_free(&arrivals);
        }
}

static void displaced(void) {
    for (size_t distance = 1; distance <= 100000; distance *= bench_full() ? 10 : 100) {
        struct arrivals arrivals = arrivals_displaced(distance, ARRIVALS, SEED);
        char name[32];
        snprintf(name, sizeof name, "core displaced %zu", distance);
        compare(name, &arrivals, false);
        arrivals_free(&arrivals);
    }
}

static void late_and_copies(void) {
    static const int lanes[] = {1, 4, 16};
    for (int s = 0; s < 3; s++) {
        char name[32];
        struct arrivals arrivals = arrivals_late(lanes[s], 10, 1000, ARRIVALS, SEED);
        snprintf(name, sizeof name, "core %dx10 1%% late", lanes[s]);
        compare(name, &arrivals, false);
        arrivals_free(&arrivals);
        arrivals = arrivals_copied(lanes[s], 10, 100, ARRIVALS, SEED);
        snprintf(name, sizeof name, "core %dx10 1%% copies", lanes[s]);
        compare(name, &arrivals, true);
        arrivals_free(&arrivals);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    wanted = argv + 1;
    const char *why = order_by_reorder_start();
    reorder_there = !why;
    if (why)
        fprintf(stderr, "bench: core: without rte_reorder: %s\n", why);
    bursts();
    displaced();
    late_and_copies();
    return 0;
}

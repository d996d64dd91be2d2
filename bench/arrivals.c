/* SPDX-License-Identifier: BSD-2-Clause */
#include "arrivals.h"
#include "report.h"
#include <stdio.h>
#include <stdlib.h>

static void *allocate(size_t count, size_t size) {
    void *ptr = calloc(count, size);
    if (!ptr) {
        fprintf(stderr, "bench: out of memory\n");
        exit(70);
    }
    return ptr;
}

/* What the pattern asks of a window and of a store. */
static void measure(struct arrivals *arrivals) {
    unsigned char *here = allocate(arrivals->highest + 2, 1);
    size_t held = 0, i;
    uint64_t next = 1;
    for (i = 0; i < arrivals->count; i++) {
        uint64_t seq = arrivals->at[i].seq;
        if (seq >= next && !here[seq]) {
            here[seq] = 1;
            held++;
        }
        if (seq >= next && seq - next + 1 > arrivals->window)
            arrivals->window = seq - next + 1;
        if (held > arrivals->held)
            arrivals->held = held;
        if ((i + 1) % ARRIVALS_BATCH == 0)
            for (; here[next]; next++)
                held--;
    }
    free(here);
}

static struct arrivals bursts(int lanes, int burst, size_t wanted, size_t room) {
    size_t count = bench_size(wanted);
    size_t round = (size_t)lanes * (size_t)burst, rounds = (count + round - 1) / round;
    struct arrivals arrivals = {.count = rounds * round, .highest = rounds * round, .lanes = lanes};
    arrivals.at = allocate(arrivals.count + room, sizeof *arrivals.at);
    struct arrival *to = arrivals.at;
    for (size_t r = 0; r < rounds; r++)
        for (int k = 1; k <= lanes; k++)
            for (int b = 0; b < burst; b++) {
                uint64_t seq = r * round + (size_t)b * (size_t)lanes + (size_t)k;
                *to++ = (struct arrival){seq, (uint16_t)(seq % (uint64_t)lanes)};
            }
    return arrivals;
}

struct arrivals arrivals_in_bursts(int lanes, int burst, size_t count) {
    struct arrivals arrivals = bursts(lanes, burst, count, 0);
    measure(&arrivals);
    return arrivals;
}

/* Sorts by place, equal places as they stood. */
struct placed {
    size_t place, was;
    struct arrival arrival;
};

static int by_place(const void *left, const void *right) {
    const struct placed *a = left, *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->was < b->was ? -1 : a->was > b->was;
}

static void arrange(struct arrivals *arrivals, struct placed *placed) {
    qsort(placed, arrivals->count, sizeof *placed, by_place);
    for (size_t i = 0; i < arrivals->count; i++)
        arrivals->at[i] = placed[i].arrival;
    free(placed);
    measure(arrivals);
}

static struct placed *places(const struct arrivals *arrivals) {
    struct placed *placed = allocate(arrivals->count, sizeof *placed);
    for (size_t i = 0; i < arrivals->count; i++)
        placed[i] = (struct placed){i, i, arrivals->at[i]};
    return placed;
}

struct arrivals arrivals_displaced(size_t distance, size_t count, uint64_t seed) {
    struct arrivals arrivals = bursts(1, 1, count, 0);
    struct placed *placed = places(&arrivals);
    for (size_t i = 1; i < arrivals.count; i++) /* the first is the first: that is where rte_reorder begins */
        placed[i].place += bench_random(&seed) % (distance + 1);
    arrange(&arrivals, placed);
    return arrivals;
}

struct arrivals arrivals_late(int lanes, int burst, size_t distance, size_t count, uint64_t seed) {
    struct arrivals arrivals = bursts(lanes, burst, count, 0);
    struct placed *placed = places(&arrivals);
    for (size_t i = 1; i < arrivals.count; i++)
        if (bench_random(&seed) % 100 == 0)
            placed[i].place += distance;
    arrange(&arrivals, placed);
    return arrivals;
}

struct arrivals arrivals_copied(int lanes, int burst, size_t distance, size_t count, uint64_t seed) {
    struct arrivals arrivals = bursts(lanes, burst, count, count / 100);
    size_t first = arrivals.count, copies = bench_size(count) / 100;
    arrivals.count += copies;
    struct placed *placed = places(&arrivals);
    for (size_t i = 0; i < copies; i++) {
        size_t of = bench_random(&seed) % first;
        placed[first + i].arrival = arrivals.at[of];
        placed[first + i].place = of + 1 + bench_random(&seed) % distance;
    }
    arrange(&arrivals, placed);
    return arrivals;
}

void arrivals_free(struct arrivals *arrivals) {
    free(arrivals->at);
}

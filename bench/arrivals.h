/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which order the records of one session arrive. Numbers 1..N, number n on lane n mod S; each pattern is made from a
 * seed, the same for whoever puts them in order again.
 */
#ifndef BENCH_ARRIVALS_H
#define BENCH_ARRIVALS_H
#include <stddef.h>
#include <stdint.h>

enum { ARRIVALS_BATCH = 64 }; /* arrivals between two releases, for everybody */

struct arrival {
    uint64_t seq;
    uint16_t lane;
};
struct arrivals {
    struct arrival *at;
    size_t count;    /* copies included */
    uint64_t highest; /* numbers 1..highest, each at least once */
    int lanes;
    size_t window;   /* how far above what was released a number stands at most, + 1; released after each batch */
    size_t held;     /* how many are held at most, the batch that arrives included */
};

/* A generator of random numbers; the state may be any number but 0. */
static inline uint64_t bench_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Exits without memory. The caller frees each with arrivals_free(). */
/* B of lane 1, B of lane 2 and so on, as fetches bring them; at least `count` records. */
struct arrivals arrivals_in_bursts(int lanes, int burst, size_t count);
/* One lane; each record comes up to `distance` places late. */
struct arrivals arrivals_displaced(size_t distance, size_t count, uint64_t seed);
/* Bursts, but one record of a hundred comes `distance` places late. */
struct arrivals arrivals_late(int lanes, int burst, size_t distance, size_t count, uint64_t seed);
/* Bursts, and a copy of one record of a hundred comes up to `distance` places after it. */
struct arrivals arrivals_copied(int lanes, int burst, size_t distance, size_t count, uint64_t seed);
void arrivals_free(struct arrivals *arrivals);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers for property tests: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * 2014). A run is replayed by setting UNSALT_SEED to the seed that it printed.
 */
#ifndef TESTS_SUPPORT_PRNG_H
#define TESTS_SUPPORT_PRNG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t state;
    const uint8_t *tape; /* borrowed; NULL: none */
    size_t left;         /* bytes of the tape that were not used yet */
};

/* The seed of this run: UNSALT_SEED, or drawn from clock and process id. Printed to stderr, once per process. */
uint64_t prng_seed(void);
/* A generator of stream number `stream` of the run's seed: streams don't depend on one another. */
struct prng prng_start(uint64_t stream);

/*
 * A generator that takes what it gives from the bytes of a tape, as few of them as a draw needs, so that a fuzzer can
 * steer whatever is drawn. Behind the end of the tape it goes on with numbers that are always the same.
 */
struct prng prng_tape(const uint8_t *tape, size_t size);
/* Is there a tape, and has it been used up? */
bool prng_is_over(const struct prng *prng);

uint64_t prng_next(struct prng *prng);
/* 0..limit-1, evenly enough for tests; limit >= 1. */
uint64_t prng_below(struct prng *prng, uint64_t limit);
/* first..last, both included. */
uint64_t prng_between(struct prng *prng, uint64_t first, uint64_t last);
/* True in `percent` of 100 cases. */
bool prng_chance(struct prng *prng, unsigned percent);
#endif

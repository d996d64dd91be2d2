/* SPDX-License-Identifier: BSD-2-Clause */
/* The only clock of the library: CLOCK_MONOTONIC in nanoseconds (wall clock: for a producer's epoch only). */
#ifndef US_KAFKA_CLOCK_H
#define US_KAFKA_CLOCK_H
#include <stdint.h>
uint64_t us_clock_now(void);
/* The same clock, up to a few milliseconds behind, at a fifth of the price. */
uint64_t us_clock_coarse(void);
uint64_t us_clock_wall_ms(void);
#endif

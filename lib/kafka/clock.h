/* SPDX-License-Identifier: BSD-2-Clause */
/* The only clock of the library: CLOCK_MONOTONIC in nanoseconds (wall clock: for a producer's epoch only). */
#ifndef US_KAFKA_CLOCK_H
#define US_KAFKA_CLOCK_H
#include <stdint.h>
uint64_t us_clock_now(void);
uint64_t us_clock_wall_ms(void);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The only clock of the library: CLOCK_MONOTONIC in nanoseconds (wall clock: for a producer's epoch only). */
#ifndef US_KAFKA_CLOCK_H
#define US_KAFKA_CLOCK_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
uint64_t us_clock_now(void);
/* The same clock, up to a few milliseconds behind, at a fifth of the price. */
uint64_t us_clock_coarse(void);
/* us_clock_now() in milliseconds. */
uint64_t us_clock_ms(void);
uint64_t us_clock_wall_ms(void);
/* What is left of the time until `until_ms` of us_clock_ms(), for a call that waits: 1..most_ms. */
int us_clock_rest_ms(uint64_t until_ms, int most_ms);

/* ---- waiting on this clock */

/* A lock and a condition for us_clock_wait(). False: neither is there. */
bool us_clock_wait_init(pthread_mutex_t *lock, pthread_cond_t *wake);
void us_clock_wait_destroy(pthread_mutex_t *lock, pthread_cond_t *wake);
/* As pthread_cond_timedwait(), until a moment of us_clock_now(). False: it has come. */
bool us_clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until);
#endif

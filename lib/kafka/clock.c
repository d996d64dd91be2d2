/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <time.h>

static uint64_t nanoseconds(const struct timespec *t) {
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

uint64_t us_clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return nanoseconds(&t);
}

uint64_t us_clock_coarse(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return nanoseconds(&t);
}

uint64_t us_clock_wall_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

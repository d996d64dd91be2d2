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

uint64_t us_clock_ms(void) {
    return us_clock_now() / 1000000;
}

uint64_t us_clock_wall_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

int us_clock_rest_ms(uint64_t until_ms, int most_ms) {
    uint64_t now = us_clock_ms(), rest = now < until_ms ? until_ms - now : 1;
    return rest < (uint64_t)most_ms ? (int)rest : most_ms;
}

bool us_clock_wait_init(pthread_mutex_t *lock, pthread_cond_t *wake) {
    pthread_condattr_t attr;
    if (pthread_mutex_init(lock, NULL)) {
        return false;
    }
    bool done = pthread_condattr_init(&attr) == 0;
    if (done) {
        done = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 && pthread_cond_init(wake, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    if (!done) {
        pthread_mutex_destroy(lock);
    }
    return done;
}

void us_clock_wait_destroy(pthread_mutex_t *lock, pthread_cond_t *wake) {
    pthread_cond_destroy(wake);
    pthread_mutex_destroy(lock);
}

bool us_clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until) {
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    return pthread_cond_timedwait(wake, lock, &at) == 0;
}

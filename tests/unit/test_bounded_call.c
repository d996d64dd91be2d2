/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that may not come back: what is waited for, and what becomes of what is left. */
#include <kafka/bounded_call.h>
#include <pthread.h>
#include <support/check.h>

static bool failing;

static bool fails(void) {
    return failing;
}

#include <support/mem_that_fails.h>

enum { DEADLINE_MS = 30000 };

/* A call that comes back when it is let go. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool open, left, dropped;
    int calls;
};

static void call(void *arg) {
    struct gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    gate->calls++;
    while (!gate->open)
        pthread_cond_wait(&gate->wake, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void leave(void *arg) {
    struct gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    gate->left = true;
    pthread_mutex_unlock(&gate->lock);
}

static void drop(void *arg) {
    struct gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    gate->dropped = true;
    pthread_cond_broadcast(&gate->wake);
    pthread_mutex_unlock(&gate->lock);
}

static struct gate gate_of(bool open) {
    return (struct gate){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .open = open};
}

TEST(bounded_call, one_that_comes_back_stays_the_callers) {
    struct gate gate = gate_of(true);
    const struct us_bounded_call what = {.call = call, .leave = leave, .drop = drop, .arg = &gate};
    CHECK_I64(us_bounded_call(&what, DEADLINE_MS), US_BOUNDED_BACK);
    CHECK_I64(gate.calls, 1);
    CHECK(!gate.left && !gate.dropped);
}

TEST(bounded_call, one_that_does_not_is_left_and_dropped_when_it_does) {
    struct gate gate = gate_of(false);
    const struct us_bounded_call what = {.call = call, .leave = leave, .drop = drop, .arg = &gate};
    CHECK_I64(us_bounded_call(&what, 20), US_BOUNDED_LEFT);
    pthread_mutex_lock(&gate.lock);
    CHECK(gate.left && !gate.dropped);
    gate.open = true;
    pthread_cond_broadcast(&gate.wake);
    while (!gate.dropped)
        pthread_cond_wait(&gate.wake, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    CHECK_I64(gate.calls, 1);
}

TEST(bounded_call, without_memory_nothing_is_called) {
    struct gate gate = gate_of(true);
    const struct us_bounded_call what = {.call = call, .leave = leave, .drop = drop, .arg = &gate};
    failing = true;
    enum us_bounded how = us_bounded_call(&what, DEADLINE_MS);
    failing = false;
    CHECK_I64(how, US_BOUNDED_NOT_MADE);
    CHECK_I64(gate.calls, 0);
    CHECK(!gate.left && !gate.dropped);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that transform the records of one batch after the other, while the thread that polls does something else; it
 * looks now and then whether they are done, or waits for them. All but the two calls for a thread that works are for
 * the thread that polls.
 */
#ifndef US_KAFKA_RELAY_POOL_H
#define US_KAFKA_RELAY_POOL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Does item `index`. Several threads at once, each item at most once. */
typedef void(us_relay_work)(void *opaque, size_t index);
/* Wakes the thread that polls, wherever it waits. From a thread that works, without a lock. */
typedef void(us_relay_wake)(void *opaque);

/* What a thread that works asks of the one that polls. On its stack. */
struct us_relay_errand {
    struct us_relay_errand *next;
    void (*call)(void *arg);
    void *arg;
    bool done;
};

struct us_relay_pool {
    us_relay_work *work;
    us_relay_wake *wake_poller;
    void *opaque;
    pthread_t *threads; /* owned */
    unsigned count;     /* of them; 0: the caller's thread works, within us_relay_pool_start() */
    pthread_mutex_t lock; /* guards what follows, to the empty line */
    pthread_cond_t wake, done, answered;
    size_t next, total, finished;
    struct us_relay_errand *errands;
    bool stop;

    atomic_bool news;  /* an errand, or the last item is done: to be looked at under the lock */
    atomic_bool hurry; /* nobody waits between two attempts any more: the batch is given up, or the end is near */
};

/* False: out of memory or threads, nothing is left to destroy. */
bool us_relay_pool_init(struct us_relay_pool *pool, unsigned threads, us_relay_work *work, us_relay_wake *wake_poller,
                        void *opaque);
/* Begins with items 0..total-1. Nothing may be at work. */
void us_relay_pool_start(struct us_relay_pool *pool, size_t total);
/* Does what is asked for, and returns whether nothing is at work any more. Costs a load while there is no news. */
bool us_relay_pool_is_done(struct us_relay_pool *pool);
/* Returns when nothing is at work any more. */
void us_relay_pool_wait(struct us_relay_pool *pool);
/* The same, but items that nobody has begun are left undone. */
void us_relay_pool_cancel(struct us_relay_pool *pool);
void us_relay_pool_destroy(struct us_relay_pool *pool);

/* From a thread that works: calls on the thread that polls, once that is in one of the calls above; returns then. */
void us_relay_pool_call(struct us_relay_pool *pool, void (*call)(void *arg), void *arg);
/* Waits so long on a thread that works, or less if it is in a hurry. */
void us_relay_pool_pause(struct us_relay_pool *pool, int ms);
#endif

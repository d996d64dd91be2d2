/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/clock.h>
#include <kafka/relay_pool.h>
#include <string.h>
#include <time.h>

#define PAUSE_STEP_MS 20

/* lock, which isn't held while the thread that polls is woken: that may take a lock of librdkafka's. */
static void tell(struct us_relay_pool *pool) {
    atomic_store(&pool->news, true);
    pthread_cond_signal(&pool->done);
    if (pool->count == 0)
        return;
    pthread_mutex_unlock(&pool->lock);
    pool->wake_poller(pool->opaque);
    pthread_mutex_lock(&pool->lock);
}

/* Takes items as long as there are some. The lock is held, but not during work. */
static void work_on(struct us_relay_pool *pool) {
    while (pool->next < pool->total) {
        size_t index = pool->next++;
        pthread_mutex_unlock(&pool->lock);
        pool->work(pool->opaque, index);
        pthread_mutex_lock(&pool->lock);
        if (++pool->finished == pool->total)
            tell(pool);
    }
}

static void *run(void *arg) {
    struct us_relay_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (pool->next < pool->total)
            work_on(pool);
        else
            pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

bool us_relay_pool_init(struct us_relay_pool *pool, unsigned threads, us_relay_work *work, us_relay_wake *wake_poller,
                        void *opaque) {
    memset(pool, 0, sizeof *pool);
    pool->work = work;
    pool->wake_poller = wake_poller;
    pool->opaque = opaque;
    pool->threads = us_calloc(&us_mem_default, threads ? threads : 1, sizeof *pool->threads);
    if (!pool->threads)
        return false;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pthread_cond_init(&pool->answered, NULL);
    for (; pool->count < threads; pool->count++) {
        if (pthread_create(&pool->threads[pool->count], NULL, run, pool)) {
            us_relay_pool_destroy(pool);
            return false;
        }
    }
    return true;
}

void us_relay_pool_start(struct us_relay_pool *pool, size_t total) {
    atomic_store(&pool->hurry, false);
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->news, false);
    pool->next = pool->finished = 0;
    pool->total = total;
    if (pool->count == 0)
        work_on(pool);
    else
        pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* lock, which is not held during the calls. */
static void run_errands(struct us_relay_pool *pool) {
    struct us_relay_errand *errand;
    while ((errand = pool->errands)) {
        pool->errands = errand->next;
        pthread_mutex_unlock(&pool->lock);
        errand->call(errand->arg);
        pthread_mutex_lock(&pool->lock);
        errand->done = true;
        pthread_cond_broadcast(&pool->answered);
    }
}

bool us_relay_pool_is_done(struct us_relay_pool *pool) {
    if (!atomic_load(&pool->news))
        return false;
    pthread_mutex_lock(&pool->lock);
    run_errands(pool);
    bool done = pool->finished == pool->total;
    atomic_store(&pool->news, done); /* that it is done stays news until the next start */
    pthread_mutex_unlock(&pool->lock);
    return done;
}

void us_relay_pool_wait(struct us_relay_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    for (run_errands(pool); pool->finished < pool->total; run_errands(pool)) /* an errand's item isn't finished */
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void us_relay_pool_cancel(struct us_relay_pool *pool) {
    atomic_store(&pool->hurry, true);
    pthread_mutex_lock(&pool->lock);
    pool->finished += pool->total - pool->next;
    pool->next = pool->total;
    pthread_mutex_unlock(&pool->lock);
    us_relay_pool_wait(pool);
}

void us_relay_pool_call(struct us_relay_pool *pool, void (*call)(void *arg), void *arg) {
    if (pool->count == 0) {
        call(arg);
        return;
    }
    struct us_relay_errand mine = {.call = call, .arg = arg};
    pthread_mutex_lock(&pool->lock);
    mine.next = pool->errands;
    pool->errands = &mine;
    tell(pool);
    while (!mine.done)
        pthread_cond_wait(&pool->answered, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void us_relay_pool_pause(struct us_relay_pool *pool, int ms) {
    uint64_t until = us_clock_ms() + (uint64_t)ms;
    while (!atomic_load(&pool->hurry) && us_clock_ms() < until) {
        int step = us_clock_rest_ms(until, PAUSE_STEP_MS);
        nanosleep(&(struct timespec){.tv_nsec = step * 1000000L}, NULL);
    }
}

void us_relay_pool_destroy(struct us_relay_pool *pool) {
    us_relay_pool_cancel(pool);
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->answered);
    pthread_mutex_destroy(&pool->lock);
    us_free(&us_mem_default, pool->threads);
    memset(pool, 0, sizeof *pool);
}

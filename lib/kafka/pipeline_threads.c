/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers and delivery threads. A thread that finds nothing sleeps; only sleeping ones are woken, a few at a time, and
 * each of them wakes the next while there is more: so a stream of records costs hardly a system call.
 */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <signal.h>
#include <stdio.h>

#define WAKES 4 /* threads on their way at a time; they wake the rest */

/* Wakes until as many are on their way as there is to do, and sleep. */
static void wake(pthread_cond_t *cond, uint32_t sleeping, uint32_t *waking, uint32_t wanted) {
    uint32_t most = wanted < WAKES ? wanted : WAKES;
    while (*waking < most && *waking < sleeping) {
        pthread_cond_signal(cond);
        (*waking)++;
    }
}

void us_threads_wake(struct unsalt_pipeline *pl) {
    if (pl->sleeping_workers > 0) {
        wake(&pl->work, pl->sleeping_workers, &pl->waking_workers, pl->pipe.queued);
    }
    if (pl->sleeping_deliverers > 0 && us_pipe_may_step(&pl->pipe)) {
        wake(&pl->deliver, pl->sleeping_deliverers, &pl->waking_deliverers, 1);
    }
}

/* lock. A spurious wake-up counts as one that was meant: then one more is woken than is needed, at most. */
static void sleep_until_woken(pthread_cond_t *cond, pthread_mutex_t *lock, uint32_t *sleeping, uint32_t *waking) {
    (*sleeping)++;
    pthread_cond_wait(cond, lock);
    (*sleeping)--;
    *waking -= *waking > 0;
}

static void *work(void *opaque) {
    struct unsalt_pipeline *pl = opaque;
    struct us_call call;
    pthread_mutex_lock(&pl->lock);
    while (!pl->stop) {
        struct us_pipe_job *job = us_pipe_next_prepare(&pl->pipe, us_clock_now());
        if (!job) {
            sleep_until_woken(&pl->work, &pl->lock, &pl->sleeping_workers, &pl->waking_workers);
            continue;
        }
        us_call_begin(pl, &call, us_job_of(job), true);
        us_threads_wake(pl);
        us_call_prepare(&call);
        us_threads_wake(pl);
        if (call.after.any) {
            pthread_mutex_unlock(&pl->lock);
            us_call_after(&call);
            pthread_mutex_lock(&pl->lock);
        }
    }
    pthread_mutex_unlock(&pl->lock);
    return NULL;
}

static void *deliver(void *opaque) {
    struct unsalt_pipeline *pl = opaque;
    struct us_call call;
    pthread_mutex_lock(&pl->lock);
    while (!pl->stop) {
        uint64_t now = us_clock_now();
        struct us_pipe_job *job = now < atomic_load(&pl->open_until) ? us_pipe_next_step(&pl->pipe, now) : NULL;
        if (!job) {
            sleep_until_woken(&pl->deliver, &pl->lock, &pl->sleeping_deliverers, &pl->waking_deliverers);
            continue;
        }
        us_call_begin(pl, &call, us_job_of(job), false);
        us_threads_wake(pl);
        pthread_mutex_unlock(&pl->lock);
        us_call_step(&call);
        pthread_mutex_lock(&pl->lock);
    }
    pthread_mutex_unlock(&pl->lock);
    return NULL;
}

bool us_threads_start(struct unsalt_pipeline *pl, char *errstr, size_t size) {
    uint32_t workers = pl->workers, count = workers + pl->delivery_threads;
    sigset_t all, before;
    pl->threads = us_calloc(&us_mem_default, count + 1, sizeof(*pl->threads));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the application's threads' business */
    while (pl->threads && pl->thread_count < count &&
           pthread_create(&pl->threads[pl->thread_count], NULL, pl->thread_count < workers ? work : deliver, pl) == 0) {
        pl->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pl->thread_count == count && pl->threads) {
        return true;
    }
    if (!pl->threads) {
        snprintf(errstr, size, "out of memory");
    } else {
        snprintf(errstr, size, "only %u of %u threads of the pipeline could be started (pipeline.workers, "
                               "pipeline.delivery.threads)", pl->thread_count, count);
    }
    us_threads_stop(pl);
    return false;
}

void us_threads_stop(struct unsalt_pipeline *pl) {
    pthread_mutex_lock(&pl->lock);
    pl->stop = true;
    pthread_cond_broadcast(&pl->work);
    pthread_cond_broadcast(&pl->deliver);
    pthread_mutex_unlock(&pl->lock);
    for (uint32_t i = 0; i < pl->thread_count; i++) {
        pthread_join(pl->threads[i], NULL);
    }
    pl->thread_count = 0;
    us_free(&us_mem_default, pl->threads);
    pl->threads = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that looks how many partitions the topics have. Metadata can only be asked for by a call that blocks. */
#include <base/mem.h>
#include <kafka/consumer.h>

#define LOOK_MS 1000                  /* a look that gets no answer; a close waits for it */
#define EVERY_MIN_MS 100
#define EVERY_MAX_MS 30000
#define THREAD_NS (500 * US_MS)       /* when the thread is tried again */
#define AGAIN_NS (200 * US_MS)        /* pause after one, doubled each time up to: */
#define AGAIN_MAX_NS (6400 * US_MS)

bool us_watch_init(struct us_watch *watch) {
    watch->unknown_at = watch->gated_at = UNSALT_NEVER;
    watch->made = us_clock_wait_init(&watch->lock, &watch->wake);
    return watch->made;
}

uint64_t us_watch_interval(const struct us_before *before) {
    int64_t ms = before->metadata_ms;
    return (uint64_t)(ms < 0 || ms > EVERY_MAX_MS ? EVERY_MAX_MS : ms < EVERY_MIN_MS ? EVERY_MIN_MS : ms) * US_MS;
}

void us_watch_destroy(struct us_watch *watch) {
    if (watch->seen) {
        rd_kafka_metadata_destroy(watch->seen);
    }
    us_free(&us_mem_default, watch->heard);
    if (watch->made) {
        us_clock_wait_destroy(&watch->lock, &watch->wake);
    }
}

/* ---- the thread */

/* One look, without the lock; its result is put where the thread that polls finds it. */
static rd_kafka_resp_err_t look(struct unsalt *u) {
    struct us_watch *watch = &u->watch;
    const struct rd_kafka_metadata *metadata = NULL;
    uint64_t question = watch->asked;
    pthread_mutex_unlock(&watch->lock);
    rd_kafka_resp_err_t err = rd_kafka_metadata(u->rk, 0, NULL, &metadata, LOOK_MS);
    pthread_mutex_lock(&watch->lock);
    watch->err = err;
    if (!err) {
        if (watch->seen) {
            rd_kafka_metadata_destroy(watch->seen);
        }
        watch->seen = metadata;
        watch->answered = question;
    }
    atomic_store(&watch->fresh, true);
    pthread_mutex_unlock(&watch->lock);
    us_signal(u);
    pthread_mutex_lock(&watch->lock);
    return err;
}

static void *watch_main(void *opaque) {
    struct unsalt *u = opaque;
    struct us_watch *watch = &u->watch;
    uint64_t next = 0, pause = AGAIN_NS, question = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop) {
        bool asked = watch->asked != question; /* a new question doesn't wait for the pause of an older one */
        if (!asked && us_clock_now() < next) {
            us_clock_wait(&watch->wake, &watch->lock, next); /* or until a question, or the end */
            continue;
        }
        question = watch->asked;
        bool failed = look(u) != RD_KAFKA_RESP_ERR_NO_ERROR;
        pause = failed && pause < AGAIN_MAX_NS ? 2 * pause : failed ? pause : AGAIN_NS;
        next = us_clock_now() + (failed ? pause : watch->every_ns);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* ---- the side of the thread that polls */

void us_watch_ask(struct unsalt *u) {
    struct us_watch *watch = &u->watch;
    pthread_mutex_lock(&watch->lock);
    watch->asked++;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (!watch->started) {
        watch->started = pthread_create(&watch->thread, NULL, watch_main, u) == 0;
    }
    if (!watch->started) {
        watch->err = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE; /* without the lock: there is no other thread */
        watch->ask_at = us_clock_now() + THREAD_NS;
    }
}

void us_watch_stop(struct unsalt *u) {
    struct us_watch *watch = &u->watch;
    if (!watch->started) {
        return;
    }
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->started = false;
}

const struct rd_kafka_metadata *us_watch_take(struct us_watch *watch, bool *newest) {
    atomic_store(&watch->fresh, false);
    pthread_mutex_lock(&watch->lock);
    const struct rd_kafka_metadata *seen = watch->seen;
    *newest = watch->answered == watch->asked;
    watch->seen = NULL;
    pthread_mutex_unlock(&watch->lock);
    return seen;
}

rd_kafka_resp_err_t us_watch_error(struct us_watch *watch) {
    pthread_mutex_lock(&watch->lock);
    rd_kafka_resp_err_t err = watch->err;
    pthread_mutex_unlock(&watch->lock);
    return err;
}

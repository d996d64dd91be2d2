/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/consumer.h>
#include <errno.h>
#include <time.h>

#define WATCH_SECONDS 5

/* ---- close */

/* ack=manual: other threads may still acknowledge. */
static void wait_for_acks(struct unsalt *u) {
    uint64_t now = us_clock_now();
    uint64_t until = now + (uint64_t)u->conf->revoke_timeout_ms * US_MS;
    atomic_store(&u->acks.waited_for, true);
    while (us_acks_outstanding(&u->acks, US_NO_PART) > 0 && now < until) {
        atomic_store(&u->signalled, false);
        if (us_acks_outstanding(&u->acks, US_NO_PART) > 0) {
            us_sleep(u, until - now);
        }
        now = us_clock_now();
    }
    atomic_store(&u->acks.waited_for, false);
}

/* Whatever the core gives now is dropped: it will be read again. */
static void drop_everything(struct unsalt *u) {
    uint64_t now = us_clock_now();
    us_ring_revoke_all(&u->ring);
    us_assign_close_all(u);
    do {
        us_ring_revoke_all(&u->ring);
        us_drain(u, now);
    } while (u->ring.count > 0);
}

rd_kafka_resp_err_t us_close(struct unsalt *u) {
    if (u->closed) {
        return u->close_err;
    }
    u->closing = true;
    us_handed_done(u);
    wait_for_acks(u);
    us_acks_apply(u);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (u->before.commit_wanted && !rd_kafka_assignment_lost(u->rk)) {
        err = us_commit(u, false, US_COMMIT_WAIT_MS);
    }
    us_outstanding_report(u, true);
    if (u->revoke.active) {
        u->revoke.until = 0;
        us_revoke_continue(u, us_clock_now());
    }
    us_stats_refresh(u);
    u->stranded = u->stats.unacked;
    drop_everything(u);
    rd_kafka_resp_err_t close_err = rd_kafka_consumer_close(u->rk);
    us_partitions_close(u);
    rd_kafka_queue_cb_event_enable(u->main_queue, NULL, NULL);
    rd_kafka_queue_destroy(u->main_queue);
    u->main_queue = NULL;
    us_stats_refresh(u);
    u->close_err = err ? err : close_err;
    u->closed = true;
    return u->close_err;
}

rd_kafka_resp_err_t unsalt_consumer_close(unsalt_t *u) {
    bool free = false;
    if (!atomic_compare_exchange_strong(&u->busy, &free, true)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CONFLICT);
        return RD_KAFKA_RESP_ERR__CONFLICT;
    }
    rd_kafka_resp_err_t err = us_close(u);
    us_leave(u);
    return err;
}

/* ---- destroy */

struct watch {
    struct unsalt *u;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void report(struct unsalt *u, unsigned seconds) {
    char text[256];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_DESTROY_BLOCKED);
    event.count = u->stranded;
    event.waited_ns = seconds * 1000 * US_MS;
    snprintf(text, sizeof(text),
             "destroy_blocked: destroy waits for %u s: messages that the application has not destroyed; %llu were not "
             "acknowledged at close",
             seconds, (unsigned long long)u->stranded);
    event.text = text;
    us_event_raise(u, &event);
}

/* A condition on the clock of us_clock_now(). */
static void init_wake(pthread_cond_t *wake) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attr);
    pthread_condattr_destroy(&attr);
}

static void *watch_main(void *opaque) {
    struct watch *watch = opaque;
    unsigned seconds = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        uint64_t at = us_clock_now() + WATCH_SECONDS * 1000 * US_MS;
        struct timespec until = {.tv_sec = (time_t)(at / (1000 * US_MS)), .tv_nsec = (long)(at % (1000 * US_MS))};
        int rc = 0;
        while (!watch->done && rc != ETIMEDOUT) {
            rc = pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
        }
        if (!watch->done) {
            seconds += WATCH_SECONDS;
            report(watch->u, seconds);
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

void us_destroy_watched(struct unsalt *u) {
    struct watch watch = {.u = u};
    pthread_t thread;
    pthread_mutex_init(&watch.lock, NULL);
    init_wake(&watch.wake);
    bool watched = pthread_create(&thread, NULL, watch_main, &watch) == 0;
    rd_kafka_destroy_flags(u->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (watched) {
        pthread_mutex_lock(&watch.lock);
        watch.done = true;
        pthread_cond_signal(&watch.wake);
        pthread_mutex_unlock(&watch.lock);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&watch.wake);
    pthread_mutex_destroy(&watch.lock);
}

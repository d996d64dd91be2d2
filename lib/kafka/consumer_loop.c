/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop of the application's own: a wake-up on its file descriptor, and how long it may sleep.
 *
 * A call that ends arms the wake-up; the next signal disarms it and writes once, so that a stream of records costs
 * no system call each. None is lost: the end of a call arms before it looks whether something was signalled meanwhile,
 * and a signaller says what happened before it looks whether the wake-up is armed (consumer_wake.c has the same rule).
 *
 * While the application waits in its loop for us, nothing keeps it from reading: that time counts as reading time,
 * as it would inside a poll that waits, until we called it or its time to call came.
 */
#include <kafka/pipeline.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

bool us_loop_init(struct us_loop *loop) {
    loop->fd = -1;
    return pthread_mutex_init(&loop->lock, NULL) == 0;
}

void us_loop_destroy(struct us_loop *loop) {
    pthread_mutex_destroy(&loop->lock);
}

void us_loop_notify(struct unsalt *u) {
    struct us_loop *loop = &u->loop;
    if (!atomic_exchange(&loop->armed, false)) {
        return;
    }
    atomic_store(&loop->told_at, us_clock_now());
    pthread_mutex_lock(&loop->lock);
    if (loop->fd >= 0) {
        ssize_t written = write(loop->fd, loop->payload, loop->size);
        (void)written; /* what is in a full pipe wakes as well */
    }
    pthread_mutex_unlock(&loop->lock);
}

static void arm(struct unsalt *u) {
    atomic_store(&u->loop.told_at, UNSALT_NEVER);
    atomic_store(&u->loop.armed, true);
    if (atomic_load(&u->signalled)) {
        us_loop_notify(u);
    }
}

void us_loop_rest(struct unsalt *u, bool settled) {
    struct us_loop *loop = &u->loop;
    loop->settled = settled;
    loop->rested_at = us_clock_now();
    loop->outside = settled && loop->size > 0;
    if (loop->outside) {
        loop->due = us_next_deadline(u);
    } else {
        unsalt_core_reading(u->core, false, loop->rested_at);
    }
    if (loop->size > 0) {
        arm(u);
    }
}

void us_loop_back(struct unsalt *u) {
    struct us_loop *loop = &u->loop;
    loop->settled = false;
    if (loop->outside) {
        uint64_t until = earlier(earlier(atomic_load(&loop->told_at), loop->due), us_clock_now());
        unsalt_core_reading(u->core, false, until > loop->rested_at ? until : loop->rested_at);
        loop->outside = false;
    }
}

rd_kafka_resp_err_t unsalt_io_event_enable(unsalt_t *u, int fd, const void *payload, size_t size) {
    struct us_loop *loop = &u->loop;
    if (fd >= 0 && (!payload || size == 0 || size > sizeof(loop->payload))) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    pthread_mutex_lock(&loop->lock);
    loop->fd = fd >= 0 ? fd : -1;
    loop->size = fd >= 0 ? size : 0;
    if (fd >= 0) {
        memcpy(loop->payload, payload, size);
    }
    pthread_mutex_unlock(&loop->lock);
    if (fd >= 0) {
        arm(u);
    }
    us_leave(u);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Whether a call would find something to do now. A round that moved something may have left something. */
static bool has_work(const struct unsalt *u) {
    bool ready = u->ring.count > 0 && !us_revoke_blocks(u);
    if (u->pipeline) { /* what is ready may find no room */
        ready = us_pipeline_has_work(u->pipeline);
    }
    return ready || !u->loop.settled || atomic_load(&u->signalled) || atomic_load(&u->woken);
}

static int wait_ms(const struct unsalt *u) {
    uint64_t now = us_clock_now(), next = us_next_deadline(u);
    next = u->pipeline ? earlier(next, us_pipeline_deadline(u->pipeline)) : next;
    if (next <= now) {
        return next <= u->now; /* the last round was no earlier and could do nothing about it: a pause, not a spin */
    }
    return us_rounded_up_ms(next - now);
}

int unsalt_poll_deadline_ms(unsalt_t *u) {
    if (!us_enter_to_look(u)) {
        return -1;
    }
    int ms = has_work(u) ? 0 : wait_ms(u);
    us_leave(u);
    return ms;
}

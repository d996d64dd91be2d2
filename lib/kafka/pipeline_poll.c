/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/pipeline.h>
#include <limits.h>
#include <time.h>

#define NAP_FROM 8 /* records in phase 1 */
#define STEPS 1024 /* delivered on the thread that polls before it reads on */

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/*
 * Delivery may go on until then, whatever becomes of the thread that polls. A close is no poll: librdkafka counts on.
 * What was closed is found under the lock, by a clock that is read there: whoever went to sleep as it was closed read
 * his before.
 */
static void open_deliveries(struct unsalt_pipeline *pl, uint64_t now) {
    const struct unsalt *u = pl->u;
    bool fenced = us_fenced(u);
    if (u->closing && !fenced) {
        return;
    }
    pthread_mutex_lock(&pl->lock);
    bool closed = atomic_load(&pl->open_until) <= us_clock_now();
    atomic_store(&pl->open_until, fenced ? 0 : now + (uint64_t)u->before.max_poll_ms * US_MS);
    if (closed && !fenced) {
        us_threads_wake(pl);
    }
    pthread_mutex_unlock(&pl->lock);
}

static bool next_step(struct unsalt_pipeline *pl, struct us_call *call, uint64_t until) {
    pthread_mutex_lock(&pl->lock);
    uint64_t now = us_clock_now();
    bool open = now < until && now < atomic_load(&pl->open_until);
    struct us_pipe_job *job = open ? us_pipe_next_step(&pl->pipe, now) : NULL;
    if (job) {
        us_call_begin(pl, call, us_job_of(job), false);
    }
    pthread_mutex_unlock(&pl->lock);
    return job;
}

/* On this thread: a while of what can be delivered. It is no time in which the consumer was reading. */
static bool deliver_here(struct unsalt_pipeline *pl, uint64_t until) {
    struct unsalt *u = pl->u;
    struct us_call call;
    if (pl->delivery_threads > 0 || us_fenced(u) || !next_step(pl, &call, until)) {
        return false;
    }
    unsalt_core_reading(u->core, false, us_clock_now());
    int steps = 0;
    do {
        us_call_step(&call);
    } while (++steps < STEPS && us_clock_coarse() < u->sweep_at && next_step(pl, &call, until));
    unsalt_core_reading(u->core, !u->full && !u->closing, us_clock_now());
    pl->flows = true;
    return true;
}

static bool expire(struct unsalt_pipeline *pl, uint64_t now) {
    pthread_mutex_lock(&pl->lock);
    bool due = us_pipe_deadline(&pl->pipe) <= now;
    if (due) {
        us_pipe_expire(&pl->pipe, now);
        us_threads_wake(pl);
    }
    pthread_mutex_unlock(&pl->lock);
    return due;
}

bool us_pipeline_serve(struct unsalt_pipeline *pl, uint64_t now, uint64_t until) {
    us_dead_serve(pl);
    open_deliveries(pl, now);
    bool moved = expire(pl, now);
    if (!pl->u->closing && !us_revoke_blocks(pl->u) && !us_fenced(pl->u)) {
        us_pipeline_start_waiting(pl, now);
        moved |= us_pipeline_take(pl, now);
    }
    moved |= deliver_here(pl, until);
    moved |= us_done_settle(pl);
    us_done_notices(pl);
    us_done_workers(pl);
    return moved;
}

uint64_t us_pipeline_deadline(struct unsalt_pipeline *pl) {
    uint64_t awake = pl->u->closing ? UNSALT_NEVER : us_next_deadline(pl->u); /* for whatever reason */
    pthread_mutex_lock(&pl->lock);
    uint64_t deadline = us_pipe_deadline(&pl->pipe);
    bool others = pl->delivery_threads > 0 && pl->pipe.turned.records > 0;
    pl->wakes_at = earlier(deadline, awake);
    pthread_mutex_unlock(&pl->lock);
    return others || pl->blocked || pl->starved ? earlier(deadline, us_clock_now() + US_PIPELINE_PAUSE) : deadline;
}

bool us_pipeline_has_work(struct unsalt_pipeline *pl) {
    pthread_mutex_lock(&pl->lock);
    bool steps = pl->delivery_threads == 0 && us_pipe_may_step(&pl->pipe);
    bool work = steps || pl->pipe.done_count > 0 || !us_links_empty(&pl->pipe.notices);
    pthread_mutex_unlock(&pl->lock);
    return work;
}

/*
 * Sleeps until something is to be done. As long as it flows, and others are at work, it is not woken for each record: a
 * short nap brings many.
 */
static void rest(struct unsalt_pipeline *pl, uint64_t now, uint64_t until) {
    struct unsalt *u = pl->u;
    bool naps = pl->flows;
    pl->flows = false;
    if (naps) {
        pthread_mutex_lock(&pl->lock);
        naps = pl->pipe.counters.state[US_PIPE_RUNNING] >= NAP_FROM;
        pthread_mutex_unlock(&pl->lock);
    }
    if (naps && until > now + US_PIPELINE_NAP) {
        struct timespec nap = {.tv_nsec = US_PIPELINE_NAP};
        nanosleep(&nap, NULL);
        return;
    }
    uint64_t next = earlier(earlier(until, us_next_deadline(u)), us_pipeline_deadline(pl));
    us_sleep(u, next > now ? next - now : US_MS);
}

/* Rounds and work until something is done. */
static void run(struct unsalt_pipeline *pl, int timeout_ms) {
    struct unsalt *u = pl->u;
    uint64_t now = us_clock_now();
    uint64_t until = timeout_ms < 0 ? UNSALT_NEVER : now + (uint64_t)timeout_ms * US_MS;
    bool moved;
    unsalt_core_reading(u->core, !u->full, now);
    for (;;) {
        moved = us_round(u, now);
        moved |= us_pipeline_serve(pl, now, u->revoke.active ? u->revoke.until : UNSALT_NEVER);
        if (pl->finished > 0 || atomic_exchange(&u->woken, false)) {
            break;
        }
        now = us_clock_now();
        if (now >= until && (!moved || timeout_ms > 0 || now >= until + US_PIPELINE_PAUSE)) {
            break;
        }
        if (!moved) {
            rest(pl, now, until);
            now = us_clock_now();
        }
        if (pl->starved) {
            break; /* to whoever may do something about it; the rest above keeps that from being a spin */
        }
    }
    us_loop_rest(u, !moved && pl->finished == 0);
    us_stats_refresh(u);
}

int unsalt_pipeline_poll(unsalt_pipeline_t *p, int timeout_ms) {
    if (!us_enter(p->u)) {
        return -1;
    }
    p->u->own.polls++;
    run(p, timeout_ms);
    int n = p->finished < INT_MAX ? (int)p->finished : INT_MAX;
    p->finished = 0;
    if (n == 0 && p->starved) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
        n = -1;
    }
    us_leave(p->u);
    return n;
}

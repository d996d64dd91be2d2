/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/bounded_call.h>
#include <kafka/clock.h>

/* Both threads know it; the one that comes last frees it. */
struct under_way {
    struct us_bounded_call what;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool back, left; /* under the lock */
};

static void free_it(struct under_way *u) {
    us_clock_wait_destroy(&u->lock, &u->wake);
    us_free(&us_mem_default, u);
}

static void *make_it(void *opaque) {
    struct under_way *u = opaque;
    u->what.call(u->what.arg);
    pthread_mutex_lock(&u->lock);
    bool left = u->left;
    u->back = true;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    if (left) {
        if (u->what.drop)
            u->what.drop(u->what.arg);
        free_it(u);
    }
    return NULL;
}

static struct under_way *begin(const struct us_bounded_call *what, pthread_t *thread) {
    struct under_way *u = us_calloc(&us_mem_default, 1, sizeof *u);
    if (!u || !us_clock_wait_init(&u->lock, &u->wake)) {
        us_free(&us_mem_default, u);
        return NULL;
    }
    u->what = *what;
    if (pthread_create(thread, NULL, make_it, u)) {
        free_it(u);
        return NULL;
    }
    return u;
}

enum us_bounded us_bounded_call(const struct us_bounded_call *what, int timeout_ms) {
    pthread_t thread;
    struct under_way *u = begin(what, &thread);
    if (!u)
        return US_BOUNDED_NOT_MADE;
    uint64_t until = us_clock_now() + (uint64_t)timeout_ms * 1000000u;
    pthread_mutex_lock(&u->lock);
    while (!u->back && us_clock_wait(&u->wake, &u->lock, until)) {
    }
    bool back = u->back;
    if (!back && what->leave)
        what->leave(what->arg); /* under the lock: so it hasn't been dropped */
    u->left = !back;
    pthread_mutex_unlock(&u->lock);
    if (!back) {
        pthread_detach(thread);
        return US_BOUNDED_LEFT;
    }
    pthread_join(thread, NULL);
    free_it(u);
    return US_BOUNDED_BACK;
}

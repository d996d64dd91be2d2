/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/clock.h>
#include <kafka/handle_end.h>

/* Both threads know it; the one that comes last frees it. */
struct ending {
    rd_kafka_t *rk;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool gone, left;
};

static void drop(struct ending *ending) {
    us_clock_wait_destroy(&ending->lock, &ending->wake);
    us_free(&us_mem_default, ending);
}

static void *end_it(void *opaque) {
    struct ending *ending = opaque;
    rd_kafka_destroy(ending->rk);
    pthread_mutex_lock(&ending->lock);
    bool last = ending->left;
    ending->gone = true;
    pthread_cond_signal(&ending->wake);
    pthread_mutex_unlock(&ending->lock);
    if (last) {
        drop(ending);
    }
    return NULL;
}

static struct ending *begin(rd_kafka_t *rk, pthread_t *thread) {
    struct ending *ending = us_calloc(&us_mem_default, 1, sizeof(*ending));
    if (!ending || !us_clock_wait_init(&ending->lock, &ending->wake)) {
        us_free(&us_mem_default, ending);
        return NULL;
    }
    ending->rk = rk;
    if (pthread_create(thread, NULL, end_it, ending)) {
        drop(ending);
        return NULL;
    }
    return ending;
}

bool us_handle_end(rd_kafka_t *rk, int timeout_ms) {
    pthread_t thread;
    if (!rk) {
        return true;
    }
    struct ending *ending = begin(rk, &thread);
    if (!ending) {
        rd_kafka_destroy(rk);
        return true;
    }
    uint64_t until = us_clock_now() + (uint64_t)timeout_ms * 1000000u;
    pthread_mutex_lock(&ending->lock);
    while (!ending->gone && us_clock_wait(&ending->wake, &ending->lock, until)) {
    }
    bool gone = ending->gone;
    ending->left = !gone;
    pthread_mutex_unlock(&ending->lock);
    if (!gone) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    drop(ending);
    return true;
}

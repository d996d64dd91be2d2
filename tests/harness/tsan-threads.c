/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C11 threads on top of POSIX threads, for programs under ThreadSanitizer only. librdkafka uses C11 threads, and
 * gcc's ThreadSanitizer doesn't know them: a thread that it didn't see start crashes it, and a lock that it doesn't
 * see looks like a race. Defined in the program, these take the place of the C library's. On Linux the C11 types
 * have the size of the POSIX ones.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "a C11 mutex has room for a POSIX one");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "a C11 condition has room for a POSIX one");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "thread handles are the same");

#define VISIBLE __attribute__((visibility("default")))

struct start {
    thrd_start_t function;
    void *argument;
};

static void *run(void *opaque) {
    struct start start = *(struct start *)opaque;
    free(opaque);
    return (void *)(long)start.function(start.argument);
}

static int result(int err) {
    switch (err) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

VISIBLE int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
    struct start *start = malloc(sizeof *start);
    if (!start)
        return thrd_nomem;
    start->function = function;
    start->argument = argument;
    int err = pthread_create(thread, NULL, run, start);
    if (err)
        free(start);
    return result(err);
}

VISIBLE int thrd_join(thrd_t thread, int *res) {
    void *value;
    int err = pthread_join(thread, &value);
    if (!err && res)
        *res = (int)(long)value;
    return result(err);
}

VISIBLE int mtx_init(mtx_t *mutex, int type) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    int err = pthread_mutex_init((pthread_mutex_t *)mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    return result(err);
}

VISIBLE void mtx_destroy(mtx_t *mutex) {
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

VISIBLE int mtx_lock(mtx_t *mutex) {
    return result(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

VISIBLE int mtx_trylock(mtx_t *mutex) {
    return result(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

VISIBLE int mtx_unlock(mtx_t *mutex) {
    return result(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

VISIBLE int cnd_init(cnd_t *cond) {
    return result(pthread_cond_init((pthread_cond_t *)cond, NULL));
}

VISIBLE void cnd_destroy(cnd_t *cond) {
    pthread_cond_destroy((pthread_cond_t *)cond);
}

VISIBLE int cnd_signal(cnd_t *cond) {
    return result(pthread_cond_signal((pthread_cond_t *)cond));
}

VISIBLE int cnd_broadcast(cnd_t *cond) {
    return result(pthread_cond_broadcast((pthread_cond_t *)cond));
}

VISIBLE int cnd_wait(cnd_t *cond, mtx_t *mutex) {
    return result(pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex));
}

VISIBLE int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until) {
    return result(pthread_cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, until));
}

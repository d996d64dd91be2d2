/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal costs a system call only while the reader sleeps. No wake-up is lost: the reader says that it sleeps before
 * it looks whether something was signalled, and a signaller says what happened before it looks whether the reader
 * sleeps; both orders are sequentially consistent, so one of the two sees the other.
 */
#include <kafka/consumer.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

void us_signal(struct unsalt *u) {
    atomic_store(&u->signalled, true);
    if (atomic_load(&u->sleeping)) {
        uint64_t one = 1;
        ssize_t written = write(u->wake_fd, &one, sizeof(one));
        (void)written; /* a counter that is full wakes as well */
    }
    if (atomic_load(&u->loop.armed)) {
        us_loop_notify(u);
    }
}

int us_rounded_up_ms(uint64_t ns) {
    if (ns >= (uint64_t)INT_MAX * US_MS) {
        return INT_MAX;
    }
    return (int)((ns + US_MS - 1) / US_MS);
}

void us_sleep(struct unsalt *u, uint64_t timeout_ns) {
    atomic_store(&u->sleeping, true);
    if (!atomic_load(&u->signalled)) {
        struct pollfd fd = {.fd = u->wake_fd, .events = POLLIN};
        poll(&fd, 1, us_rounded_up_ms(timeout_ns));
    }
    atomic_store(&u->sleeping, false);
    uint64_t count;
    ssize_t got = read(u->wake_fd, &count, sizeof(count));
    (void)got; /* nothing to read after a timeout */
}

void us_main_queue_event(rd_kafka_t *rk, void *opaque) {
    (void)rk;
    us_signal(opaque);
}

/* gcc tests neighbouring bools of the thread in a call in one load of a word, which must not hold what others set. */
_Static_assert(offsetof(struct us_partition, ready) / sizeof(void *) !=
                   offsetof(struct us_partition, assigned) / sizeof(void *), "`ready` stands beside plain bools");

void us_partition_queue_event(rd_kafka_t *rk, void *opaque) {
    (void)rk;
    struct us_partition *p = opaque;
    atomic_store(&p->ready, true);
    us_signal(p->u);
}

void unsalt_wakeup(unsalt_t *u) {
    atomic_store(&u->woken, true);
    us_signal(u);
}

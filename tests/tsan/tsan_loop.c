/* SPDX-License-Identifier: BSD-2-Clause */
/* An event loop whose deadline is taken away: only wake-ups from two threads keep it going, so none may be lost. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <support/mockcluster.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS 3000

static unsalt_t *consumer;
static atomic_uint asked, seen; /* wake-ups */
static atomic_bool stop;

/* One wake-up at a time, so that a lost one can't be hidden by the next. */
static void *wake(void *opaque) {
    (void)opaque;
    while (!atomic_load(&stop)) {
        unsigned mine = atomic_load(&seen);
        unsalt_wakeup(consumer);
        atomic_fetch_add(&asked, 1);
        while (!atomic_load(&stop) && atomic_load(&seen) == mine) {
        }
    }
    return NULL;
}

static bool turn(int fd, int ms) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    uint64_t count;
    if (poll(&one, 1, ms) != 1 || read(fd, &count, sizeof(count)) != sizeof(count)) {
        return false;
    }
    rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 0);
    if (message) {
        rd_kafka_message_destroy(message);
    }
    atomic_fetch_add(&seen, 1);
    return unsalt_poll_deadline_ms(consumer) >= 0;
}

int main(void) {
    struct mock mock;
    pthread_t threads[2];
    unsigned rounds = 0;
    uint64_t one = 1;
    int fd = eventfd(0, EFD_NONBLOCK);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    consumer = mock_consumer(&mock, "g", "", NULL);
    if (mock_assign(consumer, "t", 1, RD_KAFKA_OFFSET_BEGINNING) ||
        unsalt_io_event_enable(consumer, fd, &one, sizeof(one))) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, wake, NULL);
    }
    while (rounds < ROUNDS && turn(fd, 5000)) {
        rounds++;
        if (rounds % 100 == 0) { /* off and on again, while others signal */
            unsalt_io_event_enable(consumer, -1, NULL, 0);
            unsalt_io_event_enable(consumer, fd, &one, sizeof(one));
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    mock_done(consumer);
    mock_close(&mock);
    close(fd);
    printf("%u turns after %u wake-ups\n", rounds, atomic_load(&asked));
    return rounds == ROUNDS ? 0 : 1;
}

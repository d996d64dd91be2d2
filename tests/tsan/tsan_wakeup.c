/* SPDX-License-Identifier: BSD-2-Clause */
/* Wake-ups from two threads against polls that would wait for ever: each poll comes back. */
#include <stdatomic.h>
#include <stdio.h>
#include <support/mockcluster.h>

#define ROUNDS 2000

static unsalt_t *consumer;
static atomic_bool stop;

static void *wake(void *opaque) {
    (void)opaque;
    while (!atomic_load(&stop)) {
        unsalt_wakeup(consumer);
    }
    return NULL;
}

int main(void) {
    struct mock mock;
    pthread_t threads[2];
    unsigned rounds = 0;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    consumer = mock_consumer(&mock, "g", "", NULL);
    if (mock_assign(consumer, "t", 1, RD_KAFKA_OFFSET_BEGINNING)) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, wake, NULL);
    }
    for (uint64_t until = now_ms() + 20000; rounds < ROUNDS && now_ms() < until; rounds++) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, -1);
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    mock_done(consumer);
    mock_close(&mock);
    printf("%u polls came back\n", rounds);
    return rounds == ROUNDS ? 0 : 1;
}

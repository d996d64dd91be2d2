/* SPDX-License-Identifier: BSD-2-Clause */
/* Three threads poll one consumer: whoever comes second gets an error, every record comes out once, and no race. */
#include <stdatomic.h>
#include <stdio.h>
#include <support/mockcluster.h>

#define RECORDS 2000
#define THREADS 3

static unsalt_t *consumer;
static atomic_ulong records, conflicts, surprises;

static void *reader(void *opaque) {
    (void)opaque;
    for (uint64_t until = now_ms() + 60000; atomic_load(&records) < RECORDS && now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 10);
        if (message) {
            rd_kafka_message_destroy(message);
            atomic_fetch_add(&records, 1);
        } else if (unsalt_last_error() == RD_KAFKA_RESP_ERR__CONFLICT) {
            atomic_fetch_add(&conflicts, 1);
        } else if (unsalt_last_error()) {
            atomic_fetch_add(&surprises, 1);
        }
    }
    return NULL;
}

int main(void) {
    struct mock mock;
    pthread_t threads[THREADS];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    consumer = mock_consumer(&mock, "g", "", NULL);
    if (mock_assign(consumer, "t", 2, RD_KAFKA_OFFSET_BEGINNING)) {
        return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, reader, NULL);
    }
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "s", seq, 2);
    }
    mock_flush(&mock);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    mock_done(consumer);
    mock_close(&mock);
    printf("%lu records, %lu conflicts, %lu surprises\n", atomic_load(&records), atomic_load(&conflicts),
           atomic_load(&surprises));
    return atomic_load(&records) == RECORDS && atomic_load(&conflicts) > 0 && atomic_load(&surprises) == 0 ? 0 : 1;
}

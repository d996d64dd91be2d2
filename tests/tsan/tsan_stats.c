/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics read by two threads while records flow and a gap is asked about: each snapshot sums up. */
#include <stdatomic.h>
#include <stdio.h>
#include <support/mockcluster.h>

#define RECORDS 3000

static unsalt_t *consumer;
static atomic_bool stop;
static atomic_ulong snapshots, broken;

static void *watch(void *opaque) {
    (void)opaque;
    static _Thread_local char json[16384];
    while (!atomic_load(&stop)) {
        unsalt_stats_t stats;
        uint64_t sum = 0;
        unsalt_stats(consumer, &stats, sizeof(stats));
        for (int i = 0; i < UNSALT_STATE__CNT; i++) {
            sum += stats.state[i];
        }
        bool whole = sum == stats.received && stats.conserved;
        if (!whole || unsalt_stats_json(&stats, sizeof stats, json, sizeof(json)) <= 0) {
            atomic_fetch_add(&broken, 1);
        }
        atomic_fetch_add(&snapshots, 1);
    }
    return NULL;
}

int main(void) {
    struct mock mock;
    pthread_t threads[2];
    size_t count = 0;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    consumer = mock_consumer(&mock, "g", "gap.timeout.ms=100", NULL);
    if (mock_assign(consumer, "t", 2, RD_KAFKA_OFFSET_BEGINNING)) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, watch, NULL);
    }
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        if (seq != 1000) {
            mock_send(&mock, "t", (int32_t)(seq % 2), "s", seq, 2);
        }
    }
    mock_flush(&mock);
    for (uint64_t until = now_ms() + 60000; count < RECORDS - 1 && now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 100);
        if (message) {
            rd_kafka_message_destroy(message);
            count++;
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    mock_done(consumer);
    mock_close(&mock);
    printf("%zu records, %lu snapshots, %lu broken\n", count, atomic_load(&snapshots), atomic_load(&broken));
    return count == RECORDS - 1 && atomic_load(&broken) == 0 && atomic_load(&snapshots) > 0 ? 0 : 1;
}

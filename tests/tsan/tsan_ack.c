/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements from four threads while a fifth polls and commits; everything is committed in the end. */
#include <stdio.h>
#include <stdlib.h>
#include <support/mockcluster.h>

#define RECORDS 2000
#define THREADS 4

static unsalt_t *consumer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsalt_token_t queue[RECORDS];
static size_t queued, taken, refused;

static void *acknowledge(void *opaque) {
    (void)opaque;
    for (;;) {
        pthread_mutex_lock(&lock);
        bool got = taken < queued, done = taken == RECORDS;
        unsalt_token_t token = got ? queue[taken++] : (unsalt_token_t){0};
        pthread_mutex_unlock(&lock);
        if (done) {
            return NULL;
        }
        if (!got) {
            sleep_ms(1);
        } else if (unsalt_ack(consumer, token)) {
            pthread_mutex_lock(&lock);
            refused++;
            pthread_mutex_unlock(&lock);
        }
    }
}

int main(void) {
    struct mock mock;
    pthread_t threads[THREADS];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    consumer = mock_consumer(&mock, "g", "ack=manual", NULL);
    if (mock_assign(consumer, "t", 2, RD_KAFKA_OFFSET_BEGINNING)) {
        return 1;
    }
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "s", seq, 2);
    }
    mock_flush(&mock);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, acknowledge, NULL);
    }
    for (uint64_t until = now_ms() + 60000; now_ms() < until && queued < RECORDS;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 100);
        unsalt_message_info_t info = {.size = sizeof(info)};
        if (!message) {
            continue;
        }
        if (unsalt_message_info(consumer, message, &info) == 0) {
            pthread_mutex_lock(&lock);
            queue[queued++] = info.token;
            pthread_mutex_unlock(&lock);
        }
        rd_kafka_message_destroy(message);
        if (queued % 100 == 0) {
            unsalt_commit(consumer, 1);
        }
    }
    for (int i = 0; i < THREADS && queued == RECORDS; i++) {
        pthread_join(threads[i], NULL);
    }
    rd_kafka_resp_err_t err = unsalt_commit(consumer, 0);
    mock_done(consumer);
    int64_t committed[2] = {mock_committed(&mock, "g", "t", 0), mock_committed(&mock, "g", "t", 1)};
    mock_close(&mock);
    printf("handed out %zu, refused %zu, commit %d, committed %lld and %lld\n", queued, refused, (int)err,
           (long long)committed[0], (long long)committed[1]);
    return queued == RECORDS && refused == 0 && !err && committed[0] == RECORDS / 2 && committed[1] == RECORDS / 2
               ? 0
               : 1;
}

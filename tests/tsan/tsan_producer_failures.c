/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight threads on one session while the broker is away for a moment: records are given up and sent again, S changes,
 * figures are read. Every record is told of once. A plain program, for ThreadSanitizer.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <support/mockcluster.h>

enum { THREADS = 8, RECORDS = 400 };

static unsalt_producer_t *producer;
static atomic_int told[THREADS * RECORDS], failed;

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    told[(size_t)message->_private]++;
    failed += message->err != 0;
    if ((size_t)message->_private % 32 == 0)
        unsalt_producer_poll(producer, 0);
}

static void *work(void *arg) {
    size_t mine = (size_t)arg;
    for (size_t i = 0; i < RECORDS; i++) {
        unsalt_producer_stats_t stats;
        const char *session = i % 8 ? "hot" : "other";
        unsalt_record_t r = {.size = sizeof r, .topic = "t", .session = session, .session_len = strlen(session),
                             .payload = "x", .len = 1, .opaque = (void *)(mine * RECORDS + i)};
        while (unsalt_produce_record(producer, &r) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            unsalt_producer_poll(producer, 5);
        if (i % 50 == 0)
            unsalt_producer_set_lanes(producer, "t", (uint16_t)(1 + (mine + i) % 4));
        if (i % 16 == 0)
            unsalt_producer_poll(producer, 0);
        if (i % 64 == 0)
            unsalt_producer_stats(producer, &stats, sizeof stats);
        sleep_ms(3);
    }
    return NULL;
}

static bool start(const struct mock *mock) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    unsalt_conf_t *unsalt = unsalt_conf_new();
    char errstr[256] = "";
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    mock_rd_set(conf, "bootstrap.servers", mock->bootstraps);
    mock_rd_set(conf, "log_level", "0");
    mock_rd_set(conf, "message.timeout.ms", "300");
    mock_rd_set(conf, "reconnect.backoff.ms", "20");
    mock_rd_set(conf, "reconnect.backoff.max.ms", "50");
    mock_rd_set(conf, "queue.buffering.max.messages", "1000");
    unsalt_conf_set(unsalt, "partitions", "8", errstr, sizeof errstr);
    unsalt_conf_set(unsalt, "lanes", "4", errstr, sizeof errstr);
    producer = unsalt_producer_new(conf, unsalt, errstr, sizeof errstr);
    if (!producer)
        printf("%s\n", errstr);
    return producer != NULL;
}

int main(void) {
    struct mock mock;
    pthread_t threads[THREADS];
    unsalt_producer_stats_t stats;
    size_t wrong = 0;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 8);
    if (!start(&mock))
        return 1;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    sleep_ms(200);
    rd_kafka_mock_broker_set_down(mock.cluster, 1);
    sleep_ms(1500);
    rd_kafka_mock_broker_set_up(mock.cluster, 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rd_kafka_resp_err_t err = unsalt_producer_flush(producer, 30000);
    unsalt_producer_stats(producer, &stats, sizeof stats);
    unsalt_producer_destroy(producer);
    mock_close(&mock);
    for (size_t i = 0; i < THREADS * RECORDS; i++)
        wrong += told[i] != 1;
    printf("%d failed, %zu not told of once, resent %d, flush %d\n", failed, wrong, (int)stats.resent, (int)err);
    return !failed && !wrong && stats.resent && !err ? 0 : 1;
}

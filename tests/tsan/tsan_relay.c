/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay's threads on one batch after the other while the one before is committed, results that are released by the
 * thread that polls, figures read meanwhile, and an end with batches in hand. A plain program, for ThreadSanitizer.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/mockcluster.h>

enum { RECORDS = 2000, WAIT_MS = 120000 };

static atomic_int calls, refused;
static atomic_bool over;

static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    calls++;
    char *copy = malloc(message->len + 1);
    if (!copy)
        return UNSALT_RELAY_FAILED;
    memcpy(copy, message->payload, message->len);
    out->payload = copy;
    out->release = free;
    if (info->attempt == 1 && info->seq % 100 == 0) {
        snprintf(info->errstr, info->errstr_size, "not yet");
        refused++; /* what it has set is released by the thread that polls */
        return UNSALT_RELAY_FAILED;
    }
    return UNSALT_RELAY_DONE;
}

static void *watch(void *relay) {
    while (!over) {
        unsalt_relay_stats_t stats;
        unsalt_relay_stats(relay, &stats, sizeof stats);
        sleep_ms(1);
    }
    return NULL;
}

static unsalt_relay_t *start(const struct mock *mock, const char *group) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    unsalt_conf_t *input = mock_conf("relay.threads=8 relay.batch.records=100 relay.retry.ms=1", NULL);
    char errstr[256] = "";
    mock_rd_set(writes, "bootstrap.servers", mock->bootstraps);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_relay_t *relay = unsalt_relay_new(mock_rd_conf(mock, group), input, writes,
                                             mock_conf("relay.topic=out partitions=2 lanes=2", NULL), errstr, 256);
    if (!relay)
        printf("%s\n", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    if (relay)
        unsalt_relay_subscribe(relay, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return relay;
}

static size_t relay_some(unsalt_relay_t *relay, size_t records) {
    size_t done = 0, n;
    for (uint64_t until = now_ms() + WAIT_MS; done < records && now_ms() < until; done += n)
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, &n));
    return done;
}

/* While its threads are at work on the second batch, or done with it. */
static bool end_early(const struct mock *mock) {
    unsalt_relay_t *relay = start(mock, "h");
    bool some = relay && relay_some(relay, 1) > 0;
    unsalt_relay_destroy(relay);
    return some;
}

int main(void) {
    struct mock mock;
    pthread_t thread;
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 2);
    mock_topic(&mock, "out", 2);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        mock_send(&mock, "in", (int32_t)(seq % 2), "room", seq, 2);
    mock_flush(&mock);
    unsalt_relay_t *relay = start(&mock, "g");
    if (!relay || pthread_create(&thread, NULL, watch, relay))
        return 1;
    size_t done = relay_some(relay, RECORDS);
    over = true;
    pthread_join(thread, NULL);
    unsalt_relay_destroy(relay);
    bool ended = end_early(&mock);
    mock_close(&mock);
    printf("%zu relayed, %d calls, %d failures\n", done, calls, refused);
    return ended && done == RECORDS && calls - refused >= RECORDS ? 0 : 1;
}

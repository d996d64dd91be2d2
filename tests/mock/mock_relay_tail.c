/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A producer restarts while a worker still has a record of the run before. The consumer of the results can't know: it
 * goes over to the new run when each partition of the results was read past its first sight. What comes then is stale:
 * out of order, but told, flagged, and not lost (docs/workers.md).
 */
#include <stdatomic.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 40000, RELAYS = 2, OLD = 6, NEW = 4, SLOW = 5 };

static struct mock mock;
static atomic_bool over, goes_on;
static atomic_int waiting;

/* One record of the first run takes its time. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)out;
    waiting += info->epoch == 1 && info->seq == SLOW;
    for (uint64_t until = now_ms() + WAIT_MS; info->epoch == 1 && info->seq == SLOW && !goes_on && now_ms() < until;)
        sleep_ms(1);
    return UNSALT_RELAY_DONE;
}

/* Lane k in partition k. */
static void write_run(uint64_t epoch, uint64_t last) {
    for (uint64_t seq = 1; seq <= last; seq++) {
        const unsalt_header_t header = {
            .epoch = epoch, .seq = seq, .since = 1, .una = 1, .lane = (uint16_t)(seq % 2), .lanes = 2};
        mock_send_header(&mock, "in", (int32_t)(seq % 2), "room", &header);
    }
    mock_flush(&mock);
}

static unsalt_relay_t *open_relay(void) {
    char errstr[512];
    rd_kafka_conf_t *reads = mock_rd_conf(&mock, "relay"), *writes = rd_kafka_conf_new();
    mock_rd_set(reads, "heartbeat.interval.ms", "100");
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    unsalt_conf_t *input = mock_conf("relay.batch.records=1 relay.threads=1", NULL);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_conf_t *result = mock_conf("relay.topic=out partitions=2 lanes=2", NULL);
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return relay;
}

static void *poll_it(void *relay) {
    while (!over)
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, NULL));
    return NULL;
}

static int partitions_of(const unsalt_relay_t *relay) {
    rd_kafka_topic_partition_list_t *list = NULL;
    int count = 0;
    if (!rd_kafka_assignment(unsalt_relay_consumer(relay), &list)) {
        count = list->cnt;
        rd_kafka_topic_partition_list_destroy(list);
    }
    return count;
}

static void check(const struct got *got, uint64_t epoch, uint64_t seq, unsalt_state_t state) {
    CHECK_U64(got->epoch, epoch);
    CHECK_U64(got->seq, seq);
    CHECK_I64(got->state, state);
}

Test(mock_relay_tail, of_the_run_before_comes_stale, .timeout = 150) {
    unsalt_relay_t *relays[RELAYS];
    pthread_t threads[RELAYS];
    struct takings takings = {0};
    struct heard heard;
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 2);
    mock_topic(&mock, "out", 2);
    for (int i = 0; i < RELAYS; i++) {
        relays[i] = open_relay();
        CHECK_I64(pthread_create(&threads[i], NULL, poll_it, relays[i]), 0);
    }
    for (uint64_t until = now_ms() + WAIT_MS; now_ms() < until; sleep_ms(5))
        if (partitions_of(relays[0]) == 1 && partitions_of(relays[1]) == 1)
            break;
    unsalt_t *u = mock_consumer(&mock, "merging",
                                "layout=hash partitions=2 lanes=2 gap.timeout.ms=-1 seq.source=unsalt", &heard);
    CHECK_I64(mock_assign(u, "out", 2, RD_KAFKA_OFFSET_BEGINNING), 0);
    write_run(1, OLD);
    CHECK(take(u, &takings, OLD - 2, WAIT_MS)); /* 1 to 4 */
    write_run(2, NEW);
    CHECK(take(u, &takings, OLD - 1, WAIT_MS)); /* and 6: the new run was seen, and nobody knows of number 5 */
    CHECK_I64(waiting, 1);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_STALE), 0);
    goes_on = true;
    CHECK(take(u, &takings, OLD + NEW, WAIT_MS));
    take_nothing(u, 200);
    for (uint64_t seq = 1; seq <= 4; seq++)
        check(&takings.got[seq - 1], 1, seq, UNSALT_STATE_RELEASED);
    check(&takings.got[4], 1, 6, UNSALT_STATE_RELEASED);
    check(&takings.got[5], 1, SLOW, UNSALT_STATE_STALE);
    for (uint64_t seq = 1; seq <= NEW; seq++)
        check(&takings.got[OLD - 1 + seq], 2, seq, UNSALT_STATE_RELEASED);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_STALE), 1);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), 1);
    CHECK_I64(heard.reason[UNSALT_EVENT_GAP], UNSALT_GAP_EPOCH);
    over = true;
    for (int i = 0; i < RELAYS; i++) {
        pthread_join(threads[i], NULL);
        unsalt_relay_destroy(relays[i]);
    }
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

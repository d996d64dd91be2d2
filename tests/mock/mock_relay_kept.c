/* SPDX-License-Identifier: BSD-2-Clause */
/* What a result, a marker and a dead letter keep of their record, and what is counted as having changed its lane. */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 30000, RECORDS = 4, BAD = 3, MADE_AT = 1000000000 /* of number 0, in ms */ };

static struct mock mock;

static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)out;
    return info->seq == BAD ? UNSALT_RELAY_FAILED : UNSALT_RELAY_DONE;
}

/* As a producer with four lanes has it; all in one partition. */
static void send_stamped(uint64_t seq) {
    unsigned char bytes[UNSALT_HEADER_SIZE];
    unsalt_header_t header = {.lane = (uint16_t)(seq % 4), .lanes = 4, .epoch = 1, .seq = seq, .since = 1, .una = 1};
    CHECK_I64(unsalt_header_write(&header, bytes), UNSALT_HEADER_OK);
    CHECK_I64(rd_kafka_producev(mock.producer, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_KEY("room", 4), RD_KAFKA_V_VALUE("payload", 7),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                RD_KAFKA_V_TIMESTAMP(MADE_AT + (int64_t)seq),
                                RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, bytes, sizeof bytes), RD_KAFKA_V_END), 0);
}

static unsalt_relay_stats_t relay_all(void) {
    char errstr[512];
    size_t done = 0, n;
    unsalt_relay_stats_t stats;
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    unsalt_conf_t *input = mock_conf("relay.failure=dead-letter relay.dead.letter.topic=dead relay.retries=0", NULL);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_relay_t *relay = unsalt_relay_new(mock_rd_conf(&mock, "g"), input, writes,
                                             mock_conf("relay.topic=out partitions=1 lanes=2", NULL), errstr, 512);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    for (uint64_t until = now_ms() + WAIT_MS; done < RECORDS && now_ms() < until; done += n) {
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
        CHECK_THAT(!error, "%s", rd_kafka_error_string(error));
    }
    CHECK_U64(done, RECORDS);
    CHECK_I64(unsalt_relay_stats(relay, &stats, sizeof stats), 0);
    unsalt_relay_destroy(relay);
    return stats;
}

static uint64_t number_of(const rd_kafka_message_t *message) {
    rd_kafka_headers_t *headers;
    const void *value;
    size_t size;
    unsalt_header_t header;
    CHECK_I64(rd_kafka_message_headers(message, &headers), 0);
    if (!rd_kafka_header_get_last(headers, UNSALT_DEAD_SEQ, &value, &size))
        return strtoull(value, NULL, 10); /* librdkafka terminates values */
    CHECK_I64(rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size), 0);
    CHECK_I64(unsalt_header_read(value, size, &header), UNSALT_HEADER_OK);
    return header.seq;
}

/* Each of them was made when its record was. */
static void check_times(const char *topic, int records) {
    char errstr[512];
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(&mock, topic), errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    int n = 0;
    for (uint64_t until = now_ms() + WAIT_MS; n < records && now_ms() < until;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        if (!message)
            continue;
        CHECK_I64(message->err, 0);
        CHECK_I64(rd_kafka_message_timestamp(message, NULL), MADE_AT + (int64_t)number_of(message));
        rd_kafka_message_destroy(message);
        n++;
    }
    CHECK_I64(n, records);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

Test(mock_relay_kept, times_and_lanes, .timeout = 120) {
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 1);
    mock_topic(&mock, "out", 1);
    mock_topic(&mock, "dead", 1);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        send_stamped(seq);
    mock_flush(&mock);
    unsalt_relay_stats_t stats = relay_all();
    CHECK_U64(stats.relayed, RECORDS - 1);
    CHECK_U64(stats.relaned, RECORDS - 1); /* two lanes instead of four: that none of them is missing proves nothing */
    CHECK_U64(stats.markers, 1);
    check_times("out", RECORDS);
    check_times("dead", 1);
    mock_close(&mock);
}

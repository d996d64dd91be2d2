/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a partition that has gone meanwhile isn't told. */
#include <support/check.h>
#include <support/mockcluster.h>

static rd_kafka_message_t *next(unsalt_t *u) {
    rd_kafka_message_t *message = NULL;
    for (uint64_t until = now_ms() + 20000; now_ms() < until && !message;) {
        message = unsalt_consumer_poll(u, 100);
    }
    CHECK(message && !message->err);
    return message;
}

/* The buffer holds records and the end behind them when the partition is revoked. */
Test(rebalance_eof, goes_with_the_partition, .timeout = 60) {
    struct mock mock;
    unsalt_stats_t stats = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "a", seq, 1);
    }
    mock_flush(&mock);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "enable.partition.eof", "true");
    unsalt_t *u = mock_consumer_of(conf, mock_conf("partitions=1", NULL));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_message_destroy(next(u));
    sleep_ms(1500); /* the next poll doesn't only look into the buffer: it reads on, and finds the end */
    rd_kafka_message_destroy(next(u));
    CHECK(!unsalt_unsubscribe(u));
    sleep_ms(1500); /* and the one after it finds the revoke */
    uint64_t quiet = 0, until = now_ms() + 20000; /* since when nothing is assigned */
    while (now_ms() < until && (quiet == 0 || now_ms() < quiet + 1000)) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 50);
        CHECK_THAT(!message, "%s", rd_kafka_message_errstr(message));
        CHECK(!unsalt_stats(u, &stats, sizeof(stats)));
        quiet = quiet == 0 && stats.partitions == 0 ? now_ms() : quiet;
    }
    CHECK_U64(stats.partitions, 0);
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], stats.received - 2); /* 8, if all were fetched by then */
    mock_done(u);
    mock_close(&mock);
}

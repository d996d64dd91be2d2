/* SPDX-License-Identifier: BSD-2-Clause */
/* How many partitions a topic has: what is read before the cluster has said it, and what is told when it changes. */
#include <support/check.h>
#include <support/mockcluster.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 60)

static void subscribe(unsalt_t *u, const char *name) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, name, RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, list));
    rd_kafka_topic_partition_list_destroy(list);
}

/* The cluster falls silent in the moment of the assignment. */
static void silence(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)rk;
    (void)list;
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        rd_kafka_mock_broker_set_down(opaque, 1);
    }
}

/*
 * Layout hash without `partitions`: as long as nobody knows how many there are, nothing is handed out, though records
 * may be there; an event says so. With the answer they come. The poll doesn't hang meanwhile.
 */
SLOW_TEST(group, nothing_is_read_before_the_number_of_partitions_is_known) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "a", seq, 2);
    }
    mock_flush(&mock);
    heard_init(&heard);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "session.timeout.ms", "30000");
    mock_rd_set(conf, "reconnect.backoff.max.ms", "500");
    rd_kafka_conf_set_opaque(conf, mock.cluster);
    rd_kafka_conf_set_rebalance_cb(conf, silence);
    unsalt_t *u = mock_consumer_of(conf, mock_conf("", &heard));
    subscribe(u, "t");
    for (uint64_t until = now_ms() + 40000; now_ms() < until && !heard_count(&heard, UNSALT_EVENT_COLOCATION);) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 50);
        CHECK(!message || message->err); /* that all brokers are down */
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_COLOCATION], "not known") &&
                   strstr(heard.text[UNSALT_EVENT_COLOCATION], "`partitions`"), "%s",
               heard.text[UNSALT_EVENT_COLOCATION]);
    rd_kafka_mock_broker_set_up(mock.cluster, 1);
    size_t records = 0;
    for (uint64_t until = now_ms() + 40000; now_ms() < until && records < 10;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 50);
        if (message) {
            take_message(u, &takings, message);
            records += !message->err;
            rd_kafka_message_destroy(message);
        }
    }
    CHECK_U64(check_order(&takings, 1), 10);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COLOCATION), 1);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* Another number than configured is told once, however often the topic is looked at and assigned. */
TEST(group, another_number_of_partitions_is_told_once) {
    struct mock mock;
    struct heard heard;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 4);
    heard_init(&heard);
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "topic.metadata.refresh.interval.ms", "100");
    unsalt_t *u = mock_consumer_of(conf, mock_conf("partitions=2", &heard));
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_BEGINNING));
    uint64_t until = now_ms() + 15000;
    while (now_ms() < until && !heard_count(&heard, UNSALT_EVENT_PARTITIONS_CHANGED)) {
        take_nothing(u, 20);
    }
    CHECK(!mock_assign(u, "t", 2, RD_KAFKA_OFFSET_BEGINNING));
    take_nothing(u, 600);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PARTITIONS_CHANGED), 1);
    mock_done(u);
    mock_close(&mock);
}

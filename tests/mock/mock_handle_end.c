/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a handle of the library's own. librdkafka has waited for ever for a broker's thread after brokers had been
 * down (librdkafka#4131, #4674, #4724); here a message that isn't destroyed makes it wait as it does then.
 */
#include <kafka/handle_end.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define DEADLINE_MS 30000

static rd_kafka_t *reader(const struct mock *mock) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(mock, "g"), errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    return rk;
}

static rd_kafka_message_t *first_message(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_message_t *message = NULL;
    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 0;
    CHECK(!rd_kafka_assign(rk, list));
    rd_kafka_topic_partition_list_destroy(list);
    for (uint64_t until = now_ms() + DEADLINE_MS; !message && now_ms() < until;) {
        message = rd_kafka_consumer_poll(rk, 100);
        if (message && message->err) {
            rd_kafka_message_destroy(message);
            message = NULL;
        }
    }
    CHECK(message);
    return message;
}

/* Of all handles; the other ones' don't change any more. */
static bool threads_fall_below(int count) {
    uint64_t until = now_ms() + DEADLINE_MS;
    while (rd_kafka_thread_cnt() >= count && now_ms() < until)
        sleep_ms(10);
    return rd_kafka_thread_cnt() < count;
}

TEST(handle_end, one_that_ends_is_gone) {
    struct mock mock;
    mock_open(&mock, 1);
    CHECK(us_handle_end(NULL, 0));
    CHECK(us_handle_end(reader(&mock), DEADLINE_MS));
    mock_close(&mock);
}

TEST(handle_end, one_that_cannot_end_is_left_and_goes_when_it_can) {
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_flush(&mock);
    rd_kafka_t *rk = reader(&mock);
    rd_kafka_message_t *hostage = first_message(rk);
    CHECK(!rd_kafka_consumer_close(rk));
    CHECK(!us_handle_end(rk, 300));
    int threads = rd_kafka_thread_cnt();
    rd_kafka_message_destroy(hostage);
    CHECK_THAT(threads_fall_below(threads), "%d threads of librdkafka are there still", threads);
    mock_close(&mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a revoke waits for acknowledgements the member hears that its generation is over, then that nobody knows it.
 * librdkafka forgets both, is busy with the rebalance, and takes no partition away. A broker takes offsets without
 * generation and name from anybody, in a transaction as well as into a group that is empty: none may be sent.
 */
#include <support/check.h>
#include <support/mockcluster.h>

#define HEARTBEAT 12 /* the protocol's number of the request */

enum { WAIT_MS = 30000, MS = 10000 };

static struct mock mock;
static struct heard heard;
static int calls[4]; /* by unsalt_assignment_t */

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    (void)opaque;
    (void)partitions;
    calls[what]++;
}

static void begin(void) {
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_flush(&mock);
}

static unsalt_t *member(void) {
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    mock_rd_set(conf, "heartbeat.interval.ms", "100");
    unsalt_conf_t *mine = mock_conf("ack=manual revoke.timeout.ms=600000", &heard);
    unsalt_conf_set_assignment_cb(mine, on_assignment, NULL);
    unsalt_t *u = mock_consumer_of(conf, mine);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return u;
}

static rd_kafka_t *producer(void) {
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "bootstrap.servers", mock.bootstraps);
    mock_rd_set(conf, "transactional.id", "of-the-application");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    CHECK(!rd_kafka_init_transactions(rk, WAIT_MS));
    CHECK(!rd_kafka_begin_transaction(rk));
    return rk;
}

static bool has_id(unsalt_t *u) {
    char *id = rd_kafka_memberid(unsalt_handle(u));
    bool has = id && id[0];
    if (id)
        rd_kafka_mem_free(unsalt_handle(u), id);
    return has;
}

/* The member has a record in hand, its revoke waits for that, and its name is forgotten. */
static void become_nobody(unsalt_t *u, struct takings *takings) {
    CHECK(take(u, takings, 1, WAIT_MS));
    rd_kafka_mock_push_request_errors(mock.cluster, HEARTBEAT, 1, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
    for (uint64_t until = now_ms() + WAIT_MS; calls[UNSALT_REVOKING] == 0 && now_ms() < until;)
        take_nothing(u, 20);
    CHECK_I64(calls[UNSALT_REVOKING], 1);
    CHECK_I64(calls[UNSALT_REVOKED], 0);
    rd_kafka_mock_push_request_errors(mock.cluster, HEARTBEAT, 2, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    for (uint64_t until = now_ms() + WAIT_MS; has_id(u) && now_ms() < until;)
        sleep_ms(5);
    CHECK_THAT(!has_id(u), "it has its name still");
    CHECK_THAT(!rd_kafka_assignment_lost(unsalt_handle(u)), "librdkafka knows that the partitions are lost");
    CHECK_I64(unsalt_ack(u, takings->got[0].token), 0);
}

/* It joins anew, and the record comes again. */
static void comes_back(unsalt_t *u, struct takings *takings) {
    CHECK(take(u, takings, 2, WAIT_MS));
    CHECK_U64(takings->got[1].seq, 1);
    CHECK_I64(unsalt_ack(u, takings->got[1].token), 0);
    CHECK(heard_count(&heard, UNSALT_EVENT_ASSIGNMENT_LOST) > 0);
}

Test(mock_generation, no_transaction_of_a_member_that_has_none, .timeout = 150) {
    struct takings takings = {0};
    begin();
    unsalt_t *u = member();
    rd_kafka_t *rk = producer();
    become_nobody(u, &takings);
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(u, rk, MS);
    CHECK_THAT(error, "offsets were taken into the transaction");
    rd_kafka_error_destroy(error);
    rd_kafka_error_destroy(rd_kafka_abort_transaction(rk, MS));
    CHECK_I64(unsalt_rewind(u, MS), 0);
    comes_back(u, &takings);
    rd_kafka_destroy(rk);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

Test(mock_generation, no_commit_of_a_member_that_has_none, .timeout = 150) {
    struct takings takings = {0};
    begin();
    unsalt_t *u = member();
    become_nobody(u, &takings);
    CHECK_I64(unsalt_commit(u, 0), RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST);
    comes_back(u, &takings);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

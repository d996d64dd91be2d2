/* SPDX-License-Identifier: BSD-2-Clause */
/* What brokers may answer to a checkpoint, one by one, and configurations that don't suit a producer. */
#include <kafka/checkpoint_topic_ending.h>
#include <kafka/checkpoint_topic_fate.h>
#include <kafka/checkpoint_topic_writer.h>
#include <support/check.h>
#include <support/mockcluster.h>

/* Kinds of requests, as the protocol numbers them. */
enum { PRODUCE = 0, ADD_OFFSETS_TO_TXN = 25, END_TXN = 26, TXN_OFFSET_COMMIT = 28 };

struct place {
    struct mock mock;
    rd_kafka_conf_t *conf;
    struct us_checkpoint_writer *writer;
};

static void place_open(struct place *place) {
    mock_open(&place->mock, 1);
    mock_topic(&place->mock, "cp", 2);
    mock_topic(&place->mock, "data", 2);
    place->conf = mock_rd_conf(&place->mock, "group");
    struct us_checkpoint_writer_settings settings = {.client = {place->conf, NULL}, .topic = "cp",
                                                     .transactional_id = "id", .transaction_timeout_ms = 20000};
    place->writer = us_checkpoint_writer_new(&settings);
    CHECK(place->writer);
}

static void place_close(struct place *place) {
    us_checkpoint_writer_destroy(place->writer);
    rd_kafka_conf_destroy(place->conf);
    mock_close(&place->mock);
}

static enum us_checkpoint_result commit(struct place *place, struct us_checkpoint_outcome *outcome) {
    struct us_checkpoint_record entry = {.partition = 1, .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(offsets, "data", 0)->offset = 5;
    CHECK_I64(us_checkpoint_writer_open(place->writer, 10000, outcome), US_CHECKPOINT_DONE);
    us_checkpoint_writer_put(place->writer, &entry); /* a failure is the commit's */
    return us_checkpoint_writer_finish(place->writer, offsets, rd_kafka_consumer_group_metadata_new("group"), 10000,
                                       outcome);
}

/*
 * A commit that meets an answer, and later ones: one of the next two goes through, since librdkafka may remember an
 * error of the topic for one of them.
 */
static struct us_checkpoint_outcome meets(int16_t request, rd_kafka_resp_err_t err, size_t times) {
    struct place place;
    struct us_checkpoint_outcome first, next;
    place_open(&place);
    us_checkpoint_writer_prepare(place.writer);
    CHECK_I64(commit(&place, &first), US_CHECKPOINT_DONE);
    rd_kafka_mock_push_request_errors(place.mock.cluster, request, times, err, err, err);
    commit(&place, &first);
    fprintf(stderr, "request %d, %s: %d, %s\n", request, rd_kafka_err2name(err), (int)first.result, first.text);
    rd_kafka_mock_clear_request_errors(place.mock.cluster, request);
    if (commit(&place, &next) != US_CHECKPOINT_DONE)
        CHECK_THAT(commit(&place, &next) == US_CHECKPOINT_DONE, "%s", next.text);
    place_close(&place);
    return first;
}

TEST(mock_checkpoint_topic, an_old_generation_is_refused) {
    struct us_checkpoint_outcome outcome = meets(TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, 1);
    CHECK_I64(outcome.result, US_CHECKPOINT_REFUSED);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    CHECK_I64(meets(TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, 1).result, US_CHECKPOINT_REFUSED);
}

TEST(mock_checkpoint_topic, a_group_without_permission_fails) {
    struct us_checkpoint_outcome outcome = meets(TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, 1);
    CHECK_I64(outcome.result, US_CHECKPOINT_FAILED);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    CHECK(!outcome.maybe);
}

TEST(mock_checkpoint_topic, what_passes_is_waited_for) {
    CHECK_I64(meets(TXN_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 2).result, US_CHECKPOINT_DONE);
    CHECK_I64(meets(ADD_OFFSETS_TO_TXN, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, 3).result, US_CHECKPOINT_DONE);
    CHECK_I64(meets(END_TXN, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, 3).result, US_CHECKPOINT_DONE);
    CHECK_I64(meets(END_TXN, RD_KAFKA_RESP_ERR__TRANSPORT, 2).result, US_CHECKPOINT_DONE);
    CHECK_I64(meets(PRODUCE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, 2).result, US_CHECKPOINT_DONE);
}

TEST(mock_checkpoint_topic, a_fenced_producer_is_refused_and_replaced) {
    struct us_checkpoint_outcome outcome = meets(ADD_OFFSETS_TO_TXN, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, 1);
    CHECK_I64(outcome.result, US_CHECKPOINT_REFUSED);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR__FENCED);
    CHECK(!outcome.maybe);
}

/* The answer to an earlier copy of the request may have been lost: nobody knows. */
TEST(mock_checkpoint_topic, a_producer_fenced_at_the_very_end_may_have_committed) {
    struct us_checkpoint_outcome outcome = meets(END_TXN, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, 1);
    CHECK_I64(outcome.result, US_CHECKPOINT_FAILED);
    CHECK(outcome.maybe);
}

TEST(mock_checkpoint_topic, entries_that_are_not_delivered_fail_the_commit) {
    struct us_checkpoint_outcome outcome = meets(PRODUCE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1);
    CHECK_I64(outcome.result, US_CHECKPOINT_FAILED);
    CHECK(!outcome.maybe);
}

/* What an application may have set for its consumer: each would keep a producer or a reader from being made. */
TEST(mock_checkpoint_topic, an_application_s_settings_don_t_get_in_the_way) {
    static const char *const odd[][2] = {
        {"socket.timeout.ms", "60000"},     {"fetch.max.bytes", "2000000"},      {"message.max.bytes", "2000000"},
        {"receive.message.max.bytes", "2000512"}, {"queued.max.messages.kbytes", "1"}, {"acks", "1"},
        {"max.in.flight", "1000"},          {"retries", "0"},                    {"message.timeout.ms", "300000"},
        {"linger.ms", "100000"},            {"enable.idempotence", "false"},     {"queuing.strategy", "lifo"},
        {"auto.offset.reset", "error"},     {"enable.auto.commit", "true"},      {"group.instance.id", "static"},
        {"isolation.level", "read_uncommitted"}, {"max.poll.interval.ms", "10000"},   {"session.timeout.ms", "6000"},
        {"statistics.interval.ms", "10"},   {"partition.assignment.strategy", "cooperative-sticky"}};
    struct place place;
    struct us_checkpoint_outcome outcome;
    struct us_checkpoint_client client;
    char errstr[256] = "";
    place_open(&place);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        mock_rd_set(place.conf, odd[i][0], odd[i][1]);
    rd_kafka_conf_set_events(place.conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_STATS);
    client.conf = place.conf;
    client.bootstrap = NULL;
    for (int role = US_CHECKPOINT_ADMIN; role <= US_CHECKPOINT_READER; role++) {
        rd_kafka_t *handle = us_checkpoint_client_new(&client, (enum us_checkpoint_role)role, errstr, sizeof errstr);
        CHECK_THAT(handle, "role %d: %s", role, errstr);
        rd_kafka_destroy(handle);
    }
    CHECK_THAT(commit(&place, &outcome) == US_CHECKPOINT_DONE, "%s", outcome.text);
    place_close(&place);
}

static struct us_checkpoint_verdict of_code(rd_kafka_resp_err_t code) {
    rd_kafka_error_t *error = rd_kafka_error_new(code, "planted");
    struct us_checkpoint_verdict verdict = us_checkpoint_fate(error);
    rd_kafka_error_destroy(error);
    return verdict;
}

TEST(mock_checkpoint_topic, errors_without_flags_are_aborted_or_fenced) {
    static const int fenced[] = {22, 25, 82, 110, 113, 90, 47, RD_KAFKA_RESP_ERR__FENCED};
    CHECK_I64(us_checkpoint_fate(NULL).next, US_CHECKPOINT_GO_ON);
    for (size_t i = 0; i < sizeof fenced / sizeof *fenced; i++)
        CHECK_I64(of_code((rd_kafka_resp_err_t)fenced[i]).next, US_CHECKPOINT_FENCED);
    CHECK_I64(of_code(RD_KAFKA_RESP_ERR__STATE).next, US_CHECKPOINT_ABORT);
    CHECK_I64(of_code(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).next, US_CHECKPOINT_ABORT);
    CHECK(!of_code(RD_KAFKA_RESP_ERR__STATE).dead);
}

static rd_kafka_resp_err_t subscribe(unsalt_t *u, const char *topic, bool assign) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, assign ? 0 : RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = assign ? unsalt_assign(u, list) : unsalt_subscribe(u, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* Each commit would be read, as a record, and its acknowledgement would make the next commit. */
TEST(checkpoint_topic, is_not_read_by_its_own_group) {
    struct mock mock;
    mock_open(&mock, 1);
    mock_topic(&mock, "orders", 1);
    mock_topic(&mock, "orders-app.unsalt", 1);
    unsalt_t *u = mock_consumer(&mock, "orders-app", "checkpoint=topic partitions=1", NULL);
    CHECK_I64(subscribe(u, "^orders.*", false), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(subscribe(u, "orders-app.unsalt", false), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(subscribe(u, "orders-app.unsalt", true), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(subscribe(u, "^orders$", false), RD_KAFKA_RESP_ERR_NO_ERROR);
    mock_done(u);
    u = mock_consumer(&mock, "orders-app", "checkpoint=topic partitions=1 checkpoint.topic=orders", NULL);
    CHECK_I64(subscribe(u, "orders", false), RD_KAFKA_RESP_ERR__INVALID_ARG);
    mock_done(u);
    mock_close(&mock);
}

/* ---- a call that heeds no time: librdkafka sends offsets for as long as the group's coordinator is away (#5511) */

/* Of the two brokers one is away: the group's coordinator. The other has the topics and the transactions. */
static void place_without_coordinator(struct place *place) {
    mock_open(&place->mock, 2);
    mock_topic(&place->mock, "cp", 2);
    mock_topic(&place->mock, "data", 1);
    CHECK(!rd_kafka_mock_partition_set_leader(place->mock.cluster, "cp", 0, 1));
    CHECK(!rd_kafka_mock_partition_set_leader(place->mock.cluster, "cp", 1, 1));
    CHECK(!rd_kafka_mock_coordinator_set(place->mock.cluster, "transaction", "id", 1));
    CHECK(!rd_kafka_mock_coordinator_set(place->mock.cluster, "group", "group", 2));
    place->conf = mock_rd_conf(&place->mock, "group");
    struct us_checkpoint_writer_settings settings = {.client = {place->conf, NULL}, .topic = "cp",
                                                     .transactional_id = "id", .transaction_timeout_ms = 1000};
    place->writer = us_checkpoint_writer_new(&settings);
    CHECK(place->writer);
    CHECK(!rd_kafka_mock_broker_set_down(place->mock.cluster, 2));
}

/* A commit is, and won't be over before the coordinator is back, or it is given up. */
static void is_under_way(struct place *place) {
    struct us_checkpoint_outcome outcome;
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(offsets, "data", 0)->offset = 5;
    CHECK_I64(us_checkpoint_writer_open(place->writer, 10000, &outcome), US_CHECKPOINT_DONE);
    CHECK_I64(us_checkpoint_writer_finish(place->writer, offsets, rd_kafka_consumer_group_metadata_new("group"), 500,
                                          &outcome), US_CHECKPOINT_UNKNOWN);
}

/* Threads of librdkafka, of all handles. */
static bool threads_fall_below(int count) {
    for (uint64_t until = now_ms() + 20000; rd_kafka_thread_cnt() >= count && now_ms() < until;)
        sleep_ms(20);
    return rd_kafka_thread_cnt() < count;
}

TEST(mock_checkpoint_topic, destroy_leaves_a_call_that_does_not_come_back) {
    struct place place;
    place_without_coordinator(&place);
    is_under_way(&place);
    bool gone = us_checkpoint_writer_destroy(place.writer); /* so it is only if it was slow to make the call */
    rd_kafka_conf_destroy(place.conf);
    int threads = rd_kafka_thread_cnt();
    CHECK(!rd_kafka_mock_broker_set_up(place.mock.cluster, 2));
    CHECK_THAT(gone || threads_fall_below(threads), "%d threads of librdkafka are there still", threads);
    mock_close(&place.mock);
}

Test(mock_checkpoint_topic, a_producer_that_is_stuck_is_replaced, .timeout = 60) {
    struct place place;
    struct us_checkpoint_outcome outcome;
    place_without_coordinator(&place);
    is_under_way(&place);
    CHECK_I64(us_checkpoint_writer_resume(place.writer, 40000, &outcome), US_CHECKPOINT_FAILED);
    CHECK_STR(rd_kafka_err2name(outcome.err), "_TIMED_OUT");
    CHECK(!outcome.maybe);
    CHECK_THAT(strstr(outcome.text, "is left behind"), "%s", outcome.text);
    CHECK(!rd_kafka_mock_broker_set_up(place.mock.cluster, 2));
    CHECK_THAT(commit(&place, &outcome) == US_CHECKPOINT_DONE || commit(&place, &outcome) == US_CHECKPOINT_DONE, "%s",
               outcome.text);
    place_close(&place);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    (void)rk;
    (void)list;
    *(rd_kafka_resp_err_t *)opaque = err;
}

/* The application hears that the commit has failed while the coordinator is still away, and the next one is begun. */
Test(mock_checkpoint_topic, a_consumer_gives_a_stuck_commit_up, .timeout = 90) {
    struct mock mock;
    struct takings takings = {0};
    rd_kafka_resp_err_t told = RD_KAFKA_RESP_ERR_NO_ERROR;
    mock_open(&mock, 2);
    mock_topic(&mock, "t", 1);
    mock_topic(&mock, "g.unsalt", 1);
    CHECK(!rd_kafka_mock_partition_set_leader(mock.cluster, "t", 0, 1));
    CHECK(!rd_kafka_mock_partition_set_leader(mock.cluster, "g.unsalt", 0, 1));
    CHECK(!rd_kafka_mock_coordinator_set(mock.cluster, "transaction", "id", 1));
    CHECK(!rd_kafka_mock_coordinator_set(mock.cluster, "group", "g", 2));
    rd_kafka_conf_t *conf = mock_rd_conf(&mock, "g");
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    rd_kafka_conf_set_opaque(conf, &told);
    unsalt_t *u = mock_consumer_of(conf, mock_conf("checkpoint=topic partitions=1 checkpoint.timeout.ms=1000 "
                                                   "checkpoint.transactional.id=id", NULL));
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    for (uint64_t seq = 1; seq <= 20; seq++)
        mock_send(&mock, "t", 0, "s", seq, 1);
    mock_flush(&mock);
    CHECK(take(u, &takings, 20, 20000));
    CHECK(!rd_kafka_mock_broker_set_down(mock.cluster, 2));
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT; /* its producer isn't ready yet */
    for (uint64_t until = now_ms() + 20000; err == RD_KAFKA_RESP_ERR__TIMED_OUT && now_ms() < until; sleep_ms(50))
        err = unsalt_commit(u, 1);
    CHECK_STR(rd_kafka_err2name(err), "_IN_PROGRESS");
    for (uint64_t until = now_ms() + 40000; !told && now_ms() < until;)
        take(u, &takings, 21, 100);
    CHECK_STR(rd_kafka_err2name(told), "_TIMED_OUT");
    CHECK(!rd_kafka_mock_broker_set_up(mock.cluster, 2));
    for (uint64_t until = now_ms() + 20000; err && now_ms() < until; sleep_ms(50))
        err = unsalt_commit(u, 0);
    CHECK_STR(rd_kafka_err2name(err), "NO_ERROR");
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

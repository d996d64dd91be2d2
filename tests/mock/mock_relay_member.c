/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay that can do nothing for longer than max.poll.interval.ms, because a question is refused each time, stays a
 * member of its group as long as the application polls, and goes on once it may.
 */
#include <support/check.h>
#include <support/mockcluster.h>

#define OFFSET_FETCH 9 /* the protocol's numbers of the requests */
#define INIT_PRODUCER_ID 22

enum { WAIT_MS = 40000, RECORDS = 60, MAX_POLL_MS = 6000, REFUSALS = 20000 };

static struct mock mock;
static unsalt_relay_t *relay;

static void refuse(int16_t request, rd_kafka_resp_err_t error) {
    static rd_kafka_resp_err_t errors[REFUSALS];
    for (int i = 0; i < REFUSALS; i++)
        errors[i] = error;
    rd_kafka_mock_push_request_errors_array(mock.cluster, request, REFUSALS, errors);
}

static void begin(int16_t request, rd_kafka_resp_err_t error) {
    char errstr[512];
    mock_open(&mock, 1);
    refuse(request, error);
    mock_topic(&mock, "in", 2);
    mock_topic(&mock, "out", 2);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        mock_send(&mock, "in", (int32_t)(seq % 2), "room", seq, 2);
    mock_flush(&mock);
    rd_kafka_conf_t *reads = mock_rd_conf(&mock, "relay"), *writes = rd_kafka_conf_new();
    char interval[16];
    snprintf(interval, sizeof interval, "%d", MAX_POLL_MS);
    mock_rd_set(reads, "max.poll.interval.ms", interval);
    mock_rd_set(reads, "session.timeout.ms", interval);
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    mock_rd_set(writes, "log_level", "0");
    relay = unsalt_relay_new(reads, mock_conf("relay.threads=1", NULL), writes,
                             mock_conf("relay.topic=out partitions=2 lanes=2", NULL), errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

/* Polls once. Returns how many records were relayed; *err: what was said. */
static size_t poll_once(rd_kafka_resp_err_t *err) {
    size_t n;
    rd_kafka_error_t *error = unsalt_relay_poll(relay, 50, &n);
    *err = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_destroy(error);
    if (*err)
        sleep_ms(20);
    return n;
}

static int partitions(void) {
    rd_kafka_topic_partition_list_t *list = NULL;
    int count = 0;
    if (!rd_kafka_assignment(unsalt_relay_consumer(relay), &list)) {
        count = list->cnt;
        rd_kafka_topic_partition_list_destroy(list);
    }
    return count;
}

static void member_id(char *id, size_t size) {
    char *is = rd_kafka_memberid(unsalt_relay_consumer(relay));
    snprintf(id, size, "%s", is ? is : "");
    if (is)
        rd_kafka_mem_free(unsalt_relay_consumer(relay), is);
}

/* The partitions come, and nothing of them is relayed, for longer than the interval; then it may. */
static void stays(int16_t request, rd_kafka_resp_err_t error) {
    char before[256], after[256];
    rd_kafka_resp_err_t err, said = RD_KAFKA_RESP_ERR_NO_ERROR;
    size_t done = 0;
    begin(request, error);
    for (uint64_t until = now_ms() + WAIT_MS; partitions() < 2 && now_ms() < until;)
        CHECK_U64(poll_once(&err), 0);
    CHECK_THAT(partitions() == 2, "the group gives it nothing");
    member_id(before, sizeof before);
    for (uint64_t until = now_ms() + 2 * MAX_POLL_MS; now_ms() < until; said = err ? err : said)
        CHECK_U64(poll_once(&err), 0);
    CHECK_I64(said, error);
    CHECK_I64(partitions(), 2);
    member_id(after, sizeof after);
    CHECK_STR(after, before);
    rd_kafka_mock_clear_request_errors(mock.cluster, request);
    for (uint64_t until = now_ms() + WAIT_MS; done < RECORDS && now_ms() < until;)
        done += poll_once(&err);
    CHECK_U64(done, RECORDS);
    unsalt_relay_destroy(relay);
    mock_close(&mock);
}

Test(mock_relay_member, whose_offsets_are_not_told, .timeout = 150) {
    stays(OFFSET_FETCH, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
}

Test(mock_relay_member, whose_producer_is_refused, .timeout = 150) {
    stays(INIT_PRODUCER_ID, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
}

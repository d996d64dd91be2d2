/* SPDX-License-Identifier: BSD-2-Clause */
/* Dead letters of a relay in a topic: what stands in them, where, and how often. */
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 30000, RECORDS = 6, PARTITIONS = 3 };

static struct mock mock;

/* Number 3 fails, and what has no number. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    (void)opaque;
    (void)message;
    (void)out;
    if (info->session && info->seq != 3)
        return UNSALT_RELAY_DONE;
    if (info->session)
        snprintf(info->errstr, info->errstr_size, "no room for number %d", (int)info->seq);
    return UNSALT_RELAY_FAILED;
}

static void relay_all(void) {
    char errstr[512];
    size_t done = 0, n;
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    unsalt_conf_t *input = mock_conf("relay.failure=dead-letter relay.dead.letter.topic=dead relay.retries=2 "
                                     "relay.retry.ms=1 malformed=dead-letter", NULL);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_relay_t *relay = unsalt_relay_new(mock_rd_conf(&mock, "group-of-relays"), input, writes,
                                             mock_conf("relay.topic=out partitions=1 lanes=1", NULL), errstr, 512);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    for (uint64_t until = now_ms() + WAIT_MS; done < RECORDS + 2 && now_ms() < until; done += n) {
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
        CHECK_THAT(!error, "%s", rd_kafka_error_string(error));
    }
    CHECK_U64(done, RECORDS + 2);
    unsalt_relay_destroy(relay);
}

/* value NULL: it must be absent. */
static void check_header(const rd_kafka_message_t *letter, const char *name, const char *value) {
    rd_kafka_headers_t *headers;
    const void *is;
    size_t size;
    CHECK_I64(rd_kafka_message_headers(letter, &headers), 0);
    if (rd_kafka_header_get_last(headers, name, &is, &size))
        CHECK_THAT(!value, "%s is missing", name);
    else
        CHECK_THAT(value && size == strlen(value) && memcmp(is, value, size) == 0, "%s is %.*s", name, (int)size,
                   (const char *)is);
}

static void check_numbered(const rd_kafka_message_t *letter) {
    int32_t partition = rd_kafka_msg_partitioner_murmur2(NULL, "room", 4, PARTITIONS, NULL, NULL);
    check_header(letter, UNSALT_DEAD_VERSION, "1");
    check_header(letter, UNSALT_DEAD_REASON, "exhausted");
    check_header(letter, UNSALT_DEAD_PHASE, "prepare");
    check_header(letter, UNSALT_DEAD_ERROR, "no room for number 3");
    check_header(letter, UNSALT_DEAD_ATTEMPTS, "3");
    check_header(letter, UNSALT_DEAD_STATE, NULL);
    check_header(letter, UNSALT_DEAD_SESSION, "room");
    check_header(letter, UNSALT_DEAD_SEQ, "3");
    check_header(letter, UNSALT_DEAD_EPOCH, "1");
    check_header(letter, UNSALT_DEAD_CURSOR, NULL);
    check_header(letter, UNSALT_DEAD_TOPIC, "in");
    check_header(letter, UNSALT_DEAD_PARTITION, "0");
    check_header(letter, UNSALT_DEAD_OFFSET, "2");
    check_header(letter, UNSALT_DEAD_KEY, "room");
    check_header(letter, UNSALT_DEAD_GROUP, "group-of-relays");
    check_header(letter, UNSALT_HEADER_NAME, NULL);
    CHECK_BYTES(letter->key, letter->key_len, "room", 4);
    CHECK_I64(letter->partition, partition);
}

static void check_unnumbered(const rd_kafka_message_t *letter, const char *payload) {
    bool malformed = strcmp(payload, "odd") == 0;
    CHECK_BYTES(letter->payload, letter->len, payload, strlen(payload));
    check_header(letter, UNSALT_DEAD_REASON, malformed ? "malformed" : "exhausted");
    check_header(letter, UNSALT_DEAD_ATTEMPTS, malformed ? "0" : "3");
    check_header(letter, UNSALT_DEAD_SESSION, NULL);
    check_header(letter, UNSALT_DEAD_SEQ, NULL);
    check_header(letter, UNSALT_DEAD_EPOCH, NULL);
    CHECK_BYTES(letter->key, letter->key_len, "key", 3);
    if (!malformed)
        check_header(letter, UNSALT_DEAD_ERROR, "no error text was given");
}

static void check_letters(void) {
    char errstr[512];
    int seen[3] = {0};
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(&mock, "letters"), errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    for (int32_t p = 0; p < PARTITIONS; p++)
        rd_kafka_topic_partition_list_add(list, "dead", p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    uint64_t until = now_ms() + WAIT_MS;
    for (int n = 0; n < 3 && now_ms() < until;) {
        rd_kafka_message_t *letter = rd_kafka_consumer_poll(rk, 100);
        if (!letter)
            continue;
        n++;
        CHECK_I64(letter->err, 0);
        int which = letter->len == 5 && memcmp(letter->payload, "plain", 5) == 0 ? 1
                    : letter->len == 3 && memcmp(letter->payload, "odd", 3) == 0 ? 2
                                                                                 : 0;
        seen[which]++;
        if (which == 0)
            check_numbered(letter);
        else
            check_unnumbered(letter, which == 1 ? "plain" : "odd");
        rd_kafka_message_destroy(letter);
    }
    for (int which = 0; which < 3; which++)
        CHECK_I64(seen[which], 1);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static char line[800]; /* the last one of the log */

static void on_log(void *opaque, int level, const char *facility, const char *text) {
    (void)opaque;
    (void)level;
    (void)facility;
    snprintf(line, sizeof line, "%s", text);
}

/* Found out before a record is read, and only if letters may go there. */
static rd_kafka_resp_err_t subscribe_with(const char *settings) {
    char errstr[512];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock.bootstraps);
    unsalt_conf_t *input = mock_conf(settings, NULL);
    unsalt_conf_set_log_cb(input, on_log, NULL);
    unsalt_relay_t *relay = unsalt_relay_new(mock_rd_conf(&mock, "g"), input, writes,
                                             mock_conf("relay.topic=out partitions=1 lanes=1", NULL), errstr, 512);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = unsalt_relay_subscribe(relay, topics);
    rd_kafka_topic_partition_list_t *subscribed = NULL;
    CHECK_I64(rd_kafka_subscription(unsalt_relay_consumer(relay), &subscribed), 0);
    CHECK_I64(subscribed->cnt, err ? 0 : 1);
    rd_kafka_topic_partition_list_destroy(subscribed);
    rd_kafka_topic_partition_list_destroy(topics);
    unsalt_relay_destroy(relay);
    return err;
}

Test(mock_relay_dead, a_topic_that_is_not_there, .timeout = 120) {
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 1);
    mock_topic(&mock, "out", 1);
    rd_kafka_mock_topic_set_error(mock.cluster, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    CHECK_I64(subscribe_with("relay.dead.letter.topic=gone"), 0);
    CHECK_I64(subscribe_with("relay.dead.letter.topic=gone relay.failure=dead-letter"),
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    CHECK_THAT(strstr(line, "relay.dead.letter.topic=gone: topic gone for dead letters isn't there") &&
                   strstr(line, "make it"), "%s", line);
    CHECK_I64(subscribe_with("relay.dead.letter.topic=gone malformed=dead-letter"),
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rd_kafka_mock_topic_set_error(mock.cluster, "gone", RD_KAFKA_RESP_ERR_NO_ERROR); /* the mock has made it, too */
    CHECK_I64(subscribe_with("relay.dead.letter.topic=gone relay.failure=dead-letter"), 0);
    mock_close(&mock);
}

Test(mock_relay_dead, letters_in_a_topic, .timeout = 120) {
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 1);
    mock_topic(&mock, "out", 1);
    mock_topic(&mock, "dead", PARTITIONS);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        mock_send(&mock, "in", 0, "room", seq, 1);
    mock_write(&mock, "in", 0, "key", "plain", 5, NULL, NULL, 0);
    mock_write(&mock, "in", 0, "key", "odd", 3, "unsalt", "short", 5);
    mock_flush(&mock);
    relay_all();
    check_letters();
    mock_close(&mock);
}

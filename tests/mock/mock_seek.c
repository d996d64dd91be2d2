/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A partition that must be moved back, and can't be for a while: nothing of it is handed out past what must come again,
 * whoever asks is told why, and once it can be moved everything comes, in order.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdatomic.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define LIST_OFFSETS 2 /* the protocol's number of the request */

enum { WAIT_MS = 20000, RECORDS = 40, BACK = 10, MORE = 10, REFUSALS = 200 };

static struct mock mock;
static struct takings takings;
static atomic_bool fails, fails_singly; /* all partitions of a call, or each */
static atomic_int refused;

rd_kafka_error_t *rd_kafka_seek_partitions(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int timeout_ms) {
    rd_kafka_error_t *(*real)(rd_kafka_t *, rd_kafka_topic_partition_list_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_seek_partitions");
    refused += fails;
    if (!fails)
        return real(rk, list, timeout_ms);
    for (int i = 0; fails_singly && i < list->cnt; i++)
        list->elems[i].err = RD_KAFKA_RESP_ERR__STATE;
    return fails_singly ? NULL : rd_kafka_error_new(RD_KAFKA_RESP_ERR__FAIL, "not now");
}

static void write_numbers(uint64_t from, uint64_t to) {
    for (uint64_t seq = from; seq <= to; seq++)
        mock_send(&mock, "t", 0, "s", seq, 1);
    mock_flush(&mock);
}

/* Has read everything. */
static unsalt_t *reader(void) {
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    write_numbers(1, RECORDS);
    unsalt_t *u = mock_consumer(&mock, "g", "", NULL);
    CHECK_I64(mock_assign(u, "t", 1, 0), 0);
    CHECK(take(u, &takings, RECORDS, WAIT_MS));
    return u;
}

/* As a leader does that has another log, or takes itself for one. */
static void go_back(unsalt_t *u) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = BACK;
    rd_kafka_error_t *error;
    uint64_t until = now_ms() + WAIT_MS;
    while ((error = rd_kafka_seek_partitions(unsalt_handle(u), list, 1000)) && now_ms() < until)
        rd_kafka_error_destroy(error);
    CHECK(!error);
    CHECK_I64(list->elems[0].err, 0);
    rd_kafka_topic_partition_list_destroy(list);
}

static void check_explained(unsalt_t *u, int offset) {
    char text[2000], wanted[80];
    snprintf(wanted, sizeof wanted, "reading can't be moved to offset %d yet", offset);
    CHECK(unsalt_explain(u, "s", 1, text, sizeof text) > 0);
    CHECK_THAT(strstr(text, wanted), "\"%s\" says nothing of %d", text, offset);
}

/* `from`: the number that comes when it can be moved, and all behind it. */
static void waits(bool singly, bool same_log, uint64_t from) {
    unsalt_t *u = reader();
    go_back(u);
    fails_singly = singly;
    fails = true;
    if (!same_log) {
        static rd_kafka_resp_err_t errors[REFUSALS];
        for (int i = 0; i < REFUSALS; i++)
            errors[i] = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
        rd_kafka_mock_push_request_errors_array(mock.cluster, LIST_OFFSETS, REFUSALS, errors);
    }
    for (uint64_t until = now_ms() + WAIT_MS; refused == 0 && now_ms() < until;)
        take_nothing(u, 20);
    CHECK_THAT(refused > 0, "it was not noticed");
    write_numbers(RECORDS + 1, RECORDS + MORE);
    for (uint64_t until = now_ms() + WAIT_MS; refused < 3 && now_ms() < until;)
        take_nothing(u, 20);
    CHECK_THAT(refused >= 3, "it isn't tried again");
    check_explained(u, same_log ? RECORDS : BACK);
    CHECK_U64(takings.count, RECORDS);
    rd_kafka_mock_clear_request_errors(mock.cluster, LIST_OFFSETS);
    fails = false;
    CHECK(take(u, &takings, RECORDS + (RECORDS + MORE - from + 1), WAIT_MS));
    for (uint64_t seq = from; seq <= RECORDS + MORE; seq++) {
        CHECK_U64(takings.got[RECORDS + seq - from].seq, seq);
        CHECK_I64(takings.got[RECORDS + seq - from].state, UNSALT_STATE_RELEASED);
    }
    take_nothing(u, 200);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

Test(mock_seek, to_another_log, .timeout = 120) {
    waits(false, false, BACK + 1);
}

Test(mock_seek, to_another_log_refused_for_the_partition, .timeout = 120) {
    waits(true, false, BACK + 1);
}

Test(mock_seek, back_to_where_it_was, .timeout = 120) {
    waits(false, true, RECORDS + 1);
}

Test(mock_seek, back_to_where_it_was_refused_for_the_partition, .timeout = 120) {
    waits(true, true, RECORDS + 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the pipeline that were found by reading it: each test failed before its mend. */
#include <kafka/pipeline.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

static struct mock mock;
static struct pipework work;
static struct heard heard;

static unsalt_pipeline_t *open_with(const char *settings, const unsalt_pipeline_callbacks_t *callbacks) {
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    mock_topic(&mock, "dead", 1);
    return pipework_open(&mock, settings, callbacks, &heard, 2);
}

static unsalt_pipeline_t *open_one(const char *settings) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    return open_with(settings, &callbacks);
}

static unsalt_pipeline_t *open_without_phase_1(const char *settings) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.prepare = NULL;
    return open_with(settings, &callbacks);
}

/* ---- close */

static uint64_t received(const unsalt_pipeline_t *p) {
    unsalt_stats_t stats;
    unsalt_stats(unsalt_pipeline_consumer(p), &stats, sizeof(stats));
    return stats.received;
}

/*
 * What is ready is far more than revoke.timeout.ms has room for: the close leaves the rest to the next owner. All of it
 * waits for the first record, so it is ready at once.
 */
TEST(pipeline_found, a_close_without_delivery_threads_is_bounded) {
    unsalt_pipeline_t *p = open_without_phase_1("revoke.timeout.ms=200 gap.timeout.ms=-1");
    work.deliver_us = 20000;
    pipework_send(&mock, "s", 2, 400);
    for (uint64_t until = now_ms() + 20000; received(p) < 399 && now_ms() < until;) {
        CHECK_I64(unsalt_pipeline_poll(p, 20), 0);
    }
    mock_send(&mock, "t", 1, "s", 1, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 1));
    CHECK(pipework_stats(p).state[UNSALT_PIPELINE_IN_PREPARED] >= 100);
    CHECK(!unsalt_pipeline_close(p));
    CHECK(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED] > 0);
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* ---- a gate for callbacks */

static bool shut = true;
static unsigned at_the_gate;

static void open_gate(void) {
    pthread_mutex_lock(&work.lock);
    shut = false;
    pthread_mutex_unlock(&work.lock);
}

static unsigned waiting_there(void) {
    pthread_mutex_lock(&work.lock);
    unsigned n = at_the_gate;
    pthread_mutex_unlock(&work.lock);
    return n;
}

static unsalt_pipeline_res_t pass_gate(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)job;
    pthread_mutex_lock(&w->lock);
    at_the_gate++;
    while (shut) {
        pthread_mutex_unlock(&w->lock);
        sleep_ms(1);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return UNSALT_PIPELINE_OK;
}

/* ---- failures */

static char dead_error[128];
static unsigned wanted_there;

static unsalt_pipeline_res_t note_wanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    int wanted = unsalt_pipeline_wanted(job);
    pthread_mutex_lock(&w->lock);
    wanted_there += wanted == 1;
    pthread_mutex_unlock(&w->lock);
    return UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t slow_and_refused(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    while (unsalt_pipeline_wanted(job)) {
        sleep_ms(1);
    }
    return UNSALT_PIPELINE_FAIL;
}

static bool until_buried(unsalt_pipeline_t *p, size_t count) {
    for (uint64_t until = now_ms() + 20000; pipework_buried(&work) < count && now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    return pipework_buried(&work) >= count;
}

/* That its deliver was too slow says nothing of its dead letter. */
TEST(pipeline_found, a_dead_letter_is_wanted_after_a_slow_deliver) {
    unsalt_pipeline_t *p = open_one("pipeline.delivery.threads=1 pipeline.deliver.timeout.ms=50 "
                                    "pipeline.deliver.failure=dead-letter");
    work.deliver = slow_and_refused;
    work.bury = note_wanted;
    pipework_send(&mock, "s", 1, 1);
    CHECK(until_buried(p, 1));
    CHECK_U64(wanted_there, 1);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_SLOW), 1);
    pipework_close(&work, p, &mock);
}

/* The first attempt says why it fails, the second one takes too long. */
static unsalt_pipeline_res_t fails_then_hangs(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->attempt == 1) {
        snprintf(job->errstr, job->errstr_size, "said by the first");
        return UNSALT_PIPELINE_RETRY;
    }
    while (unsalt_pipeline_wanted(job)) {
        sleep_ms(1);
    }
    return UNSALT_PIPELINE_OK;
}

static uint64_t prepares_measured(const unsalt_pipeline_t *p) {
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        sum += stats.prepare_count[i];
    }
    return sum;
}

/* Its dead letter speaks of the last attempt; and that one is measured, too, when it returns. */
TEST(pipeline_found, a_time_limit_has_no_text_of_an_earlier_attempt) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=1 pipeline.prepare.retries=1 pipeline.prepare.timeout.ms=500 "
                                    "pipeline.retry.backoff.ms=1 pipeline.prepare.failure=dead-letter");
    work.prepare = fails_then_hangs;
    pipework_send(&mock, "s", 1, 1);
    CHECK(until_buried(p, 1));
    CHECK(work.buried.records[0].failure.reason == UNSALT_PIPELINE_BY_TIMEOUT);
    snprintf(dead_error, sizeof(dead_error), "%s", work.buried.records[0].error);
    CHECK_STR(dead_error, "it took longer than its limit");
    for (uint64_t until = now_ms() + 20000; pipework_stats(p).strays > 0 && now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK_U64(prepares_measured(p), 2);
    pipework_close(&work, p, &mock);
}

/* A letter that is buried again says what happened now, once; its other headers stay. */
static size_t count_header(const rd_kafka_headers_t *headers, const char *name, char *last, size_t size) {
    const void *value;
    size_t n = 0, len;
    while (!rd_kafka_header_get(headers, n, name, &value, &len)) {
        snprintf(last, size, "%.*s", (int)len, (const char *)value);
        n++;
    }
    return n;
}

static rd_kafka_message_t *read_one_dead(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "dead", 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_message_t *message = NULL;
    for (uint64_t until = now_ms() + 20000; !message && now_ms() < until;) {
        message = rd_kafka_consumer_poll(rk, 100);
        if (message && message->err) {
            rd_kafka_message_destroy(message);
            message = NULL;
        }
    }
    return message;
}

static unsalt_pipeline_res_t refuse(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return UNSALT_PIPELINE_FAIL;
}

TEST(pipeline_found, a_dead_letter_that_is_buried_again) {
    char errstr[256], value[64] = "";
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    unsalt_pipeline_t *p = open_with("pipeline.deliver.failure=dead-letter pipeline.dead.letter.topic=dead",
                                     &callbacks);
    work.deliver = refuse;
    rd_kafka_resp_err_t err = rd_kafka_producev(
        mock.producer, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("k", 1),
        RD_KAFKA_V_VALUE("payload", 7), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADER("mine", "m", 1),
        RD_KAFKA_V_HEADER(UNSALT_DEAD_REASON, "timeout", 7), RD_KAFKA_V_HEADER("unsalt.dead.other", "x", 1),
        RD_KAFKA_V_END);
    CHECK(!err);
    mock_flush(&mock);
    for (uint64_t until = now_ms() + 20000; now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
        if (heard_count(&heard, UNSALT_EVENT_PIPELINE_BURIED) > 0) {
            break;
        }
    }
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(&mock, "reader"), errstr, sizeof(errstr));
    rd_kafka_message_t *message = read_one_dead(rk);
    rd_kafka_headers_t *headers;
    CHECK(message && !rd_kafka_message_headers(message, &headers));
    CHECK_U64(count_header(headers, "mine", value, sizeof(value)), 1);
    CHECK_U64(count_header(headers, "unsalt.dead.other", value, sizeof(value)), 0);
    CHECK_U64(count_header(headers, UNSALT_DEAD_REASON, value, sizeof(value)), 1);
    CHECK_STR(value, "refused");
    rd_kafka_message_destroy(message);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    pipework_close(&work, p, &mock);
}

static uint64_t buried(const unsalt_pipeline_t *p) {
    return pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_BURIED];
}

/* An idempotent producer that has failed for good takes nothing any more: its sessions waited for ever. */
static void outlives_its_producer(const char *settings) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    unsalt_pipeline_t *p = open_with(settings, &callbacks);
    work.deliver = refuse;
    pipework_send(&mock, "s", 1, 3);
    for (uint64_t until = now_ms() + 20000; buried(p) < 3 && now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK_U64(buried(p), 3);
    CHECK(!rd_kafka_test_fatal_error(p->dead, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "by the test"));
    pipework_send(&mock, "s", 4, 40);
    for (uint64_t until = now_ms() + 20000; buried(p) < 40 && now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK_U64(buried(p), 40);
    pipework_close(&work, p, &mock);
}

#define BURIES "pipeline.deliver.failure=dead-letter pipeline.dead.letter.topic=dead pipeline.retry.backoff.ms=1 "

Test(pipeline_found, a_dead_letter_outlives_its_producer, .timeout = 60) {
    outlives_its_producer(BURIES);
}

Test(pipeline_found, a_dead_letter_on_another_thread_outlives_its_producer, .timeout = 60) {
    outlives_its_producer(BURIES "pipeline.delivery.threads=3");
}

/* ---- room */

/* It can never wait inside, so nobody waits behind it: phase 1 of the small ones is done before their turn. */
TEST(pipeline_found, a_record_too_large_to_wait_inside_holds_nobody_up) {
    static const char large[600];
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=-1 pipeline.workers=1 pipeline.bytes=1000 pipeline.records=4");
    unsalt_header_t header = {.lanes = 1, .epoch = 1, .seq = 2, .since = 1, .una = 1};
    unsigned char bytes[UNSALT_HEADER_SIZE];
    CHECK(unsalt_header_write(&header, bytes) == UNSALT_HEADER_OK);
    mock_send(&mock, "t", 0, "s", 2, 1);
    mock_send(&mock, "t", 0, "s", 3, 1);
    mock_write(&mock, "t", 0, "u", large, sizeof(large), UNSALT_HEADER_NAME, bytes, sizeof(bytes));
    mock_send(&mock, "t", 0, "u", 3, 1);
    mock_send(&mock, "t", 0, "u", 4, 1);
    mock_flush(&mock);
    for (uint64_t until = now_ms() + 20000; pipework_stats(p).waiting_room < 3 && now_ms() < until;) {
        CHECK_I64(unsalt_pipeline_poll(p, 20), 0);
    }
    CHECK_U64(pipework_stats(p).waiting_turn, 2);
    mock_send(&mock, "t", 1, "s", 1, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 3));
    for (uint64_t until = now_ms() + 20000; pipework_prepared(&work) < 5 && now_ms() < until;) {
        CHECK_I64(unsalt_pipeline_poll(p, 20), 0);
    }
    CHECK_U64(pipework_prepared(&work), 5);
    CHECK_U64(pipework_stats(p).waiting_room, 1);
    mock_send(&mock, "t", 1, "u", 1, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 7));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

static uint64_t stops(const unsalt_pipeline_t *p) {
    return pipework_stats(p).full;
}

/* Reading stops once, however often it is looked at since. */
TEST(pipeline_found, full_counts_stops_and_not_rounds) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=1 pipeline.records=4");
    work.prepare = pass_gate;
    pipework_send(&mock, "s", 1, 100);
    for (uint64_t until = now_ms() + 20000; stops(p) == 0 && now_ms() < until;) {
        CHECK_I64(unsalt_pipeline_poll(p, 20), 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_I64(unsalt_pipeline_poll(p, 0), 0);
    }
    CHECK_U64(stops(p), 1);
    open_gate();
    CHECK(pipework_until(&work, p, 100));
    pipework_close(&work, p, &mock);
}

/* ---- one identity */

/* A number below the first is none: to phase 1 as well, which may begin before the core's word is asked again. */
TEST(pipeline_found, numbers_that_cant_be_are_none_in_both_phases) {
    unsalt_pipeline_t *p = open_one("seq.first=5 pipeline.workers=1");
    mock_send(&mock, "t", 0, "s", 3, 1);
    mock_send(&mock, "t", 0, "s", 5, 1);
    mock_send(&mock, "t", 0, "s", 4, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 3));
    for (size_t i = 0; i < 3; i++) {
        const struct pipework_record *prepared = &work.prepared.records[i], *delivered = &work.delivered.records[i];
        CHECK_U64(prepared->seq, prepared->offset == 1 ? 5 : UNSALT_NO_SEQ);
        CHECK_U64(prepared->epoch, prepared->offset == 1);
        CHECK_U64(delivered->seq, delivered->offset == 1 ? 5 : UNSALT_NO_SEQ);
        CHECK(delivered->state == (delivered->offset == 1 ? UNSALT_STATE_RELEASED : UNSALT_STATE_UNSEQUENCED));
        CHECK_STR(prepared->session, "s");
        CHECK_STR(delivered->session, "s");
    }
    pipework_close(&work, p, &mock);
}

/* ---- commit */

/* What a delivery thread has done is done, whether a poll has looked since or not. */
TEST(pipeline_found, a_commit_covers_what_was_delivered_since_the_last_poll) {
    unsalt_pipeline_t *p = open_without_phase_1("pipeline.delivery.threads=1");
    work.deliver = pass_gate;
    pipework_send(&mock, "s", 1, 1);
    for (uint64_t until = now_ms() + 20000; waiting_there() == 0 && now_ms() < until;) {
        CHECK_I64(unsalt_pipeline_poll(p, 20), 0);
    }
    CHECK_U64(waiting_there(), 1);
    open_gate();
    for (uint64_t until = now_ms() + 20000; now_ms() < until;) {
        if (pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_DELIVERED] == 1) {
            break;
        }
        sleep_ms(1);
    }
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_DELIVERED], 1);
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 1);
    CHECK_I64(unsalt_pipeline_poll(p, 0), 1);
    pipework_close(&work, p, &mock);
}

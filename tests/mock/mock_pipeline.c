/* SPDX-License-Identifier: BSD-2-Clause */
/* The pipeline: phase 1 at once and side by side, phase 2 in the order of each session, bounds, who may call what. */
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

static struct mock mock;
static struct pipework work;
static struct heard heard;

static unsalt_pipeline_t *open_with(const char *settings, const unsalt_pipeline_callbacks_t *callbacks,
                                    int partitions) {
    char errstr[256];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", partitions);
    heard_init(&heard);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), mock_conf(settings, &heard), callbacks,
                                               errstr, sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", partitions, RD_KAFKA_OFFSET_BEGINNING));
    return p;
}

static unsalt_pipeline_t *open_one(const char *settings, int partitions) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    return open_with(settings, &callbacks, partitions);
}

/* A session over four lanes, lane by lane: what is ahead waits, and is prepared meanwhile. */
static void send_lanes(const char *session, uint64_t last) {
    for (int lane = 3; lane >= 0; lane--) {
        for (uint64_t seq = lane ? (uint64_t)lane : 4; seq <= last; seq += 4) {
            mock_send(&mock, "t", lane, session, seq, 4);
        }
        mock_flush(&mock);
    }
}

Test(pipeline, order_of_a_hot_session, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=-1 pipeline.workers=8", 4);
    work.prepare = pipework_meet;
    work.prepare_us = 1000;
    send_lanes("hot", 400);
    CHECK(pipework_until(&work, p, 400));
    CHECK(pipework_in_order(&work, 1));
    CHECK(pipework_until_done(&work, p, 400));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 1), 100);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.outcome[UNSALT_PIPELINE_WAS_DELIVERED], 400);
    CHECK_U64(stats.attempts[UNSALT_PIPELINE_PREPARE], 400);
    pipework_close(&work, p, &mock);
}

Test(pipeline, sessions_side_by_side_on_delivery_threads, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=4 pipeline.delivery.threads=4", 4);
    work.deliver_us = 500;
    for (uint64_t seq = 1; seq <= 50; seq++) {
        for (int s = 0; s < 8; s++) {
            char name[8];
            snprintf(name, sizeof(name), "s%d", s);
            mock_send(&mock, "t", s % 4, name, seq, 1);
        }
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 400));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* Phase 1 of what waits for a missing record is done before that comes. */
Test(pipeline, prepares_before_the_turn, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=-1 pipeline.workers=2", 2);
    for (uint64_t seq = 2; seq <= 20; seq += 2) {
        mock_send(&mock, "t", 0, "s", seq, 2);
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, pipework_prepared(&work) >= 10);
    CHECK_U64(pipework_prepared(&work), 10);
    CHECK_U64(pipework_delivered(&work), 0);
    CHECK_U64(work.done, 0);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.waiting_turn, 10);
    for (uint64_t seq = 1; seq <= 20; seq += 2) {
        mock_send(&mock, "t", 1, "s", seq, 2);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 20));
    CHECK(pipework_in_order(&work, 1));
    CHECK_U64(pipework_prepares(&work), 20);
    pipework_close(&work, p, &mock);
}

static bool is_unwanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return !unsalt_pipeline_wanted(job);
}

static unsalt_pipeline_res_t last_runs_on(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq == 21) {
        pipework_hold(w, job, is_unwanted);
    }
    return UNSALT_PIPELINE_OK;
}

/* What was prepared and never got its turn is ended with the rest, whether its run is over or not. */
Test(pipeline, what_waits_when_it_closes, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=-1 pipeline.workers=2 revoke.timeout.ms=100", 1);
    work.prepare = last_runs_on;
    for (uint64_t seq = 2; seq <= 21; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, pipework_prepared(&work) == 19 && pipework_prepares(&work) == 20);
    CHECK_U64(work.done, 0);
    CHECK(!unsalt_pipeline_close(p));
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED], 20);
    CHECK_U64(pipework_stats(p).waiting_turn, 0);
    pipework_close(&work, p, &mock);
    CHECK_U64(work.delivered.count, 0);
}

static atomic_bool went_back;

static bool is_back_or_unwanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    return atomic_load(&went_back) || is_unwanted(w, job);
}

static unsalt_pipeline_res_t second_half_waits(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq > 20) {
        pipework_hold(w, job, is_back_or_unwanted);
    }
    return UNSALT_PIPELINE_OK;
}

/* Back to an earlier offset in the middle of it: what ran then is discarded, everything comes again, in order. */
Test(pipeline, seek, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=4 pipeline.delivery.threads=1", 1);
    work.prepare = second_half_waits;
    work.prepare_us = 20000;
    for (uint64_t seq = 1; seq <= 40; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 5));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 0;
    CHECK(!unsalt_seek(unsalt_pipeline_consumer(p), list, 60000));
    CHECK(!list->elems[0].err);
    rd_kafka_topic_partition_list_destroy(list);
    atomic_store(&went_back, true);
    CHECK(pipework_until(&work, p, pipework_delivered(&work) + 40));
    CHECK(pipework_never_overtakes(&work));
    CHECK(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED] > 0);
    pipework_close(&work, p, &mock);
}

static uint64_t received(const unsalt_pipeline_t *p) {
    unsalt_stats_t stats;
    unsalt_stats(unsalt_pipeline_consumer(p), &stats, sizeof(stats));
    return stats.received;
}

/* More wait for the missing record than may be inside: it gets through all the same. */
Test(pipeline, the_bound_is_no_deadlock, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=-1 pipeline.workers=2 pipeline.records=8 pipeline.bytes=40", 2);
    for (uint64_t seq = 2; seq <= 400; seq += 2) {
        mock_send(&mock, "t", 0, "s", seq, 2);
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, received(p) == 200);
    CHECK_U64(work.done, 0);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK(stats.waiting_turn >= 1 && stats.waiting_turn <= 4);
    CHECK(stats.bytes <= 20);
    CHECK_U64(stats.waiting_turn + stats.waiting_room, 200);
    for (uint64_t seq = 1; seq <= 400; seq += 2) {
        mock_send(&mock, "t", 1, "s", seq, 2);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 400));
    CHECK(pipework_in_order(&work, 1));
    CHECK_U64(pipework_prepares(&work), 400);
    pipework_close(&work, p, &mock);
}

static atomic_bool open_gate;

static bool is_gate_open(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&open_gate);
}

static unsalt_pipeline_res_t wait_for_leave(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pipework_hold(w, job, is_gate_open);
    return UNSALT_PIPELINE_OK;
}

/* What was released and isn't done is bounded: the rest isn't read. */
Test(pipeline, is_not_read_on_when_it_is_full, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=2 pipeline.records=10 read.batch=16", 1);
    work.prepare = wait_for_leave;
    for (uint64_t seq = 1; seq <= 5000; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).full > 0);
    for (int i = 0; i < 10; i++) {
        CHECK_I64(pipework_poll(&work, p, 20), 0);
    }
    CHECK_U64(work.done, 0);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    uint64_t inside = stats.state[UNSALT_PIPELINE_IN_QUEUED] + stats.state[UNSALT_PIPELINE_IN_RUNNING];
    CHECK(inside <= 10);
    CHECK(received(p) < 5000);
    atomic_store(&open_gate, true);
    CHECK(pipework_until(&work, p, 5000));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* ---- records without a sequence */

Test(pipeline, base_keys_of_an_unsalted_topic, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=8 pipeline.delivery.threads=2", 1);
    work.prepare = pipework_meet;
    for (int i = 0; i < 300; i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%d", i % 3);
        mock_write(&mock, "t", 0, i % 4 == 3 ? NULL : key, "payload", 7, NULL, NULL, 0);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 300));
    int64_t last[4] = {-1, -1, -1, -1};
    for (size_t i = 0; i < work.delivered.count; i++) {
        const struct pipework_record *record = &work.delivered.records[i];
        int k = record->session[0] ? record->session[1] - '0' : 3;
        CHECK(record->offset > last[k]);
        CHECK_U64(record->seq, UNSALT_NO_SEQ);
        CHECK(record->state == UNSALT_STATE_UNSEQUENCED);
        last[k] = record->offset;
    }
    pipework_close(&work, p, &mock);
}

Test(pipeline, salt_is_stripped_off_base_keys, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=8 salt.trust=true", 1);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "room#%d", i % 4);
        mock_write(&mock, "t", 0, key, "payload", 7, NULL, NULL, 0);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 100));
    for (size_t i = 0; i < work.delivered.count; i++) {
        CHECK_STR(work.delivered.records[i].session, "room");
        CHECK_I64(work.delivered.records[i].offset, (int64_t)i);
    }
    pipework_close(&work, p, &mock);
}

/* Late and duplicate ones: the former come, with their flag, the latter never enter. */
Test(pipeline, late_and_duplicate_records, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("gap.timeout.ms=100 pipeline.workers=2", 2);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_send(&mock, "t", 0, "s", 3, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 2));
    mock_send(&mock, "t", 0, "s", 2, 1);
    mock_send(&mock, "t", 0, "s", 4, 1);
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 4));
    CHECK_U64(work.delivered.records[2].seq, 2);
    CHECK(work.delivered.records[2].state == UNSALT_STATE_LATE);
    CHECK_U64(pipework_prepares(&work), 4);
    pipework_close(&work, p, &mock);
}

/* Without a phase 1 there is order, and sessions side by side. */
Test(pipeline, deliver_alone, .timeout = 120) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.prepare = NULL;
    unsalt_pipeline_t *p = open_with("pipeline.delivery.threads=3", &callbacks, 1);
    for (uint64_t seq = 1; seq <= 100; seq++) {
        mock_send(&mock, "t", 0, "a", seq, 1);
        mock_send(&mock, "t", 0, "b", seq, 1);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 200));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* ---- who may call what */

static unsalt_pipeline_t *misused;
static unsigned refused;

static unsalt_pipeline_res_t misuse(struct pipework *w, const unsalt_pipeline_job_t *job) {
    unsalt_t *u = unsalt_pipeline_consumer(misused);
    unsalt_pipeline_stats_t stats;
    unsalt_message_info_t info = {.size = sizeof(info)};
    unsigned n = 0;
    n += unsalt_pipeline_poll(misused, 0) == -1 && unsalt_last_error() == RD_KAFKA_RESP_ERR__CONFLICT;
    n += unsalt_pipeline_close(misused) == RD_KAFKA_RESP_ERR__CONFLICT;
    n += unsalt_commit(u, 0) == RD_KAFKA_RESP_ERR__CONFLICT;
    n += unsalt_consumer_close(u) == RD_KAFKA_RESP_ERR__CONFLICT;
    n += unsalt_pipeline_stats(misused, &stats, sizeof(stats)) == 0;
    n += unsalt_pipeline_wanted(job) == 1;
    n += unsalt_message_info(u, job->message, &info) == -1;
    n += unsalt_explain(u, "s", 1, NULL, 0) == -1 && unsalt_last_error() == RD_KAFKA_RESP_ERR__CONFLICT;
    pthread_mutex_lock(&w->lock);
    refused += n;
    pthread_mutex_unlock(&w->lock);
    return UNSALT_PIPELINE_OK;
}

static void send_ten(void) {
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
}

Test(pipeline, calls_from_callbacks, .timeout = 120) {
    misused = open_one("pipeline.workers=2", 1);
    work.prepare = work.deliver = misuse;
    send_ten();
    CHECK(pipework_until(&work, misused, 10));
    CHECK_U64(refused, 10 * 2 * 8);
    pipework_close(&work, misused, &mock);
}

Test(pipeline, calls_from_delivery_threads, .timeout = 120) {
    misused = open_one("pipeline.workers=2 pipeline.delivery.threads=2", 1);
    work.prepare = work.deliver = misuse;
    send_ten();
    CHECK(pipework_until(&work, misused, 10));
    CHECK_U64(refused, 10 * 2 * 8);
    pipework_close(&work, misused, &mock);
}

Test(pipeline, its_consumer_is_not_polled, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("", 1);
    unsalt_t *u = unsalt_pipeline_consumer(p);
    rd_kafka_message_t *message;
    CHECK(!unsalt_consumer_poll(u, 0));
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_consume_batch(u, 0, &message, 1), -1);
    CHECK_I64(unsalt_consume_callback(u, 0, NULL, NULL), -1);
    CHECK_I64(unsalt_consumer_close(u), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK(!unsalt_pipeline_close(p));
    CHECK(!unsalt_pipeline_close(p));
    CHECK_I64(unsalt_pipeline_poll(p, 0), -1);
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__STATE);
    pipework_close(&work, p, &mock);
}

/* What is refused leaves both configurations to the caller. */
Test(pipeline, what_new_refuses, .timeout = 120) {
    pipework_init(&work);
    mock_open(&mock, 1);
    heard_init(&heard);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    rd_kafka_conf_t *rk_conf = mock_rd_conf(&mock, "g");
    char errstr[256] = "";
    unsalt_conf_t *conf = mock_conf("pipeline.deliver.failure=dead-letter", &heard);
    callbacks.dead_letter = NULL;
    CHECK(!unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof(errstr)));
    CHECK(strstr(errstr, "pipeline.dead.letter.topic"));
    unsalt_conf_destroy(conf);
    conf = mock_conf("pipeline.retry.backoff.ms=20000", &heard);
    CHECK(!unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof(errstr)));
    CHECK(strstr(errstr, "pipeline.retry.backoff.max.ms"));
    unsalt_conf_destroy(conf);
    conf = mock_conf("pipeline.prepare.timeout.ms=0", &heard); /* nothing would ever be prepared */
    CHECK(!unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof(errstr)));
    CHECK(strstr(errstr, "pipeline.prepare.timeout.ms=0") && strstr(errstr, "off"));
    unsalt_conf_destroy(conf);
    callbacks.deliver = NULL;
    CHECK(!unsalt_pipeline_new(rk_conf, NULL, &callbacks, errstr, sizeof(errstr)));
    CHECK(strstr(errstr, "deliver"));
    callbacks = pipework_callbacks(&work);
    conf = mock_conf("layout=block", &heard);
    CHECK(!unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof(errstr)));
    CHECK(strstr(errstr, "partitions"));
    unsalt_pipeline_t *p = unsalt_pipeline_new(rk_conf, NULL, &callbacks, errstr, sizeof(errstr));
    CHECK(p);
    unsalt_conf_destroy(conf);
    pipework_close(&work, p, &mock);
    unsalt_pipeline_destroy(NULL);
}

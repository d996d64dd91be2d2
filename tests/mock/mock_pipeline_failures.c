/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures in a pipeline: retries, time limits, each policy in each phase, halted sessions and what becomes of them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

static struct mock mock;
static struct pipework work;
static struct heard heard;

static unsalt_pipeline_t *open_with(const char *settings, const unsalt_pipeline_callbacks_t *callbacks) {
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    mock_topic(&mock, "dead", 4);
    return pipework_open(&mock, settings, callbacks, &heard, 1);
}

static unsalt_pipeline_t *open_one(const char *settings) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    return open_with(settings, &callbacks);
}

/* Polls until the event has come so often. */
static bool until_heard(unsalt_pipeline_t *p, unsalt_event_type_t type, uint64_t count) {
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; heard_count(&heard, type) < count && now_ms() < until;) {
        pipework_poll(&work, p, 50);
    }
    return heard_count(&heard, type) >= count;
}

static bool is_unwanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return !unsalt_pipeline_wanted(job);
}

static bool is(const unsalt_pipeline_job_t *job, const char *session, uint64_t seq) {
    return job->seq == seq && job->session_len == strlen(session) &&
           memcmp(job->session, session, job->session_len) == 0;
}

/* ---- retries */

static unsalt_pipeline_res_t third_time(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq % 3 == 0 && job->attempt < 3 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

Test(pipeline_failures, retries_in_both_phases, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=3 pipeline.retry.backoff.ms=5");
    work.prepare = work.deliver = third_time;
    pipework_send(&mock, "s", 1, 30);
    CHECK(pipework_until(&work, p, 30));
    CHECK(pipework_in_order(&work, 1));
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.retries[UNSALT_PIPELINE_PREPARE], 20);
    CHECK_U64(stats.retries[UNSALT_PIPELINE_DELIVER], 20);
    CHECK_U64(stats.failures[UNSALT_PIPELINE_DELIVER], 20);
    CHECK_U64(stats.final_failures[UNSALT_PIPELINE_PREPARE], 0);
    pipework_close(&work, p, &mock);
}

/* ---- skip and dead letters, each phase */

static unsalt_pipeline_res_t five_fails(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->seq % 5) {
        return UNSALT_PIPELINE_OK;
    }
    snprintf(job->errstr, job->errstr_size, "no luck with %d", (int)job->seq);
    return job->seq % 2 ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_RETRY;
}

static void skips(const char *settings, bool prepare) {
    unsalt_pipeline_t *p = open_one(settings);
    *(prepare ? &work.prepare : &work.deliver) = five_fails;
    pipework_send(&mock, "s", 1, 20);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_SKIPPED, 4));
    CHECK_U64(pipework_delivered(&work), 16);
    CHECK(strstr(heard.text[UNSALT_EVENT_PIPELINE_SKIPPED], "no luck with 20"));
    CHECK(strstr(heard.text[UNSALT_EVENT_PIPELINE_SKIPPED], "exhausted, 2 calls"));
    CHECK_U64(heard.first[UNSALT_EVENT_PIPELINE_SKIPPED], 20);
    CHECK(pipework_until_done(&work, p, 20));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 20);
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_SKIPPED], 4);
    pipework_close(&work, p, &mock);
}

Test(pipeline_failures, skip_in_phase_1, .timeout = 120) {
    skips("pipeline.prepare.failure=skip pipeline.prepare.retries=1 pipeline.retry.backoff.ms=1", true);
}

Test(pipeline_failures, skip_in_phase_2, .timeout = 120) {
    skips("pipeline.deliver.failure=skip pipeline.deliver.retries=1 pipeline.retry.backoff.ms=1", false);
}

Test(pipeline_failures, skip_on_delivery_threads, .timeout = 120) {
    skips("pipeline.deliver.failure=skip pipeline.deliver.retries=1 pipeline.retry.backoff.ms=1 "
          "pipeline.delivery.threads=2", false);
}

static bool is_failure_heard(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return heard_count(&heard, UNSALT_EVENT_PIPELINE_NOT_BURIED) >= job->seq / 5;
}

/* The second is held until the first one's failure was told. */
static unsalt_pipeline_res_t second_burial(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->attempt == 1) {
        return UNSALT_PIPELINE_RETRY;
    }
    pipework_hold(w, job, is_failure_heard);
    return UNSALT_PIPELINE_OK;
}

static void buries(const char *settings, bool prepare) {
    unsalt_pipeline_t *p = open_one(settings);
    *(prepare ? &work.prepare : &work.deliver) = five_fails;
    work.bury = second_burial;
    pipework_send(&mock, "s", 1, 20);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_BURIED, 4));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_NOT_BURIED), 4);
    CHECK_U64(pipework_buried(&work), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct pipework_record *record = &work.buried.records[i];
        uint64_t seq = 5 * (i + 1);
        CHECK_U64(record->seq, seq);
        CHECK(record->failure.reason == (seq % 2 ? UNSALT_PIPELINE_BY_REFUSED : UNSALT_PIPELINE_BY_EXHAUSTED));
        CHECK(record->failure.phase == (prepare ? UNSALT_PIPELINE_PREPARE : UNSALT_PIPELINE_DELIVER));
        CHECK_U64(record->failure.attempts, seq % 2 ? 1 : 2);
        CHECK(record->failure.cursor > seq);
        CHECK(strstr(record->error, "no luck with"));
    }
    CHECK(pipework_until_done(&work, p, 20));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 20);
    pipework_close(&work, p, &mock);
}

Test(pipeline_failures, dead_letters_of_phase_1, .timeout = 120) {
    buries("pipeline.prepare.failure=dead-letter pipeline.prepare.retries=1 pipeline.retry.backoff.ms=1", true);
}

Test(pipeline_failures, dead_letters_of_phase_2, .timeout = 120) {
    buries("pipeline.deliver.failure=dead-letter pipeline.deliver.retries=1 pipeline.retry.backoff.ms=1 "
           "pipeline.delivery.threads=1", false);
}

/* To a topic: what a reader finds there. */
struct found {
    char session[32], seq[32], reason[32], error[64], topic[32], offset[32], key[32], cursor[32], group[32], own[32];
    int32_t partition;
    size_t header;
};

static void copy_header(const rd_kafka_headers_t *headers, const char *name, char *to, size_t size) {
    const void *value;
    size_t len;
    to[0] = '\0';
    if (!rd_kafka_header_get_last(headers, name, &value, &len)) {
        snprintf(to, size, "%.*s", (int)len, (const char *)value);
    }
}

static size_t read_dead(struct found *found, size_t most) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(&mock, "reader"), errstr, sizeof(errstr));
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    for (int i = 0; i < 4; i++) {
        rd_kafka_topic_partition_list_add(list, "dead", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    size_t n = 0;
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; n < most && now_ms() < until;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        rd_kafka_headers_t *headers;
        const void *value;
        if (message && !message->err && !rd_kafka_message_headers(message, &headers)) {
            struct found *f = &found[n++];
            memset(f, 0, sizeof(*f));
            copy_header(headers, UNSALT_DEAD_SESSION, f->session, sizeof(f->session));
            copy_header(headers, UNSALT_DEAD_SEQ, f->seq, sizeof(f->seq));
            copy_header(headers, UNSALT_DEAD_REASON, f->reason, sizeof(f->reason));
            copy_header(headers, UNSALT_DEAD_ERROR, f->error, sizeof(f->error));
            copy_header(headers, UNSALT_DEAD_TOPIC, f->topic, sizeof(f->topic));
            copy_header(headers, UNSALT_DEAD_OFFSET, f->offset, sizeof(f->offset));
            copy_header(headers, UNSALT_DEAD_KEY, f->key, sizeof(f->key));
            copy_header(headers, UNSALT_DEAD_CURSOR, f->cursor, sizeof(f->cursor));
            copy_header(headers, UNSALT_DEAD_GROUP, f->group, sizeof(f->group));
            copy_header(headers, "seq", f->own, sizeof(f->own));
            f->partition = message->partition;
            CHECK_BYTES(message->payload, message->len, "payload", 7);
            CHECK_BYTES(message->key, message->key_len, f->session, strlen(f->session));
            if (!rd_kafka_header_get_last(headers, UNSALT_DEAD_HEADER, &value, &f->header)) {
                CHECK(rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &f->header));
            }
        }
        if (message) {
            rd_kafka_message_destroy(message);
        }
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return n;
}

Test(pipeline_failures, dead_letters_in_a_topic, .timeout = 120) {
    struct found found[16];
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    unsalt_pipeline_t *p = open_with("pipeline.deliver.failure=dead-letter pipeline.deliver.retries=0 "
                                     "pipeline.dead.letter.topic=dead salt.trust=true pipeline.workers=2", &callbacks);
    work.deliver = five_fails;
    for (uint64_t seq = 1; seq <= 20; seq++) {
        char key[16], number[16];
        mock_send(&mock, "t", 0, "s", seq, 1);
        snprintf(key, sizeof(key), "plain#%d", (int)seq % 4);
        snprintf(number, sizeof(number), "%d", (int)seq);
        mock_write(&mock, "t", 0, key, "payload", 7, "seq", number, strlen(number));
    }
    mock_flush(&mock);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_BURIED, 8));
    CHECK(pipework_until_done(&work, p, 40));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 40);
    CHECK_U64(read_dead(found, 8), 8);
    unsigned last[2] = {0, 0};
    int32_t partition[2] = {-1, -1};
    for (size_t i = 0; i < 8; i++) {
        const struct found *f = &found[i];
        bool plain = strcmp(f->session, "plain") == 0;
        unsigned seq = (unsigned)atoi(f->seq);
        CHECK(plain || strcmp(f->session, "s") == 0);
        CHECK(seq == last[plain] + 5);
        CHECK(partition[plain] == -1 || partition[plain] == f->partition);
        partition[plain] = f->partition;
        last[plain] = seq;
        CHECK_STR(f->reason, seq % 2 ? "refused" : "exhausted");
        CHECK(strncmp(f->error, "no luck with ", 13) == 0);
        CHECK_STR(f->topic, "t");
        CHECK_STR(f->group, "g");
        CHECK_I64(atoi(f->offset), (int64_t)(2 * (seq - 1) + plain));
        CHECK_U64(f->header, plain ? 0 : UNSALT_HEADER_SIZE);
        CHECK(strncmp(f->key, f->session, strlen(f->session)) == 0);
        CHECK((strlen(f->own) > 0) == plain);
        CHECK(atoi(f->cursor) > (int)seq);
    }
    pipework_close(&work, p, &mock);
}

/* ---- halted sessions */

static unsigned tries;
static bool mended;

static unsalt_pipeline_res_t bad_seven(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pthread_mutex_lock(&w->lock);
    bool fails = is(job, "bad", 7) && !mended;
    tries += fails;
    pthread_mutex_unlock(&w->lock);
    return fails ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static size_t delivered_of(const char *session) {
    size_t n = 0;
    pthread_mutex_lock(&work.lock);
    for (size_t i = 0; i < work.delivered.count; i++) {
        n += strcmp(work.delivered.records[i].session, session) == 0;
    }
    pthread_mutex_unlock(&work.lock);
    return n;
}

static unsalt_pipeline_t *halted(const char *settings, bool prepare) {
    unsalt_pipeline_t *p = open_one(settings);
    *(prepare ? &work.prepare : &work.deliver) = bad_seven;
    for (uint64_t seq = 1; seq <= 50; seq++) {
        mock_send(&mock, "t", 0, "bad", seq, 1);
        mock_send(&mock, "t", 0, "good", seq, 1);
    }
    mock_flush(&mock);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_HALTED, 1));
    CHECK(pipework_until(&work, p, 56));
    CHECK_U64(delivered_of("bad"), 6);
    CHECK_U64(delivered_of("good"), 50);
    CHECK_U64(heard.first[UNSALT_EVENT_PIPELINE_HALTED], 7);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.sessions_halted, 1);
    CHECK_U64(stats.halted_records, 44);
    CHECK(pipework_until_done(&work, p, 56));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 12);
    return p;
}

static rd_kafka_resp_err_t resolve(unsalt_pipeline_t *p, unsalt_pipeline_action_t action) {
    return unsalt_pipeline_resolve(p, "t", 0, "bad", 3, action);
}

Test(pipeline_failures, a_halted_session_is_tried_again, .timeout = 120) {
    unsalt_pipeline_t *p = halted("pipeline.prepare.retries=1 pipeline.retry.backoff.ms=1 pipeline.workers=3", true);
    CHECK_I64(unsalt_pipeline_resolve(p, "t", 0, "good", 4, UNSALT_PIPELINE_TRY_AGAIN), RD_KAFKA_RESP_ERR__NOENT);
    CHECK_I64(unsalt_pipeline_resolve(p, "t", 1, "bad", 3, UNSALT_PIPELINE_TRY_AGAIN), RD_KAFKA_RESP_ERR__NOENT);
    CHECK_I64(unsalt_pipeline_resolve(p, NULL, 0, "bad", 3, UNSALT_PIPELINE_TRY_AGAIN),
              RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_U64(tries, 2);
    CHECK(!resolve(p, UNSALT_PIPELINE_TRY_AGAIN));
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_HALTED, 2));
    CHECK_U64(tries, 4);
    pthread_mutex_lock(&work.lock);
    mended = true;
    pthread_mutex_unlock(&work.lock);
    CHECK(!resolve(p, UNSALT_PIPELINE_TRY_AGAIN));
    CHECK(pipework_until(&work, p, 100));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

Test(pipeline_failures, a_halted_session_is_skipped_over, .timeout = 120) {
    unsalt_pipeline_t *p = halted("pipeline.deliver.retries=0 pipeline.delivery.threads=2", false);
    CHECK(!resolve(p, UNSALT_PIPELINE_SKIP_IT));
    CHECK(pipework_until(&work, p, 99));
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_SKIPPED, 1));
    CHECK(strstr(heard.text[UNSALT_EVENT_PIPELINE_SKIPPED], "resolved"));
    CHECK_I64(resolve(p, UNSALT_PIPELINE_SKIP_IT), RD_KAFKA_RESP_ERR__NOENT);
    CHECK(pipework_until_done(&work, p, 100));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    CHECK_I64(mock_committed(&mock, "g", "t", 0), 100);
    pipework_close(&work, p, &mock);
}

Test(pipeline_failures, a_halted_session_gets_a_dead_letter, .timeout = 120) {
    unsalt_pipeline_t *p = halted("pipeline.deliver.retries=0", false);
    CHECK(!resolve(p, UNSALT_PIPELINE_DEAD_LETTER));
    CHECK(pipework_until(&work, p, 99));
    CHECK_U64(pipework_buried(&work), 1);
    CHECK(work.buried.records[0].failure.reason == UNSALT_PIPELINE_BY_RESOLVED);
    pipework_close(&work, p, &mock);
}

/* What a halted session piles up is bounded, and told; the others go on until then. */
Test(pipeline_failures, halted_sessions_pile_up_to_a_bound, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.deliver.retries=0 pipeline.records=10 pipeline.halted.records=100 "
                                    "pipeline.workers=2");
    work.deliver = bad_seven;
    for (uint64_t seq = 1; seq <= 3000; seq++) {
        mock_send(&mock, "t", 0, "bad", seq, 1);
        mock_send(&mock, "t", 0, "good", seq, 1);
    }
    mock_flush(&mock);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_HALTED_FULL, 1));
    CHECK(delivered_of("good") >= 90);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK(stats.halted_records >= 100 && stats.halted_records < 300);
    pthread_mutex_lock(&work.lock);
    mended = true;
    pthread_mutex_unlock(&work.lock);
    CHECK(!resolve(p, UNSALT_PIPELINE_TRY_AGAIN));
    CHECK(pipework_until(&work, p, 6000));
    CHECK(pipework_in_order(&work, 1));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED_FULL), 1);
    pipework_close(&work, p, &mock);
}

/* ---- time limits */

static atomic_bool let_go;
static atomic_uint unwanted;

static bool is_let_go(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&let_go);
}

static unsalt_pipeline_res_t hangs_once(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq == 3 && job->attempt == 1) {
        pipework_hold(w, job, is_unwanted);
        atomic_fetch_add(&unwanted, 1);
        pipework_hold(w, job, is_let_go);
    }
    return UNSALT_PIPELINE_OK;
}

/*
 * The second attempt goes on beside the first; what that returns in the end is ended, and nothing else. On a machine
 * that stands still for a while others are over the limit too: each of them, and nothing else, is called once more.
 */
Test(pipeline_failures, phase_1_over_its_limit, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=2 pipeline.prepare.timeout.ms=100 pipeline.retry.backoff.ms=1 "
                                    "pipeline.prepare.retries=1000 pipeline.retry.backoff.max.ms=1");
    work.prepare = hangs_once;
    pipework_send(&mock, "s", 1, 10);
    CHECK(pipework_until(&work, p, 10));
    CHECK(pipework_in_order(&work, 1));
    PIPEWORK_UNTIL(&work, p, atomic_load(&unwanted) == 1);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK(stats.timeouts[UNSALT_PIPELINE_PREPARE] >= 1);
    CHECK_U64(stats.retries[UNSALT_PIPELINE_PREPARE], stats.timeouts[UNSALT_PIPELINE_PREPARE]);
    CHECK_U64(pipework_prepares(&work), 10 + stats.timeouts[UNSALT_PIPELINE_PREPARE]);
    CHECK_U64(stats.final_failures[UNSALT_PIPELINE_PREPARE], 0);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).strays == 1);
    atomic_store(&let_go, true);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).strays == 0);
    CHECK_U64(pipework_delivered(&work), 10);
    pipework_close(&work, p, &mock);
}

static uint64_t slow_ones(struct pipework *w) {
    return pipework_stats(w->opaque).timeouts[UNSALT_PIPELINE_DELIVER];
}

/* It is over its limit, that was told, and the other session has gone on to its end. */
static bool others_went_on(struct pipework *w, const unsalt_pipeline_job_t *job) {
    return is_unwanted(w, job) && heard_count(&heard, UNSALT_EVENT_PIPELINE_SLOW) >= slow_ones(w) &&
           delivered_of("other") == 7;
}

static atomic_uint before_three;

static unsalt_pipeline_res_t slow_three(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq == 3) {
        pipework_hold(w, job, others_went_on);
        atomic_store(&before_three, (unsigned)delivered_of("s"));
    }
    return UNSALT_PIPELINE_OK;
}

/*
 * Its session waits for it, and its return counts; other sessions go on. Each one that is over its limit is told: on a
 * machine that stands still for a while there may be others.
 */
Test(pipeline_failures, phase_2_over_its_limit, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.delivery.threads=2 pipeline.deliver.timeout.ms=200");
    work.deliver = slow_three;
    work.opaque = p;
    pipework_send(&mock, "s", 1, 10);
    pipework_send(&mock, "other", 4, 10);
    CHECK(pipework_until(&work, p, 17));
    CHECK(pipework_until_done(&work, p, 17));
    CHECK_U64(atomic_load(&before_three), 2);
    CHECK(slow_ones(&work) >= 1);
    CHECK(until_heard(p, UNSALT_EVENT_PIPELINE_SLOW, slow_ones(&work)));
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_SLOW), slow_ones(&work));
    CHECK_U64(pipework_stats(p).retries[UNSALT_PIPELINE_DELIVER], 0);
    CHECK_U64(work.delivers, 17);
    pipework_close(&work, p, &mock);
}

/* ---- the end while work is under way */

static unsalt_pipeline_res_t until_unwanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pipework_hold(w, job, is_unwanted);
    return UNSALT_PIPELINE_OK;
}

/* All have come and got their turn, and so many of them are being prepared. */
static bool all_inside(unsalt_pipeline_t *p, uint64_t prepares) {
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    return stats.entered == 10 && stats.waiting_turn == 0 && pipework_prepares(&work) == prepares;
}

/* Nothing of it is delivered, and it is read again. */
Test(pipeline_failures, a_close_discards_what_runs_too_long, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=2 revoke.timeout.ms=100");
    work.prepare = until_unwanted;
    pipework_send(&mock, "s", 1, 10);
    PIPEWORK_UNTIL(&work, p, all_inside(p, 2));
    CHECK(!unsalt_pipeline_close(p));
    CHECK_U64(pipework_delivered(&work), 0);
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED], 10);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_OUTSTANDING), 2);
    pipework_close(&work, p, &mock);
}

static bool others_are_cancelled(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)job;
    return pipework_stats(w->opaque).outcome[UNSALT_PIPELINE_WAS_CANCELLED] == 9;
}

static unsalt_pipeline_res_t until_it_closes(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pipework_hold(w, job, others_are_cancelled);
    return UNSALT_PIPELINE_OK;
}

/* What runs is waited for, what wasn't begun is not. */
Test(pipeline_failures, a_close_waits_for_what_runs, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=1 revoke.timeout.ms=30000");
    work.prepare = until_it_closes;
    work.opaque = p;
    pipework_send(&mock, "s", 1, 10);
    PIPEWORK_UNTIL(&work, p, all_inside(p, 1));
    CHECK(!unsalt_pipeline_close(p));
    CHECK_U64(pipework_delivered(&work), 1);
    CHECK_U64(pipework_prepares(&work), 1);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_OUTSTANDING), 0);
    pipework_close(&work, p, &mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What somebody who is called at night can find out: which sessions stand, since when, at which record and why; that
 * nothing is read on because of which of them; that no worker is left; where a dead letter was to go.
 */
#include <stdatomic.h>
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
    return pipework_open(&mock, settings, callbacks, &heard, 1);
}

static unsalt_pipeline_t *open_one(const char *settings) {
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    return open_with(settings, &callbacks);
}

static atomic_bool mended;

/* The third number of every session but "good" fails. */
static unsalt_pipeline_res_t bad_three(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    bool good = job->session_len == 4 && memcmp(job->session, "good", 4) == 0;
    if (good || job->seq != 3 || atomic_load(&mended)) {
        return UNSALT_PIPELINE_OK;
    }
    snprintf(job->errstr, job->errstr_size, "no such account: %.*s", (int)job->session_len, (const char *)job->session);
    return UNSALT_PIPELINE_FAIL;
}

/* ---- the list */

struct listed {
    int count;
    unsalt_pipeline_t *resolves; /* from within; NULL: not */
    unsalt_pipeline_halt_t first;
    char session[32], topic[32], error[64];
};

static void on_halted(void *opaque, const unsalt_pipeline_halt_t *halt) {
    struct listed *listed = opaque;
    if (listed->count++ == 0) {
        listed->first = *halt;
        snprintf(listed->session, sizeof(listed->session), "%s", (const char *)halt->session);
        snprintf(listed->topic, sizeof(listed->topic), "%s", halt->topic);
        snprintf(listed->error, sizeof(listed->error), "%s", halt->error);
    }
    CHECK_U64(halt->size, sizeof(*halt));
    CHECK(halt->seq == 3 && strlen(halt->session) == halt->session_len);
    if (listed->resolves) {
        CHECK(!unsalt_pipeline_resolve(listed->resolves, halt->topic, halt->partition, halt->session,
                                       halt->session_len, UNSALT_PIPELINE_TRY_AGAIN));
    }
}

static int64_t list(unsalt_pipeline_t *p, struct listed *listed, bool resolves) {
    *listed = (struct listed){.resolves = resolves ? p : NULL};
    int64_t count = unsalt_pipeline_halted(p, on_halted, listed);
    CHECK_I64(count, listed->count);
    return count;
}

static void explain(const unsalt_pipeline_t *p, const char *session, char *text, size_t size) {
    int len = unsalt_explain(unsalt_pipeline_consumer(p), session, strlen(session), text, size);
    CHECK_THAT(len >= 0 && (size_t)len < size, "%d", len);
}

/* Which, since when, at which record, why; in words, too; and whoever lists them can let them go on at once. */
static void lists_and_resolves(const char *settings) {
    struct listed listed;
    char text[1024];
    unsalt_pipeline_t *p = open_one(settings);
    work.deliver = bad_three;
    CHECK_I64(list(p, &listed, false), 0);
    CHECK_I64(unsalt_pipeline_halted(p, NULL, NULL), -1);
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__INVALID_ARG);
    uint64_t before = now_ms();
    pipework_send(&mock, "early", 1, 10);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED) == 1);
    pipework_send(&mock, "later", 1, 4);
    pipework_send(&mock, "good", 1, 10);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED) == 2 &&
                                 pipework_delivered(&work) == 14);
    sleep_ms(20);
    CHECK_I64(list(p, &listed, false), 2);
    CHECK_STR(listed.session, "early");
    CHECK_STR(listed.topic, "t");
    CHECK_STR(listed.error, "no such account: early");
    CHECK(listed.first.partition == 0 && listed.first.offset == 2 && listed.first.epoch == 1);
    CHECK(listed.first.phase == UNSALT_PIPELINE_DELIVER && listed.first.reason == UNSALT_PIPELINE_BY_REFUSED);
    CHECK(listed.first.attempts == 1 && listed.first.records == 8 && listed.first.bytes == 8 * (5 + 7));
    CHECK(listed.first.age_ms >= 20 && listed.first.age_ms <= (int64_t)(now_ms() - before));
    explain(p, "early", text, sizeof(text));
    CHECK_THAT(strstr(text, "in the pipeline: 8 whose turn has come (96 bytes), 0 before their turn\n"), "%s", text);
    CHECK_THAT(strstr(text, "  first 3, t [0] offset 2: halted for "), "%s", text);
    CHECK_THAT(strstr(text, "deliver failed for good (refused, 1 calls): no such account: early; until"), "%s", text);
    explain(p, "good", text, sizeof(text));
    CHECK_THAT(!strstr(text, "in the pipeline"), "%s", text);
    atomic_store(&mended, true);
    CHECK_I64(list(p, &listed, true), 2);
    CHECK(pipework_until(&work, p, 24));
    CHECK(pipework_in_order(&work, 1));
    CHECK_I64(list(p, &listed, false), 0);
    pipework_close(&work, p, &mock);
}

Test(pipeline_halted, listed_and_resolved, .timeout = 120) {
    lists_and_resolves("pipeline.workers=2");
}

Test(pipeline_halted, listed_beside_delivery_threads, .timeout = 120) {
    lists_and_resolves("pipeline.workers=2 pipeline.delivery.threads=2");
}

/* Without a key: the list says so, and resolves by it. */
static void on_keyless(void *opaque, const unsalt_pipeline_halt_t *halt) {
    unsalt_pipeline_t *p = opaque;
    CHECK(!halt->session && halt->session_len == 0 && halt->seq == UNSALT_NO_SEQ && halt->records == 1);
    CHECK_STR(halt->error, "");
    CHECK(!unsalt_pipeline_resolve(p, halt->topic, halt->partition, NULL, 0, UNSALT_PIPELINE_SKIP_IT));
}

static unsalt_pipeline_res_t refuse(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return UNSALT_PIPELINE_FAIL;
}

Test(pipeline_halted, records_without_a_key, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("");
    work.deliver = refuse;
    mock_write(&mock, "t", 0, NULL, "payload", 7, NULL, NULL, 0);
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED) == 1);
    CHECK_I64(unsalt_pipeline_halted(p, on_keyless, p), 1);
    CHECK(pipework_until_done(&work, p, 1));
    pipework_close(&work, p, &mock);
}

/* What a session that goes on waits for is explained, too. */
static unsalt_pipeline_res_t again(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "try %u", (unsigned)job->attempt);
    return atomic_load(&mended) ? UNSALT_PIPELINE_OK : UNSALT_PIPELINE_RETRY;
}

Test(pipeline_halted, a_retry_is_explained, .timeout = 120) {
    char text[1024];
    unsalt_pipeline_t *p = open_one("pipeline.retry.backoff.ms=60000 pipeline.retry.backoff.max.ms=60000 "
                                    "revoke.timeout.ms=100");
    work.deliver = again;
    pipework_send(&mock, "s", 1, 2);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).state[UNSALT_PIPELINE_IN_REDELIVERING] == 1);
    PIPEWORK_UNTIL(&work, p, pipework_prepared(&work) == 2);
    explain(p, "s", text, sizeof(text));
    CHECK_THAT(strstr(text, "  first 1, t [0] offset 0: redelivering: try 1\n"), "%s", text);
    pipework_close(&work, p, &mock);
}

/* ---- nothing is read on */

/* It says which session has piled up most. */
Test(pipeline_halted, a_full_pipeline_says_because_of_whom, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.records=10 pipeline.halted.records=50");
    work.deliver = bad_three;
    pipework_send(&mock, "small", 1, 5);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED) == 1); /* before the other piles up */
    pipework_send(&mock, "large", 1, 1000);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED_FULL) == 1);
    const char *text = heard.text[UNSALT_EVENT_PIPELINE_HALTED_FULL];
    CHECK_THAT(strstr(text, "session \"large\" 3, lane 0, t [0] offset 7: "), "%s", text);
    CHECK_THAT(strstr(text, "of all 2 halted sessions"), "%s", text);
    CHECK_U64(heard.first[UNSALT_EVENT_PIPELINE_HALTED_FULL], 3);
    struct listed listed;
    atomic_store(&mended, true);
    CHECK_I64(list(p, &listed, true), 2);
    CHECK(pipework_until(&work, p, 1005));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* ---- no worker is left */

static atomic_bool let_go;

static bool is_let_go(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&let_go);
}

static unsalt_pipeline_res_t first_hangs(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq == 1) {
        pipework_hold(w, job, is_let_go);
    }
    return UNSALT_PIPELINE_OK;
}

/*
 * Each attempt of one record takes a worker for good, and the others' phase 1 is never started: that was told by
 * nothing, since only calls that run have a limit.
 */
Test(pipeline_halted, calls_that_hang_take_every_worker, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=2 pipeline.prepare.timeout.ms=50 pipeline.prepare.retries=1000 "
                                    "pipeline.retry.backoff.ms=1 pipeline.retry.backoff.max.ms=1");
    work.prepare = first_hangs;
    pipework_send(&mock, "s", 1, 1);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).strays == 2);
    pipework_send(&mock, "other", 2, 20);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_NO_WORKER) == 1);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_PIPELINE_NO_WORKER], "all 2 workers"), "%s",
               heard.text[UNSALT_EVENT_PIPELINE_NO_WORKER]);
    for (int i = 0; i < 20; i++) {
        pipework_poll(&work, p, 1);
    }
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_NO_WORKER), 1);
    atomic_store(&let_go, true);
    CHECK(pipework_until(&work, p, 20));
    pipework_close(&work, p, &mock);
}

/* ---- dead letters */

static unsigned lines;
static char line[600];

static void on_log(void *opaque, int level, const char *facility, const char *text) {
    (void)opaque;
    (void)facility;
    lines++;
    if (level <= 3) {
        snprintf(line, sizeof(line), "%s", text);
    }
}

/* There is nowhere to put it: the call says so, in the log as well, and the session stands as before. */
Test(pipeline_halted, a_dead_letter_that_has_nowhere_to_go, .timeout = 120) {
    struct listed listed;
    char errstr[256];
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    heard_init(&heard);
    unsalt_conf_t *conf = mock_conf("", &heard);
    unsalt_conf_set_log_cb(conf, on_log, NULL);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), conf, &callbacks, errstr, sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    work.deliver = bad_three;
    pipework_send(&mock, "s", 1, 5);
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_HALTED) == 1);
    unsigned before = lines;
    CHECK_I64(unsalt_pipeline_resolve(p, "t", 0, "s", 1, UNSALT_PIPELINE_DEAD_LETTER),
              RD_KAFKA_RESP_ERR__NOT_CONFIGURED);
    CHECK_U64(lines, before + 1);
    CHECK_THAT(strstr(line, "pipeline.dead.letter.topic") && strstr(line, "t [0]"), "%s", line);
    CHECK_I64(list(p, &listed, false), 1);
    pipework_close(&work, p, &mock);
}

/* The event has the topic, what failed, and what the callback says of its own failure. */
static unsalt_pipeline_res_t store_fails_once(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "disk full");
    return job->attempt == 1 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

Test(pipeline_halted, why_a_dead_letter_was_not_stored, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.deliver.failure=dead-letter pipeline.retry.backoff.ms=1");
    work.deliver = bad_three;
    work.bury = store_fails_once;
    pipework_send(&mock, "s", 1, 4);
    CHECK(pipework_until_done(&work, p, 4));
    PIPEWORK_UNTIL(&work, p, heard_count(&heard, UNSALT_EVENT_PIPELINE_NOT_BURIED) == 1);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_PIPELINE_NOT_BURIED],
                      "its dead letter (deliver refused) could not be stored by the dead_letter callback, tried again: "
                      "disk full"),
               "%s", heard.text[UNSALT_EVENT_PIPELINE_NOT_BURIED]);
    CHECK_STR(work.buried.records[0].error, "no such account: s");
    pipework_close(&work, p, &mock);
}

/* The topic is asked for before anything is read. */
Test(pipeline_halted, a_dead_letter_topic_that_is_not_there, .timeout = 120) {
    char errstr[256];
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    heard_init(&heard);
    rd_kafka_mock_topic_set_error(mock.cluster, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    unsalt_conf_t *conf = mock_conf("pipeline.dead.letter.topic=gone", &heard);
    unsalt_conf_set_log_cb(conf, on_log, NULL);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), conf, &callbacks, errstr, sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK_I64(mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING),
              RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    CHECK_THAT(strstr(line, "pipeline.dead.letter.topic=gone: topic gone for dead letters isn't there") &&
                   strstr(line, "pipeline.dead.letter.create=true"), "%s", line);
    rd_kafka_mock_topic_set_error(mock.cluster, "gone", RD_KAFKA_RESP_ERR_NO_ERROR); /* the mock has made it, too */
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    pipework_close(&work, p, &mock);
}

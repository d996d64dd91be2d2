/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of a pipeline seen from within its callbacks, and what a close waits for. */
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { WAIT_MS = 10000, LONG_MS = 2 * WAIT_MS };

static struct mock mock;
static struct pipework work;
static struct heard heard;
static atomic_int wanted_at_first, unwanted, ended;

static unsalt_pipeline_t *open_one(const char *settings) {
    char errstr[256];
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    heard_init(&heard);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), mock_conf(settings, &heard), &callbacks,
                                               errstr, sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    return p;
}

/* Works until nobody wants it any more, for as long as a test waits at most. */
static void work_while_wanted(const unsalt_pipeline_job_t *job) {
    uint64_t until = now_ms() + WAIT_MS;
    wanted_at_first += unsalt_pipeline_wanted(job);
    while (unsalt_pipeline_wanted(job) && now_ms() < until) {
        sleep_ms(1);
    }
    unwanted += !unsalt_pipeline_wanted(job);
}

/* ---- a limit that is over while the thread that polls is in the callback */

static unsalt_pipeline_res_t slow_once(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->seq == 2) {
        work_while_wanted(job);
    }
    return UNSALT_PIPELINE_OK;
}

/* here: on the thread that polls, which tells it when it is back. */
static void slow_deliver(const char *settings, bool here) {
    unsalt_pipeline_t *p = open_one(settings);
    work.deliver = slow_once;
    pipework_send(&mock, "s", 1, 5);
    CHECK(pipework_until(&work, p, 5));
    for (uint64_t until = now_ms() + WAIT_MS; pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_DELIVERED] < 5 &&
                                              now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK_I64(wanted_at_first, 1);
    CHECK_I64(unwanted, 1);
    CHECK_U64(pipework_stats(p).timeouts[UNSALT_PIPELINE_DELIVER], 1);
    CHECK_U64(pipework_stats(p).failures[UNSALT_PIPELINE_DELIVER], 0);
    CHECK_U64(pipework_stats(p).attempts[UNSALT_PIPELINE_DELIVER], 5);
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock); /* what is done is settled by then, so all of it is told */
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_PIPELINE_SLOW), 1);
    CHECK_U64(heard.first[UNSALT_EVENT_PIPELINE_SLOW], 2);
    CHECK(!here || strstr(heard.text[UNSALT_EVENT_PIPELINE_SLOW], "deliver took longer than its limit"));
}

TEST(pipeline_limits, of_a_deliver_on_the_thread_that_polls) {
    slow_deliver("pipeline.deliver.timeout.ms=1000 pipeline.delivery.threads=0", true);
}

TEST(pipeline_limits, of_a_deliver_on_a_thread_of_its_own) {
    slow_deliver("pipeline.deliver.timeout.ms=1000 pipeline.delivery.threads=1", false);
}

/* Nobody polls while it runs. What it returns is discarded, as it was told. */
TEST(pipeline_limits, of_a_prepare_while_nobody_polls) {
    unsalt_pipeline_t *p = open_one("pipeline.prepare.timeout.ms=1000 pipeline.prepare.retries=0 "
                                    "pipeline.prepare.failure=skip pipeline.workers=1");
    work.prepare = slow_once;
    pipework_send(&mock, "s", 1, 3);
    for (uint64_t until = now_ms() + WAIT_MS; wanted_at_first < 1 && now_ms() < until;) {
        unsalt_pipeline_poll(p, 1);
    }
    for (uint64_t until = now_ms() + LONG_MS; unwanted < 1 && now_ms() < until;) {
        sleep_ms(1);
    }
    CHECK_I64(unwanted, 1);
    for (uint64_t until = now_ms() + WAIT_MS; heard_count(&heard, UNSALT_EVENT_PIPELINE_SKIPPED) < 1 &&
                                              now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK(pipework_until(&work, p, 2));
    CHECK_U64(heard.first[UNSALT_EVENT_PIPELINE_SKIPPED], 2);
    CHECK_U64(pipework_stats(p).timeouts[UNSALT_PIPELINE_PREPARE], 1);
    CHECK_U64(pipework_stats(p).failures[UNSALT_PIPELINE_PREPARE], 1);
    pipework_close(&work, p, &mock);
}

/* A dead letter has no limit, however slow the deliver before it was. */
static unsalt_pipeline_res_t slow_and_fails(struct pipework *w, const unsalt_pipeline_job_t *job) {
    slow_once(w, job);
    return job->seq == 2 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static atomic_int letters_wanted;

static unsalt_pipeline_res_t bury_if_wanted(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    letters_wanted += unsalt_pipeline_wanted(job);
    return UNSALT_PIPELINE_OK;
}

TEST(pipeline_limits, a_dead_letter_has_none) {
    unsalt_pipeline_t *p = open_one("pipeline.deliver.timeout.ms=200 pipeline.deliver.retries=0 "
                                    "pipeline.deliver.failure=dead-letter");
    work.deliver = slow_and_fails;
    work.bury = bury_if_wanted;
    pipework_send(&mock, "s", 1, 3);
    CHECK(pipework_until(&work, p, 2));
    CHECK_U64(pipework_buried(&work), 1);
    CHECK(work.buried.records[0].failure.reason == UNSALT_PIPELINE_BY_TIMEOUT);
    CHECK_I64(letters_wanted, 1);
    pipework_close(&work, p, &mock);
}

/* ---- a close waits for what still runs, though it is cancelled, and its generation over */

static unsalt_pipeline_res_t refuse(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return UNSALT_PIPELINE_FAIL;
}

static unsalt_pipeline_res_t end_late(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    work_while_wanted(job); /* until the close gives up on it */
    sleep_ms(300);
    ended = 1;
    return UNSALT_PIPELINE_OK;
}

static void close_while(const char *settings, bool buries) {
    unsalt_pipeline_t *p = open_one(settings);
    work.deliver = buries ? refuse : end_late;
    work.bury = end_late;
    pipework_send(&mock, "s", 1, 1);
    for (uint64_t until = now_ms() + WAIT_MS; wanted_at_first < 1 && now_ms() < until;) {
        unsalt_pipeline_poll(p, 20);
    }
    CHECK_I64(wanted_at_first, 1);
    CHECK(!unsalt_pipeline_close(p));
    CHECK_I64(unwanted, 1);
    CHECK_I64(ended, 1);
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED], 1);
    pipework_close(&work, p, &mock);
}

TEST(pipeline_limits, a_close_waits_for_a_deliver) {
    close_while("pipeline.delivery.threads=1 revoke.timeout.ms=5000", false);
}

TEST(pipeline_limits, a_close_waits_for_a_dead_letter) {
    close_while("pipeline.delivery.threads=1 revoke.timeout.ms=5000 pipeline.deliver.failure=dead-letter", true);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Seldom cases: partitions whose records have no key, a late record that is alone, a close with calls nobody awaits. */
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

static struct mock mock;
static struct pipework work;
static struct heard heard;

/* ---- no key */

static atomic_uint begun; /* a bit for each partition of which a deliver has begun */

static bool have_both(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&begun) == 3;
}

static unsalt_pipeline_res_t meet_the_other(struct pipework *w, const unsalt_pipeline_job_t *job) {
    CHECK(!job->session);
    atomic_fetch_or(&begun, 1u << job->message->partition);
    pipework_hold(w, job, have_both);
    return UNSALT_PIPELINE_OK;
}

/* They are in one order per partition, and partitions side by side. */
Test(pipeline_edges, records_without_a_key_in_two_partitions, .timeout = 120) {
    unsalt_pipeline_t *p = pipework_start(&work, &mock, &heard, "pipeline.workers=2 pipeline.delivery.threads=2", 2);
    work.deliver = meet_the_other;
    for (int i = 0; i < 20; i++) {
        mock_write(&mock, "t", i % 2, NULL, "payload", 7, NULL, NULL, 0);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 20));
    int64_t last[2] = {-1, -1};
    for (size_t i = 0; i < work.delivered.count; i++) {
        const struct pipework_record *record = &work.delivered.records[i];
        CHECK_I64(record->offset, last[record->partition] + 1);
        last[record->partition]++;
    }
    pipework_close(&work, p, &mock);
}

/* ---- late */

static unsalt_pipeline_res_t late_fails(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->state == UNSALT_STATE_LATE ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

/* Nothing of its session is inside any more that would tell how far it is: above the record it is, at least. */
Test(pipeline_edges, the_cursor_of_a_late_record_alone, .timeout = 120) {
    unsalt_pipeline_t *p = pipework_start(
        &work, &mock, &heard, "gap.timeout.ms=0 pipeline.workers=1 pipeline.deliver.failure=dead-letter", 1);
    work.deliver = late_fails;
    mock_send(&mock, "t", 0, "s", 1, 1);
    mock_send(&mock, "t", 0, "s", 3, 1);
    mock_flush(&mock);
    CHECK(pipework_until_done(&work, p, 2));
    mock_send(&mock, "t", 0, "s", 2, 1);
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, pipework_buried(&work) == 1);
    CHECK_U64(work.buried.records[0].seq, 2);
    CHECK_U64(work.buried.records[0].failure.cursor, 3);
    pipework_close(&work, p, &mock);
}

/* ---- a close */

static atomic_bool running, returned;

static unsalt_pipeline_res_t returns_late(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    atomic_store(&running, true);
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; unsalt_pipeline_wanted(job) && now_ms() < until;) {
        sleep_ms(1);
    }
    sleep_ms(300);
    atomic_store(&returned, true);
    return UNSALT_PIPELINE_OK;
}

/* Its record has not got its turn, and is given up at once; the call is waited for all the same. */
Test(pipeline_edges, a_close_waits_for_a_prepare_that_nobody_waits_for, .timeout = 120) {
    unsalt_pipeline_t *p = pipework_start(&work, &mock, &heard,
                                          "gap.timeout.ms=-1 pipeline.workers=1 revoke.timeout.ms=60000", 1);
    work.prepare = returns_late;
    mock_send(&mock, "t", 0, "s", 2, 1);
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, atomic_load(&running));
    CHECK(!unsalt_pipeline_close(p));
    CHECK(atomic_load(&returned));
    CHECK_U64(pipework_stats(p).strays, 0);
    CHECK_U64(pipework_stats(p).outcome[UNSALT_PIPELINE_WAS_CANCELLED], 1);
    pipework_close(&work, p, &mock);
}

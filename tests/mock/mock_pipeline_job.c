/* SPDX-License-Identifier: BSD-2-Clause */
/* What the callbacks of a pipeline are told of their record, field by field; and how many bytes may be inside. */
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { LANES = 2, LAST = 6, MISSING = 3, HELD_MS = 50 };

static struct mock mock;
static struct pipework work;
static struct heard heard;

/* ---- fields */

/* Calls of deliver by number, of a session of one delivery thread; of prepare under the lock of its own. */
static unsalt_pipeline_job_t delivered[LAST + 1], prepared[LAST + 1];
static atomic_uint early; /* calls of prepare before the turn */

static void check_common(const unsalt_pipeline_job_t *job, unsalt_pipeline_phase_t phase) {
    CHECK_U64(job->size, sizeof(*job));
    CHECK_BYTES(job->session, job->session_len, "s", 1);
    CHECK(job->message && !job->message->err);
    CHECK_U64(job->epoch, 1);
    CHECK_I64(job->lane, (int64_t)(job->seq % LANES));
    CHECK_I64(job->message->partition, job->lane);
    CHECK(job->phase == phase);
    CHECK_U64(job->attempt, 1);
    CHECK_STR(job->errstr, "");
    CHECK(job->errstr_size >= 64);
}

static unsalt_pipeline_res_t on_prepare(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    check_common(job, UNSALT_PIPELINE_PREPARE);
    if (job->seq > MISSING) {
        CHECK(job->state == UNSALT_STATE_HELD); /* it waits for the missing one */
        atomic_fetch_add(&early, 1);
    }
    prepared[job->seq] = *job;
    return UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t on_deliver(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    check_common(job, UNSALT_PIPELINE_DELIVER);
    delivered[job->seq] = *job;
    return UNSALT_PIPELINE_OK;
}

static void tells(const char *settings) {
    unsalt_pipeline_t *p = pipework_start(&work, &mock, &heard, settings, LANES);
    work.prepare = on_prepare;
    work.deliver = on_deliver;
    for (uint64_t seq = 1; seq <= LAST; seq++) {
        if (seq != MISSING) {
            mock_send(&mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        }
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, atomic_load(&early) == LAST - MISSING);
    for (uint64_t until = now_ms() + HELD_MS; now_ms() <= until;) {
        pipework_poll(&work, p, 10);
    }
    CHECK(!unsalt_flush_gaps(unsalt_pipeline_consumer(p)));
    CHECK(pipework_until(&work, p, LAST - 1));
    for (uint64_t seq = 1; seq <= LAST; seq++) {
        const unsalt_pipeline_job_t *job = &delivered[seq];
        CHECK_U64(job->seq, seq == MISSING ? 0 : seq);
        CHECK_U64(prepared[seq].seq, job->seq);
        CHECK_I64(job->after_gap, seq == MISSING + 1);
        if (seq != MISSING) {
            CHECK(job->state == UNSALT_STATE_RELEASED);
        }
        if (seq > MISSING) {
            CHECK_THAT(job->waited_ns >= HELD_MS * UINT64_C(1000000), "%d waited for %d us", (int)seq,
                       (int)(job->waited_ns / 1000));
        }
        CHECK_U64(prepared[seq].waited_ns, 0);
    }
    pipework_close(&work, p, &mock);
}

Test(pipeline_job, fields_on_the_thread_that_polls, .timeout = 120) {
    tells("gap.timeout.ms=-1 pipeline.workers=1");
}

Test(pipeline_job, fields_on_a_delivery_thread, .timeout = 120) {
    tells("gap.timeout.ms=-1 pipeline.workers=1 pipeline.delivery.threads=1");
}

/* ---- bytes */

enum { EACH = 8 /* key and payload of what pipework_send() sends */, ROOM = 5 * EACH };

static atomic_bool gate;

static bool is_open(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&gate);
}

static unsalt_pipeline_res_t wait_at_gate(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pipework_hold(w, job, is_open);
    return UNSALT_PIPELINE_OK;
}

/* Released and not done: five records fit, the sixth stays where it is. */
Test(pipeline_job, bytes_are_bounded, .timeout = 120) {
    unsalt_pipeline_t *p = pipework_start(&work, &mock, &heard, "pipeline.workers=1 pipeline.bytes=40", 1);
    work.prepare = wait_at_gate;
    pipework_send(&mock, "s", 1, 100);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).full > 0);
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.bytes, ROOM);
    CHECK_U64(stats.entered, ROOM / EACH);
    atomic_store(&gate, true);
    CHECK(pipework_until(&work, p, 100));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* One that is larger than all the room comes alone. */
Test(pipeline_job, one_record_may_exceed_them, .timeout = 120) {
    unsalt_pipeline_t *p = pipework_start(&work, &mock, &heard, "pipeline.workers=1 pipeline.bytes=4", 1);
    work.prepare = wait_at_gate;
    pipework_send(&mock, "s", 1, 10);
    PIPEWORK_UNTIL(&work, p, pipework_stats(p).full > 0);
    CHECK_U64(pipework_stats(p).entered, 1);
    atomic_store(&gate, true);
    CHECK(pipework_until(&work, p, 10));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time in a pipeline: a member that hasn't polled for max.poll.interval.ms starts no `deliver` any more, since the
 * group may have given its partitions away; and how long calls take is counted.
 */
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { SESSIONS = 4, EACH = 500, ALL = SESSIONS * EACH, THREADS = 2, INTERVAL_MS = 1000 };

static struct mock mock;
static struct pipework work;
static struct heard heard;

static unsalt_pipeline_t *open_one(const char *settings, const char *session_ms, const char *poll_ms) {
    char errstr[256];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    heard_init(&heard);
    pipework_init(&work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    rd_kafka_conf_t *rk_conf = mock_rd_conf(&mock, "g");
    mock_rd_set(rk_conf, "session.timeout.ms", session_ms);
    mock_rd_set(rk_conf, "max.poll.interval.ms", poll_ms);
    unsalt_pipeline_t *p = unsalt_pipeline_new(rk_conf, mock_conf(settings, &heard), &callbacks, errstr,
                                               sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    return p;
}

/* ---- a hang */

static atomic_bool flows;
static _Atomic uint64_t closed_at; /* ms; 0: not yet known */
static atomic_uint late;           /* calls of deliver that began then or later */

static bool does_flow(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&flows);
}

static unsalt_pipeline_res_t note_late(struct pipework *w, const unsalt_pipeline_job_t *job) {
    uint64_t closed = atomic_load(&closed_at);
    atomic_fetch_add(&late, closed > 0 && now_ms() > closed);
    pipework_hold(w, job, does_flow);
    sleep_ms(5);
    return UNSALT_PIPELINE_OK;
}

/*
 * Everything is ready for delivery, and nobody polls. A thread may have looked at the clock before and be held up on
 * its way into the callback: so one call each may be late, and not one more. With the next poll it goes on.
 */
Test(pipeline_hang, without_polls_nothing_is_delivered_any_more, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.delivery.threads=2", "1000", "1000");
    work.deliver = note_late;
    for (uint64_t seq = 1; seq <= EACH; seq++) {
        for (int s = 0; s < SESSIONS; s++) {
            char name[8];
            snprintf(name, sizeof(name), "s%d", s);
            mock_send(&mock, "t", 0, name, seq, 1);
        }
    }
    mock_flush(&mock);
    PIPEWORK_UNTIL(&work, p, pipework_prepared(&work) == ALL && pipework_stats(p).waiting_turn == 0 &&
                                 pipework_stats(p).entered == ALL);
    CHECK_U64(pipework_delivered(&work), 0);
    pipework_poll(&work, p, 0);
    atomic_store(&closed_at, now_ms() + INTERVAL_MS); /* at the latest */
    atomic_store(&flows, true);
    while (now_ms() < atomic_load(&closed_at) + INTERVAL_MS) {
        sleep_ms(10);
    }
    CHECK_THAT(pipework_delivered(&work) < ALL - 100, "nothing is left that could have been delivered too late");
    CHECK_THAT(atomic_load(&late) <= THREADS, "%u calls began after max.poll.interval.ms", atomic_load(&late));
    atomic_store(&closed_at, 0);
    CHECK(pipework_until(&work, p, ALL));
    CHECK(pipework_in_order(&work, 1));
    pipework_close(&work, p, &mock);
}

/* ---- histograms */

static unsalt_pipeline_res_t third_time(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq % 3 == 0 && job->attempt < 3 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static uint64_t sum_of(const uint64_t *counts) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        sum += counts[i];
    }
    return sum;
}

/* Every call is counted once, where it belongs; so are the waits, for a worker and for the turn. */
Test(pipeline_hang, calls_land_in_the_histograms, .timeout = 120) {
    unsalt_pipeline_t *p = open_one("pipeline.workers=2 pipeline.retry.backoff.ms=1", "6000", "300000");
    const uint64_t ms = 1000000;
    work.prepare_us = 3000;
    work.deliver_us = 2000;
    work.prepare = work.deliver = third_time;
    for (uint64_t seq = 1; seq <= 30; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    CHECK(pipework_until(&work, p, 30));
    unsalt_pipeline_stats_t stats = pipework_stats(p);
    CHECK_U64(stats.attempts[UNSALT_PIPELINE_PREPARE], 50);
    CHECK_U64(sum_of(stats.prepare_count), 50);
    CHECK_U64(sum_of(stats.deliver_count), 50);
    CHECK_U64(sum_of(stats.queue_count), 30);
    CHECK_U64(sum_of(stats.turn_count), 30);
    /* A sleep is never shorter: no call is below its bucket, and the first ones of two threads made the others wait. */
    for (int i = 0; unsalt_wait_bounds()[i] < 2 * ms; i++) {
        CHECK_U64(stats.prepare_count[i] + stats.deliver_count[i], 0);
    }
    CHECK(stats.prepare_sum_ns >= 50 * 3 * ms);
    CHECK(stats.deliver_sum_ns >= 50 * 2 * ms);
    CHECK(stats.queue_sum_ns >= 3 * ms);
    CHECK(stats.turn_sum_ns > 0);
    pipework_close(&work, p, &mock);
}

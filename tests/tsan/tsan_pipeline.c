/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline with workers and delivery threads, failures, halted sessions that another thread resolves, time limits,
 * statistics from a third thread, and partitions that are taken away and given back in the middle of it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

#define RECORDS 600
#define SESSIONS 4

static unsalt_pipeline_t *pipeline;
static struct pipework work;
static atomic_bool over;
static atomic_uint halts;

static unsalt_pipeline_res_t prepare(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->seq % 97 == 0 && job->attempt == 1) {
        while (unsalt_pipeline_wanted(job)) { /* over its limit */
            sleep_ms(1);
        }
    }
    return job->seq % 31 == 0 && job->attempt < 2 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static atomic_bool mended;

static unsalt_pipeline_res_t deliver(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->seq == 200 && !atomic_load(&mended)) {
        snprintf(job->errstr, job->errstr_size, "not yet");
        return UNSALT_PIPELINE_FAIL;
    }
    return job->seq % 41 == 0 && job->attempt < 2 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    if (event->type == UNSALT_EVENT_PIPELINE_HALTED) {
        atomic_fetch_add(&halts, 1);
    }
}

static void on_halted(void *opaque, const unsalt_pipeline_halt_t *halt) {
    unsigned *count = opaque;
    (*count)++;
    if (atomic_load(&halts) >= SESSIONS) {
        unsalt_pipeline_resolve(pipeline, halt->topic, halt->partition, halt->session, halt->session_len,
                                UNSALT_PIPELINE_TRY_AGAIN);
    }
}

/* Looks on, and resolves whatever stands once something does. */
static void *look(void *opaque) {
    (void)opaque;
    while (!atomic_load(&over)) {
        unsalt_pipeline_stats_t stats;
        char text[8192], name[8];
        unsigned listed = 0;
        if (unsalt_pipeline_halted(pipeline, on_halted, &listed) != (int64_t)listed) {
            abort();
        }
        unsalt_pipeline_stats(pipeline, &stats, sizeof(stats));
        unsalt_pipeline_stats_json(&stats, sizeof(stats), text, sizeof(text));
        if (!stats.conserved) {
            abort();
        }
        if (atomic_load(&halts) >= SESSIONS) {
            atomic_store(&mended, true);
        }
        for (int s = 0; s < SESSIONS && atomic_load(&halts) > 0; s++) {
            snprintf(name, sizeof(name), "s%d", s);
            for (int part = 0; part < 2; part++) {
                unsalt_pipeline_resolve(pipeline, "t", part, name, strlen(name), UNSALT_PIPELINE_TRY_AGAIN);
            }
        }
        sleep_ms(2);
    }
    return NULL;
}

/* Every session's numbers, each at least once, none before a lower one. */
static bool complete(void) {
    static bool seen[SESSIONS][RECORDS + 1];
    size_t count = 0;
    memset(seen, 0, sizeof(seen));
    pthread_mutex_lock(&work.lock);
    for (size_t i = 0; i < work.delivered.count; i++) {
        const struct pipework_record *record = &work.delivered.records[i];
        bool *mine = &seen[record->session[1] - '0'][record->seq];
        count += !*mine;
        *mine = true;
    }
    pthread_mutex_unlock(&work.lock);
    return count == SESSIONS * RECORDS;
}

int main(void) {
    struct mock mock;
    pthread_t looker;
    char errstr[256];
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    pipework_init(&work);
    work.prepare = prepare;
    work.deliver = deliver;
    work.prepare_us = 200;
    unsalt_conf_t *conf = mock_conf("pipeline.workers=6 pipeline.delivery.threads=3 pipeline.records=100 "
                                    "pipeline.retry.backoff.ms=2 pipeline.prepare.timeout.ms=300 "
                                    "pipeline.halted.records=100000 gap.timeout.ms=-1 revoke.timeout.ms=20000", NULL);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    pipeline = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), conf, &callbacks, errstr, sizeof(errstr));
    if (!pipeline || mock_assign(unsalt_pipeline_consumer(pipeline), "t", 2, RD_KAFKA_OFFSET_BEGINNING)) {
        return 1;
    }
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        for (int s = 0; s < SESSIONS; s++) {
            char name[8];
            snprintf(name, sizeof(name), "s%d", s);
            mock_send(&mock, "t", (int32_t)(seq % 2), name, seq, 2);
        }
    }
    mock_flush(&mock);
    pthread_create(&looker, NULL, look, NULL);
    bool taken = false;
    for (uint64_t until = now_ms() + 120000; now_ms() < until && !complete();) {
        unsalt_pipeline_poll(pipeline, 20);
        if (!taken && pipework_delivered(&work) > RECORDS) {
            taken = true; /* from what is committed, with work under way */
            if (mock_assign(unsalt_pipeline_consumer(pipeline), "t", 2, RD_KAFKA_OFFSET_BEGINNING)) {
                return 1;
            }
        }
    }
    bool done = complete(), ordered = pipework_never_overtakes(&work);
    atomic_store(&over, true);
    pthread_join(looker, NULL);
    rd_kafka_resp_err_t err = unsalt_pipeline_close(pipeline);
    unsalt_pipeline_destroy(pipeline);
    bool clean = pipework_clean(&work);
    printf("complete %d, ordered %d, taken %d, close %d, clean %d, halts %u\n", done, ordered, taken, (int)err, clean,
           atomic_load(&halts));
    pipework_free(&work);
    mock_close(&mock);
    return done && ordered && taken && !err && clean && atomic_load(&halts) >= SESSIONS ? 0 : 1;
}

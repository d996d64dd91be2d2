/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline without memory: each allocation of the library fails once, at the making of the pipeline and while it
 * works, and then a whole stretch of them. Nothing is lost, delivered twice or out of order, nothing hangs, nothing
 * leaks. The library's allocator is replaced by one that can be told to fail, on all threads.
 */
#include <base/mem.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { SESSIONS = 3, EACH = 12, ALL = SESSIONS * EACH, MAKES_MOST = 200, ROUNDS_MOST = 120 };

/* From allocation `from` on (counted since armed, 0: the first) `failing` fail. */
static atomic_llong calls, from, failing, failed, alive;
static atomic_bool armed;

static bool fails(void) {
    if (!atomic_load(&armed)) {
        return false;
    }
    long long n = atomic_fetch_add(&calls, 1), first = atomic_load(&from);
    bool hit = n >= first && n < first + atomic_load(&failing);
    atomic_fetch_add(&failed, hit);
    return hit;
}

static void *alloc(void *user, size_t size) {
    (void)user;
    void *block = fails() ? NULL : malloc(size);
    atomic_fetch_add(&alive, block != NULL);
    return block;
}

static void *resize(void *user, void *ptr, size_t size) {
    (void)user;
    void *block = fails() ? NULL : realloc(ptr, size);
    atomic_fetch_add(&alive, block && !ptr);
    return block;
}

static void release(void *user, void *ptr) {
    (void)user;
    atomic_fetch_sub(&alive, ptr != NULL);
    free(ptr);
}

/* Instead of that of base/mem_default.c, which then isn't linked. */
const struct unsalt_mem us_mem_default = {NULL, alloc, resize, release};

static void arm(long long first, long long count) {
    atomic_store(&calls, 0);
    atomic_store(&failed, 0);
    atomic_store(&from, first);
    atomic_store(&failing, count);
    atomic_store(&armed, true);
}

static void disarm(void) {
    atomic_store(&armed, false);
}

static struct mock mock;
static struct pipework work;

/* ---- it is made */

/* Each allocation in turn: no pipeline, a reason, and both configurations are still the caller's. */
Test(pipeline_memory, when_it_is_made, .timeout = 120) {
    unsalt_pipeline_t *p = NULL;
    long long n = 0;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (; !p && n < MAKES_MOST; n++) {
        char errstr[256] = "";
        pipework_init(&work);
        unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
        callbacks.dead_letter = NULL;
        long long before = atomic_load(&alive);
        rd_kafka_conf_t *rk_conf = mock_rd_conf(&mock, "g");
        unsalt_conf_t *conf = mock_conf("pipeline.dead.letter.topic=t pipeline.delivery.threads=1", NULL);
        arm(n, 1);
        p = unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof(errstr));
        disarm();
        if (p) {
            unsalt_pipeline_destroy(p);
        } else {
            CHECK_THAT(strstr(errstr, "memory"), "allocation %lld: \"%s\"", n, errstr);
            rd_kafka_conf_destroy(rk_conf);
            unsalt_conf_destroy(conf);
        }
        CHECK_THAT(atomic_load(&alive) == before, "allocation %lld: %lld blocks are left", n,
                   (long long)atomic_load(&alive) - before);
        pipework_free(&work);
    }
    CHECK_THAT(p && n > 20, "%lld allocations", n);
    mock_close(&mock);
}

/* ---- it works */

/* Everything that needs memory: error texts, retries, dead letters and their failures, what is halted. */
static unsalt_pipeline_res_t prepare(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "prepare of %d", (int)job->seq);
    return job->seq % 5 == 0 && job->attempt == 1 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t deliver(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "deliver of %d", (int)job->seq);
    return job->seq % 4 == 0 ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t bury(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "no room for %d", (int)job->seq);
    return job->attempt == 1 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

/* Number 1 comes last: so what is behind it is prepared, and waits for its turn, before anything is delivered. */
static void fill(void) {
    char name[8];
    for (uint64_t seq = EACH; seq >= 1; seq--) {
        for (int s = 0; s < SESSIONS; s++) {
            snprintf(name, sizeof(name), "s%d", s);
            mock_send(&mock, "t", 0, name, seq == 1 ? 1 : 2 + EACH - seq, 1);
        }
    }
    mock_flush(&mock);
}

static size_t gone(void) {
    return pipework_delivered(&work) + pipework_buried(&work);
}

/* A session's records, delivered or buried, in order. */
static void check_all(long long n) {
    CHECK_U64(gone(), ALL);
    for (int s = 0; s < SESSIONS; s++) {
        uint64_t delivered = 0, buried = 0;
        char name[8];
        snprintf(name, sizeof(name), "s%d", s);
        for (size_t i = 0; i < work.delivered.count; i++) {
            const struct pipework_record *record = &work.delivered.records[i];
            if (strcmp(record->session, name) == 0) {
                CHECK_THAT(record->seq > delivered && record->seq % 4, "allocation %lld: %s %d after %d", n, name,
                           (int)record->seq, (int)delivered);
                delivered = record->seq;
            }
        }
        for (size_t i = 0; i < work.buried.count; i++) {
            const struct pipework_record *record = &work.buried.records[i];
            if (strcmp(record->session, name) == 0) {
                CHECK_U64(record->seq, buried + 4);
                buried = record->seq;
            }
        }
        CHECK_U64(delivered, EACH - 1);
        CHECK_U64(buried, EACH);
    }
}

static void ignore(void *opaque, const unsalt_pipeline_halt_t *halt) {
    (void)opaque;
    (void)halt;
}

/* A call says that there is no memory, and nothing else; then it is called again. */
static void work_through(unsalt_pipeline_t *p, long long n) {
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; work.done < ALL && now_ms() < until;) {
        int done = unsalt_pipeline_poll(p, 5);
        CHECK_THAT(done >= 0 || unsalt_last_error() == RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "allocation %lld: %s", n,
                   rd_kafka_err2str(unsalt_last_error()));
        work.done += done > 0 ? (uint64_t)done : 0;
        if (done < 0) {
            sleep_ms(1);
        }
        CHECK(unsalt_pipeline_halted(p, ignore, NULL) >= -1);
    }
    CHECK_THAT(work.done == ALL, "allocation %lld: %d of %d are done", n, (int)work.done, ALL);
}

/* One run in which `count` allocations fail from the nth on. Returns how many did. */
static long long run(const char *settings, long long n, long long count) {
    char errstr[256];
    long long before = atomic_load(&alive);
    pipework_init(&work);
    work.prepare = prepare;
    work.deliver = deliver;
    work.bury = bury;
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(&mock, "g"), mock_conf(settings, NULL), &callbacks, errstr,
                                               sizeof(errstr));
    cr_assert(p, "%s", errstr);
    CHECK(!mock_assign(unsalt_pipeline_consumer(p), "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    arm(n, count);
    work_through(p, n);
    check_all(n);
    CHECK(!unsalt_pipeline_close(p));
    pipework_stats(p);
    unsalt_pipeline_destroy(p);
    disarm();
    CHECK(pipework_clean(&work));
    pipework_free(&work);
    CHECK_THAT(atomic_load(&alive) == before, "allocation %lld: %lld blocks are left", n,
               (long long)atomic_load(&alive) - before);
    return atomic_load(&failed);
}

static void each_in_turn(const char *settings, long long count) {
    long long hits = 0, n = 0;
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    fill();
    for (; n < ROUNDS_MOST; n++) {
        long long hit = run(settings, n, count);
        hits += hit;
        if (hit == 0) {
            break;
        }
    }
    CHECK_THAT(hits > 10, "%lld allocations failed", hits);
    fprintf(stderr, "%lld runs, %lld allocations failed\n", n, hits);
    mock_close(&mock);
}

#define SETTINGS                                                                                                      \
    "pipeline.workers=2 pipeline.retry.backoff.ms=1 pipeline.deliver.failure=dead-letter gap.timeout.ms=-1 "

Test(pipeline_memory, while_it_works, .timeout = 170) {
    each_in_turn(SETTINGS, 1);
}

Test(pipeline_memory, while_it_works_with_delivery_threads, .timeout = 170) {
    each_in_turn(SETTINGS "pipeline.delivery.threads=2", 1);
}

/* So many in a row that whoever tries again at once fails again. */
Test(pipeline_memory, for_a_while, .timeout = 170) {
    each_in_turn(SETTINGS "pipeline.records=8", 25);
}

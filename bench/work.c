/* SPDX-License-Identifier: BSD-2-Clause */
#include "work.h"
#include "topic.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if __has_include(<unsalt/pipeline.h>)
#include <unsalt/pipeline.h>
#define HAS_PIPELINE 1
#else
#define HAS_PIPELINE 0
#endif

enum { WAIT_MS = 30000, QUEUE = 10000 };

const char *work_word(enum work_kind kind) {
    static const char *const words[] = {[WORK_SLEEP] = "sleep", [WORK_RANDOM] = "random", [WORK_BURN] = "burn"};
    return words[kind];
}

bool work_has_pipeline(void) {
    return HAS_PIPELINE;
}

/* ---- the work itself; Peer.java does the same */

static void sleep_us(unsigned us) {
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (us)
        nanosleep(&pause, NULL);
}

static void burn_us(unsigned us) {
    struct timespec began, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < (long)us * 1000);
}

static void do_work(const struct work *work, const rd_kafka_message_t *message) {
    uint32_t offset = (uint32_t)message->offset;
    if (work->kind == WORK_BURN)
        burn_us(work->us);
    else
        sleep_us(work->kind == WORK_RANDOM ? (offset * 2654435761u >> 8) % (work->us + 1) : work->us);
}

/* From the start of the first record's work. */
struct stopwatch {
    const struct work *work;
    struct bench_clock began;
    atomic_flag started;
    atomic_long done;
    long wanted;
};

static void first(struct stopwatch *watch) {
    if (!atomic_flag_test_and_set(&watch->started))
        watch->began = bench_start();
}

/* ---- the pool: one thread reads, the others take from a bounded queue */

struct pool {
    struct stopwatch watch;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    rd_kafka_message_t *queue[QUEUE];
    size_t head, count;
    bool over;
};

static rd_kafka_message_t *take(struct pool *pool) {
    rd_kafka_message_t *message = NULL;
    pthread_mutex_lock(&pool->lock);
    while (pool->count == 0 && !pool->over)
        pthread_cond_wait(&pool->filled, &pool->lock);
    if (pool->count > 0) {
        message = pool->queue[pool->head++ % QUEUE];
        if (pool->count-- == QUEUE)
            pthread_cond_signal(&pool->emptied);
    }
    pthread_mutex_unlock(&pool->lock);
    return message;
}

static void *worker(void *opaque) {
    struct pool *pool = opaque;
    for (rd_kafka_message_t *message; (message = take(pool)) != NULL;) {
        first(&pool->watch);
        do_work(pool->watch.work, message);
        rd_kafka_message_destroy(message);
        atomic_fetch_add(&pool->watch.done, 1);
    }
    return NULL;
}

static void put(struct pool *pool, rd_kafka_message_t *message) {
    if (message->err)
        topic_fail(rd_kafka_message_errstr(message));
    pthread_mutex_lock(&pool->lock);
    while (pool->count == QUEUE)
        pthread_cond_wait(&pool->emptied, &pool->lock);
    pool->queue[(pool->head + pool->count++) % QUEUE] = message;
    pthread_cond_signal(&pool->filled);
    pthread_mutex_unlock(&pool->lock);
}

void work_pool(const struct work *work, int workers, long records, struct bench_runs *runs) {
    static struct pool pool;
    pthread_t threads[WORKERS_MAX];
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, topic_consumer_conf(), NULL, 0);
    memset(&pool, 0, sizeof pool);
    pool.watch = (struct stopwatch){.work = work, .wanted = records, .started = ATOMIC_FLAG_INIT};
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.filled, NULL);
    pthread_cond_init(&pool.emptied, NULL);
    for (int i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, worker, &pool))
            topic_fail("no thread");
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_assign(rk, partitions);
    for (long i = 0; i < records; i++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, WAIT_MS);
        if (!message)
            topic_fail("nothing comes");
        put(&pool, message);
    }
    pthread_mutex_lock(&pool.lock);
    pool.over = true;
    pthread_cond_broadcast(&pool.filled);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    bench_stop(pool.watch.began, 1e6 / (double)records, runs);
    rd_kafka_topic_partition_list_destroy(partitions);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

/* ---- the pipeline */

#if HAS_PIPELINE
/* The sessions seen, each with its last number: the order is checked, not believed. */
struct order {
    struct stopwatch watch;
    uint64_t most; /* the last number of a session that is wanted */
    char id[128][32];
    uint64_t last[128];
    size_t count;
};

static unsalt_pipeline_res_t prepare(void *opaque, const unsalt_pipeline_job_t *job, void **result) {
    struct order *order = opaque;
    (void)result;
    if (job->seq > order->most)
        return UNSALT_PIPELINE_OK; /* no work that nobody counts: thousands are inside when the last one is delivered */
    first(&order->watch);
    do_work(order->watch.work, job->message);
    return UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t deliver(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    struct order *order = opaque;
    size_t i = 0;
    (void)result;
    while (i < order->count && (strlen(order->id[i]) != job->session_len ||
                                memcmp(order->id[i], job->session, job->session_len) != 0))
        i++;
    if (i == order->count) {
        if (i == sizeof order->last / sizeof *order->last || job->session_len >= sizeof order->id[0])
            topic_fail("more sessions than were sent");
        memcpy(order->id[order->count++], job->session, job->session_len);
    }
    if (job->seq != order->last[i] + 1)
        topic_fail("a record out of its order");
    order->last[i] = job->seq;
    if (job->seq <= order->most)
        atomic_fetch_add(&order->watch.done, 1);
    return UNSALT_PIPELINE_OK;
}

void work_pipeline(const struct work *work, int workers, long records, long keys, struct bench_runs *runs) {
    static struct order order;
    unsalt_pipeline_callbacks_t callbacks = {.size = sizeof callbacks, .prepare = prepare, .deliver = deliver,
                                             .opaque = &order};
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    unsalt_conf_t *conf = topic_unsalt_conf();
    char errstr[512], number[16];
    snprintf(number, sizeof number, "%d", workers);
    memset(&order, 0, sizeof order);
    order.watch = (struct stopwatch){.work = work, .wanted = records, .started = ATOMIC_FLAG_INIT};
    order.most = (uint64_t)((records + keys - 1) / keys);
    if (unsalt_conf_set(conf, "pipeline.workers", number, errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "seq.source", "unsalt", errstr, sizeof errstr))
        topic_fail(errstr);
    unsalt_pipeline_t *pipeline = unsalt_pipeline_new(topic_consumer_conf(), conf, &callbacks, errstr, sizeof errstr);
    if (!pipeline)
        topic_fail(errstr);
    if (unsalt_assign(unsalt_pipeline_consumer(pipeline), partitions))
        topic_fail("the partitions can't be assigned");
    double until = bench_wall() + 4.0 * WAIT_MS / 1000;
    while (atomic_load(&order.watch.done) < records)
        if (unsalt_pipeline_poll(pipeline, 1000) < 0 || bench_wall() > until)
            topic_fail("the pipeline stands still");
    /* More than was wanted may have been delivered by then. */
    bench_stop(order.watch.began, 1e6 / (double)atomic_load(&order.watch.done), runs);
    rd_kafka_topic_partition_list_destroy(partitions);
    unsalt_pipeline_close(pipeline);
    unsalt_pipeline_destroy(pipeline);
}
#else
void work_pipeline(const struct work *work, int workers, long records, long keys, struct bench_runs *runs) {
    (void)keys;
    (void)work;
    (void)workers;
    (void)records;
    (void)runs;
    topic_fail("this build has no pipeline");
}
#endif

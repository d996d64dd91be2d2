/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/pipework.h>
#include <time.h>

static void nap(int us) {
    if (us > 0) {
        struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
        nanosleep(&t, NULL);
    }
}

static struct pipework_record record_of(const unsalt_pipeline_job_t *job) {
    struct pipework_record record = {.seq = job->seq, .epoch = job->epoch, .offset = job->message->offset,
                                     .partition = job->message->partition, .state = job->state,
                                     .attempt = job->attempt};
    snprintf(record.session, sizeof(record.session), "%.*s", job->session ? (int)job->session_len : 0,
             job->session ? (const char *)job->session : "");
    return record;
}

/* lock */
static void note(struct pipework_log *log, const struct pipework_record *record) {
    if (log->count == log->capacity) {
        log->capacity = log->capacity ? 2 * log->capacity : 256;
        log->records = realloc(log->records, log->capacity * sizeof(*log->records));
        if (!log->records) {
            abort();
        }
    }
    log->records[log->count++] = *record;
}

/* ---- phase 1: its result is a copy of what identifies the record */

static unsalt_pipeline_res_t on_prepare(void *opaque, const unsalt_pipeline_job_t *job, void **result) {
    struct pipework *work = opaque;
    struct pipework_record record = record_of(job);
    pthread_mutex_lock(&work->lock);
    work->prepares++;
    work->running++;
    work->running_most = work->running > work->running_most ? work->running : work->running_most;
    pthread_mutex_unlock(&work->lock);
    nap(work->prepare_us);
    unsalt_pipeline_res_t res = work->prepare ? work->prepare(work, job) : UNSALT_PIPELINE_OK;
    struct pipework_record *copy = malloc(sizeof(*copy));
    if (!copy) {
        abort();
    }
    *copy = record;
    *result = copy; /* also of a failure: the library must end that, too */
    pthread_mutex_lock(&work->lock);
    work->running--;
    work->results++;
    if (res == UNSALT_PIPELINE_OK) {
        note(&work->prepared, &record);
    }
    pthread_mutex_unlock(&work->lock);
    return res;
}

static void on_discard(void *opaque, void *result) {
    struct pipework *work = opaque;
    free(result);
    pthread_mutex_lock(&work->lock);
    work->discards++;
    pthread_mutex_unlock(&work->lock);
}

/* ---- phase 2 */

/* lock. The slot of a session; the table is large enough for the tests, or nothing is checked. */
static struct pipework_busy *slot(struct pipework *work, const struct pipework_record *record) {
    int64_t owner = record->session[0] ? -1 : record->partition;
    for (size_t i = 0; i < sizeof(work->busy) / sizeof(*work->busy); i++) {
        struct pipework_busy *busy = &work->busy[i];
        if (busy->owner == -2) {
            *busy = (struct pipework_busy){.owner = owner};
            snprintf(busy->session, sizeof(busy->session), "%s", record->session);
        }
        if (busy->owner == owner && strcmp(busy->session, record->session) == 0) {
            return busy;
        }
    }
    return NULL;
}

static void enter(struct pipework *work, const struct pipework_record *record, bool in) {
    pthread_mutex_lock(&work->lock);
    struct pipework_busy *busy = slot(work, record);
    if (busy) {
        work->overlaps += in && busy->busy;
        busy->busy = in;
    }
    pthread_mutex_unlock(&work->lock);
}

static unsalt_pipeline_res_t on_deliver(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    struct pipework *work = opaque;
    struct pipework_record record = record_of(job);
    const struct pipework_record *mine = result;
    enter(work, &record, true);
    nap(work->deliver_us);
    unsalt_pipeline_res_t res = work->deliver ? work->deliver(work, job) : UNSALT_PIPELINE_OK;
    pthread_mutex_lock(&work->lock);
    work->delivers++;
    work->foreign += mine && (mine->offset != record.offset || mine->partition != record.partition);
    if (res == UNSALT_PIPELINE_OK) {
        note(&work->delivered, &record);
    }
    pthread_mutex_unlock(&work->lock);
    enter(work, &record, false);
    return res;
}

static unsalt_pipeline_res_t on_bury(void *opaque, const unsalt_pipeline_job_t *job,
                                     const unsalt_pipeline_failure_t *failure) {
    struct pipework *work = opaque;
    struct pipework_record record = record_of(job);
    enter(work, &record, true);
    record.failure = *failure;
    record.failure.error = NULL;
    snprintf(record.error, sizeof(record.error), "%s", failure->error);
    unsalt_pipeline_res_t res = work->bury ? work->bury(work, job) : UNSALT_PIPELINE_OK;
    if (res == UNSALT_PIPELINE_OK) {
        pthread_mutex_lock(&work->lock);
        note(&work->buried, &record);
        pthread_mutex_unlock(&work->lock);
    }
    enter(work, &record, false);
    return res;
}

static void on_error(void *opaque, const rd_kafka_message_t *message) {
    struct pipework *work = opaque;
    (void)message;
    pthread_mutex_lock(&work->lock);
    work->errors++;
    pthread_mutex_unlock(&work->lock);
}

/* ---- the test's side */

void pipework_init(struct pipework *work) {
    memset(work, 0, sizeof(*work));
    pthread_mutex_init(&work->lock, NULL);
    for (size_t i = 0; i < sizeof(work->busy) / sizeof(*work->busy); i++) {
        work->busy[i].owner = -2;
    }
}

void pipework_free(struct pipework *work) {
    free(work->prepared.records);
    free(work->delivered.records);
    free(work->buried.records);
    pthread_mutex_destroy(&work->lock);
}

unsalt_pipeline_callbacks_t pipework_callbacks(struct pipework *work) {
    return (unsalt_pipeline_callbacks_t){.size = sizeof(unsalt_pipeline_callbacks_t), .prepare = on_prepare,
                                         .deliver = on_deliver, .discard = on_discard, .dead_letter = on_bury,
                                         .error = on_error, .opaque = work};
}

static size_t locked(struct pipework *work, const size_t *number) {
    pthread_mutex_lock(&work->lock);
    size_t value = *number;
    pthread_mutex_unlock(&work->lock);
    return value;
}

size_t pipework_delivered(struct pipework *work) {
    return locked(work, &work->delivered.count);
}

size_t pipework_prepared(struct pipework *work) {
    return locked(work, &work->prepared.count);
}

size_t pipework_buried(struct pipework *work) {
    return locked(work, &work->buried.count);
}

uint64_t pipework_prepares(struct pipework *work) {
    pthread_mutex_lock(&work->lock);
    uint64_t value = work->prepares;
    pthread_mutex_unlock(&work->lock);
    return value;
}

unsigned pipework_prepared_times(struct pipework *work, const char *session, uint64_t seq) {
    unsigned times = 0;
    pthread_mutex_lock(&work->lock);
    for (size_t i = 0; i < work->prepared.count; i++) {
        const struct pipework_record *record = &work->prepared.records[i];
        times += record->seq == seq && strcmp(record->session, session) == 0;
    }
    pthread_mutex_unlock(&work->lock);
    return times;
}

/* The last number of the session before record i; false: there is none. */
static bool before(const struct pipework_log *log, size_t i, uint64_t *seq) {
    for (size_t j = i; j-- > 0;) {
        if (strcmp(log->records[j].session, log->records[i].session) == 0) {
            *seq = log->records[j].seq;
            return true;
        }
    }
    return false;
}

bool pipework_in_order(struct pipework *work, uint64_t first) {
    bool ordered = true;
    pthread_mutex_lock(&work->lock);
    const struct pipework_log *log = &work->delivered;
    for (size_t i = 0; i < log->count && ordered; i++) {
        uint64_t last;
        uint64_t wanted = before(log, i, &last) ? last + 1 : first;
        ordered = log->records[i].seq == wanted;
        if (!ordered) {
            fprintf(stderr, "session %s: %llu where %llu was due\n", log->records[i].session,
                    (unsigned long long)log->records[i].seq, (unsigned long long)wanted);
        }
    }
    pthread_mutex_unlock(&work->lock);
    return ordered;
}

/* The highest number of the session before record i; 0: none. */
static uint64_t highest_before(const struct pipework_log *log, size_t i) {
    uint64_t highest = 0;
    for (size_t j = 0; j < i; j++) {
        bool same = strcmp(log->records[j].session, log->records[i].session) == 0;
        highest = same && log->records[j].seq > highest ? log->records[j].seq : highest;
    }
    return highest;
}

bool pipework_never_overtakes(struct pipework *work) {
    bool ordered = true;
    pthread_mutex_lock(&work->lock);
    const struct pipework_log *log = &work->delivered;
    for (size_t i = 0; i < log->count && ordered; i++) {
        ordered = log->records[i].seq <= highest_before(log, i) + 1;
    }
    pthread_mutex_unlock(&work->lock);
    return ordered;
}

bool pipework_clean(struct pipework *work) {
    pthread_mutex_lock(&work->lock);
    bool clean = work->overlaps == 0 && work->foreign == 0 && work->results == work->discards && work->gave_up == 0;
    if (!clean) {
        fprintf(stderr, "overlaps %llu, foreign results %llu, results %llu, ended %llu, waited in vain %llu\n",
                (unsigned long long)work->overlaps, (unsigned long long)work->foreign,
                (unsigned long long)work->results, (unsigned long long)work->discards,
                (unsigned long long)work->gave_up);
    }
    pthread_mutex_unlock(&work->lock);
    return clean;
}

/* ---- on the mock cluster */

unsalt_pipeline_t *pipework_open(const struct mock *mock, const char *settings,
                                 const unsalt_pipeline_callbacks_t *callbacks, struct heard *heard, int partitions) {
    char errstr[256];
    heard_init(heard);
    unsalt_pipeline_t *p = unsalt_pipeline_new(mock_rd_conf(mock, "g"), mock_conf(settings, heard), callbacks, errstr,
                                               sizeof(errstr));
    if (!p || mock_assign(unsalt_pipeline_consumer(p), "t", partitions, RD_KAFKA_OFFSET_BEGINNING)) {
        fprintf(stderr, "the pipeline can't be opened: %s\n", p ? "assign" : errstr);
        abort();
    }
    return p;
}

unsalt_pipeline_t *pipework_start(struct pipework *work, struct mock *mock, struct heard *heard, const char *settings,
                                  int partitions) {
    mock_open(mock, 1);
    mock_topic(mock, "t", partitions);
    pipework_init(work);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(work);
    return pipework_open(mock, settings, &callbacks, heard, partitions);
}

unsalt_pipeline_stats_t pipework_stats(const unsalt_pipeline_t *p) {
    unsalt_pipeline_stats_t stats;
    if (unsalt_pipeline_stats(p, &stats, sizeof(stats)) || !stats.conserved) {
        fprintf(stderr, "the pipeline's records don't sum up\n");
        abort();
    }
    return stats;
}

void pipework_send(struct mock *mock, const char *session, uint64_t first, uint64_t last) {
    for (uint64_t seq = first; seq <= last; seq++) {
        mock_send(mock, "t", 0, session, seq, 1);
    }
    mock_flush(mock);
}

void pipework_close(struct pipework *work, unsalt_pipeline_t *p, struct mock *mock) {
    unsalt_stats_t stats;
    rd_kafka_resp_err_t err = unsalt_pipeline_close(p);
    pipework_stats(p);
    unsalt_stats(unsalt_pipeline_consumer(p), &stats, sizeof(stats));
    unsalt_pipeline_destroy(p);
    if (err || !stats.conserved || !pipework_clean(work)) {
        fprintf(stderr, "closed: %s; the consumer's records %s\n", rd_kafka_err2str(err),
                stats.conserved ? "sum up" : "don't sum up");
        abort();
    }
    pipework_free(work);
    mock_close(mock);
}

/* ---- waiting */

static void give_up(struct pipework *work) {
    pthread_mutex_lock(&work->lock);
    work->gave_up++;
    pthread_mutex_unlock(&work->lock);
}

int pipework_poll(struct pipework *work, unsalt_pipeline_t *p, int timeout_ms) {
    int n = unsalt_pipeline_poll(p, timeout_ms);
    if (n < 0) {
        fprintf(stderr, "poll: %s\n", rd_kafka_err2str(unsalt_last_error()));
        give_up(work);
        return n;
    }
    pthread_mutex_lock(&work->lock);
    work->done += (uint64_t)n;
    pthread_mutex_unlock(&work->lock);
    return n;
}

bool pipework_until(struct pipework *work, unsalt_pipeline_t *p, size_t delivered) {
    uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS;
    while (pipework_delivered(work) < delivered && now_ms() < until) {
        pipework_poll(work, p, 100);
    }
    size_t count = pipework_delivered(work);
    if (count < delivered) {
        fprintf(stderr, "%zu of %zu records were delivered in %d ms\n", count, delivered, PIPEWORK_PATIENCE_MS);
    }
    return count >= delivered;
}

bool pipework_until_done(struct pipework *work, unsalt_pipeline_t *p, uint64_t done) {
    uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS;
    while (work->done < done && now_ms() < until) {
        pipework_poll(work, p, 100);
    }
    if (work->done < done) {
        fprintf(stderr, "%llu of %llu records were done in %d ms\n", (unsigned long long)work->done,
                (unsigned long long)done, PIPEWORK_PATIENCE_MS);
    }
    return work->done >= done;
}

void pipework_hold(struct pipework *work, const unsalt_pipeline_job_t *job,
                   bool (*go)(struct pipework *work, const unsalt_pipeline_job_t *job)) {
    uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS;
    while (!go(work, job)) {
        if (now_ms() >= until) {
            give_up(work);
            return;
        }
        nap(1000);
    }
}

static bool have_met(struct pipework *work, const unsalt_pipeline_job_t *job) {
    (void)job;
    pthread_mutex_lock(&work->lock);
    bool met = work->running_most > 1;
    pthread_mutex_unlock(&work->lock);
    return met;
}

unsalt_pipeline_res_t pipework_meet(struct pipework *work, const unsalt_pipeline_job_t *job) {
    pipework_hold(work, job, have_met);
    return UNSALT_PIPELINE_OK;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sessions stand, since when, at which record and why: as it is at one moment, told without the lock. */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>

/* Copies of what is told, each of its texts behind the others. */
struct snapshot {
    unsalt_pipeline_halt_t *halts; /* owned */
    char *texts;                   /* owned */
    size_t count, used;
};

static struct us_job *stands_at(struct us_link *link) {
    return us_job_of(us_pipe_first(US_LINKED(link, struct us_pipe_session, stands)));
}

static size_t text_size(const struct us_job *job) {
    const char *error = us_job_said(job);
    size_t len;
    us_job_session(job, &len);
    return strlen(rd_kafka_topic_name(job->message->rkt)) + 1 + (error ? strlen(error) : 0) + 1 + len + 1;
}

/* Terminated, whatever it is. */
static const char *keep(struct snapshot *snapshot, const void *bytes, size_t len) {
    char *to = snapshot->texts + snapshot->used;
    memcpy(to, bytes, len);
    to[len] = '\0';
    snapshot->used += len + 1;
    return to;
}

static void copy(struct snapshot *snapshot, const struct us_job *job, uint64_t now) {
    const struct us_pipe_job *pipe = &job->pipe;
    const char *topic = rd_kafka_topic_name(job->message->rkt), *error = us_job_said(job);
    unsalt_pipeline_halt_t *halt = &snapshot->halts[snapshot->count++];
    const void *session = us_job_session(job, &halt->session_len);
    halt->size = sizeof(*halt);
    halt->session = session ? keep(snapshot, session, halt->session_len) : NULL;
    halt->topic = keep(snapshot, topic, strlen(topic));
    halt->error = keep(snapshot, error ? error : "", error ? strlen(error) : 0);
    halt->partition = job->message->partition;
    halt->offset = job->message->offset;
    halt->seq = pipe->seq;
    halt->epoch = pipe->epoch;
    halt->phase = (unsalt_pipeline_phase_t)pipe->phase;
    halt->reason = (unsalt_pipeline_reason_t)pipe->reason;
    halt->attempts = pipe->attempts[pipe->phase];
    halt->age_ms = now > pipe->since ? (int64_t)((now - pipe->since) / US_MS) : 0;
    halt->records = pipe->session->records;
    halt->bytes = pipe->session->bytes;
}

/* lock. False: out of memory. */
static bool take(struct unsalt_pipeline *pl, struct snapshot *snapshot) {
    struct us_links *standing = &pl->pipe.standing;
    size_t count = 0, size = 0;
    for (struct us_link *link = us_links_first(standing); link; link = us_links_after(standing, link), count++) {
        size += text_size(stands_at(link));
    }
    if (count == 0) {
        return true;
    }
    snapshot->halts = us_calloc(&us_mem_default, count, sizeof(*snapshot->halts));
    snapshot->texts = us_alloc(&us_mem_default, size);
    if (!snapshot->halts || !snapshot->texts) {
        return false;
    }
    uint64_t now = us_clock_now();
    for (struct us_link *link = us_links_first(standing); link; link = us_links_after(standing, link)) {
        copy(snapshot, stands_at(link), now);
    }
    return true;
}

int64_t unsalt_pipeline_halted(const unsalt_pipeline_t *p, unsalt_pipeline_halted_cb *cb, void *opaque) {
    struct unsalt_pipeline *pl = (struct unsalt_pipeline *)p; /* for the lock */
    struct snapshot snapshot = {0};
    int64_t count = -1;
    if (!cb) {
        us_set_last_error(RD_KAFKA_RESP_ERR__INVALID_ARG);
        return -1;
    }
    pthread_mutex_lock(&pl->lock);
    bool taken = take(pl, &snapshot);
    pthread_mutex_unlock(&pl->lock);
    us_set_last_error(taken ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
    if (taken) {
        count = (int64_t)snapshot.count;
        for (size_t i = 0; i < snapshot.count; i++) {
            cb(opaque, &snapshot.halts[i]);
        }
    }
    us_free(&us_mem_default, snapshot.halts);
    us_free(&us_mem_default, snapshot.texts);
    return count;
}

/* lock. The session that has piled up most; NULL: none stands. */
struct us_job *us_halted_largest(struct unsalt_pipeline *pl) {
    struct us_links *standing = &pl->pipe.standing;
    struct us_pipe_session *largest = NULL;
    for (struct us_link *link = us_links_first(standing); link; link = us_links_after(standing, link)) {
        struct us_pipe_session *session = US_LINKED(link, struct us_pipe_session, stands);
        largest = !largest || session->records > largest->records ? session : largest;
    }
    return largest ? us_job_of(us_pipe_first(largest)) : NULL;
}

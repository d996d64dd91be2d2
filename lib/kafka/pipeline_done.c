/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that have left the pipe: acknowledged, or (cancelled) taken back, so that a revoke doesn't wait for them. In
 * batches, since each lock is taken once for many of them then.
 */
#include <base/mem.h>
#include <inttypes.h>
#include <kafka/pipeline.h>
#include <string.h>

#define BATCH 256

/* ---- events */

static void name_record(const struct us_job *job, unsalt_event_t *event) {
    const rd_kafka_message_t *message = job->message;
    event->session = us_job_session(job, &event->session_len);
    event->epoch = job->pipe.epoch;
    event->lane = job->lane;
    event->first = event->last = job->pipe.seq != UNSALT_NO_SEQ ? job->pipe.seq : 0;
    if (message) {
        event->topic = rd_kafka_topic_name(message->rkt);
        event->partition = message->partition;
        event->offset = message->offset;
    }
}

/* The line of an event about a record: what the others say of it, then what happened and why. */
static void raise_event(struct unsalt_pipeline *pl, unsalt_event_t *event, const char *what, const char *error) {
    char text[1024];
    us_event_text(event, text, sizeof(text));
    size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s%s%s", what, error ? ": " : "", error ? error : "");
    event->text = text;
    us_event_raise(pl->u, event);
}

static void tell_failed(struct unsalt_pipeline *pl, const struct us_job *job, unsalt_event_type_t type,
                        const char *then) {
    char what[160];
    unsalt_event_t event;
    us_event_init(&event, type);
    name_record(job, &event);
    event.count = job->pipe.attempts[job->pipe.phase];
    snprintf(what, sizeof(what), "%s failed for good (%s, %u calls), %s",
             unsalt_pipeline_phase_name((unsalt_pipeline_phase_t)job->pipe.phase),
             unsalt_pipeline_reason_name((unsalt_pipeline_reason_t)job->pipe.reason),
             (unsigned)event.count, then);
    raise_event(pl, &event, what, us_job_said(job));
}

/* Which letter, where it was to go, and why it didn't. */
static void tell_not_buried(struct unsalt_pipeline *pl, const struct us_job *job, unsalt_event_t *event) {
    char what[400];
    const char *topic = pl->callbacks.dead_letter ? NULL : pl->dead_topic;
    event->count = job->pipe.burials;
    snprintf(what, sizeof(what), "its dead letter (%s %s) could not be stored %s%s, tried again",
             unsalt_pipeline_phase_name((unsalt_pipeline_phase_t)job->pipe.phase),
             unsalt_pipeline_reason_name((unsalt_pipeline_reason_t)job->pipe.reason),
             topic ? "in topic " : "by the dead_letter callback", topic ? topic : "");
    raise_event(pl, event, what, job->unburied);
}

/* `copy`: of the job, made under the lock. */
static void tell(struct unsalt_pipeline *pl, const struct us_job *copy, enum us_pipe_notice notice) {
    unsalt_event_t event;
    if (notice == US_PIPE_TELL_HALTED) {
        tell_failed(pl, copy, UNSALT_EVENT_PIPELINE_HALTED, "its session stands");
        return;
    }
    us_event_init(&event, notice == US_PIPE_TELL_SLOW ? UNSALT_EVENT_PIPELINE_SLOW : UNSALT_EVENT_PIPELINE_NOT_BURIED);
    name_record(copy, &event);
    if (notice == US_PIPE_TELL_NOT_BURIED) {
        tell_not_buried(pl, copy, &event);
        return;
    }
    event.count = copy->pipe.attempts[US_PIPE_DELIVER];
    bool returned = copy->pipe.left || copy->pipe.state != US_PIPE_DELIVERING;
    raise_event(pl, &event,
                returned ? "deliver took longer than its limit"
                         : "deliver takes longer than its limit, its session waits for it",
                NULL);
}

void us_done_notices(struct unsalt_pipeline *pl) {
    for (;;) {
        enum us_pipe_notice what;
        pthread_mutex_lock(&pl->lock);
        struct us_pipe_job *found = us_pipe_take_notice(&pl->pipe, &what);
        struct us_job copy;
        if (found) {
            copy = *us_job_of(found); /* it may go on meanwhile; it is given back by this thread */
            copy.error = copy.error ? us_text_dup(copy.error) : NULL;
            copy.unburied = copy.unburied ? us_text_dup(copy.unburied) : NULL;
        }
        pthread_mutex_unlock(&pl->lock);
        if (!found) {
            return;
        }
        tell(pl, &copy, what);
        us_free(&us_mem_default, copy.error);
        us_free(&us_mem_default, copy.unburied);
    }
}

/*
 * The job stands while this thread looks without the lock: another one may resolve its session meanwhile, but this one
 * alone gives jobs back.
 */
void us_done_full(struct unsalt_pipeline *pl) {
    unsalt_event_t event;
    char what[160];
    us_event_init(&event, UNSALT_EVENT_PIPELINE_HALTED_FULL);
    pthread_mutex_lock(&pl->lock);
    const struct us_job *largest = us_halted_largest(pl);
    uint64_t sessions = pl->pipe.counters.standing, most = largest ? largest->pipe.session->records : 0;
    event.count = pl->pipe.halted.records;
    pthread_mutex_unlock(&pl->lock);
    if (largest) {
        name_record(largest, &event);
    }
    snprintf(what, sizeof(what), "%" PRIu64 " records of it and %" PRIu64 " of all %" PRIu64 " halted sessions are "
             "piled up: nothing is read on until one is resolved", most, event.count, sessions);
    raise_event(pl, &event, what, NULL);
}

void us_done_workers(struct unsalt_pipeline *pl) {
    unsalt_event_t event;
    char text[256];
    pthread_mutex_lock(&pl->lock);
    uint64_t strays = pl->pipe.counters.strays, queued = pl->pipe.queued;
    pthread_mutex_unlock(&pl->lock);
    bool none = pl->workers > 0 && strays >= pl->workers, tells = none && queued > 0 && !pl->told_no_worker;
    pl->told_no_worker = none && (pl->told_no_worker || tells);
    if (!tells) {
        return;
    }
    us_event_init(&event, UNSALT_EVENT_PIPELINE_NO_WORKER);
    event.count = strays;
    snprintf(text, sizeof(text),
             "pipeline_no_worker: all %" PRIu32 " workers are in calls of prepare that nobody waits for any more: "
             "%" PRIu64 " records wait until one of them returns", pl->workers, queued);
    event.text = text;
    us_event_raise(pl->u, &event);
}

/* ---- the end of a record */

static void end_parts(struct unsalt_pipeline *pl, struct us_job *job) {
    if (job->result && pl->callbacks.discard) {
        pl->callbacks.discard(pl->callbacks.opaque, job->result);
    }
    if (job->message) {
        rd_kafka_message_destroy(job->message);
    }
    us_free(&us_mem_default, job->error);
    us_free(&us_mem_default, job->unburied);
    job->result = NULL;
    job->message = NULL;
    job->error = NULL;
    job->unburied = NULL;
}

void us_done_end(struct unsalt_pipeline *pl, struct us_job *job) {
    end_parts(pl, job);
    pthread_mutex_lock(&pl->lock);
    us_jobs_give(pl, job);
    pthread_mutex_unlock(&pl->lock);
}

static uint32_t take(struct unsalt_pipeline *pl, struct us_job **jobs) {
    uint32_t n = 0;
    struct us_pipe_job *job;
    pthread_mutex_lock(&pl->lock);
    while (n < BATCH && (job = us_pipe_take_done(&pl->pipe))) {
        jobs[n++] = us_job_of(job);
    }
    pthread_mutex_unlock(&pl->lock);
    return n;
}

/* What the consumer is to know, and the events. */
static void account(struct unsalt_pipeline *pl, struct us_job *const *jobs, uint32_t n) {
    unsalt_token_t done[BATCH], cancelled[BATCH];
    uint32_t done_count = 0, cancelled_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct us_job *job = jobs[i];
        bool was_done = job->pipe.outcome != US_PIPE_CANCELLED;
        for (enum us_pipe_notice what; (what = us_pipe_take_untold(&job->pipe)) != US_PIPE_TELL_NOTHING;) {
            tell(pl, job, what); /* it left before the notice was taken */
        }
        unsalt_token_t token = {.part = job->pipe.part, .generation = job->pipe.generation, .ticket = job->ticket};
        if (job->acks && job->pipe.turned) {
            *(was_done ? &done[done_count++] : &cancelled[cancelled_count++]) = token;
        }
        pl->finished += was_done;
        pl->u->torn |= was_done && job->pipe.orphan; /* it is done, and no commit of this member will cover it */
        if (job->pipe.outcome == US_PIPE_SKIPPED) {
            tell_failed(pl, job, UNSALT_EVENT_PIPELINE_SKIPPED, "skipped");
        } else if (job->pipe.outcome == US_PIPE_BURIED) {
            tell_failed(pl, job, UNSALT_EVENT_PIPELINE_BURIED, "stored as a dead letter");
        }
    }
    us_acks_done(pl->u, done, done_count);
    us_acks_take_back(pl->u, cancelled, cancelled_count);
}

bool us_done_settle(struct unsalt_pipeline *pl) {
    struct us_job *jobs[BATCH];
    bool any = false;
    uint32_t n;
    while ((n = take(pl, jobs)) > 0) {
        any = true;
        account(pl, jobs, n);
        uint32_t kept = 0;
        pthread_mutex_lock(&pl->lock);
        for (uint32_t i = 0; i < n; i++) {
            jobs[i]->settled = true;
            if (jobs[i]->pipe.strays == 0) {
                jobs[kept++] = jobs[i]; /* the others are ended by their last run */
            }
        }
        pthread_mutex_unlock(&pl->lock);
        for (uint32_t i = 0; i < kept; i++) {
            end_parts(pl, jobs[i]);
        }
        pthread_mutex_lock(&pl->lock);
        for (uint32_t i = 0; i < kept; i++) {
            us_jobs_give(pl, jobs[i]);
        }
        pthread_mutex_unlock(&pl->lock);
    }
    return any;
}

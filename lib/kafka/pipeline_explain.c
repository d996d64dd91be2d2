/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a session stands in a pipeline, for people: how much of it is inside, and what its first record waits for. */
#include <inttypes.h>
#include <kafka/pipeline.h>
#include <kafka/stats_text.h>

static uint64_t ms_since(const struct us_pipe_job *job, uint64_t now) {
    return now > job->since ? (now - job->since) / US_MS : 0;
}

static void say_failure(struct us_text *text, const struct us_job *job) {
    const char *error = us_job_said(job);
    us_text_add(text, ": %s failed for good (%s, %" PRIu32 " calls)%s%s",
                unsalt_pipeline_phase_name((unsalt_pipeline_phase_t)job->pipe.phase),
                unsalt_pipeline_reason_name((unsalt_pipeline_reason_t)job->pipe.reason),
                job->pipe.attempts[job->pipe.phase], error ? ": " : "", error ? error : "");
}

/* The record that the others are behind. */
static void say_first(struct us_text *text, const struct us_job *job, uint64_t now) {
    const struct us_pipe_job *pipe = &job->pipe;
    us_text_add(text, "  first ");
    if (pipe->seq != UNSALT_NO_SEQ) {
        us_text_add(text, "%" PRIu64 ", ", pipe->seq);
    }
    us_text_add(text, "%s [%d] offset %" PRId64 ": ", rd_kafka_topic_name(job->message->rkt),
                (int)job->message->partition, job->message->offset);
    us_text_add(text, "%s", unsalt_pipeline_state_name((unsalt_pipeline_state_t)pipe->state));
    switch ((enum us_pipe_state)pipe->state) {
    case US_PIPE_QUEUED:
    case US_PIPE_RUNNING:
    case US_PIPE_DELIVERING:
        us_text_add(text, " for %" PRIu64 " ms", ms_since(pipe, now));
        break;
    case US_PIPE_HALTED:
        us_text_add(text, " for %" PRIu64 " ms", ms_since(pipe, now));
        say_failure(text, job);
        us_text_add(text, "; until unsalt_pipeline_resolve()");
        break;
    case US_PIPE_FAILED:
    case US_PIPE_BURYING:
    case US_PIPE_REBURYING:
        say_failure(text, job);
        if (job->unburied) {
            us_text_add(text, "; its dead letter could not be stored, %" PRIu32 " times so far: %s", pipe->burials,
                        job->unburied);
        }
        break;
    case US_PIPE_RETRYING:
    case US_PIPE_REDELIVERING:
        us_text_add(text, "%s%s", job->error ? ": " : "", job->error ? job->error : "");
        break;
    default:
        break;
    }
    us_text_add(text, "\n");
}

void us_pipeline_explain(const struct unsalt *u, uint32_t set, const void *id, size_t len, struct us_text *text,
                         uint64_t now) {
    struct unsalt_pipeline *pl = u->pipeline;
    if (!pl) {
        return;
    }
    pthread_mutex_lock(&pl->lock);
    const struct us_pipe_session *session = us_pipe_session_find(&pl->pipe, set, id, (uint32_t)len);
    uint64_t early = 0;
    if (session) {
        const struct us_links *list = &session->early;
        for (const struct us_link *link = us_links_first(list); link; link = us_links_after(list, link)) {
            early++;
        }
    }
    if (session && session->records + early > 0) {
        us_text_add(text, "in the pipeline: %" PRIu64 " whose turn has come (%" PRIu64 " bytes), %" PRIu64
                          " before their turn\n", session->records, session->bytes, early);
        struct us_pipe_job *first = us_pipe_first(session);
        if (first) {
            say_first(text, us_job_of(first), now);
        }
    }
    pthread_mutex_unlock(&pl->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>

/* The pipeline whose callback this thread is in. */
static _Thread_local const struct unsalt_pipeline *inside;

bool us_pipeline_inside(const struct unsalt_pipeline *pl) {
    return pl && inside == pl;
}

static enum us_pipe_res result_of(unsalt_pipeline_res_t res) {
    return res == UNSALT_PIPELINE_OK ? US_PIPE_OK : res == UNSALT_PIPELINE_FAIL ? US_PIPE_FAIL : US_PIPE_RETRY;
}

char *us_job_error(struct us_job *job, char *error) {
    char *former = job->error;
    job->error = error;
    return former;
}

char *us_job_unburied(struct us_job *job, char *error) {
    char *former = job->unburied;
    job->unburied = error;
    return former;
}

const char *us_job_said(const struct us_job *job) {
    bool late = job->pipe.phase == US_PIPE_PREPARE && job->pipe.late; /* the text is of an attempt before */
    return late ? NULL : job->error;
}

static const char *silent(const struct us_job *job) {
    bool timeout = job->pipe.reason == US_PIPE_TIMEOUT || job->pipe.late;
    return timeout ? "it took longer than its limit" : "no error text was given";
}

/* Of a late record that is alone here it is known that its session is above it. */
static uint64_t cursor_of(const struct us_job *job) {
    uint64_t cursor = job->pipe.seq == UNSALT_NO_SEQ ? UNSALT_NO_SEQ : job->pipe.session->cursor;
    return cursor == UNSALT_NO_SEQ && job->state == UNSALT_STATE_LATE ? job->pipe.seq + 1 : cursor;
}

static void describe_failure(struct us_call *call, const struct us_job *job) {
    const char *error = us_job_said(job);
    snprintf(call->error, sizeof(call->error), "%s", error ? error : silent(job));
    call->failure = (unsalt_pipeline_failure_t){
        .size = sizeof(call->failure),
        .phase = (unsalt_pipeline_phase_t)job->pipe.phase,
        .reason = (unsalt_pipeline_reason_t)job->pipe.reason,
        .attempts = job->pipe.attempts[job->pipe.phase],
        .error = call->error,
        .cursor = cursor_of(job),
    };
}

void us_call_begin(struct unsalt_pipeline *pl, struct us_call *call, struct us_job *job, bool prepares) {
    call->pipeline = pl;
    call->of = job;
    call->run = job->pipe.run;
    call->began = job->pipe.since;
    call->bury = job->pipe.state == US_PIPE_BURYING;
    call->errstr[0] = '\0';
    call->job = (unsalt_pipeline_job_t){
        .size = sizeof(call->job),
        .message = job->message,
        .seq = job->pipe.seq,
        .epoch = job->pipe.epoch,
        .lane = job->lane,
        .flags = job->flags,
        .state = (unsalt_state_t)job->state,
        .after_gap = job->after_gap,
        .phase = prepares ? UNSALT_PIPELINE_PREPARE : UNSALT_PIPELINE_DELIVER,
        .attempt = call->bury ? job->pipe.burials
                              : job->pipe.attempts[prepares ? US_PIPE_PREPARE : US_PIPE_DELIVER],
        .waited_ns = job->waited_ns,
        .errstr = call->errstr,
        .errstr_size = sizeof(call->errstr),
        .inner = call,
    };
    call->job.session = us_job_session(job, &call->job.session_len);
    if (call->bury) {
        describe_failure(call, job);
    }
}

/* A copy of what the callback has written; NULL: nothing, or out of memory. */
static char *said(struct us_call *call) {
    call->errstr[sizeof(call->errstr) - 1] = '\0';
    return call->errstr[0] ? us_text_dup(call->errstr) : NULL;
}

static void discard(struct unsalt_pipeline *pl, void *result) {
    if (result && pl->callbacks.discard) {
        pl->callbacks.discard(pl->callbacks.opaque, result);
    }
}

/* lock. Whether the thread that polls sleeps too long: it is to be signalled then. */
static bool is_sooner(struct unsalt_pipeline *pl) {
    uint64_t deadline = us_pipe_deadline(&pl->pipe);
    bool sooner = deadline < pl->wakes_at;
    pl->wakes_at = sooner ? deadline : pl->wakes_at;
    return sooner;
}

void us_call_prepare(struct us_call *call) {
    struct unsalt_pipeline *pl = call->pipeline;
    struct us_job *job = call->of;
    void *result = NULL;
    bool sooner = is_sooner(pl); /* its own time limit */
    pthread_mutex_unlock(&pl->lock);
    if (sooner) {
        us_signal(pl->u);
    }
    inside = pl;
    enum us_pipe_res res = result_of(pl->callbacks.prepare(pl->callbacks.opaque, &call->job, &result));
    inside = NULL;
    char *error = res != US_PIPE_OK ? said(call) : NULL;
    uint64_t now = us_clock_now();
    pthread_mutex_lock(&pl->lock);
    uint32_t done = pl->pipe.done_count;
    bool ready = us_pipe_may_step(&pl->pipe), counts = us_pipe_prepared(&pl->pipe, &job->pipe, call->run, res, now);
    if (!counts) {
        us_pipe_count(&pl->pipe.counters.took[US_PIPE_PREPARE], now > call->began ? now - call->began : 0);
    }
    if (counts && res == US_PIPE_OK) {
        job->result = result;
        result = NULL;
    } else if (counts) {
        error = us_job_error(job, error);
    }
    bool news = done != pl->pipe.done_count || !us_links_empty(&pl->pipe.notices) || is_sooner(pl);
    bool deliverable = pl->delivery_threads == 0 && !ready && us_pipe_may_step(&pl->pipe);
    call->after = (struct us_after){.last = !counts && job->settled && job->pipe.strays == 0,
                                    .wakes = news || deliverable, .result = result, .error = error};
    call->after.any = call->after.last || call->after.wakes || result || error;
    if (!counts && pl->pipe.counters.strays == 0) {
        pthread_cond_broadcast(&pl->quiet);
    }
}

void us_call_after(struct us_call *call) {
    us_free(&us_mem_default, call->after.error);
    discard(call->pipeline, call->after.result);
    if (call->after.last) {
        us_done_end(call->pipeline, call->of);
    }
    if (call->after.wakes) {
        us_signal(call->pipeline->u);
    }
}

/* lock. Whether the thread that polls is to look at what is done now, or a bit later with more of it. */
static bool is_awaited(struct unsalt_pipeline *pl) {
    return pl->pipe.done_count >= pl->done_wakes || pl->pipe.turned.records == 0 ||
           !us_links_empty(&pl->pipe.notices) || is_sooner(pl) || atomic_load(&pl->u->acks.waited_for);
}

static void settle_step(struct us_call *call, enum us_pipe_res res, char *error) {
    struct unsalt_pipeline *pl = call->pipeline;
    struct us_job *job = call->of;
    uint64_t now = us_clock_now();
    pthread_mutex_lock(&pl->lock);
    if (res != US_PIPE_OK) {
        error = call->bury ? us_job_unburied(job, error) : us_job_error(job, error);
    }
    if (call->bury) {
        us_pipe_buried(&pl->pipe, &job->pipe, res == US_PIPE_OK, now);
    } else {
        us_pipe_delivered(&pl->pipe, &job->pipe, res, now);
    }
    bool wakes = pl->delivery_threads > 0 && is_awaited(pl);
    us_threads_wake(pl);
    pthread_cond_broadcast(&pl->quiet);
    pthread_mutex_unlock(&pl->lock);
    us_free(&us_mem_default, error);
    if (wakes) {
        us_signal(pl->u);
    }
}

void us_call_step(struct us_call *call) {
    struct unsalt_pipeline *pl = call->pipeline;
    const unsalt_pipeline_callbacks_t *cb = &pl->callbacks;
    if (call->bury && !cb->dead_letter) {
        rd_kafka_resp_err_t err = us_dead_send(pl, call);
        if (err) {
            settle_step(call, US_PIPE_RETRY, us_dead_reason(pl, err));
        }
        return; /* the answer settles it */
    }
    const struct unsalt_pipeline *outer = inside; /* the callback of one pipeline may poll another one */
    inside = pl;
    enum us_pipe_res res = result_of(call->bury ? cb->dead_letter(cb->opaque, &call->job, &call->failure)
                                                : cb->deliver(cb->opaque, &call->job, call->of->result));
    inside = outer;
    settle_step(call, res, res != US_PIPE_OK ? said(call) : NULL);
}

int unsalt_pipeline_wanted(const unsalt_pipeline_job_t *job) {
    const struct us_call *call = job->inner;
    struct unsalt_pipeline *pl = call->pipeline;
    pthread_mutex_lock(&pl->lock);
    const struct us_pipe_job *mine = &call->of->pipe;
    bool wanted = job->phase == UNSALT_PIPELINE_PREPARE ? us_pipe_wanted(mine, call->run) : !mine->over;
    wanted = wanted && !us_pipe_is_overdue(&pl->pipe, mine, us_clock_now());
    pthread_mutex_unlock(&pl->lock);
    return wanted;
}

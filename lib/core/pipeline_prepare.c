/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/pipeline.h>

void us_pipe_queue(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now) {
    us_pipe_set_state(pipe, job, US_PIPE_QUEUED);
    job->since = now;
    job->parked = job->session->stopping || job->session->stand == US_PIPE_STANDS;
    if (!job->parked) {
        us_links_add(job->turned ? &pipe->urgent : &pipe->early, &job->queue);
        pipe->queued++;
    }
}

void us_pipe_unqueue(struct us_pipe *pipe, struct us_pipe_job *job) {
    us_links_remove(&job->queue);
    pipe->queued--;
}

/* Sessions that stand since pile up no results. */
static struct us_pipe_job *next_queued(struct us_pipe *pipe) {
    struct us_link *link;
    while ((link = us_links_first(&pipe->urgent)) || (link = us_links_first(&pipe->early))) {
        struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, queue);
        us_pipe_unqueue(pipe, job);
        if (job->session->stand != US_PIPE_STANDS) {
            return job;
        }
        job->parked = true;
    }
    return NULL;
}

struct us_pipe_job *us_pipe_next_prepare(struct us_pipe *pipe, uint64_t now) {
    struct us_pipe_job *job = next_queued(pipe);
    if (!job) {
        return NULL;
    }
    bool again = job->called[US_PIPE_PREPARE];
    job->called[US_PIPE_PREPARE] = true;
    job->attempts[US_PIPE_PREPARE]++;
    pipe->counters.attempts[US_PIPE_PREPARE]++;
    pipe->counters.retries[US_PIPE_PREPARE] += again;
    if (!again) {
        us_pipe_count(&pipe->counters.queued, now > job->since ? now - job->since : 0);
    }
    us_pipe_set_state(pipe, job, US_PIPE_RUNNING);
    job->run++;
    job->late = false;
    job->since = now;
    us_links_add(&pipe->running, &job->queue);
    return job;
}

bool us_pipe_wanted(const struct us_pipe_job *job, uint32_t run) {
    return !job->left && job->state == US_PIPE_RUNNING && job->run == run;
}

void us_pipe_failed_late(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now) {
    uint32_t attempts = job->attempts[US_PIPE_PREPARE];
    us_links_remove(&job->queue);
    job->late = true;
    pipe->counters.timeouts[US_PIPE_PREPARE]++;
    pipe->counters.failures[US_PIPE_PREPARE]++;
    if (us_pipe_judge(US_PIPE_LATE, attempts, pipe->params.retries[US_PIPE_PREPARE]) == US_PIPE_AGAIN &&
        !job->session->stopping) {
        us_pipe_put_off(pipe, job, US_PIPE_RETRYING, attempts, now);
    } else {
        us_pipe_give_up(pipe, job, US_PIPE_PREPARE, US_PIPE_TIMEOUT);
    }
}

bool us_pipe_prepared(struct us_pipe *pipe, struct us_pipe_job *job, uint32_t run, enum us_pipe_res res,
                      uint64_t now) {
    pipe->now = now;
    if (!us_pipe_wanted(job, run)) {
        job->strays--;
        pipe->counters.strays--;
        return false;
    }
    uint32_t attempts = job->attempts[US_PIPE_PREPARE];
    if (us_pipe_is_overdue(pipe, job, now)) {
        us_pipe_failed_late(pipe, job, now); /* the callback may have been told that nobody waits for it */
        return false;
    }
    us_pipe_count(&pipe->counters.took[US_PIPE_PREPARE], now > job->since ? now - job->since : 0);
    us_links_remove(&job->queue);
    pipe->counters.failures[US_PIPE_PREPARE] += res != US_PIPE_OK;
    switch (us_pipe_judge(res, attempts, pipe->params.retries[US_PIPE_PREPARE])) {
    case US_PIPE_DONE:
        us_pipe_set_state(pipe, job, US_PIPE_PREPARED);
        job->turn_at = now;
        if (job->turned && us_pipe_first(job->session) == job) {
            us_pipe_settle(pipe, job->session);
        }
        break;
    case US_PIPE_AGAIN:
        if (!job->session->stopping) {
            us_pipe_put_off(pipe, job, US_PIPE_RETRYING, attempts, now);
            break;
        }
        us_pipe_give_up(pipe, job, US_PIPE_PREPARE, us_pipe_reason_of(res));
        break;
    case US_PIPE_GIVE_UP:
        us_pipe_give_up(pipe, job, US_PIPE_PREPARE, us_pipe_reason_of(res));
        break;
    }
    return true;
}

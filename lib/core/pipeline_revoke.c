/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/pipeline.h>

/* Is it being delivered or buried? That can't be undone. */
static bool executes(const struct us_pipe_job *job) {
    return job->state == US_PIPE_DELIVERING || job->state == US_PIPE_BURYING;
}

static struct us_pipe_job *after(const struct us_pipe_job *job) {
    struct us_link *link = us_links_after(&job->session->turn, &job->of);
    return link ? US_LINKED(link, struct us_pipe_job, of) : NULL;
}

void us_pipe_cut(struct us_pipe *pipe, struct us_pipe_job *job) {
    struct us_pipe_session *session = job->session;
    session->stopping = true;
    while (job) {
        struct us_pipe_job *next = after(job);
        us_pipe_finish(pipe, job, US_PIPE_CANCELLED);
        job = next;
    }
    us_pipe_settle(pipe, session);
}

/* Of phase 1 nothing more is started; the records themselves are not ours to give up. */
static void stop_early(struct us_pipe *pipe, struct us_pipe_session *session) {
    for (struct us_link *link = us_links_first(&session->early); link; link = us_links_after(&session->early, link)) {
        struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, of);
        if (job->state == US_PIPE_RETRYING) {
            us_heap_remove(&pipe->timers, &job->timer);
            us_pipe_set_state(pipe, job, US_PIPE_QUEUED);
            job->parked = true;
        } else if (job->state == US_PIPE_QUEUED && !job->parked) {
            us_pipe_unqueue(pipe, job);
            job->parked = true;
        }
    }
}

static void stop(struct us_pipe *pipe, struct us_pipe_session *session) {
    session->stopping = true;
    stop_early(pipe, session);
    struct us_pipe_job *job = us_pipe_first(session);
    while (job && (executes(job) || job->state == US_PIPE_PREPARED || job->state == US_PIPE_RUNNING)) {
        job = after(job);
    }
    if (job) {
        us_pipe_cut(pipe, job);
    }
}

static bool is_of(const struct us_pipe_job *job, uint32_t part, uint32_t generation) {
    return !job->left && !job->orphan && job->part == part && job->generation == generation;
}

/* Steps to the next one that has not left since; those that leave stay in the list of all until they are forgotten. */
void us_pipe_stop(struct us_pipe *pipe, uint32_t part, uint32_t generation) {
    for (struct us_link *link = us_links_first(&pipe->all); link; link = us_links_after(&pipe->all, link)) {
        struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, all);
        if (is_of(job, part, generation) && !job->session->stopping) {
            stop(pipe, job->session);
        }
    }
}

static void leave(struct us_pipe *pipe, struct us_pipe_job *job) {
    if (executes(job)) {
        job->over = true;
        job = after(job);
    }
    if (job) {
        us_pipe_cut(pipe, job);
    }
}

void us_pipe_leave(struct us_pipe *pipe, uint32_t part, uint32_t generation, uint64_t set, bool whole) {
    for (struct us_link *link = us_links_first(&pipe->all); link; link = us_links_after(&pipe->all, link)) {
        struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, all);
        bool mine = is_of(job, part, generation);
        bool orphan = whole && job->orphan && !job->left && job->set == set;
        if (mine && !whole && job->turned) {
            job->orphan = true;
        } else if ((mine || orphan) && job->turned) {
            leave(pipe, job);
        }
        if (whole && job->set == set) {
            job->session->stopping = false; /* also where nothing is left but a delivery of a generation before */
        }
    }
}

void us_pipe_cancel(struct us_pipe *pipe, struct us_pipe_job *job) {
    us_pipe_finish(pipe, job, US_PIPE_CANCELLED);
}

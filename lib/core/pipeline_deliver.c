/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/pipeline.h>

static enum us_pipe_policy policy_of(const struct us_pipe *pipe, const struct us_pipe_job *job) {
    return job->bury ? US_PIPE_DEAD_LETTER : pipe->params.policy[job->phase];
}

static enum us_pipe_stand stand_at(const struct us_pipe_job *first) {
    if (!first) {
        return US_PIPE_IDLE;
    }
    switch ((enum us_pipe_state)first->state) {
    case US_PIPE_PREPARED:
    case US_PIPE_FAILED:
        return US_PIPE_READY;
    case US_PIPE_DELIVERING:
    case US_PIPE_BURYING:
        return US_PIPE_BUSY;
    case US_PIPE_REDELIVERING:
    case US_PIPE_REBURYING:
        return US_PIPE_WAITING;
    case US_PIPE_HALTED:
        return US_PIPE_STANDS;
    default:
        return US_PIPE_IDLE;
    }
}

void us_pipe_settle(struct us_pipe *pipe, struct us_pipe_session *session) {
    struct us_pipe_job *job = us_pipe_first(session);
    while (job && job->state == US_PIPE_FAILED && policy_of(pipe, job) == US_PIPE_SKIP) {
        us_pipe_finish(pipe, job, US_PIPE_SKIPPED);
        job = us_pipe_first(session);
    }
    if (job && job->state == US_PIPE_FAILED && policy_of(pipe, job) == US_PIPE_HALT) {
        us_pipe_halt(pipe, session);
        return;
    }
    enum us_pipe_stand stand = stand_at(job);
    if (session->stand == US_PIPE_STANDS && stand != US_PIPE_STANDS) {
        us_pipe_halt_end(pipe, session);
    }
    session->stand = stand;
    if (stand != US_PIPE_READY) {
        us_links_remove(&session->ready);
    } else if (!us_link_in(&session->ready)) {
        us_links_add(&pipe->ready, &session->ready);
    }
}

void us_pipe_give_up(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_phase phase,
                     enum us_pipe_reason reason) {
    pipe->counters.final_failures[phase] += !job->session->stopping; /* else it is cancelled, now or with the rest */
    us_pipe_set_state(pipe, job, US_PIPE_FAILED);
    job->phase = (uint8_t)phase;
    job->reason = (uint8_t)reason;
    if (job->session->stopping && job->turned) {
        us_pipe_cut(pipe, job);
    } else if (job->turned && us_pipe_first(job->session) == job) {
        us_pipe_settle(pipe, job->session);
    }
}

bool us_pipe_may_step(const struct us_pipe *pipe) {
    return !us_links_empty(&pipe->ready);
}

struct us_pipe_job *us_pipe_next_step(struct us_pipe *pipe, uint64_t now) {
    struct us_link *link = us_links_first(&pipe->ready);
    if (!link) {
        return NULL;
    }
    struct us_pipe_session *session = US_LINKED(link, struct us_pipe_session, ready);
    struct us_pipe_job *job = us_pipe_first(session);
    us_links_remove(link);
    session->stand = US_PIPE_BUSY;
    if (job->state == US_PIPE_FAILED) {
        us_pipe_set_state(pipe, job, US_PIPE_BURYING);
        job->burials++;
        return job;
    }
    bool again = job->called[US_PIPE_DELIVER];
    job->called[US_PIPE_DELIVER] = true;
    job->attempts[US_PIPE_DELIVER]++;
    pipe->counters.attempts[US_PIPE_DELIVER]++;
    pipe->counters.retries[US_PIPE_DELIVER] += again;
    if (!again) {
        us_pipe_count(&pipe->counters.turn, now > job->turn_at ? now - job->turn_at : 0);
    }
    us_pipe_set_state(pipe, job, US_PIPE_DELIVERING);
    job->slow = false;
    job->since = now;
    us_links_add(&pipe->delivering, &job->queue);
    return job;
}

void us_pipe_delivered(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_res res, uint64_t now) {
    uint32_t attempts = job->attempts[US_PIPE_DELIVER];
    struct us_pipe_session *session = job->session;
    pipe->now = now;
    if (!job->slow && us_pipe_is_overdue(pipe, job, now)) {
        us_pipe_tell_slow(pipe, job); /* nobody looked meanwhile: this may be the thread that would have */
    }
    us_links_remove(&job->queue);
    us_pipe_count(&pipe->counters.took[US_PIPE_DELIVER], now > job->since ? now - job->since : 0);
    pipe->counters.failures[US_PIPE_DELIVER] += res != US_PIPE_OK;
    enum us_pipe_verdict verdict = us_pipe_judge(res, attempts, pipe->params.retries[US_PIPE_DELIVER]);
    if (job->over) {
        us_pipe_finish(pipe, job, US_PIPE_CANCELLED);
    } else if (verdict == US_PIPE_DONE) {
        us_pipe_finish(pipe, job, US_PIPE_DELIVERED);
    } else if (verdict == US_PIPE_AGAIN && !session->stopping) {
        us_pipe_put_off(pipe, job, US_PIPE_REDELIVERING, attempts, now);
    } else {
        us_pipe_give_up(pipe, job, US_PIPE_DELIVER,
                        job->slow && res != US_PIPE_FAIL ? US_PIPE_TIMEOUT : us_pipe_reason_of(res));
    }
    us_pipe_settle(pipe, session);
}

void us_pipe_buried(struct us_pipe *pipe, struct us_pipe_job *job, bool stored, uint64_t now) {
    struct us_pipe_session *session = job->session;
    pipe->now = now;
    pipe->counters.burial_failures += !stored;
    if (job->over) {
        us_pipe_finish(pipe, job, US_PIPE_CANCELLED);
    } else if (stored) {
        us_pipe_finish(pipe, job, US_PIPE_BURIED);
    } else if (session->stopping) {
        us_pipe_cut(pipe, job);
    } else {
        us_pipe_put_off(pipe, job, US_PIPE_REBURYING, job->burials, now);
        us_pipe_tell(pipe, job, US_PIPE_TELL_NOT_BURIED);
    }
    us_pipe_settle(pipe, session);
}

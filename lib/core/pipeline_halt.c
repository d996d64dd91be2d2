/* SPDX-License-Identifier: BSD-2-Clause */
/* What halted sessions pile up has a bound of its own: the others must not wait for it. */
#include <core/pipeline.h>

static void move(struct us_pipe_load *from, struct us_pipe_load *to, const struct us_pipe_session *session) {
    from->records -= session->records;
    from->bytes -= session->bytes;
    to->records += session->records;
    to->bytes += session->bytes;
}

void us_pipe_halt(struct us_pipe *pipe, struct us_pipe_session *session) {
    struct us_pipe_job *job = us_pipe_first(session);
    us_pipe_set_state(pipe, job, US_PIPE_HALTED);
    job->since = pipe->now;
    us_links_remove(&session->ready);
    session->stand = US_PIPE_STANDS;
    us_links_add(&pipe->standing, &session->stands);
    move(&pipe->turned, &pipe->halted, session);
    pipe->counters.standing++;
    pipe->counters.halts++;
    us_pipe_tell(pipe, job, US_PIPE_TELL_HALTED);
}

static void unpark(struct us_pipe *pipe, const struct us_pipe_session *session, const struct us_links *list) {
    for (struct us_link *link = us_links_first(list); link && !session->stopping; link = us_links_after(list, link)) {
        struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, of);
        if (job->parked) {
            us_pipe_queue(pipe, job, job->since);
        }
    }
}

void us_pipe_halt_end(struct us_pipe *pipe, struct us_pipe_session *session) {
    if (session->stand != US_PIPE_STANDS) {
        return;
    }
    session->stand = US_PIPE_IDLE;
    us_links_remove(&session->stands);
    move(&pipe->halted, &pipe->turned, session);
    pipe->counters.standing--;
    unpark(pipe, session, &session->turn);
    unpark(pipe, session, &session->early);
}

bool us_pipe_resolve(struct us_pipe *pipe, uint64_t space, const void *id, uint32_t id_len, enum us_pipe_action action,
                     uint64_t now) {
    struct us_pipe_session *session = us_pipe_session_find(pipe, space, id, id_len);
    if (!session || session->stand != US_PIPE_STANDS) {
        return false;
    }
    struct us_pipe_job *job = us_pipe_first(session);
    pipe->now = now;
    us_pipe_tell_not(job, US_PIPE_TELL_HALTED);
    us_pipe_halt_end(pipe, session);
    switch (action) {
    case US_PIPE_TRY_AGAIN:
        job->attempts[job->phase] = 0;
        if (job->phase == US_PIPE_PREPARE) {
            us_pipe_queue(pipe, job, now);
        } else {
            us_pipe_set_state(pipe, job, US_PIPE_PREPARED);
        }
        break;
    case US_PIPE_SKIP_IT:
        job->reason = US_PIPE_RESOLVED;
        us_pipe_set_state(pipe, job, US_PIPE_FAILED);
        us_pipe_finish(pipe, job, US_PIPE_SKIPPED);
        break;
    case US_PIPE_BURY_IT:
        job->reason = US_PIPE_RESOLVED;
        job->bury = true;
        us_pipe_set_state(pipe, job, US_PIPE_FAILED);
        break;
    }
    us_pipe_settle(pipe, session);
    return true;
}

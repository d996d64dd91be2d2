/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/pipeline.h>
#include <string.h>

static bool is_meant(const struct us_job *job, const char *topic, int32_t partition, const void *session,
                     size_t session_len) {
    size_t len;
    const void *name = us_job_session(job, &len);
    bool named = session ? name && len == session_len && memcmp(name, session, len) == 0 : !name;
    return named && job->message->partition == partition &&
           strcmp(rd_kafka_topic_name(job->message->rkt), topic) == 0;
}

/* lock */
static bool resolve(struct unsalt_pipeline *pl, const char *topic, int32_t partition, const void *session,
                    size_t session_len, enum us_pipe_action action) {
    struct us_links *standing = &pl->pipe.standing;
    for (struct us_link *link = us_links_first(standing); link; link = us_links_after(standing, link)) {
        struct us_pipe_session *found = US_LINKED(link, struct us_pipe_session, stands);
        if (is_meant(us_job_of(us_pipe_first(found)), topic, partition, session, session_len)) {
            return us_pipe_resolve(&pl->pipe, found->space, found->id, found->id_len, action, us_clock_now());
        }
    }
    return false;
}

rd_kafka_resp_err_t unsalt_pipeline_resolve(unsalt_pipeline_t *p, const char *topic, int32_t partition,
                                            const void *session, size_t session_len, unsalt_pipeline_action_t action) {
    bool known = action == UNSALT_PIPELINE_TRY_AGAIN || action == UNSALT_PIPELINE_SKIP_IT ||
                 action == UNSALT_PIPELINE_DEAD_LETTER;
    if (!topic || !known) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    bool nowhere = !p->callbacks.dead_letter && !*p->u->conf->pipeline_dead_letter_topic;
    if (action == UNSALT_PIPELINE_DEAD_LETTER && nowhere) {
        us_log(p->u, 3, "a session halted in %s [%d] is not resolved: its dead letter has nowhere to go, without "
                        "pipeline.dead.letter.topic and without a dead_letter callback", topic, (int)partition);
        return RD_KAFKA_RESP_ERR__NOT_CONFIGURED;
    }
    pthread_mutex_lock(&p->lock);
    bool done = resolve(p, topic, partition, session, session_len, (enum us_pipe_action)action);
    us_threads_wake(p);
    pthread_mutex_unlock(&p->lock);
    if (done) {
        us_signal(p->u);
    }
    return done ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__NOENT;
}

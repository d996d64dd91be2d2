/* SPDX-License-Identifier: BSD-2-Clause */
/* Dead letters to a topic, by an idempotent producer; docs/dead-letters.md says what they look like. */
#include <base/mem.h>
#include <kafka/checkpoint_topic.h>
#include <kafka/dead_letter.h>
#include <kafka/handle_end.h>
#include <kafka/pipeline.h>

#define HANDLES_MS 5000 /* how long the end waits for librdkafka to tell what became of the last ones */

/* What has ended the producer says more than that it has ended. */
char *us_dead_reason(struct unsalt_pipeline *pl, rd_kafka_resp_err_t err) {
    char text[512] = "";
    pthread_mutex_lock(&pl->dead_lock);
    bool fatal = err == RD_KAFKA_RESP_ERR__FATAL && pl->dead && rd_kafka_fatal_error(pl->dead, text, sizeof(text));
    pthread_mutex_unlock(&pl->dead_lock);
    return us_text_dup(fatal ? text : rd_kafka_err2str(err));
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct unsalt_pipeline *pl = opaque;
    struct us_job *job = message->_private;
    (void)rk;
    char *error = message->err ? us_dead_reason(pl, message->err) : NULL; /* the event has it */
    pthread_mutex_lock(&pl->lock);
    error = us_job_unburied(job, error);
    us_pipe_buried(&pl->pipe, &job->pipe, !message->err, us_clock_now());
    us_threads_wake(pl);
    pthread_mutex_unlock(&pl->lock);
    us_free(&us_mem_default, error);
    atomic_fetch_sub(&pl->dead_flying, 1);
}

static rd_kafka_t *make(struct unsalt_pipeline *pl, const rd_kafka_conf_t *conf, char *errstr, size_t size) {
    struct us_checkpoint_client client = {.conf = conf};
    rd_kafka_conf_t *mine = us_checkpoint_client_conf(&client);
    us_checkpoint_client_set(mine, "enable.idempotence", "true");
    us_checkpoint_client_set(mine, "partitioner", "murmur2"); /* as the Java client; all without a key in one */
    us_checkpoint_client_set(mine, "linger.ms", "0");
    us_checkpoint_client_set(mine, "message.timeout.ms", "30000"); /* then it is told, and tried again */
    us_checkpoint_client_set(mine, "topic.metadata.propagation.max.ms", "5000");
    us_checkpoint_client_set(mine, "message.max.bytes", "1000000000"); /* the broker decides what is too large */
    rd_kafka_conf_set_dr_msg_cb(mine, on_delivery);
    rd_kafka_conf_set_opaque(mine, pl);
    rd_kafka_t *dead = rd_kafka_new(RD_KAFKA_PRODUCER, mine, errstr, size);
    if (!dead) {
        rd_kafka_conf_destroy(mine);
    }
    return dead;
}

bool us_dead_init(struct unsalt_pipeline *pl, rd_kafka_conf_t *rk_conf, const struct unsalt_conf *conf, char *errstr,
                  size_t size) {
    char group[256] = "";
    size_t group_size = sizeof(group);
    rd_kafka_conf_get(rk_conf, "group.id", group, &group_size);
    pl->group = pl->group_text = us_text_dup(group);
    if (!pl->group) {
        snprintf(errstr, size, "out of memory");
        return false;
    }
    if (pl->callbacks.dead_letter || !*conf->pipeline_dead_letter_topic) {
        return true;
    }
    pl->dead = make(pl, rk_conf, errstr, size);
    return pl->dead;
}

static void on_answer(rd_kafka_t *rk, void *opaque) {
    (void)rk;
    us_signal(opaque);
}

static void watch(struct unsalt_pipeline *pl) {
    pl->dead_queue = rd_kafka_queue_get_main(pl->dead);
    rd_kafka_queue_cb_event_enable(pl->dead_queue, on_answer, pl->u);
}

void us_dead_watch(struct unsalt_pipeline *pl) {
    pl->dead_topic = pl->u->conf->pipeline_dead_letter_topic;
    if (pl->dead) {
        watch(pl);
    }
}

static void unwatch(struct unsalt_pipeline *pl) {
    if (pl->dead_queue) {
        rd_kafka_queue_cb_event_enable(pl->dead_queue, NULL, NULL);
        rd_kafka_queue_destroy(pl->dead_queue);
    }
    pl->dead_queue = NULL;
}

/*
 * An idempotent producer that has failed for good takes nothing any more, and the sessions would wait for ever. What it
 * still had is answered first.
 */
static void replace(struct unsalt_pipeline *pl) {
    char errstr[512];
    rd_kafka_t *former = NULL;
    pthread_mutex_lock(&pl->dead_lock);
    if (atomic_load(&pl->dead_flying) > 0) {
        rd_kafka_purge(pl->dead, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    } else {
        rd_kafka_t *next = make(pl, pl->u->asker.conf, errstr, sizeof(errstr));
        if (next) {
            former = pl->dead;
            unwatch(pl);
            pl->dead = next;
            watch(pl);
        }
    }
    pthread_mutex_unlock(&pl->dead_lock);
    if (former) {
        us_log(pl->u, 4, "the producer of dead letters has failed for good, and was replaced");
        us_handle_told(pl->u, us_handle_end(former, US_HANDLE_END_MS), "wrote dead letters");
    }
}

/* ---- sending */

static rd_kafka_headers_t *headers_of(const struct unsalt_pipeline *pl, const struct us_call *call) {
    const unsalt_pipeline_job_t *job = &call->job;
    const struct us_dead_letter letter = {
        .message = job->message,
        .reason = unsalt_pipeline_reason_name(call->failure.reason),
        .phase = unsalt_pipeline_phase_name(call->failure.phase),
        .error = call->failure.error,
        .group = pl->group,
        .state = unsalt_state_name(job->state),
        .attempts = call->failure.attempts,
        .session = job->session,
        .session_len = job->session_len,
        .seq = job->seq,
        .epoch = job->epoch,
        .cursor = call->failure.cursor,
    };
    return us_dead_letter_headers(&letter);
}

rd_kafka_resp_err_t us_dead_send(struct unsalt_pipeline *pl, const struct us_call *call) {
    const rd_kafka_message_t *message = call->job.message;
    rd_kafka_headers_t *headers = headers_of(pl, call);
    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    pthread_mutex_lock(&pl->dead_lock);
    atomic_fetch_add(&pl->dead_flying, 1);
    rd_kafka_resp_err_t err = rd_kafka_producev(
        pl->dead, RD_KAFKA_V_TOPIC(pl->dead_topic), RD_KAFKA_V_KEY(call->job.session, call->job.session_len),
        RD_KAFKA_V_VALUE(message->payload, message->len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_TIMESTAMP(timestamp > 0 ? timestamp : 0), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE(call->of), RD_KAFKA_V_END);
    pthread_mutex_unlock(&pl->dead_lock);
    if (err) {
        rd_kafka_headers_destroy(headers);
        atomic_fetch_sub(&pl->dead_flying, 1);
    }
    return err;
}

void us_dead_serve(struct unsalt_pipeline *pl) {
    if (pl->dead) {
        rd_kafka_poll(pl->dead, 0);
        if (rd_kafka_fatal_error(pl->dead, NULL, 0)) {
            replace(pl);
        }
    }
}

void us_dead_stop(struct unsalt_pipeline *pl) {
    if (!pl->dead) {
        return;
    }
    unwatch(pl);
    rd_kafka_purge(pl->dead, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    for (uint64_t until = us_clock_ms() + HANDLES_MS; atomic_load(&pl->dead_flying) > 0 && us_clock_ms() < until;) {
        rd_kafka_poll(pl->dead, 10);
    }
    us_handle_told(pl->u, us_handle_end(pl->dead, US_HANDLE_END_MS), "writes dead letters");
    pl->dead = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The caller's side of the writer: hands work to its thread, and waits for it within a bound. */
#include <base/mem.h>
#include <kafka/checkpoint_topic_ending.h>
#include <kafka/checkpoint_topic_fate.h>
#include <kafka/clock.h>
#include <stdio.h>

static enum us_checkpoint_result say(struct us_checkpoint_outcome *outcome, enum us_checkpoint_result result,
                                     rd_kafka_resp_err_t err, const char *text) {
    *outcome = (struct us_checkpoint_outcome){.result = result, .err = err};
    snprintf(outcome->text, sizeof(outcome->text), "%s", text);
    return result;
}

/* ---- life */

struct us_checkpoint_writer *us_checkpoint_writer_new(const struct us_checkpoint_writer_settings *settings) {
    struct us_checkpoint_writer *w = us_calloc(&us_mem_default, 1, sizeof(*w));
    if (!w || !us_clock_wait_init(&w->lock, &w->changed)) {
        us_free(&us_mem_default, w);
        return NULL;
    }
    w->settings = *settings;
    return w;
}

static void end_thread(struct us_checkpoint_writer *w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

bool us_checkpoint_writer_destroy(struct us_checkpoint_writer *w) {
    if (!w) {
        return true;
    }
    if (w->has_thread) {
        end_thread(w);
    }
    us_writer_drop_offsets(w);
    bool gone = us_writer_drop_producer(w) && !w->left;
    us_clock_wait_destroy(&w->lock, &w->changed);
    us_free(&us_mem_default, w);
    return gone;
}

/* ---- the state */

static enum us_writer_state state_of(struct us_checkpoint_writer *w) {
    pthread_mutex_lock(&w->lock);
    enum us_writer_state state = w->state;
    pthread_mutex_unlock(&w->lock);
    return state;
}

static void move(struct us_checkpoint_writer *w, enum us_writer_state state) {
    pthread_mutex_lock(&w->lock);
    w->state = state;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Waits while the thread is at work, and returns the state. */
static enum us_writer_state wait_idle(struct us_checkpoint_writer *w, int timeout_ms) {
    bool over = timeout_ms <= 0;
    uint64_t until = us_clock_now() + (over ? 0 : (uint64_t)timeout_ms * 1000000u);
    pthread_mutex_lock(&w->lock);
    while (!over && (w->state == US_WRITER_STARTING || w->state == US_WRITER_ENDING)) {
        over = !us_clock_wait(&w->changed, &w->lock, until);
    }
    enum us_writer_state state = w->state;
    pthread_mutex_unlock(&w->lock);
    return state;
}

/* ---- a transaction */

void us_checkpoint_writer_prepare(struct us_checkpoint_writer *w) {
    if (state_of(w) != US_WRITER_NONE) {
        return;
    }
    if (!w->has_thread) {
        w->has_thread = pthread_create(&w->thread, NULL, us_writer_main, w) == 0;
    }
    if (w->has_thread) {
        move(w, US_WRITER_STARTING);
    } else {
        say(&w->outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "no thread for checkpoints");
    }
}

static enum us_checkpoint_result begin(struct us_checkpoint_writer *w, int timeout_ms,
                                       struct us_checkpoint_outcome *outcome) {
    rd_kafka_poll(w->rk, 0); /* token refreshes */
    rd_kafka_error_t *error = rd_kafka_begin_transaction(w->rk);
    if (error) {
        struct us_checkpoint_verdict verdict = us_checkpoint_fate(error);
        say(outcome, verdict.next == US_CHECKPOINT_FENCED ? US_CHECKPOINT_REFUSED : US_CHECKPOINT_FAILED,
            rd_kafka_error_code(error), rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        us_writer_drop_producer(w);
        move(w, US_WRITER_NONE);
        return outcome->result;
    }
    w->opened = us_clock_ms();
    w->put_until = w->opened + (uint64_t)timeout_ms;
    w->put_err = RD_KAFKA_RESP_ERR_NO_ERROR;
    move(w, US_WRITER_OPEN);
    return say(outcome, US_CHECKPOINT_DONE, RD_KAFKA_RESP_ERR_NO_ERROR, "");
}

enum us_checkpoint_result us_checkpoint_writer_open(struct us_checkpoint_writer *w, int timeout_ms,
                                                    struct us_checkpoint_outcome *outcome) {
    us_checkpoint_writer_prepare(w);
    if (!w->has_thread) {
        *outcome = w->outcome;
        return outcome->result;
    }
    enum us_writer_state state = state_of(w);
    state = state == US_WRITER_STARTING ? wait_idle(w, timeout_ms) : state;
    switch (state) {
    case US_WRITER_READY:
        return begin(w, timeout_ms, outcome);
    case US_WRITER_NONE:
        *outcome = w->outcome;
        return outcome->result;
    case US_WRITER_STARTING:
        return say(outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__TIMED_OUT, "the producer isn't ready yet");
    case US_WRITER_ENDING:
    case US_WRITER_ENDED:
        return say(outcome, US_CHECKPOINT_UNKNOWN, RD_KAFKA_RESP_ERR__IN_PROGRESS, "a commit is under way");
    default:
        return say(outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__STATE, "a transaction is open");
    }
}

rd_kafka_resp_err_t us_checkpoint_writer_put(struct us_checkpoint_writer *w, const struct us_checkpoint_record *entry) {
    if (state_of(w) != US_WRITER_OPEN) {
        return RD_KAFKA_RESP_ERR__STATE;
    }
    rd_kafka_resp_err_t err = us_checkpoint_put(w->rk, w->rkt, entry, w->put_until);
    w->put_err = w->put_err ? w->put_err : err;
    return err;
}

static enum us_checkpoint_result end(struct us_checkpoint_writer *w, bool commit, int timeout_ms,
                                     struct us_checkpoint_outcome *outcome) {
    w->commit = commit;
    move(w, US_WRITER_ENDING);
    return us_checkpoint_writer_resume(w, timeout_ms, outcome);
}

enum us_checkpoint_result us_checkpoint_writer_finish(struct us_checkpoint_writer *w,
                                                      rd_kafka_topic_partition_list_t *offsets,
                                                      rd_kafka_consumer_group_metadata_t *metadata, int timeout_ms,
                                                      struct us_checkpoint_outcome *outcome) {
    if (state_of(w) != US_WRITER_OPEN) {
        if (offsets) {
            rd_kafka_topic_partition_list_destroy(offsets);
        }
        if (metadata) {
            rd_kafka_consumer_group_metadata_destroy(metadata);
        }
        return say(outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__STATE, "no transaction is open");
    }
    w->offsets = offsets;
    w->metadata = metadata;
    return end(w, true, timeout_ms, outcome);
}

enum us_checkpoint_result us_checkpoint_writer_abandon(struct us_checkpoint_writer *w, int timeout_ms,
                                                       struct us_checkpoint_outcome *outcome) {
    if (state_of(w) != US_WRITER_OPEN) {
        return say(outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__STATE, "no transaction is open");
    }
    return end(w, false, timeout_ms, outcome);
}

enum us_checkpoint_result us_checkpoint_writer_resume(struct us_checkpoint_writer *w, int timeout_ms,
                                                      struct us_checkpoint_outcome *outcome) {
    enum us_writer_state state = state_of(w);
    state = state == US_WRITER_ENDING ? wait_idle(w, timeout_ms) : state;
    if (state == US_WRITER_ENDING) {
        return say(outcome, US_CHECKPOINT_UNKNOWN, RD_KAFKA_RESP_ERR__TIMED_OUT, "the outcome isn't known yet");
    }
    if (state != US_WRITER_ENDED) {
        return say(outcome, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__STATE, "no outcome is waited for");
    }
    *outcome = w->outcome;
    move(w, w->rk ? US_WRITER_READY : US_WRITER_NONE);
    if (w->left) {
        us_checkpoint_writer_prepare(w);
    }
    return outcome->result;
}

bool us_checkpoint_writer_busy(struct us_checkpoint_writer *w) {
    return state_of(w) == US_WRITER_ENDING;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer's thread: makes the producer, and ends transactions. Calls of librdkafka get slices of time, so that it
 * notices that it should end; but for the one that sends offsets, which can be left only (offsets_send.h).
 */
#include <kafka/checkpoint_topic_ending.h>
#include <kafka/checkpoint_topic_fate.h>
#include <kafka/clock.h>
#include <kafka/handle_end.h>
#include <kafka/offsets_send.h>
#include <stdio.h>
#include <time.h>

#define SLICE_MS 500
#define ABORT_MS 3000 /* then the producer goes: the coordinator aborts what it leaves, or its successor does */
#define AGAIN_MS 20

static bool should_stop(struct us_checkpoint_writer *w) {
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return stop;
}

static void pause_briefly(void) {
    struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    nanosleep(&pause, NULL);
}

static void conclude(struct us_checkpoint_writer *w, enum us_checkpoint_result result, rd_kafka_resp_err_t err,
                     const char *doing, const char *why) {
    w->outcome.result = result;
    w->outcome.maybe = false;
    w->outcome.err = err;
    snprintf(w->outcome.text, sizeof(w->outcome.text), "%s: %s", doing, why);
}

bool us_writer_drop_producer(struct us_checkpoint_writer *w) {
    if (w->rkt) {
        rd_kafka_topic_destroy(w->rkt);
    }
    bool gone = us_handle_end(w->rk, US_HANDLE_END_MS);
    w->rkt = NULL;
    w->rk = NULL;
    return gone;
}

void us_writer_drop_offsets(struct us_checkpoint_writer *w) {
    if (w->offsets) {
        rd_kafka_topic_partition_list_destroy(w->offsets);
    }
    if (w->metadata) {
        rd_kafka_consumer_group_metadata_destroy(w->metadata);
    }
    w->offsets = NULL;
    w->metadata = NULL;
}

/* ---- the producer */

/* librdkafka wants message.timeout.ms <= transaction.timeout.ms and socket.timeout.ms <= that + 100. */
static rd_kafka_conf_t *producer_conf(const struct us_checkpoint_writer_settings *settings) {
    rd_kafka_conf_t *conf = us_checkpoint_client_conf(&settings->client);
    char ms[16], socket[16] = "60000";
    size_t size = sizeof(socket);
    int half = settings->transaction_timeout_ms / 2, inherited = 60000;
    if (rd_kafka_conf_get(conf, "socket.timeout.ms", socket, &size) != RD_KAFKA_CONF_OK ||
        sscanf(socket, "%d", &inherited) != 1 || inherited > half) {
        snprintf(socket, sizeof(socket), "%d", half);
    }
    snprintf(ms, sizeof(ms), "%d", settings->transaction_timeout_ms);
    us_checkpoint_client_set(conf, "transactional.id", settings->transactional_id);
    us_checkpoint_client_set(conf, "enable.idempotence", "true");
    us_checkpoint_client_set(conf, "transaction.timeout.ms", ms);
    us_checkpoint_client_set(conf, "message.timeout.ms", ms);
    us_checkpoint_client_set(conf, "socket.timeout.ms", socket);
    us_checkpoint_client_set(conf, "acks", "all");
    us_checkpoint_client_set(conf, "message.send.max.retries", "2147483647");
    us_checkpoint_client_set(conf, "max.in.flight.requests.per.connection", "5");
    us_checkpoint_client_set(conf, "queue.buffering.backpressure.threshold", "1");
    us_checkpoint_client_set(conf, "enable.gapless.guarantee", "false");
    us_checkpoint_client_set(conf, "queuing.strategy", "fifo");
    us_checkpoint_client_set(conf, "linger.ms", "20"); /* a flush doesn't wait for it */
    us_checkpoint_client_set(conf, "batch.num.messages", "20000");
    /* A commit has as many entries as it has, and one that doesn't wait can't wait for room either. */
    us_checkpoint_client_set(conf, "queue.buffering.max.messages", "10000000");
    us_checkpoint_client_set(conf, "queue.buffering.max.kbytes", "2097151");
    us_checkpoint_client_set(conf, "compression.codec", settings->compress ? "lz4" : "none");
    return conf;
}

static bool make_producer(struct us_checkpoint_writer *w) {
    char errstr[256] = "no topic";
    rd_kafka_conf_t *conf = producer_conf(&w->settings);
    w->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
    if (!w->rk) {
        rd_kafka_conf_destroy(conf);
    }
    w->rkt = w->rk ? rd_kafka_topic_new(w->rk, w->settings.topic, NULL) : NULL;
    if (!w->rkt) {
        conclude(w, US_CHECKPOINT_FAILED, RD_KAFKA_RESP_ERR__FAIL, "no producer for checkpoints", errstr);
    }
    return w->rkt != NULL;
}

/* Tries for as long as librdkafka says that it may help. Returns whether the producer is ready. */
static bool start(struct us_checkpoint_writer *w) {
    w->left = false;
    bool ready = make_producer(w);
    bool again = ready;
    while (again) {
        rd_kafka_poll(w->rk, 0); /* token refreshes */
        rd_kafka_error_t *error = rd_kafka_init_transactions(w->rk, SLICE_MS);
        struct us_checkpoint_verdict verdict = us_checkpoint_fate(error);
        ready = verdict.next == US_CHECKPOINT_GO_ON;
        again = verdict.next == US_CHECKPOINT_AGAIN && !should_stop(w);
        if (!ready) {
            conclude(w, verdict.next == US_CHECKPOINT_FENCED ? US_CHECKPOINT_REFUSED : US_CHECKPOINT_FAILED,
                     rd_kafka_error_code(error), "no transactions for checkpoints", rd_kafka_error_string(error));
            rd_kafka_error_destroy(error);
        }
    }
    return ready;
}

/* ---- the end of a transaction */

/* Aborts. What can't be aborted in time is left to the coordinator, by a producer that goes. */
static void abort_it(struct us_checkpoint_writer *w) {
    uint64_t until = us_clock_ms() + ABORT_MS;
    struct us_checkpoint_verdict verdict;
    do {
        rd_kafka_error_t *error = rd_kafka_abort_transaction(w->rk, SLICE_MS);
        verdict = us_checkpoint_fate(error);
        if (error) {
            rd_kafka_error_destroy(error);
        }
    } while (verdict.next == US_CHECKPOINT_AGAIN && us_clock_ms() < until && !should_stop(w));
    if (verdict.next != US_CHECKPOINT_GO_ON) {
        us_writer_drop_producer(w);
    }
}

/* An error before the commit was asked for: nothing of the transaction can become visible. Destroys the error. */
static void give_up(struct us_checkpoint_writer *w, rd_kafka_error_t *error, const char *doing) {
    struct us_checkpoint_verdict verdict = us_checkpoint_fate(error);
    conclude(w, verdict.next == US_CHECKPOINT_FENCED ? US_CHECKPOINT_REFUSED : US_CHECKPOINT_FAILED,
             rd_kafka_error_code(error), doing, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    if (verdict.dead) {
        us_writer_drop_producer(w);
    } else {
        abort_it(w);
    }
}

static uint64_t transaction_ends(const struct us_checkpoint_writer *w) {
    return w->opened + (uint64_t)w->settings.transaction_timeout_ms;
}

/* A producer that was fenced may learn that from an entry: then it is known before a commit is asked for. */
static bool is_alive(struct us_checkpoint_writer *w) {
    char why[256];
    rd_kafka_resp_err_t err = rd_kafka_fatal_error(w->rk, why, sizeof(why));
    if (err) {
        give_up(w, rd_kafka_error_new(err, "%s", why), "entries of the checkpoint");
    }
    return !err;
}

/* Step 1: the entries stand in the log. librdkafka itself refuses to commit if one of them was not delivered. */
static bool deliver(struct us_checkpoint_writer *w) {
    rd_kafka_resp_err_t err = w->put_err;
    uint64_t now = us_clock_ms();
    while (!err && now < transaction_ends(w) && !should_stop(w)) {
        if (!us_checkpoint_flush(w->rk, now + SLICE_MS)) {
            return is_alive(w);
        }
        now = us_clock_ms();
    }
    err = err ? err : RD_KAFKA_RESP_ERR__TIMED_OUT;
    conclude(w, US_CHECKPOINT_FAILED, err, "entries of the checkpoint were not delivered", rd_kafka_err2str(err));
    abort_it(w);
    if (w->put_err) {
        us_writer_drop_producer(w); /* librdkafka remembers an error of the topic until it looks at it again */
    }
    return false;
}

/* Once. False: the producer was left behind, and nothing of the transaction will ever be seen. */
static bool call(struct us_checkpoint_writer *w, rd_kafka_error_t **error) {
    struct us_offsets what = {w->rk, w->rkt, w->offsets, w->metadata};
    w->left = !us_offsets_send(&what, transaction_ends(w), error);
    w->rk = what.rk;
    w->rkt = what.rkt;
    w->offsets = what.offsets;
    w->metadata = what.metadata;
    return !w->left;
}

/* Step 2: the offsets are pending, which the coordinator allows to a member of the present generation only. */
static bool send_offsets(struct us_checkpoint_writer *w) {
    while (w->offsets && w->offsets->cnt > 0) {
        rd_kafka_error_t *error;
        if (!call(w, &error)) {
            conclude(w, US_CHECKPOINT_FAILED, rd_kafka_error_code(error), "offsets of the checkpoint",
                     rd_kafka_error_string(error));
            rd_kafka_error_destroy(error);
            return false;
        }
        if (!error) {
            break;
        }
        if (us_checkpoint_fate(error).next != US_CHECKPOINT_AGAIN || us_clock_ms() >= transaction_ends(w) ||
            should_stop(w)) {
            give_up(w, error, "offsets of the checkpoint");
            return false;
        }
        rd_kafka_error_destroy(error);
        pause_briefly();
    }
    return true;
}

/*
 * Step 3: both become visible. The same call again until it has an answer: librdkafka repeats the request for the end
 * for as long as it takes, and the coordinator knows a repetition. An error that asks for an abort comes without a
 * request for the end, or is the coordinator's refusal of it; only a producer that died leaves it open what happened.
 */
static void commit_it(struct us_checkpoint_writer *w) {
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_commit_transaction(w->rk, SLICE_MS);
        struct us_checkpoint_verdict verdict = us_checkpoint_fate(error);
        if (verdict.next == US_CHECKPOINT_GO_ON) {
            return;
        }
        if (verdict.next == US_CHECKPOINT_AGAIN && !should_stop(w)) {
            rd_kafka_error_destroy(error);
            pause_briefly();
            continue;
        }
        give_up(w, error, "commit of the checkpoint");
        if (verdict.dead) {
            w->outcome.result = US_CHECKPOINT_FAILED;
            w->outcome.maybe = true;
        }
        return;
    }
}

static void end_it(struct us_checkpoint_writer *w) {
    w->outcome = (struct us_checkpoint_outcome){.result = US_CHECKPOINT_DONE};
    if (!w->commit) {
        abort_it(w);
    } else if (deliver(w) && send_offsets(w)) {
        commit_it(w);
    }
    us_writer_drop_offsets(w);
}

/* ---- the thread */

/* Waits until there is something to do; false: nothing more. */
static bool next_job(struct us_checkpoint_writer *w, enum us_writer_state *state) {
    pthread_mutex_lock(&w->lock);
    while (!w->stop && w->state != US_WRITER_STARTING && w->state != US_WRITER_ENDING) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    *state = w->state;
    bool go_on = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

void *us_writer_main(void *opaque) {
    struct us_checkpoint_writer *w = opaque;
    enum us_writer_state state;
    while (next_job(w, &state)) {
        enum us_writer_state now = US_WRITER_ENDED;
        if (state == US_WRITER_STARTING) {
            now = start(w) ? US_WRITER_READY : US_WRITER_NONE;
            if (now == US_WRITER_NONE) {
                us_writer_drop_producer(w);
            }
        } else {
            end_it(w);
        }
        pthread_mutex_lock(&w->lock);
        w->state = now;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        if (w->settings.wake) {
            w->settings.wake(w->settings.opaque);
        }
    }
    return NULL;
}

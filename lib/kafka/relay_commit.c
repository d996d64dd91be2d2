/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transaction of a batch. The group's coordinator takes its offsets from a member of the present generation only;
 * and the next owner of a partition, which asks for committed offsets, is told to wait until a transaction with offsets
 * of it is over. So of two owners the results of the first stand before those of the second, or are aborted.
 *
 * Whatever fails, the batch is read again from what the group has committed: also when it isn't known whether the
 * transaction was committed, since a new producer of the same id waits for its outcome.
 */
#include <kafka/clock.h>
#include <kafka/offsets_send.h>
#include <kafka/relay.h>
#include <string.h>

#define LOG_WARNING 4 /* as syslog(3) */

/* What a call's answer asks for. */
enum answer { DONE, ABORT, ENDED };

struct transaction {
    struct unsalt_relay *r;
    uint64_t until;
    rd_kafka_error_t *error; /* owned: the first thing that went wrong */
};

static void note(struct transaction *t, rd_kafka_error_t *error) {
    if (t->error)
        rd_kafka_error_destroy(error);
    else
        t->error = error;
}

static bool wants_again(const struct transaction *t, const rd_kafka_error_t *error) {
    return !rd_kafka_error_is_fatal(error) && !rd_kafka_error_txn_requires_abort(error) &&
           rd_kafka_error_is_retriable(error) && us_clock_ms() < t->until;
}

/* Takes the error of a call that isn't made again. */
static enum answer judge(struct transaction *t, rd_kafka_error_t *error) {
    if (!error)
        return DONE;
    bool ended = rd_kafka_error_is_fatal(error) || !rd_kafka_error_txn_requires_abort(error);
    note(t, error);
    return ended ? ENDED : ABORT;
}

static int rest(const struct transaction *t) {
    return us_clock_rest_ms(t->until, INT32_MAX);
}

/* ---- the producer */

rd_kafka_error_t *us_relay_make_producer(struct unsalt_relay *r) {
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(r->writes);
    r->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!r->producer) {
        rd_kafka_conf_destroy(conf);
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__FATAL, "No producer: %s", errstr);
    }
    r->initialised = false;
    atomic_fetch_add(&r->counters.producers, 1);
    return NULL;
}

void us_relay_end_producer(struct unsalt_relay *r) {
    if (!r->producer)
        return;
    rd_kafka_purge(r->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    us_relay_end_handle(r, r->producer, "producer");
    r->producer = NULL;
    r->initialised = false;
}

rd_kafka_error_t *us_relay_ready(struct unsalt_relay *r) {
    rd_kafka_error_t *error = r->producer ? NULL : us_relay_make_producer(r);
    if (error || r->initialised)
        return error;
    error = rd_kafka_init_transactions(r->producer, (int)us_relay_limited(r, (uint64_t)r->input->relay_timeout_ms));
    r->initialised = !error;
    if (error && rd_kafka_error_is_fatal(error))
        us_relay_end_producer(r);
    return error;
}

/* ---- offsets */

/* One above the last record of each partition: a batch has all of a partition's records from its first on. */
static rd_kafka_topic_partition_list_t *offsets_of(const struct us_relay_batch *batch) {
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
    rd_kafka_topic_partition_t *last = NULL;
    for (uint32_t i = 0; i < batch->count; i++) {
        const rd_kafka_message_t *message = batch->items[i].message;
        const char *topic = rd_kafka_topic_name(message->rkt);
        if (!last || last->partition != message->partition || strcmp(last->topic, topic) != 0)
            last = rd_kafka_topic_partition_list_find(offsets, topic, message->partition);
        last = last ? last : rd_kafka_topic_partition_list_add(offsets, topic, message->partition);
        last->offset = message->offset + 1;
    }
    return offsets;
}

/* Of a producer that was left behind nothing is committed, and the next one fences it: all is over with this one. */
static enum answer send_offsets(struct transaction *t) {
    struct unsalt_relay *r = t->r;
    rd_kafka_error_t *error = NULL;
    struct us_offsets what = {.rk = r->producer, .metadata = us_relay_metadata(r)};
    if (!what.metadata)
        return ABORT;
    what.offsets = offsets_of(r->committed);
    bool back = us_offsets_send(&what, t->until, &error);
    while (back && error && wants_again(t, error)) {
        rd_kafka_error_destroy(error);
        back = us_offsets_send(&what, t->until, &error);
    }
    us_offsets_drop(&what);
    r->producer = what.rk;
    return judge(t, error);
}

/* ---- the transaction */

static enum answer write_all(struct transaction *t) {
    enum answer answer = judge(t, rd_kafka_begin_transaction(t->r->producer));
    if (answer != DONE)
        return answer;
    rd_kafka_resp_err_t err = us_relay_write(t->r, t->until);
    if (err) {
        note(t, rd_kafka_error_new(err, "Results can't be produced: %s", rd_kafka_err2str(err)));
        return ABORT;
    }
    return send_offsets(t);
}

static enum answer commit(struct transaction *t) {
    rd_kafka_error_t *error = rd_kafka_commit_transaction(t->r->producer, rest(t));
    while (error && wants_again(t, error)) {
        rd_kafka_error_destroy(error);
        error = rd_kafka_commit_transaction(t->r->producer, rest(t));
    }
    return judge(t, error);
}

/* With a time limit of its own: the other one may be why. */
static enum answer abandon(struct transaction *t) {
    t->until = us_clock_ms() + (uint64_t)t->r->input->relay_timeout_ms;
    rd_kafka_error_t *error = rd_kafka_abort_transaction(t->r->producer, rest(t));
    while (error && wants_again(t, error)) {
        rd_kafka_error_destroy(error);
        error = rd_kafka_abort_transaction(t->r->producer, rest(t));
    }
    return judge(t, error);
}

#define STALE_MEMBER_EPOCH 113 /* as brokers have it; older librdkafkas have no name for it */

/* Others have the partitions now: nothing is wrong. */
static bool is_of_the_group(rd_kafka_resp_err_t code) {
    return (int)code == STALE_MEMBER_EPOCH || code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
           code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID || code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           code == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
}

rd_kafka_error_t *us_relay_commit(struct unsalt_relay *r, bool *done) {
    struct transaction t = {.r = r, .until = us_clock_ms() + (uint64_t)r->input->relay_timeout_ms};
    enum answer answer = write_all(&t);
    answer = answer == DONE ? commit(&t) : answer;
    *done = answer == DONE;
    if (answer == ABORT)
        answer = abandon(&t);
    if (answer == ENDED) {
        us_relay_log(r, LOG_WARNING, "a new producer is needed: %s",
                     t.error ? rd_kafka_error_string(t.error) : "the last one has ended");
        us_relay_end_producer(r);
    }
    if (t.error && is_of_the_group(rd_kafka_error_code(t.error))) {
        rd_kafka_error_destroy(t.error);
        t.error = NULL;
    }
    return t.error;
}

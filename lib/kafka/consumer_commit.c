/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commits of the frontier. The core says what may be committed; here is remembered what was asked for, so that
 * nothing is sent when nothing moved. A failure forgets it, so the next commit tries again.
 */
#include <kafka/consumer.h>

/* What a synchronous commit waits for; lives on the stack of us_commit. */
struct outcome {
    bool done;
    rd_kafka_resp_err_t err;
};

static rd_kafka_topic_partition_list_t *moved_frontiers(struct unsalt *u, bool only_revoking) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)u->partition_count);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        int64_t position = p->assigned ? unsalt_core_position(u->core, p->part) : -1;
        if (position < 0 || position == p->committed || (only_revoking && !p->revoking)) {
            continue;
        }
        rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = position;
        p->committed = position;
    }
    return list;
}

static void raise_failure(struct unsalt *u, rd_kafka_resp_err_t err, const char *topic, int32_t partition,
                          int64_t offset) {
    char text[512];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_COMMIT_FAILED);
    event.topic = topic;
    event.partition = partition;
    event.offset = offset;
    snprintf(text, sizeof(text), "commit_failed: offset %lld of %s [%d]: %s", (long long)offset, topic, (int)partition,
             rd_kafka_err2str(err));
    event.text = text;
    us_event_raise(u, &event);
}

/* Notes what failed: it counts as not committed. */
static void settle(struct unsalt *u, rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *list) {
    bool failed = false;
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        rd_kafka_resp_err_t why = one->err ? one->err : err;
        if (!why || why == RD_KAFKA_RESP_ERR__NO_OFFSET) {
            continue;
        }
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (p && p->committed == one->offset) {
            p->committed = -1;
        }
        failed = true;
        raise_failure(u, why, one->topic, one->partition, one->offset);
    }
    u->own.commit_failures += failed;
}

static void commit_done(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct outcome *outcome = opaque;
    struct unsalt *u = us_registry_find(rk);
    outcome->done = true;
    outcome->err = err;
    if (u) {
        settle(u, err, list);
    }
}

/* The reply comes to a queue of its own, so that the wait has a bound, which rd_kafka_commit() doesn't have. */
static rd_kafka_resp_err_t commit_and_wait(struct unsalt *u, const rd_kafka_topic_partition_list_t *list,
                                           int timeout_ms) {
    struct outcome outcome = {false, RD_KAFKA_RESP_ERR__TIMED_OUT};
    rd_kafka_queue_t *queue = rd_kafka_queue_new(u->rk);
    rd_kafka_resp_err_t err = rd_kafka_commit_queue(u->rk, list, queue, commit_done, &outcome);
    uint64_t now = us_clock_now();
    uint64_t until = timeout_ms < 0 ? UNSALT_NEVER : now + (uint64_t)timeout_ms * US_MS;
    while (!err && !outcome.done && now < until) {
        uint64_t rest = (until - now) / US_MS + 1;
        rd_kafka_queue_poll_callback(queue, rest < 1000 ? (int)rest : 1000);
        now = us_clock_now();
    }
    /* Destroying the queue drops a reply that is still to come, so `outcome` is not touched any more. */
    rd_kafka_queue_destroy(queue);
    if (err || !outcome.done) {
        err = err ? err : RD_KAFKA_RESP_ERR__TIMED_OUT;
        settle(u, err, list);
        return err;
    }
    return outcome.err == RD_KAFKA_RESP_ERR__NO_OFFSET ? RD_KAFKA_RESP_ERR_NO_ERROR : outcome.err;
}

rd_kafka_resp_err_t us_commit(struct unsalt *u, bool only_revoking, int timeout_ms) {
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_t *list = moved_frontiers(u, only_revoking);
    if (list->cnt > 0) {
        u->own.commits++;
        if (timeout_ms != 0) {
            err = commit_and_wait(u, list, timeout_ms);
        } else if ((err = rd_kafka_commit(u->rk, list, 1)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
            settle(u, err, list);
        }
    }
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

void us_commit_due(struct unsalt *u, uint64_t now) {
    if (now >= u->commit_at) {
        us_commit(u, false, 0);
        u->commit_at = u->before.commit_interval_ms > 0 ? now + (uint64_t)u->before.commit_interval_ms * US_MS
                                                        : UNSALT_NEVER;
    }
}

/* Results of asynchronous commits, ours and the application's own; served by the polling thread. */
void us_commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct unsalt *u = us_registry_find(rk);
    if (!u) {
        return;
    }
    settle(u, err, list);
    if (u->before.commit_cb) {
        u->before.commit_cb(rk, err, list, opaque);
    }
}

rd_kafka_resp_err_t unsalt_commit(unsalt_t *u, int async) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    us_acks_apply(u);
    rd_kafka_resp_err_t err = us_commit(u, false, async ? 0 : -1);
    us_stats_refresh(u);
    us_leave(u);
    return err;
}

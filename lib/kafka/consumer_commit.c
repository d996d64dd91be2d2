/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commits of the frontier. The core says what may be committed; here is remembered what was asked for, so that
 * nothing is sent when nothing moved. A failure forgets it, so the next commit tries again. So does an older commit
 * that comes after a newer one: librdkafka sends what an outage has kept waiting again, and in no order.
 */
#include <kafka/pipeline.h>

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
        if (position < 0 || p->load != US_LOAD_NONE || position == p->committed || (only_revoking && !p->revoking)) {
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

/* The group has this offset now. If it had the newest one that was asked for, that is undone: it is committed again. */
static void confirm(struct us_partition *p, int64_t offset) {
    if (p->committed >= 0 && p->confirmed == p->committed && offset != p->committed) {
        p->committed = -1;
    }
    p->confirmed = offset;
}

void us_commit_settle(struct unsalt *u, rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *list) {
    bool failed = false;
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        rd_kafka_resp_err_t why = one->err ? one->err : err;
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (!why && p) {
            confirm(p, one->offset);
        }
        if (!why || why == RD_KAFKA_RESP_ERR__NO_OFFSET) {
            continue;
        }
        if (p && p->committed == one->offset) {
            p->committed = -1;
        }
        failed = true;
        us_fence_heard(u, why);
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
        us_commit_settle(u, err, list);
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
        us_commit_settle(u, err, list);
        return err;
    }
    return outcome.err == RD_KAFKA_RESP_ERR__NO_OFFSET ? RD_KAFKA_RESP_ERR_NO_ERROR : outcome.err;
}

static bool may_commit(struct unsalt *u) {
    rd_kafka_consumer_group_metadata_t *metadata;
    bool may = us_fence_metadata(u, &metadata);
    if (metadata) {
        rd_kafka_consumer_group_metadata_destroy(metadata);
    }
    return may;
}

rd_kafka_resp_err_t us_commit(struct unsalt *u, bool only_revoking, int timeout_ms) {
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!may_commit(u)) {
        /* It would be a commit without a generation, which a group that is empty by now takes. */
        return RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
    }
    if (u->checkpoint) {
        return us_checkpoint_commit(u, timeout_ms);
    }
    if (timeout_ms == 0 && u->commit_flying) {
        u->commit_again = true; /* librdkafka sends what an outage has kept waiting again, and in no order */
        return err;
    }
    rd_kafka_topic_partition_list_t *list = moved_frontiers(u, only_revoking);
    if (list->cnt > 0) {
        u->own.commits++;
        if (timeout_ms != 0) {
            err = commit_and_wait(u, list, timeout_ms);
        } else if ((err = rd_kafka_commit(u->rk, list, 1)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
            us_commit_settle(u, err, list);
        } else {
            u->commit_flying = true;
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
        u->commit_at = us_checkpoint_commit_again(u, now, u->commit_at);
    }
}

/* Results of asynchronous commits, ours and the application's own; served by the polling thread. */
void us_commit_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct unsalt *u = us_registry_find(rk);
    if (!u) {
        return;
    }
    us_commit_settle(u, err, list);
    u->commit_flying = false;
    if (u->before.commit_cb) {
        u->before.commit_cb(rk, err, list, opaque);
    }
    if (u->commit_again) {
        u->commit_again = false;
        us_commit(u, false, 0);
    }
}

rd_kafka_resp_err_t unsalt_commit(unsalt_t *u, int async) {
    bool inside = us_hook_inside(u); /* then this thread is in a call already */
    if (!inside && !us_enter(u)) {
        return unsalt_last_error();
    }
    us_pipeline_settle(u);
    us_acks_apply(u);
    rd_kafka_resp_err_t err = us_commit(u, false, async ? 0 : -1);
    us_stats_refresh(u);
    if (!inside) {
        us_leave(u);
    }
    return err;
}

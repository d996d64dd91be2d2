/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commits with checkpoint=topic: each is one transaction of entries and offsets. A commit whose outcome isn't known
 * yet goes on in the writer's thread; no other is begun before, and the core keeps its cursors as taken. Whatever goes
 * back to the last commit, or begins at it, waits for that outcome: else it would take the offsets of the commit before
 * and the entries of this one.
 */
#include <kafka/checkpoint.h>
#include <string.h>

#define CHANGED_MAX 100000u /* cursors after which an automatic commit doesn't wait for its time: it bounds both */
#define AGAIN_NS (200 * US_MS)
#define READY_MS 5000       /* how long a commit that waits does so for a producer that is being made */

static rd_kafka_resp_err_t put(void *opaque, const struct us_checkpoint_record *record) {
    return us_checkpoint_writer_put(opaque, record);
}

static void mark(struct unsalt *u, const rd_kafka_topic_partition_list_t *offsets, bool under_way) {
    for (int i = 0; i < offsets->cnt; i++) {
        us_partition_find(u, offsets->elems[i].topic, offsets->elems[i].partition)->under_way = under_way;
    }
}

/* tell: nobody waits for it any more: the application's callback gets its result. */
static rd_kafka_resp_err_t finish(struct unsalt *u, enum us_checkpoint_result result,
                                  const struct us_checkpoint_outcome *outcome, bool tell) {
    struct us_checkpoint *c = u->checkpoint;
    if (result == US_CHECKPOINT_UNKNOWN) {
        return RD_KAFKA_RESP_ERR__IN_PROGRESS;
    }
    rd_kafka_resp_err_t err = outcome->err;
    us_fence_heard(u, err);
    if (result == US_CHECKPOINT_REFUSED) {
        us_fence_refused(u);
    }
    if (result != US_CHECKPOINT_DONE) {
        us_log(u, 4, "checkpoint: %s", outcome->text);
        err = err ? err : RD_KAFKA_RESP_ERR__FAIL;
    }
    rd_kafka_topic_partition_list_t *offsets = c->under_way;
    c->under_way = NULL;
    c->retry_at = UNSALT_NEVER; /* what has waited for it goes on */
    mark(u, offsets, false);
    us_checkpoint_settle(u, err, offsets);
    if (tell && u->before.commit_cb) {
        u->before.commit_cb(u->rk, err, offsets, u->before.opaque);
    }
    rd_kafka_topic_partition_list_destroy(offsets);
    return err;
}

void us_checkpoint_commit_round(struct unsalt *u, uint64_t now) {
    struct us_checkpoint *c = u->checkpoint;
    unsalt_core_counters_t counters;
    struct us_checkpoint_outcome outcome;
    if (c->under_way && !us_checkpoint_writer_busy(c->writer)) {
        finish(u, us_checkpoint_writer_resume(c->writer, 0, &outcome), &outcome, true);
    }
    if (c->follows && !c->under_way) {
        c->follows = false;
        rd_kafka_resp_err_t err = us_commit(u, false, 0);
        if (err && err != RD_KAFKA_RESP_ERR__IN_PROGRESS) {
            us_log(u, 4, "checkpoint: the commit that was asked for could not begin: %s", rd_kafka_err2str(err));
        }
    }
    if (u->before.commit_wanted && !c->under_way && u->commit_at > now + US_MS) {
        unsalt_core_counters(u->core, &counters);
        if (counters.cursors_changed >= CHANGED_MAX) {
            u->commit_at = now;
        }
    }
}

static int rest_ms(uint64_t until) {
    uint64_t now = us_clock_ms();
    return now < until ? (int)(until - now) : 0;
}

/* How long to wait: as wanted, but no longer than a commit may take; all waits of a close together no longer either. */
static int limited(struct unsalt *u, int timeout_ms) {
    struct us_checkpoint *c = u->checkpoint;
    int most = (int)u->conf->checkpoint_timeout_ms;
    if (u->closing) {
        c->close_by = c->close_by ? c->close_by : us_clock_ms() + (uint64_t)most;
        most = rest_ms(c->close_by);
    }
    return timeout_ms < 0 || timeout_ms > most ? most : timeout_ms;
}

uint64_t us_checkpoint_commit_again(struct unsalt *u, uint64_t now, uint64_t otherwise) {
    struct us_checkpoint *c = u->checkpoint;
    bool soon = c && c->soon;
    if (soon) {
        c->soon = false;
    }
    return soon && now + AGAIN_NS < otherwise ? now + AGAIN_NS : otherwise;
}

/* The transaction is open: what a commit carries goes into it, and it ends. */
static rd_kafka_resp_err_t carry(struct unsalt *u, uint64_t until) {
    struct us_checkpoint *c = u->checkpoint;
    struct us_checkpoint_outcome outcome;
    rd_kafka_topic_partition_list_t *offsets = NULL;
    const struct us_checkpoint_sink sink = {put, c->writer};
    /*
     * Taken with the entries: a later one would pass off old entries as a new generation's. A member that is thrown
     * out forgets its generation, and a broker takes offsets without one from anybody; so it is asked after that.
     */
    rd_kafka_consumer_group_metadata_t *metadata;
    rd_kafka_resp_err_t err = !us_fence_metadata(u, &metadata) ? RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST
                              : !metadata                        ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE
                                                                 : us_checkpoint_collect(u, &sink, &offsets);
    if (err) {
        if (metadata) {
            rd_kafka_consumer_group_metadata_destroy(metadata);
        }
        us_checkpoint_writer_abandon(c->writer, rest_ms(until), &outcome);
        u->own.commit_failures++;
        return err;
    }
    c->follows = false; /* this one carries it */
    c->under_way = offsets;
    mark(u, offsets, true);
    offsets = rd_kafka_topic_partition_list_copy(offsets);
    enum us_checkpoint_result result =
        us_checkpoint_writer_finish(c->writer, offsets, metadata, rest_ms(until), &outcome);
    return finish(u, result, &outcome, false);
}

void us_checkpoint_wait(struct unsalt *u, int timeout_ms) {
    struct us_checkpoint *c = u->checkpoint;
    struct us_checkpoint_outcome outcome;
    if (!c || !c->writer) {
        return;
    }
    enum us_checkpoint_result result = us_checkpoint_writer_resume(c->writer, limited(u, timeout_ms), &outcome);
    if (c->under_way) {
        finish(u, result, &outcome, true);
    } /* else one that was abandoned, or none: nobody waits for what became of it */
}

void us_checkpoint_last(struct unsalt *u, int timeout_ms) {
    us_checkpoint_wait(u, timeout_ms);
    if (u->checkpoint && u->checkpoint->follows) {
        u->checkpoint->follows = false;
        us_commit(u, false, timeout_ms);
    }
}

rd_kafka_resp_err_t us_checkpoint_commit(struct unsalt *u, int timeout_ms) {
    struct us_checkpoint *c = u->checkpoint;
    struct us_checkpoint_outcome outcome;
    int wait = limited(u, timeout_ms);
    uint64_t until = us_clock_ms() + (uint64_t)wait;
    if (u->conf->checkpoint == US_CHECKPOINTS_CALLBACK) {
        return us_callback_commit(u);
    }
    if (!c->writer) {
        return RD_KAFKA_RESP_ERR__STATE;
    }
    us_checkpoint_wait(u, wait);
    if (c->under_way) {
        c->soon = true;
        c->follows |= timeout_ms == 0 && !u->before.commit_wanted; /* else the automatic one does */
        return RD_KAFKA_RESP_ERR__IN_PROGRESS;
    }
    if (!us_checkpoint_anything(u)) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    u->own.commits++;
    int ready = rest_ms(until) < READY_MS ? rest_ms(until) : READY_MS;
    enum us_checkpoint_result result = us_checkpoint_writer_open(c->writer, ready, &outcome);
    if (result != US_CHECKPOINT_DONE) {
        c->soon = true;
        if (timeout_ms != 0) {
            u->own.commit_failures++;
            us_log(u, 4, "checkpoint: %s", outcome.text);
        }
        return outcome.err ? outcome.err : RD_KAFKA_RESP_ERR__TIMED_OUT;
    }
    return carry(u, until);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdkafka's rebalance callback. It runs inside our own call of rd_kafka_consumer_poll() or
 * rd_kafka_consumer_close(), so on the thread that owns the consumer. With ack=manual a revoke may wait for
 * acknowledgements over several polls: librdkafka lets the unassign come later.
 *
 * Every revoke takes the steps stop (nothing more of the partitions comes), UNSALT_REVOKING, perhaps a wait, finish
 * (OUTSTANDING, the end of acknowledgements, the last commit, then they are gone), UNSALT_REVOKED. With an incremental
 * protocol what stays is not disturbed meanwhile: what was read of it is released, acknowledged and committed.
 * (librdkafka itself pauses all fetching from a rebalance event to its answer, so nothing more is read while a revoke
 * waits; its answer is what lets the group give the partitions to others, so it can't come earlier.)
 */
#include <kafka/pipeline.h>

/* An assignment that can't be taken: librdkafka still wants an answer, or the member hangs in the rebalance. */
static void assign_nothing(struct unsalt *u, bool incremental) {
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);
    if (incremental) {
        rd_kafka_error_destroy(rd_kafka_incremental_assign(u->rk, none));
    } else {
        rd_kafka_assign(u->rk, none);
    }
    rd_kafka_topic_partition_list_destroy(none);
}

/* Removes from the list what isn't assigned here: librdkafka refuses to unassign that, and hangs. */
static rd_kafka_topic_partition_list_t *assigned_only(const struct unsalt *u,
                                                      const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *mine = rd_kafka_topic_partition_list_new(list->cnt + 1);
    for (int i = 0; i < list->cnt; i++) {
        const struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p && us_partition_ours(p)) {
            rd_kafka_topic_partition_list_add(mine, p->topic, p->partition);
        }
    }
    return mine;
}

/* They are opened, and nothing of them was read yet. */
static void tell_assigned(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p) {
            p->given = true;
        }
    }
    us_hook_call(u, UNSALT_ASSIGNED, us_hook_list(u, list, false));
}

/* The member must not stay without partitions, which nobody else gets either. */
static void raise_not_taken(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    char text[512];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_NOT_OPENED);
    event.topic = list->elems[0].topic;
    event.partition = list->elems[0].partition;
    event.count = (uint64_t)list->cnt;
    snprintf(text, sizeof(text),
             "not_opened: there is no memory to take an assignment of %d partitions (first: %s [%d]): this member "
             "leaves its group and joins it anew in a second",
             list->cnt, event.topic, (int)event.partition);
    event.text = text;
    us_event_raise(u, &event);
    us_fence_join_anew(u);
}

static void on_assign(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    bool incremental = us_group_incremental(u);
    if (u->closing) { /* it came too late to be read from; the revoke that follows is told to the application, too */
        if (u->before.rebalance_cb) {
            u->before.rebalance_cb(u->rk, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, list, u->before.opaque);
        }
        assign_nothing(u, incremental);
        return;
    }
    if (!incremental) {
        us_assign_close_all(u);
    } else if (u->versions.incremental_one) {
        u->versions.batch_one = true;
    }
    rd_kafka_resp_err_t err = us_assign_open(u, list, incremental, true);
    if (err) {
        us_log(u, 3, "assignment of %d partitions not taken: %s", list->cnt, rd_kafka_err2str(err));
        us_assign_close(u, list);
        assign_nothing(u, incremental);
        if (err == RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE && list->cnt > 0) {
            raise_not_taken(u, list);
        }
        return;
    }
    if (!incremental) {
        us_fence_forget(u); /* an earlier one couldn't be taken, and this is the whole of it */
    }
    tell_assigned(u, list);
}

/* ---- revokes */

/*
 * While a revoke waits, librdkafka fetches nothing, of what stays neither: that is no time in which the core may take a
 * leader for dead.
 */
static void pause_core(struct unsalt *u, bool pause) {
    uint64_t now = us_clock_now();
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && !p->paused) {
            unsalt_core_pause(u->core, p->part, pause, now);
        }
    }
}

/* Nothing more of these is read, and of lane sets that go as a whole nothing is handed out any more. */
static void stop(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    us_acks_apply(u);
    us_leave_begin(u, list);
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (!p || !us_partition_ours(p)) {
            continue;
        }
        p->revoking = true;
        us_ring_drop_eof(&u->ring, p->topic, p->partition);
        if (p->again) {
            continue; /* the core has nothing of it */
        }
        p->dropping = us_leave_whole(u, p);
        us_pending_drop(p);
        if (p->dropping) {
            p->dropped += us_ring_revoke(&u->ring, p->part, p->generation, p->set);
            us_pipeline_stop(u, p);
        }
    }
    us_leave_end(u);
    us_pipeline_settle(u);
}

/*
 * Whether something keeps the revoking partitions here: records that the application has, or is still to get, as later
 * ones of a lane set of which a part stays are ready behind them.
 */
static bool is_kept(struct unsalt *u) {
    us_acks_apply(u);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->revoking &&
            (us_acks_outstanding(&u->acks, p->part) > 0 || us_ring_has(&u->ring, p->part, p->generation))) {
            return true;
        }
    }
    return false;
}

/* The member was thrown out. The first of the partitions is named. */
static void raise_lost(struct unsalt *u, const rd_kafka_topic_partition_list_t *mine) {
    char text[512];
    unsalt_event_t event;
    if (mine->cnt == 0) {
        return;
    }
    us_event_init(&event, UNSALT_EVENT_ASSIGNMENT_LOST);
    event.topic = mine->elems[0].topic;
    event.partition = mine->elems[0].partition;
    event.count = (uint64_t)mine->cnt;
    snprintf(text, sizeof(text),
             "assignment_lost: this member was thrown out of its group, which gave its %d partitions away (first: %s "
             "[%d]): what wasn't committed is delivered again, to their new owners; was max.poll.interval.ms over?",
             mine->cnt, event.topic, (int)event.partition);
    event.text = text;
    us_event_raise(u, &event);
}

/* Gives the partitions up. */
static void finish(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    bool incremental = us_group_incremental(u), lost = us_assignment_lost(u);
    if (!u->closing) { /* a close has done all of it */
        us_outstanding_report(u, false);
        us_acks_close_going(u, false);
        if (u->before.commit_wanted && !lost) {
            us_commit(u, true, US_COMMIT_WAIT_MS);
        } else if (!lost) {
            us_checkpoint_last(u, US_COMMIT_WAIT_MS); /* of the application's own, while the group still takes it */
        }
    }
    rd_kafka_topic_partition_list_t *mine = assigned_only(u, list);
    rd_kafka_topic_partition_list_t *told = us_hook_list(u, list, true);
    if (lost) {
        raise_lost(u, mine);
    }
    us_assign_close(u, list);
    us_fence_settled(u);
    if (u->before.rebalance_cb) {
        u->before.rebalance_cb(u->rk, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS, list, u->before.opaque);
    }
    if (incremental) {
        rd_kafka_error_destroy(rd_kafka_incremental_unassign(u->rk, mine));
    } else {
        rd_kafka_assign(u->rk, NULL);
    }
    pause_core(u, false);
    rd_kafka_topic_partition_list_destroy(mine);
    us_hook_call(u, lost ? UNSALT_LOST : UNSALT_REVOKED, told);
}

void us_revoke_forget(struct unsalt *u) {
    if (!u->revoke.active) {
        return;
    }
    atomic_store(&u->acks.waited_for, false);
    u->revoke.active = false;
    rd_kafka_topic_partition_list_destroy(u->revoke.partitions);
    u->revoke.partitions = NULL;
}

void us_revoke_lost(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    us_revoke_forget(u);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (us_partition_ours(p)) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition);
        }
    }
    stop(u, list);
    finish(u, list);
    rd_kafka_topic_partition_list_destroy(list);
}

bool us_revoke_blocks(const struct unsalt *u) {
    return u->revoke.active && !u->revoke.incremental;
}

static void on_revoke(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    uint64_t wait = (uint64_t)u->conf->revoke_timeout_ms * US_MS;
    bool lost = us_assignment_lost(u);
    us_revoke_forget(u);
    rd_kafka_topic_partition_list_t *told = lost ? NULL : us_hook_list(u, list, false);
    stop(u, list);
    us_hook_call(u, UNSALT_REVOKING, told);
    atomic_store(&u->acks.waited_for, true);
    if (lost || wait == 0 || u->closing || !is_kept(u)) {
        atomic_store(&u->acks.waited_for, false);
        finish(u, list);
        return;
    }
    u->revoke.active = true;
    u->revoke.incremental = us_group_incremental(u);
    u->revoke.until = us_clock_now() + wait;
    u->revoke.partitions = rd_kafka_topic_partition_list_copy(list);
    pause_core(u, true);
}

void us_revoke_continue(struct unsalt *u, uint64_t now) {
    bool over = now >= u->revoke.until || us_assignment_lost(u);
    if (over || !is_kept(u)) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(u->revoke.partitions);
        us_revoke_forget(u);
        finish(u, list);
        rd_kafka_topic_partition_list_destroy(list);
    }
}

static void on_error(struct unsalt *u, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list) {
    us_log(u, 3, "rebalance failed: %s", rd_kafka_err2str(err));
    us_revoke_forget(u);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        u->partitions[i]->revoking = us_partition_ours(u->partitions[i]);
    }
    rd_kafka_topic_partition_list_t *told = us_hook_list(u, NULL, true);
    us_assign_close_all(u);
    us_fence_settled(u);
    if (u->before.rebalance_cb) {
        u->before.rebalance_cb(u->rk, err, list, u->before.opaque);
    }
    rd_kafka_assign(u->rk, NULL);
    us_hook_call(u, UNSALT_LOST, told);
}

void us_rebalance_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct unsalt *u = us_registry_find(rk);
    (void)opaque; /* the application's */
    if (!u) {
        rd_kafka_assign(rk, NULL);
        return;
    }
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        on_assign(u, list);
    } else if (err == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        on_revoke(u, list);
    } else {
        on_error(u, err, list);
    }
}

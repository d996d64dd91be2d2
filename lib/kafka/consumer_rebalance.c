/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdkafka's rebalance callback. It runs inside our own call of rd_kafka_consumer_poll() or
 * rd_kafka_consumer_close(), so on the thread that owns the consumer. With ack=manual a revoke may wait for
 * acknowledgements over several polls: librdkafka lets the unassign come later.
 */
#include <kafka/consumer.h>
#include <string.h>

static bool is_incremental(const struct unsalt *u) {
    const char *protocol = rd_kafka_rebalance_protocol(u->rk);
    return protocol && strcmp(protocol, "COOPERATIVE") == 0;
}

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
        if (p && p->assigned) {
            rd_kafka_topic_partition_list_add(mine, p->topic, p->partition);
        }
    }
    return mine;
}

static void on_assign(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    bool incremental = is_incremental(u);
    if (!incremental) {
        us_assign_close_all(u);
    }
    rd_kafka_resp_err_t err = us_assign_open(u, list, incremental, true);
    if (err) {
        us_log(u, 3, "assignment of %d partitions not taken: %s", list->cnt, rd_kafka_err2str(err));
        us_assign_close(u, list);
        assign_nothing(u, incremental);
    }
}

/* Gives the partitions up. */
static void finish(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    bool incremental = is_incremental(u);
    us_acks_apply(u);
    if (!u->closing) { /* a close has done both */
        if (u->before.commit_wanted && !rd_kafka_assignment_lost(u->rk)) {
            us_commit(u, true, US_COMMIT_WAIT_MS);
        }
        us_outstanding_report(u, false);
    }
    rd_kafka_topic_partition_list_t *mine = assigned_only(u, list);
    us_assign_close(u, list);
    if (u->before.rebalance_cb) {
        u->before.rebalance_cb(u->rk, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS, list, u->before.opaque);
    }
    if (incremental) {
        rd_kafka_error_destroy(rd_kafka_incremental_unassign(u->rk, mine));
    } else {
        rd_kafka_assign(u->rk, NULL);
    }
    rd_kafka_topic_partition_list_destroy(mine);
}

/*
 * Nothing more of these is read, and nothing at all is handed out while the revoke waits; returns how many of their
 * records the application still holds.
 */
static uint32_t stop(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    uint32_t outstanding = 0;
    us_acks_apply(u);
    us_leave_begin(u, list);
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p && p->assigned) {
            p->revoking = true;
            us_pending_drop(p);
            if (us_leave_whole(u, p)) {
                us_ring_revoke(&u->ring, p->part, p->generation, p->set);
            }
            outstanding += us_acks_outstanding(&u->acks, p->part);
        }
    }
    us_leave_end(u);
    return outstanding;
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

static void on_revoke(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    uint64_t wait = (uint64_t)u->conf->revoke_timeout_ms * US_MS;
    us_revoke_forget(u);
    atomic_store(&u->acks.waited_for, true);
    bool waits = stop(u, list) > 0 && wait > 0 && !u->closing && !rd_kafka_assignment_lost(u->rk);
    if (!waits) {
        atomic_store(&u->acks.waited_for, false);
        finish(u, list);
        return;
    }
    u->revoke.active = true;
    u->revoke.until = us_clock_now() + wait;
    u->revoke.partitions = rd_kafka_topic_partition_list_copy(list);
}

void us_revoke_continue(struct unsalt *u, uint64_t now) {
    bool over = now >= u->revoke.until || rd_kafka_assignment_lost(u->rk);
    if (over || stop(u, u->revoke.partitions) == 0) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(u->revoke.partitions);
        us_revoke_forget(u);
        finish(u, list);
        rd_kafka_topic_partition_list_destroy(list);
    }
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
        us_log(u, 3, "rebalance failed: %s", rd_kafka_err2str(err));
        us_assign_close_all(u);
        if (u->before.rebalance_cb) {
            u->before.rebalance_cb(rk, err, list, u->before.opaque);
        }
        rd_kafka_assign(rk, NULL);
    }
}

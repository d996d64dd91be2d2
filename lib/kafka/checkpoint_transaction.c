/* SPDX-License-Identifier: BSD-2-Clause */
/* The application's own transactions carry what a commit would; and going back to the last commit. */
#include <inttypes.h>
#include <kafka/checkpoint.h>
#include <kafka/pipeline.h>
#include <limits.h>
#include <string.h>

struct into {
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic;
    uint64_t until;
};

static rd_kafka_resp_err_t put(void *opaque, const struct us_checkpoint_record *record) {
    const struct into *into = opaque;
    return us_checkpoint_put(into->producer, into->topic, record, into->until);
}

/* ---- sending */

/* The transaction that carried it has ended. */
static void drop_sent(struct unsalt *u) {
    if (u->sent) {
        rd_kafka_topic_partition_list_destroy(u->sent);
        u->sent = NULL;
    }
}

/* What an earlier call in the same transaction has collected is sent again: the broker may not have it. */
static void add_sent(struct unsalt *u, const rd_kafka_topic_partition_list_t *offsets) {
    u->sent = u->sent ? u->sent : rd_kafka_topic_partition_list_new(8);
    for (int i = 0; i < offsets->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &offsets->elems[i];
        rd_kafka_topic_partition_t *mine = rd_kafka_topic_partition_list_find(u->sent, one->topic, one->partition);
        mine = mine ? mine : rd_kafka_topic_partition_list_add(u->sent, one->topic, one->partition);
        mine->offset = one->offset;
    }
}

/*
 * A broker fences by offsets. What was acknowledged above a frontier may have moved none; then one of them goes again.
 */
static void add_fence(struct unsalt *u) {
    for (uint32_t i = 0; u->loose && u->sent->cnt == 0 && i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        int64_t position = p->assigned && p->load == US_LOAD_NONE ? unsalt_core_position(u->core, p->part) : -1;
        if (position >= 0) {
            rd_kafka_topic_partition_list_add(u->sent, p->topic, p->partition)->offset = position;
        }
    }
}

static rd_kafka_error_t *collect_into(struct unsalt *u, rd_kafka_t *producer, uint64_t until) {
    struct into into = {.producer = producer, .until = until};
    const struct us_checkpoint_sink sink = {put, &into};
    rd_kafka_topic_partition_list_t *offsets;
    if (u->checkpoint) {
        into.topic = rd_kafka_topic_new(producer, u->checkpoint->topic, NULL);
        if (!into.topic) {
            return rd_kafka_error_new(rd_kafka_last_error(), "No topic %s in the producer", u->checkpoint->topic);
        }
    }
    rd_kafka_resp_err_t err = us_checkpoint_collect(u, &sink, &offsets);
    err = err ? err : u->checkpoint ? us_checkpoint_flush(producer, until) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (into.topic) {
        rd_kafka_topic_destroy(into.topic);
    }
    if (offsets && err) {
        us_checkpoint_undo(u, offsets);
    } else if (offsets) {
        add_sent(u, offsets);
        add_fence(u);
    }
    if (offsets) {
        rd_kafka_topic_partition_list_destroy(offsets);
    }
    return err ? rd_kafka_error_new(err, "Cursors can't be brought into the transaction: %s", rd_kafka_err2str(err))
               : NULL;
}

/*
 * Partitions are gone whose records may be in the transaction. librdkafka forgets its generation when it is thrown
 * out, and a broker takes offsets without one; and what it has now is that of another assignment. So offsets are sent
 * in the name of a member that no group has: the broker's refusal makes the transaction one that can't be committed.
 */
static rd_kafka_error_t *make_refused(struct unsalt *u, rd_kafka_t *producer, uint64_t until) {
    char group[256];
    size_t size = sizeof(group);
    rd_kafka_error_t *error = NULL;
    us_log(u, 4, "partitions have gone since their records were handed out: the transaction must be aborted");
    if (u->partition_count > 0 &&
        rd_kafka_conf_get(rd_kafka_conf(u->rk), "group.id", group, &size) == RD_KAFKA_CONF_OK) {
        rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(one, u->partitions[0]->topic, u->partitions[0]->partition)->offset = 0;
        rd_kafka_consumer_group_metadata_t *nobody =
            rd_kafka_consumer_group_metadata_new_with_genid(group, 0, "unsalt.gone", NULL);
        error = rd_kafka_send_offsets_to_transaction(producer, one, nobody, us_clock_rest_ms(until, INT_MAX));
        rd_kafka_consumer_group_metadata_destroy(nobody);
        rd_kafka_topic_partition_list_destroy(one);
    }
    return error ? error : rd_kafka_error_new(RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST, "Partitions have gone: abort");
}

/*
 * A new owner must wait for the offsets of a transaction that is still open, and brokers let it only if its consumer
 * reads committed records (KIP-447); so must what it reads itself be final.
 */
static rd_kafka_error_t *not_allowed(const struct unsalt *u) {
    char level[32] = "?";
    size_t size = sizeof(level);
    if (u->before.commit_wanted || u->conf->checkpoint == US_CHECKPOINTS_CALLBACK) {
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__STATE,
                                  "enable.auto.commit=false is needed, and checkpoint=callback is not allowed");
    }
    if (u->pipeline && u->pipeline->delivery_threads > 0) { /* one may have produced, its record not be done */
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__STATE,
                                  "pipeline.delivery.threads=%" PRIu32 " is not allowed with transactions: 0 is needed",
                                  u->pipeline->delivery_threads);
    }
    if (rd_kafka_conf_get(rd_kafka_conf(u->rk), "isolation.level", level, &size) == RD_KAFKA_CONF_OK &&
        strcmp(level, "read_committed") != 0) {
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__STATE,
                                  "isolation.level=%s of the consumer is not allowed: read_committed is needed", level);
    }
    return NULL;
}

static rd_kafka_error_t *send_all(struct unsalt *u, rd_kafka_t *producer, int timeout_ms) {
    uint64_t until = us_clock_ms() + (uint64_t)timeout_ms;
    rd_kafka_error_t *error = not_allowed(u);
    if (error) {
        return error;
    }
    us_handed_done(u);
    us_pipeline_settle(u);
    us_acks_apply(u);
    rd_kafka_consumer_group_metadata_t *metadata;
    bool ours = us_fence_metadata(u, &metadata);
    if (u->torn || !ours) {
        error = make_refused(u, producer, until);
    } else {
        error = collect_into(u, producer, until);
        if (!error && u->sent->cnt > 0) {
            u->own.commits++;
            error = rd_kafka_send_offsets_to_transaction(producer, u->sent, metadata, us_clock_rest_ms(until, INT_MAX));
        }
        u->loose &= error != NULL;
        us_fence_heard(u, error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    if (metadata) {
        rd_kafka_consumer_group_metadata_destroy(metadata);
    }
    u->own.commit_failures += error != NULL;
    return error;
}

rd_kafka_error_t *unsalt_send_offsets_to_transaction(unsalt_t *u, rd_kafka_t *producer, int timeout_ms) {
    if (!producer || timeout_ms < 1) {
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__INVALID_ARG, "A producer and at least 1 ms are needed");
    }
    bool inside = us_hook_inside(u); /* then this thread is in a call already */
    if (!inside && !us_enter(u)) {
        return rd_kafka_error_new(unsalt_last_error(), "%s", rd_kafka_err2str(unsalt_last_error()));
    }
    rd_kafka_error_t *error = send_all(u, producer, timeout_ms);
    us_stats_refresh(u);
    if (!inside) {
        us_leave(u);
    }
    return error;
}

rd_kafka_resp_err_t unsalt_transaction_committed(unsalt_t *u) {
    bool inside = us_hook_inside(u);
    if (!inside && !us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_resp_err_t err = u->sent ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__STATE;
    if (u->sent) {
        us_checkpoint_settle(u, RD_KAFKA_RESP_ERR_NO_ERROR, u->sent);
        drop_sent(u);
    }
    us_stats_refresh(u);
    if (!inside) {
        us_leave(u);
    }
    return err;
}

/* ---- going back */

/* Everything assigned that stays. stored: to begin where the group's offsets say; else where it began. */
static rd_kafka_topic_partition_list_t *all_assigned(const struct unsalt *u, bool stored) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (us_partition_ours(p) && !p->revoking) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset =
                stored ? RD_KAFKA_OFFSET_STORED : p->start;
        }
    }
    return list;
}

/*
 * Without a checkpoint only offsets go back; sessions start again, as after a restart. What could not be moved is not
 * read: it would go on where it was, beyond what comes again.
 */
static rd_kafka_resp_err_t go_back(struct unsalt *u, int timeout_ms) {
    rd_kafka_topic_partition_list_t *list = all_assigned(u, true);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt > 0) {
        us_start_again(u, list, US_START_WAIT_MS);
        rd_kafka_error_t *error = us_seek(u, list, timeout_ms);
        err = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        rd_kafka_error_destroy(error);
        us_assign_reopen(u, list);
    }
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        rd_kafka_resp_err_t why = one->err ? one->err : one->offset < 0 ? RD_KAFKA_RESP_ERR__TIMED_OUT : err;
        p->load = why ? US_LOAD_WAITING : US_LOAD_NONE;
        err = err ? err : why;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/*
 * What is done of them is void at once, also if the last commit can't be asked for now. Not of sets whose cursors are
 * being read: nothing of them was handed out, and what was restored of them in the core isn't read twice.
 */
static void load_again(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *list = all_assigned(u, false);
    for (int i = list->cnt; i-- > 0;) {
        if (us_partition_find(u, list->elems[i].topic, list->elems[i].partition)->load == US_LOAD_LOADING) {
            rd_kafka_topic_partition_list_del_by_idx(list, i);
        }
    }
    us_assign_reopen(u, list);
    rd_kafka_topic_partition_list_destroy(list);
    us_load_again(u);
}

/* What is about to go needn't wait for acknowledgements any more, and nothing of it is committed. */
static void end_revoke(struct unsalt *u) {
    bool wanted = u->before.commit_wanted;
    if (u->revoke.active) {
        u->before.commit_wanted = false;
        u->revoke.until = 0;
        us_revoke_continue(u, us_clock_now());
        u->before.commit_wanted = wanted;
    }
}

rd_kafka_resp_err_t unsalt_rewind(unsalt_t *u, int timeout_ms) {
    if (timeout_ms < 1) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    us_handed_done(u);
    us_checkpoint_wait(u, timeout_ms);
    us_acks_apply(u);
    if (u->sent) {
        us_checkpoint_undo(u, u->sent);
        drop_sent(u);
    }
    u->loose = false;
    us_ring_revoke_all(&u->ring);
    if (u->checkpoint) {
        load_again(u);
    } else {
        err = go_back(u, timeout_ms);
    }
    end_revoke(u);
    u->loose = u->torn = false;
    us_stats_refresh(u);
    us_leave(u);
    return err;
}

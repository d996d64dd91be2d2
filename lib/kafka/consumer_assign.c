/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>
#include <time.h>

#define REVOKE_TRIES 100
#define REVOKE_PAUSE_MS 10

/* ---- what will be owned */

static void add_owned(struct us_owned *owned, size_t *n, const char *topic, int32_t partition) {
    owned[*n].topic = topic;
    owned[*n].partition = partition;
    (*n)++;
}

/* The list, and with `incremental` what is assigned already. NULL: out of memory. */
static struct us_owned *owned_then(const struct unsalt *u, const rd_kafka_topic_partition_list_t *list,
                                   bool incremental, size_t *n) {
    struct us_owned *owned = us_calloc(&us_mem_default, (size_t)list->cnt + u->partition_count + 1, sizeof(*owned));
    *n = 0;
    for (int i = 0; owned && i < list->cnt; i++) {
        add_owned(owned, n, list->elems[i].topic, list->elems[i].partition);
    }
    for (uint32_t i = 0; owned && incremental && i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && !p->revoking) {
            add_owned(owned, n, p->topic, p->partition);
        }
    }
    return owned;
}

/* ---- opening */

static rd_kafka_resp_err_t open_one(struct unsalt *u, struct us_partition *p) {
    unsalt_core_partition_t partition = {.set = p->set, .set_size = us_colocation_set_size(u, p), .lane = p->lane,
                                         .start_offset = p->start, .log_start = p->log_start};
    int part = unsalt_core_assign(u->core, &partition);
    if (part < 0) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    p->part = (uint32_t)part;
    p->generation = unsalt_core_generation(u->core, p->part);
    if (!us_by_part_set(u, p->part, p) || !us_acks_open(&u->acks, p->part, p->generation)) {
        unsalt_core_revoke(u->core, p->part, us_clock_now());
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    p->last_read = p->last_time = p->back_to = -1;
    p->question_failures = 0;
    p->question_single = false;
    p->answer_at = UNSALT_NEVER;
    p->assigned = true;
    p->revoking = p->paused = false;
    atomic_store(&p->ready, true);
    u->own.generations++;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t open_list(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        rd_kafka_resp_err_t err = p->assigned ? RD_KAFKA_RESP_ERR_NO_ERROR : open_one(u, p);
        if (err) {
            return err;
        }
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t tell_librdkafka(struct unsalt *u, const rd_kafka_topic_partition_list_t *list,
                                           bool incremental) {
    if (!incremental) {
        return rd_kafka_assign(u->rk, list);
    }
    rd_kafka_error_t *error = rd_kafka_incremental_assign(u->rk, list);
    rd_kafka_resp_err_t err = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_destroy(error);
    /* __CONFLICT: the application's callback has assigned them itself. */
    return err == RD_KAFKA_RESP_ERR__CONFLICT ? RD_KAFKA_RESP_ERR_NO_ERROR : err;
}

/* A topic with another number of partitions than configured moves nothing, but somebody should know. */
static void check_partition_counts(struct unsalt *u) {
    const struct rd_kafka_metadata *metadata;
    if (u->conf->partitions == 0 || rd_kafka_metadata(u->rk, 0, NULL, &metadata, 1000)) {
        return;
    }
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        if (topic->err || topic->partition_cnt == 0 || topic->partition_cnt == u->conf->partitions) {
            continue;
        }
        char text[512];
        unsalt_event_t event;
        us_event_init(&event, UNSALT_EVENT_PARTITIONS_CHANGED);
        snprintf(text, sizeof(text), "partitions_changed: %s has %d partitions, configured are %lld", topic->topic,
                 topic->partition_cnt, (long long)u->conf->partitions);
        event.topic = topic->topic;
        event.count = (uint64_t)topic->partition_cnt;
        event.text = text;
        us_event_raise(u, &event);
    }
    rd_kafka_metadata_destroy(metadata);
}

static bool split_queues(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        if (!us_partition_get(u, list->elems[i].topic, list->elems[i].partition)) {
            return false;
        }
    }
    return true;
}

static rd_kafka_resp_err_t open_all(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool incremental) {
    us_start_resolve(u, list);
    rd_kafka_resp_err_t err = tell_librdkafka(u, list, incremental);
    if (!err) {
        err = open_list(u, list);
    }
    if (!err) {
        check_partition_counts(u);
        /* So that start positions that nobody had committed are committed soon. */
        u->commit_at = u->before.commit_wanted ? 0 : UNSALT_NEVER;
    }
    return err;
}

rd_kafka_resp_err_t us_assign_open(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool incremental,
                                   bool call_app) {
    size_t n;
    if (!split_queues(u, list)) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    if (call_app && u->before.rebalance_cb) {
        u->before.rebalance_cb(u->rk, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, list, u->before.opaque);
    }
    struct us_owned *owned = owned_then(u, list, incremental, &n);
    if (!owned) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__INVALID_ARG;
    size_t missing = n > 0 ? us_colocation_check(u, owned, n, incremental, call_app) : 0;
    if (missing == 0 || incremental || u->conf->colocation == US_COLOCATION_REPORT) {
        err = open_all(u, list, incremental);
    }
    us_free(&us_mem_default, owned);
    return err;
}

/* ---- closing */

/* Ends the partition's generation. Short of memory, room may come from what is pulled, or from others, in a second. */
static int revoke(struct unsalt *u, const struct us_partition *p) {
    int err = unsalt_core_revoke(u->core, p->part, us_clock_now());
    for (int i = 0; err == UNSALT_CORE_NOMEM && i < REVOKE_TRIES; i++) {
        struct timespec pause = {.tv_nsec = REVOKE_PAUSE_MS * 1000000L};
        us_drain(u, us_clock_now());
        nanosleep(&pause, NULL);
        err = unsalt_core_revoke(u->core, p->part, us_clock_now());
    }
    return err;
}

/*
 * Ends a partition in the core, without pulling: as long as a part of a lane set is still open, its sessions look like
 * ones that lost a lane. The caller drains when all that go are gone.
 */
static void close_one(struct unsalt *u, struct us_partition *p) {
    if (!p->assigned) {
        return;
    }
    us_pending_drop(p);
    int err = revoke(u, p);
    if (err != UNSALT_CORE_OK) {
        us_log(u, 2, "%s [%d] is not closed: the core is out of memory", p->topic, (int)p->partition);
    }
    us_leave_ready(u, p);
    us_acks_close(&u->acks, p->part);
    us_core_events(u);
    u->by_part[p->part] = NULL;
    p->assigned = p->revoking = false;
    p->answer_at = UNSALT_NEVER;
}

/* A paused partition is resumed, or it would come back paused (and be rewound by versions before 2.4.0, #4637). */
static void unpause(struct unsalt *u, const struct us_partition *p) {
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, p->topic, p->partition);
    rd_kafka_resume_partitions(u->rk, one);
    rd_kafka_topic_partition_list_destroy(one);
}

void us_assign_close(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    us_leave_begin(u, list);
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p && p->assigned && p->paused) {
            unpause(u, p);
        }
        if (p) {
            close_one(u, p);
        }
    }
    us_leave_end(u);
    us_drain(u, us_clock_now());
}

void us_assign_close_all(struct unsalt *u) {
    us_leave_begin(u, NULL);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->assigned && p->paused) {
            unpause(u, p);
        }
        close_one(u, p);
    }
    us_leave_end(u);
    us_drain(u, us_clock_now());
}

static rd_kafka_resp_err_t reopen_one(struct unsalt *u, struct us_partition *p, int64_t start) {
    bool paused = p->paused;
    p->start = start;
    rd_kafka_resp_err_t err = open_one(u, p);
    if (!err && paused) {
        p->paused = true;
        unsalt_core_pause(u->core, p->part, true, us_clock_now());
    }
    return err;
}

void us_assign_reopen(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    us_leave_begin(u, list);
    for (int i = 0; i < list->cnt; i++) {
        close_one(u, us_partition_find(u, list->elems[i].topic, list->elems[i].partition));
    }
    us_leave_end(u);
    us_drain(u, us_clock_now());
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *one = &list->elems[i];
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (p->assigned) {
            continue; /* it stands in the list twice */
        }
        rd_kafka_resp_err_t err = reopen_one(u, p, one->offset >= 0 ? one->offset : -1);
        one->err = one->err ? one->err : err;
    }
}

void us_outstanding_report(struct unsalt *u, bool all) {
    /* Copied first: the event callback may acknowledge. */
    pthread_mutex_lock(&u->acks.lock);
    uint32_t count = 0;
    struct us_handed *handed = us_calloc(&us_mem_default, (size_t)u->acks.count + 1, sizeof(*handed));
    for (uint32_t i = 0; handed && i < u->acks.capacity; i++) {
        if (u->acks.table[i].part != US_NO_PART) {
            handed[count++] = u->acks.table[i];
        }
    }
    pthread_mutex_unlock(&u->acks.lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct us_partition *p = us_partition_of(u, handed[i].part);
        if (!p || (!all && !p->revoking)) {
            continue;
        }
        unsalt_event_t event;
        us_event_init(&event, UNSALT_EVENT_OUTSTANDING);
        event.topic = p->topic;
        event.partition = p->partition;
        event.offset = handed[i].offset;
        us_event_raise(u, &event);
    }
    us_free(&us_mem_default, handed);
}

/* ---- the application's assignment */

rd_kafka_resp_err_t unsalt_assign(unsalt_t *u, const rd_kafka_topic_partition_list_t *partitions) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_topic_partition_list_t *list = partitions ? rd_kafka_topic_partition_list_copy(partitions)
                                                       : rd_kafka_topic_partition_list_new(1);
    size_t n;
    struct us_owned *owned = owned_then(u, list, false, &n);
    rd_kafka_resp_err_t err = owned ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    size_t missing = !err && n > 0 ? us_colocation_check(u, owned, n, false, false) : 0;
    if (missing > 0 && u->conf->colocation == US_COLOCATION_REFUSE) {
        err = RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!err) {
        us_acks_apply(u);
        if (u->before.commit_wanted) {
            us_commit(u, false, US_COMMIT_WAIT_MS);
        }
        us_outstanding_report(u, true);
        us_revoke_forget(u);
        us_assign_close_all(u);
        err = !split_queues(u, list) ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE
              : partitions           ? open_all(u, list, false)
                                     : rd_kafka_assign(u->rk, NULL);
    }
    us_free(&us_mem_default, owned);
    rd_kafka_topic_partition_list_destroy(list);
    us_stats_refresh(u);
    us_leave(u);
    return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>
#include <time.h>

#define REVOKE_TRIES 100
#define REVOKE_PAUSE_MS 10
#define AGAIN_NS (1000 * US_MS) /* when something that there was no memory for is opened again */

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
        if (us_partition_ours(p) && !p->revoking) {
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
    p->again = p->revoking = p->dropping = p->paused = false;
    p->dropped = 0;
    atomic_store(&p->ready, true);
    u->own.generations++;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The core has no memory for it. librdkafka has it assigned, and keeps what it reads of it until then. */
static void open_later(struct unsalt *u, struct us_partition *p) {
    char text[512];
    unsalt_event_t event;
    if (!p->again) {
        us_event_init(&event, UNSALT_EVENT_NOT_OPENED);
        event.topic = p->topic;
        event.partition = p->partition;
        event.count = 1;
        snprintf(text, sizeof(text), "not_opened: there is no memory to open %s [%d]: it isn't read; tried again "
                                     "every second", p->topic, (int)p->partition);
        event.text = text;
        us_event_raise(u, &event);
    }
    p->again = true;
    u->again_at = us_clock_now() + AGAIN_NS;
}

/* Opens all that can be opened. Returns what happened to the first of the others. */
static rd_kafka_resp_err_t open_list(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_resp_err_t first = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p->assigned) {
            continue;
        }
        rd_kafka_resp_err_t err = open_one(u, p);
        us_checkpoint_opened(u, p);
        if (err) {
            open_later(u, p);
            first = first ? first : err;
        }
    }
    return first;
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

static bool split_queues(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        if (!us_partition_get(u, list->elems[i].topic, list->elems[i].partition)) {
            return false;
        }
    }
    return true;
}

/* *opened: what became of those that librdkafka has taken. */
static rd_kafka_resp_err_t open_all(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool incremental,
                                    rd_kafka_resp_err_t *opened) {
    us_start_resolve(u, list);
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        p->began = p->start;
    }
    rd_kafka_resp_err_t err = tell_librdkafka(u, list, incremental);
    for (int i = 0; i < list->cnt && !err; i++) {
        us_partition_find(u, list->elems[i].topic, list->elems[i].partition)->seek_to = -1;
    }
    if (!err) {
        *opened = open_list(u, list);
        us_group_opened(u);
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
    size_t missing = n > 0 ? us_colocation_check(u, owned, n, incremental, call_app) : 0;
    rd_kafka_resp_err_t opened, err = missing == SIZE_MAX ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE
                                                          : RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (missing == 0 || incremental || u->conf->colocation == US_COLOCATION_REPORT) {
        err = open_all(u, list, incremental, &opened); /* what isn't opened now is opened later */
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

/* ack=auto: something of it was handed out last, and doesn't count as processed yet. */
static bool in_hand(const struct unsalt *u, const struct us_partition *p) {
    bool any = false;
    for (uint32_t i = 0; u->conf->ack == US_ACK_AUTO && !u->handed_acked && i < u->handed_count && !any; i++) {
        any = u->handed[i].part == p->part && u->handed[i].generation == p->generation;
    }
    return any;
}

/*
 * Ends a partition in the core, without pulling: as long as a part of a lane set is still open, its sessions look like
 * ones that lost a lane. The caller drains when all that go are gone.
 */
static void close_one(struct unsalt *u, struct us_partition *p) {
    p->again = false;
    if (!p->assigned) {
        p->revoking = false;
        return;
    }
    us_pending_drop(p);
    us_ring_drop_eof(&u->ring, p->topic, p->partition);
    us_acks_close(u, p->part);
    u->torn |= (u->loose || in_hand(u, p)) && p->load != US_LOAD_LOADING;
    int err = revoke(u, p);
    if (err != UNSALT_CORE_OK) {
        us_log(u, 2, "%s [%d] is not closed: the core is out of memory", p->topic, (int)p->partition);
    }
    us_leave_ready(u, p);
    us_core_events(u);
    u->by_part[p->part] = NULL;
    u->full = false;
    us_pins_drop(p);
    p->assigned = p->revoking = p->dropping = false;
    p->dropped = 0;
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
        if (p && us_partition_ours(p) && p->paused) {
            unpause(u, p);
        }
        if (p) {
            close_one(u, p);
        }
    }
    us_leave_end(u);
    us_group_changed(u);
    us_drain(u, us_clock_now());
}

void us_assign_close_all(struct unsalt *u) {
    us_leave_begin(u, NULL);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (us_partition_ours(p) && p->paused) {
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
    bool failed = false;
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
        if (err) {
            open_later(u, p);
            failed = true;
        }
    }
    if (failed) {
        us_group_changed(u); /* the rest of the set waits for it */
    }
}

void us_assign_again(struct unsalt *u, uint64_t now) {
    bool opened = false;
    if (u->again_at == 0 || now < u->again_at) {
        return;
    }
    u->again_at = 0;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (!p->again) {
            continue;
        }
        if (reopen_one(u, p, p->start)) {
            open_later(u, p);
            continue;
        }
        us_log(u, 5, "%s [%d] is open now", p->topic, (int)p->partition);
        if (u->checkpoint) {
            us_checkpoint_opened(u, p);
            p->stale = true;
        }
        opened = true;
    }
    if (opened) {
        us_group_opened(u);
    }
}

void us_outstanding_report(struct unsalt *u, bool all) {
    /* Copied first: the event callback may acknowledge. */
    pthread_mutex_lock(&u->acks.lock);
    uint32_t count = 0;
    struct us_in_hand *handed = us_calloc(&us_mem_default, (size_t)u->acks.count + 1, sizeof(*handed));
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

static void not_given(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p) {
            p->given = false;
        }
    }
}

rd_kafka_resp_err_t unsalt_assign(unsalt_t *u, const rd_kafka_topic_partition_list_t *partitions) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_resp_err_t ready = partitions ? us_checkpoint_unread(u, partitions) : RD_KAFKA_RESP_ERR_NO_ERROR;
    ready = ready ? ready : partitions ? us_checkpoint_ready(u) : RD_KAFKA_RESP_ERR_NO_ERROR;
    ready = ready ? ready : partitions ? us_dead_ready(u) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (ready) {
        us_leave(u);
        return ready;
    }
    rd_kafka_topic_partition_list_t *list = partitions ? rd_kafka_topic_partition_list_copy(partitions)
                                                       : rd_kafka_topic_partition_list_new(1);
    size_t n;
    struct us_owned *owned = owned_then(u, list, false, &n);
    rd_kafka_resp_err_t err = owned ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, opened = err;
    size_t missing = !err && n > 0 ? us_colocation_check(u, owned, n, false, false) : 0;
    if (missing > 0 && u->conf->colocation == US_COLOCATION_REFUSE) {
        err = RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!err) {
        us_outstanding_report(u, true);
        us_acks_close_going(u, true);
        if (u->before.commit_wanted) {
            us_commit(u, false, US_COMMIT_WAIT_MS);
        }
        us_revoke_forget(u);
        us_assign_close_all(u);
        not_given(u, list);
        err = !split_queues(u, list) ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE
              : partitions           ? open_all(u, list, false, &opened)
                                     : rd_kafka_assign(u->rk, NULL);
        err = err ? err : opened;
    }
    us_free(&us_mem_default, owned);
    rd_kafka_topic_partition_list_destroy(list);
    us_stats_refresh(u);
    us_leave(u);
    return err;
}

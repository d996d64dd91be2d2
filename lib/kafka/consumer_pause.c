/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pause, resume and seek. They run on the reading thread, between batches, so nothing that was read is lost (a pause
 * from another thread loses records of a batch on versions before 2.1.0, confluentinc/librdkafka#4208).
 */
#include <kafka/consumer.h>

#define SEEK_BACK_MS 1000
#define SEEK_AGAIN_NS (1000 * US_MS) /* when a seek that failed is made again .. */
#define SEEK_AGAIN_MS 200            /* .. and how long it is waited for: what else is assigned is read meanwhile */

/* Copies into a list what the call applies to; the others get their error. */
static rd_kafka_topic_partition_list_t *pick(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool paused) {
    rd_kafka_topic_partition_list_t *chosen = rd_kafka_topic_partition_list_new(list->cnt + 1);
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *one = &list->elems[i];
        const struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        one->err = RD_KAFKA_RESP_ERR_NO_ERROR;
        if (!p || !p->assigned || p->revoking) {
            one->err = RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
        } else if (p->paused == paused) {
            rd_kafka_topic_partition_list_add(chosen, one->topic, one->partition);
        }
    }
    return chosen;
}

static rd_kafka_resp_err_t set_paused(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool paused) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    /* Only what changes is told to librdkafka: resuming what isn't paused rewinds it before 2.4.0 (#4637). */
    rd_kafka_topic_partition_list_t *chosen = pick(u, list, !paused);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (chosen->cnt > 0) {
        err = paused ? rd_kafka_pause_partitions(u->rk, chosen) : rd_kafka_resume_partitions(u->rk, chosen);
    }
    uint64_t now = us_clock_now();
    for (int i = 0; !err && i < chosen->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &chosen->elems[i];
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        rd_kafka_topic_partition_list_find(list, one->topic, one->partition)->err = one->err;
        if (!one->err) {
            p->paused = paused;
            unsalt_core_pause(u->core, p->part, paused, now);
            atomic_store(&p->ready, true);
        }
    }
    rd_kafka_topic_partition_list_destroy(chosen);
    us_leave(u);
    return err;
}

rd_kafka_resp_err_t unsalt_pause(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions) {
    return set_paused(u, partitions, true);
}

rd_kafka_resp_err_t unsalt_resume(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions) {
    return set_paused(u, partitions, false);
}

/* ---- seek */

/* Before 2.1.0 a seek waits for a thousandth of its time (#4230). To seek once more to the same place does no harm. */
rd_kafka_error_t *us_seek(struct unsalt *u, rd_kafka_topic_partition_list_t *list, int timeout_ms) {
    uint64_t now = us_clock_ms(), until = now + (uint64_t)timeout_ms;
    rd_kafka_error_t *error = rd_kafka_seek_partitions(u->rk, list, timeout_ms);
    while (error && rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__TIMED_OUT && (now = us_clock_ms()) < until) {
        rd_kafka_error_destroy(error);
        error = rd_kafka_seek_partitions(u->rk, list, (int)(until - now));
    }
    for (int i = 0; i < list->cnt && !error; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (!list->elems[i].err) {
            p->seek_to = -1;
        }
    }
    return error;
}

/* The partitions of the list that are assigned; the others get their error. */
static rd_kafka_topic_partition_list_t *seekable(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *chosen = rd_kafka_topic_partition_list_new(list->cnt + 1);
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *one = &list->elems[i];
        const struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        bool known = p && p->assigned && !p->revoking, loading = known && p->load != US_LOAD_NONE;
        one->err = known ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
        one->err = loading ? RD_KAFKA_RESP_ERR__IN_PROGRESS : one->err;
        if (known && !loading) {
            rd_kafka_topic_partition_list_add(chosen, one->topic, one->partition)->offset = one->offset;
        }
    }
    return chosen;
}

static rd_kafka_resp_err_t seek_list(struct unsalt *u, rd_kafka_topic_partition_list_t *chosen, int timeout_ms) {
    us_start_resolve(u, chosen);
    rd_kafka_error_t *error = us_seek(u, chosen, timeout_ms);
    rd_kafka_resp_err_t err = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_destroy(error);
    return err;
}

/* A timeout leaves it open whether the seek happened, so the generation ends then too. */
static bool may_have_gone(rd_kafka_resp_err_t err) {
    return err == RD_KAFKA_RESP_ERR_NO_ERROR || err == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           err == RD_KAFKA_RESP_ERR__IN_PROGRESS;
}

/*
 * Where it goes back to without a commit. If nobody knows whether it has moved, both places are read again from; where
 * it had to be moved anyway is where the application wants it now.
 */
static void begin_at(struct us_partition *p, const rd_kafka_topic_partition_t *moved) {
    int64_t offset = moved->offset >= 0 ? moved->offset : -1;
    p->seek_to = p->seek_to >= 0 && offset >= 0 ? offset : p->seek_to;
    if (!moved->err || p->began > offset) {
        p->began = offset;
    }
}

/* Tells the core what moved, and the caller's list what became of each partition. */
static void settle(struct unsalt *u, rd_kafka_topic_partition_list_t *list,
                   const rd_kafka_topic_partition_list_t *chosen) {
    rd_kafka_topic_partition_list_t *moved = rd_kafka_topic_partition_list_new(chosen->cnt + 1);
    for (int i = 0; i < chosen->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &chosen->elems[i];
        rd_kafka_topic_partition_list_find(list, one->topic, one->partition)->err = one->err;
        if (may_have_gone(one->err)) {
            rd_kafka_topic_partition_t *added = rd_kafka_topic_partition_list_add(moved, one->topic, one->partition);
            added->offset = one->offset;
            added->err = one->err;
            begin_at(us_partition_find(u, one->topic, one->partition), one);
        }
    }
    us_assign_reopen(u, moved);
    us_checkpoint_void(u, moved);
    for (int i = 0; i < moved->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &moved->elems[i];
        rd_kafka_topic_partition_list_find(list, one->topic, one->partition)->err = one->err;
    }
    rd_kafka_topic_partition_list_destroy(moved);
}

rd_kafka_resp_err_t unsalt_seek(unsalt_t *u, rd_kafka_topic_partition_list_t *partitions, int timeout_ms) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    us_acks_apply(u);
    rd_kafka_topic_partition_list_t *chosen = seekable(u, partitions);
    rd_kafka_resp_err_t err = chosen->cnt > 0 ? seek_list(u, chosen, timeout_ms) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (may_have_gone(err)) {
        settle(u, partitions, chosen);
    }
    rd_kafka_topic_partition_list_destroy(chosen);
    us_stats_refresh(u);
    us_leave(u);
    return err;
}

/* ---- seeks of the library's own */

/* The partitions that must be moved. NULL: there are none. */
static rd_kafka_topic_partition_list_t *to_be_moved(const struct unsalt *u) {
    rd_kafka_topic_partition_list_t *list = NULL;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->seek_to >= 0 && us_partition_ours(p) && !p->revoking) {
            list = list ? list : rd_kafka_topic_partition_list_new(1);
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = p->seek_to;
        }
    }
    return list;
}

/* What can't be moved isn't read, and is moved later: else it would go on where it was, past what must come again. */
static void move(struct unsalt *u, int timeout_ms) {
    rd_kafka_topic_partition_list_t *list = to_be_moved(u);
    bool told = u->seek_at != 0;
    u->seek_at = 0;
    if (!list) {
        return;
    }
    rd_kafka_error_t *error = us_seek(u, list, timeout_ms);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        const struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (p->seek_to < 0) {
            continue;
        }
        u->seek_at = us_clock_now() + SEEK_AGAIN_NS;
        us_log(u, told ? 7 : 3, "%s [%d] can't be moved to offset %lld: %s; it isn't read before it is, tried again "
                                "every second", one->topic, (int)one->partition, (long long)p->seek_to,
               error ? rd_kafka_error_string(error) : rd_kafka_err2str(one->err));
    }
    rd_kafka_error_destroy(error);
    rd_kafka_topic_partition_list_destroy(list);
}

static bool is_same_log(struct unsalt *u, const struct us_partition *p) {
    return !p->back_anew && p->last_read >= 0 && us_start_end(u, p, SEEK_BACK_MS) > p->last_read;
}

/*
 * A leader that was frozen goes on as if it were one, and says that the offset is out of its range; librdkafka before
 * 2.1.0 (KIP-320) then begins anew at the log's start. What it brings is no newer than what was read, and the log ends
 * above that: reading goes on where it was.
 */
static void go_on(struct unsalt *u, struct us_partition *p) {
    p->seek_to = p->last_read + 1;
    us_log(u, 4, "%s [%d] was reset to offset %lld: reading goes on at %lld", p->topic, (int)p->partition,
           (long long)p->back_to, (long long)p->seek_to);
    us_pending_drop(p);
    p->back_to = -1;
}

/*
 * A log that goes back (a topic made anew, an unclean election) shows offsets that were read before with other records.
 * The core has fenced them; they are read again from the lowest of them, in a new generation, rather than lost.
 */
static rd_kafka_topic_partition_list_t *look_back(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *list = NULL;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->back_to < 0 || !p->assigned || p->revoking) {
            continue;
        }
        if (is_same_log(u, p)) {
            go_on(u, p);
            continue;
        }
        list = list ? list : rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = p->back_to;
        us_log(u, 4, "%s [%d] went back to offset %lld: it is read again from there", p->topic, (int)p->partition,
               (long long)p->back_to);
        p->seek_to = p->back_to;
        p->back_to = -1;
    }
    u->went_back = false;
    return list;
}

void us_seek_back(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *anew = u->went_back ? look_back(u) : NULL;
    move(u, u->seek_at ? SEEK_AGAIN_MS : SEEK_BACK_MS);
    if (anew) {
        us_assign_reopen(u, anew);
        us_checkpoint_void(u, anew);
        rd_kafka_topic_partition_list_destroy(anew);
    }
}

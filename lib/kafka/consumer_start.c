/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where reading begins. The position is found here, and not left to librdkafka, so that the core knows whether a lane
 * was joined in the middle of its log, and so that it can be committed: an idle lane without a commit would be skipped
 * after a restart.
 *
 * The ends of logs are asked by rd_kafka_offsets_for_times() with the protocol's own logical times (-2 first, -1 end),
 * one request per leader; it fails as a whole when one leader is missing, so what it left open is asked one by one.
 */
#include <kafka/committed.h>
#include <kafka/consumer.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#define ONE_WAIT_MS 500 /* for a partition that is asked by itself */
#define RETRY_MS 20

static bool is_stored(int64_t offset) {
    return offset == RD_KAFKA_OFFSET_INVALID || offset == RD_KAFKA_OFFSET_STORED;
}

/* What auto.offset.reset means as a logical offset; INVALID: it is an error to have no offset. */
static int64_t reset_offset(const struct unsalt *u) {
    const char *reset = u->before.reset_now;
    if (strcmp(reset, "smallest") == 0 || strcmp(reset, "earliest") == 0 || strcmp(reset, "beginning") == 0) {
        return RD_KAFKA_OFFSET_BEGINNING;
    }
    if (strcmp(reset, "largest") == 0 || strcmp(reset, "latest") == 0 || strcmp(reset, "end") == 0) {
        return RD_KAFKA_OFFSET_END;
    }
    return RD_KAFKA_OFFSET_INVALID;
}

/*
 * librdkafka doesn't tell a `latest` that the application has set from its own default, which any topic-level property
 * brings along. It is obeyed, but not in silence: records that stand in a partition without a commit are passed over.
 */
void us_start_warn(struct unsalt *u) {
    if (u->conf->offset_reset == US_RESET_AUTO && u->before.reset_set && reset_offset(u) == RD_KAFKA_OFFSET_END) {
        us_log(u, 4, "auto.offset.reset is latest (set, or librdkafka's default beside another topic-level property): "
                     "what stands in partitions without a commit is not read; offset.reset says it clearly");
    }
}

/* again: what has no commit goes back to where it began, if that is known. Unknown ones stay. */
static void resolve_stored(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool again, uint64_t until) {
    rd_kafka_topic_partition_list_t *ask = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        if (is_stored(list->elems[i].offset)) {
            rd_kafka_topic_partition_list_add(ask, list->elems[i].topic, list->elems[i].partition);
        }
    }
    rd_kafka_resp_err_t err = ask->cnt > 0 ? us_committed(u->rk, ask, until) : 0;
    if (err) {
        us_log(u, 4, "no committed offsets in time: %s", rd_kafka_err2str(err));
    }
    for (int i = 0; !err && i < ask->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &ask->elems[i];
        rd_kafka_topic_partition_t *mine = rd_kafka_topic_partition_list_find(list, one->topic, one->partition);
        struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (one->err) {
            us_log(u, 4, "no committed offset of %s [%d]: %s", one->topic, (int)one->partition,
                   rd_kafka_err2str(one->err));
        } else if (one->offset >= 0) {
            mine->offset = p->committed = p->confirmed = one->offset;
            p->origin = US_ORIGIN_COMMITTED;
        } else {
            mine->offset = again && p->began >= 0 ? p->began : reset_offset(u);
        }
    }
    rd_kafka_topic_partition_list_destroy(ask);
}

/* One request per leader for what is still open. */
static void query_together(struct unsalt *u, rd_kafka_topic_partition_list_t *ask, int64_t which, uint64_t until) {
    rd_kafka_topic_partition_list_t *open = rd_kafka_topic_partition_list_new(ask->cnt);
    for (int i = 0; i < ask->cnt; i++) {
        if (ask->elems[i].offset == which) {
            rd_kafka_topic_partition_list_add(open, ask->elems[i].topic, ask->elems[i].partition)->offset = which;
        }
    }
    bool done = !rd_kafka_offsets_for_times(u->rk, open, us_clock_rest_ms(until, INT_MAX) / 2 + 1);
    for (int i = 0; done && i < open->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &open->elems[i];
        if (!one->err && one->offset >= 0) {
            rd_kafka_topic_partition_list_find(ask, one->topic, one->partition)->offset = one->offset;
        }
    }
    rd_kafka_topic_partition_list_destroy(open);
}

/* Not by rd_kafka_query_watermark_offsets(): with a leader that is known and dead it waits past its time. */
static bool query_one(struct unsalt *u, rd_kafka_topic_partition_t *one, int64_t which, int wait_ms) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *answer = rd_kafka_topic_partition_list_add(list, one->topic, one->partition);
    answer->offset = which;
    bool done = !rd_kafka_offsets_for_times(u->rk, list, wait_ms) && !answer->err && answer->offset >= 0;
    if (done) {
        one->offset = answer->offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return done;
}

int64_t us_start_end(struct unsalt *u, const struct us_partition *p, int timeout_ms) {
    rd_kafka_topic_partition_t one = {.topic = p->topic, .partition = p->partition, .offset = -1};
    return query_one(u, &one, RD_KAFKA_OFFSET_END, timeout_ms) ? one.offset : -1;
}

/* Asks for what is still open one by one. Returns how many stay open. */
static int query_singly(struct unsalt *u, rd_kafka_topic_partition_list_t *ask, int64_t which, uint64_t until) {
    int left = 0;
    for (int i = 0; i < ask->cnt; i++) {
        rd_kafka_topic_partition_t *one = &ask->elems[i];
        if (one->offset != which) {
            continue;
        }
        left += us_clock_ms() >= until || !query_one(u, one, which, us_clock_rest_ms(until, ONE_WAIT_MS));
    }
    return left;
}

/*
 * Asks for the ends of all partitions of `ask`, whose offsets are all `which` (BEGINNING or END); found ones are
 * replaced. A topic that was just made has no leaders for some milliseconds, so it is tried until the time is over.
 */
static void query_ends(struct unsalt *u, rd_kafka_topic_partition_list_t *ask, int64_t which, uint64_t until) {
    while (ask->cnt > 0 && us_clock_ms() < until) {
        query_together(u, ask, which, until);
        if (query_singly(u, ask, which, until) == 0) {
            break;
        }
        struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}

/* Replaces logical offsets by numbers, and notes the first offsets of the logs. */
static void resolve_ends(struct unsalt *u, rd_kafka_topic_partition_list_t *list, uint64_t until) {
    rd_kafka_topic_partition_list_t *lows = rd_kafka_topic_partition_list_new(list->cnt);
    rd_kafka_topic_partition_list_t *highs = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *mine = &list->elems[i];
        rd_kafka_topic_partition_list_add(lows, mine->topic, mine->partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
        if (mine->offset == RD_KAFKA_OFFSET_END || mine->offset <= RD_KAFKA_OFFSET_TAIL_BASE) {
            rd_kafka_topic_partition_list_add(highs, mine->topic, mine->partition)->offset = RD_KAFKA_OFFSET_END;
        }
    }
    query_ends(u, highs, RD_KAFKA_OFFSET_END, until);
    query_ends(u, lows, RD_KAFKA_OFFSET_BEGINNING, until);
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *mine = &list->elems[i];
        int64_t low = lows->elems[i].offset;
        struct us_partition *p = us_partition_find(u, mine->topic, mine->partition);
        rd_kafka_topic_partition_t *high = rd_kafka_topic_partition_list_find(highs, mine->topic, mine->partition);
        p->log_start = low >= 0 ? low : -1;
        if (mine->offset == RD_KAFKA_OFFSET_BEGINNING && low >= 0) {
            mine->offset = low;
        } else if (high && high->offset >= 0) {
            int64_t back = mine->offset == RD_KAFKA_OFFSET_END ? 0 : RD_KAFKA_OFFSET_TAIL_BASE - mine->offset;
            int64_t start = high->offset - back;
            mine->offset = start > p->log_start ? start : p->log_start;
        }
    }
    rd_kafka_topic_partition_list_destroy(lows);
    rd_kafka_topic_partition_list_destroy(highs);
}

/*
 * librdkafka treats an offset below the log's beginning as it treats none: by auto.offset.reset, so `latest` would pass
 * over all that is left above it.
 */
void us_start_raise(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *one = &list->elems[i];
        const struct us_partition *p = us_partition_find(u, one->topic, one->partition);
        if (one->offset >= 0 && one->offset < p->log_start && reset_offset(u) != RD_KAFKA_OFFSET_INVALID) {
            us_log(u, 4, "%s [%d] is read from offset %lld on: what stood at %lld, where it was to begin, was deleted",
                   p->topic, (int)p->partition, (long long)p->log_start, (long long)one->offset);
            one->offset = p->log_start;
        }
    }
}

/* What of its log is gone meanwhile can't be read again. */
static int64_t above(const struct us_partition *p, int64_t offset) {
    return p->origin == US_ORIGIN_UNCOMMITTED && offset >= 0 && offset < p->log_start ? p->log_start : offset;
}

static void resolve(struct unsalt *u, rd_kafka_topic_partition_list_t *list, bool again, int timeout_ms) {
    uint64_t until = us_clock_ms() + (uint64_t)timeout_ms;
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        p->start = p->log_start = p->committed = p->confirmed = -1;
        p->origin = is_stored(list->elems[i].offset) ? US_ORIGIN_UNCOMMITTED : US_ORIGIN_GIVEN;
    }
    resolve_stored(u, list, again, until);
    resolve_ends(u, list, until);
    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_topic_partition_t *mine = &list->elems[i];
        struct us_partition *p = us_partition_find(u, mine->topic, mine->partition);
        mine->offset = above(p, mine->offset);
        p->start = mine->offset >= 0 ? mine->offset : -1;
        p->began = again && p->began < 0 ? p->start : p->began;
        if (p->start < 0) {
            us_log(u, 4, "start position of %s [%d] is not known yet", p->topic, (int)p->partition);
        }
    }
    us_start_raise(u, list); /* p->start stays what was committed: that is what a checkpoint's entry says, too */
}

void us_start_resolve(struct unsalt *u, rd_kafka_topic_partition_list_t *list) {
    resolve(u, list, false, US_START_WAIT_MS);
}

void us_start_again(struct unsalt *u, rd_kafka_topic_partition_list_t *list, int timeout_ms) {
    resolve(u, list, true, timeout_ms);
}

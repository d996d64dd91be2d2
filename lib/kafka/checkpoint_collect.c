/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a commit carries: the cursors that have changed, of each partition its position and what is done beyond, and the
 * positions as offsets of the group. All are of the same moment.
 */
#include <base/hash.h>
#include <base/mem.h>
#include <kafka/checkpoint.h>
#include <string.h>

/* The value of a partition is cut above this: what is done beyond will be read, and handed out, again. */
#define PARTITION_VALUE_MAX ((size_t)512 * 1024)
#define PARTITION_RANGES_MAX 131072u
#define REWRITE_NS (3600000 * US_MS) /* entries are written again so often even if they say nothing new */

static bool is_saved_here(const struct us_partition *p) {
    return p->assigned && p->load == US_LOAD_NONE;
}

/* Any partition of the set. */
static const struct us_partition *one_of(const struct unsalt *u, uint32_t set) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        if (u->partitions[i]->set == set && is_saved_here(u->partitions[i])) {
            return u->partitions[i];
        }
    }
    return NULL;
}

static rd_kafka_resp_err_t put_cursor(struct unsalt *u, const struct us_checkpoint_sink *sink,
                                      const unsalt_core_cursor_t *cursor) {
    struct us_checkpoint *c = u->checkpoint;
    const struct us_partition *p = one_of(u, cursor->set);
    int32_t partition = us_checkpoint_partition_of(u, cursor->set);
    const char *base = us_checkpoint_base(u, cursor->set);
    if (!p || partition < 0 || cursor->cursor == UINT64_MAX) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    const struct us_checkpoint_session session = {
        .era = p->era,
        .epoch = cursor->epoch,
        .cursor = cursor->cursor,
        .floor = cursor->floor,
        .done = cursor->done,
        .done_count = cursor->done_count,
        .skipped = cursor->skipped,
        .skipped_count = cursor->skipped_count,
    };
    size_t key_len = us_checkpoint_session_key(base, strlen(base), cursor->session, cursor->session_len, c->key,
                                               sizeof(c->key));
    size_t len = 0;
    uint64_t ranges = (uint64_t)cursor->done_count + cursor->skipped_count;
    if (!us_checkpoint_value_reserve(c, US_CHECKPOINT_VALUE_ROOM(ranges))) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    enum us_checkpoint_fault fault =
        us_checkpoint_write_session(&session, c->key, key_len, c->value, c->value_size, &len);
    if (fault != US_CHECKPOINT_OK) {
        us_log(u, 3, "the cursor of a session can't be written: %s", us_checkpoint_fault_text(fault));
        return RD_KAFKA_RESP_ERR__FAIL;
    }
    const struct us_checkpoint_record record = {
        .partition = partition, .key = c->key, .key_len = key_len, .value = c->value, .value_len = len};
    return sink->put(sink->opaque, &record);
}

static rd_kafka_resp_err_t put_cursors(struct unsalt *u, const struct us_checkpoint_sink *sink, uint64_t *count) {
    unsalt_core_cursor_t cursor;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    int more = unsalt_core_cursors_begin(u->core);
    if (more == UNSALT_CORE_INVAL) { /* what was taken before, in the same transaction, is taken again */
        unsalt_core_cursors_end(u->core, false);
        more = unsalt_core_cursors_begin(u->core);
    }
    while (!err && more >= 0 && (more = unsalt_core_cursors_next(u->core, &cursor)) > 0) {
        err = put_cursor(u, sink, &cursor);
        (*count)++;
    }
    return more < 0 ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE : err;
}

/* What is done beyond the position, into the ranges. UINT32_MAX: out of memory. */
static uint32_t done_beyond(struct unsalt *u, const struct us_partition *p) {
    struct us_checkpoint *c = u->checkpoint;
    uint32_t n = 0, before;
    int64_t from = 0;
    for (uint32_t room = 64; n < PARTITION_RANGES_MAX; room *= 2) {
        if (!us_checkpoint_ranges_reserve(c, room)) {
            return UINT32_MAX;
        }
        before = n;
        n += (uint32_t)unsalt_core_done(u->core, p->part, from, c->ranges + n, room - n);
        bool full = n == room;
        if (before > 0 && n > before && c->ranges[before].first == c->ranges[before - 1].last + 1) {
            c->ranges[before - 1].last = c->ranges[before].last;
            memmove(c->ranges + before, c->ranges + before + 1, (--n - before) * sizeof(*c->ranges));
        }
        if (!full) {
            break;
        }
        from = (int64_t)c->ranges[n - 1].last + 1;
    }
    return n;
}

/* *changed: whether it says something else than the last one. */
static rd_kafka_resp_err_t put_partition(struct unsalt *u, const struct us_checkpoint_sink *sink,
                                         struct us_partition *p, int64_t position, bool *changed) {
    struct us_checkpoint *c = u->checkpoint;
    uint32_t n = done_beyond(u, p), kept;
    size_t room = US_CHECKPOINT_VALUE_ROOM((size_t)n), len = 0;
    room = room < PARTITION_VALUE_MAX ? room : PARTITION_VALUE_MAX;
    if (n == UINT32_MAX || !us_checkpoint_value_reserve(c, room)) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    const struct us_checkpoint_partition partition = {
        .era = p->era, .frontier = position, .done = c->ranges, .done_count = n};
    size_t key_len = us_checkpoint_partition_key(p->topic, strlen(p->topic), p->partition, c->key, sizeof(c->key));
    enum us_checkpoint_fault fault =
        us_checkpoint_write_partition(&partition, c->key, key_len, c->value, room, &len, &kept);
    if (fault != US_CHECKPOINT_OK) {
        us_log(u, 3, "the position of %s [%d] can't be written: %s", p->topic, (int)p->partition,
               us_checkpoint_fault_text(fault));
        return RD_KAFKA_RESP_ERR__FAIL;
    }
    p->saving = us_hash(c->value, len, 1) | 1;
    /* A lane that is idle must not lose its entry to the topic's retention while its set is in use. */
    *changed = p->saving != p->saved || u->now >= p->saved_at + REWRITE_NS;
    const struct us_checkpoint_record record = {.partition = us_checkpoint_partition_of(u, p->set),
                                                .key = c->key, .key_len = key_len, .value = c->value, .value_len = len};
    return *changed ? sink->put(sink->opaque, &record) : RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* always: partitions that have not changed, too, since a broker fences by offsets. */
static rd_kafka_resp_err_t put_partitions(struct unsalt *u, const struct us_checkpoint_sink *sink, bool always,
                                          rd_kafka_topic_partition_list_t *offsets) {
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (uint32_t i = 0; !err && i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        int64_t position = is_saved_here(p) ? unsalt_core_position(u->core, p->part) : -1;
        bool changed = position >= 0 && position != p->committed;
        if (position < 0) {
            continue;
        }
        if (u->checkpoint && us_checkpoint_partition_of(u, p->set) >= 0) {
            err = put_partition(u, sink, p, position, &changed);
        }
        if (!err && (changed || always)) {
            rd_kafka_topic_partition_list_add(offsets, p->topic, p->partition)->offset = position;
        }
    }
    return err;
}

bool us_checkpoint_anything(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    unsalt_core_counters_t counters;
    unsalt_core_counters(u->core, &counters);
    bool any = counters.cursors_changed > 0 || counters.received != c->received || counters.unacked != c->unacked;
    for (uint32_t i = 0; !any && i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        int64_t position = is_saved_here(p) ? unsalt_core_position(u->core, p->part) : -1;
        any = position >= 0 && position != p->committed;
    }
    return any;
}

rd_kafka_resp_err_t us_checkpoint_collect(struct unsalt *u, const struct us_checkpoint_sink *sink,
                                          rd_kafka_topic_partition_list_t **offsets) {
    unsalt_core_counters_t counters;
    uint64_t cursors = 0;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    *offsets = rd_kafka_topic_partition_list_new(8);
    if (u->checkpoint) {
        us_load_leave(u);
        err = put_cursors(u, sink, &cursors);
    }
    err = err ? err : put_partitions(u, sink, cursors > 0, *offsets);
    if (err) {
        if (u->checkpoint) {
            unsalt_core_cursors_end(u->core, false);
        }
        rd_kafka_topic_partition_list_destroy(*offsets);
        *offsets = NULL;
        return err;
    }
    for (int i = 0; i < (*offsets)->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &(*offsets)->elems[i];
        us_partition_find(u, one->topic, one->partition)->committed = one->offset;
    }
    unsalt_core_counters(u->core, &counters);
    if (u->checkpoint) {
        u->checkpoint->received = counters.received;
        u->checkpoint->unacked = counters.unacked;
    }
    return err;
}

void us_checkpoint_undo(struct unsalt *u, const rd_kafka_topic_partition_list_t *offsets) {
    for (int i = 0; i < offsets->cnt; i++) {
        struct us_partition *p = us_partition_find(u, offsets->elems[i].topic, offsets->elems[i].partition);
        p->saved = 0;
        p->committed = p->committed == offsets->elems[i].offset ? -1 : p->committed;
    }
    if (u->checkpoint) {
        unsalt_core_cursors_end(u->core, false);
        u->checkpoint->received = UINT64_MAX;
    }
}

void us_checkpoint_settle(struct unsalt *u, rd_kafka_resp_err_t err, const rd_kafka_topic_partition_list_t *offsets) {
    for (int i = 0; i < offsets->cnt; i++) {
        struct us_partition *p = us_partition_find(u, offsets->elems[i].topic, offsets->elems[i].partition);
        p->saved = err || p->load != US_LOAD_NONE ? 0 : p->saving;
        p->saved_at = u->now;
    }
    if (u->checkpoint) {
        unsalt_core_cursors_end(u->core, !err);
        u->checkpoint->received = err ? UINT64_MAX : u->checkpoint->received;
    }
    us_commit_settle(u, err, offsets);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One entry that was read. What can't be trusted gives no cursor: the session starts like an unknown one then, and what
 * an earlier entry of the same key has said is taken back.
 */
#include <inttypes.h>
#include <kafka/checkpoint.h>
#include <string.h>

/* Where the entry stands; what the application keeps has a lane set, and no topic or offset. */
static void place(const struct unsalt *u, const struct us_checkpoint_record *record, char *text, size_t size) {
    const char *topic = u->checkpoint->topic;
    if (topic) {
        snprintf(text, size, "%s [%d] offset %" PRId64, topic, (int)record->partition, record->offset);
    } else {
        snprintf(text, size, "lane set %d", (int)record->partition);
    }
}

static void refuse(struct unsalt *u, const struct us_checkpoint_record *record,
                   const struct us_checkpoint_fields *entry, enum us_checkpoint_fault fault) {
    char text[900], where[300];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_CHECKPOINT_REFUSED);
    event.session = entry->session;
    event.session_len = entry->session_len;
    event.topic = u->checkpoint->topic;
    event.partition = record->partition;
    event.offset = record->offset;
    event.count = 1;
    place(u, record, where, sizeof(where));
    if (entry->topic) {
        snprintf(text, sizeof(text),
                 "checkpoint_refused: %s: an entry about %.*s: %s; what it is about starts as if there were none",
                 where, (int)entry->topic_len, entry->topic, us_checkpoint_fault_text(fault));
    } else {
        snprintf(text, sizeof(text), "checkpoint_refused: %s: an entry whose key says nothing: %s; it is passed over",
                 where, us_checkpoint_fault_text(fault));
    }
    event.text = text;
    u->own.checkpoint_refused++;
    us_event_raise(u, &event);
}

/* Is the entry of the era of its set? A later one than was seen so far ends what the earlier ones have said. */
static bool of_this_era(struct unsalt *u, struct us_load_set *load, const struct us_checkpoint_fields *entry) {
    if (entry->era > load->era) {
        us_load_void(u, load);
        load->era = entry->era;
    }
    return entry->era == load->era;
}

static rd_kafka_resp_err_t take_cursor(struct unsalt *u, const struct us_load_set *load,
                                       const struct us_checkpoint_fields *entry) {
    struct us_checkpoint *c = u->checkpoint;
    if (!us_checkpoint_ranges_reserve(c, entry->done.count + entry->skipped.count)) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    us_checkpoint_ranges_copy(&entry->done, c->ranges);
    us_checkpoint_ranges_copy(&entry->skipped, c->ranges + entry->done.count);
    const unsalt_core_cursor_t cursor = {
        .session = entry->session,
        .session_len = (uint32_t)entry->session_len,
        .set = load->set,
        .epoch = entry->epoch,
        .cursor = entry->cursor,
        .floor = entry->floor,
        .done = c->ranges,
        .skipped = c->ranges + entry->done.count,
        .done_count = entry->done.count,
        .skipped_count = entry->skipped.count,
    };
    switch (unsalt_core_restore(u->core, &cursor, u->now)) {
    case UNSALT_CORE_OK:
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    case UNSALT_CORE_NOMEM:
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    default: /* a session id over session.id.max, cursor 0 */
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
}

static rd_kafka_resp_err_t take_session(struct unsalt *u, const struct us_checkpoint_record *record,
                                        const struct us_checkpoint_fields *entry, enum us_checkpoint_fault fault) {
    struct us_load_set *load = us_load_of(u, record->partition, entry->topic, entry->topic_len);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!load || (fault == US_CHECKPOINT_OK && !of_this_era(u, load, entry))) {
        return err;
    }
    if (fault == US_CHECKPOINT_OK) {
        err = take_cursor(u, load, entry);
        load->entries += !err;
    }
    if (fault != US_CHECKPOINT_OK || err) {
        unsalt_core_restore_undo(u->core, load->set, entry->session, (uint32_t)entry->session_len);
    }
    if (err || (fault != US_CHECKPOINT_OK && fault != US_CHECKPOINT_GONE)) {
        refuse(u, record, entry, err ? US_CHECKPOINT_ROOM : fault);
        err = err ? err : RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    return err;
}

static rd_kafka_resp_err_t take_partition(struct unsalt *u, const struct us_checkpoint_record *record,
                                          const struct us_checkpoint_fields *entry, enum us_checkpoint_fault fault) {
    char topic[US_CHECKPOINT_TOPIC_MAX + 1];
    memcpy(topic, entry->topic, entry->topic_len);
    topic[entry->topic_len] = 0;
    struct us_partition *p = us_partition_find(u, topic, entry->partition);
    const char *base = p ? us_checkpoint_base(u, p->set) : NULL;
    struct us_load_set *load = base ? us_load_of(u, record->partition, base, strlen(base)) : NULL;
    if (!p || p->load != US_LOAD_LOADING || !load || load->set != p->set) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (fault == US_CHECKPOINT_OK && !of_this_era(u, load, entry)) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    us_partition_found(p, -1, NULL, 0);
    if (fault == US_CHECKPOINT_GONE) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (fault != US_CHECKPOINT_OK) {
        refuse(u, record, entry, fault);
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!us_checkpoint_ranges_reserve(u->checkpoint, entry->done.count)) {
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    us_checkpoint_ranges_copy(&entry->done, u->checkpoint->ranges);
    bool kept = us_partition_found(p, entry->frontier, u->checkpoint->ranges, entry->done.count);
    return kept ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
}

rd_kafka_resp_err_t us_checkpoint_enter(struct unsalt *u, const struct us_checkpoint_record *record) {
    struct us_checkpoint_fields entry;
    size_t key_len = record->key ? record->key_len : 0;
    enum us_checkpoint_fault fault =
        us_checkpoint_read(record->key, key_len, record->value, record->value_len, &entry);
    if (entry.kind == UNSALT_CHECKPOINT_SESSION) {
        return take_session(u, record, &entry, fault);
    }
    if (entry.kind == UNSALT_CHECKPOINT_PARTITION) {
        return take_partition(u, record, &entry, fault);
    }
    refuse(u, record, &entry, fault);
    return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>

#define NAMED 3 /* missing partitions that the event names */
#define METADATA_WAIT_MS 1000

static void tell(struct unsalt *u, const struct us_missing *missing, size_t count, bool incremental) {
    char text[1200];
    size_t used = 0;
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_COLOCATION);
    event.topic = missing[0].topic;
    event.partition = missing[0].partition;
    event.count = count;
    used += (size_t)snprintf(text, sizeof(text), "colocation: %zu partitions of owned lane sets are not assigned here:",
                             count);
    for (size_t i = 0; i < count && i < NAMED && used < sizeof(text); i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s [%d]", missing[i].topic,
                                 (int)missing[i].partition);
    }
    const char *end = "; refused, no records come (colocation=refuse)";
    if (incremental) {
        end = "; their sessions wait until the sets are complete";
    } else if (u->conf->colocation == US_COLOCATION_REPORT) {
        end = "; running on, order across them is not guaranteed";
    }
    if (used < sizeof(text)) {
        snprintf(text + used, sizeof(text) - used, "%s%s", count > NAMED ? " ..." : "", end);
    }
    event.text = text;
    us_event_raise(u, &event);
}

/* What one topic lacks of the partitions that it has now. `mine` has room for n. */
static size_t missing_of(const struct us_owned *owned, size_t n, const struct rd_kafka_metadata_topic *topic,
                         struct us_owned *mine, struct us_missing *missing) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(owned[i].topic, topic->topic) == 0) {
            mine[count++] = owned[i];
        }
    }
    if (count == 0 || topic->err) {
        return 0;
    }
    return us_layout_missing(US_LAYOUT_HASH, NULL, topic->partition_cnt, mine, count, missing, NAMED);
}

/* Remembers how many partitions a topic has: so many its lane set must have before its sessions are released. */
static void note_live(struct unsalt *u, const struct us_owned *owned, size_t n, const char *topic, uint32_t live) {
    for (size_t i = 0; i < n; i++) {
        struct us_partition *p = NULL;
        if (!topic || strcmp(owned[i].topic, topic) == 0) {
            p = us_partition_find(u, owned[i].topic, owned[i].partition);
        }
        if (p) {
            p->live = live;
        }
    }
}

/*
 * N is not configured: what the cluster says now is good enough to see that a group has spread the partitions of a
 * topic over several members. It moves nothing.
 */
static size_t missing_now(struct unsalt *u, const struct us_owned *owned, size_t n, struct us_missing *missing) {
    const struct rd_kafka_metadata *metadata;
    size_t count = 0;
    rd_kafka_resp_err_t err = rd_kafka_metadata(u->rk, 0, NULL, &metadata, METADATA_WAIT_MS);
    if (err) {
        us_log(u, 4, "whether all partitions are assigned here is not known: %s", rd_kafka_err2str(err));
        return 0;
    }
    struct us_owned *mine = us_calloc(&us_mem_default, n, sizeof(*mine));
    for (int i = 0; mine && i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        if (!topic->err) {
            note_live(u, owned, n, topic->topic, (uint32_t)topic->partition_cnt);
        }
        if (count == 0) {
            count = missing_of(owned, n, topic, mine, missing);
        }
    }
    us_free(&us_mem_default, mine);
    rd_kafka_metadata_destroy(metadata);
    return count;
}

size_t us_colocation_check(struct unsalt *u, const struct us_owned *owned, size_t n, bool incremental, bool group) {
    struct us_missing missing[NAMED];
    size_t count = 0;
    if (u->conf->layout != US_LAYOUT_HASH || u->conf->partitions != 0) {
        count = us_layout_missing((enum us_layout)u->conf->layout, &u->lanes.topics, (int32_t)u->conf->partitions,
                                  owned, n, missing, NAMED);
    } else if (group) {
        count = missing_now(u, owned, n, missing);
    } else {
        note_live(u, owned, n, NULL, 0);
    }
    if (count > 0) {
        tell(u, missing, count, incremental);
    }
    return count;
}

/* With names given, a topic that is not among them is a lane set of its own. */
static bool is_lane_topic(const struct us_lane_topics *topics, const char *topic) {
    for (uint16_t k = 0; topics->names && k < topics->count; k++) {
        if (strcmp(topics->names[k], topic) == 0) {
            return true;
        }
    }
    return !topics->names;
}

uint32_t us_colocation_set_size(const struct unsalt *u, const struct us_partition *p) {
    int64_t size = u->conf->partitions ? u->conf->partitions : p->live;
    if (u->conf->layout == US_LAYOUT_TOPICS) {
        size = is_lane_topic(&u->lanes.topics, p->topic) ? u->lanes.topics.count : 1;
    }
    if (u->conf->colocation == US_COLOCATION_REPORT) {
        return 0;
    }
    return size < UINT16_MAX ? (uint32_t)size : UINT16_MAX;
}

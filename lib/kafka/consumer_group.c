/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which partitions wait for the rest of their lane set, and how many partitions the topics have. A partition that
 * waits isn't read: what is held of a set that may never be complete would take the budget from all others.
 */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <kafka/member.h>
#include <string.h>

#define UNKNOWN_TELL (3000 * US_MS)   /* how long the cluster may leave the question open before it is told */
#define ASK_AGAIN (500 * US_MS)       /* when the answer was no use */
#define INCOMPLETE_TELL (30000 * US_MS) /* after which a set that comes in pieces should have been complete */

/* ---- gates */

/* How many partitions of its lane set are open here; in layout hash those that a topic has grown by don't count. */
static uint32_t open_of_set(const struct unsalt *u, const struct us_partition *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *other = u->partitions[i];
        bool counts = other->assigned && other->set == p->set;
        count += counts && (u->conf->partitions == 0 || other->partition < u->conf->partitions);
    }
    return count;
}

bool us_group_incremental(const struct unsalt *u) {
    return us_member_incremental(u->rk);
}

void us_group_changed(struct unsalt *u) {
    bool any = false;
    u->watch.unknown = false;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        uint32_t size = p->assigned ? us_colocation_set_size(u, p) : 0;
        p->gated = size > 1 && open_of_set(u, p) < size;
        u->watch.unknown |= p->assigned && p->live == US_LIVE_UNKNOWN;
        any |= p->gated && p->live != US_LIVE_UNKNOWN;
    }
    u->watch.gated_at = any && us_group_incremental(u) ? us_clock_now() : UNSALT_NEVER;
}

void us_group_opened(struct unsalt *u) {
    us_group_changed(u);
    u->watch.unknown_at = u->watch.unknown ? us_clock_now() : UNSALT_NEVER;
    us_watch_ask(u);
}

bool us_group_new_protocol(const struct unsalt *u) {
    return strcmp(u->before.protocol, "consumer") == 0;
}

/* ---- how many partitions the topics have */

int32_t us_group_partitions(const struct unsalt *u, const char *topic) {
    for (uint32_t i = 0; i < u->watch.heard_count; i++) {
        if (strcmp(u->watch.heard[i].topic, topic) == 0) {
            return u->watch.heard[i].partitions;
        }
    }
    return (int32_t)u->conf->partitions;
}

/* The topic's entry, new ones with `initial`; NULL: nothing of it was ever assigned here, or out of memory. */
static struct us_heard_topic *heard_of(struct unsalt *u, const char *topic, int32_t initial) {
    struct us_watch *watch = &u->watch;
    const char *mine = NULL;
    for (uint32_t i = 0; i < watch->heard_count; i++) {
        if (strcmp(watch->heard[i].topic, topic) == 0) {
            return &watch->heard[i];
        }
    }
    for (uint32_t i = 0; i < u->partition_count && !mine; i++) {
        mine = strcmp(u->partitions[i]->topic, topic) == 0 ? u->partitions[i]->topic : NULL;
    }
    struct us_heard_topic *grown =
        mine ? us_realloc_array(&us_mem_default, watch->heard, watch->heard_count + 1, sizeof(*grown)) : NULL;
    if (!grown) {
        return NULL;
    }
    watch->heard = grown;
    grown[watch->heard_count] = (struct us_heard_topic){.topic = mine, .partitions = initial};
    return &grown[watch->heard_count++];
}

/* What the change means, by layout. */
static const char *meaning(const struct unsalt *u, bool grown) {
    if (!grown) {
        return "";
    }
    switch (u->conf->layout) {
    case US_LAYOUT_TOPICS:
        return ": sessions stay where they are, a partition above is a lane set of its own; give every lane topic as "
               "many, or the members' shares of the topics may differ";
    case US_LAYOUT_BLOCK:
        return ": sessions stay where they are, what stands in partitions above is in no block; the members' shares "
               "may cut blocks now";
    default:
        return ": what stands in partitions above belongs to the same lane set; the sessions of a producer that "
               "spreads over all of them have moved";
    }
}

/* A change of the number moves nothing, but somebody should know: once. Returns whether it has changed. */
static bool note_count(struct unsalt *u, const struct rd_kafka_metadata_topic *topic) {
    int32_t pinned = (int32_t)u->conf->partitions;
    struct us_heard_topic *heard = heard_of(u, topic->topic, pinned ? pinned : topic->partition_cnt);
    if (!heard || heard->partitions == topic->partition_cnt) {
        return false;
    }
    char text[700];
    unsalt_event_t event;
    int32_t before = heard->partitions;
    heard->partitions = topic->partition_cnt;
    us_event_init(&event, UNSALT_EVENT_PARTITIONS_CHANGED);
    snprintf(text, sizeof(text), "partitions_changed: %s has %d partitions, %s %d%s", topic->topic,
             (int)topic->partition_cnt, pinned ? "configured are" : "before there were",
             (int)(pinned ? pinned : before), meaning(u, topic->partition_cnt > (pinned ? pinned : before)));
    event.topic = topic->topic;
    event.count = (uint64_t)topic->partition_cnt;
    event.text = text;
    us_event_raise(u, &event);
    return true;
}

static bool any_gated(const struct unsalt *u) {
    bool any = false;
    for (uint32_t i = 0; i < u->partition_count && !any; i++) {
        any = u->partitions[i]->gated && u->partitions[i]->live != US_LIVE_UNKNOWN;
    }
    return any;
}

/*
 * Partitions whose set had no size when they were opened are opened anew, so that the core learns it: nothing of them
 * was read. A topic that is not in the answer stays unknown.
 */
static void resolve(struct unsalt *u, const struct rd_kafka_metadata *metadata) {
    rd_kafka_topic_partition_list_t *again = rd_kafka_topic_partition_list_new(8);
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        for (uint32_t k = 0; !topic->err && topic->partition_cnt > 0 && k < u->partition_count; k++) {
            struct us_partition *p = u->partitions[k];
            if (p->assigned && p->live == US_LIVE_UNKNOWN && strcmp(p->topic, topic->topic) == 0) {
                p->live = (uint32_t)topic->partition_cnt;
                if (u->conf->colocation == US_COLOCATION_REPORT) {
                    continue; /* it was read all the same, and doesn't wait for a set */
                }
                rd_kafka_topic_partition_list_add(again, p->topic, p->partition)->offset = p->start;
            }
        }
    }
    if (again->cnt > 0) {
        us_assign_reopen(u, again);
        us_group_changed(u);
        us_colocation_tell(u, false);
    }
    rd_kafka_topic_partition_list_destroy(again);
    u->watch.unknown_at = u->watch.unknown ? u->watch.unknown_at : UNSALT_NEVER;
}

/* Fails closed, and says so. */
static void tell_unknown(struct unsalt *u, rd_kafka_resp_err_t err) {
    char text[512];
    unsalt_event_t event;
    const struct us_partition *p = NULL;
    for (uint32_t i = 0; i < u->partition_count && !p; i++) {
        const struct us_partition *one = u->partitions[i];
        p = one->assigned && one->live == US_LIVE_UNKNOWN ? one : NULL;
    }
    us_event_init(&event, UNSALT_EVENT_COLOCATION);
    event.topic = p ? p->topic : NULL;
    snprintf(text, sizeof(text), "colocation: how many partitions %s has is not known (%s), so whether all are "
                                 "assigned here isn't either; no records come until it is: set `partitions`",
             p ? p->topic : "the topic", err ? rd_kafka_err2str(err) : "it is not in the cluster's answer");
    event.text = text;
    us_event_raise(u, &event);
    u->watch.unknown_at = UNSALT_NEVER;
}

static void take(struct unsalt *u, uint64_t now) {
    bool newest, changed = false;
    const struct rd_kafka_metadata *metadata = us_watch_take(&u->watch, &newest);
    if (!metadata) {
        return;
    }
    for (int i = 0; i < metadata->topic_cnt; i++) {
        if (!metadata->topics[i].err && metadata->topics[i].partition_cnt > 0) {
            changed |= note_count(u, &metadata->topics[i]);
        }
    }
    if (changed && any_gated(u)) {
        us_colocation_tell(u, false); /* the group was quicker, and the cure is another one now */
    }
    if (newest && u->watch.unknown) {
        resolve(u, metadata);
        u->watch.ask_at = u->watch.unknown ? now + ASK_AGAIN : 0;
    }
    rd_kafka_metadata_destroy(metadata);
}

void us_group_round(struct unsalt *u, uint64_t now) {
    struct us_watch *watch = &u->watch;
    if (atomic_load_explicit(&watch->fresh, memory_order_relaxed) && !u->revoke.active) {
        take(u, now);
    }
    if (watch->ask_at && now >= watch->ask_at) {
        watch->ask_at = 0;
        us_watch_ask(u);
    }
    if (watch->unknown && watch->unknown_at != UNSALT_NEVER && now >= watch->unknown_at + UNKNOWN_TELL) {
        tell_unknown(u, us_watch_error(watch));
    }
    if (watch->gated_at != UNSALT_NEVER && now >= watch->gated_at + INCOMPLETE_TELL) {
        us_colocation_tell(u, true);
        watch->gated_at = UNSALT_NEVER;
    }
}

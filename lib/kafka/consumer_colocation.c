/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether lane sets are complete here. An assignment by the group that has some complete sets is taken, and the others
 * of it aren't read (consumer_group.c): so while members are restarted one by one with one more lane topic, which only
 * the new ones subscribe to, their complete sets go on. One that has none is refused.
 */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>

#define NAMED 3 /* missing partitions that the event names */

/* What becomes of incomplete sets. */
enum fate { WAIT, WAIT_LONG, REFUSED, REFUSED_PARTLY, REPORTED };
static const char *const fates[] = {
    [WAIT] = "; their sessions wait until the sets are complete",
    [WAIT_LONG] = "; it has been so for long: refused, no records of these sets come (colocation=refuse)",
    [REFUSED] = "; refused, no records come (colocation=refuse)",
    [REFUSED_PARTLY] = "; refused, no records of these sets come, others are read (colocation=refuse)",
    [REPORTED] = "; running on, order across them is not guaranteed",
};

/*
 * Among how many members `range` divides a topic without cutting a block. One that has grown is divided with what it
 * has grown by, so these may be other numbers than the divisors of the number of blocks.
 */
static void block_members(int32_t total, int32_t partitions, int32_t block, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int32_t members = 1; members <= partitions / block && used + 16 < size; members++) {
        bool whole = true;
        for (int32_t i = 1; i < members && whole; i++) {
            int32_t more = total % members, from = i * (total / members) + (i < more ? i : more);
            whole = from >= partitions || from % block == 0;
        }
        if (whole) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", (int)members);
        }
    }
}

/* What keeps the lane sets of the layout together. */
static size_t add_cure(const struct unsalt *u, const char *topic, char *text, size_t size) {
    char members[200];
    const char *assignor = us_group_new_protocol(u) ? "group.remote.assignor=range"
                                                    : "partition.assignment.strategy=range";
    if (u->conf->layout == US_LAYOUT_HASH) {
        return (size_t)snprintf(text, size, "; with layout=hash one member of the group has to read the whole topic: "
                                            "for more members use layout=topics or layout=block");
    }
    if (u->conf->layout == US_LAYOUT_TOPICS) {
        return (size_t)snprintf(text, size, "; with layout=topics every lane topic needs %lld partitions, and all "
                                            "members subscribe to all of them with %s",
                                (long long)u->conf->partitions, assignor);
    }
    int32_t total = us_group_partitions(u, topic);
    block_members(total, (int32_t)u->conf->partitions, (int32_t)u->conf->lanes, members, sizeof(members));
    if (total > u->conf->partitions) {
        return (size_t)snprintf(text, size, "; the topic has grown to %d partitions, which the members share: so that "
                                            "no block of %lld of the first %lld is cut, with %s, use %s members",
                                (int)total, (long long)u->conf->lanes, (long long)u->conf->partitions, assignor,
                                members);
    }
    return (size_t)snprintf(text, size,
                            "; blocks of %lld partitions stay together among as many members of the group as divide the"
                            " %lld blocks, with %s: use %s members",
                            (long long)u->conf->lanes, (long long)(u->conf->partitions / u->conf->lanes), assignor,
                            members);
}

static void tell(struct unsalt *u, const struct us_missing *missing, size_t count, enum fate fate) {
    char text[1200];
    size_t used = 0;
    unsalt_event_t event;
    u->own.colocation_refused += fate == WAIT_LONG || fate == REFUSED || fate == REFUSED_PARTLY;
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
    if (count > NAMED && used < sizeof(text)) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, " ...");
    }
    if (fate != WAIT && used < sizeof(text)) {
        used += add_cure(u, missing[0].topic, text + used, sizeof(text) - used);
    }
    if (used < sizeof(text)) {
        snprintf(text + used, sizeof(text) - used, "%s", fates[fate]);
    }
    event.text = text;
    us_event_raise(u, &event);
}

/* ---- what is missing */

static uint32_t live_of(const struct unsalt *u, const struct us_owned *owned) {
    const struct us_partition *p = us_partition_find(u, owned->topic, owned->partition);
    return p ? p->live : 0;
}

static bool is_first_of_topic(const struct us_owned *owned, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (strcmp(owned[i].topic, owned[index].topic) == 0) {
            return false;
        }
    }
    return true;
}

/* N is not configured: what the cluster says now is good enough to see that a group has spread a topic. */
static size_t missing_live(const struct unsalt *u, const struct us_owned *owned, size_t n, struct us_owned *mine,
                           struct us_missing *missing) {
    size_t count = 0;
    for (size_t i = 0; i < n && count == 0; i++) {
        uint32_t live = live_of(u, &owned[i]);
        size_t own = 0;
        if (live == 0 || live == US_LIVE_UNKNOWN || !is_first_of_topic(owned, i)) {
            continue;
        }
        for (size_t k = i; k < n; k++) {
            if (strcmp(owned[k].topic, owned[i].topic) == 0) {
                mine[own++] = owned[k];
            }
        }
        count = us_layout_missing(US_LAYOUT_HASH, NULL, (int32_t)live, mine, own, missing, NAMED);
    }
    return count;
}

/* With layout topics, a partition that a topic has grown by is a set of its own, whatever the other topics have. */
static size_t below_n(const struct unsalt *u, const struct us_owned *owned, size_t n, struct us_owned *mine) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (u->conf->layout != US_LAYOUT_TOPICS || owned[i].partition < u->conf->partitions) {
            mine[count++] = owned[i];
        }
    }
    return count;
}

/* SIZE_MAX: out of memory. */
static size_t find_missing(const struct unsalt *u, const struct us_owned *owned, size_t n,
                           struct us_missing *missing) {
    struct us_owned *mine = us_calloc(&us_mem_default, n + 1, sizeof(*mine));
    size_t count = SIZE_MAX;
    if (mine && u->conf->layout == US_LAYOUT_HASH && u->conf->partitions == 0) {
        count = missing_live(u, owned, n, mine, missing);
    } else if (mine) {
        size_t own = below_n(u, owned, n, mine);
        count = us_layout_missing((enum us_layout)u->conf->layout, &u->lanes.topics, (int32_t)u->conf->partitions,
                                  mine, own, missing, NAMED);
    }
    us_free(&us_mem_default, mine);
    return count;
}

/* Whether some set is there as a whole. */
static bool has_complete(const struct unsalt *u, const struct us_owned *owned, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct us_partition *p = us_partition_find(u, owned[i].topic, owned[i].partition);
        uint32_t size = p ? us_colocation_set_size(u, p) : 0, count = 0;
        for (size_t k = 0; size > 0 && k < n; k++) {
            const struct us_partition *other = us_partition_find(u, owned[k].topic, owned[k].partition);
            count += other && other->set == p->set &&
                     (u->conf->partitions == 0 || other->partition < u->conf->partitions);
        }
        if (size > 0 && count >= size) {
            return true;
        }
    }
    return false;
}

/* ---- the check */

/* How many there are is asked in the background, and nothing is read before the answer: see consumer_group.c. */
static size_t check_later(struct unsalt *u, const struct us_owned *owned, size_t n, bool group) {
    for (size_t i = 0; i < n; i++) {
        struct us_partition *p = us_partition_find(u, owned[i].topic, owned[i].partition);
        if (p && !p->assigned) {
            p->live = group ? US_LIVE_UNKNOWN : 0;
        }
    }
    return 0;
}

size_t us_colocation_check(struct unsalt *u, const struct us_owned *owned, size_t n, bool incremental, bool group) {
    struct us_missing missing[NAMED];
    if (u->conf->layout == US_LAYOUT_HASH && u->conf->partitions == 0) {
        return check_later(u, owned, n, group);
    }
    size_t count = find_missing(u, owned, n, missing);
    if (count == 0 || count == SIZE_MAX) {
        return count;
    }
    enum fate fate = u->conf->colocation == US_COLOCATION_REPORT ? REPORTED
                     : incremental                               ? WAIT
                     : group && has_complete(u, owned, n)        ? REFUSED_PARTLY
                                                                 : REFUSED;
    tell(u, missing, count, fate);
    return fate == REFUSED_PARTLY ? 0 : count;
}

void us_colocation_tell(struct unsalt *u, bool for_long) {
    struct us_missing missing[NAMED];
    struct us_owned *owned = us_calloc(&us_mem_default, (size_t)u->partition_count + 1, sizeof(*owned));
    size_t n = 0;
    for (uint32_t i = 0; owned && i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && !p->revoking) {
            owned[n++] = (struct us_owned){.topic = p->topic, .partition = p->partition};
        }
    }
    size_t count = n > 0 ? find_missing(u, owned, n, missing) : 0;
    if (count > 0 && count != SIZE_MAX) {
        enum fate fate = u->conf->colocation == US_COLOCATION_REPORT ? REPORTED
                         : for_long                                  ? WAIT_LONG
                         : us_group_incremental(u)                   ? WAIT
                         : has_complete(u, owned, n)                 ? REFUSED_PARTLY
                                                                     : REFUSED;
        tell(u, missing, count, fate);
    }
    us_free(&us_mem_default, owned);
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
    if (u->conf->layout == US_LAYOUT_BLOCK) {
        size = p->partition < u->conf->partitions ? u->conf->lanes : 0; /* beyond N the topic has grown */
    }
    if (u->conf->layout == US_LAYOUT_TOPICS) {
        size = is_lane_topic(&u->lanes.topics, p->topic) ? u->lanes.topics.count : 1;
        size = p->partition < u->conf->partitions ? size : 0; /* the other lane topics may not have it */
    }
    if (u->conf->colocation == US_COLOCATION_REPORT) {
        return 0;
    }
    return size < UINT16_MAX ? (uint32_t)size : UINT16_MAX;
}

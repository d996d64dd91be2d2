/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/layout.h>
#include <stdio.h>
#include <string.h>

#define LANE_SUFFIX ".lane-"
/* Digits of the largest lane number, 65534. */
#define LANE_DIGITS_MAX 5

size_t us_lane_topic(const struct us_lane_topics *topics, const char *base, uint16_t lane, char *name, size_t size) {
    int n;
    if (topics->names)
        n = lane < topics->count ? snprintf(name, size, "%s", topics->names[lane]) : 0;
    else if (lane == 0)
        n = snprintf(name, size, "%s", base);
    else
        n = snprintf(name, size, "%s" LANE_SUFFIX "%u", base, (unsigned)lane);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* The last ".lane-" of a topic, NULL if there is none. */
static const char *last_suffix(const char *topic) {
    const char *last = NULL;
    for (const char *p = strstr(topic, LANE_SUFFIX); p; p = strstr(p + 1, LANE_SUFFIX))
        last = p;
    return last;
}

/* The lane number behind ".lane-": 1 .. count-1 without leading zeros; 0 = it is none. */
static uint16_t lane_number(const char *digits, uint16_t count) {
    size_t n = strspn(digits, "0123456789");
    uint32_t lane = 0;
    if (n == 0 || n > LANE_DIGITS_MAX || digits[n] != '\0' || digits[0] == '0')
        return 0;
    for (size_t i = 0; i < n; i++)
        lane = lane * 10 + (uint32_t)(digits[i] - '0');
    return lane < count ? (uint16_t)lane : 0;
}

struct us_topic_lane us_topic_lane(const struct us_lane_topics *topics, const char *topic) {
    struct us_topic_lane itself = {topic, strlen(topic), 0};
    if (topics->names) {
        for (uint16_t k = 0; k < topics->count; k++)
            if (strcmp(topics->names[k], topic) == 0)
                return (struct us_topic_lane){topics->names[0], strlen(topics->names[0]), k};
        return itself;
    }
    const char *suffix = last_suffix(topic);
    uint16_t lane = suffix && suffix != topic ? lane_number(suffix + strlen(LANE_SUFFIX), topics->count) : 0;
    return lane ? (struct us_topic_lane){topic, (size_t)(suffix - topic), lane} : itself;
}

/* An assignment to be searched, and what was found missing so far. */
struct search {
    const struct us_lane_topics *topics;
    const struct us_owned *owned;
    size_t n;
    bool sorted;
    struct us_missing *missing;
    size_t max, count;
};

static int compare(const struct us_owned *a, const char *topic, int32_t partition) {
    int by_topic = strcmp(a->topic, topic);
    return by_topic ? by_topic : (a->partition > partition) - (a->partition < partition);
}

static bool is_sorted(const struct us_owned *owned, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (compare(&owned[i - 1], owned[i].topic, owned[i].partition) > 0)
            return false;
    return true;
}

static bool owns(const struct search *s, const char *topic, int32_t partition) {
    size_t low = 0, high = s->n;
    if (!s->sorted) {
        for (size_t i = 0; i < s->n; i++)
            if (s->owned[i].partition == partition && strcmp(s->owned[i].topic, topic) == 0)
                return true;
        return false;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(&s->owned[middle], topic, partition);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static void miss(struct search *s, const char *topic, int32_t partition) {
    if (s->count < s->max) {
        struct us_missing *m = &s->missing[s->count];
        snprintf(m->topic, sizeof m->topic, "%s", topic);
        m->partition = partition;
    }
    s->count++;
}

/* The name of a lane topic; a name that no topic can have is cut. */
static void name_lane(const struct search *s, const char *base, uint16_t lane, char *name, size_t size) {
    if (us_lane_topic(s->topics, base, lane, name, size) == 0)
        name[0] = '\0';
}

/* A lane set is looked at once, by the lowest lane of it that is owned. */
static void search_lane_topics(struct search *s, const struct us_owned *entry) {
    char base[256], name[256];
    struct us_topic_lane at = us_topic_lane(s->topics, entry->topic);
    if (s->topics->names && strcmp(s->topics->names[at.lane], entry->topic) != 0)
        return; /* a topic that is no lane topic is a set of its own */
    snprintf(base, sizeof base, "%.*s", (int)at.base_len, at.base);
    for (uint16_t k = 0; k < at.lane; k++) {
        name_lane(s, base, k, name, sizeof name);
        if (owns(s, name, entry->partition))
            return;
    }
    for (uint16_t k = 0; k < s->topics->count; k++) {
        name_lane(s, base, k, name, sizeof name);
        if (k != at.lane && !owns(s, name, entry->partition))
            miss(s, name, entry->partition);
    }
}

/* A topic is looked at once, by its first entry. */
static void search_topic(struct search *s, size_t index, int32_t partitions) {
    const char *topic = s->owned[index].topic;
    for (size_t i = s->sorted && index ? index - 1 : 0; i < index; i++)
        if (strcmp(s->owned[i].topic, topic) == 0)
            return;
    for (int32_t p = 0; p < partitions; p++)
        if (!owns(s, topic, p))
            miss(s, topic, p);
}

/* A block is looked at once, by the lowest partition of it that is owned. */
static void search_block(struct search *s, const struct us_owned *entry, int32_t partitions) {
    int32_t block = s->topics->count, first = entry->partition - entry->partition % block;
    if (entry->partition >= partitions) /* the topic has grown: no session of ours is spread there */
        return;
    for (int32_t p = first; p < entry->partition; p++)
        if (owns(s, entry->topic, p))
            return;
    for (int32_t p = first; p < first + block; p++)
        if (p != entry->partition && !owns(s, entry->topic, p))
            miss(s, entry->topic, p);
}

size_t us_layout_missing(enum us_layout layout, const struct us_lane_topics *topics, int32_t partitions,
                         const struct us_owned *owned, size_t n, struct us_missing *missing, size_t max) {
    struct search s = {topics, owned, n, is_sorted(owned, n), missing, max, 0};
    for (size_t i = 0; i < n; i++) {
        if (layout == US_LAYOUT_TOPICS)
            search_lane_topics(&s, &owned[i]);
        else if (layout == US_LAYOUT_BLOCK)
            search_block(&s, &owned[i], partitions);
        else
            search_topic(&s, i, partitions);
    }
    return s.count;
}

int32_t us_layout_block(uint32_t hash, int32_t partitions, uint16_t block, uint16_t lanes, uint16_t lane) {
    uint32_t blocks = (uint32_t)partitions / block;
    uint32_t within = lanes > 1 ? lane : hash / blocks % block;
    return (int32_t)(hash % blocks * block + within);
}

size_t us_layout_block_members(int32_t partitions, uint16_t block, char *text, size_t size) {
    int32_t blocks = partitions / block;
    size_t used = 0;
    text[0] = '\0';
    for (int32_t members = 1; members <= blocks; members++) {
        char number[16];
        int len = snprintf(number, sizeof number, "%s%d", used ? ", " : "", members);
        if (blocks % members != 0)
            continue;
        if (used + (size_t)len >= size)
            break;
        memcpy(text + used, number, (size_t)len + 1);
        used += (size_t)len;
    }
    return used;
}

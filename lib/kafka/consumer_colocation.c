/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/consumer.h>

#define NAMED 3 /* missing partitions that the event names */

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

size_t us_colocation_check(struct unsalt *u, const struct us_owned *owned, size_t n, bool incremental) {
    struct us_missing missing[NAMED];
    if (u->conf->layout == US_LAYOUT_HASH && u->conf->partitions == 0) {
        return 0; /* N is not configured: there is nothing to compare with */
    }
    size_t count = us_layout_missing((enum us_layout)u->conf->layout, &u->lanes.topics, (int32_t)u->conf->partitions,
                                     owned, n, missing, NAMED);
    if (count > 0) {
        tell(u, missing, count, incremental);
    }
    return count;
}

uint32_t us_colocation_set_size(const struct unsalt *u) {
    int64_t size = u->conf->layout == US_LAYOUT_TOPICS ? u->lanes.topics.count : u->conf->partitions;
    if (u->conf->colocation == US_COLOCATION_REPORT) {
        return 0;
    }
    return size < UINT16_MAX ? (uint32_t)size : UINT16_MAX;
}

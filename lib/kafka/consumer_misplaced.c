/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A producer and this consumer that disagree about where lanes live: counted, and told at the 1st, 2nd, 4th, 8th, ...
 * record. Otherwise only gaps would tell, one by one, of lanes that are where nobody reads them.
 */
#include <core/misplaced.h>
#include <inttypes.h>
#include <kafka/consumer.h>

static void tell(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in, int32_t here) {
    char line[400], text[900], where[60];
    unsalt_event_t event = us_event_of(UNSALT_EVENT_MISPLACED, p, in);
    event.first = event.last = in->seq;
    event.count = u->own.misplaced;
    us_event_text(&event, line, sizeof(line));
    if (here >= 0 && here != in->lane) {
        snprintf(where, sizeof(where), "where lane %d belongs", (int)here);
    } else {
        snprintf(where, sizeof(where), "where at most %d lanes are", (int)u->lanes.topics.count);
    }
    bool topics = u->conf->layout == US_LAYOUT_TOPICS;
    snprintf(text, sizeof(text),
             "%s: says that it is of lane %u of %u, and was read %s, %" PRIu64 " such records so far; lanes that stand "
             "elsewhere are missed as gaps: does its producer have layout=%s, partitions=%lld and lanes%s=%d at most, "
             "as here?", line, (unsigned)in->lane, (unsigned)in->lanes, where, u->own.misplaced,
             topics ? "topics" : "block", (long long)u->conf->partitions, topics ? " (lane.topics)" : "",
             (int)u->lanes.topics.count);
    event.text = text;
    us_event_raise(u, &event);
}

void us_misplaced_look(struct unsalt *u, const struct us_partition *p, const unsalt_core_in_t *in) {
    const struct us_misplaced_at at = {.layout = (enum us_layout)u->conf->layout,
                                       .partitions = (int32_t)u->conf->partitions, .most = u->lanes.topics.count,
                                       .lane = p->lane, .partition = p->partition};
    if (us_misplaced(&at, in->lanes, in->lane) == US_MISPLACED_NOT) {
        return;
    }
    u->own.misplaced++;
    if ((u->own.misplaced & (u->own.misplaced - 1)) == 0) {
        tell(u, p, in, us_misplaced_lane_here(&at));
    }
}

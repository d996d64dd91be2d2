/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `resumed`: after a restart, numbers may have been consumed before. A number is passed over without alarm when
 * the lane that carries it was joined above its log's start and the first record of the session that it has shown since
 * then stands above the number (DESIGN 4). Proven at once; and likely, once the gap is due and everything was read
 * past it, when such a lane has shown nothing of the session at all: there is no evidence of a loss then.
 */
#include <core/engine.h>

enum answer { NO, LIKELY, PROVEN };

/* May a number up to `last` have stood in this source before it was joined? entry: what it has shown, or NULL. */
static enum answer source(const struct us_part *part, const struct us_shown_entry *entry, uint64_t last) {
    if (!part->above_start) {
        return NO;
    }
    if (!entry) {
        return LIKELY;
    }
    return entry->first > last ? PROVEN : NO;
}

static enum answer by_lane(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                           uint64_t last) {
    enum answer worst = PROVEN;
    uint64_t numbers = last - first >= session->lanes ? session->lanes : last - first + 1;
    for (uint64_t i = 0; i < numbers; i++) {
        uint64_t number = last - i; /* the highest number of its lane in the gap */
        uint16_t lane = (uint16_t)(number % session->lanes);
        const struct us_shown_entry *entry = us_shown_lane(&session->start->shown, lane);
        enum answer answer = entry ? source(&core->parts[entry->part], entry, number)
                                   : (session->set->joined_middle ? LIKELY : NO);
        worst = answer < worst ? answer : worst;
    }
    return worst;
}

static enum answer by_partition(const struct unsalt_core *core, const struct us_session *session, uint64_t last) {
    const struct us_set *set = session->set;
    enum answer worst = PROVEN;
    bool any = false;
    for (uint32_t i = 0; i < set->part_count; i++) {
        const struct us_part *part = &core->parts[set->parts[i]];
        if (!part->above_start) {
            worst = worst > LIKELY ? LIKELY : worst; /* the horizon excludes it, a first record doesn't */
            continue;
        }
        enum answer answer = source(part, us_shown_part(&session->start->shown, set->parts[i]), last);
        worst = answer < worst ? answer : worst;
        any = true;
    }
    return any ? worst : NO;
}

static enum answer resumed(const struct unsalt_core *core, const struct us_session *session) {
    if (!session->start || session->reasm.held == 0) {
        return NO;
    }
    uint64_t first = session->reasm.cursor, last = us_reasm_lowest(&session->reasm) - 1;
    if (session->lanes <= US_LANE_MODE_MAX && us_lanes_known(session, first, last)) {
        return by_lane(core, session, first, last);
    }
    return by_partition(core, session, last);
}

bool us_resumed_proven(const struct unsalt_core *core, const struct us_session *session) {
    return resumed(core, session) == PROVEN;
}

bool us_resumed_likely(const struct unsalt_core *core, const struct us_session *session) {
    return resumed(core, session) >= LIKELY;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `resumed`: after a restart, numbers may have been consumed before. A number is passed over without alarm
 * when the lane that carries it was joined above its log's start and the first record of the session that it has shown
 * since then stands above the number (DESIGN 4). Proven at once, unless `una` tells that the number was unresolved:
 * then it may be sent again, behind what was shown. And likely, once the gap is due and everything was read past it,
 * when such a lane has shown nothing at or below the number, or the lane isn't known and it may have been such a one:
 * there is no evidence of a loss then. S may have changed: the rule of lanes that counts is that of the numbers, but a
 * lane's partition is the same for every S, and whatever it has shown counts.
 */
#include <core/engine.h>

enum answer { NO, LIKELY, PROVEN };

/* The first number that a partition has shown of the session; NULL: none. */
static const struct us_shown_entry *first_of(const struct us_session *session, uint32_t part) {
    const struct us_shown *shown = &session->start->shown;
    const struct us_shown_entry *first = NULL;
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->entries[i].part == part && (!first || shown->entries[i].first < first->first)) {
            first = &shown->entries[i];
        }
    }
    return first;
}

/* May the number have stood in this partition before it was joined? */
static enum answer source(const struct unsalt_core *core, const struct us_session *session, uint32_t part,
                          uint64_t number) {
    const struct us_shown_entry *entry = first_of(session, part);
    if (!core->parts[part].above_start) {
        return NO;
    }
    if (!entry) {
        return LIKELY;
    }
    if (entry->first <= number) {
        return NO;
    }
    return us_shown_past(&session->start->shown, part, number + 1) ? PROVEN : LIKELY;
}

/*
 * One of these partitions has carried the number: proven if all of them were joined above it. Likely if one was: once
 * all were read past the due time, it stood there, or was lost. lane: theirs, -1 = all of the set.
 */
static enum answer by_partition(const struct unsalt_core *core, const struct us_session *session, int32_t lane,
                                uint64_t number) {
    const struct us_set *set = session->set;
    enum answer worst = PROVEN, best = NO;
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (lane < 0 || core->parts[set->parts[i]].lane == lane) {
            enum answer answer = source(core, session, set->parts[i], number);
            worst = answer < worst ? answer : worst;
            best = answer > best ? answer : best;
        }
    }
    if (best == NO) {
        return NO;
    }
    return worst == PROVEN ? PROVEN : LIKELY;
}

/* The lane hasn't shown anything since S was that, so where it lives is known from the layout, or not at all. */
static enum answer unseen(const struct unsalt_core *core, const struct us_session *session, int32_t lane,
                          uint64_t number) {
    const struct us_set *set = session->set;
    bool placed = false;
    for (uint32_t i = 0; i < set->part_count; i++) {
        placed |= core->parts[set->parts[i]].lane == lane;
    }
    enum answer answer = by_partition(core, session, placed ? lane : -1, number);
    return answer == PROVEN ? LIKELY : answer;
}

static enum answer by_lane(const struct unsalt_core *core, const struct us_session *session, uint16_t lanes,
                           uint64_t first, uint64_t last) {
    enum answer worst = PROVEN;
    uint64_t numbers = last - first >= lanes ? lanes : last - first + 1;
    for (uint64_t i = 0; i < numbers; i++) {
        uint64_t number = last - i; /* the highest number of its lane in the gap */
        const struct us_shown_entry *entry =
            us_shown_lane(&session->start->shown, (uint16_t)(number % lanes), lanes);
        enum answer answer = entry ? source(core, session, entry->part, number)
                                   : unseen(core, session, (int32_t)(number % lanes), number);
        worst = answer < worst ? answer : worst;
    }
    return worst;
}

static enum answer resumed(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                           uint64_t last) {
    if (!session->start || session->reasm.held == 0 || !us_set_complete(session->set)) {
        return NO;
    }
    uint16_t lanes = session->rule.vary ? 0 : us_start_lanes(session->start, first, last);
    if (lanes > 0 && lanes <= US_LANE_MODE_MAX) {
        return by_lane(core, session, lanes, first, last);
    }
    return by_partition(core, session, -1, last);
}

bool us_resumed_proven(const struct unsalt_core *core, const struct us_session *session, uint64_t first,
                       uint64_t last) {
    return resumed(core, session, first, last) == PROVEN;
}

/*
 * What was consumed before stood in the log when the session was met. So it is likely only for gaps that had opened by
 * the time when all of that had been read, which is when the first due gap finds its partitions read past.
 */
bool us_resumed_likely(const struct unsalt_core *core, struct us_session *session, bool stalled) {
    if (!session->start) {
        return false;
    }
    if (session->start->caught_up && us_reasm_oldest(&session->reasm) > session->start->caught_up) {
        return false;
    }
    if (!session->start->caught_up && !stalled) {
        session->start->caught_up = core->now;
    }
    return resumed(core, session, session->reasm.cursor, us_reasm_lowest(&session->reasm) - 1) >= LIKELY;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which partitions may still carry what a wait is for. A partition is let off only on knowledge: the lane rule of a
 * header that reaches down to the gap, or a record that it has shown. Otherwise every partition of the set is owed.
 */
#include <core/engine.h>

/* Does a number of first..last fall on this lane? */
static bool lane_in_range(uint64_t first, uint64_t last, uint16_t lane, uint16_t lanes) {
    if (lane >= lanes) {
        return false;
    }
    if (last - first >= lanes) {
        return true;
    }
    uint64_t ahead = (lane + (uint64_t)lanes - first % lanes) % lanes;
    return ahead <= last - first;
}

static bool gap_owed_by(const struct us_session *session, const struct us_part *part) {
    uint64_t first = session->reasm.cursor, last = us_gap_last(session);
    if (part->lane < 0 || !us_lanes_known(session, first, last)) {
        return true;
    }
    return lane_in_range(first, last, (uint16_t)part->lane, session->rule.lanes);
}

static bool start_owed_by(const struct unsalt_core *core, const struct us_session *session,
                          const struct us_part *part, uint32_t index) {
    if (us_shown_past(&session->start->shown, index, us_reasm_lowest(&session->reasm))) {
        return false;
    }
    bool lanes_known = part->lane >= 0 && us_lanes_from_first(core, session);
    return !lanes_known || part->lane < session->rule.lanes;
}

bool us_owed_by(const struct unsalt_core *core, const struct us_wait *wait, const struct us_part *part,
                uint32_t index) {
    switch (wait->kind) {
    case US_WAIT_GAP:
        return gap_owed_by(wait->session, part);
    case US_WAIT_START:
        return start_owed_by(core, wait->session, part, index);
    case US_WAIT_EPOCH:
        return !us_shown_part(&us_later_of(wait)->shown, index);
    case US_WAIT_QUIET:
    case US_WAIT_DOZE: /* whoever asks for one of these asks for its view */
        break;
    }
    return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `proven`: see evidence.h for what counts as proof. With gap.proof=trust a higher number on the lane counts
 * too, which is true only for producers that never send a record behind a higher one; and where the lane is unknown,
 * every partition of the set must have shown a higher number.
 *
 * Premises: one producer per session and epoch, which is idempotent and stamps `una` when it enqueues. They show when
 * they are broken: `una` goes back on a lane, or a record comes that was proven lost. Then nothing is proven any more
 * for this run of the session, and its gaps wait for the horizon.
 */
#include <core/engine.h>
#include <string.h>

struct us_evidence *us_evidence_of(struct unsalt_core *core, struct us_reasm *reasm) {
    if (!reasm->evidence) {
        reasm->evidence = us_calloc(&core->mem, 1, sizeof(*reasm->evidence));
    }
    return reasm->evidence;
}

static void proof_off(struct unsalt_core *core, const struct us_session *session, struct us_evidence *evidence,
                      const unsalt_core_in_t *in) {
    if (evidence->broken) {
        return;
    }
    evidence->broken = true;
    core->counters.proofs_off++;
    unsalt_core_event_t *event = us_event(core, UNSALT_CORE_EV_PROOF_OFF, session);
    event->epoch = in->epoch;
    event->first = event->last = in->seq;
    event->part = in->part;
    event->offset = in->offset;
    event->lane = in->lanes ? in->lane : -1;
}

/* Makes `shown` one of S lanes; what was there for another S is void. False: out of memory, nothing is shown then. */
static bool spread(struct unsalt_core *core, struct us_evidence *evidence, uint16_t lanes) {
    if (evidence->lanes == lanes) {
        return true;
    }
    evidence->lanes = 0;
    if (evidence->lane_capacity < lanes) {
        uint64_t *shown = us_realloc_array(&core->mem, evidence->shown, lanes, sizeof(*shown));
        if (!shown) {
            return false;
        }
        evidence->shown = shown;
        evidence->lane_capacity = lanes;
    }
    memset(evidence->shown, 0, lanes * sizeof(*evidence->shown));
    evidence->lanes = lanes;
    return true;
}

static struct us_evidence_part *find_part(const struct us_evidence *evidence, uint32_t part) {
    for (uint32_t i = 0; i < evidence->part_count; i++) {
        if (evidence->parts[i].part == part) {
            return &evidence->parts[i];
        }
    }
    return NULL;
}

/* One entry for each partition of the set at most. */
static struct us_evidence_part *part_entry(struct unsalt_core *core, struct us_evidence *evidence, uint32_t part) {
    struct us_evidence_part *entry = find_part(evidence, part);
    if (entry) {
        return entry;
    }
    struct us_evidence_part *parts = us_array_room(&core->mem, evidence->parts, &evidence->part_capacity,
                                                   evidence->part_count, 4, sizeof(*parts));
    if (!parts) {
        return NULL;
    }
    evidence->parts = parts;
    entry = &evidence->parts[evidence->part_count++];
    *entry = (struct us_evidence_part){.part = part};
    return entry;
}

static void note_part(struct unsalt_core *core, struct us_evidence *evidence, const unsalt_core_in_t *in) {
    struct us_evidence_part *entry = part_entry(core, evidence, in->part);
    if (entry && in->seq + 1 > entry->shown) {
        entry->shown = in->seq + 1;
    }
}

void us_proof_note(struct unsalt_core *core, const struct us_session *session, struct us_reasm *reasm,
                   const unsalt_core_in_t *in) {
    uint64_t shown = us_proof_shown(core, in->seq, in->una);
    bool trust = core->params.gap_proof == UNSALT_PROOF_TRUST;
    bool by_lane = in->lanes && in->lanes <= US_LANE_MODE_MAX && in->seq % in->lanes == in->lane;
    if (shown <= reasm->cursor + 1 || core->params.gap_proof == UNSALT_PROOF_OFF || (!by_lane && !trust)) {
        return; /* every number that it decides has its turn behind it */
    }
    struct us_evidence *evidence = us_evidence_of(core, reasm);
    if (!evidence || evidence->broken) {
        return;
    }
    if (trust) {
        note_part(core, evidence, in);
    }
    if (!by_lane || !spread(core, evidence, in->lanes)) {
        return;
    }
    uint64_t *entry = &evidence->shown[in->lane];
    if (shown > *entry) {
        *entry = shown;
    } else if (shown < *entry && !trust) {
        proof_off(core, session, evidence, in);
    }
}

static bool proven_by_lanes(const struct us_evidence *evidence, uint64_t first, uint64_t last) {
    uint64_t numbers = last - first >= evidence->lanes ? evidence->lanes : last - first + 1;
    for (uint64_t i = 0; i < numbers; i++) {
        uint64_t number = last - i; /* the highest of its lane */
        if (evidence->shown[number % evidence->lanes] <= number + 1) {
            return false;
        }
    }
    return true;
}

static bool proven_by_parts(const struct us_set *set, const struct us_evidence *evidence, uint64_t last) {
    for (uint32_t i = 0; i < set->part_count; i++) {
        const struct us_evidence_part *entry = find_part(evidence, set->parts[i]);
        if (!entry || entry->shown <= last + 1) {
            return false;
        }
    }
    return set->part_count > 0;
}

bool us_proven(const struct unsalt_core *core, const struct us_session *session, uint64_t first, uint64_t last) {
    const struct us_evidence *evidence = session->reasm.evidence;
    if (!evidence || evidence->broken || !us_set_complete(session->set)) {
        return false;
    }
    if (evidence->lanes && evidence->lanes == session->rule.lanes && us_lanes_known(session, first, last)) {
        return proven_by_lanes(evidence, first, last);
    }
    return core->params.gap_proof == UNSALT_PROOF_TRUST && proven_by_parts(session->set, evidence, last);
}

void us_proof_given_up(struct unsalt_core *core, struct us_session *session, uint64_t first, uint64_t last) {
    us_skips_add(&session->reasm.evidence->proven, &core->mem, core->params.skips_max, first, last);
}

void us_proof_contradicted(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    struct us_evidence *evidence = session->reasm.evidence;
    if (evidence && in->seq >= evidence->proven.floor && us_skips_has(&evidence->proven, in->seq)) {
        proof_off(core, session, evidence, in);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdict `marker`: the producer says that the numbers first..last will never come. What it says is kept as ranges, and
 * counts when they are missing at the head of a session: a marker never lowers the cursor, and never skips a
 * record that is held or comes all the same. Markers overlap, repeat and contradict as they like: of ranges that touch
 * one is made, and the number of ranges is bounded by session.skips.max. Of too many the highest is forgotten, whose
 * numbers then wait for the clock like any other.
 */
#include <core/engine.h>
#include <string.h>

/* The first mark that doesn't end below `number - 1`: it covers it, touches it, or stands above it. */
static uint32_t find(const struct us_evidence *evidence, uint64_t number) {
    uint32_t low = 0, high = evidence->mark_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (evidence->marks[middle].last + 1 < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void remove_marks(struct us_evidence *evidence, uint32_t at, uint32_t n) {
    evidence->mark_count -= n;
    memmove(&evidence->marks[at], &evidence->marks[at + n], (evidence->mark_count - at) * sizeof(*evidence->marks));
}

static bool room(struct unsalt_core *core, struct us_evidence *evidence) {
    if (evidence->mark_count == core->params.skips_max) {
        evidence->mark_count--;
    }
    struct us_range *marks = us_array_room(&core->mem, evidence->marks, &evidence->mark_capacity, evidence->mark_count,
                                           2, sizeof(*marks));
    evidence->marks = marks ? marks : evidence->marks;
    return marks != NULL;
}

/* Enters first..last, which end below UINT64_MAX. False: out of memory. */
static bool enter(struct unsalt_core *core, struct us_evidence *evidence, uint64_t first, uint64_t last) {
    uint32_t at = find(evidence, first), touched = 0;
    for (; at + touched < evidence->mark_count && evidence->marks[at + touched].first <= last + 1; touched++) {
        const struct us_range *mark = &evidence->marks[at + touched];
        first = mark->first < first ? mark->first : first;
        last = mark->last > last ? mark->last : last;
    }
    if (touched == 0 && at == core->params.skips_max) {
        return true; /* the highest of too many */
    }
    if (touched == 0) {
        if (!room(core, evidence)) {
            return false;
        }
        memmove(&evidence->marks[at + 1], &evidence->marks[at],
                (evidence->mark_count - at) * sizeof(*evidence->marks));
        evidence->mark_count++;
    } else {
        remove_marks(evidence, at + 1, touched - 1);
    }
    evidence->marks[at] = (struct us_range){first, last};
    return true;
}

/* Marks that the cursor has passed are of no use any more. */
static void forget_passed(struct us_evidence *evidence, uint64_t cursor) {
    uint32_t n = 0;
    while (n < evidence->mark_count && evidence->marks[n].last < cursor) {
        n++;
    }
    if (n) {
        remove_marks(evidence, 0, n);
    }
}

/* The run that a marker speaks of; NULL if it is none that is known. */
static struct us_reasm *run_of(struct us_session *session, uint64_t epoch) {
    if (epoch == session->epoch) {
        return &session->reasm;
    }
    for (struct us_later *later = session->later; later; later = later->next) {
        if (later->epoch == epoch) {
            return &later->reasm;
        }
    }
    return NULL;
}

int us_marker(struct unsalt_core *core, struct us_session *session, const unsalt_core_in_t *in) {
    struct us_reasm *reasm = run_of(session, in->epoch);
    bool starting = session->special & US_SPECIAL_STARTING;
    if (!reasm || (!starting && in->seq < reasm->cursor)) {
        return UNSALT_CORE_OK;
    }
    struct us_evidence *evidence = us_evidence_of(core, reasm);
    if (!evidence) {
        return UNSALT_CORE_NOMEM;
    }
    if (!starting) {
        forget_passed(evidence, reasm->cursor);
    }
    if (!enter(core, evidence, in->since, in->seq)) {
        return UNSALT_CORE_NOMEM;
    }
    bool waits = session->blocked && !session->ready && !starting && !(session->special & US_SPECIAL_ENDING);
    if (waits && reasm == &session->reasm) {
        us_blocked(core, session);
    }
    return UNSALT_CORE_OK;
}

const struct us_range *us_marker_at(const struct us_reasm *reasm, uint64_t number) {
    const struct us_evidence *evidence = reasm->evidence;
    uint32_t at = evidence ? find(evidence, number) : 0;
    if (evidence && at < evidence->mark_count && evidence->marks[at].last < number) {
        at++; /* it only touches the number */
    }
    return evidence && at < evidence->mark_count ? &evidence->marks[at] : NULL;
}

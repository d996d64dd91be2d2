/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Policy `dead-letter`: a record that finds no room is turned away, and its number counts as decided. The cursor passes
 * it with reason `overflow` as soon as it gets there, whether something is held above it or not: else the next record
 * in order would have to be held too, and be turned away in its turn. A copy that comes later is late.
 */
#include <core/engine.h>

/* Numbers that are passed in one step where a progression has no step of 1: the rest follows at once. */
#define STEPS 64
/* Stretches that are passed in one go: each is an event. */
#define STRETCHES 4

static void remove_run(struct us_away_list *list, uint32_t at) {
    list->runs[at] = list->runs[--list->count];
}

/* Continues a progression. A single number takes the lane's step, or any if the lanes are unknown. */
static bool extend(struct us_away_list *list, uint64_t number, uint16_t lanes) {
    struct us_away *single = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        struct us_away *run = &list->runs[i];
        if (number <= run->last) {
            continue;
        }
        uint64_t step = number - run->last;
        if (run->step == step) {
            run->last = number;
            return true;
        }
        if (run->step == 0 && (lanes == 0 || lanes == step) && (!single || run->last > single->last)) {
            single = run;
        }
    }
    if (single) {
        single->step = number - single->last;
        single->last = number;
    }
    return single != NULL;
}

static uint32_t highest(const struct us_away_list *list) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < list->count; i++) {
        at = list->runs[i].first > list->runs[at].first ? i : at;
    }
    return at;
}

void us_away_add(struct us_away_list *list, const struct unsalt_mem *mem, uint32_t max, uint64_t number,
                 uint16_t lanes) {
    if (us_away_has(list, number) || extend(list, number, lanes)) {
        return;
    }
    if (list->count >= max) {
        uint32_t at = highest(list);
        if (list->runs[at].first < number) {
            return;
        }
        remove_run(list, at);
    }
    struct us_away *runs = us_array_room(mem, list->runs, &list->capacity, list->count, 4, sizeof(*runs));
    if (!runs) {
        return;
    }
    list->runs = runs;
    list->runs[list->count++] = (struct us_away){.first = number, .last = number};
}

uint64_t us_away_next(const struct us_away_list *list, uint64_t from) {
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct us_away *run = &list->runs[i];
        if (run->last < from) {
            continue;
        }
        uint64_t next = run->first;
        if (from > run->first) {
            uint64_t beyond = (from - run->first) % run->step; /* last > first: there is a step */
            next = beyond ? from + (run->step - beyond) : from;
        }
        lowest = next < lowest ? next : lowest;
    }
    return lowest;
}

/* The end of the progression without holes that covers the number; the number itself if there is none. */
static uint64_t whole(const struct us_away_list *list, uint64_t number) {
    for (uint32_t i = 0; i < list->count; i++) {
        const struct us_away *run = &list->runs[i];
        if (run->step == 1 && run->first <= number && number <= run->last) {
            return run->last;
        }
    }
    return number;
}

uint64_t us_away_upto(const struct us_away_list *list, uint64_t number, uint64_t last) {
    for (int i = 0; i < STEPS && number < last; i++) {
        uint64_t end = whole(list, number);
        number = end < last ? end : last;
        if (number == last || !us_away_has(list, number + 1)) {
            break;
        }
        number++;
    }
    return number;
}

void us_away_passed(struct us_away_list *list, uint64_t cursor) {
    for (uint32_t i = list->count; i-- > 0;) {
        if (list->runs[i].last < cursor) {
            remove_run(list, i);
        }
    }
}

void us_away_destroy(struct us_away_list *list, const struct unsalt_mem *mem) {
    us_free(mem, list->runs);
    *list = (struct us_away_list){0};
}

/* ---- the rule */

int us_turn_away(struct unsalt_core *core, const struct us_session *session, struct us_reasm *reasm,
                 const unsalt_core_in_t *in, unsalt_core_out_t *out, size_t *n_out) {
    struct us_evidence *evidence = us_evidence_of(core, reasm);
    uint32_t lanes = in->lanes < US_LANE_MODE_MAX ? in->lanes : US_LANE_MODE_MAX;
    uint32_t max = core->params.skips_max > lanes ? core->params.skips_max : lanes;
    if (!evidence) {
        return UNSALT_CORE_NOMEM;
    }
    us_away_add(&evidence->away, &core->mem, max, in->seq, in->lanes);
    us_proof_note(core, session, reasm, in);
    us_arrival_out(core, in, UNSALT_STATE_DEAD_LETTERED, out, n_out);
    out[*n_out - 1].flags |= UNSALT_OUT_BUDGET;
    return UNSALT_CORE_OK;
}

bool us_away_pass(struct unsalt_core *core, struct us_session *session) {
    struct us_evidence *evidence = session->reasm.evidence;
    if (!evidence || evidence->away.count == 0 || session->ready || (session->special & US_SPECIAL_STARTING)) {
        return false;
    }
    for (int i = 0; !session->ready && us_away_has(&evidence->away, session->reasm.cursor); i++) {
        if (i == STRETCHES || !us_events_room(core)) {
            us_wait_at(core, &session->gap, core->now);
            return true;
        }
        uint64_t last = us_away_upto(&evidence->away, session->reasm.cursor, us_gap_last(session));
        us_give_up_to(core, session, last, UNSALT_GAP_OVERFLOW);
    }
    us_away_passed(&evidence->away, session->reasm.cursor);
    return session->ready;
}

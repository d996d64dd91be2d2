/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ordinary case, in one loop: a stretch of records of one session that is in no special state, each of which is
 * either the next one (it passes, unstored), or is held above a gap: it continues its lane's FIFO, or finds its place
 * by number in irregular mode. No look-up, no allocation but a FIFO's chunk or a page, no event. Whatever is not
 * ordinary ends the stretch and is left to arrival.c; so this file decides nothing that isn't decided there, and the
 * property tests drive both against the same model.
 */
#include <core/budget.h>
#include <stddef.h>

#define LOOK 16 /* records of a burst that are looked at before they are held */

/* What a stretch changes in sums, entered at its end. */
struct sums {
    uint64_t passed, held, bytes, irregular;
    uint64_t held_room, bytes_room; /* how far `held` and `bytes` may go */
    int64_t newest;
    uint64_t top; /* the highest number, and a record that says the same of its lanes */
    const unsalt_core_in_t *top_of;
};
static inline void note_top(struct sums *sums, const unsalt_core_in_t *in, uint64_t seq) {
    sums->top_of = seq >= sums->top ? in : sums->top_of;
    sums->top = seq >= sums->top ? seq : sums->top;
}

/* What every record of the stretch is compared with; copied, so that it stays in registers. */
struct stretch {
    struct us_part *parts;
    const struct us_set *set;
    const unsigned char *id;
    uint64_t epoch, now;
    uint32_t part_count, id_len;
    bool has_lanes;  /* the first record tells its lane, and so must all; or none of them does */
    bool says_lanes; /* records must say what their lanes apply to, or the configured S would */
};

/* Is this a plain record of the session, from a partition of its set? */
static inline struct us_part *plain(const struct stretch *stretch, const unsalt_core_in_t *in) {
    if (in->part >= stretch->part_count || in->kind != UNSALT_KIND_SEQUENCED || in->flags ||
        (stretch->has_lanes ? in->lane >= in->lanes : in->lanes != 0)) {
        return NULL;
    }
    struct us_part *part = &stretch->parts[in->part];
    bool same = part->set == stretch->set && !part->refused && !part->done_ahead &&
                in->offset > part->last_offset && in->offset != INT64_MAX &&
                in->offset >= part->frontier.next_offset && in->epoch == stretch->epoch &&
                in->seq != UNSALT_NO_SEQ && (in->since != UNSALT_NO_SEQ || !stretch->says_lanes) &&
                in->session_len == stretch->id_len && us_same_id(stretch->id, in->session, stretch->id_len);
    return same ? part : NULL;
}

static inline bool may_hold(const struct sums *sums, const unsalt_core_in_t *in) {
    return sums->held < sums->held_room && sums->bytes + in->bytes <= sums->bytes_room;
}

/* Holds a record close to others, in irregular mode. False: not ordinary, or a copy. */
static inline bool place(struct unsalt_core *core, struct us_reasm *reasm, const struct us_part *part,
                         const unsalt_core_in_t *in, uint64_t now) {
    struct us_near *near = &reasm->irregular->near;
    bool all_near = reasm->held == near->count;
    struct us_near_entry *entry = all_near ? us_near_join(near, in->seq) : NULL;
    if (!entry) {
        entry = us_irregular_has(reasm, in->seq) ? NULL : us_near_open(near, &core->chunks, in->seq, reasm->held);
    }
    if (!entry) {
        return false;
    }
    *entry = (struct us_near_entry){.msg = in->msg, .arrived = now, .ticket = (uint32_t)part->frontier.next,
                                    .bytes = in->bytes, .part = (uint16_t)in->part, .lane = us_lane_of(in)};
    return true;
}

/* Holds a record that continues its lane's FIFO, or opens it by the lane rule. False: not ordinary. */
static inline bool append(struct unsalt_core *core, struct us_reasm *reasm, const struct us_part *part,
                          const unsalt_core_in_t *in, uint64_t now) {
    uint16_t modulus = reasm->modulus;
    if (modulus == 0) {
        return place(core, reasm, part, in, now);
    }
    if (in->lane >= modulus || in->lanes == 0) {
        return false;
    }
    struct us_lane *lane = &reasm->lanes[in->lane];
    bool continues = lane->fifo.count ? us_continues(lane->last, modulus, in->seq) : in->seq % modulus == in->lane;
    union us_source source = us_source((uint16_t)in->part, in->lane, 0);
    struct us_held_entry *entry = continues ? us_fifo_add(&lane->fifo, &core->chunks, source) : NULL;
    if (!entry) {
        return false;
    }
    *entry = (struct us_held_entry){in->seq, in->msg, now, (uint32_t)part->frontier.next, in->bytes};
    lane->last = in->seq;
    return true;
}

/*
 * How many records and bytes may be held without asking a budget: none if a push is blocked, or nothing is held yet
 * (then the mode of the reassembly is still open); else what is free up to half of all, where reading becomes
 * selective, and up to all of the session's.
 */
static void find_room(const struct unsalt_core *core, const struct us_reasm *reasm, struct sums *sums) {
    const unsalt_core_params_t *params = &core->params;
    uint64_t held = core->counters.state[UNSALT_STATE_HELD], bytes = us_bytes(core);
    if (reasm->held == 0 || core->blocked_since != UNSALT_NEVER || held >= params->budget_records / 2 ||
        reasm->held >= params->session_budget_records || bytes >= params->budget_bytes / 2 ||
        reasm->held_bytes >= params->session_budget_bytes) {
        return;
    }
    uint64_t all = params->budget_records / 2 - held, own = params->session_budget_records - reasm->held;
    sums->held_room = all < own ? all : own;
    all = params->budget_bytes / 2 - bytes;
    own = params->session_budget_bytes - reasm->held_bytes;
    sums->bytes_room = all < own ? all : own;
}

static void enter_sums(struct unsalt_core *core, struct us_session *session, const struct sums *sums) {
    unsalt_core_in_t top = *sums->top_of;
    top.seq = sums->top;
    core->counters.received += sums->passed + sums->held;
    core->counters.in_order += sums->passed;
    core->counters.state[UNSALT_STATE_RELEASED] += sums->passed;
    core->counters.state[UNSALT_STATE_HELD] += sums->held;
    core->counters.held_bytes += sums->bytes;
    core->counters.irregular += sums->irregular;
    session->reasm.held_bytes += sums->bytes;
    session->newest = sums->newest;
    session->row->active = core->now;
    us_lanes_learn(&session->rule, &top);
}

/* After a stretch: is the next record held, or does the session wait for it? */
static void close_stretch(struct unsalt_core *core, struct us_session *session, bool next_held) {
    if (session->ready) {
        return;
    }
    if (next_held) {
        us_ready(core, session);
    } else if (session->reasm.held) {
        us_blocked(core, session);
    }
}

/* The fields that a plain record shares with the one before it in a burst of its lane; neighbours as one word. */
static inline bool same_burst(const unsalt_core_in_t *a, const unsalt_core_in_t *b) {
    _Static_assert(offsetof(unsalt_core_in_t, part) == offsetof(unsalt_core_in_t, session_len) + 4, "one word");
    _Static_assert(offsetof(unsalt_core_in_t, kind) == offsetof(unsalt_core_in_t, lane) + 6, "one word");
    return __builtin_memcmp(&a->session_len, &b->session_len, 8) == 0 &&
           __builtin_memcmp(&a->lane, &b->lane, 8) == 0 && a->epoch == b->epoch && a->since == b->since;
}

/*
 * Goes on with the burst of a lane whose record in[-1] was just held: consecutive offsets, each number S above the
 * one before. Returns how many more were held; `max` of them may be.
 */
static size_t extend(struct unsalt_core *core, const struct stretch *stretch, struct us_reasm *reasm,
                     const unsalt_core_in_t *in, size_t max, struct sums *sums) {
    const unsalt_core_in_t *before = in - 1, *record = in;
    struct us_part *part = &stretch->parts[before->part];
    struct us_lane *lane = &reasm->lanes[before->lane];
    struct us_frontier *frontier = &part->frontier;
    uint64_t room = frontier->room - (frontier->next - frontier->base), seq = before->seq;
    room = room < sums->held_room - sums->held ? room : sums->held_room - sums->held;
    union us_source source = us_source((uint16_t)before->part, before->lane, 0);
    uint32_t ticket = (uint32_t)frontier->next;
    size_t i = 0;
    max = max < room ? max : room;
    for (; i < max; i++, ticket++, before = record++) {
        if (!us_continues(seq, reasm->modulus, record->seq) || record->offset != before->offset + 1 ||
            !same_burst(record, before) || !us_same_id(stretch->id, record->session, stretch->id_len) ||
            sums->bytes + record->bytes > sums->bytes_room) {
            break;
        }
        __builtin_prefetch(record + 4);
        __builtin_prefetch(&record[4].offset);
        struct us_held_entry *entry = us_fifo_add(&lane->fifo, &core->chunks, source);
        if (!entry) {
            break;
        }
        seq = record->seq;
        *entry = (struct us_held_entry){seq, record->msg, stretch->now, ticket, record->bytes};
        sums->bytes += record->bytes;
        sums->newest = record->timestamp > sums->newest ? record->timestamp : sums->newest;
    }
    if (i) {
        lane->last = before->seq;
        reasm->held += (uint32_t)i;
        sums->held += i;
        us_frontier_open_more(frontier, (uint32_t)i);
        part->last_offset = before->offset;
    }
    return i;
}

/*
 * How many records follow in[-1] in its burst, `max` at most: consecutive offsets, alike in all that plain() looks at.
 * It changes nothing, so that all it compares with stays in registers.
 */
static size_t burst_of(const struct stretch *stretch, const unsalt_core_in_t *in, size_t max) {
    const unsalt_core_in_t first = in[-1];
    uint64_t left = (uint64_t)(INT64_MAX - 1 - first.offset), offset = (uint64_t)first.offset;
    size_t i = 0;
    max = max < left ? max : left;
    for (; i < max; i++, in++) {
        if (!same_burst(in, &first) || (uint64_t)in->offset != ++offset ||
            !us_same_id(stretch->id, in->session, stretch->id_len)) {
            break;
        }
        __builtin_prefetch(in + 4);
        __builtin_prefetch(&in[4].offset);
    }
    return i;
}

/*
 * The same in irregular mode: the numbers come in no order, but above the cursor, or at it if the session is ready.
 * What each record has shown is noted here, but for the last one's, which is the caller's business.
 */
static size_t hold_near(struct unsalt_core *core, struct us_session *session, const struct stretch *stretch,
                        const unsalt_core_in_t *in, size_t n, struct sums *sums) {
    struct us_reasm *reasm = &session->reasm;
    struct us_near *near = &reasm->irregular->near;
    struct us_frontier *frontier = &stretch->parts[in[-1].part].frontier;
    const uint64_t lowest = reasm->cursor + !session->ready, now = stretch->now, bytes_room = sums->bytes_room;
    const uint64_t proves = reasm->cursor + 1; /* if it has shown more than this */
    const bool trust = core->params.gap_proof == UNSALT_PROOF_TRUST;
    const uint16_t index = (uint16_t)in[-1].part, lane = us_lane_of(&in[-1]);
    uint64_t bytes = sums->bytes;
    int64_t newest = sums->newest;
    uint32_t ticket = (uint32_t)frontier->next;
    size_t i = 0;
    for (; i < n; i++, in++, ticket++) {
        uint64_t seq = in->seq;
        if (seq < lowest || seq == UNSALT_NO_SEQ || bytes + in->bytes > bytes_room) {
            break;
        }
        struct us_near_entry *entry = us_near_join(near, seq);
        if (!entry && (us_near_has(near, seq) || !(entry = us_near_open(near, &core->chunks, seq, near->count)))) {
            break;
        }
        *entry = (struct us_near_entry){in->msg, now, ticket, in->bytes, index, lane, 0, 0};
        if (trust || in[-1].una + 1 > proves) {
            us_proof_note(core, session, reasm, &in[-1]);
        }
        bytes += in->bytes;
        newest = in->timestamp > newest ? in->timestamp : newest;
    }
    sums->bytes = bytes;
    sums->newest = newest;
    sums->held += i;
    sums->irregular += i;
    reasm->held += (uint32_t)i;
    if (i) {
        us_frontier_open_more(frontier, (uint32_t)i);
        stretch->parts[in[-1].part].last_offset = in[-1].offset;
    }
    return i;
}

/* A few records at a time, since a record that isn't to be held ends the burst. */
static size_t extend_near(struct unsalt_core *core, struct us_session *session, const struct stretch *stretch,
                          const unsalt_core_in_t *in, size_t max, struct sums *sums) {
    const struct us_frontier *frontier = &stretch->parts[in[-1].part].frontier;
    uint64_t room = frontier->room - (frontier->next - frontier->base);
    size_t i = 0, n, taken;
    room = room < sums->held_room - sums->held ? room : sums->held_room - sums->held;
    max = max < room ? max : room;
    if (session->reasm.held != session->reasm.irregular->near.count) {
        return 0; /* some of it is elsewhere: arrivals are looked for there too */
    }
    do {
        n = burst_of(stretch, in + i, max - i < LOOK ? max - i : LOOK);
        taken = hold_near(core, session, stretch, in + i, n, sums);
        i += taken;
    } while (taken == LOOK);
    return i;
}

/*
 * Goes on with the burst of a lane whose record in[-1] has just passed, while nothing is held: consecutive numbers and
 * offsets. Returns how many more passed; there is room for `max` in `out`.
 */
static size_t extend_passed(const struct stretch *stretch, struct us_reasm *reasm, const unsalt_core_in_t *in,
                            size_t max, unsalt_core_out_t *out, struct sums *sums) {
    const unsalt_core_in_t *before = in - 1, *record = in;
    struct us_part *part = &stretch->parts[before->part];
    struct us_frontier *frontier = &part->frontier;
    uint64_t room = frontier->room - (frontier->next - frontier->base), ticket = frontier->next;
    uint32_t index = before->part, generation = part->generation;
    uint16_t lane = us_lane_of(before);
    size_t i = 0;
    max = max < room ? max : room;
    for (; i < max; i++, ticket++, before = record++) {
        if (record->seq != before->seq + 1 || record->offset != before->offset + 1 || record->seq == UNSALT_NO_SEQ ||
            record->offset == INT64_MAX || !same_burst(record, before) ||
            !us_same_id(stretch->id, record->session, stretch->id_len)) {
            break;
        }
        __builtin_prefetch(record + 4);
        __builtin_prefetch(&record[4].offset);
        out[i] = (unsalt_core_out_t){.msg = record->msg,
                                     .seq = record->seq,
                                     .ticket = ticket,
                                     .part = index,
                                     .generation = generation,
                                     .state = UNSALT_STATE_RELEASED,
                                     .lane = lane};
        sums->newest = record->timestamp > sums->newest ? record->timestamp : sums->newest;
    }
    if (i) {
        reasm->cursor += i;
        sums->passed += i;
        us_frontier_open_more(frontier, (uint32_t)i);
        part->last_offset = before->offset;
    }
    return i;
}

static struct stretch stretch_of(const struct unsalt_core *core, const struct us_session *session,
                                 const unsalt_core_in_t *first) {
    return (struct stretch){.parts = core->parts,
                            .set = session->set,
                            .id = session->id,
                            .epoch = session->epoch,
                            .now = core->now,
                            .part_count = core->part_count,
                            .id_len = session->id_len,
                            .has_lanes = first->lanes != 0,
                            .says_lanes = core->params.lanes != 0};
}

/* May a stretch of the session begin with this record? Mostly it is another session's, if there are many. */
static bool is_ordinary(const struct us_session *session, const unsalt_core_in_t *in) {
    return in->kind == UNSALT_KIND_SEQUENCED && in->session_len == session->id_len &&
           us_same_id(session->id, in->session, in->session_len) && !session->special && !session->after_gap &&
           !us_any_away(&session->reasm);
}

/* in[-1] is held: enters it, and goes on with its burst. Returns how many more were held; `max` of them may be. */
static size_t held_on(struct unsalt_core *core, struct us_session *session, const struct stretch *stretch,
                      const unsalt_core_in_t *in, size_t max, struct sums *sums) {
    struct us_reasm *reasm = &session->reasm;
    size_t more = 0;
    sums->held++;
    sums->bytes += in[-1].bytes;
    sums->irregular += reasm->modulus == 0;
    reasm->held++;
    const unsalt_core_in_t *last;
    if (reasm->modulus) {
        more = extend(core, stretch, reasm, in, max, sums);
        last = &in[more] - 1;
        note_top(sums, last, last->seq);
    } else {
        const struct us_near *near = &reasm->irregular->near;
        uint64_t high = near->high;
        more = extend_near(core, session, stretch, in, max, sums);
        last = &in[more] - 1;
        if (more && near->high > high) {
            note_top(sums, last, near->high);
        }
    }
    if (us_proof_shown(core, last->seq, last->una) > reasm->cursor + 1) {
        us_proof_note(core, session, reasm, last);
    }
    return more;
}

size_t us_run(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out, size_t *n_out) {
    struct us_session *session = core->last_session;
    if (!session || !is_ordinary(session, in)) {
        return 0;
    }
    const struct stretch stretch = stretch_of(core, session, in);
    struct us_reasm *reasm = &session->reasm;
    struct sums sums = {.newest = session->newest};
    find_room(core, reasm, &sums);
    bool next_held = false, pending = session->ready;
    size_t i = 0, k = *n_out;
    while (i < n && !next_held) {
        __builtin_prefetch(&in[i + 4]);
        __builtin_prefetch(&in[i + 4].offset);
        const unsalt_core_in_t *record = &in[i];
        struct us_part *part = plain(&stretch, record);
        if (!part || !us_ticket_reserve(core, part)) {
            break;
        }
        bool holds = record->seq != reasm->cursor || pending;
        if (!holds) {
            us_out_of(record, part->generation, part->frontier.next, UNSALT_STATE_RELEASED, &out[k++]);
            us_reasm_bypass(reasm);
            sums.passed++;
            next_held = reasm->held && us_reasm_next_held(reasm);
        } else if (record->seq < reasm->cursor || !may_hold(&sums, record) ||
                   !append(core, reasm, part, record, stretch.now)) {
            break;
        }
        us_frontier_open(&part->frontier, record->offset);
        part->last_offset = record->offset;
        part->at_end = false;
        sums.newest = record->timestamp > sums.newest ? record->timestamp : sums.newest;
        note_top(&sums, record, record->seq);
        i++;
        if (!holds && reasm->held == 0) {
            size_t more = extend_passed(&stretch, reasm, in + i, n - i, &out[k], &sums);
            i += more;
            k += more;
            note_top(&sums, &in[i - 1], in[i - 1].seq);
        }
        if (holds) {
            i += held_on(core, session, &stretch, in + i, n - i, &sums);
        }
    }
    if (i) {
        for (size_t j = *n_out; core->params.cursors && j < k; j++) {
            us_handed_note(core, session, &out[j]);
        }
        *n_out = k;
        enter_sums(core, session, &sums);
        close_stretch(core, session, next_held);
    }
    return i;
}

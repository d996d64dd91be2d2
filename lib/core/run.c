/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ordinary case, in one loop: a stretch of records of one session that is in no special state, each of which is
 * either the next one (it passes, unstored) or continues its lane's FIFO above a gap (it is held). No look-up, no
 * allocation but a FIFO's chunk, no event. Whatever is not ordinary ends the stretch and is left to arrival.c; so this
 * file decides nothing that isn't decided there, and the property tests drive both against the same model.
 */
#include <core/engine.h>
#include <stddef.h>

/* What a stretch changes in sums, entered at its end. */
struct sums {
    uint64_t passed, held, bytes;
    uint64_t held_room, bytes_room; /* how far `held` and `bytes` may go */
    int64_t newest;
};

/* What every record of the stretch is compared with; copied, so that it stays in registers. */
struct stretch {
    struct us_part *parts;
    const struct us_set *set;
    const unsigned char *id;
    uint64_t epoch, now;
    uint32_t part_count, id_len;
    bool says_lanes; /* records must say what their lanes apply to, or the configured S would */
};

/* Ids are short: eight bytes at a time, the last eight overlapping, beat a call. */
static inline bool same_id(const unsigned char *a, const unsigned char *b, uint32_t len) {
    uint64_t x, y;
    if (len < sizeof(x)) {
        return __builtin_memcmp(a, b, len) == 0;
    }
    for (uint32_t i = 0;; i += sizeof(x)) {
        uint32_t at = i + sizeof(x) < len ? i : len - (uint32_t)sizeof(x);
        __builtin_memcpy(&x, a + at, sizeof(x));
        __builtin_memcpy(&y, b + at, sizeof(y));
        if (x != y) {
            return false;
        }
        if (at != i || at + sizeof(x) == len) {
            return true;
        }
    }
}

/* Is this a plain record of the session, from a partition of its set? */
static inline struct us_part *plain(const struct stretch *stretch, const unsalt_core_in_t *in) {
    if (in->part >= stretch->part_count || in->kind != UNSALT_KIND_SEQUENCED || in->flags || in->lane >= in->lanes) {
        return NULL;
    }
    struct us_part *part = &stretch->parts[in->part];
    bool same = part->set == stretch->set && in->offset > part->last_offset && in->offset != INT64_MAX &&
                in->offset >= part->frontier.next_offset && in->epoch == stretch->epoch &&
                in->seq != UNSALT_NO_SEQ && (in->since != UNSALT_NO_SEQ || !stretch->says_lanes) &&
                in->session_len == stretch->id_len && same_id(stretch->id, in->session, stretch->id_len);
    return same ? part : NULL;
}

static inline bool may_hold(const struct sums *sums, const unsalt_core_in_t *in) {
    return sums->held < sums->held_room && sums->bytes + in->bytes <= sums->bytes_room;
}

/* Holds a record that continues its lane's FIFO, or opens it by the lane rule. False: not ordinary. */
static inline bool append(struct unsalt_core *core, struct us_reasm *reasm, const struct us_part *part,
                          const unsalt_core_in_t *in, uint64_t now) {
    uint16_t modulus = reasm->modulus;
    if (in->lane >= modulus) {
        return false;
    }
    struct us_lane *lane = &reasm->lanes[in->lane];
    bool continues = lane->fifo.count ? in->seq == lane->last + modulus : in->seq % modulus == in->lane;
    struct us_held *entry = continues ? us_fifo_add(&lane->fifo, &core->chunks) : NULL;
    if (!entry) {
        return false;
    }
    entry->seq = in->seq;
    entry->msg = in->msg;
    entry->arrived = now;
    entry->ticket = (uint32_t)part->frontier.next;
    entry->bytes = in->bytes;
    entry->part = (uint16_t)in->part;
    entry->lane = in->lane;
    entry->flags = 0;
    lane->last = in->seq;
    return true;
}

static inline void pass(const struct us_part *part, const unsalt_core_in_t *in, unsalt_core_out_t *out) {
    out->msg = in->msg;
    out->seq = in->seq;
    out->waited_ns = 0;
    out->ticket = part->frontier.next;
    out->part = in->part;
    out->generation = part->generation;
    out->state = UNSALT_STATE_RELEASED;
    out->flags = 0;
    out->lane = in->lane;
    out->reserved = 0;
}

/*
 * How many records and bytes may be held without asking a budget: none if a push is blocked, or nothing is held yet
 * (then the mode of the reassembly is still open); else what is free up to half of all, where reading becomes
 * selective, and up to all of the session's.
 */
static void find_room(const struct unsalt_core *core, const struct us_reasm *reasm, struct sums *sums) {
    const unsalt_core_params_t *params = &core->params;
    uint64_t held = core->counters.state[UNSALT_STATE_HELD], bytes = core->counters.held_bytes;
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

static void enter_sums(struct unsalt_core *core, struct us_session *session, const struct sums *sums,
                       const unsalt_core_in_t *last) {
    core->counters.received += sums->passed + sums->held;
    core->counters.in_order += sums->passed;
    core->counters.state[UNSALT_STATE_RELEASED] += sums->passed;
    core->counters.state[UNSALT_STATE_HELD] += sums->held;
    core->counters.held_bytes += sums->bytes;
    session->reasm.held_bytes += sums->bytes;
    session->newest = sums->newest;
    session->active = core->now;
    us_lanes_learn(session, last);
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
    uint64_t room = frontier->bits - (frontier->next - frontier->base), seq = before->seq;
    room = room < sums->held_room - sums->held ? room : sums->held_room - sums->held;
    uint32_t ticket = (uint32_t)frontier->next;
    size_t i = 0;
    max = max < room ? max : room;
    for (; i < max; i++, ticket++, before = record++) {
        seq += reasm->modulus;
        if (record->seq != seq || record->offset != before->offset + 1 || !same_burst(record, before) ||
            !same_id(stretch->id, record->session, stretch->id_len) ||
            sums->bytes + record->bytes > sums->bytes_room) {
            break;
        }
        __builtin_prefetch(record + 4);
        __builtin_prefetch(&record[4].offset);
        struct us_held *entry = us_fifo_add(&lane->fifo, &core->chunks);
        if (!entry) {
            break;
        }
        *entry = (struct us_held){.seq = seq, .msg = record->msg, .arrived = stretch->now, .ticket = ticket,
                                  .bytes = record->bytes, .part = (uint16_t)record->part, .lane = record->lane};
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

static struct stretch stretch_of(const struct unsalt_core *core, const struct us_session *session) {
    return (struct stretch){.parts = core->parts,
                            .set = session->set,
                            .id = session->id,
                            .epoch = session->epoch,
                            .now = core->now,
                            .part_count = core->part_count,
                            .id_len = session->id_len,
                            .says_lanes = core->params.lanes != 0};
}

size_t us_run(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n, unsalt_core_out_t *out, size_t *n_out) {
    struct us_session *session = core->last_session;
    if (!session || session->special || session->after_gap) {
        return 0;
    }
    const struct stretch stretch = stretch_of(core, session);
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
        if (!part || !us_frontier_reserve(&part->frontier, &core->mem, 1)) {
            break;
        }
        bool holds = record->seq != reasm->cursor || pending;
        if (!holds) {
            pass(part, record, &out[k++]);
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
        i++;
        if (holds) {
            sums.held++;
            sums.bytes += record->bytes;
            reasm->held++;
            i += extend(core, &stretch, reasm, in + i, n - i, &sums);
        }
    }
    if (i) {
        *n_out = k;
        enter_sums(core, session, &sums, &in[i - 1]);
        close_stretch(core, session, next_held);
    }
    return i;
}

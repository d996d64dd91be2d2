/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly of one run of one session: the cursor, and what is held above it.
 *
 * Lane mode: S is known, a held number stands in the FIFO of its residue (seq mod S), every FIFO is ascending. Then
 * the next record can only be the head of the cursor's own FIFO, and a number above its FIFO's end is no duplicate:
 * no heap, no set. Irregular mode (S unknown, or a record arrived out of its lane's order): numbers that are close to
 * each other stand in pages (near.h); the others, and what lane mode has left, in FIFOs: the session's min-heap keyed
 * by sequence holds their heads, and an exact set knows what they hold. Lane mode comes back when nothing is held.
 *
 * In-order records are never stored: us_reasm_bypass().
 */
#ifndef US_CORE_REASM_H
#define US_CORE_REASM_H
#include <base/heap.h>
#include <base/seqset.h>
#include <core/evidence.h>
#include <core/near.h>
#include <unsalt/core.h>

#define US_LANE_MODE_MAX 256 /* above, S costs more memory than the heap: irregular mode */

struct us_lane {
    struct us_fifo fifo;
    uint64_t last;            /* number of the newest entry, while count > 0 */
    struct us_heap_node node; /* in irregular mode, while count > 0 */
};

/* An extra FIFO. It may be empty, and then still takes numbers above its last one. */
struct us_pile {
    uint64_t last; /* number of the newest entry that it ever had */
    struct us_lane *lane;
};

struct us_irregular {
    struct us_near near;
    struct us_heap heap;    /* this and the rest: what isn't in `near` */
    struct us_seqset seqs;
    struct us_pile *piles; /* for records that fit no lane, from the highest `last` down */
    uint32_t pile_count, pile_capacity, piles_empty;
};

struct us_reasm {
    uint64_t cursor;
    uint64_t held_bytes;
    uint32_t held;
    uint16_t lane_count;  /* of `lanes` */
    uint16_t modulus;     /* S in lane mode; 0 in irregular mode; meaningless while held == 0 */
    uint16_t cursor_lane; /* cursor mod S, in lane mode while held > 0 */
    struct us_lane *lanes;
    struct us_irregular *irregular; /* NULL until first needed */
    struct us_evidence *evidence;   /* likewise */
};

enum us_insert { US_INSERT_HELD, US_INSERT_DUPLICATE, US_INSERT_NOMEM };

/* Does the number continue a FIFO of lane mode that ends with `last`? The last numbers of all don't wrap around. */
static inline bool us_continues(uint64_t last, uint16_t modulus, uint64_t seq) {
    return seq - last == modulus && seq > last;
}

/* Frees everything but the lanes' FIFOs, which are emptied; records still held are the caller's business. */
void us_reasm_empty(struct us_reasm *reasm, struct us_chunks *chunks);
/* Frees the structures; records still held are the caller's business. */
void us_reasm_destroy(struct us_reasm *reasm, struct us_chunks *chunks);

/*
 * Files a record whose number is >= cursor (equal only while the session is `ready` or waits for its start).
 * lanes: S of the record, 0 unknown. HELD: copied. DUPLICATE: a copy is held. NOMEM: nothing changed.
 */
enum us_insert us_reasm_insert(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held,
                               uint16_t lanes);

/* So many FIFOs of lanes at least; none of them stands in the heap. False: out of memory, nothing changed. */
bool us_reasm_lanes(struct us_reasm *reasm, struct us_chunks *chunks, uint16_t need);

/* The parts of us_reasm_insert() and of the other calls that serve irregular mode; see irregular.c. */
bool us_irregular_enter(struct us_reasm *reasm, struct us_chunks *chunks);
enum us_insert us_irregular_insert(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held);
uint32_t us_irregular_pop(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                          uint32_t max);
void us_irregular_rebuild(struct us_reasm *reasm, struct us_chunks *chunks);
/* Is the number held, in irregular mode? */
static inline bool us_irregular_has(const struct us_reasm *reasm, uint64_t seq) {
    const struct us_irregular *irregular = reasm->irregular;
    return us_near_has(&irregular->near, seq) ||
           (reasm->held > irregular->near.count && us_seqset_has(&irregular->seqs, seq));
}
/* The lowest number that is held, in irregular mode while held > 0. */
static inline uint64_t us_irregular_lowest(const struct us_irregular *irregular) {
    uint64_t far = us_heap_key(&irregular->heap);
    return irregular->near.count && irregular->near.low < far ? irregular->near.low : far;
}

/* The lowest held number; UNSALT_NO_SEQ if nothing is held. */
uint64_t us_reasm_lowest(const struct us_reasm *reasm);
/*
 * Arrival of the earliest held record; UNSALT_NEVER if nothing is held. O(lanes); with more than 64 extra FIFOs that of
 * the earliest one seen, which may be later.
 */
uint64_t us_reasm_oldest(const struct us_reasm *reasm);
/* Is the cursor's own record held? */
bool us_reasm_next_held(const struct us_reasm *reasm);
/*
 * Takes up to max consecutive records from the cursor on; the cursor follows. Returns how many. Of each all fields of
 * `out` are set but the generation; the ticket is its low half.
 */
uint32_t us_reasm_pop(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                      uint32_t max);
static inline void us_held_out(const struct us_held_entry *held, union us_source source, uint64_t now,
                               unsalt_core_out_t *out) {
    out->msg = held->msg;
    out->seq = held->seq;
    out->waited_ns = now - held->arrived;
    out->ticket = held->ticket;
    out->part = source.of.part;
    out->state = UNSALT_STATE_RELEASED;
    out->flags = source.of.flags;
    out->lane = source.of.lane;
    out->reserved = 0;
}
/* Is this number held? O(1), but for a lane with a hole: then O(held). */
bool us_reasm_has(const struct us_reasm *reasm, uint64_t seq);
/* Files a record at the end of a FIFO. False: out of memory, nothing changed. */
static inline bool us_reasm_append(struct us_lane *lane, struct us_chunks *chunks, const struct us_held *held) {
    union us_source source = us_source(held->part, held->lane, held->flags);
    struct us_held_entry *entry = us_fifo_add(&lane->fifo, chunks, source);
    if (!entry) {
        return false;
    }
    *entry = (struct us_held_entry){held->seq, held->msg, held->arrived, held->ticket, held->bytes};
    lane->last = held->seq;
    return true;
}
/* Moves the cursor up to `to` <= lowest held number. */
void us_reasm_skip(struct us_reasm *reasm, uint64_t to);
/* Removes every record of a partition; `gone` gets each. Needs no memory. */
void us_reasm_remove_part(struct us_reasm *reasm, struct us_chunks *chunks, uint16_t part,
                          void (*gone)(void *opaque, const struct us_held *held), void *opaque);
/* How many held records are of the partition. O(held). */
uint32_t us_reasm_count_part(const struct us_reasm *reasm, uint16_t part);

/* The cursor's own record has just arrived and nothing is pending: it passes, unstored. */
static inline void us_reasm_bypass(struct us_reasm *reasm) {
    reasm->cursor++;
    if (reasm->held && reasm->modulus && ++reasm->cursor_lane == reasm->modulus) {
        reasm->cursor_lane = 0;
    }
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/reasm.h>
#include <string.h>

/*
 * Piles that are looked at for the earliest arrival. A producer that makes more of them is waited for longer than
 * it need be, rather than making each verdict cost a walk over all that is held.
 */
#define OLDEST_LOOK 64

void us_reasm_empty(struct us_reasm *reasm, struct us_chunks *chunks) {
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        us_fifo_clear(&reasm->lanes[i].fifo, chunks);
        reasm->lanes[i].node.index = US_HEAP_OUT;
    }
    struct us_irregular *irregular = reasm->irregular;
    if (irregular) {
        for (uint32_t i = 0; i < irregular->pile_count; i++) {
            us_fifo_clear(&irregular->piles[i].lane->fifo, chunks);
            us_free(chunks->mem, irregular->piles[i].lane);
        }
        us_free(chunks->mem, irregular->piles);
        us_near_destroy(&irregular->near, chunks);
        us_heap_destroy(&irregular->heap, chunks->mem);
        us_seqset_destroy(&irregular->seqs, chunks->mem);
        us_free(chunks->mem, irregular);
    }
    us_evidence_destroy(reasm->evidence, chunks->mem);
    *reasm = (struct us_reasm){.lanes = reasm->lanes, .lane_count = reasm->lane_count};
}

void us_reasm_destroy(struct us_reasm *reasm, struct us_chunks *chunks) {
    us_reasm_empty(reasm, chunks);
    us_free(chunks->mem, reasm->lanes);
    memset(reasm, 0, sizeof(*reasm));
}

bool us_reasm_lanes(struct us_reasm *reasm, struct us_chunks *chunks, uint16_t need) {
    if (reasm->lane_count >= need) {
        return true;
    }
    struct us_lane *grown = us_realloc_array(chunks->mem, reasm->lanes, need, sizeof(*grown));
    if (!grown) {
        return false;
    }
    memset(grown + reasm->lane_count, 0, (need - reasm->lane_count) * sizeof(*grown));
    for (uint32_t i = reasm->lane_count; i < need; i++) {
        grown[i].node.index = US_HEAP_OUT;
    }
    reasm->lanes = grown;
    reasm->lane_count = need;
    return true;
}

/* Nothing is held: the next record decides the mode. */
static bool choose_mode(struct us_reasm *reasm, struct us_chunks *chunks, uint16_t lanes) {
    if (lanes == 0 || lanes > US_LANE_MODE_MAX) {
        return us_irregular_enter(reasm, chunks);
    }
    if (!us_reasm_lanes(reasm, chunks, lanes)) {
        return false;
    }
    reasm->modulus = lanes;
    reasm->cursor_lane = (uint16_t)(reasm->cursor % lanes);
    return true;
}

/* Held in lane mode, at or below its FIFO's end: a duplicate if the FIFO has no hole there. */
static bool is_sure_duplicate(const struct us_reasm *reasm, const struct us_lane *lane, uint64_t seq) {
    uint64_t head = us_fifo_head(&lane->fifo)->seq;
    return seq >= head && (lane->last - head) / reasm->modulus + 1 == lane->fifo.count;
}

bool us_reasm_has(const struct us_reasm *reasm, uint64_t seq) {
    if (reasm->held == 0) {
        return false;
    }
    if (reasm->modulus == 0) {
        return us_irregular_has(reasm, seq);
    }
    const struct us_lane *lane = &reasm->lanes[seq % reasm->modulus];
    const struct us_fifo *fifo = &lane->fifo;
    if (fifo->count == 0 || seq > lane->last || seq < us_fifo_head(fifo)->seq) {
        return false;
    }
    if (is_sure_duplicate(reasm, lane, seq)) {
        return true;
    }
    struct us_fifo_walk walk = us_fifo_walk(fifo);
    const struct us_held_entry *held;
    while ((held = us_fifo_walk_next(&walk)) && held->seq < seq) {
    }
    return held && held->seq == seq;
}

enum us_insert us_reasm_insert(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held,
                               uint16_t lanes) {
    if (reasm->held == 0 && !choose_mode(reasm, chunks, lanes)) {
        return US_INSERT_NOMEM;
    }
    if (reasm->modulus == 0) {
        return us_irregular_insert(reasm, chunks, held);
    }
    struct us_lane *lane = &reasm->lanes[held->lane < reasm->modulus ? held->lane : 0];
    if (lane->fifo.count == 0 || !us_continues(lane->last, reasm->modulus, held->seq)) {
        lane = &reasm->lanes[held->seq % reasm->modulus];
        if (lane->fifo.count && held->seq <= lane->last) {
            if (is_sure_duplicate(reasm, lane, held->seq)) {
                return US_INSERT_DUPLICATE;
            }
            if (!us_irregular_enter(reasm, chunks)) {
                return US_INSERT_NOMEM;
            }
            return us_irregular_insert(reasm, chunks, held);
        }
    }
    if (!us_reasm_append(lane, chunks, held)) {
        return US_INSERT_NOMEM;
    }
    reasm->held++;
    reasm->held_bytes += held->bytes;
    return US_INSERT_HELD;
}

uint64_t us_reasm_lowest(const struct us_reasm *reasm) {
    if (reasm->held == 0) {
        return UNSALT_NO_SEQ;
    }
    if (reasm->modulus == 0) {
        return us_irregular_lowest(reasm->irregular);
    }
    uint64_t lowest = UNSALT_NO_SEQ;
    for (uint32_t i = 0; i < reasm->modulus; i++) {
        const struct us_fifo *fifo = &reasm->lanes[i].fifo;
        if (fifo->count && us_fifo_head(fifo)->seq < lowest) {
            lowest = us_fifo_head(fifo)->seq;
        }
    }
    return lowest;
}

/* A FIFO is filled in order of arrival, so its head is its earliest. */
static uint64_t earlier(const struct us_lane *lane, uint64_t than) {
    if (lane->fifo.count && us_fifo_head(&lane->fifo)->arrived < than) {
        return us_fifo_head(&lane->fifo)->arrived;
    }
    return than;
}

uint64_t us_reasm_oldest(const struct us_reasm *reasm) {
    uint64_t oldest = UNSALT_NEVER;
    if (reasm->held == 0) {
        return oldest;
    }
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        oldest = earlier(&reasm->lanes[i], oldest);
    }
    const struct us_irregular *irregular = reasm->irregular;
    for (uint32_t i = 0; irregular && i < irregular->pile_count && i < OLDEST_LOOK; i++) {
        oldest = earlier(irregular->piles[i].lane, oldest);
    }
    if (irregular && irregular->near.count) {
        uint64_t arrived = us_near_at(&irregular->near, irregular->near.oldest)->arrived;
        oldest = arrived < oldest ? arrived : oldest;
    }
    return oldest;
}

bool us_reasm_next_held(const struct us_reasm *reasm) {
    if (reasm->held == 0) {
        return false;
    }
    if (reasm->modulus == 0) {
        return us_irregular_lowest(reasm->irregular) == reasm->cursor;
    }
    const struct us_fifo *fifo = &reasm->lanes[reasm->cursor_lane].fifo;
    return fifo->count && us_fifo_head(fifo)->seq == reasm->cursor;
}

uint32_t us_reasm_pop(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                      uint32_t max) {
    if (reasm->held == 0) {
        return 0;
    }
    if (reasm->modulus == 0) {
        return us_irregular_pop(reasm, chunks, now, out, max);
    }
    uint32_t n = 0, lane = reasm->cursor_lane, modulus = reasm->modulus;
    uint64_t cursor = reasm->cursor, bytes = 0;
    struct us_lane *lanes = reasm->lanes;
    while (n < max) {
        struct us_fifo *fifo = &lanes[lane].fifo;
        if (fifo->count == 0) {
            break;
        }
        const struct us_held_entry *head = us_fifo_head(fifo);
        if (head->seq != cursor) {
            break;
        }
        __builtin_prefetch(head + 2);
        us_held_out(head, fifo->head->source, now, &out[n++]);
        bytes += head->bytes;
        cursor++;
        us_fifo_pop(fifo, chunks);
        if (++lane == modulus) {
            lane = 0;
        }
    }
    reasm->cursor = cursor;
    reasm->cursor_lane = (uint16_t)lane;
    reasm->held -= n;
    reasm->held_bytes -= bytes;
    return n;
}

void us_reasm_skip(struct us_reasm *reasm, uint64_t to) {
    reasm->cursor = to;
    if (reasm->held && reasm->modulus) {
        reasm->cursor_lane = (uint16_t)(to % reasm->modulus);
    }
}

struct removal {
    struct us_reasm *reasm;
    void (*gone)(void *opaque, const struct us_held *held);
    void *opaque;
};

static void removed_near(void *opaque, const struct us_held *held) {
    struct removal *removal = opaque;
    removal->reasm->held--;
    removal->reasm->held_bytes -= held->bytes;
    removal->gone(removal->opaque, held);
}

static void removed(void *opaque, const struct us_held *held) {
    const struct removal *removal = opaque;
    if (removal->reasm->modulus == 0) {
        us_seqset_remove(&removal->reasm->irregular->seqs, held->seq);
    }
    removed_near(opaque, held);
}

void us_reasm_remove_part(struct us_reasm *reasm, struct us_chunks *chunks, uint16_t part,
                          void (*gone)(void *opaque, const struct us_held *held), void *opaque) {
    struct removal removal = {reasm, gone, opaque};
    if (reasm->held == 0) {
        return;
    }
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        us_fifo_remove_part(&reasm->lanes[i].fifo, chunks, part, removed, &removal);
    }
    if (reasm->modulus == 0) {
        for (uint32_t i = 0; i < reasm->irregular->pile_count; i++) {
            us_fifo_remove_part(&reasm->irregular->piles[i].lane->fifo, chunks, part, removed, &removal);
        }
        us_near_remove_part(&reasm->irregular->near, chunks, part, removed_near, &removal);
        us_irregular_rebuild(reasm, chunks);
        return;
    }
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        struct us_lane *lane = &reasm->lanes[i];
        if (lane->fifo.count) {
            lane->last = lane->fifo.tail->entries[lane->fifo.end - 1].seq;
        }
    }
}

static uint32_t count_part(const struct us_fifo *fifo, uint16_t part) {
    uint32_t n = 0;
    struct us_fifo_walk walk = us_fifo_walk(fifo);
    while (us_fifo_walk_next(&walk)) {
        n += walk.chunk->source.of.part == part;
    }
    return n;
}

uint32_t us_reasm_count_part(const struct us_reasm *reasm, uint16_t part) {
    uint32_t n = 0;
    if (reasm->held == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        n += count_part(&reasm->lanes[i].fifo, part);
    }
    const struct us_irregular *irregular = reasm->irregular;
    for (uint32_t i = 0; irregular && i < irregular->pile_count; i++) {
        n += count_part(&irregular->piles[i].lane->fifo, part);
    }
    const struct us_near *near = irregular ? &irregular->near : NULL;
    for (uint64_t seq = near ? us_near_first(near) : UINT64_MAX; seq != UINT64_MAX; seq = us_near_next(near, seq)) {
        n += us_near_at(near, seq)->part == part;
    }
    return n;
}

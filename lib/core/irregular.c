/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Irregular mode of the reassembly. Numbers that are close to each other stand in pages, by number (near.h). The others
 * stand in FIFOs, whose heads are in a min-heap keyed by sequence, and an exact set knows their numbers. Such a record
 * goes to the FIFO of its source if it stands above that FIFO's end, else to a pile: the one with the highest end that
 * it stands above, else a new one. So every FIFO stays ascending in number and in arrival, and there are few: this is
 * patience sorting, about 2 sqrt(n) piles for n numbers in no order, the least possible for any order (Aldous and
 * Diaconis, Bull. AMS 36, 1999).
 */
#include <core/reasm.h>
#include <stddef.h>

#define LANES_UNKNOWN 4 /* FIFOs of a session whose S is unknown: by source partition, modulo this */
#define PILES_KEPT 8   /* empty ones that are kept whatever the proportion, while anything is held */
#define SEQS_KEPT 1024 /* a set with more words than this is freed when it becomes empty */

/* Enters what stands in a FIFO into heap and set; room was reserved. */
static void enter_lane(struct us_irregular *irregular, struct us_lane *lane) {
    const struct us_fifo *fifo = &lane->fifo;
    if (fifo->count == 0) {
        return;
    }
    us_heap_push(&irregular->heap, us_fifo_head(fifo)->seq, &lane->node);
    struct us_fifo_walk walk = us_fifo_walk(fifo);
    for (const struct us_held_entry *held; (held = us_fifo_walk_next(&walk));) {
        us_seqset_add(&irregular->seqs, held->seq);
    }
}

/* Moves what lane mode has left to the pages, if it is near enough; nothing is there yet. */
static void move_near(struct us_reasm *reasm, struct us_chunks *chunks) {
    struct us_near *near = &reasm->irregular->near;
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        struct us_fifo *fifo = &reasm->lanes[i].fifo;
        while (fifo->count) {
            const struct us_held_entry *head = us_fifo_head(fifo);
            union us_source source = fifo->head->source;
            struct us_near_entry *entry = us_near_open(near, chunks, head->seq, reasm->held);
            if (!entry) {
                break;
            }
            *entry = (struct us_near_entry){.msg = head->msg, .arrived = head->arrived, .ticket = head->ticket,
                                            .bytes = head->bytes, .part = source.of.part, .lane = source.of.lane,
                                            .flags = source.of.flags};
            us_fifo_pop(fifo, chunks);
        }
    }
    if (near->count) {
        us_near_mark_again(near);
    }
}

bool us_irregular_enter(struct us_reasm *reasm, struct us_chunks *chunks) {
    if (!reasm->irregular) {
        reasm->irregular = us_calloc(chunks->mem, 1, sizeof(*reasm->irregular));
        if (!reasm->irregular) {
            return false;
        }
        reasm->irregular->seqs.seed = chunks->seed;
    }
    struct us_irregular *irregular = reasm->irregular;
    if (reasm->held && (!us_heap_reserve(&irregular->heap, chunks->mem, reasm->lane_count) ||
                        !us_seqset_reserve(&irregular->seqs, chunks->mem, reasm->held))) {
        return false;
    }
    reasm->modulus = 0;
    if (reasm->held) {
        move_near(reasm, chunks);
        for (uint32_t i = 0; i < reasm->lane_count; i++) {
            enter_lane(irregular, &reasm->lanes[i]);
        }
        if (us_heap_empty(&irregular->heap) && irregular->seqs.mask >= SEQS_KEPT) {
            us_seqset_destroy(&irregular->seqs, chunks->mem);
        }
    }
    return true;
}

/* The place of the number among the piles: that of the highest end below it, or behind all of them. */
static uint32_t pile_for(const struct us_irregular *irregular, uint64_t seq) {
    const struct us_pile *piles = irregular->piles;
    uint32_t low = 0, count = irregular->pile_count;
    while (count > 0) {
        uint32_t half = count / 2;
        bool above = piles[low + half].last >= seq;
        low = above ? low + half + 1 : low;
        count = above ? count - half - 1 : half;
    }
    return low;
}

/* Adds an empty pile at the end. False: out of memory, nothing changed. */
static bool pile_new(struct us_irregular *irregular, struct us_chunks *chunks) {
    struct us_pile *piles = us_array_room(chunks->mem, irregular->piles, &irregular->pile_capacity,
                                          irregular->pile_count, 4, sizeof(*piles));
    if (!piles) {
        return false;
    }
    irregular->piles = piles;
    struct us_lane *lane = us_calloc(chunks->mem, 1, sizeof(*lane));
    if (!lane) {
        return false;
    }
    lane->node.index = US_HEAP_OUT;
    irregular->piles[irregular->pile_count++] = (struct us_pile){0, lane};
    irregular->piles_empty++;
    return true;
}

/*
 * The FIFO that can take the number at its end. *pile: that of a pile, or NULL. NULL: out of memory, and nothing but an
 * empty pile may have changed.
 */
static struct us_lane *lane_for(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held,
                                struct us_pile **pile) {
    struct us_irregular *irregular = reasm->irregular;
    struct us_lane *lane = &reasm->lanes[held->lane % reasm->lane_count];
    *pile = NULL;
    if (lane->fifo.count == 0 || held->seq > lane->last) {
        return lane;
    }
    uint32_t at = pile_for(irregular, held->seq);
    if (at == irregular->pile_count && !pile_new(irregular, chunks)) {
        return NULL;
    }
    *pile = &irregular->piles[at];
    return (*pile)->lane;
}

enum us_insert us_irregular_insert(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held) {
    struct us_irregular *irregular = reasm->irregular;
    if (us_irregular_has(reasm, held->seq)) {
        return US_INSERT_DUPLICATE;
    }
    struct us_near_entry *near = us_near_open(&irregular->near, chunks, held->seq, reasm->held);
    if (near) {
        *near = (struct us_near_entry){.msg = held->msg, .arrived = held->arrived, .ticket = held->ticket,
                                       .bytes = held->bytes, .part = held->part, .lane = held->lane,
                                       .flags = held->flags};
        reasm->held++;
        reasm->held_bytes += held->bytes;
        return US_INSERT_HELD;
    }
    bool has_lanes = reasm->lane_count || us_reasm_lanes(reasm, chunks, LANES_UNKNOWN);
    if (!has_lanes || !us_heap_reserve(&irregular->heap, chunks->mem, 1) ||
        !us_seqset_reserve(&irregular->seqs, chunks->mem, 1)) {
        return US_INSERT_NOMEM;
    }
    struct us_pile *pile;
    struct us_lane *lane = lane_for(reasm, chunks, held, &pile);
    if (!lane || !us_reasm_append(lane, chunks, held)) {
        return US_INSERT_NOMEM;
    }
    us_seqset_add(&irregular->seqs, held->seq);
    if (pile) {
        pile->last = held->seq;
        irregular->piles_empty -= lane->fifo.count == 1;
    }
    if (lane->fifo.count == 1) {
        us_heap_push(&irregular->heap, held->seq, &lane->node);
    }
    reasm->held++;
    reasm->held_bytes += held->bytes;
    return US_INSERT_HELD;
}

/*
 * Frees the piles that hold nothing when they are more than the others: so there are never many in proportion to what
 * is held, and a pop stays cheap. All of them: whatever the proportion.
 */
static void drop_empty_piles(struct us_irregular *irregular, struct us_chunks *chunks, bool all) {
    uint32_t kept = 0;
    if (!all && irregular->piles_empty <= irregular->pile_count / 2 + PILES_KEPT) {
        return;
    }
    for (uint32_t i = 0; i < irregular->pile_count; i++) {
        if (irregular->piles[i].lane->fifo.count) {
            irregular->piles[kept++] = irregular->piles[i];
        } else {
            us_free(chunks->mem, irregular->piles[i].lane);
        }
    }
    irregular->pile_count = kept;
    irregular->piles_empty = 0;
}

static bool is_pile(const struct us_reasm *reasm, const struct us_lane *lane) {
    return lane < reasm->lanes || lane >= reasm->lanes + reasm->lane_count;
}

static struct us_lane *top_lane(const struct us_irregular *irregular) {
    return (struct us_lane *)((char *)us_heap_top(&irregular->heap) - offsetof(struct us_lane, node));
}

/* Takes what stands in FIFOs from the cursor on. */
static uint32_t pop_far(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                        uint32_t max, uint64_t *bytes) {
    struct us_irregular *irregular = reasm->irregular;
    uint32_t n = 0;
    uint64_t cursor = reasm->cursor;
    while (n < max && !us_heap_empty(&irregular->heap) && us_heap_key(&irregular->heap) == cursor) {
        struct us_lane *lane = top_lane(irregular);
        do {
            const struct us_held_entry *head = us_fifo_head(&lane->fifo);
            us_held_out(head, lane->fifo.head->source, now, &out[n++]);
            *bytes += head->bytes;
            us_seqset_remove(&irregular->seqs, cursor++);
            us_fifo_pop(&lane->fifo, chunks);
        } while (n < max && lane->fifo.count && us_fifo_head(&lane->fifo)->seq == cursor);
        if (lane->fifo.count) {
            us_heap_update(&irregular->heap, &lane->node, us_fifo_head(&lane->fifo)->seq);
        } else {
            us_heap_remove(&irregular->heap, &lane->node);
            irregular->piles_empty += is_pile(reasm, lane);
        }
    }
    return n;
}

uint32_t us_irregular_pop(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                          uint32_t max) {
    struct us_irregular *irregular = reasm->irregular;
    struct us_near *near = &irregular->near;
    uint32_t n = 0;
    uint64_t bytes = 0;
    while (n < max && reasm->held > 0) {
        uint32_t some;
        if (near->count && near->low == reasm->cursor) {
            some = us_near_pop(near, chunks, now, out + n, max - n, &bytes);
        } else {
            some = pop_far(reasm, chunks, now, out + n, max - n, &bytes);
        }
        if (some == 0) {
            break;
        }
        n += some;
        reasm->cursor += some;
        reasm->held -= some;
    }
    reasm->held_bytes -= bytes;
    drop_empty_piles(irregular, chunks, reasm->held == 0);
    if (reasm->held == 0 && irregular->seqs.mask >= SEQS_KEPT) {
        us_seqset_destroy(&irregular->seqs, chunks->mem);
    }
    return n;
}

/* The end of a FIFO from which records were removed. That of a pile stays in `piles`, which are in order by it. */
static void refile(struct us_irregular *irregular, struct us_lane *lane) {
    if (lane->fifo.count) {
        lane->last = lane->fifo.tail->entries[lane->fifo.end - 1].seq;
        us_heap_push(&irregular->heap, us_fifo_head(&lane->fifo)->seq, &lane->node);
    }
}

void us_irregular_rebuild(struct us_reasm *reasm, struct us_chunks *chunks) {
    struct us_irregular *irregular = reasm->irregular;
    while (!us_heap_empty(&irregular->heap)) {
        us_heap_remove(&irregular->heap, us_heap_top(&irregular->heap));
    }
    drop_empty_piles(irregular, chunks, true);
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        refile(irregular, &reasm->lanes[i]);
    }
    for (uint32_t i = 0; i < irregular->pile_count; i++) {
        refile(irregular, irregular->piles[i].lane);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Irregular mode of the reassembly: the FIFOs' heads stand in a min-heap keyed by sequence, and an exact set knows
 * which numbers are held. A record goes to the FIFO of its source if it stands above that FIFO's end, else to the
 * newest extra FIFO, else to an extra FIFO of its own: every FIFO stays ascending in number and in arrival.
 */
#include <core/reasm.h>
#include <stddef.h>

#define SEQS_KEPT 1024 /* a set with more words than this is freed when it becomes empty */

/* Enters what stands in a FIFO into heap and set; room was reserved. */
static void enter_lane(struct us_irregular *irregular, struct us_lane *lane) {
    const struct us_fifo *fifo = &lane->fifo;
    if (fifo->count == 0) {
        return;
    }
    us_heap_push(&irregular->heap, us_fifo_head(fifo)->seq, &lane->node);
    struct us_fifo_walk walk = us_fifo_walk(fifo);
    for (const struct us_held *held; (held = us_fifo_walk_next(&walk));) {
        us_seqset_add(&irregular->seqs, held->seq);
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
    if (!us_heap_reserve(&irregular->heap, chunks->mem, reasm->lane_count) ||
        !us_seqset_reserve(&irregular->seqs, chunks->mem, reasm->held)) {
        return false;
    }
    reasm->modulus = 0;
    if (reasm->held) {
        for (uint32_t i = 0; i < reasm->lane_count; i++) {
            enter_lane(irregular, &reasm->lanes[i]);
        }
    }
    return true;
}

/* The FIFO that can take the number at its end, or NULL. */
static struct us_lane *lane_for(struct us_reasm *reasm, const struct us_held *held) {
    struct us_lane *lane = &reasm->lanes[held->lane % reasm->lane_count];
    if (lane->fifo.count == 0 || held->seq > lane->last) {
        return lane;
    }
    lane = reasm->irregular->extra;
    return lane && held->seq > lane->last ? lane : NULL;
}

static struct us_lane *extra_new(struct us_chunks *chunks) {
    struct us_lane *lane = us_calloc(chunks->mem, 1, sizeof(*lane));
    if (lane) {
        lane->node.index = US_HEAP_OUT;
    }
    return lane;
}

enum us_insert us_irregular_insert(struct us_reasm *reasm, struct us_chunks *chunks, const struct us_held *held) {
    struct us_irregular *irregular = reasm->irregular;
    if (us_seqset_has(&irregular->seqs, held->seq)) {
        return US_INSERT_DUPLICATE;
    }
    if (!us_heap_reserve(&irregular->heap, chunks->mem, 1) || !us_seqset_reserve(&irregular->seqs, chunks->mem, 1)) {
        return US_INSERT_NOMEM;
    }
    struct us_lane *lane = lane_for(reasm, held), *fresh = NULL;
    if (!lane) {
        lane = fresh = extra_new(chunks);
        if (!fresh) {
            return US_INSERT_NOMEM;
        }
    }
    struct us_held *entry = us_fifo_add(&lane->fifo, chunks);
    if (!entry) {
        us_free(chunks->mem, fresh);
        return US_INSERT_NOMEM;
    }
    *entry = *held;
    lane->last = held->seq;
    us_seqset_add(&irregular->seqs, held->seq);
    if (fresh) {
        fresh->next = irregular->extra;
        irregular->extra = fresh;
        irregular->extras++;
    }
    if (lane->fifo.count == 1) {
        us_heap_push(&irregular->heap, held->seq, &lane->node);
    }
    reasm->held++;
    reasm->held_bytes += held->bytes;
    return US_INSERT_HELD;
}

/*
 * Frees extra FIFOs that hold nothing any more: those at the newest end at once, the others when they are many, so
 * that the list stays in proportion to what is held and a pop stays cheap.
 */
static void drop_empty_extras(struct us_irregular *irregular, struct us_chunks *chunks, bool all) {
    struct us_lane **link = &irregular->extra;
    while (*link) {
        struct us_lane *lane = *link;
        if (lane->fifo.count) {
            if (!all) {
                return;
            }
            link = &lane->next;
            continue;
        }
        *link = lane->next;
        irregular->extras--;
        us_free(chunks->mem, lane);
    }
}

static struct us_lane *top_lane(const struct us_irregular *irregular) {
    return (struct us_lane *)((char *)us_heap_top(&irregular->heap) - offsetof(struct us_lane, node));
}

uint32_t us_irregular_pop(struct us_reasm *reasm, struct us_chunks *chunks, uint64_t now, unsalt_core_out_t *out,
                          uint32_t max) {
    struct us_irregular *irregular = reasm->irregular;
    uint32_t n = 0;
    uint64_t cursor = reasm->cursor, bytes = 0;
    while (n < max && us_heap_key(&irregular->heap) == cursor && reasm->held > n) {
        struct us_lane *lane = top_lane(irregular);
        do {
            const struct us_held *head = us_fifo_head(&lane->fifo);
            us_held_out(head, now, &out[n++]);
            bytes += head->bytes;
            us_seqset_remove(&irregular->seqs, cursor++);
            us_fifo_pop(&lane->fifo, chunks);
        } while (n < max && lane->fifo.count && us_fifo_head(&lane->fifo)->seq == cursor);
        if (lane->fifo.count) {
            us_heap_update(&irregular->heap, &lane->node, us_fifo_head(&lane->fifo)->seq);
        } else {
            us_heap_remove(&irregular->heap, &lane->node);
        }
    }
    reasm->cursor = cursor;
    reasm->held -= n;
    reasm->held_bytes -= bytes;
    drop_empty_extras(irregular, chunks, irregular->extras > 2 * reasm->held + 16);
    if (reasm->held == 0 && irregular->seqs.mask >= SEQS_KEPT) {
        us_seqset_destroy(&irregular->seqs, chunks->mem);
    }
    return n;
}

/* The end of a FIFO from which records were removed. */
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
    drop_empty_extras(irregular, chunks, true);
    for (uint32_t i = 0; i < reasm->lane_count; i++) {
        refile(irregular, &reasm->lanes[i]);
    }
    for (struct us_lane *extra = irregular->extra; extra; extra = extra->next) {
        refile(irregular, extra);
    }
}

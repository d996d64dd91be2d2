/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run of a session knows of numbers that will never come: what its lanes have shown (proof.c), and what the
 * producer has said (marker.c). Made when it is first needed, so that an ordinary session carries a pointer only.
 *
 * Proof (DESIGN 5): the lane that carries m has shown a record with `una` > m. The producer knew m's fate before it
 * stamped that record, so if m had been accepted it would stand before it in the same partition. As una <= seq, only
 * records above m, which are held as long as m is missing, can say so.
 */
#ifndef US_CORE_EVIDENCE_H
#define US_CORE_EVIDENCE_H
#include <base/skips.h>
#include <core/turned_away.h>

/* For gap.proof=trust of a session whose lanes are unknown: one above the highest number that the partition showed. */
struct us_evidence_part {
    uint64_t shown;
    uint32_t part;
};

struct us_evidence {
    struct us_range *marks; /* numbers that a marker covers: sorted, apart; those below the cursor are of no use */
    struct us_skips proven; /* numbers that were given up as proven: none of them may come */
    struct us_away_list away; /* numbers whose record was turned away */
    struct us_evidence_part *parts;
    uint32_t mark_count, mark_capacity, part_count, part_capacity;
    bool broken;    /* the premise of proof doesn't hold for this run: nothing is proven any more */
    uint16_t lanes; /* S of `shown`; 0 = none yet */
    uint16_t lane_capacity;
    uint64_t *shown; /* by lane: one above the highest una (with gap.proof=trust: number) it has shown; 0 = none */
};

/* Frees it; NULL is allowed. */
void us_evidence_destroy(struct us_evidence *evidence, const struct unsalt_mem *mem);
/* What was shown and said so far is void: partitions are read again from a lower offset. NULL is allowed. */
void us_evidence_forget(struct us_evidence *evidence);
#endif

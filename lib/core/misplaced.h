/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether what a record says of its lane contradicts the place where it was read (DESIGN 3): its producer has another
 * layout then, another S or another N, and its other lanes are where nobody looks for them. Such a record keeps its
 * meaning: what a header says of lanes counts, wherever it stands.
 */
#ifndef US_CORE_MISPLACED_H
#define US_CORE_MISPLACED_H
#include <core/layout.h>

enum us_misplaced {
    US_MISPLACED_NOT,   /* it fits, or nothing is known: in layout hash a lane may be anywhere */
    US_MISPLACED_LANE,  /* another lane lives here */
    US_MISPLACED_LANES  /* it has more lanes than there may be */
};

/* A place: with layout topics the lane of the topic, with block the partition; `most` = lanes that there may be. */
struct us_misplaced_at {
    enum us_layout layout;
    int32_t partitions; /* N */
    uint16_t most;      /* >= 1 */
    int32_t lane;       /* of the topic */
    int32_t partition;
};

/* The lane where it was read, which its place says; -1: any. */
int32_t us_misplaced_lane_here(const struct us_misplaced_at *at);

/* A record that says that it is of lane `lane` of `lanes` >= 1, lane < lanes. */
enum us_misplaced us_misplaced(const struct us_misplaced_at *at, uint16_t lanes, uint16_t lane);
#endif

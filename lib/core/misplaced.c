/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/misplaced.h>

int32_t us_misplaced_lane_here(const struct us_misplaced_at *at) {
    switch (at->layout) {
    case US_LAYOUT_TOPICS:
        return at->lane;
    case US_LAYOUT_BLOCK: /* beyond N the topic has grown: there is no block */
        return at->partition < at->partitions ? at->partition % at->most : -1;
    default:
        return -1;
    }
}

enum us_misplaced us_misplaced(const struct us_misplaced_at *at, uint16_t lanes, uint16_t lane) {
    int32_t here = us_misplaced_lane_here(at);
    if (at->layout == US_LAYOUT_BLOCK && lanes == 1) {
        return US_MISPLACED_NOT; /* a session of one lane goes to any partition of its block */
    }
    if (here >= 0 && here != lane) {
        return US_MISPLACED_LANE;
    }
    return at->layout != US_LAYOUT_HASH && lanes > at->most ? US_MISPLACED_LANES : US_MISPLACED_NOT;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/relay_header.h>

/* Only the `unsalt` header tells una. */
static bool keeps_lane(const unsalt_core_in_t *in, uint16_t lanes) {
    return in->una != UNSALT_NO_SEQ && in->lanes > 0 && in->lanes <= lanes;
}

bool us_relay_header(const unsalt_core_in_t *in, uint16_t lanes, bool dropped, unsalt_header_t *header) {
    bool marker = in->flags & UNSALT_F_MARKER, keeps = keeps_lane(in, lanes);
    *header = (unsalt_header_t){
        .flags = (uint8_t)in->flags,
        .epoch = in->epoch,
        .seq = in->seq,
        .since = in->since,
        .una = in->una,
        .lane = in->lane,
        .lanes = in->lanes,
    };
    if (!keeps) {
        header->lane = (uint16_t)(in->seq % lanes);
        header->lanes = lanes;
        header->since = marker ? in->since : in->seq; /* of a marker the range's first number */
        header->una = 0;
    }
    if (dropped) {
        header->flags = UNSALT_F_MARKER;
        header->since = in->seq;
    }
    return keeps;
}

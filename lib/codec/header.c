/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/big_endian.h>
#include <codec/header.h>
#include <string.h>

enum { AT_VERSION = 0, AT_FLAGS = 1, AT_LANE = 2, AT_LANES = 4, AT_EPOCH = 8, AT_SEQ = 16, AT_SINCE = 24, AT_UNA = 32 };

static void put(uint8_t *at, int size, uint64_t value) {
    for (int i = size; i-- > 0; value >>= 8)
        at[i] = (uint8_t)value;
}

static unsalt_header_fault_t check(const unsalt_header_t *header) {
    if (header->lanes == 0 || header->lane >= header->lanes)
        return UNSALT_HEADER_LANES;
    if (header->flags & UNSALT_F_HEARTBEAT)
        return UNSALT_HEADER_OK;
    if (header->seq == 0 || header->seq == UNSALT_NO_SEQ)
        return UNSALT_HEADER_SEQ;
    /* A marker goes to any lane, and it is stamped when its own numbers are resolved already. */
    int is_marker = header->flags & UNSALT_F_MARKER;
    if (!is_marker && header->seq % header->lanes != header->lane)
        return UNSALT_HEADER_LANE_RULE;
    if (header->since > header->seq || (!is_marker && header->una > header->seq))
        return UNSALT_HEADER_RANGE;
    return UNSALT_HEADER_OK;
}

unsalt_header_fault_t unsalt_header_read(const void *bytes, size_t size, unsalt_header_t *header) {
    const uint8_t *at = bytes;
    if (size < UNSALT_HEADER_SIZE)
        return UNSALT_HEADER_SHORT;
    if (at[AT_VERSION] != UNSALT_HEADER_VERSION)
        return UNSALT_HEADER_UNKNOWN_VERSION;
    unsalt_header_t found = {
        .flags = at[AT_FLAGS],
        .lane = us_big_endian_16(at + AT_LANE),
        .lanes = us_big_endian_16(at + AT_LANES),
        .epoch = us_big_endian_64(at + AT_EPOCH),
    };
    if (!(found.flags & UNSALT_F_HEARTBEAT)) {
        found.seq = us_big_endian_64(at + AT_SEQ);
        found.since = us_big_endian_64(at + AT_SINCE);
        found.una = us_big_endian_64(at + AT_UNA);
    }
    unsalt_header_fault_t fault = check(&found);
    if (fault == UNSALT_HEADER_OK)
        *header = found;
    return fault;
}

unsalt_header_fault_t unsalt_header_write(const unsalt_header_t *header, void *bytes) {
    uint8_t *at = bytes;
    unsalt_header_fault_t fault = check(header);
    if (fault != UNSALT_HEADER_OK)
        return fault;
    memset(at, 0, UNSALT_HEADER_SIZE);
    at[AT_VERSION] = UNSALT_HEADER_VERSION;
    at[AT_FLAGS] = header->flags;
    put(at + AT_LANE, 2, header->lane);
    put(at + AT_LANES, 2, header->lanes);
    put(at + AT_EPOCH, 8, header->epoch);
    if (!(header->flags & UNSALT_F_HEARTBEAT)) {
        put(at + AT_SEQ, 8, header->seq);
        put(at + AT_SINCE, 8, header->since);
        put(at + AT_UNA, 8, header->una);
    }
    return UNSALT_HEADER_OK;
}

const char *unsalt_header_fault_text(unsalt_header_fault_t fault) {
    static const char *const texts[] = {
#define X(C, text) text,
        UNSALT_HEADER_FAULTS(X)
#undef X
    };
    return (unsigned)fault < UNSALT_HEADER__CNT ? texts[fault] : "?";
}

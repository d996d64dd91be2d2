/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/header.h>
#include <support/check.h>

static const unsalt_header_t good = {
    .flags = UNSALT_F_RESEND,
    .lane = 2,
    .lanes = 5,
    .epoch = UINT64_C(0x1112131415161718),
    .seq = 17,
    .since = 11,
    .una = 13,
};

static const uint8_t good_bytes[UNSALT_HEADER_SIZE] = {
    1,    0x08, 0,    2,    0,    5,    0,    0,                           /* version, flags, lane, lanes, reserved */
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,                        /* epoch */
    0,    0,    0,    0,    0,    0,    0,    17,                          /* seq */
    0,    0,    0,    0,    0,    0,    0,    11,                          /* since */
    0,    0,    0,    0,    0,    0,    0,    13,                          /* una */
};

static void check_same(const unsalt_header_t *is, const unsalt_header_t *wanted) {
    CHECK_U64(is->flags, wanted->flags);
    CHECK_U64(is->lane, wanted->lane);
    CHECK_U64(is->lanes, wanted->lanes);
    CHECK_U64(is->epoch, wanted->epoch);
    CHECK_U64(is->seq, wanted->seq);
    CHECK_U64(is->since, wanted->since);
    CHECK_U64(is->una, wanted->una);
}

/* Neither reading nor writing takes it, and neither leaves a trace. */
static void check_refused(const unsalt_header_t *header, unsalt_header_fault_t fault) {
    uint8_t bytes[UNSALT_HEADER_SIZE], before[UNSALT_HEADER_SIZE];
    memset(bytes, 0xee, sizeof bytes);
    memcpy(before, bytes, sizeof bytes);
    unsalt_header_fault_t found = unsalt_header_write(header, bytes);
    CHECK_THAT(found == fault, "write says %s, not %s", unsalt_header_fault_text(found),
               unsalt_header_fault_text(fault));
    CHECK_BYTES(bytes, sizeof bytes, before, sizeof before);
}

TEST(header, is_written_as_documented) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    memset(bytes, 0xee, sizeof bytes);
    CHECK(unsalt_header_write(&good, bytes) == UNSALT_HEADER_OK);
    CHECK_BYTES(bytes, sizeof bytes, good_bytes, sizeof good_bytes);
}

TEST(header, is_read_as_documented) {
    unsalt_header_t header;
    CHECK(unsalt_header_read(good_bytes, sizeof good_bytes, &header) == UNSALT_HEADER_OK);
    check_same(&header, &good);
}

TEST(header, survives_the_extremes) {
    unsalt_header_t in = {.lanes = UINT16_MAX, .epoch = UINT64_MAX, .seq = UINT64_MAX - 1}, out;
    in.flags = UNSALT_F_FIRST | UNSALT_F_LAST;
    in.lane = (uint16_t)(in.seq % in.lanes);
    in.since = in.una = in.seq;
    uint8_t bytes[UNSALT_HEADER_SIZE];
    CHECK(unsalt_header_write(&in, bytes) == UNSALT_HEADER_OK);
    CHECK(unsalt_header_read(bytes, sizeof bytes, &out) == UNSALT_HEADER_OK);
    check_same(&out, &in);
}

TEST(header, every_short_length_is_refused) {
    unsalt_header_t header = {.seq = 4711};
    for (size_t size = 0; size < UNSALT_HEADER_SIZE; size++)
        CHECK(unsalt_header_read(good_bytes, size, &header) == UNSALT_HEADER_SHORT);
    CHECK(unsalt_header_read(NULL, 0, &header) == UNSALT_HEADER_SHORT);
    CHECK_U64(header.seq, 4711);
}

TEST(header, a_longer_one_is_read_by_its_first_bytes) {
    uint8_t bytes[UNSALT_HEADER_SIZE + 9];
    unsalt_header_t header;
    memset(bytes, 0xff, sizeof bytes);
    memcpy(bytes, good_bytes, sizeof good_bytes);
    CHECK(unsalt_header_read(bytes, sizeof bytes, &header) == UNSALT_HEADER_OK);
    check_same(&header, &good);
}

TEST(header, unknown_versions_are_refused) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    unsalt_header_t header = {.seq = 4711};
    memcpy(bytes, good_bytes, sizeof bytes);
    for (int version = 0; version < 256; version++) {
        bytes[0] = (uint8_t)version;
        unsalt_header_fault_t wanted = version == 1 ? UNSALT_HEADER_OK : UNSALT_HEADER_UNKNOWN_VERSION;
        CHECK(unsalt_header_read(bytes, sizeof bytes, &header) == wanted);
        if (version == 0)
            CHECK_U64(header.seq, 4711);
    }
}

TEST(header, reserved_bytes_are_ignored) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    unsalt_header_t header;
    memcpy(bytes, good_bytes, sizeof bytes);
    bytes[6] = bytes[7] = 0xff;
    CHECK(unsalt_header_read(bytes, sizeof bytes, &header) == UNSALT_HEADER_OK);
    check_same(&header, &good);
}

TEST(header, lane_must_lie_below_lanes) {
    unsalt_header_t header = good;
    header.lanes = 0;
    check_refused(&header, UNSALT_HEADER_LANES);
    header.lanes = 2;
    check_refused(&header, UNSALT_HEADER_LANES);
    header.flags = UNSALT_F_HEARTBEAT; /* also without a sequence */
    check_refused(&header, UNSALT_HEADER_LANES);
}

TEST(header, sequence_must_be_one) {
    unsalt_header_t header = good;
    header.seq = header.since = header.una = 0;
    header.lane = 0;
    check_refused(&header, UNSALT_HEADER_SEQ);
    header.seq = UNSALT_NO_SEQ;
    check_refused(&header, UNSALT_HEADER_SEQ);
    header.flags = UNSALT_F_MARKER;
    check_refused(&header, UNSALT_HEADER_SEQ);
}

TEST(header, lane_must_follow_from_the_sequence) {
    unsalt_header_t header = good;
    header.lane = 3;
    check_refused(&header, UNSALT_HEADER_LANE_RULE);
    header.flags = UNSALT_F_MARKER; /* any lane may carry a marker */
    uint8_t bytes[UNSALT_HEADER_SIZE];
    CHECK(unsalt_header_write(&header, bytes) == UNSALT_HEADER_OK);
}

TEST(header, ranges_end_at_the_sequence) {
    unsalt_header_t header = good;
    header.since = 18;
    check_refused(&header, UNSALT_HEADER_RANGE);
    header.flags = UNSALT_F_MARKER;
    check_refused(&header, UNSALT_HEADER_RANGE);
    header = good;
    header.una = 18;
    check_refused(&header, UNSALT_HEADER_RANGE);
}

/* A marker's own numbers are abandoned, so nothing below may be unresolved any more. */
TEST(header, a_marker_may_have_una_above_its_range) {
    unsalt_header_t header = good, out;
    header.flags = UNSALT_F_MARKER;
    header.una = 18;
    uint8_t bytes[UNSALT_HEADER_SIZE];
    CHECK(unsalt_header_write(&header, bytes) == UNSALT_HEADER_OK);
    CHECK(unsalt_header_read(bytes, sizeof bytes, &out) == UNSALT_HEADER_OK);
    check_same(&out, &header);
}

TEST(header, a_heartbeat_carries_no_sequence) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    unsalt_header_t out;
    memcpy(bytes, good_bytes, sizeof bytes);
    bytes[1] = UNSALT_F_HEARTBEAT;
    memset(bytes + 16, 0xff, 24); /* whatever stands there */
    CHECK(unsalt_header_read(bytes, sizeof bytes, &out) == UNSALT_HEADER_OK);
    CHECK_U64(out.flags, UNSALT_F_HEARTBEAT);
    CHECK_U64(out.lane, 2);
    CHECK_U64(out.epoch, good.epoch);
    CHECK_U64(out.seq, 0);
    CHECK_U64(out.since, 0);
    CHECK_U64(out.una, 0);
    memset(bytes, 0xee, sizeof bytes);
    unsalt_header_t in = good;
    in.flags = UNSALT_F_HEARTBEAT;
    CHECK(unsalt_header_write(&in, bytes) == UNSALT_HEADER_OK);
    static const uint8_t zeros[24];
    CHECK_BYTES(bytes + 16, 24, zeros, 24);
}

TEST(header, reading_reports_the_first_fault_of_the_table) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    unsalt_header_t header;
    memset(bytes, 0, sizeof bytes);
    CHECK(unsalt_header_read(bytes, 39, &header) == UNSALT_HEADER_SHORT);
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_UNKNOWN_VERSION);
    bytes[0] = 1;
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_LANES);
    bytes[5] = 2;
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_SEQ);
    bytes[23] = 1; /* seq 1, lane 0 of 2 */
    bytes[31] = 2; /* since 2 */
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_LANE_RULE);
    bytes[3] = 1;
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_RANGE);
    bytes[31] = 1;
    CHECK(unsalt_header_read(bytes, 40, &header) == UNSALT_HEADER_OK);
}

TEST(header, faults_have_texts) {
    CHECK_STR(unsalt_header_fault_text(UNSALT_HEADER_SHORT), "shorter than 40 bytes");
    CHECK_STR(unsalt_header_fault_text(UNSALT_HEADER__CNT), "?");
    CHECK_STR(unsalt_header_fault_text((unsalt_header_fault_t)-1), "?");
}

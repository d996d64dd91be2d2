/* SPDX-License-Identifier: BSD-2-Clause */
/* Which lane a result goes to, and what its header says. */
#include <kafka/relay_header.h>
#include <support/check.h>
#include <support/prng.h>

/* Number 17 of a session over four lanes, as its `unsalt` header tells it. */
static unsalt_core_in_t stamped(void) {
    return (unsalt_core_in_t){.seq = 17, .epoch = 9, .since = 5, .una = 15, .lane = 1, .lanes = 4,
                              .flags = UNSALT_F_RESEND, .kind = UNSALT_KIND_SEQUENCED};
}

static void check_header(const unsalt_header_t *is, uint16_t lane, uint16_t lanes, uint64_t since, uint64_t una) {
    CHECK_U64(is->lane, lane);
    CHECK_U64(is->lanes, lanes);
    CHECK_U64(is->since, since);
    CHECK_U64(is->una, una);
    CHECK_U64(is->seq, 17);
    CHECK_U64(is->epoch, 9);
}

TEST(relay_header, lanes_that_the_result_has_are_kept_with_all_that_is_proven) {
    unsalt_core_in_t in = stamped();
    unsalt_header_t header;
    CHECK(us_relay_header(&in, 4, false, &header));
    check_header(&header, 1, 4, 5, 15);
    CHECK_U64(header.flags, UNSALT_F_RESEND);
    CHECK(us_relay_header(&in, 6, false, &header)); /* more than enough: the session isn't spread over more */
    check_header(&header, 1, 4, 5, 15);
}

TEST(relay_header, spread_anew_nothing_is_proven) {
    unsalt_core_in_t in = stamped();
    unsalt_header_t header;
    CHECK(!us_relay_header(&in, 3, false, &header));
    check_header(&header, 2, 3, 17, 0);
    CHECK_U64(header.flags, UNSALT_F_RESEND);
    CHECK(!us_relay_header(&in, 1, false, &header));
    check_header(&header, 0, 1, 17, 0);
}

/* Where the partition of a lane is another program's choice, nobody knows what stands before what. */
TEST(relay_header, numbers_from_elsewhere_prove_nothing) {
    unsalt_core_in_t in = stamped();
    unsalt_header_t header;
    in.una = UNSALT_NO_SEQ;
    in.since = 0;
    CHECK(!us_relay_header(&in, 4, false, &header)); /* a salted key, S configured */
    check_header(&header, 1, 4, 17, 0);
    in.lanes = in.lane = 0;
    in.since = UNSALT_NO_SEQ;
    CHECK(!us_relay_header(&in, 5, false, &header)); /* its lane isn't known */
    check_header(&header, 2, 5, 17, 0);
}

TEST(relay_header, a_record_without_a_result_leaves_a_marker) {
    unsalt_core_in_t in = stamped();
    unsalt_header_t header;
    in.flags |= UNSALT_F_FIRST | UNSALT_F_LAST;
    CHECK(us_relay_header(&in, 4, true, &header));
    check_header(&header, 1, 4, 17, 15);
    CHECK_U64(header.flags, UNSALT_F_MARKER);
    CHECK(!us_relay_header(&in, 2, true, &header));
    check_header(&header, 1, 2, 17, 0);
    CHECK_U64(header.flags, UNSALT_F_MARKER);
}

TEST(relay_header, markers_keep_their_range) {
    unsalt_core_in_t in = stamped();
    unsalt_header_t header;
    in.flags = UNSALT_F_MARKER;
    in.kind = UNSALT_KIND_CONTROL;
    in.una = 20;
    CHECK(us_relay_header(&in, 4, false, &header));
    check_header(&header, 1, 4, 5, 20);
    CHECK(!us_relay_header(&in, 3, false, &header));
    check_header(&header, 2, 3, 5, 0);
    CHECK_U64(header.flags, UNSALT_F_MARKER);
}

/* Whatever a reader takes, it takes again; and what isn't kept says no more than its own number. */
TEST(relay_header, every_header_is_one) {
    struct prng prng = prng_start(0);
    for (int i = 0; i < 100000; i++) {
        uint8_t bytes[UNSALT_HEADER_SIZE];
        unsalt_header_t given, header;
        unsalt_core_in_t in = {.seq = prng_between(&prng, 1, 50), .epoch = prng_below(&prng, 3)};
        uint16_t lanes = (uint16_t)prng_between(&prng, 1, 9);
        in.lanes = (uint16_t)prng_between(&prng, 1, 9);
        in.lane = (uint16_t)(in.seq % in.lanes);
        in.since = prng_between(&prng, 0, in.seq);
        in.una = prng_between(&prng, 0, in.seq);
        in.flags = prng_chance(&prng, 20) ? UNSALT_F_MARKER : (uint16_t)prng_below(&prng, 4);
        in.una = prng_chance(&prng, 20) ? UNSALT_NO_SEQ : in.una;
        bool keeps = us_relay_header(&in, lanes, !(in.flags & UNSALT_F_MARKER) && prng_chance(&prng, 20), &header);
        CHECK_I64(unsalt_header_write(&header, bytes), UNSALT_HEADER_OK);
        CHECK_I64(unsalt_header_read(bytes, sizeof bytes, &given), UNSALT_HEADER_OK);
        CHECK(header.lanes <= lanes && header.seq == in.seq && header.epoch == in.epoch);
        CHECK(!keeps || header.una == in.una);
        CHECK(keeps || header.una == 0);
    }
}

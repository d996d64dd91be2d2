/* SPDX-License-Identifier: BSD-2-Clause */
/* The order never depends on the lanes: not on their number, nor on a producer that keeps to its own rule. */
#include <support/check.h>
#include <support/prng.h>
#include <support/stage.h>

static void all_out(struct stage *s, uint64_t n) {
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_RELEASED], n);
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_U64(stage_counters(s).state[UNSALT_STATE_LATE], 0);
    CHECK_U64(s->last.seq, n);
    stage_close(s);
}

TEST(core_lanes, a_broken_lane_rule_costs_time_and_nothing_else) {
    struct stage s;
    stage_default(&s, 4);
    s.in.lanes = 4;
    struct prng prng = prng_start(1);
    uint64_t numbers[1000];
    for (uint64_t i = 0; i < 1000; i++)
        numbers[i] = i + 1;
    for (uint64_t i = 999; i > 0; i--) {
        uint64_t j = prng_below(&prng, i + 1), kept = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = kept;
    }
    for (uint64_t i = 0; i < 1000; i++) {
        s.in.lane = (uint16_t)prng_below(&prng, 4); /* not number mod 4 */
        stage_push(&s, s.in.lane, "a", numbers[i]);
    }
    all_out(&s, 1000);
}

TEST(core_lanes, copies_are_found_in_a_broken_lane_too) {
    struct stage s;
    stage_default(&s, 2);
    s.in.lanes = 2;
    static const uint64_t numbers[] = {9, 5, 7, 3, 8, 2, 6};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        s.in.lane = (uint16_t)(i % 2);
        stage_push(&s, 0, "a", numbers[i]);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        s.in.lane = (uint16_t)((i + i / 2) % 2);
        stage_push(&s, 1, "a", numbers[i]);
    }
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DUPLICATE], 7);
    stage_push(&s, 0, "a", 4);
    stage_took(&s);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4 a5 a6 a7 a8 a9");
    stage_close(&s);
}

TEST(core_lanes, their_number_changes_while_the_session_lives) {
    struct stage s;
    stage_default(&s, 8);
    static const struct {
        uint16_t lanes;
        uint64_t first, last;
    } runs[] = {{1, 1, 10}, {4, 11, 50}, {2, 51, 60}, {8, 61, 200}, {1, 201, 210}, {3, 211, 300}};
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        s.in.lanes = runs[i].lanes;
        s.in.since = runs[i].first;
        for (uint16_t lane = runs[i].lanes; lane-- > 0;) /* one lane after the other, the last one first */
            for (uint64_t seq = runs[i].first; seq <= runs[i].last; seq++)
                if (seq % runs[i].lanes == lane)
                    stage_push_lane(&s, lane, "a", seq);
    }
    all_out(&s, 300);
}

TEST(core_lanes, of_the_new_number_run_ahead_of_the_old) {
    struct stage s;
    stage_default(&s, 4);
    s.in.lanes = 4;
    s.in.since = 21;
    for (uint64_t seq = 40; seq > 20; seq--)
        stage_push_lane(&s, seq % 4, "a", seq);
    s.in.lanes = 2;
    s.in.since = 1;
    for (uint64_t seq = 1; seq <= 20; seq++)
        stage_push_lane(&s, seq % 2, "a", seq);
    all_out(&s, 40);
}

TEST(core_lanes, many_streams) {
    struct stage s;
    stage_default(&s, 4);
    s.lazy = true;
    s.in.lanes = UINT16_MAX;
    for (uint64_t seq = 70000; seq >= 1; seq--) {
        stage_push_lane(&s, seq % 4, "a", seq);
        s.took[0] = '\0';
    }
    while (stage_pull(&s, 1000))
        s.took[0] = '\0';
    all_out(&s, 70000);
}

TEST(core_lanes, the_same_lane_in_several_partitions) {
    struct stage s;
    stage_default(&s, 3);
    s.in.lanes = 2;
    for (uint64_t seq = 30; seq >= 1; seq--)
        stage_push_lane(&s, seq % 3, "a", seq);
    all_out(&s, 30);
}

TEST(core_lanes, unknown_and_known_ones_mixed) {
    struct stage s;
    stage_default(&s, 4);
    for (uint64_t seq = 60; seq >= 1; seq--) {
        s.in.lanes = seq % 3 ? 4 : 0;
        s.in.lane = s.in.lanes ? (uint16_t)(seq % 4) : 0;
        stage_push(&s, seq % 4, "a", seq);
    }
    all_out(&s, 60);
}

TEST(core_lanes, configured_for_records_that_do_not_tell) {
    struct stage s;
    stage_init(&s);
    s.params.lanes = 4;
    stage_open(&s);
    stage_parts(&s, 0, 4, false, 0, 0);
    for (uint64_t seq = 60; seq >= 1; seq--)
        stage_push(&s, seq % 4, "a", seq);
    all_out(&s, 60);
}

/* "a" of two lanes, each in a partition: what its lane 1 shows, then 2 and 4 of lane 0, so that 6 is missing. */
static uint16_t lanes_of_what_is_missing(size_t at_once) {
    static const uint64_t numbers[] = {5, 7, 9, 1, 3, 2, 4}; /* 1 and 3 were sent again, behind higher ones */
    unsalt_core_in_t in[7];
    unsalt_core_out_t out[16];
    unsalt_core_params_t params;
    unsalt_core_session_info_t info;
    size_t n;
    int status;
    unsalt_core_params_init(&params);
    unsalt_core_t *core = unsalt_core_new(&params, NULL, 0);
    CHECK(core);
    for (int32_t lane = 0; lane < 2; lane++)
        CHECK(unsalt_core_assign(core, &(unsalt_core_partition_t){.set_size = 2, .lane = lane}) == lane);
    for (size_t i = 0; i < 7; i++)
        in[i] = (unsalt_core_in_t){.session = "a", .session_len = 1, .part = numbers[i] % 2, .seq = numbers[i],
                                   .since = 1, .una = UNSALT_NO_SEQ, .offset = (int64_t)i, .timestamp = -1,
                                   .lane = numbers[i] % 2, .lanes = 2};
    for (size_t i = 0; i < 7;) {
        size_t most = i == 0 || i > 3 ? 1 : at_once, some = 4 - i < most ? 4 - i : most;
        some = i > 3 ? 1 : some;
        CHECK_U64(unsalt_core_push(core, in + i, some, SEC, out, &n, &status), some);
        unsalt_core_pull(core, SEC, out, 16);
        i += some;
    }
    CHECK(unsalt_core_session_info(core, 0, "a", 1, &info) == UNSALT_CORE_OK);
    CHECK_U64(info.cursor, 6);
    CHECK_U64(info.lowest, 7);
    unsalt_core_destroy(core);
    return info.lanes;
}

TEST(core_lanes, how_far_they_are_known_does_not_depend_on_batches) {
    CHECK_U64(lanes_of_what_is_missing(1), 2);
    CHECK_U64(lanes_of_what_is_missing(3), 2);
}

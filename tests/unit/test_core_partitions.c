/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 7: assignments, generations, positions and what a revoke leaves behind. */
#include <support/check.h>
#include <support/stage.h>

TEST(core_partitions, indexes_are_given_from_the_smallest_free_one) {
    struct stage s;
    stage_default(&s, 3);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    CHECK_U64(unsalt_core_generation(s.core, 1), 0);
    CHECK_U64(stage_counters(&s).partitions, 2);
    CHECK_U64(stage_assign(&s, 0, 3, -1, 0, 0), 1);
    CHECK_U64(stage_assign(&s, 0, 3, -1, 0, 0), 3);
    CHECK(unsalt_core_generation(s.core, 1) != 0);
    stage_close(&s);
}

TEST(core_partitions, bad_arguments_are_refused) {
    struct stage s;
    stage_default(&s, 1);
    unsalt_core_partition_t partition = {.set_size = 1, .lane = -1, .start_offset = -2};
    CHECK_I64(unsalt_core_assign(s.core, &partition), UNSALT_CORE_INVAL);
    partition.start_offset = 0;
    partition.set_size = 65536;
    CHECK_I64(unsalt_core_assign(s.core, &partition), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_revoke(s.core, UINT32_MAX, s.now), UNSALT_CORE_INVAL);
    CHECK_U64(stage_counters(&s).partitions, 1);
    stage_close(&s);
}

TEST(core_partitions, there_may_be_65535) {
    struct stage s;
    stage_init(&s); /* the counting allocator moves at every resize: too slow for this */
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    s.core = unsalt_core_new(&params, NULL, 0);
    CHECK(s.core);
    unsalt_core_partition_t partition = {.lane = -1};
    for (int i = 0; i < 65535; i++)
        CHECK_I64(unsalt_core_assign(s.core, &partition), i);
    CHECK_I64(unsalt_core_assign(s.core, &partition), UNSALT_CORE_LIMIT);
    unsalt_core_destroy(s.core);
}

TEST(core_partitions, a_position_is_known_before_anything_is_read) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 0, -1, 500, 100);
    CHECK_I64(unsalt_core_position(s.core, 0), 500);
    stage_assign(&s, 0, 0, -1, -1, -1);
    CHECK_I64(unsalt_core_position(s.core, 1), -1);
    unsalt_core_eof(s.core, 1, 42, s.now);
    CHECK_I64(unsalt_core_position(s.core, 1), 42);
    stage_close(&s);
}

TEST(core_partitions, acknowledgements_in_any_order_move_the_position_at_the_oldest) {
    struct stage s;
    stage_default(&s, 1);
    uint64_t tickets[10];
    for (uint64_t i = 0; i < 10; i++) {
        s.next[0] = (int64_t)(i < 5 ? i * 10 : i * 1000000000000); /* compaction and transactions leave holes */
        stage_push(&s, 0, "a", i + 1);
        tickets[i] = s.last.ticket;
    }
    uint32_t generation = unsalt_core_generation(s.core, 0);
    for (int i = 9; i >= 1; i--) {
        CHECK_I64(unsalt_core_ack(s.core, 0, generation, tickets[i]), UNSALT_CORE_OK);
        CHECK_I64(unsalt_core_position(s.core, 0), 0);
    }
    CHECK_U64(stage_counters(&s).unacked, 1);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation, tickets[0]), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation, tickets[0]), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), 9000000000001);
    CHECK_U64(stage_counters(&s).unacked, 0);
    unsalt_core_eof(s.core, 0, 9000000000005, s.now);
    CHECK_I64(unsalt_core_position(s.core, 0), 9000000000005);
    unsalt_core_eof(s.core, 0, 7, s.now);
    CHECK_I64(unsalt_core_position(s.core, 0), 9000000000005);
    stage_close(&s);
}

TEST(core_partitions, held_records_hold_the_position_and_skipped_ones_do_not) {
    struct stage s;
    stage_default(&s, 2);
    s.ack = true;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 0, "b", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 0);
    stage_push(&s, 1, "a", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 2);
    CHECK_I64(unsalt_core_position(s.core, 1), 1);
    stage_close(&s);
}

TEST(core_partitions, tickets_that_were_never_given_out_are_refused) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    uint32_t generation = unsalt_core_generation(s.core, 0);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation, s.last.ticket + 1000), UNSALT_CORE_INVAL);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation + 1, s.last.ticket), UNSALT_CORE_FENCED);
    CHECK(unsalt_core_ack(s.core, 9, generation, s.last.ticket) < 0);
    CHECK_U64(stage_counters(&s).unacked, 1);
    stage_close(&s);
}

TEST(core_partitions, the_largest_offset_there_is) {
    struct stage s;
    stage_default(&s, 1);
    s.ack = true;
    s.next[0] = INT64_MAX - 1;
    stage_push(&s, 0, "a", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), INT64_MAX);
    stage_close(&s);
}

TEST(core_partitions, a_revoke_gives_back_what_is_held_and_fences_the_rest) {
    struct stage s;
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 1);
    uint64_t ticket = s.last.ticket;
    uint32_t generation = s.last.generation;
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 4);
    stage_took(&s);
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    CHECK_I64(unsalt_core_position(s.core, 0), -1);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation, ticket), UNSALT_CORE_FENCED);
    stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "revoked:a3 revoked:a4");
    CHECK_U64(stage_counters(&s).sessions, 0);
    CHECK_U64(stage_counters(&s).unacked, 0);
    CHECK_U64(stage_assign(&s, 0, 1, -1, 0, 0), 0);
    CHECK(unsalt_core_generation(s.core, 0) != generation);
    CHECK_I64(unsalt_core_ack(s.core, 0, generation, ticket), UNSALT_CORE_FENCED);
    for (uint64_t seq = 1; seq <= 3; seq++)
        stage_push(&s, 0, "a", seq);
    CHECK_STR(stage_took(&s), "a1 a2 a3");
    stage_close(&s);
}

TEST(core_partitions, a_record_for_a_revoked_partition_is_refused) {
    struct stage s;
    stage_default(&s, 2);
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    CHECK(!stage_push(&s, 1, "a", 1));
    CHECK_I64(s.status, UNSALT_CORE_INVAL);
    stage_close(&s);
}

TEST(core_partitions, what_is_read_again_after_a_revoke_is_no_copy) {
    struct stage s;
    stage_default(&s, 2);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 1, "a", 2);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 1, "a", 4);
    stage_push(&s, 1, "a", 6); /* waits for 5 */
    CHECK_STR(stage_took(&s), "a1 a2 a3 a4");
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(stage_assign(&s, 0, 2, -1, 0, 0), 0); /* nothing was acknowledged */
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 5);
    stage_wait(&s, 10 * SEC);
    stage_horizon(&s, 0, 1);
    const char *took = stage_took(&s);
    CHECK_THAT(strstr(took, "a1") && strstr(took, "a3") && strstr(took, "a5") && strstr(took, "a6"), "took %s", took);
    CHECK_THAT(!strstr(took, "duplicate"), "took %s", took);
    stage_close(&s);
}

TEST(core_partitions, a_pending_release_of_a_revoked_partition_is_revoked_and_counted) {
    struct stage s;
    stage_default(&s, 2);
    s.lazy = true;
    stage_push(&s, 0, "a", 2);
    stage_push(&s, 1, "a", 3);
    stage_push(&s, 0, "a", 1);
    stage_took(&s);
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK(strstr(stage_took(&s), "revoked:a2"));
    CHECK_I64(unsalt_core_revoke(s.core, 1, s.now), UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_HELD], 0);
    stage_close(&s);
}

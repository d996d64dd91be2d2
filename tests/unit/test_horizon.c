/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/horizon.h>
#include <support/check.h>

/* A question at t, answered with `end` at once. */
static bool asked_and_answered(struct us_horizon *horizon, uint64_t t, int64_t end) {
    us_horizon_ask(horizon, t);
    return us_horizon_answer(horizon, end);
}

TEST(horizon, moves_when_reading_has_passed_the_answer) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    CHECK(!asked_and_answered(&horizon, 1000, 10));
    CHECK_U64(horizon.reached, 0);
    CHECK(!us_horizon_passed(&horizon, 9));
    CHECK(us_horizon_passed(&horizon, 10));
    CHECK_U64(horizon.reached, 1000);
    CHECK(!us_horizon_passed(&horizon, 11));
}

TEST(horizon, moves_at_once_when_the_end_was_passed_already) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    us_horizon_passed(&horizon, 12);
    us_horizon_passed(&horizon, 7); /* never back */
    CHECK(asked_and_answered(&horizon, 1000, 12));
    CHECK_U64(horizon.reached, 1000);
}

TEST(horizon, an_empty_partition_is_passed) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    CHECK(asked_and_answered(&horizon, 5, 0));
    us_horizon_init(&horizon, 700); /* joined at its end */
    CHECK(asked_and_answered(&horizon, 5, 700));
}

TEST(horizon, an_unknown_start_has_passed_nothing) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, -1);
    CHECK(!asked_and_answered(&horizon, 5, 0));
    CHECK(us_horizon_passed(&horizon, 0)); /* the end-of-partition event of an empty log */
    CHECK_U64(horizon.reached, 5);
}

TEST(horizon, asks_once_for_what_is_needed) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    CHECK(us_horizon_wants(&horizon, 100));
    us_horizon_ask(&horizon, 110);
    CHECK(!us_horizon_wants(&horizon, 100));
    CHECK(!us_horizon_wants(&horizon, 200)); /* one at a time */
    us_horizon_answer(&horizon, 50);
    CHECK(!us_horizon_wants(&horizon, 110)); /* the pending one serves */
    CHECK(us_horizon_wants(&horizon, 111));
    us_horizon_passed(&horizon, 50);
    CHECK(!us_horizon_wants(&horizon, 110)); /* reached */
    CHECK(us_horizon_wants(&horizon, 111));
}

TEST(horizon, a_failed_question_may_be_asked_again) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 100);
    CHECK(!asked_and_answered(&horizon, 10, -1));
    CHECK_U64(horizon.reached, 0);
    CHECK(us_horizon_wants(&horizon, 5));
    CHECK(asked_and_answered(&horizon, 20, 100));
    CHECK_U64(horizon.reached, 20);
}

TEST(horizon, an_answer_nobody_asked_for_is_ignored) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 100);
    CHECK(!us_horizon_answer(&horizon, 0));
    CHECK(asked_and_answered(&horizon, 10, 100));
    CHECK(!us_horizon_answer(&horizon, 100));
    CHECK_U64(horizon.reached, 10);
    us_horizon_ask(&horizon, 20);
    CHECK(!us_horizon_answer(&horizon, -1));
    CHECK(!us_horizon_answer(&horizon, 100)); /* it came after its failure had been reported */
    CHECK_U64(horizon.reached, 10);
}

/*
 * A committed offset above the end of a log that was made anew: reading will begin elsewhere, and has passed
 * nothing.
 */
TEST(horizon, an_end_below_the_start_proves_nothing) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 1000);
    CHECK(!asked_and_answered(&horizon, 10, 50));
    CHECK_U64(horizon.reached, 0);
    CHECK(!us_horizon_passed(&horizon, 1));
    CHECK(us_horizon_passed(&horizon, 50));
    CHECK_U64(horizon.reached, 10);
}

/* A busy partition: every answer lies further away, and reading follows at its own pace. */
TEST(horizon, a_stream_of_questions_does_not_move_the_goal) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    for (int i = 0; i < US_HORIZON_PENDING; i++) {
        CHECK(us_horizon_wants(&horizon, UINT64_MAX));
        asked_and_answered(&horizon, (uint64_t)i + 1, 10 * (i + 1));
    }
    CHECK(!us_horizon_wants(&horizon, UINT64_MAX)); /* all slots are pending */
    CHECK(us_horizon_passed(&horizon, 10));
    CHECK_U64(horizon.reached, 1);
    CHECK(us_horizon_wants(&horizon, UINT64_MAX));
    CHECK(us_horizon_passed(&horizon, 55)); /* several at once */
    CHECK_U64(horizon.reached, 5);
    CHECK_U64(horizon.count, US_HORIZON_PENDING - 5);
    CHECK(us_horizon_passed(&horizon, 1000));
    CHECK_U64(horizon.reached, US_HORIZON_PENDING);
    CHECK_U64(horizon.count, 0);
}

/* The log lost its tail in a leader election: the later question has the nearer end and settles the earlier one. */
TEST(horizon, a_nearer_end_settles_earlier_questions) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    asked_and_answered(&horizon, 1, 100);
    asked_and_answered(&horizon, 2, 200);
    asked_and_answered(&horizon, 3, 90);
    CHECK_U64(horizon.count, 1);
    CHECK(us_horizon_passed(&horizon, 90));
    CHECK_U64(horizon.reached, 3);
}

TEST(horizon, stated_directly_it_never_goes_back) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, -1);
    asked_and_answered(&horizon, 50, 10);
    asked_and_answered(&horizon, 150, 20);
    CHECK(us_horizon_set(&horizon, 100));
    CHECK_U64(horizon.count, 1); /* the question of 50 is settled */
    CHECK(!us_horizon_set(&horizon, 100));
    CHECK(!us_horizon_set(&horizon, 99));
    CHECK_U64(horizon.reached, 100);
    CHECK(us_horizon_passed(&horizon, 20));
    CHECK_U64(horizon.reached, 150);
}

TEST(horizon, an_answer_older_than_the_horizon_changes_nothing) {
    struct us_horizon horizon;
    us_horizon_init(&horizon, 0);
    us_horizon_ask(&horizon, 10);
    us_horizon_set(&horizon, 20);
    CHECK(!us_horizon_answer(&horizon, 1000));
    CHECK_U64(horizon.reached, 20);
    CHECK_U64(horizon.count, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that counts false gaps: each kind of them is planted here, and each kind of gap that is none. */
#include <checker/checker.h>
#include <support/check.h>

TestSuite(checker_gaps, .timeout = 30);

static checker_log_t *accepted, *delivered;
static struct checker_report report;

static void begin(void) {
    accepted = checker_log_new();
    delivered = checker_log_new();
}

static void end(void) {
    checker_log_free(accepted);
    checker_log_free(delivered);
}

/* Acknowledged at the time `at`. */
static void accept(const char *session, uint64_t epoch, uint64_t seq, uint64_t at) {
    const struct checker_record record = {session, strlen(session), epoch, seq, 0, (int64_t)at, at};
    checker_log_record(accepted, &record);
}

static void deliver(const char *session, uint64_t seq) {
    const struct checker_record record = {session, strlen(session), 1, seq, 0, (int64_t)seq, 0};
    checker_log_record(delivered, &record);
}

static void give_up(const char *session, uint64_t epoch, uint64_t first, uint64_t last, uint64_t due) {
    const struct checker_gap gap = {session, strlen(session), epoch, first, last, due};
    checker_log_gap(delivered, &gap);
}

/* Numbers 1..10 of a session, acknowledged at 10, 20, ... 100. */
static void accept_ten(const char *session) {
    for (uint64_t seq = 1; seq <= 10; seq++)
        accept(session, 1, seq, 10 * seq);
}

static void judged(uint64_t gaps, uint64_t false_gaps, uint64_t numbers) {
    checker_judge(accepted, delivered, &report);
    CHECK_U64(report.gaps, gaps);
    CHECK_U64(report.false_gaps, false_gaps);
    CHECK_U64(report.false_numbers, numbers);
}

Test(checker_gaps, acknowledged_before_the_due_time, .init = begin, .fini = end) {
    accept_ten("a");
    give_up("a", 1, 5, 5, 51);
    judged(1, 1, 1);
    CHECK_STR(report.fault, "session a: 5 was given up in 5..5 and had been acknowledged before that was due");
    CHECK(!checker_clean(&report));
}

/* Late is late, even if it is right behind the due time. */
Test(checker_gaps, acknowledged_at_the_due_time_or_after, .init = begin, .fini = end) {
    accept_ten("a");
    for (uint64_t seq = 1; seq <= 10; seq++)
        deliver("a", seq);
    give_up("a", 1, 5, 5, 50);
    give_up("a", 1, 6, 6, 1);
    judged(2, 0, 0);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
}

Test(checker_gaps, never_acknowledged, .init = begin, .fini = end) {
    accept_ten("a");
    give_up("a", 1, 11, 1000, UINT64_MAX);
    give_up("b", 1, 1, 10, UINT64_MAX);
    judged(2, 0, 0);
}

Test(checker_gaps, one_false_number_makes_a_range_false, .init = begin, .fini = end) {
    accept("a", 1, 1, 10);
    accept("a", 1, 5, 50);
    accept("a", 1, 6, 60);
    accept("a", 1, 9, 90);
    give_up("a", 1, 2, 8, 55);
    judged(1, 1, 1);
}

Test(checker_gaps, both_ends_belong_to_the_range, .init = begin, .fini = end) {
    accept_ten("a");
    give_up("a", 1, 3, 5, UINT64_MAX);
    judged(1, 1, 3);
}

Test(checker_gaps, every_gap_counts, .init = begin, .fini = end) {
    accept_ten("a");
    accept_ten("b");
    give_up("a", 1, 2, 3, 25);
    give_up("a", 1, 7, 7, 70);
    give_up("b", 1, 1, 10, 45);
    judged(3, 2, 5);
}

/* The first acknowledgement of several copies is the one that counts. */
Test(checker_gaps, a_copy_that_was_acknowledged_earlier, .init = begin, .fini = end) {
    accept("a", 1, 5, 90);
    accept("a", 1, 5, 40);
    accept("a", 1, 5, 80);
    give_up("a", 1, 5, 5, 50);
    judged(1, 1, 1);
}

Test(checker_gaps, sessions_and_epochs_are_kept_apart, .init = begin, .fini = end) {
    accept("a", 1, 5, 10);
    accept("b", 2, 5, 10);
    give_up("a", 2, 5, 5, 50);
    give_up("b", 1, 5, 5, 50);
    judged(2, 0, 0);
    give_up("b", 2, 5, 5, 50);
    judged(3, 1, 1);
}

/* A test that forgets to note times is told, instead of passing for that. */
Test(checker_gaps, a_time_that_was_not_noted_is_before_everything, .init = begin, .fini = end) {
    accept("a", 1, 5, 0);
    give_up("a", 1, 5, 5, 1);
    judged(1, 1, 1);
}

/* What a consumer gave up and delivered all the same was given up all the same. */
Test(checker_gaps, a_late_delivery_does_not_make_it_right, .init = begin, .fini = end) {
    accept_ten("a");
    for (uint64_t seq = 1; seq <= 10; seq++)
        deliver("a", seq);
    give_up("a", 1, 4, 4, UINT64_MAX);
    judged(1, 1, 1);
    CHECK_U64(report.lost, 0);
    CHECK(!checker_clean(&report));
}

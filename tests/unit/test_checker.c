/* SPDX-License-Identifier: BSD-2-Clause */
/* The checker judges the library in the demo and in the broker tests, so each fault it must see is planted here. */
#include <checker/checker.h>
#include <stdio.h>
#include <support/check.h>

TestSuite(checker, .timeout = 30);

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

static struct checker_record named(const char *session, uint64_t seq, int32_t partition, int64_t offset) {
    return (struct checker_record){session, strlen(session), 1, seq, partition, offset, 0};
}

/* Number n of a session with two lanes stands in partition n mod 2 at offset n / 2. */
static void accept(const char *session, uint64_t seq) {
    struct checker_record record = named(session, seq, (int32_t)(seq % 2), (int64_t)(seq / 2));
    checker_log_record(accepted, &record);
}

static void deliver(const char *session, uint64_t seq) {
    struct checker_record record = named(session, seq, (int32_t)(seq % 2), (int64_t)(seq / 2));
    checker_log_record(delivered, &record);
}

static void accept_range(const char *session, uint64_t first, uint64_t last) {
    for (; first <= last; first++)
        accept(session, first);
}

static void deliver_range(const char *session, uint64_t first, uint64_t last) {
    for (; first <= last; first++)
        deliver(session, first);
}

static int judged_clean(void) {
    checker_judge(accepted, delivered, &report);
    return checker_clean(&report);
}

Test(checker, right_order_is_clean, .init = begin, .fini = end) {
    accept_range("a", 1, 100);
    accept_range("b", 1, 50);
    deliver_range("b", 1, 25);
    deliver_range("a", 1, 100);
    deliver_range("b", 26, 50);
    CHECK_THAT(judged_clean(), "%s", report.fault);
    CHECK_U64(report.records, 150);
    CHECK_U64(report.delivered, 150);
    CHECK_U64(report.displacement, 0);
    CHECK_STR(report.fault, "");
}

Test(checker, order_of_acceptance_does_not_matter, .init = begin, .fini = end) {
    accept("a", 3);
    accept("a", 1);
    accept("a", 2);
    deliver_range("a", 1, 3);
    CHECK_THAT(judged_clean(), "%s", report.fault);
}

Test(checker, sees_two_records_swapped, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 4);
    deliver("a", 6);
    deliver("a", 5);
    deliver_range("a", 7, 10);
    CHECK(!judged_clean());
    CHECK_U64(report.out_of_order, 1);
    CHECK_U64(report.lost, 0);
    CHECK_U64(report.displacement, 1);
    CHECK_STR(report.fault, "session a: 5 was delivered after 6");
}

Test(checker, measures_displacement, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 2, 10);
    deliver("a", 1);
    CHECK(!judged_clean());
    CHECK_U64(report.out_of_order, 1);
    CHECK_U64(report.displacement, 9);
}

Test(checker, sees_a_lost_record, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 6);
    deliver_range("a", 8, 10);
    CHECK(!judged_clean());
    CHECK_U64(report.lost, 1);
    CHECK_U64(report.out_of_order, 0);
    CHECK_STR(report.fault, "session a: 7 was accepted and never delivered");
}

Test(checker, sees_a_record_from_nowhere, .init = begin, .fini = end) {
    accept_range("a", 1, 3);
    deliver_range("a", 1, 4);
    deliver("stranger", 1);
    CHECK(!judged_clean());
    CHECK_U64(report.unknown, 2);
}

Test(checker, tells_copies_from_repetitions, .init = begin, .fini = end) {
    accept_range("a", 1, 5);
    accept("a", 3);
    deliver_range("a", 1, 5);
    CHECK_THAT(judged_clean(), "%s", report.fault);
    CHECK_U64(report.copies, 1);
    CHECK_U64(report.records, 5);
    deliver("a", 3);
    CHECK(!judged_clean());
    CHECK_U64(report.repeated, 1);
    CHECK_U64(report.out_of_order, 0);
}

Test(checker, counts_holes, .init = begin, .fini = end) {
    accept_range("a", 2, 5);
    accept_range("a", 9, 10);
    accept_range("b", 1, 3);
    deliver_range("a", 2, 5);
    deliver_range("a", 9, 10);
    deliver_range("b", 1, 3);
    CHECK_THAT(judged_clean(), "%s", report.fault);
    CHECK_U64(report.holes, 2);
    CHECK_U64(report.hole_numbers, 4);
}

Test(checker, epochs_are_compared_before_numbers, .init = begin, .fini = end) {
    struct checker_record record = named("a", 1, 0, 9);
    accept_range("a", 1, 3);
    deliver_range("a", 1, 3);
    record.epoch = 2;
    checker_log_record(accepted, &record);
    checker_log_record(delivered, &record);
    CHECK_THAT(judged_clean(), "%s", report.fault);
    CHECK_U64(report.records, 4);
    CHECK_U64(report.holes, 0);
}

Test(checker, a_later_run_may_repeat_above_the_commit, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 7);
    checker_log_commit(delivered, 0, 2);
    checker_log_commit(delivered, 1, 2);
    checker_log_run(delivered);
    deliver_range("a", 4, 10);
    CHECK_THAT(judged_clean(), "%s", report.fault);
    CHECK_U64(report.again, 4);
    CHECK_U64(report.delivered, 10);
}

Test(checker, sees_a_record_from_below_the_commit, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 7);
    checker_log_commit(delivered, 0, 3);
    checker_log_run(delivered);
    deliver_range("a", 4, 10);
    CHECK(!judged_clean());
    CHECK_U64(report.below_commit, 1);
    CHECK_STR(report.fault, "session a: 4 was delivered from below a committed offset");
}

Test(checker, a_lower_commit_does_not_take_a_higher_one_back, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 7);
    checker_log_commit(delivered, 0, 3);
    checker_log_commit(delivered, 0, 1);
    checker_log_run(delivered);
    deliver_range("a", 4, 10);
    CHECK(!judged_clean());
    CHECK_U64(report.below_commit, 1);
}

Test(checker, sees_a_record_that_a_later_run_found_too_late, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 4);
    deliver_range("a", 6, 8);
    checker_log_run(delivered);
    deliver("a", 5);
    deliver_range("a", 9, 10);
    CHECK(!judged_clean());
    CHECK_U64(report.overtaken, 1);
    CHECK_U64(report.out_of_order, 0);
    CHECK_U64(report.lost, 0);
}

Test(checker, sees_disorder_within_a_later_run, .init = begin, .fini = end) {
    accept_range("a", 1, 10);
    deliver_range("a", 1, 10);
    checker_log_run(delivered);
    deliver("a", 8);
    deliver("a", 7);
    CHECK(!judged_clean());
    CHECK_U64(report.out_of_order, 1);
}

Test(checker, keeps_many_sessions_apart, .init = begin, .fini = end) {
    char name[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "s-%d", i);
        accept_range(name, 1, 3);
    }
    for (int i = 4999; i >= 0; i--) {
        snprintf(name, sizeof name, "s-%d", i);
        deliver_range(name, 1, i == 77 ? 2 : 3);
    }
    CHECK(!judged_clean());
    CHECK_U64(report.records, 15000);
    CHECK_U64(report.lost, 1);
    CHECK_STR(report.fault, "session s-77: 3 was accepted and never delivered");
}

Test(checker, payload_round_trip) {
    static const char *const words[3] = {"sessionId", "globalSeq", "run"};
    struct checker_record record = {"till 4", 6, UINT64_MAX, UINT64_MAX - 1, 0, 0, 0}, back = {0};
    char buf[128];
    CHECK_U64(checker_payload(buf, 20, words, &record), 0);
    CHECK_U64(checker_payload(buf, sizeof buf, words, &record), sizeof buf);
    CHECK_U64(checker_parse(buf, sizeof buf, &back), 0);
    CHECK_U64(back.session_len, 6);
    CHECK(memcmp(back.session, "till 4", 6) == 0);
    CHECK_U64(back.seq, UINT64_MAX - 1);
    CHECK_U64(back.epoch, UINT64_MAX);
}

Test(checker, payload_of_another_form_is_refused) {
    static const char *const others[] = {"", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"s", "{\"a\":\"s\"}",
                                         "{\"a\":\"s\",\"b\":}", "{\"a\":\"s\",\"b\":12", "plain"};
    struct checker_record record;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_THAT(checker_parse(others[i], strlen(others[i]), &record) == -1, "%s", others[i]);
    CHECK(checker_parse(NULL, 0, &record) == -1);
}

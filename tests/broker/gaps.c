/* SPDX-License-Identifier: BSD-2-Clause */
/* What never comes, what comes twice, and what comes late. */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <stdlib.h>
#include <support/check.h>

/* Sends first..last of a session; those in `missing` (terminated by 0) are left out. */
static void send_range(struct sender *sender, const char *session, uint64_t first, uint64_t last,
                       const uint64_t *missing) {
    for (; first <= last; first++) {
        const uint64_t *m;
        for (m = missing; m && *m && *m != first; m++)
            ;
        if (!m || !*m)
            sender_send(sender, session, first);
    }
}

static void judge(const checker_log_t *accepted, const checker_log_t *delivered, struct checker_report *report) {
    checker_judge(accepted, delivered, report);
    checker_print(report, "judged", stderr);
    CHECK_THAT(checker_clean(report), "%s", report->fault);
}

static void give_up(const char *layout, enum sender_form form) {
    static const uint64_t missing[] = {2000, 2001, 2002, 0}, none[] = {0};
    struct scene scene = {.layout = layout, .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct sender *sender;
    struct reader reader;

    scene_open(&scene, "gap");
    sender = sender_open(&scene, form, 4, accepted);
    reader_open(&reader, &scene, NULL, NULL, delivered);
    reader_wait_assigned(&reader);
    send_range(sender, "hot", 1, 4000, missing);
    send_range(sender, "other", 1, 4000, none);
    sender_flush(sender);
    CHECK_U64(reader_take(&reader, 7997, 20), 7997);
    CHECK_U64(reader.events[UNSALT_EVENT_GAP], 1);
    CHECK_U64(reader.gaps[UNSALT_GAP_TIMEOUT], 1);
    CHECK_U64(reader.last_gap.first, 2000);
    CHECK_U64(reader.last_gap.last, 2002);
    CHECK_THAT(reader.last_gap.waited_ns >= 500000000, "given up after %" PRIu64 " ns", reader.last_gap.waited_ns);
    CHECK(reader_stats(&reader).conserved);
    sender_close(sender);
    CHECK_U64(reader_close(&reader), 0);
    judge(accepted, delivered, &report);
    CHECK_U64(report.holes, 1);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(gaps, given_up_with_header_in_hash, .timeout = 60) {
    give_up("hash", SENDER_STAMPED);
}

Test(gaps, given_up_with_json_in_topics, .timeout = 60) {
    give_up("topics", SENDER_JSON);
}

Test(gaps, a_late_record_is_delivered_and_flagged, .timeout = 60) {
    static const uint64_t missing[] = {50, 0};
    struct scene scene = {.layout = "topics", .partitions = 2, .lanes = 2};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct sender *sender;
    struct reader reader;

    scene_open(&scene, "late");
    sender = sender_open(&scene, SENDER_STAMPED, 2, accepted);
    reader_open(&reader, &scene, NULL, NULL, delivered);
    reader_wait_assigned(&reader);
    send_range(sender, "hot", 1, 100, missing);
    sender_flush(sender);
    CHECK_U64(reader_take(&reader, 99, 20), 99);
    CHECK_U64(reader.gaps[UNSALT_GAP_TIMEOUT], 1);
    sender_send(sender, "hot", 50);
    sender_close(sender);
    CHECK_U64(reader_take(&reader, 1, 20), 1);
    CHECK_U64(reader.events[UNSALT_EVENT_LATE], 1);
    CHECK_U64(reader_stats(&reader).state[UNSALT_STATE_LATE], 1);
    CHECK_U64(reader_close(&reader), 0);
    checker_judge(accepted, delivered, &report);
    CHECK_U64(report.lost, 0);
    CHECK_U64(report.out_of_order, 1);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(gaps, duplicates_are_dropped_and_counted, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 6, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct sender *sender;
    struct reader reader;
    uint64_t n, copies = 0;

    scene_open(&scene, "twice");
    sender = sender_open(&scene, SENDER_STAMPED, 4, accepted);
    reader_open(&reader, &scene, NULL, NULL, delivered);
    reader_wait_assigned(&reader);
    for (n = 1; n <= 20000; n++) {
        sender_send(sender, "hot", n);
        if (n % 7 == 0 && ++copies) /* at once */
            sender_send(sender, "hot", n);
        if (n % 1000 == 0 && ++copies) /* long after its release */
            sender_send(sender, "hot", n - 900);
    }
    sender_close(sender);
    CHECK_U64(reader_take(&reader, 20000, 30), 20000);
    CHECK_U64(reader_take(&reader, 1, 0.5), 0);
    CHECK_U64(reader_stats(&reader).state[UNSALT_STATE_DUPLICATE], copies);
    CHECK_U64(reader_stats(&reader).received, 20000 + copies);
    CHECK_U64(reader.events[UNSALT_EVENT_GAP], 0);
    CHECK_U64(reader_close(&reader), 0);
    judge(accepted, delivered, &report);
    CHECK_U64(report.copies, copies);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

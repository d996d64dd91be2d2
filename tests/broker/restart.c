/* SPDX-License-Identifier: BSD-2-Clause */
/* A consumer that stops in an orderly way and starts again. */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <stdlib.h>
#include <support/check.h>

static void judge_and_free(const struct scene *scene, checker_log_t *accepted, checker_log_t *delivered,
                           struct checker_report *report) {
    checker_judge(accepted, delivered, report);
    checker_print(report, scene->layout, stderr);
    CHECK_THAT(checker_clean(report), "%s", report->fault);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(scene);
}

/* A consumer that commits at its close, or one whose application does it by itself, before. */
static void open_reader(struct reader *reader, const struct scene *scene, bool commits_itself, checker_log_t *log) {
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    scene_set(conf, "enable.auto.commit", commits_itself ? "false" : "true");
    reader_open(reader, scene, conf, NULL, log);
}

/* Stops in the middle of what is there, several times; each run goes on where the last one ended. */
static void stop_and_go(const char *layout, enum sender_form form, bool commits_itself) {
    enum { RECORDS = 60000, RUNS = 5 };
    struct scene scene = {.layout = layout, .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct reader reader;
    uint64_t before = 0, committed;
    int run;

    scene_open(&scene, "stop");
    sender_weave(&scene, form, RECORDS - 10000, 100, 100, accepted);
    for (run = 0; run < RUNS; run++) {
        checker_log_run(delivered);
        open_reader(&reader, &scene, commits_itself, delivered);
        if (run < RUNS - 1)
            CHECK_U64(reader_take(&reader, RECORDS / RUNS - 100, 20), RECORDS / RUNS - 100);
        else
            CHECK_THAT(reader_drain(&reader, 2, 20) > 0, "the last run reads nothing");
        CHECK(reader_stats(&reader).conserved);
        if (commits_itself)
            CHECK_U64(unsalt_commit(reader.consumer, 0), 0);
        CHECK_U64(reader_close(&reader), 0);
        CHECK_U64(reader.events[UNSALT_EVENT_GAP], 0);
        committed = scene_log_committed(&scene, delivered).sum;
        CHECK_THAT(committed > before, "run %d has committed nothing", run);
        before = committed;
    }
    judge_and_free(&scene, accepted, delivered, &report);
}

Test(restart, goes_on_with_header_in_hash, .timeout = 60) {
    stop_and_go("hash", SENDER_UNSALT, false);
}

Test(restart, goes_on_with_json_in_topics, .timeout = 60) {
    stop_and_go("topics", SENDER_JSON, false);
}

Test(restart, goes_on_after_commits_of_the_application, .timeout = 60) {
    stop_and_go("topics", SENDER_UNSALT, true);
}

/*
 * A lane that is empty until the consumer stops has no record whose offset could be committed, and with
 * auto.offset.reset=latest what arrives there meanwhile would never be read.
 */
static void empty_lane(const char *layout, const char *reset) {
    struct scene scene = {.layout = layout, .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct sender *cold, *hot;
    struct reader reader;
    rd_kafka_conf_t *conf;
    uint64_t n;

    scene_open(&scene, "empty");
    conf = scene_consumer_conf(&scene);
    scene_set(conf, "auto.offset.reset", reset);
    reader_open(&reader, &scene, conf, NULL, delivered);
    reader_wait_assigned(&reader);
    cold = sender_open(&scene, SENDER_UNSALT, 1, accepted);
    for (n = 1; n <= 100; n++)
        sender_send(cold, "first", n);
    sender_close(cold);
    CHECK_U64(reader_take(&reader, 100, 20), 100);
    CHECK_U64(reader_close(&reader), 0);
    CHECK_U64(scene_log_committed(&scene, delivered).partitions, scene_topics(&scene) * scene.partitions);

    hot = sender_open(&scene, SENDER_UNSALT, 4, accepted);
    for (n = 1; n <= 1000; n++)
        sender_send(hot, "second", n);
    sender_close(hot);
    checker_log_run(delivered);
    conf = scene_consumer_conf(&scene);
    scene_set(conf, "auto.offset.reset", reset);
    reader_open(&reader, &scene, conf, NULL, delivered);
    CHECK_U64(reader_take(&reader, 1000, 20), 1000);
    CHECK_U64(reader_close(&reader), 0);
    CHECK_U64(reader.events[UNSALT_EVENT_GAP], 0);
    judge_and_free(&scene, accepted, delivered, &report);
    CHECK_U64(report.again, 0);
}

Test(restart, reads_a_lane_that_was_empty_in_hash, .timeout = 60) {
    empty_lane("hash", "latest");
}

Test(restart, reads_a_lane_that_was_empty_in_topics, .timeout = 60) {
    empty_lane("topics", "latest");
}

Test(restart, reads_a_lane_that_was_empty_from_the_earliest, .timeout = 60) {
    empty_lane("topics", "earliest");
}

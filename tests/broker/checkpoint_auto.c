/* SPDX-License-Identifier: BSD-2-Clause */
/* Automatic commits with a checkpoint: by time, by the number of cursors, at a revoke and at close; never waiting. */
#include <broker/fixture/cluster.h>
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

enum { HOT = 10000, COLD = 100, EACH = 100, ALL = HOT + COLD * EACH };

/* Commits by itself, each `interval` ms; a commit may take `timeout` ms. ack=auto. */
static void open_reader(struct reader *reader, const struct scene *scene, const char *interval, const char *timeout,
                        checker_log_t *log) {
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(scene, 0);
    scene_set(conf, "enable.auto.commit", "true");
    scene_set(conf, "auto.commit.interval.ms", interval);
    scene_set(conf, "heartbeat.interval.ms", "200");
    scene_unsalt_set(unsalt_conf, "checkpoint", "topic");
    scene_unsalt_set(unsalt_conf, "checkpoint.timeout.ms", timeout);
    reader_open(reader, scene, conf, unsalt_conf, log);
}

static void well(const struct reader *reader) {
    CHECK_U64(reader->events[UNSALT_EVENT_GAP] + reader->events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(reader->events[UNSALT_EVENT_CHECKPOINT_REFUSED], 0);
    CHECK_U64(reader->events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
    CHECK(reader_stats(reader).conserved);
}

static void judge(const struct scene *scene, checker_log_t *accepted, checker_log_t *delivered) {
    struct checker_report report;
    checker_judge(accepted, delivered, &report);
    checker_print(&report, scene->layout, stderr);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_U64(report.again, 0);
    CHECK_U64(report.delivered, report.records);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(scene);
}

/* In an orderly stop nothing is left, so nothing at all comes twice: not what was ahead of others in its partition. */
Test(checkpoint_auto, nothing_comes_again_after_a_close, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct reader reader;
    scene_open(&scene, "auto");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    for (int run = 0; run < 4; run++) {
        uint64_t wanted = run < 3 ? 4321 : ALL - 3 * 4321;
        checker_log_run(delivered);
        open_reader(&reader, &scene, run % 2 ? "50" : "3600000", "10000", delivered);
        CHECK_U64(reader_take(&reader, wanted, 20), wanted);
        well(&reader);
        CHECK_I64(reader_close(&reader), 0);
    }
    judge(&scene, accepted, delivered);
}

/* Nor when a second member comes: what goes is committed before. */
Test(checkpoint_auto, nothing_comes_again_after_a_revoke, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct reader readers[2];
    uint64_t taken = 0;
    scene_open(&scene, "auto-revoke");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    open_reader(&readers[0], &scene, "3600000", "10000", delivered);
    taken += reader_take(&readers[0], 5000, 20);
    checker_log_run(delivered);
    open_reader(&readers[1], &scene, "3600000", "10000", delivered);
    double deadline = scene_now() + 30;
    while (taken < ALL && scene_now() < deadline) {
        bool second = readers[1].events[UNSALT_EVENT_CHECKPOINT_LOADED] > 0;
        taken += reader_poll(&readers[0], second ? 500 : 20, 20);
        taken += reader_poll(&readers[1], 500, 20);
    }
    CHECK_U64(taken, ALL);
    CHECK(readers[1].events[UNSALT_EVENT_CHECKPOINT_LOADED] > 0);
    for (int i = 0; i < 2; i++) {
        well(&readers[i]);
        CHECK_I64(reader_close(&readers[i]), 0);
    }
    judge(&scene, accepted, delivered);
}

/* Many cursors are not kept for long: beyond 100,000 the next commit comes early. */
Test(checkpoint_auto, many_cursors_are_committed_early, .timeout = 60) {
    enum { SESSIONS = 103000 };
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 1};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct reader reader;
    char session[32];
    scene_open(&scene, "early");
    struct sender *sender = sender_open(&scene, SENDER_STAMPED, 1, accepted);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(session, sizeof session, "s-%d", i);
        sender_send(sender, session, 1);
    }
    sender_close(sender);
    open_reader(&reader, &scene, "3600000", "10000", delivered);
    CHECK_U64(reader_take(&reader, SESSIONS, 40), SESSIONS);
    for (double until = scene_now() + 10; reader_stats(&reader).cursors_changed >= 100000;) {
        CHECK_THAT(scene_now() < until, "%d cursors wait", (int)reader_stats(&reader).cursors_changed);
        reader_poll(&reader, 1, 20);
    }
    CHECK(reader_stats(&reader).commits >= 2);
    CHECK_I64(reader_close(&reader), 0);
    checker_log_run(delivered);
    open_reader(&reader, &scene, "3600000", "10000", delivered);
    for (double until = scene_now() + 20; reader_stats(&reader).cursors_restored < SESSIONS;) {
        CHECK_THAT(scene_now() < until, "%d cursors are restored", (int)reader_stats(&reader).cursors_restored);
        CHECK_U64(reader_poll(&reader, 1, 50), 0);
    }
    CHECK_U64(reader_poll(&reader, 1, 1000), 0);
    CHECK_I64(reader_close(&reader), 0);
    judge(&scene, accepted, delivered);
}

/*
 * While the coordinator stands still, automatic commits keep nobody waiting, and one that waits doesn't longer than
 * checkpoint.timeout.ms says. Afterwards all goes on, and what was under way is settled.
 */
Test(checkpoint_auto, a_frozen_coordinator, .timeout = 120) {
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 4};
    struct cluster cluster;
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct reader reader;
    unsigned polls = 0;
    cluster_open(&cluster, 1);
    scene_open(&scene, "frozen");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    open_reader(&reader, &scene, "50", "20000", delivered);
    CHECK_U64(reader_take(&reader, 5000, 20), 5000);
    cluster_signal(&cluster, 1, SIGSTOP);
    double longest = 0, began = scene_now();
    while (scene_now() < began + 2) {
        double at = scene_now();
        reader_poll(&reader, 5, 20);
        polls++;
        longest = scene_now() - at > longest ? scene_now() - at : longest;
    }
    began = scene_now();
    rd_kafka_resp_err_t err = unsalt_commit(reader.consumer, 1);
    double took = scene_now() - began;
    cluster_signal(&cluster, 1, SIGCONT);
    fprintf(stderr, "%u polls in 2 s, the longest %.3f s; an asynchronous commit %.3f s: %s\n", polls, longest, took,
            rd_kafka_err2name(err));
    CHECK_THAT(polls > 10 && longest < 10, "%u polls, %.1f s", polls, longest);
    CHECK_THAT(took < 10, "%.1f s", took); /* of the 20 s that a synchronous one may take */
    uint64_t left = ALL - checker_log_records(delivered);
    CHECK_U64(reader_take(&reader, left, 40), left);
    well(&reader);
    CHECK_I64(reader_close(&reader), 0);

    checker_log_run(delivered);
    open_reader(&reader, &scene, "3600000", "1000", delivered);
    struct sender *sender = sender_open(&scene, SENDER_UNSALT, 4, accepted);
    for (uint64_t n = 1; n <= 500; n++)
        sender_send(sender, "more", n);
    sender_close(sender);
    CHECK_U64(reader_take(&reader, 500, 20), 500);
    reader_poll(&reader, 1, 0);
    cluster_signal(&cluster, 1, SIGSTOP);
    began = scene_now();
    err = unsalt_commit(reader.consumer, 0);
    took = scene_now() - began;
    cluster_signal(&cluster, 1, SIGCONT);
    fprintf(stderr, "a commit with 1 s: %.3f s: %s\n", took, rd_kafka_err2name(err));
    CHECK(err != RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_THAT(took > 0.5 && took < 15, "%.1f s", took);
    for (double until = scene_now() + 40; unsalt_commit(reader.consumer, 0) != 0;) {
        CHECK_THAT(scene_now() < until, "no commit any more");
        reader_poll(&reader, 1, 100);
    }
    CHECK_I64(reader_close(&reader), 0);
    checker_log_run(delivered);
    open_reader(&reader, &scene, "3600000", "10000", delivered);
    CHECK_U64(reader_poll(&reader, 1, 2000), 0);
    CHECK_I64(reader_close(&reader), 0);
    judge(&scene, accepted, delivered);
    cluster_close(&cluster);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer is killed in the middle, several times. What its runs delivered, all of them taken together, must be
 * complete; each run must be in order; and no run may deliver from below what was committed when it started.
 */
#include <broker/fixture/child.h>
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/prng.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 150000, COLD = 100, EACH = 500, TOTAL = HOT + COLD * EACH, KILLS = 6, BATCH = 200 };

struct crash {
    struct scene scene;
    enum sender_form form;
    bool sync;       /* the application commits by itself; else the library does at auto.commit.interval.ms */
    char folder[64]; /* of the files below */
    char accepted[80], delivered[80], committed[80];
};

/* Child: creates the topics, fills them, writes down what was accepted. */
static void produce(void *arg) {
    struct crash *crash = arg;
    checker_log_t *log = checker_log_new();
    int fd = child_open(crash->accepted);
    scene_create(&crash->scene);
    sender_weave(&crash->scene, crash->form, HOT, COLD, EACH, log);
    child_save(fd, log);
    close(fd);
    checker_log_free(log);
}

/* Child: what a simple application does. Ends by being killed. */
static void consume(void *arg) {
    struct crash *crash = arg;
    rd_kafka_conf_t *conf = scene_consumer_conf(&crash->scene);
    int fd = child_open(crash->delivered), batches = 0;
    struct checker_record records[BATCH];
    rd_kafka_message_t *messages[BATCH];
    struct reader reader;
    scene_set(conf, "session.timeout.ms", "1500");
    scene_set(conf, "heartbeat.interval.ms", "300");
    scene_set(conf, "enable.auto.commit", crash->sync ? "false" : "true");
    scene_set(conf, "auto.commit.interval.ms", "50");
    reader_open(&reader, &crash->scene, conf, NULL, NULL);
    for (;;) {
        ssize_t i, n = unsalt_consume_batch(reader.consumer, 1000, messages, BATCH);
        int count = 0;
        if (n < 0)
            scene_die("batch: %s", rd_kafka_err2str(unsalt_last_error()));
        for (i = 0; i < n; i++)
            count += reader_record(&crash->scene, messages[i], &records[count]);
        child_write(fd, records, count);
        for (i = 0; i < n; i++)
            rd_kafka_message_destroy(messages[i]);
        /* Never the same distance between a commit and a kill: a commit every few batches. */
        if (crash->sync && ++batches % 5 == 0)
            unsalt_commit(reader.consumer, 0);
    }
}

/* Child: asks the cluster what is committed. */
static void look_up_committed(void *arg) {
    struct crash *crash = arg;
    checker_log_t *log = checker_log_new();
    int fd = child_open(crash->committed);
    scene_log_committed(&crash->scene, log);
    child_save(fd, log);
    close(fd);
    checker_log_free(log);
}

static void clean_up(void *arg) {
    struct crash *crash = arg;
    scene_close(&crash->scene);
}

struct progress {
    long delivered_at, committed_at, accepted_at;
    checker_log_t *accepted, *delivered;
};

static void nap(void) {
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
}

/* The runs before may have gone further than they were asked to. */
static bool all_delivered(struct progress *progress) {
    struct checker_report report;
    checker_judge(progress->accepted, progress->delivered, &report);
    return report.lost == 0;
}

/* Lets a run deliver `records` or more, kills it, and notes what it delivered and what is committed now. */
static void run_and_kill(struct crash *crash, struct progress *progress, uint64_t records) {
    double deadline = scene_now() + 40;
    uint64_t seen = 0;
    pid_t pid;
    checker_log_run(progress->delivered);
    pid = child_start(consume, crash);
    for (unsigned naps = 1; seen < records && scene_now() < deadline; naps++) {
        nap();
        if (naps % 500 == 0 && all_delivered(progress))
            break;
        seen += child_load(crash->delivered, &progress->delivered_at, progress->delivered);
    }
    child_kill(pid);
    seen += child_load(crash->delivered, &progress->delivered_at, progress->delivered);
    /* The next run must not write behind half a line. What is lost by that was not acknowledged. */
    CHECK(truncate(crash->delivered, progress->delivered_at) == 0);
    CHECK_THAT(seen >= records || all_delivered(progress), "a run delivered %" PRIu64 " records in 40 s, not %" PRIu64,
               seen, records);
    child_run(look_up_committed, crash);
    child_load(crash->committed, &progress->committed_at, progress->delivered);
}

/* The last run goes on until everything was delivered. */
static void run_to_the_end(struct crash *crash, struct progress *progress, struct checker_report *report) {
    double deadline = scene_now() + 40;
    pid_t pid;
    checker_log_run(progress->delivered);
    pid = child_start(consume, crash);
    do {
        struct timespec pause = {0, 100000000};
        nanosleep(&pause, NULL);
        child_load(crash->delivered, &progress->delivered_at, progress->delivered);
        checker_judge(progress->accepted, progress->delivered, report);
    } while (report->lost && scene_now() < deadline);
    child_kill(pid);
}

static void kill_repeatedly(const char *layout, enum sender_form form, bool sync) {
    struct crash crash = {.scene = {.layout = layout, .partitions = 4, .lanes = 4}, .form = form, .sync = sync};
    struct progress progress = {.accepted = checker_log_new(), .delivered = checker_log_new()};
    struct prng prng = prng_start((uint64_t)form * 2 + sync);
    struct checker_report report;
    int i;

    snprintf(crash.folder, sizeof crash.folder, "%s/unsalt-crash.XXXXXX", P_tmpdir);
    CHECK(mkdtemp(crash.folder) != NULL);
    snprintf(crash.accepted, sizeof crash.accepted, "%s/accepted", crash.folder);
    snprintf(crash.delivered, sizeof crash.delivered, "%s/delivered", crash.folder);
    snprintf(crash.committed, sizeof crash.committed, "%s/committed", crash.folder);
    scene_name(&crash.scene, "crash");
    child_run(produce, &crash);
    CHECK_U64(child_load(crash.accepted, &progress.accepted_at, progress.accepted), TOTAL);
    for (i = 0; i < KILLS; i++)
        run_and_kill(&crash, &progress, prng_between(&prng, 1, TOTAL / KILLS));
    run_to_the_end(&crash, &progress, &report);
    checker_print(&report, layout, stderr);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_THAT(report.again > 0, "no record came again: the kills hit nothing");
    child_run(clean_up, &crash);
    unlink(crash.accepted);
    unlink(crash.delivered);
    unlink(crash.committed);
    rmdir(crash.folder);
    checker_log_free(progress.delivered);
    checker_log_free(progress.accepted);
}

Test(crash, killed_in_hash_committing_synchronously, .timeout = 150) {
    kill_repeatedly("hash", SENDER_UNSALT, true);
}

Test(crash, killed_in_topics_committing_in_the_background, .timeout = 150) {
    kill_repeatedly("topics", SENDER_JSON, false);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A backlog is no loss: a reader that is far behind meets nothing but records that were acknowledged long ago, however
 * short its timeout is. And the counter-example: the same backlog, read with a plain timer.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/stamper.h>
#include <support/check.h>
#include <time.h>

enum { BACKLOG = 2000000, LANES = 4, DOZE_EVERY = 50000 };

static void open_stamper(struct stamper *stamper, const struct scene *scene, const char *batch, const char *codec,
                         checker_log_t *accepted) {
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "linger.ms", "50");
    scene_set(conf, "batch.num.messages", batch);
    scene_set(conf, "compression.type", codec);
    scene_set(conf, "queue.buffering.max.messages", "400000");
    stamper_open(stamper, scene, NULL, conf, accepted);
}

/* Lane 0 is written uncompressed: a narrow fetch brings a quarter as many of its records as of the others'. */
static void fill(const struct scene *scene, uint64_t records, checker_log_t *accepted) {
    struct stamper plain, dense;
    double began = scene_now();
    open_stamper(&plain, scene, "50", "none", accepted);
    open_stamper(&dense, scene, "200", "lz4", accepted);
    for (uint64_t seq = 1; seq <= records; seq++)
        stamper_send(seq % LANES ? &dense : &plain, "hot", seq);
    stamper_close(&plain);
    stamper_close(&dense);
    fprintf(stderr, "%" PRIu64 " records written in %.1f s\n", records, scene_now() - began);
}

/* Records that waited for their turn for longer than a bound of the buckets. */
static uint64_t waited_longer(const unsalt_stats_t *stats, uint64_t ns) {
    uint64_t n = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++)
        n += unsalt_wait_bounds()[i] > ns ? stats->wait_count[i] : 0;
    return n;
}

/*
 * Lane 0 falls behind the others, and the application dozes for longer than the timeout again and again. Returns what
 * the checker says, and leaves the reader's events behind.
 */
static struct checker_report read_all(const struct scene *scene, const char *group, const char *clock,
                                      uint64_t records, const checker_log_t *accepted, struct reader *reader) {
    const struct timespec doze = {0, 80000000};
    struct scene of_group = *scene;
    checker_log_t *delivered = checker_log_new();
    struct checker_report report;
    uint64_t taken = 0, part;
    double began = scene_now();

    snprintf(of_group.group, sizeof of_group.group, "%s-%.60s", group, scene->group);
    rd_kafka_conf_t *conf = scene_consumer_conf(&of_group);
    scene_set(conf, "queued.min.messages", "50000");
    scene_set(conf, "fetch.message.max.bytes", "10000");
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(&of_group, 0);
    scene_unsalt_set(unsalt_conf, "gap.timeout.ms", "50");
    scene_unsalt_set(unsalt_conf, "gap.clock", clock);
    reader_open(reader, &of_group, conf, unsalt_conf, delivered);
    while (taken < records) {
        part = reader_take(reader, records - taken < DOZE_EVERY ? records - taken : DOZE_EVERY, 30);
        CHECK_THAT(part > 0, "nothing comes after %" PRIu64 " records", taken);
        taken += part;
        nanosleep(&doze, NULL);
    }
    const unsalt_stats_t stats = reader_stats(reader);
    CHECK(stats.conserved);
    CHECK_U64(reader_close(reader), 0);
    fprintf(stderr, "%s: read in %.1f s; %" PRIu64 " records waited for more than 100 ms\n", clock,
            scene_now() - began, waited_longer(&stats, 100000000));
    CHECK(waited_longer(&stats, 100000000) > 0); /* or the lanes were not apart, and this proves nothing */
    checker_judge(accepted, delivered, &report);
    checker_print(&report, clock, stderr);
    checker_log_free(delivered);
    return report;
}

Test(verdict, a_backlog_is_no_loss, .timeout = 300) {
    const struct scene shape = {.layout = "topics", .partitions = 1, .lanes = LANES};
    const uint64_t records = BACKLOG;
    checker_log_t *accepted = checker_log_new();
    struct scene scene = shape;
    struct reader reader;

    scene_open(&scene, "backlog");
    fill(&scene, records, accepted);
    const struct checker_report horizon = read_all(&scene, "horizon", "horizon", records, accepted, &reader);
    CHECK_THAT(checker_clean(&horizon), "%s", horizon.fault);
    CHECK_U64(horizon.gaps, 0);
    CHECK_U64(reader.events[UNSALT_EVENT_LATE], 0);
    const struct checker_report wall = read_all(&scene, "wall", "wall", records, accepted, &reader);
    CHECK_U64(wall.lost, 0); /* they come as late */
    CHECK_THAT(wall.false_gaps > 0, "a plain timer has given up nothing of what it had not read yet");
    CHECK_U64(reader.events[UNSALT_EVENT_LATE], wall.false_numbers);
    fprintf(stderr, "false gaps: horizon %" PRIu64 ", wall %" PRIu64 " (%" PRIu64 " numbers; backlog of %" PRIu64
            " records, timeout 50 ms)\n", horizon.false_gaps, wall.false_gaps, wall.false_numbers, records);
    checker_log_free(accepted);
    scene_close(&scene);
}

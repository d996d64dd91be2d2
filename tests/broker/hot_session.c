/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main job on a real cluster: one hot session of 1,000,000 records over four lanes, and 1,000 cold ones, for each
 * layout and with the sequence in the header and in the JSON payload.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

enum { HOT = 1000000, COLD = 1000, COLD_EACH = 50, TOTAL = HOT + COLD * COLD_EACH };

static void deliver_all(const char *layout, int partitions, enum sender_form form, const char *source) {
    struct scene scene = {.layout = layout, .partitions = partitions, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    unsalt_conf_t *conf;
    struct checker_report report;
    struct reader reader;
    unsalt_stats_t stats;
    double began = scene_now(), sent;

    scene_open(&scene, "hot");
    sender_weave(&scene, form, HOT, COLD, COLD_EACH, accepted);
    sent = scene_now();
    conf = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(conf, "seq.source", source);
    reader_open(&reader, &scene, NULL, conf, delivered);
    CHECK_U64(reader_take(&reader, TOTAL, 90), TOTAL);
    fprintf(stderr, "%s, %s: sent in %.1f s, read in %.1f s\n", layout, source, sent - began, scene_now() - sent);
    CHECK_U64(reader_take(&reader, 1, 0.5), 0);
    stats = reader_stats(&reader);
    CHECK_U64(stats.received, TOTAL);
    CHECK_U64(stats.state[UNSALT_STATE_RELEASED], TOTAL);
    CHECK(stats.conserved);
    CHECK_U64(reader_close(&reader), 0);
    CHECK_U64(reader.events[UNSALT_EVENT_GAP], 0);
    CHECK_U64(reader.errors, 0);

    /* Everything was acknowledged, so every partition is committed to its end. */
    CHECK_U64(scene_log_committed(&scene, delivered).sum, TOTAL);
    checker_judge(accepted, delivered, &report);
    checker_print(&report, layout, stderr);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_U64(report.records, TOTAL);
    CHECK_U64(report.delivered, TOTAL);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(hot_session, hash_with_header, .timeout = 120) {
    deliver_all("hash", 8, SENDER_UNSALT, "unsalt");
}

Test(hot_session, hash_with_json, .timeout = 120) {
    deliver_all("hash", 8, SENDER_JSON_KEY, "json");
}

Test(hot_session, topics_with_header, .timeout = 120) {
    deliver_all("topics", 3, SENDER_UNSALT, "auto");
}

Test(hot_session, topics_with_json, .timeout = 120) {
    deliver_all("topics", 3, SENDER_JSON, "json");
}

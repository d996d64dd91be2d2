/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log was cut off above what is committed, by retention or DeleteRecords: what is left of it is read, also with
 * offset.reset=latest, which is about partitions without a committed offset.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <support/check.h>

static void trimmed(const char *reset, const char *checkpoint, bool rewinds) {
    struct scene scene = {.layout = "hash", .partitions = 1, .lanes = 1};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct reader reader;
    scene_open(&scene, "trimmed");
    sender_weave(&scene, SENDER_UNSALT, 10, 0, 0, accepted);
    for (int run = 0; run < 2; run++) {
        rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
        unsalt_conf_t *mine = scene_unsalt_conf(&scene, 0);
        scene_set(conf, "enable.auto.commit", "true");
        scene_set(conf, "auto.commit.interval.ms", "3600000");
        scene_unsalt_set(mine, "offset.reset", run ? reset : "earliest");
        scene_unsalt_set(mine, "checkpoint", checkpoint);
        scene_unsalt_set(mine, "gap.timeout.ms", "200");
        reader_open(&reader, &scene, conf, mine, delivered);
        CHECK_U64(reader_take(&reader, run ? 4 : 3, 20), run ? 4 : 3);
        if (run && rewinds) {
            CHECK_I64(unsalt_rewind(reader.consumer, 20000), 0);
            CHECK_U64(reader_take(&reader, 4, 20), 4);
        }
        CHECK_I64(reader_close(&reader), 0);
        if (run == 0) {
            CHECK_U64(scene_log_committed(&scene, delivered).sum, 3);
            scene_delete_below(&scene, 0, 0, 6);
        }
    }
    CHECK_U64(scene_log_committed(&scene, delivered).sum, 10);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(trimmed, what_is_left_is_read, .timeout = 90) {
    trimmed("latest", "none", false);
    trimmed("earliest", "none", false);
}

Test(trimmed, and_with_a_checkpoint, .timeout = 90) {
    trimmed("latest", "topic", false);
}

Test(trimmed, and_after_going_back, .timeout = 90) {
    trimmed("latest", "none", true);
}

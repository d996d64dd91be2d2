/* SPDX-License-Identifier: BSD-2-Clause */
/* A consumer is killed in the middle, several times: fixture/crash.h says what must hold. */
#include <broker/fixture/child.h>
#include <broker/fixture/crash.h>
#include <broker/fixture/reader.h>
#include <support/check.h>

enum { BATCH = 200 };

/* What a simple application does. sync: it commits by itself; else the library does at auto.commit.interval.ms. */
static void consume(struct crash *crash, int fd) {
    bool sync = crash->opaque;
    rd_kafka_conf_t *conf = scene_consumer_conf(&crash->scene);
    int batches = 0;
    struct checker_record records[BATCH];
    rd_kafka_message_t *messages[BATCH];
    struct reader reader;
    scene_set(conf, "session.timeout.ms", "1500");
    scene_set(conf, "heartbeat.interval.ms", "300");
    scene_set(conf, "enable.auto.commit", sync ? "false" : "true");
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
        if (sync && ++batches % 5 == 0)
            unsalt_commit(reader.consumer, 0);
    }
}

static void kill_repeatedly(const char *layout, enum sender_form form, bool sync) {
    static const bool yes = true;
    struct crash crash = {.scene = {.layout = layout, .partitions = 4, .lanes = 4}, .form = form, .hot = 150000,
                          .cold = 100, .each = 500, .kills = 6, .seed = (uint64_t)form * 2 + sync,
                          .opaque = sync ? &yes : NULL, .consume = consume};
    crash_repeatedly(&crash, "crash");
}

Test(crash, killed_in_hash_committing_synchronously, .timeout = 150) {
    kill_repeatedly("hash", SENDER_UNSALT, true);
}

Test(crash, killed_in_topics_committing_in_the_background, .timeout = 150) {
    kill_repeatedly("topics", SENDER_JSON, false);
}

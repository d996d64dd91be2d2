/* SPDX-License-Identifier: BSD-2-Clause */
/* A writer that is killed in the middle of a checkpoint, and a broker that stands still in the middle of one. */
#include <broker/fixture/checkpoints.h>
#include <broker/fixture/child.h>
#include <broker/fixture/cluster.h>
#include <signal.h>
#include <support/check.h>
#include <unistd.h>

enum { FILLERS = 2000 };

static void write_until_killed(void *arg) {
    int *pipe_fds = arg;
    struct checkpoints here;
    int i;
    checkpoints_open(&here, "cp-killed");
    checkpoints_create(&here);
    struct us_checkpoint_writer_settings settings = {.client = here.client, .topic = here.topic,
                                                     .transactional_id = here.topic, .transaction_timeout_ms = 5000};
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    checkpoints_commit(writer);
    writer = us_checkpoint_writer_new(&settings);
    checkpoints_begin(writer);
    for (i = 0; i < FILLERS; i++)
        checkpoints_put(writer, 0, "a", "2");
    struct checkpoints_loaded loaded; /* the entries are in the log once a reader has to wait for them */
    checkpoints_reader(&loaded, &here, false);
    checkpoints_begin_all(&loaded);
    while (!checkpoints_until(&loaded, 0, US_CHECKPOINT_TRANSACTION, 1))
        checkpoints_begin_all(&loaded);
    if (write(pipe_fds[1], &here, sizeof here) != (ssize_t)sizeof here)
        scene_die("the child doesn't get on");
    for (;;)
        pause();
}

/*
 * Nobody takes over its transactional.id: the coordinator ends the transaction after five seconds, or at its next look
 * every ten. */
Test(checkpoint_topic_dead, a_writer_that_is_killed_leaves_nothing_and_blocks_nobody_for_long, .timeout = 120) {
    int fds[2];
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    CHECK(!pipe(fds));
    pid_t child = child_start(write_until_killed, fds);
    close(fds[1]);
    CHECK_I64(read(fds[0], &here, sizeof here), sizeof here);
    child_kill(child);
    here.conf = scene_consumer_conf(&here.scene);
    here.client.conf = here.conf;
    checkpoints_reader(&loaded, &here, true);
    double began = scene_now();
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, CHECKPOINTS_PARTITIONS, 60));
    fprintf(stderr, "loaded %.1f s after the writer was killed\n", scene_now() - began);
    CHECK_STR(checkpoints_text(&loaded, 0), "a=1");
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
    close(fds[0]);
}

Test(checkpoint_topic_dead, a_commit_during_a_frozen_broker_is_unknown_and_known_later, .timeout = 120) {
    struct cluster cluster;
    struct checkpoints here;
    struct us_checkpoint_outcome outcome;
    struct checkpoints_loaded loaded;
    double began;
    cluster_open(&cluster, 1);
    checkpoints_open(&here, "cp-frozen");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    rd_kafka_t *member = checkpoints_member(&here, NULL);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    cluster_signal(&cluster, 1, SIGSTOP);
    began = scene_now();
    enum us_checkpoint_result result = us_checkpoint_writer_finish(
        writer, checkpoints_offsets(&here, 7), rd_kafka_consumer_group_metadata(member), 300, &outcome);
    enum us_checkpoint_result again = us_checkpoint_writer_resume(writer, 300, &outcome);
    enum us_checkpoint_result open = us_checkpoint_writer_open(writer, 300, &outcome);
    bool busy = us_checkpoint_writer_busy(writer);
    double took = scene_now() - began;
    cluster_signal(&cluster, 1, SIGCONT);
    CHECK_I64(result, US_CHECKPOINT_UNKNOWN);
    CHECK_I64(again, US_CHECKPOINT_UNKNOWN);
    CHECK_I64(open, US_CHECKPOINT_UNKNOWN);
    CHECK(busy);
    CHECK_THAT(took < 5, "three calls of 300 ms took %.1f s", took);
    result = us_checkpoint_writer_resume(writer, 30000, &outcome);
    CHECK_THAT(result == US_CHECKPOINT_DONE, "%s", outcome.text);
    CHECK_I64(checkpoints_committed(&here), 7);

    /* While the broker stands still nothing can be read; it is said, and tried until it can be. */
    checkpoints_reader(&loaded, &here, true);
    cluster_signal(&cluster, 1, SIGSTOP);
    checkpoints_begin_all(&loaded);
    struct us_checkpoint_progress progress = {.err = 0};
    bool early = false;
    for (began = scene_now(); !early && !progress.err && scene_now() < began + 20;) {
        early = checkpoints_load(&loaded, 1, 0.2);
        us_checkpoint_reader_progress(loaded.reader, 0, &progress);
    }
    cluster_signal(&cluster, 1, SIGCONT);
    CHECK(!early);
    CHECK_THAT(progress.err && progress.end == -1, "nothing is said");
    CHECK(checkpoints_load(&loaded, CHECKPOINTS_PARTITIONS, 60));
    CHECK_STR(checkpoints_text(&loaded, 0), "a=1");
    checkpoints_reader_close(&loaded);
    us_checkpoint_writer_destroy(writer);
    rd_kafka_destroy(member);
    checkpoints_close(&here);
    cluster_close(&cluster);
}

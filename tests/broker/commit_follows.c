/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application commits asynchronously, while another such commit is under way, follows it: also with cursors,
 * also at the end, and without a further call to commit.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <support/check.h>

enum { FIRST = 10, ALL = 15, MS = 20000 };

struct play {
    struct scene scene;
    unsalt_t *u;
    int64_t told; /* highest offset that a commit was told to have brought */
};

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct play *play = opaque;
    (void)rk;
    for (int i = 0; !err && list && i < list->cnt; i++)
        play->told = list->elems[i].offset > play->told ? list->elems[i].offset : play->told;
}

/* Takes up to record `upto` of the one partition. */
static void take(const struct play *play, int *taken, int upto) {
    for (double until = scene_now() + 20; *taken < upto && scene_now() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(play->u, 200);
        if (message) {
            CHECK_THAT(!message->err, "%s", rd_kafka_message_errstr(message));
            rd_kafka_message_destroy(message);
            (*taken)++;
        }
    }
    CHECK_I64(*taken, upto);
}

/* The first commit is under way when ALL of the records are acknowledged, and the second one is asked for. */
static void play_open(struct play *play) {
    char errstr[512];
    int taken = 0;
    checker_log_t *accepted = checker_log_new();
    play->scene = (struct scene){.layout = "hash", .partitions = 1, .lanes = 1};
    scene_open(&play->scene, "follows");
    sender_weave(&play->scene, SENDER_UNSALT, ALL + 1, 0, 0, accepted);
    checker_log_free(accepted);
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    rd_kafka_conf_set_opaque(conf, play);
    scene_unsalt_set(mine, "checkpoint", "topic");
    play->u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(play->u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, play->scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(play->u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    take(play, &taken, 2);
    for (double until = scene_now() + 20; unsalt_commit(play->u, 0) && scene_now() < until;)
        continue; /* until the producer of checkpoints is ready */
    take(play, &taken, FIRST);
    rd_kafka_resp_err_t err = unsalt_commit(play->u, 1);
    CHECK_THAT(!err || err == RD_KAFKA_RESP_ERR__IN_PROGRESS, "%s", rd_kafka_err2name(err));
    while (taken < ALL + 1) { /* they are here: no time for the answer */
        rd_kafka_message_t *message = unsalt_consumer_poll(play->u, 0);
        taken += message != NULL;
        if (message)
            rd_kafka_message_destroy(message);
    }
    err = unsalt_commit(play->u, 1);
    CHECK_THAT(!err || err == RD_KAFKA_RESP_ERR__IN_PROGRESS, "%s", rd_kafka_err2name(err));
}

static void play_close(struct play *play) {
    unsalt_destroy(play->u);
    checker_log_t *log = checker_log_new();
    CHECK(scene_log_committed(&play->scene, log).sum >= ALL);
    checker_log_free(log);
    scene_close(&play->scene);
}

Test(commit_follows, by_itself, .timeout = 90) {
    struct play play = {.told = -1};
    play_open(&play);
    for (double until = scene_now() + 30; play.told < ALL && scene_now() < until;)
        CHECK(!unsalt_consumer_poll(play.u, 100));
    CHECK_THAT(play.told >= ALL, "no commit has brought more than %d", (int)play.told);
    play_close(&play);
}

Test(commit_follows, at_a_close, .timeout = 90) {
    struct play play = {.told = -1};
    play_open(&play);
    CHECK_I64(unsalt_consumer_close(play.u), 0);
    play_close(&play);
}

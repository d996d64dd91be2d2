/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A static member whose place was taken, by another one with its group.instance.id, hands out nothing from the answer
 * on that tells it: it may be that of a commit, in a transaction of which librdkafka's consumer doesn't know.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <support/check.h>

enum { ALL = 200, MS = 20000 };

struct member {
    unsalt_t *u;
    unsigned lost, losts; /* events, calls */
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct member *member = opaque;
    member->lost += event->type == UNSALT_EVENT_ASSIGNMENT_LOST;
}

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct member *member = opaque;
    (void)partitions;
    member->losts += what == UNSALT_LOST;
}

static void member_open(struct member *member, const struct scene *scene, const char *checkpoint) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    unsalt_conf_t *mine = scene_unsalt_conf(scene, 0);
    *member = (struct member){0};
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "group.instance.id", "one");
    scene_set(conf, "session.timeout.ms", "30000");
    scene_set(conf, "heartbeat.interval.ms", "4000"); /* the commit tells first */
    scene_unsalt_set(mine, "checkpoint", checkpoint);
    unsalt_conf_set_event_cb(mine, on_event, member);
    unsalt_conf_set_assignment_cb(mine, on_assignment, member);
    member->u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(member->u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene->topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(member->u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

/* How many records came; errors are none. */
static int take(struct member *member, int most, double seconds) {
    int taken = 0;
    for (double until = scene_now() + seconds; taken < most && scene_now() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(member->u, 100);
        if (message) {
            taken += !message->err;
            rd_kafka_message_destroy(message);
        }
    }
    return taken;
}

static void fenced(const char *checkpoint, bool transaction) {
    struct scene scene = {.layout = "hash", .partitions = 1, .lanes = 1};
    struct member members[2];
    rd_kafka_t *producer = NULL;
    checker_log_t *accepted = checker_log_new();
    scene_open(&scene, "fenced");
    sender_weave(&scene, SENDER_UNSALT, ALL, 0, 0, accepted);
    member_open(&members[0], &scene, checkpoint);
    CHECK_I64(take(&members[0], 5, 20), 5);
    if (transaction) {
        producer = transformer_producer(scene.group);
        CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    } else {
        for (double until = scene_now() + 20; unsalt_commit(members[0].u, 0) && scene_now() < until;)
            continue; /* until the producer of checkpoints is ready */
    }
    CHECK_I64(take(&members[0], 3, 20), 3);
    member_open(&members[1], &scene, checkpoint);
    CHECK_I64(take(&members[1], 3, 40), 3); /* it has the place */
    rd_kafka_resp_err_t err =
        transaction ? transformer_code(unsalt_send_offsets_to_transaction(members[0].u, producer, MS))
                    : unsalt_commit(members[0].u, 0);
    CHECK_THAT(err, "a commit of a fenced member was taken");
    fprintf(stderr, "checkpoint=%s: %s\n", checkpoint, rd_kafka_err2name(err));
    for (double until = scene_now() + 40; members[0].lost == 0 && scene_now() < until;)
        CHECK_I64(take(&members[0], 1, 0.1), 0);
    CHECK_I64(take(&members[0], 1, 0.5), 0);
    CHECK_U64(members[0].lost, 1);
    CHECK_U64(members[0].losts, 1);
    CHECK(unsalt_commit(members[0].u, 0));
    if (producer) {
        CHECK_I64(transformer_code(rd_kafka_abort_transaction(producer, MS)), 0);
        rd_kafka_destroy(producer);
    }
    unsalt_destroy(members[0].u);
    CHECK_I64(take(&members[1], 20, 20), 20);
    CHECK_I64(unsalt_commit(members[1].u, 0), 0);
    unsalt_destroy(members[1].u);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(fenced_static, a_commit_tells, .timeout = 120) {
    fenced("none", false);
}

Test(fenced_static, a_commit_of_a_checkpoint_tells, .timeout = 120) {
    fenced("topic", false);
}

Test(fenced_static, a_transaction_of_the_application_tells, .timeout = 120) {
    fenced("topic", true);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transaction of the application's own spans polls, and a rebalance comes: the application ends it in the assignment
 * callback, while the partitions are still its own, and the new owner goes on exactly behind it.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

enum { SESSIONS = 21, HOT = 3000, EACH = 50, TOTAL = HOT + (SESSIONS - 1) * EACH, MS = 20000 };

struct member {
    const struct scene *scene;
    unsalt_t *u;
    rd_kafka_t *producer;
    int calls[4]; /* by unsalt_assignment_t */
    rd_kafka_resp_err_t err;
};

/* Everything that was delivered, by whomever: each session goes on where it was. */
struct course {
    uint64_t last[SESSIONS], total;
};

static rd_kafka_resp_err_t end_transaction(struct member *member) {
    rd_kafka_resp_err_t err = transformer_code(unsalt_send_offsets_to_transaction(member->u, member->producer, MS));
    err = err ? err : transformer_code(rd_kafka_commit_transaction(member->producer, MS));
    err = err ? err : unsalt_transaction_committed(member->u);
    return err ? err : transformer_code(rd_kafka_begin_transaction(member->producer));
}

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct member *member = opaque;
    (void)partitions;
    member->calls[what]++;
    if (what == UNSALT_REVOKING && !member->err)
        member->err = end_transaction(member);
}

static void open_member(struct member *member, const struct scene *scene, const char *checkpoint, const char *name) {
    char errstr[512], id[160];
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    unsalt_conf_t *mine = scene_unsalt_conf(scene, 0);
    *member = (struct member){.scene = scene};
    snprintf(id, sizeof id, "%s-%s", scene->group, name);
    member->producer = transformer_producer(id);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(member->producer)), 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "session.timeout.ms", "6000");
    scene_set(conf, "heartbeat.interval.ms", "100");
    scene_unsalt_set(mine, "checkpoint", checkpoint);
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    unsalt_conf_set_assignment_cb(mine, on_assignment, member);
    member->u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(member->u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene->topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(member->u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

static unsigned session_of(const struct checker_record *record) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)record->session_len, record->session);
    const char *dash = strchr(name, '-');
    return dash ? 1 + (unsigned)atoi(dash + 1) : 0;
}

static void take(struct member *member, struct course *course, int timeout_ms, size_t most) {
    rd_kafka_message_t *messages[200];
    ssize_t count = unsalt_consume_batch(member->u, timeout_ms, messages, most);
    CHECK(count >= 0);
    for (ssize_t i = 0; i < count; i++) {
        struct checker_record record;
        CHECK_THAT(reader_record(member->scene, messages[i], &record), "%s", rd_kafka_message_errstr(messages[i]));
        unsigned session = session_of(&record);
        CHECK_U64(record.seq, course->last[session] + 1);
        course->last[session] = record.seq;
        course->total++;
        rd_kafka_message_destroy(messages[i]);
    }
}

static void close_member(struct member *member) {
    CHECK_I64(unsalt_consumer_close(member->u), 0); /* calls with REVOKING, too: the last transaction ends there */
    CHECK_I64(member->err, 0);
    CHECK_I64(member->calls[UNSALT_REVOKING], member->calls[UNSALT_ASSIGNED]);
    CHECK_I64(member->calls[UNSALT_LOST], 0);
    unsalt_destroy(member->u);
    rd_kafka_destroy(member->producer);
}

static void spans(const char *layout, int partitions, int lanes, const char *checkpoint) {
    struct scene scene = {.layout = layout, .partitions = partitions, .lanes = lanes};
    struct member members[2];
    struct course course = {{0}, 0};
    checker_log_t *accepted = checker_log_new();
    scene_open(&scene, "spans");
    sender_weave(&scene, SENDER_STAMPED, HOT, SESSIONS - 1, EACH, accepted);
    open_member(&members[0], &scene, checkpoint, "first");
    for (double until = scene_now() + 20; scene_now() < until && course.total < 300;)
        take(&members[0], &course, 100, 100);
    CHECK(course.total >= 300);
    open_member(&members[1], &scene, checkpoint, "second");
    for (double until = scene_now() + 30; scene_now() < until && members[1].calls[UNSALT_ASSIGNED] == 0;) {
        take(&members[0], &course, 10, 1); /* it has more than enough until then */
        take(&members[1], &course, 10, 1);
    }
    CHECK(members[0].calls[UNSALT_REVOKED] > 0);
    CHECK(course.total < TOTAL);
    for (double until = scene_now() + 30; scene_now() < until && course.total < TOTAL;) {
        take(&members[0], &course, 20, 200);
        take(&members[1], &course, 20, 200);
    }
    CHECK_U64(course.total, TOTAL);
    close_member(&members[0]);
    close_member(&members[1]);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, TOTAL);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(rebalance_transaction, ends_in_the_callback, .timeout = 90) {
    spans("topics", 4, 2, "topic");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exactly once, when what was handed out is not this assignment's any more before its transaction has the offsets: it
 * will be handed out again, so the transaction with its output can't be committed.
 */
#include <broker/fixture/transformer.h>
#include <support/check.h>

enum { MS = 20000 };

struct play {
    struct scene scene;
    const char *checkpoint, *ack;
    rd_kafka_t *producer;
    unsalt_t *u;
    unsalt_token_t token;
    bool acks; /* in the event that names what is outstanding */
    unsigned acked;
    rd_kafka_resp_err_t said;
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct play *play = opaque;
    if (event->type == UNSALT_EVENT_OUTSTANDING && play->acks) {
        play->acks = false;
        play->acked++;
        play->said = unsalt_ack(play->u, play->token);
    }
}

static void fill(const struct play *play, int count) {
    char errstr[512], name[100];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    for (int i = 1; i <= count; i++) {
        unsalt_header_t header = {.seq = (uint64_t)i, .lanes = 1};
        uint8_t bytes[UNSALT_HEADER_SIZE];
        CHECK_I64(unsalt_header_write(&header, bytes), UNSALT_HEADER_OK);
        rd_kafka_resp_err_t err = rd_kafka_producev(
            rk, RD_KAFKA_V_TOPIC(scene_topic(&play->scene, 0, name, sizeof name)), RD_KAFKA_V_PARTITION(0),
            RD_KAFKA_V_KEY("s", 1), RD_KAFKA_V_VALUE("x", 1),
            RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, bytes, sizeof bytes), RD_KAFKA_V_END);
        CHECK_I64(err, 0);
    }
    CHECK_I64(rd_kafka_flush(rk, MS), 0);
    rd_kafka_destroy(rk);
}

static unsalt_t *member(struct play *play) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_unsalt_set(mine, "checkpoint", play->checkpoint);
    scene_unsalt_set(mine, "ack", play->ack);
    scene_unsalt_set(mine, "revoke.timeout.ms", "100");
    unsalt_conf_set_event_cb(mine, on_event, play);
    unsalt_t *u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(u, "%s", errstr);
    return u;
}

/* Takes the first record, whose output is in the open transaction from then on. */
static void take_one(struct play *play) {
    rd_kafka_message_t *message = NULL;
    for (double until = scene_now() + 20; !message && scene_now() < until;)
        message = unsalt_consumer_poll(play->u, 200);
    CHECK_THAT(message && !message->err, "nothing was handed out in 20 s");
    unsalt_message_info_t info = {.size = sizeof info};
    CHECK_I64(unsalt_message_info(play->u, message, &info), 0);
    CHECK_U64(info.seq, 1);
    play->token = info.token;
    rd_kafka_message_destroy(message);
}

static void play_open(struct play *play, const char *word) {
    play->scene = (struct scene){.layout = "hash", .partitions = 1, .lanes = 1};
    scene_open(&play->scene, word);
    fill(play, 1);
    play->producer = transformer_producer(play->scene.group);
    play->u = member(play);
}

/* The call's error makes the transaction one that can only be aborted; then it begins again with the first record. */
static void must_be_aborted(struct play *play) {
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(play->u, play->producer, MS);
    CHECK_THAT(error, "offsets were taken into the transaction");
    CHECK(rd_kafka_error_txn_requires_abort(error));
    rd_kafka_error_destroy(error);
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(play->producer, MS)), 0);
    CHECK_I64(unsalt_rewind(play->u, MS), 0);
}

static void goes_on(struct play *play) {
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(play->producer)), 0);
    take_one(play);
    unsalt_ack(play->u, play->token);
    CHECK_I64(transformer_code(unsalt_send_offsets_to_transaction(play->u, play->producer, MS)), 0);
    CHECK_I64(transformer_code(rd_kafka_commit_transaction(play->producer, MS)), 0);
    CHECK_I64(unsalt_transaction_committed(play->u), 0);
}

static void play_close(struct play *play) {
    CHECK_I64(unsalt_consumer_close(play->u), 0);
    unsalt_destroy(play->u);
    rd_kafka_destroy(play->producer);
    scene_close(&play->scene);
}

static void in_hand(const char *checkpoint, bool seek) {
    struct play play = {.checkpoint = checkpoint, .ack = "auto"};
    play_open(&play, "hand");
    rd_kafka_topic_partition_list_t *list = scene_partitions(&play.scene);
    list->elems[0].offset = RD_KAFKA_OFFSET_STORED;
    CHECK_I64(unsalt_assign(play.u, list), 0);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(play.producer)), 0);
    take_one(&play);
    list->elems[0].offset = RD_KAFKA_OFFSET_STORED;
    CHECK_I64(seek ? unsalt_seek(play.u, list, MS) : unsalt_assign(play.u, list), 0);
    must_be_aborted(&play);
    goes_on(&play);
    rd_kafka_topic_partition_list_destroy(list);
    play_close(&play);
}

Test(transaction_gone, assigned_anew_with_a_record_in_hand, .timeout = 90) {
    in_hand("topic", false);
    in_hand("none", false);
}

Test(transaction_gone, sought_with_a_record_in_hand, .timeout = 90) {
    in_hand("topic", true);
    in_hand("none", true);
}

/* An acknowledgement that comes when the partition is just going was taken, so the transaction isn't. */
static void acknowledged_late(const char *checkpoint) {
    struct play play = {.checkpoint = checkpoint, .ack = "manual"};
    play_open(&play, "late");
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, play.scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(play.u, topics), 0);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(play.producer)), 0);
    take_one(&play);
    play.acks = true;
    CHECK_I64(unsalt_unsubscribe(play.u), 0);
    for (double until = scene_now() + 20; play.acked == 0 && scene_now() < until;)
        CHECK(!unsalt_consumer_poll(play.u, 100));
    CHECK_U64(play.acked, 1);
    CHECK_I64(play.said, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_I64(unsalt_ack(play.u, play.token), RD_KAFKA_RESP_ERR__STATE);
    must_be_aborted(&play);
    CHECK_I64(unsalt_subscribe(play.u, topics), 0);
    goes_on(&play);
    rd_kafka_topic_partition_list_destroy(topics);
    play_close(&play);
}

Test(transaction_gone, acknowledged_when_its_partition_is_going, .timeout = 90) {
    acknowledged_late("topic");
    acknowledged_late("none");
}

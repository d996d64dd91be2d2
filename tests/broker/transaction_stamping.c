/* SPDX-License-Identifier: BSD-2-Clause */
/* A stamping producer carries the transactions of a consumer with a checkpoint: its reports tell of entries, too. */
#include <broker/fixture/scene.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <string.h>
#include <support/check.h>

enum { RECORDS = 6, MS = 20000 };

/* Reports by what they are about. */
struct told {
    unsigned outputs, entries, wrong, failed;
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct told *told = opaque;
    bool entry = strstr(rd_kafka_topic_name(message->rkt), ".unsalt") != NULL; /* the topic of checkpoints */
    (void)rk;
    told->entries += entry;
    told->outputs += !entry;
    told->wrong += entry ? message->_private != NULL : message->_private != told;
    told->failed += message->err != 0;
}

static void on_payload(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                       void *message_opaque) {
    struct told *told = opaque;
    (void)rk;
    (void)payload;
    (void)len;
    told->entries += message_opaque == NULL;
    told->outputs += message_opaque == told;
    told->failed += err != 0;
}

struct play {
    struct scene in, out;
    checker_log_t *accepted;
    struct told told;
    unsalt_t *u;
    unsalt_producer_t *producer;
    rd_kafka_t *handle;
};

static void open_both(struct play *play, bool payloads, const char *only_errors) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->in), *producing = scene_conf();
    unsalt_conf_t *mine = scene_unsalt_conf(&play->in, 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_unsalt_set(mine, "checkpoint", "topic");
    play->u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(play->u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, play->in.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(play->u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);

    scene_set(producing, "transactional.id", play->in.group);
    scene_set(producing, "delivery.report.only.error", only_errors);
    rd_kafka_conf_set_opaque(producing, &play->told);
    if (payloads)
        rd_kafka_conf_set_dr_cb(producing, on_payload);
    else
        rd_kafka_conf_set_dr_msg_cb(producing, on_report);
    play->producer = unsalt_producer_new(producing, scene_unsalt_conf(&play->out, 0), errstr, sizeof errstr);
    CHECK_THAT(play->producer, "%s", errstr);
    play->handle = unsalt_producer_handle(play->producer);
    CHECK_I64(transformer_code(rd_kafka_init_transactions(play->handle, MS)), 0);
}

static void transform(struct play *play, int n) {
    for (double until = scene_now() + 30; n > 0;) {
        CHECK_THAT(scene_now() < until, "%d records didn't come", n);
        rd_kafka_message_t *message = unsalt_consumer_poll(play->u, 200);
        if (!message)
            continue;
        CHECK_I64(message->err, 0);
        CHECK_I64(unsalt_produce(play->producer, play->out.topic, "s", 1, "x", 1, &play->told), 0);
        rd_kafka_message_destroy(message);
        n--;
    }
}

/* The middle one of three transactions is aborted: what it carried comes again. */
static void three_transactions(struct play *play) {
    for (int i = 0; i < 3; i++) {
        CHECK_I64(transformer_code(rd_kafka_begin_transaction(play->handle)), 0);
        transform(play, 2);
        CHECK_I64(transformer_code(unsalt_send_offsets_to_transaction(play->u, play->handle, MS)), 0);
        if (i == 1) {
            CHECK_I64(transformer_code(rd_kafka_abort_transaction(play->handle, MS)), 0);
            CHECK_I64(unsalt_rewind(play->u, MS), 0);
            continue;
        }
        CHECK_I64(transformer_code(rd_kafka_commit_transaction(play->handle, MS)), 0);
        CHECK_I64(unsalt_transaction_committed(play->u), 0);
    }
    CHECK_I64(unsalt_producer_flush(play->producer, MS), 0);
}

static void both_sides(bool payloads, const char *only_errors) {
    struct play play = {.in = {.layout = "hash", .partitions = 1, .lanes = 1},
                        .out = {.layout = "hash", .partitions = 2, .lanes = 2}};
    unsalt_producer_stats_t stats;
    play.accepted = checker_log_new();
    scene_open(&play.in, "stamping-in");
    scene_open(&play.out, "stamping-out");
    sender_weave(&play.in, SENDER_UNSALT, RECORDS, 0, 0, play.accepted);
    open_both(&play, payloads, only_errors);
    three_transactions(&play);
    unsalt_producer_stats(play.producer, &stats, sizeof stats);
    bool all = strcmp(only_errors, "false") == 0;
    CHECK_U64(play.told.outputs, all ? 6 : 0);
    CHECK_THAT(all ? play.told.entries >= 3 : play.told.entries == 0, "%u reports of entries", play.told.entries);
    CHECK_U64(play.told.wrong + play.told.failed, 0);
    CHECK_U64(stats.stamped, 6);
    CHECK_U64(stats.acked, 6); /* entries are no records of this producer's */
    CHECK_U64(stats.abandoned, 0);
    unsalt_producer_destroy(play.producer);
    CHECK_I64(unsalt_consumer_close(play.u), 0);
    unsalt_destroy(play.u);
    checker_log_free(play.accepted);
    scene_close(&play.in);
    scene_close(&play.out);
}

Test(transaction_stamping, entries_are_reported_without_an_opaque, .timeout = 90) {
    both_sides(false, "false");
}

Test(transaction_stamping, the_older_callback_hears_of_them_too, .timeout = 90) {
    both_sides(true, "false");
}

Test(transaction_stamping, whoever_wants_errors_only_hears_of_none, .timeout = 90) {
    both_sides(false, "true");
}

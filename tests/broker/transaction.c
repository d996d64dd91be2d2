/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls for an application's own transactions, in one process: what they carry, what comes again after an abort,
 * and what is refused. Killed processes are in transaction_steps.c.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <pthread.h>
#include <stdlib.h>
#include <support/check.h>

enum { SESSIONS = 21, HOT = 3000, EACH = 50, TOTAL = HOT + (SESSIONS - 1) * EACH, MS = 20000 };

/* The last number of each session that was delivered, or that a committed transaction covers. */
struct course {
    uint64_t last[SESSIONS];
};

struct play {
    struct scene scene;
    const char *checkpoint;
    enum sender_form form;
    checker_log_t *accepted;
    rd_kafka_t *producer;
    unsigned events[UNSALT_EVENT__CNT];
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct play *play = opaque;
    play->events[event->type]++;
}

static unsalt_t *open_member(struct play *play, const char *const *settings) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_unsalt_set(mine, "checkpoint", play->checkpoint);
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    if (play->form == SENDER_JSON)
        scene_unsalt_set(mine, "seq.source", "unsalt");
    for (; settings && settings[0]; settings += 2)
        scene_unsalt_set(mine, settings[0], settings[1]);
    unsalt_conf_set_event_cb(mine, on_event, play);
    unsalt_t *u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, play->scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return u;
}

static void play_open(struct play *play, const char *word) {
    play->accepted = checker_log_new();
    scene_open(&play->scene, word);
    sender_weave(&play->scene, play->form, HOT, SESSIONS - 1, EACH, play->accepted);
    play->producer = transformer_producer(play->scene.group);
}

static void play_close(struct play *play) {
    CHECK_U64(play->events[UNSALT_EVENT_GAP] + play->events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(play->events[UNSALT_EVENT_CHECKPOINT_REFUSED] + play->events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
    rd_kafka_destroy(play->producer);
    checker_log_free(play->accepted);
    scene_close(&play->scene);
}

static void close_member(unsalt_t *u) {
    unsalt_stats_t stats;
    unsalt_stats(u, &stats, sizeof stats);
    CHECK(stats.conserved);
    CHECK_I64(unsalt_consumer_close(u), 0);
    unsalt_destroy(u);
}

static unsigned session_of(const struct checker_record *record) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)record->session_len, record->session);
    const char *dash = strchr(name, '-');
    return dash ? 1 + (unsigned)atoi(dash + 1) : 0;
}

/* Every session goes on where the course says. */
static uint64_t take_batch(const struct play *play, unsalt_t *u, struct course *course, uint64_t n) {
    rd_kafka_message_t *messages[200];
    ssize_t count = unsalt_consume_batch(u, 200, messages, n < 200 ? n : 200);
    CHECK(count >= 0);
    for (ssize_t i = 0; i < count; i++) {
        struct checker_record record;
        CHECK_THAT(reader_record(&play->scene, messages[i], &record), "%s", rd_kafka_message_errstr(messages[i]));
        unsigned session = session_of(&record);
        CHECK_THAT(record.seq == course->last[session] + 1, "session %u: %d after %d, [%d] %d", session,
                   (int)record.seq, (int)course->last[session], (int)record.partition, (int)record.offset);
        course->last[session] = record.seq;
        rd_kafka_message_destroy(messages[i]);
    }
    return (uint64_t)count;
}

static void take(const struct play *play, unsalt_t *u, struct course *course, uint64_t n) {
    uint64_t taken = 0;
    for (double until = scene_now() + 20; taken < n && scene_now() < until;)
        taken += take_batch(play, u, course, n - taken);
    CHECK_U64(taken, n);
}

static rd_kafka_resp_err_t send_all(const struct play *play, unsalt_t *u) {
    return transformer_code(unsalt_send_offsets_to_transaction(u, play->producer, MS));
}

static void begin(const struct play *play) {
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(play->producer)), 0);
}

static void commit(const struct play *play, unsalt_t *u) {
    CHECK_I64(transformer_code(rd_kafka_commit_transaction(play->producer, MS)), 0);
    CHECK_I64(unsalt_transaction_committed(u), 0);
    CHECK_I64(unsalt_transaction_committed(u), RD_KAFKA_RESP_ERR__STATE);
}

static void abort_and_rewind(const struct play *play, unsalt_t *u) {
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(play->producer, MS)), 0);
    CHECK_I64(unsalt_rewind(u, MS), 0);
}

/* Whatever was aborted comes again, and nothing else; nothing that was committed does, here or in the next run. */
static void aborted_and_again(struct play *play) {
    struct course course = {{0}};
    uint64_t done = 0;
    play_open(play, "abort");
    unsalt_t *u = open_member(play, NULL);
    for (int i = 0; i < 6; i++) {
        struct course before = course;
        begin(play);
        take(play, u, &course, 300);
        CHECK_I64(send_all(play, u), 0);
        take(play, u, &course, 50); /* handed out, and not in the transaction */
        abort_and_rewind(play, u);
        course = before;
        begin(play);
        take(play, u, &course, 100);
        CHECK_I64(send_all(play, u), 0);
        take(play, u, &course, 100);
        CHECK_I64(send_all(play, u), 0); /* in the same transaction */
        CHECK_I64(send_all(play, u), 0); /* nothing has changed */
        commit(play, u);
        done += 200;
        if (i % 2) {
            close_member(u);
            u = open_member(play, NULL);
        }
    }
    begin(play);
    take(play, u, &course, TOTAL - done);
    CHECK_I64(send_all(play, u), 0);
    commit(play, u);
    CHECK_U64(take_batch(play, u, &course, 1), 0);
    close_member(u);
    CHECK_U64(scene_log_committed(&play->scene, play->accepted).sum, TOTAL);
    play_close(play);
}

Test(transaction, aborted_with_cursors, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}, .checkpoint = "topic"};
    aborted_and_again(&play);
}

/* Offsets alone are enough for records without numbers: they come in the order of their partition. */
Test(transaction, aborted_with_offsets, .timeout = 60) {
    struct play play = {
        .scene = {.layout = "hash", .partitions = 3, .lanes = 1}, .checkpoint = "none", .form = SENDER_JSON};
    aborted_and_again(&play);
}

/* While cursors are being read, a transaction carries nothing of their sets, and loses nothing. */
Test(transaction, while_cursors_are_read, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}, .checkpoint = "topic"};
    struct course course = {{0}}, before;
    play_open(&play, "reading");
    unsalt_t *u = open_member(&play, NULL);
    begin(&play);
    CHECK_I64(send_all(&play, u), 0); /* nothing is assigned yet */
    commit(&play, u);
    begin(&play);
    take(&play, u, &course, 500);
    CHECK_I64(send_all(&play, u), 0);
    commit(&play, u);
    before = course;
    take(&play, u, &course, 500);
    CHECK_I64(unsalt_rewind(u, MS), 0);
    begin(&play);
    CHECK_I64(send_all(&play, u), 0);
    commit(&play, u);
    begin(&play);
    take(&play, u, &before, TOTAL - 500);
    CHECK_I64(send_all(&play, u), 0);
    commit(&play, u);
    close_member(u);
    play_close(&play);
}

/* ack=manual: what isn't acknowledged isn't in the transaction, and what is above it is. */
Test(transaction, carries_what_is_acknowledged, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}, .checkpoint = "topic"};
    static const char *const manual[] = {"ack", "manual", "revoke.timeout.ms", "0", NULL};
    rd_kafka_message_t *messages[100];
    uint64_t again = 0, got = 0;
    play_open(&play, "manual");
    unsalt_t *u = open_member(&play, manual);
    begin(&play);
    for (double until = scene_now() + 20; got < 1000 && scene_now() < until;) {
        ssize_t n = unsalt_consume_batch(u, 200, messages, 100);
        for (ssize_t i = 0; i < n; i++, got++) {
            unsalt_message_info_t info = {.size = sizeof info};
            CHECK_I64(unsalt_message_info(u, messages[i], &info), 0);
            if (got % 10 == 0)
                again++; /* every tenth one isn't */
            else
                CHECK_I64(unsalt_ack(u, info.token), 0);
            rd_kafka_message_destroy(messages[i]);
        }
    }
    CHECK_I64(send_all(&play, u), 0);
    commit(&play, u);
    close_member(u);
    u = open_member(&play, manual);
    uint64_t rest = TOTAL - got + again, came = 0;
    for (double until = scene_now() + 20; came < rest && scene_now() < until;) {
        ssize_t n = unsalt_consume_batch(u, 200, messages, 100);
        for (ssize_t i = 0; i < n; i++, came++)
            rd_kafka_message_destroy(messages[i]);
    }
    CHECK_U64(came, rest);
    CHECK_I64(unsalt_consume_batch(u, 300, messages, 100), 0);
    close_member(u);
    play_close(&play);
}

/* ---- what is refused */

/* Partitions go while their records are in an open transaction: it must not be committed without their offsets. */
static void torn(struct play *play) {
    struct course course = {{0}}, other = {{0}};
    rd_kafka_topic_partition_list_t *list = NULL;
    play_open(play, "torn");
    unsalt_t *u = open_member(play, NULL);
    begin(play);
    take(play, u, &course, 400);
    unsalt_t *second = open_member(play, NULL);
    for (double until = scene_now() + 20; scene_now() < until; rd_kafka_topic_partition_list_destroy(list)) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 50);
        if (message)
            rd_kafka_message_destroy(message);
        message = unsalt_consumer_poll(second, 0);
        if (message) {
            rd_kafka_message_destroy(message);
            break;
        }
        CHECK_I64(rd_kafka_assignment(unsalt_handle(second), &list), 0);
    }
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(u, play->producer, MS);
    CHECK(error);
    CHECK(rd_kafka_error_txn_requires_abort(error));
    CHECK(transformer_code(error));
    error = rd_kafka_commit_transaction(play->producer, MS);
    CHECK_THAT(error && rd_kafka_error_txn_requires_abort(error), "it can be committed");
    CHECK(transformer_code(error));
    abort_and_rewind(play, u);
    close_member(second);
    /* All partitions come back here, and begin where nothing was committed. */
    begin(play);
    take(play, u, &other, 400);
    CHECK_I64(send_all(play, u), 0);
    commit(play, u);
    close_member(u);
    play_close(play);
}

Test(transaction, partitions_go_meanwhile, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 2}, .checkpoint = "topic"};
    torn(&play);
}

static void *poll_long(void *u) {
    do {
        unsalt_consumer_poll(u, 3000); /* nothing comes */
    } while (unsalt_last_error() == RD_KAFKA_RESP_ERR__CONFLICT);
    return NULL;
}

static rd_kafka_resp_err_t refused(unsalt_t *u, rd_kafka_t *producer, int timeout_ms) {
    return transformer_code(unsalt_send_offsets_to_transaction(u, producer, timeout_ms));
}

static int load_nothing(void *opaque, unsalt_checkpoint_load_t *load, int32_t set) {
    (void)opaque;
    (void)load;
    (void)set;
    return 0;
}

static int store_nothing(void *opaque, const unsalt_checkpoint_entry_t *entry) {
    (void)opaque;
    (void)entry;
    return 0;
}

static unsalt_t *open_with(const struct scene *scene, const char *auto_commit, const char *checkpoint) {
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    unsalt_conf_t *mine = scene_unsalt_conf(scene, 0);
    char errstr[512];
    scene_set(conf, "enable.auto.commit", auto_commit);
    scene_unsalt_set(mine, "checkpoint", checkpoint);
    if (strcmp(checkpoint, "callback") == 0)
        unsalt_conf_set_checkpoint_cb(mine, load_nothing, store_nothing, NULL);
    unsalt_t *u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(u, "%s", errstr);
    return u;
}

Test(transaction, misuse, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 1, .lanes = 1};
    pthread_t thread;
    scene_name(&scene, "misuse");
    rd_kafka_t *producer = transformer_producer(scene.group);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    unsalt_t *u = open_with(&scene, "true", "none");
    CHECK_I64(refused(u, producer, MS), RD_KAFKA_RESP_ERR__STATE);
    unsalt_destroy(u);
    u = open_with(&scene, "false", "callback");
    CHECK_I64(refused(u, producer, MS), RD_KAFKA_RESP_ERR__STATE);
    unsalt_destroy(u);
    u = open_with(&scene, "false", "none");
    CHECK_I64(refused(u, NULL, MS), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(refused(u, producer, 0), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_rewind(u, 0), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_transaction_committed(u), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(unsalt_rewind(u, 1), 0); /* nothing is assigned */
    CHECK_I64(pthread_create(&thread, NULL, poll_long, u), 0);
    for (double until = scene_now() + 5; unsalt_rewind(u, MS) == 0 && scene_now() < until;)
        ; /* until the thread is in its call */
    CHECK_I64(refused(u, producer, MS), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_transaction_committed(u), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK_I64(unsalt_rewind(u, MS), RD_KAFKA_RESP_ERR__CONFLICT);
    unsalt_wakeup(u);
    pthread_join(thread, NULL);
    /* A transaction that wasn't begun is librdkafka's to refuse. */
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(producer, MS)), 0);
    unsalt_consumer_close(u);
    CHECK_I64(refused(u, producer, MS), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(unsalt_transaction_committed(u), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(unsalt_rewind(u, MS), RD_KAFKA_RESP_ERR__STATE);
    unsalt_destroy(u);
    rd_kafka_destroy(producer);
}

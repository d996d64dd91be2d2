/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unsalt_rewind() where there is no commit yet, while one is under way, and while cursors are being read. What comes
 * next is told number by number: nothing is missing, and nothing that a commit covers comes again.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/transformer.h>
#include <string.h>
#include <support/check.h>

enum { MS = 20000, PATIENCE = 25, SESSIONS = 40 };

struct play {
    struct scene scene;
    checker_log_t *accepted, *delivered;
    struct reader reader;
    unsigned commits; /* that offset_commit_cb told of, and that succeeded */
};

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    struct play *play = opaque;
    (void)rk;
    (void)list;
    play->commits += !err;
}

static void play_open(struct play *play, const char *word) {
    *play = (struct play){.scene = {.layout = "hash", .partitions = 1, .lanes = 1}};
    play->accepted = checker_log_new();
    play->delivered = checker_log_new();
    scene_open(&play->scene, word);
}

static void play_close(struct play *play) {
    CHECK_U64(play->reader.events[UNSALT_EVENT_GAP] + play->reader.events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(play->reader.events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
    CHECK_I64(reader_close(&play->reader), 0);
    checker_log_free(play->accepted);
    checker_log_free(play->delivered);
    scene_close(&play->scene);
}

static void send_numbers(struct play *play, uint64_t first, uint64_t last) {
    struct sender *sender = sender_open(&play->scene, SENDER_STAMPED, 1, play->accepted);
    for (uint64_t seq = first; seq <= last; seq++)
        sender_send(sender, "hot", seq);
    sender_close(sender);
}

static void join(struct play *play, const char *checkpoint, const char *reset, bool assigned) {
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    rd_kafka_conf_set_opaque(conf, play);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    scene_unsalt_set(mine, "checkpoint", checkpoint);
    scene_unsalt_set(mine, "offset.reset", reset);
    if (strcmp(reset, "latest") != 0)
        scene_unsalt_set(mine, "start", "first"); /* whoever has no cursor waits for number 1 */
    if (assigned)
        reader_open_assigned(&play->reader, &play->scene, conf, mine, play->delivered);
    else
        reader_open(&play->reader, &play->scene, conf, mine, play->delivered);
}

/* The next record of a session: its number. 0: none came in time. */
static uint64_t next(struct play *play) {
    uint64_t seq = 0;
    for (double until = scene_now() + PATIENCE; seq == 0 && scene_now() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(play->reader.consumer, 200);
        struct checker_record record;
        if (!message)
            continue;
        CHECK_THAT(reader_record(&play->scene, message, &record), "%s", rd_kafka_message_errstr(message));
        seq = record.seq;
        rd_kafka_message_destroy(message);
    }
    return seq;
}

static void expect(struct play *play, uint64_t first, uint64_t last) {
    for (uint64_t seq = first; seq <= last; seq++) {
        uint64_t came = next(play);
        CHECK_THAT(came == seq, "%d came where %d was expected", (int)came, (int)seq);
    }
}

/* What was handed out counts as processed. */
static void done(struct play *play) {
    rd_kafka_message_t *message = unsalt_consumer_poll(play->reader.consumer, 0);
    CHECK(!message);
}

static void wait_loaded(struct play *play, unsigned loads) {
    for (double until = scene_now() + PATIENCE; play->reader.events[UNSALT_EVENT_CHECKPOINT_LOADED] < loads;) {
        CHECK_THAT(scene_now() < until, "cursors were not read");
        CHECK_U64(reader_poll(&play->reader, 1, 50), 0);
    }
}

static void rewind_it(struct play *play) {
    CHECK_I64(unsalt_rewind(play->reader.consumer, MS), 0);
}

/* ---- no commit yet */

static void seek_to(struct play *play, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = scene_partitions(&play->scene);
    list->elems[0].offset = offset;
    CHECK_I64(unsalt_seek(play->reader.consumer, list, MS), 0);
    CHECK_I64(list->elems[0].err, 0);
    rd_kafka_topic_partition_list_destroy(list);
}

/* With offset.reset=latest the end of the log was the start, and is another one by now. */
static void before_the_first_commit(const char *checkpoint) {
    struct play play;
    play_open(&play, "rewind-latest");
    send_numbers(&play, 1, 3);
    join(&play, checkpoint, "latest", false);
    reader_wait_assigned(&play.reader);
    if (strcmp(checkpoint, "none") != 0)
        wait_loaded(&play, 1);
    send_numbers(&play, 4, 8);
    expect(&play, 4, 8);
    rewind_it(&play);
    expect(&play, 4, 7);
    rewind_it(&play); /* there is still none */
    expect(&play, 4, 8);
    seek_to(&play, 6);
    expect(&play, 7, 8);
    rewind_it(&play); /* to where it was sought */
    expect(&play, 7, 8);
    done(&play);
    CHECK_I64(unsalt_commit(play.reader.consumer, 0), 0);
    send_numbers(&play, 9, 11);
    expect(&play, 9, 10);
    rewind_it(&play); /* to the commit */
    expect(&play, 9, 11);
    play_close(&play);
}

Test(rewind, before_the_first_commit_it_goes_back_to_the_start, .timeout = 120) {
    before_the_first_commit("none");
}

Test(rewind, before_the_first_commit_it_goes_back_to_the_start_with_a_checkpoint, .timeout = 120) {
    before_the_first_commit("topic");
}

/* ---- a commit under way */

/* It may be through at once. */
static void begin_commit(struct play *play) {
    rd_kafka_resp_err_t err = unsalt_commit(play->reader.consumer, 1);
    CHECK_THAT(!err || err == RD_KAFKA_RESP_ERR__IN_PROGRESS, "%s", rd_kafka_err2name(err));
}

/* 1..2 are committed; 3..10 are in a commit that has just begun, or in none; 11 is in the application's hands. */
static void open_under_way(struct play *play, bool assigned) {
    play_open(play, "rewind-commit");
    send_numbers(play, 1, 20);
    join(play, "topic", "earliest", assigned);
    expect(play, 1, 3);
    CHECK_I64(unsalt_commit(play->reader.consumer, 0), 0);
    expect(play, 4, 11);
    play->commits = 0;
    begin_commit(play);
}

static void nothing_comes_again(struct play *play, uint64_t next_number) {
    done(play);
    CHECK_I64(unsalt_commit(play->reader.consumer, 0), 0);
    CHECK_I64(reader_close(&play->reader), 0);
    join(play, "topic", "earliest", false);
    send_numbers(play, next_number, next_number);
    expect(play, next_number, next_number);
}

Test(rewind, a_commit_under_way_counts, .timeout = 120) {
    struct play play;
    open_under_way(&play, false);
    rewind_it(&play);
    expect(&play, 11, 20);
    CHECK_U64(play.commits, 1);
    nothing_comes_again(&play, 21);
    play_close(&play);
}

Test(rewind, an_assignment_waits_for_the_commit_under_way, .timeout = 120) {
    struct play play;
    open_under_way(&play, true);
    rd_kafka_topic_partition_list_t *list = scene_partitions(&play.scene);
    list->elems[0].offset = RD_KAFKA_OFFSET_STORED;
    CHECK_I64(unsalt_assign(play.reader.consumer, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    expect(&play, 11, 20);
    CHECK_U64(play.commits, 1);
    nothing_comes_again(&play, 21);
    play_close(&play);
}

/* The member leaves meanwhile, so the broker may refuse the commit: all of it counts, or nothing. */
Test(rewind, a_revoke_with_a_commit_under_way, .timeout = 120) {
    struct play play;
    open_under_way(&play, false);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    CHECK_I64(unsalt_unsubscribe(play.reader.consumer), 0);
    rd_kafka_topic_partition_list_add(topics, play.scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(play.reader.consumer, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    uint64_t first = next(&play);
    for (uint64_t last = 11; first == last + 1; first = next(&play)) /* what was in the buffer, until the revoke */
        last = first;
    CHECK_THAT(first == (play.commits ? 11 : 3), "%d came first, %u commits", (int)first, play.commits);
    expect(&play, first + 1, 20);
    nothing_comes_again(&play, 21);
    play_close(&play);
}

Test(rewind, a_seek_with_a_commit_under_way, .timeout = 120) {
    struct play play;
    open_under_way(&play, false);
    seek_to(&play, 4);
    expect(&play, 5, 20);
    nothing_comes_again(&play, 21);
    play_close(&play);
}

/* Commits begin by themselves, and are in all states when it goes back. */
Test(rewind, automatic_commits_under_way, .timeout = 120) {
    enum { ALL = 400 };
    struct play play;
    uint64_t last = 0;
    play_open(&play, "rewind-auto");
    send_numbers(&play, 1, ALL);
    rd_kafka_conf_t *conf = scene_consumer_conf(&play.scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play.scene, 0);
    scene_set(conf, "auto.commit.interval.ms", "1");
    scene_unsalt_set(mine, "checkpoint", "topic");
    reader_open(&play.reader, &play.scene, conf, mine, play.delivered);
    for (int i = 0; last < ALL; i++) {
        uint64_t first = next(&play);
        CHECK_THAT(first > 0 && first <= last + 1, "%d came after %d", (int)first, (int)last);
        for (last = first; last < ALL && last < first + 10 + (uint64_t)i % 7;)
            expect(&play, last + 1, last + 1), last++;
        if (i % 3)
            begin_commit(&play);
        if (last < ALL)
            rewind_it(&play);
        CHECK_U64(play.reader.events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
        CHECK_THAT(i < ALL, "it doesn't get on");
    }
    play_close(&play);
}

/* ---- cursors are being read */

static void send_all(struct play *play, uint64_t seq) {
    struct sender *sender = sender_open(&play->scene, SENDER_STAMPED, 1, play->accepted);
    char session[32];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(session, sizeof session, "cold-%d", i);
        sender_send(sender, session, seq);
    }
    sender_close(sender);
}

/* A transaction that somebody has open in the topic of checkpoints: reading waits for its end. */
static rd_kafka_t *hold_open(const struct play *play) {
    char topic[128];
    rd_kafka_t *producer = transformer_producer("rewind-holder");
    snprintf(topic, sizeof topic, "%s.unsalt", play->scene.group);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    CHECK_I64(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("k", 1),
                                RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END), 0);
    CHECK_I64(rd_kafka_flush(producer, MS), 0);
    return producer;
}

Test(rewind, while_cursors_are_read_they_stay, .timeout = 120) {
    struct play play;
    play_open(&play, "rewind-load");
    send_all(&play, 1);
    join(&play, "topic", "earliest", false);
    for (int i = 0; i < SESSIONS; i++)
        CHECK_U64(next(&play), 1);
    done(&play);
    CHECK_I64(unsalt_commit(play.reader.consumer, 0), 0);
    CHECK_I64(reader_close(&play.reader), 0);

    rd_kafka_t *holder = hold_open(&play);
    join(&play, "topic", "earliest", false);
    for (double until = scene_now() + PATIENCE; reader_stats(&play.reader).cursors_restored < SESSIONS;) {
        CHECK_THAT(scene_now() < until, "%d cursors", (int)reader_stats(&play.reader).cursors_restored);
        CHECK_U64(reader_poll(&play.reader, 1, 20), 0);
    }
    CHECK_U64(reader_stats(&play.reader).checkpoint_loads, 0);
    rewind_it(&play);
    rewind_it(&play);
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(holder, MS)), 0);
    rd_kafka_destroy(holder);
    wait_loaded(&play, 1);
    send_all(&play, 2);
    for (int i = 0; i < SESSIONS; i++)
        CHECK_U64(next(&play), 2);
    play_close(&play);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What people do to a group and to its checkpoint topic: offsets that are reset, seeks, entries of no good. */
#include <base/crc32.h>
#include <broker/fixture/course.h>
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <codec/checkpoint.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

enum { HOT = 3000, COLD = 40, EACH = 50, ALL = HOT + COLD * EACH };

struct play {
    struct scene scene;
    checker_log_t *accepted;
    struct course course;
    struct course_member member;
};

static uint64_t all_open(const struct play *play) {
    uint64_t open = 0;
    for (int s = 0; s <= COLD; s++)
        open += course_open_numbers(&play->course, s, s ? EACH : HOT);
    return open;
}

static void play_open(struct play *play, const char *layout) {
    play->scene = (struct scene){.layout = layout, .partitions = 2, .lanes = 2};
    play->accepted = checker_log_new();
    course_open(&play->course);
    scene_open(&play->scene, "operator");
    sender_weave(&play->scene, SENDER_UNSALT, HOT, COLD, EACH, play->accepted);
    play->member = (struct course_member){.course = &play->course, .scene = &play->scene, .every = 3};
}

static void play_close(struct play *play) {
    CHECK_I64(course_leave(&play->member), 0);
    course_close(&play->course);
    checker_log_free(play->accepted);
    scene_close(&play->scene);
}

/* Everything is to come again. */
static void forget(struct play *play) {
    course_close(&play->course);
    course_open(&play->course);
}

static void take(struct play *play, uint64_t n) {
    CHECK_U64(course_take(&play->member, n, true), n);
    CHECK_I64(course_commit(&play->member), 0);
}

static void join(struct play *play) {
    memset(play->member.events, 0, sizeof play->member.events);
    play->member.loaded = 0;
    course_join(&play->member);
}

static void rejoin(struct play *play) {
    CHECK_I64(course_leave(&play->member), 0);
    join(play);
}

static void rest(struct play *play) {
    uint64_t open = all_open(play);
    CHECK_U64(course_take(&play->member, open, true), open);
    course_ack_late(&play->member, 0);
    CHECK_I64(course_commit(&play->member), 0);
    CHECK_U64(all_open(play), 0);
}

/* Each lane set is read for itself: until all were. */
static void expect_events(struct play *play, unsigned ignored, unsigned refused) {
    struct course_member *member = &play->member;
    unsigned sets = strcmp(play->scene.layout, "topics") == 0 ? (unsigned)play->scene.partitions : 1;
    for (double until = scene_now() + 20; member->events[UNSALT_EVENT_CHECKPOINT_LOADED] < sets;) {
        CHECK_THAT(scene_now() < until, "a lane set isn't loaded");
        course_poll(member, 20, 50, true);
    }
    CHECK_THAT(member->events[UNSALT_EVENT_CHECKPOINT_IGNORED] == ignored, "%u sets were ignored, not %u; the last: %s",
               member->events[UNSALT_EVENT_CHECKPOINT_IGNORED], ignored,
               member->texts[UNSALT_EVENT_CHECKPOINT_IGNORED]);
    CHECK_U64(member->events[UNSALT_EVENT_CHECKPOINT_REFUSED], refused);
    CHECK_U64(member->events[UNSALT_EVENT_GAP], 0);
}

static rd_kafka_topic_partition_list_t *beginnings(const struct play *play) {
    rd_kafka_topic_partition_list_t *list = scene_partitions(&play->scene);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = 0;
    return list;
}

/*
 * As kafka-consumer-groups --reset-offsets does it. What the entries say is void for ever: also after commits and
 * restarts, when there are entries of both eras.
 */
Test(checkpoint_operator, offsets_are_reset, .timeout = 60) {
    struct play play;
    play_open(&play, "topics");
    play.member.every = 0; /* so that the committed offsets are others than those of the reset */
    join(&play);
    rest(&play);
    play.member.every = 3;
    CHECK_I64(course_leave(&play.member), 0);
    rd_kafka_topic_partition_list_t *list = beginnings(&play);
    scene_commit(&play.scene, list);
    rd_kafka_topic_partition_list_destroy(list);
    forget(&play);
    join(&play);
    CHECK_U64(course_take(&play.member, 700, false), 700);
    expect_events(&play, 2, 0);
    CHECK_THAT(strstr(play.member.texts[UNSALT_EVENT_CHECKPOINT_IGNORED], "begins at offset 0"), "%s",
               play.member.texts[UNSALT_EVENT_CHECKPOINT_IGNORED]);

    rejoin(&play); /* nothing was committed: the same again */
    take(&play, ALL - EACH); /* more than either lane set has, so that each has something to commit */
    expect_events(&play, 2, 0);

    rejoin(&play);
    CHECK_U64(course_take(&play.member, 500, false), 500);
    expect_events(&play, 0, 0);
    CHECK(play.member.loaded > 0);
    rejoin(&play);
    rest(&play);
    expect_events(&play, 0, 0);
    play_close(&play);
}

/* To the beginning, and not committed: a restart goes on where the last commit was. Committed: it is another era. */
Test(checkpoint_operator, seeks, .timeout = 60) {
    struct play play;
    play_open(&play, "topics");
    join(&play);
    take(&play, 3500);
    expect_events(&play, 0, 0); /* a set whose cursors are being read can't be moved */
    uint64_t open = all_open(&play);
    rd_kafka_topic_partition_list_t *list = beginnings(&play);
    CHECK_I64(unsalt_seek(play.member.u, list, 10000), 0);
    for (int i = 0; i < list->cnt; i++)
        CHECK_I64(list->elems[i].err, 0);
    uint8_t *before = play.course.state;
    course_open(&play.course);
    CHECK_U64(course_take(&play.member, 1000, true), 1000);
    course_close(&play.course);
    course_open(&play.course);
    memcpy(play.course.state, before, (size_t)COURSE_SESSIONS * COURSE_NUMBERS);
    CHECK_U64(all_open(&play), open);

    rejoin(&play);
    take(&play, 300);
    expect_events(&play, 0, 0);
    CHECK_I64(unsalt_seek(play.member.u, list, 10000), 0);
    forget(&play);
    take(&play, 1500);
    rejoin(&play);
    take(&play, 500);
    expect_events(&play, 0, 0);
    rejoin(&play);
    rest(&play);
    expect_events(&play, 0, 0);
    rd_kafka_topic_partition_list_destroy(list);
    play_close(&play);
    free(before);
}

/* ---- a group, or a topic, that is deleted: the entries stay */

struct anew {
    struct scene scene;
    checker_log_t *accepted, *delivered;
    struct reader reader;
};

static void anew_send(struct anew *anew, const char *session, uint64_t first, uint64_t last) {
    struct sender *sender = sender_open(&anew->scene, SENDER_STAMPED, 1, anew->accepted);
    for (uint64_t seq = first; seq <= last; seq++)
        sender_send(sender, session, seq);
    sender_close(sender);
}

static void anew_join(struct anew *anew) {
    rd_kafka_conf_t *conf = scene_consumer_conf(&anew->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&anew->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_unsalt_set(mine, "checkpoint", "topic");
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    scene_unsalt_set(mine, "start", "first");
    reader_open(&anew->reader, &anew->scene, conf, mine, anew->delivered);
}

/* Committed: offset 0, where a record waits for number 1 of its session; and above it ten that are done. */
static void anew_open(struct anew *anew) {
    *anew = (struct anew){.scene = {.layout = "hash", .partitions = 1, .lanes = 1}};
    anew->accepted = checker_log_new();
    anew->delivered = checker_log_new();
    scene_open(&anew->scene, "anew");
    anew_send(anew, "hot", 2, 2);
    anew_send(anew, "cold-1", 1, 10);
    anew_join(anew);
    CHECK_U64(reader_take(&anew->reader, 10, 20), 10);
    CHECK_U64(reader_poll(&anew->reader, 1, 0), 0);
    CHECK_I64(unsalt_commit(anew->reader.consumer, 0), 0);
    CHECK_I64(reader_close(&anew->reader), 0);
    CHECK_I64(scene_log_committed(&anew->scene, anew->delivered).partitions, 1);
}

/* So many come, and nothing passes for done. */
static void anew_close(struct anew *anew, uint64_t records) {
    anew_join(anew);
    CHECK_U64(reader_take(&anew->reader, records, 20), records);
    CHECK_U64(anew->reader.events[UNSALT_EVENT_CHECKPOINT_IGNORED], 1);
    CHECK_U64(reader_stats(&anew->reader).done_before, 0);
    CHECK_I64(unsalt_commit(anew->reader.consumer, 0), 0);
    CHECK_I64(reader_close(&anew->reader), 0);
    checker_log_free(anew->accepted);
    checker_log_free(anew->delivered);
    scene_close(&anew->scene);
}

static rd_kafka_resp_err_t delete_group(const struct scene *scene) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteGroup_t *group = rd_kafka_DeleteGroup_new(scene->group);
    size_t n = 0;
    rd_kafka_DeleteGroups(rk, &group, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    const rd_kafka_group_result_t **results =
        event ? rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event), &n) : NULL;
    rd_kafka_resp_err_t err = n == 1 ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (n == 1 && rd_kafka_group_result_error(results[0]))
        err = rd_kafka_error_code(rd_kafka_group_result_error(results[0]));
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_DeleteGroup_destroy(group);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return err;
}

Test(checkpoint_operator, a_deleted_group_s_entries_are_void, .timeout = 90) {
    struct anew anew;
    rd_kafka_resp_err_t err;
    anew_open(&anew);
    for (double until = scene_now() + 20; (err = delete_group(&anew.scene)) != RD_KAFKA_RESP_ERR_NO_ERROR;)
        CHECK_THAT(scene_now() < until, "the group isn't deleted: %s", rd_kafka_err2name(err));
    anew_close(&anew, 10);
}

/* A broker forgets a group's offsets of a topic with the topic. Its offsets begin at 0 again, with other records. */
Test(checkpoint_operator, entries_of_a_topic_made_anew_are_void, .timeout = 90) {
    struct anew anew;
    anew_open(&anew);
    scene_close(&anew.scene);
    for (double until = scene_now() + 20; scene_log_committed(&anew.scene, anew.delivered).partitions > 0;)
        CHECK_THAT(scene_now() < until, "the group keeps its offsets of the topic");
    scene_create(&anew.scene);
    anew_send(&anew, "cold-2", 1, 11);
    anew_close(&anew, 11);
}

/* ---- entries that can't be trusted */

struct hand {
    rd_kafka_t *rk;
    char topic[128];
    const char *base;
};

static void put(const struct hand *hand, const void *key, size_t key_len, const void *value, size_t value_len) {
    CHECK_I64(rd_kafka_producev(hand->rk, RD_KAFKA_V_TOPIC(hand->topic), RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_KEY((void *)(uintptr_t)key, key_len),
                                RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value_len),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END), 0);
}

static size_t key_of(const struct hand *hand, const char *session, uint8_t *key, size_t size) {
    return us_checkpoint_session_key(hand->base, strlen(hand->base), session, strlen(session), key, size);
}

/* An entry of a session: `version`, whose checksum is right if `honest`; cursor far ahead of what was done. */
static void put_session(const struct hand *hand, const char *session, uint8_t version, bool honest) {
    const struct us_checkpoint_session entry = {.epoch = 1, .cursor = 40};
    uint8_t key[400], value[100];
    size_t len = 0;
    size_t key_len = key_of(hand, session, key, sizeof key);
    CHECK_I64(us_checkpoint_write_session(&entry, key, key_len, value, sizeof value, &len), US_CHECKPOINT_OK);
    value[0] = version;
    uint32_t sum = us_crc32(us_crc32(us_crc32(0, key, key_len), value, 1), value + 5, len - 5) ^ (honest ? 0 : 1);
    for (int i = 0; i < 4; i++)
        value[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
    put(hand, key, key_len, value, len);
}

static void remove_session(const struct hand *hand, const char *session) {
    uint8_t key[400];
    size_t key_len = key_of(hand, session, key, sizeof key);
    put(hand, key, key_len, NULL, 0);
}

/*
 * Each refused one is told of, and no session gets a cursor from it: what isn't covered comes, what is doesn't.
 * Sessions whose entries are refused or removed start as if there were none; here all of theirs that is done is known
 * by offsets.
 */
Test(checkpoint_operator, entries_that_cant_be_trusted, .timeout = 60) {
    struct play play;
    char errstr[256], place[300];
    play_open(&play, "hash");
    play.member.every = 0;
    join(&play);
    take(&play, 2500);
    CHECK_I64(course_leave(&play.member), 0);
    struct hand hand = {.base = play.scene.topic};
    snprintf(hand.topic, sizeof hand.topic, "%s.unsalt", play.scene.group);
    hand.rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    put_session(&hand, "cold-1", 1, false);
    put_session(&hand, "cold-2", 2, true);
    put(&hand, "k", 1, "garbage", 7);
    put(&hand, "X", 1, NULL, 0);
    remove_session(&hand, "cold-3");
    put_session(&hand, "nobody", 1, false);
    CHECK_I64(rd_kafka_flush(hand.rk, 20000), 0);
    rd_kafka_destroy(hand.rk);
    join(&play);
    CHECK_U64(course_take(&play.member, 500, true), 500);
    expect_events(&play, 0, 5);
    unsalt_stats_t stats;
    unsalt_stats(play.member.u, &stats, sizeof stats);
    CHECK_U64(stats.checkpoint_refused, 5);
    snprintf(place, sizeof place, "%s [0] offset ", hand.topic);
    CHECK_THAT(strstr(play.member.texts[UNSALT_EVENT_CHECKPOINT_REFUSED], place), "no \"%s\" in: %s", place,
               play.member.texts[UNSALT_EVENT_CHECKPOINT_REFUSED]);
    CHECK_I64(course_commit(&play.member), 0);
    rejoin(&play); /* the refused entries of sessions that went on were written again */
    rest(&play);
    play_close(&play);
}

/* ---- the topic */

static void keep_text(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    char *to = rd_kafka_opaque(rk);
    (void)facility;
    if (level <= 3)
        snprintf(to, 600, "%s", text);
}

/* What unsalt_subscribe() returns, and what is logged. */
static rd_kafka_resp_err_t subscribe(const struct scene *scene, const char *key, const char *value, char *text) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    rd_kafka_conf_set_log_cb(conf, keep_text);
    rd_kafka_conf_set_opaque(conf, text);
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(scene, 0);
    scene_unsalt_set(unsalt_conf, "checkpoint", "topic");
    scene_unsalt_set(unsalt_conf, key, value);
    unsalt_t *u = unsalt_new(conf, unsalt_conf, errstr, sizeof errstr);
    CHECK_THAT(u, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene->topic, RD_KAFKA_PARTITION_UA);
    text[0] = 0;
    rd_kafka_resp_err_t err = unsalt_subscribe(u, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    unsalt_destroy(u);
    return err;
}

Test(checkpoint_operator, a_topic_that_isnt_there_or_has_other_partitions, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 2, .lanes = 2};
    struct scene other = {.layout = "hash", .partitions = 3, .lanes = 1};
    char text[600];
    scene_open(&scene, "no-topic");
    scene_open(&other, "other-topic");
    CHECK_I64(subscribe(&scene, "checkpoint.create", "false", text), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    CHECK_THAT(strstr(text, "checkpoint=topic") && strstr(text, scene.group), "%s", text);
    CHECK_I64(subscribe(&scene, "checkpoint.topic", other.topic, text), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_THAT(strstr(text, other.topic) && strstr(text, "3") && strstr(text, "2"), "%s", text);
    CHECK_I64(subscribe(&scene, "checkpoint.create", "true", text), 0);
    CHECK_STR(text, "");
    scene_close(&scene);
    scene_close(&other);
}

/* One that somebody made by hand, or a broker by itself; with `compact` in any place it is as good as one of ours. */
Test(checkpoint_operator, a_topic_that_isnt_compacted, .timeout = 60) {
    static const char *const delete_only[] = {"cleanup.policy", "delete", NULL};
    static const char *const compacted[] = {"cleanup.policy", "compact", NULL};
    struct scene scene = {.layout = "hash", .partitions = 2, .lanes = 2};
    struct scene deletes = {.layout = "hash", .partitions = 2, .lanes = 1, .config = delete_only};
    struct scene compacts = {.layout = "hash", .partitions = 2, .lanes = 1, .config = compacted};
    char text[600];
    scene_open(&scene, "policy");
    scene_open(&deletes, "policy-delete");
    scene_open(&compacts, "policy-compact");
    CHECK_I64(subscribe(&scene, "checkpoint.topic", deletes.topic, text), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_THAT(strstr(text, deletes.topic) && strstr(text, "cleanup.policy=delete") && strstr(text, "compact,delete"),
               "%s", text);
    CHECK_I64(subscribe(&scene, "checkpoint.topic", compacts.topic, text), 0);
    CHECK_STR(text, "");
    scene_close(&scene);
    scene_close(&deletes);
    scene_close(&compacts);
}

/* ---- configurations that can't do */

static void refused(const char *level, const char *key, const char *value, const char *partitions, const char *word) {
    char errstr[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    unsalt_conf_t *unsalt_conf = unsalt_conf_new();
    scene_set(conf, "bootstrap.servers", "127.0.0.1:1");
    scene_set(conf, "group.id", "g");
    scene_set(conf, "isolation.level", level);
    scene_unsalt_set(unsalt_conf, "checkpoint", "topic");
    if (partitions)
        scene_unsalt_set(unsalt_conf, "partitions", partitions);
    scene_unsalt_set(unsalt_conf, key, value);
    CHECK(!unsalt_new(conf, unsalt_conf, errstr, sizeof errstr));
    CHECK_THAT(strstr(errstr, "checkpoint=topic") && strstr(errstr, word), "%s", errstr);
    rd_kafka_conf_destroy(conf);
    unsalt_conf_destroy(unsalt_conf);
}

Test(checkpoint_operator, configurations_that_are_refused, .timeout = 30) {
    refused("read_committed", "colocation", "report", "4", "colocation=refuse");
    refused("read_committed", "colocation", "refuse", NULL, "needs partitions");
    refused("read_uncommitted", "colocation", "refuse", "4", "it must be read_committed");
}

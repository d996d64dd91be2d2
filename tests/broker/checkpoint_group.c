/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups with a checkpoint: a lane set moves with its cursors, and who was thrown out leaves no trace. */
#include <broker/fixture/child.h>
#include <broker/fixture/course.h>
#include <broker/fixture/sender.h>
#include <codec/checkpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 6000, COLD = 60, EACH = 100 };

static uint64_t all_open(const struct course *course) {
    uint64_t open = 0;
    for (int s = 0; s <= COLD; s++)
        open += course_open_numbers(course, s, s ? EACH : HOT);
    return open;
}

static void no_trouble(const struct course_member *member) {
    CHECK_THAT(member->events[UNSALT_EVENT_GAP] + member->events[UNSALT_EVENT_RESUMED] == 0, "%s %s",
               member->texts[UNSALT_EVENT_GAP], member->texts[UNSALT_EVENT_RESUMED]);
    CHECK_STR(member->texts[UNSALT_EVENT_CHECKPOINT_REFUSED], "");
    CHECK_STR(member->texts[UNSALT_EVENT_CHECKPOINT_IGNORED], "");
}

/* ---- coming and going */

enum { MEMBERS = 3 };

struct pair {
    struct course course;
    struct course_member members[MEMBERS];
};

/* Polls all that are there, in turns, until so much more was delivered by them together; commits now and then. */
static void work(struct pair *pair, uint64_t records) {
    uint64_t until = pair->course.deliveries + records;
    double deadline = scene_now() + 30;
    for (unsigned turn = 0; pair->course.deliveries < until && all_open(&pair->course) > 0; turn++) {
        CHECK_THAT(scene_now() < deadline, "%d numbers are missing, and nothing comes", (int)all_open(&pair->course));
        for (int i = 0; i < MEMBERS; i++) {
            struct course_member *member = &pair->members[i];
            if (!member->u)
                continue;
            course_poll(member, 100, 20, true);
            course_ack_late(member, turn % 7 ? 200 : 0);
            if ((turn + (unsigned)i) % 5 == 0)
                course_commit(member);
        }
    }
}

static void settle(struct pair *pair, int member) {
    unsigned before = pair->members[member].assigned;
    double deadline = scene_now() + 30;
    while (pair->members[member].assigned == before) {
        CHECK_THAT(scene_now() < deadline, "member %d gets nothing", member);
        work(pair, 1);
        for (int i = 0; i < MEMBERS; i++)
            if (pair->members[i].u)
                course_poll(&pair->members[i], 20, 10, true);
    }
}

static void leave(struct pair *pair, int i) {
    no_trouble(&pair->members[i]);
    course_ack_late(&pair->members[i], 0);
    course_commit(&pair->members[i]);
    CHECK_I64(course_leave(&pair->members[i]), 0);
}

/* ---- what is stored */

enum { BYTES = 8192 };

/* The newest entry of a session. */
struct stored {
    unsigned char key[256], value[BYTES];
    size_t key_len, value_len;
};

static struct us_checkpoint_fields fields_of(const void *key, size_t key_len, const void *value, size_t value_len) {
    struct us_checkpoint_fields entry;
    CHECK_I64(us_checkpoint_read(key, key_len, value, value_len, &entry), US_CHECKPOINT_OK);
    return entry;
}

static bool covers(const struct us_checkpoint_fields *entry, uint64_t first, uint64_t last) {
    struct us_checkpoint_ranges done = entry->done;
    unsalt_core_range_t range;
    first = first < entry->cursor ? entry->cursor : first;
    bool all = first > last;
    while (!all && us_checkpoint_ranges_next(&done, &range))
        all = range.first <= first && last <= range.last;
    return all;
}

/* Nothing was lost or given up: whatever is stored covers what was stored before it, and nobody began in the middle. */
static void enter(struct stored *stored, const rd_kafka_message_t *message) {
    struct us_checkpoint_fields now = fields_of(message->key, message->key_len, message->payload, message->len);
    unsalt_core_range_t range;
    int session = now.kind == UNSALT_CHECKPOINT_SESSION ? course_session(now.session, now.session_len) : -1;
    if (session < 0)
        return;
    struct stored *mine = &stored[session];
    CHECK_U64(now.floor, 0);
    CHECK_U64(now.skipped.count, 0);
    if (mine->value_len > 0) {
        struct us_checkpoint_fields before = fields_of(mine->key, mine->key_len, mine->value, mine->value_len);
        CHECK_U64(now.era, before.era);
        CHECK_THAT(now.cursor >= before.cursor, "session %d: cursor %d is stored behind %d", session, (int)now.cursor,
                   (int)before.cursor);
        while (us_checkpoint_ranges_next(&before.done, &range))
            CHECK_THAT(covers(&now, range.first, range.last), "session %d: %d..%d was done, and isn't any more",
                       session, (int)range.first, (int)range.last);
    }
    CHECK(message->len <= BYTES && message->key_len <= sizeof mine->key);
    mine->key_len = message->key_len;
    mine->value_len = message->len;
    memcpy(mine->key, message->key, message->key_len);
    memcpy(mine->value, message->payload, message->len);
}

/* Every entry that was ever stored, in the order of the log. */
static void look_at_stored(const struct scene *scene) {
    struct stored *stored = calloc(COURSE_SESSIONS, sizeof *stored);
    char topic[sizeof scene->group + 8], errstr[256];
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(scene->partitions);
    double deadline = scene_now() + 30;
    int open = scene->partitions;
    snprintf(topic, sizeof topic, "%s.unsalt", scene->group);
    for (int i = 0; i < scene->partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    scene_set(conf, "enable.partition.eof", "true");
    scene_set(conf, "enable.auto.commit", "false");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    rd_kafka_assign(rk, list);
    while (open > 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        CHECK_THAT(scene_now() < deadline, "%s has no end", topic);
        open -= message && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (message && !message->err)
            enter(stored, message);
        if (message)
            rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    free(stored);
}

/* whole: with a third member. */
static void come_and_go(const char *const *conf, bool whole) {
    struct scene scene = {.layout = "topics", .partitions = 6, .lanes = 3};
    checker_log_t *accepted = checker_log_new();
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    course_open(&pair.course);
    pair.course.pieces = true;
    scene_open(&scene, "come-go");
    for (int i = 0; i < MEMBERS; i++)
        pair.members[i] = (struct course_member){
            .course = &pair.course, .scene = &scene, .number = i, .conf = conf, .every = 3, .commits = true};
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    course_join(&pair.members[0]);
    work(&pair, 1500);
    course_join(&pair.members[1]);
    settle(&pair, 1);
    work(&pair, 1500);
    if (whole) {
        course_join(&pair.members[2]);
        settle(&pair, 2);
        work(&pair, 1500);
        leave(&pair, 1);
        work(&pair, 1500);
        course_join(&pair.members[1]);
        settle(&pair, 1);
        leave(&pair, 2);
    }
    leave(&pair, 0);
    work(&pair, HOT + COLD * EACH);
    leave(&pair, 1);
    CHECK_U64(all_open(&pair.course), 0);
    course_join(&pair.members[0]);
    CHECK_U64(course_poll(&pair.members[0], 100, 1500, true), 0);
    no_trouble(&pair.members[0]);
    CHECK_I64(course_leave(&pair.members[0]), 0);
    look_at_stored(&scene);
    course_close(&pair.course);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(checkpoint_group, members_come_and_go, .timeout = 90) {
    come_and_go(NULL, true);
}

/* Sets come in pieces; librdkafka before 2.12 has no server-side assignors. */
Test(checkpoint_group, members_come_and_go_with_the_new_protocol, .timeout = 120) {
    static const char *const conf[] = {"group.protocol", "consumer", NULL};
    if (rd_kafka_version() >= 0x020c00ff)
        come_and_go(conf, getenv("UNSALT_LONG") != NULL);
}

/* ---- a zombie */

struct task {
    struct scene scene;
    char path[64];
    int number;
    bool stop; /* soon; else when it is told to */
};

static void send_all(void *arg) {
    const struct task *task = arg;
    checker_log_t *accepted = checker_log_new();
    scene_create(&task->scene);
    sender_weave(&task->scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    checker_log_free(accepted);
}

static const char *const quick[] = {"session.timeout.ms", "2000", NULL};

static void join(struct course_member *member, const struct task *task) {
    *member = (struct course_member){.scene = &task->scene, .conf = quick, .number = task->number};
    member->log = child_open(task->path);
    course_join(member);
}

/* Commits once, stops itself with more that is acknowledged, and tries to commit that when it goes on. */
static void freeze(void *arg) {
    struct course_member member;
    join(&member, arg);
    if (course_take(&member, 1000, true) != 1000 || course_commit(&member))
        scene_die("the first member doesn't get on");
    if (course_take(&member, 1000, true) != 1000)
        scene_die("the first member doesn't get on");
    raise(SIGSTOP);
    rd_kafka_resp_err_t err = course_commit(&member);
    if (!err)
        scene_die("the commit of a member that was thrown out is taken");
    for (double until = scene_now() + 30; member.lost == 0;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(member.u, 100);
        if (message || scene_now() > until)
            scene_die(message ? "a member that was thrown out delivers" : "nobody tells it");
    }
    fprintf(stderr, "the zombie's commit: %s; %s; %s\n", rd_kafka_err2name(err),
            member.texts[UNSALT_EVENT_COMMIT_FAILED], member.texts[UNSALT_EVENT_ASSIGNMENT_LOST]);
    if (!member.events[UNSALT_EVENT_ASSIGNMENT_LOST])
        scene_die("no event says that it was thrown out");
    course_leave(&member);
}

static void go_on(void *arg) {
    const struct task *task = arg;
    struct course_member member;
    join(&member, task);
    for (int empty = 0; task->stop ? empty < 5 : !course_stopped(task->path);) {
        uint64_t n = course_poll(&member, 100, 100, true);
        if (n && course_commit(&member))
            scene_die("a commit failed");
        empty += member.events[UNSALT_EVENT_CHECKPOINT_LOADED] > 0;
    }
    no_trouble(&member);
    course_leave(&member);
}

static void nap(void) {
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
}

Test(checkpoint_group, a_zombie_leaves_no_trace, .timeout = 120) {
    struct task task = {.scene = {.layout = "topics", .partitions = 3, .lanes = 2}};
    struct course course;
    long from = 0;
    int status;
    course_open(&course);
    scene_name(&task.scene, "zombie");
    course_path(task.path, sizeof task.path);
    child_run(send_all, &task);
    pid_t zombie = child_start(freeze, &task);
    CHECK_I64(waitpid(zombie, &status, WUNTRACED), zombie);
    CHECK(WIFSTOPPED(status));
    course_replay(&course, task.path, &from);
    uint64_t before = all_open(&course);
    CHECK_U64(before, HOT + COLD * EACH - 1000);
    task.number = 1;
    pid_t second = child_start(go_on, &task);
    for (double until = scene_now() + 60; all_open(&course) == before; nap()) {
        CHECK_THAT(scene_now() < until, "the new owner covers nothing");
        course_replay(&course, task.path, &from);
    }
    kill(zombie, SIGCONT);
    CHECK_I64(waitpid(zombie, &status, 0), zombie);
    CHECK_I64(status, 0);
    for (double until = scene_now() + 30; all_open(&course) > 0; nap()) {
        CHECK_THAT(scene_now() < until, "%d numbers are not covered", (int)all_open(&course));
        course_replay(&course, task.path, &from);
    }
    course_stop(task.path);
    CHECK_I64(waitpid(second, &status, 0), second);
    CHECK_I64(status, 0);
    uint64_t delivered = course.deliveries;
    task.stop = true;
    child_run(go_on, &task); /* all is covered still */
    course_replay(&course, task.path, &from);
    CHECK_U64(course.deliveries, delivered);
    course_unlink(task.path);
    course_close(&course);
}

/* ---- a transaction that nobody ends */

/* Entries, and perhaps offsets, of a member that has gone since. */
static rd_kafka_t *leave_open(const struct scene *scene, const struct course_member *member, bool offsets) {
    char errstr[256], topic[128];
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "transactional.id", scene->group);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *list = scene_partitions(scene);
    snprintf(topic, sizeof topic, "%s.unsalt", scene->group);
    CHECK(!rd_kafka_init_transactions(rk, 20000));
    CHECK(!rd_kafka_begin_transaction(rk));
    for (int p = 0; p < scene->partitions; p++)
        CHECK_I64(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(p), RD_KAFKA_V_KEY("k", 1),
                                    RD_KAFKA_V_VALUE("garbage", 7), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                    RD_KAFKA_V_END), 0);
    CHECK_I64(rd_kafka_flush(rk, 20000), 0);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = 1;
    if (offsets) {
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(unsalt_handle(member->u));
        CHECK(!rd_kafka_send_offsets_to_transaction(rk, list, metadata, 20000));
        rd_kafka_consumer_group_metadata_destroy(metadata);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return rk;
}

static void waits_for_it(bool offsets) {
    struct scene scene = {.layout = "topics", .partitions = 2, .lanes = 2};
    checker_log_t *accepted = checker_log_new();
    struct course course;
    struct course_member member = {.course = &course, .scene = &scene, .every = 3};
    course_open(&course);
    scene_open(&scene, "left-open");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    course_join(&member);
    CHECK_U64(course_take(&member, 2000, true), 2000);
    CHECK_I64(course_commit(&member), 0);
    rd_kafka_t *other = leave_open(&scene, &member, offsets);
    CHECK_I64(course_leave(&member), 0);
    memset(member.events, 0, sizeof member.events);
    course_join(&member);
    for (double until = scene_now() + 30; member.events[UNSALT_EVENT_CHECKPOINT_PROGRESS] < 2;) {
        CHECK_U64(course_poll(&member, 100, 100, true), 0);
        CHECK_THAT(scene_now() < until, "nothing is said");
    }
    const char *text = member.texts[UNSALT_EVENT_CHECKPOINT_PROGRESS];
    CHECK_THAT(strstr(text, "another member's transaction"), "%s", text);
    CHECK_U64(member.events[UNSALT_EVENT_CHECKPOINT_LOADED], 0);
    CHECK(!rd_kafka_abort_transaction(other, 20000));
    uint64_t open = all_open(&course);
    CHECK_U64(course_take(&member, open, true), open);
    course_ack_late(&member, 0);
    CHECK_I64(course_commit(&member), 0);
    CHECK_U64(all_open(&course), 0);
    no_trouble(&member);
    CHECK_I64(course_leave(&member), 0);
    rd_kafka_destroy(other);
    course_close(&course);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(checkpoint_group, waits_while_entries_are_in_an_open_transaction, .timeout = 90) {
    waits_for_it(false);
}

Test(checkpoint_group, waits_while_offsets_are_in_an_open_transaction, .timeout = 90) {
    waits_for_it(true);
}

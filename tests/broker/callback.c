/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checkpoint=callback with a store in memory that keeps what is committed, and can fail, or be rolled back: when the
 * callbacks are called, and what comes again after that. A database and killed processes: callback_steps.c.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <dlfcn.h>
#include <kafka/consumer.h>
#include <stdlib.h>
#include <support/check.h>

enum { SESSIONS = 21, HOT = 3000, EACH = 50, TOTAL = HOT + (SESSIONS - 1) * EACH, ROWS = 200, BYTES = 256 };

struct row {
    int32_t set;
    size_t key_len, value_len;
    unsigned char key[BYTES], value[BYTES];
};

struct table {
    struct row rows[ROWS];
    size_t count;
};

struct course {
    uint64_t last[SESSIONS];
};

struct play {
    struct scene scene;
    checker_log_t *accepted;
    unsalt_t *u;
    struct table durable, open; /* `open` is what the transaction under way will leave */
    unsigned entries, ends;     /* store: calls of the commit under way or the last one */
    int fail_at;                /* store fails at that entry; 0 = at none, -1 = at the end */
    int fail_loads;             /* so many loads fail, in the middle */
    unsigned loads[8];          /* of each set */
    double failed_at[8];        /* when its last load failed; 0: it didn't */
    unsigned others;            /* calls that failed which may not */
    unsigned events[UNSALT_EVENT__CNT];
};

/* ---- the store */

static void put(struct table *table, const unsalt_checkpoint_entry_t *entry) {
    struct row row = {.set = entry->set, .key_len = entry->key_len, .value_len = entry->value_len};
    size_t i = 0;
    if (entry->key_len > BYTES || entry->value_len > BYTES)
        scene_die("an entry of %zu and %zu bytes", entry->key_len, entry->value_len);
    memcpy(row.key, entry->key, entry->key_len);
    memcpy(row.value, entry->value, entry->value_len);
    while (i < table->count && (table->rows[i].key_len != row.key_len ||
                                memcmp(table->rows[i].key, row.key, row.key_len) != 0))
        i++;
    if (i == ROWS)
        scene_die("more than %d rows", ROWS);
    table->count += i == table->count;
    table->rows[i] = row;
}

static int store(void *opaque, const unsalt_checkpoint_entry_t *entry) {
    struct play *play = opaque;
    if (play->ends > 0) { /* a new commit */
        play->entries = play->ends = 0;
        play->open = play->durable;
    }
    play->others += unsalt_commit(play->u, 0) != RD_KAFKA_RESP_ERR__CONFLICT; /* as in an event callback */
    if (!entry) {
        play->ends++;
        if (play->fail_at < 0)
            return 1;
        play->durable = play->open;
        return 0;
    }
    play->entries++;
    if (play->fail_at > 0 && play->entries == (unsigned)play->fail_at)
        return 1;
    put(&play->open, entry);
    return 0;
}

static int load(void *opaque, unsalt_checkpoint_load_t *into, int32_t set) {
    struct play *play = opaque;
    size_t stop = play->durable.count;
    if (set < 0 || set >= 8)
        scene_die("set %d", (int)set);
    play->loads[set]++;
    play->others += scene_now() < play->failed_at[set] + 0.9; /* it is asked again a second later */
    play->failed_at[set] = play->fail_loads > 0 ? scene_now() : 0;
    if (play->fail_loads > 0)
        stop /= 2;
    for (size_t i = stop; i-- > 0;) { /* in any order */
        const struct row *row = &play->durable.rows[i];
        if (row->set == set &&
            unsalt_checkpoint_restore(into, row->key, row->key_len, row->value, row->value_len))
            play->others++;
    }
    return play->fail_loads > 0 ? play->fail_loads-- : 0;
}

/* ---- seeks: of this thread's next ones, so many move all partitions but the first */

static _Thread_local int failing_seeks;

rd_kafka_error_t *rd_kafka_seek_partitions(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, int timeout_ms) {
    rd_kafka_error_t *(*real)(rd_kafka_t *, rd_kafka_topic_partition_list_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_seek_partitions");
    if (failing_seeks == 0)
        return real(rk, list, timeout_ms);
    failing_seeks--;
    rd_kafka_topic_partition_t first = list->elems[0];
    rd_kafka_topic_partition_list_t *others = rd_kafka_topic_partition_list_copy(list);
    rd_kafka_topic_partition_list_del(others, first.topic, first.partition);
    rd_kafka_error_t *error = others->cnt > 0 ? real(rk, others, timeout_ms) : NULL;
    for (int i = 0; i < others->cnt; i++)
        rd_kafka_topic_partition_list_find(list, others->elems[i].topic, others->elems[i].partition)->err =
            others->elems[i].err;
    list->elems[0].err = RD_KAFKA_RESP_ERR__STATE;
    rd_kafka_topic_partition_list_destroy(others);
    return error;
}

/* ---- the consumer */

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct play *play = opaque;
    play->events[event->type]++;
}

static void open_consumer(struct play *play) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    scene_set(conf, "enable.auto.commit", "false");
    scene_unsalt_set(mine, "checkpoint", "callback");
    scene_unsalt_set(mine, "ack", "manual");
    scene_unsalt_set(mine, "revoke.timeout.ms", "0");
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    unsalt_conf_set_checkpoint_cb(mine, load, store, play);
    unsalt_conf_set_event_cb(mine, on_event, play);
    play->u = unsalt_new(conf, mine, errstr, sizeof errstr);
    CHECK_THAT(play->u, "%s", errstr);
}

static void open_member(struct play *play) {
    open_consumer(play);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, play->scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(play->u, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

static void close_member(struct play *play) {
    unsalt_stats_t stats;
    unsalt_stats(play->u, &stats, sizeof stats);
    CHECK(stats.conserved);
    CHECK_I64(unsalt_consumer_close(play->u), 0);
    unsalt_destroy(play->u);
}

static void play_open(struct play *play, const char *word) {
    play->accepted = checker_log_new();
    play->ends = 1;
    scene_open(&play->scene, word);
    sender_weave(&play->scene, SENDER_UNSALT, HOT, SESSIONS - 1, EACH, play->accepted);
}

static void play_close(struct play *play) {
    CHECK_U64(play->others, 0);
    CHECK_U64(play->events[UNSALT_EVENT_GAP] + play->events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(play->events[UNSALT_EVENT_CHECKPOINT_REFUSED] + play->events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
    checker_log_free(play->accepted);
    scene_close(&play->scene);
}

static unsigned session_of(const struct checker_record *record) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)record->session_len, record->session);
    const char *dash = strchr(name, '-');
    return dash ? 1 + (unsigned)atoi(dash + 1) : 0;
}

/* Every session goes on where the course says; all of it is acknowledged. */
static uint64_t take_batch(struct play *play, struct course *course, uint64_t n) {
    rd_kafka_message_t *messages[200];
    ssize_t count = unsalt_consume_batch(play->u, 200, messages, n < 200 ? n : 200);
    CHECK(count >= 0);
    for (ssize_t i = 0; i < count; i++) {
        unsalt_message_info_t info = {.size = sizeof info};
        struct checker_record record;
        CHECK_THAT(reader_record(&play->scene, messages[i], &record), "%s", rd_kafka_message_errstr(messages[i]));
        unsigned session = session_of(&record);
        CHECK_THAT(record.seq == course->last[session] + 1, "session %u: %d after %d", session, (int)record.seq,
                   (int)course->last[session]);
        course->last[session] = record.seq;
        CHECK_I64(unsalt_message_info(play->u, messages[i], &info), 0);
        CHECK_I64(unsalt_ack(play->u, info.token), 0);
        rd_kafka_message_destroy(messages[i]);
    }
    return (uint64_t)count;
}

static void take(struct play *play, struct course *course, uint64_t n) {
    uint64_t taken = 0;
    for (double until = scene_now() + 20; taken < n && scene_now() < until;)
        taken += take_batch(play, course, n - taken);
    CHECK_U64(taken, n);
}

static void commit(struct play *play) {
    CHECK_I64(unsalt_commit(play->u, 0), 0);
    CHECK_U64(play->ends, 1);
    CHECK(play->entries > 0);
}

/* Sets what the group has, so that nobody can begin there. */
static void set_group_offsets(const struct scene *scene, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = scene_partitions(scene);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = offset;
    scene_commit(scene, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- the tests */

static void entries_count(const char *layout, int sets) {
    struct play play = {.scene = {.layout = layout, .partitions = 2, .lanes = 3}};
    struct course course = {{0}};
    play_open(&play, "entries");
    for (int run = 0; run < 4; run++) {
        open_member(&play);
        take(&play, &course, 500);
        commit(&play);
        CHECK_I64(unsalt_commit(play.u, 0), 0);
        CHECK_U64(play.ends, 1); /* nothing has changed, so nothing is stored */
        struct course before = course;
        take(&play, &course, 300); /* acknowledged and not stored: it comes again */
        close_member(&play);
        course = before;
        for (int set = 0; set < 8; set++)
            CHECK_U64(play.loads[set], set < sets ? (unsigned)run + 1 : 0);
        set_group_offsets(&play.scene, run % 2 ? 0 : 600);
    }
    open_member(&play);
    take(&play, &course, TOTAL - 4 * 500);
    commit(&play);
    CHECK_U64(take_batch(&play, &course, 1), 0);
    close_member(&play);
    play_close(&play);
}

Test(callback, entries_count_in_topics, .timeout = 60) {
    entries_count("topics", 2);
}

Test(callback, entries_count_in_hash, .timeout = 60) {
    entries_count("hash", 1);
}

/* A store that fails fails the commit, which is made again in whole; a load that fails is made again. */
Test(callback, failures, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}};
    struct course course = {{0}};
    play_open(&play, "failures");
    open_member(&play);
    take(&play, &course, 500);
    play.fail_at = 3;
    CHECK_I64(unsalt_commit(play.u, 0), RD_KAFKA_RESP_ERR__APPLICATION);
    CHECK_U64(play.entries, 3);
    CHECK_U64(play.durable.count, 0);
    play.ends = 1;
    play.fail_at = -1;
    CHECK_I64(unsalt_commit(play.u, 0), RD_KAFKA_RESP_ERR__APPLICATION);
    CHECK_U64(play.durable.count, 0);
    unsigned whole = play.entries;
    CHECK(whole > 3);
    play.fail_at = 0;
    commit(&play);
    CHECK_U64(play.entries, whole);
    CHECK_U64(play.durable.count, whole);
    close_member(&play);
    play.fail_loads = 1;
    open_member(&play);
    take(&play, &course, TOTAL - 500);
    for (double until = scene_now() + 20; play.loads[0] + play.loads[1] < 5 && scene_now() < until;)
        CHECK_U64(take_batch(&play, &course, 1), 0); /* the other set may have had everything before */
    CHECK_U64(play.loads[0] + play.loads[1], 5); /* both, twice, and once more */
    commit(&play);
    close_member(&play);
    open_member(&play);
    CHECK_U64(take_batch(&play, &course, 1), 0);
    close_member(&play);
    play_close(&play);
}

/* A transaction that is rolled back after the store: everything comes again, here and in the next run. */
Test(callback, rolled_back, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}};
    struct course course = {{0}}, before;
    play_open(&play, "rollback");
    open_member(&play);
    for (int i = 0; i < 4; i++) {
        struct table table = play.durable;
        before = course;
        take(&play, &course, 300);
        commit(&play);
        play.durable = table;
        CHECK_I64(unsalt_rewind(play.u, 10000), 0);
        course = before;
        take(&play, &course, 300);
        commit(&play);
    }
    close_member(&play);
    open_member(&play);
    take(&play, &course, TOTAL - 4 * 300);
    commit(&play);
    close_member(&play);
    play_close(&play);
}

/*
 * The very first transaction is rolled back, and the process dies without another word: there is no entry that says
 * where to begin, so the group must not have been told anything yet.
 */
Test(callback, rolled_back_at_first, .timeout = 60) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}};
    struct course course = {{0}};
    play_open(&play, "first");
    open_member(&play);
    take(&play, &course, 300);
    commit(&play);
    CHECK_U64(take_batch(&play, &course, 1), 1); /* whatever was sent to the group is there now */
    close_member(&play);
    memset(&play.durable, 0, sizeof play.durable);
    memset(&course, 0, sizeof course);
    open_member(&play);
    take(&play, &course, TOTAL / 2);
    commit(&play);
    take(&play, &course, TOTAL - TOTAL / 2);
    commit(&play);
    close_member(&play);
    CHECK_U64(scene_log_committed(&play.scene, play.accepted).sum, TOTAL); /* for whoever looks at the lag */
    play_close(&play);
}

/*
 * Reading can't be moved to where the entries say, in one partition after the other, and the group's offsets are above
 * or below that: the sets wait, nothing is passed over or read twice, and the application isn't asked for the same
 * entries again.
 */
static void seeks_fail(int64_t group) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}};
    struct course course = {{0}};
    play_open(&play, "seeks");
    open_member(&play);
    take(&play, &course, 1500); /* at least 500 of the hot session */
    commit(&play);
    close_member(&play);
    set_group_offsets(&play.scene, group);
    memset(play.loads, 0, sizeof play.loads);
    memset(play.events, 0, sizeof play.events);
    failing_seeks = 4;
    open_member(&play);
    take(&play, &course, TOTAL - 1500);
    for (double until = scene_now() + 20; play.events[UNSALT_EVENT_CHECKPOINT_LOADED] < 2 && scene_now() < until;)
        CHECK_U64(take_batch(&play, &course, 1), 0);
    CHECK_U64(take_batch(&play, &course, 1), 0);
    CHECK_I64(failing_seeks, 0);
    CHECK_U64(play.events[UNSALT_EVENT_CHECKPOINT_PROGRESS], 4);
    CHECK_U64(play.events[UNSALT_EVENT_DUPLICATE], 0);
    CHECK_U64(play.loads[0], 1);
    CHECK_U64(play.loads[1], 1);
    commit(&play);
    close_member(&play);
    play_close(&play);
}

Test(callback, seeks_fail_and_the_group_is_ahead, .timeout = 60) {
    seeks_fail(700);
}

Test(callback, seeks_fail_and_the_group_is_behind, .timeout = 60) {
    seeks_fail(0);
}

/* ---- a lane set that loses a part of its partitions */

/* Instead of what a group says: this thread is in an incremental rebalance. */
static _Thread_local bool incremental;

const char *rd_kafka_rebalance_protocol(rd_kafka_t *rk) {
    const char *(*real)(rd_kafka_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_rebalance_protocol");
    return incremental ? "COOPERATIVE" : real(rk);
}

/* Takes a partition away, or gives it, as librdkafka would. */
static void rebalance(const struct play *play, rd_kafka_resp_err_t what, int lane, int32_t partition) {
    char name[96];
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    scene_topic(&play->scene, lane, name, sizeof name);
    rd_kafka_topic_partition_list_add(list, name, partition)->offset = RD_KAFKA_OFFSET_INVALID;
    incremental = true;
    us_rebalance_cb(unsalt_handle(play->u), what, list, NULL);
    incremental = false;
    rd_kafka_topic_partition_list_destroy(list);
}

/* Takes records until there are 30 more of the hot session, and keeps their tokens; returns how many. */
static size_t keep(struct play *play, unsalt_token_t *tokens, struct course *course) {
    rd_kafka_message_t *message;
    double until = scene_now() + 20;
    uint64_t hot = course->last[0] + 30;
    size_t kept = 0;
    while (course->last[0] < hot) {
        unsalt_message_info_t info = {.size = sizeof info};
        struct checker_record record;
        CHECK(scene_now() < until);
        message = unsalt_consumer_poll(play->u, 100);
        if (!message)
            continue;
        CHECK(reader_record(&play->scene, message, &record));
        CHECK_I64(unsalt_message_info(play->u, message, &info), 0);
        CHECK_U64(record.seq, course->last[session_of(&record)] + 1);
        course->last[session_of(&record)] = record.seq;
        tokens[kept++] = info.token;
        rd_kafka_message_destroy(message);
    }
    return kept;
}

/*
 * A part of a lane set goes while the application has records of all of it. What it acknowledges after that is void, or
 * offsets would be committed without the cursors that belong to them: they stay as the last commit left them, and
 * everything that it didn't cover comes again when the set is whole again, here or elsewhere.
 */
static void a_part_goes(bool elsewhere) {
    struct play play = {.scene = {.layout = "topics", .partitions = 2, .lanes = 3}};
    struct course course = {{0}}, covered;
    unsalt_token_t tokens[TOTAL];
    size_t void_tokens = 0;
    play_open(&play, "part");
    open_consumer(&play);
    rd_kafka_topic_partition_list_t *all = scene_partitions(&play.scene);
    CHECK_I64(unsalt_assign(play.u, all), 0);
    take(&play, &course, 500);
    commit(&play);
    covered = course;
    size_t kept = keep(&play, tokens, &course);
    struct table before = play.durable;
    for (int32_t set = 0; set < 2; set++)
        rebalance(&play, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS, 1, set);
    for (size_t i = 0; i < kept; i++)
        void_tokens += unsalt_ack(play.u, tokens[i]) != 0;
    CHECK(void_tokens > 0 && void_tokens < kept); /* those of the part that went */
    CHECK_I64(unsalt_commit(play.u, 0), 0);
    CHECK_U64(play.durable.count, before.count);
    CHECK_I64(memcmp(play.durable.rows, before.rows, before.count * sizeof *before.rows), 0);
    CHECK_U64(take_batch(&play, &course, 1), 0);
    course = covered;
    if (elsewhere) {
        close_member(&play);
        open_consumer(&play);
        CHECK_I64(unsalt_assign(play.u, all), 0);
    } else {
        for (int32_t set = 0; set < 2; set++)
            rebalance(&play, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, 1, set);
    }
    take(&play, &course, TOTAL - 500);
    commit(&play);
    CHECK_U64(play.events[UNSALT_EVENT_DUPLICATE], 0);
    rd_kafka_topic_partition_list_destroy(all);
    close_member(&play);
    play_close(&play);
}

Test(callback, a_part_of_a_lane_set_goes_and_comes_back, .timeout = 60) {
    a_part_goes(false);
}

Test(callback, a_part_of_a_lane_set_goes_and_the_rest_follows, .timeout = 60) {
    a_part_goes(true);
}

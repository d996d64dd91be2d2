/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checkpoint=callback with SQLite, as examples/13_own_database.c does it, killed at every step of the loop and of the
 * callbacks: in the end every account has had each of its changes once, in their order.
 */
#include <broker/fixture/child.h>
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <signal.h>
#include <stdarg.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <support/check.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 600, COLD = 10, EACH = 20, TOTAL = HOT + COLD * EACH, BATCH = 4 };

enum step {
    OWNED, /* load has noted who owns the set */
    BEGUN,
    APPLIED, /* + i */
    STORED_ONE = APPLIED + BATCH,
    STORED_TWO,
    STORED_ALL,
    UNCOMMITTED, /* after unsalt_commit() */
    COMMITTED,
    DESTROYED,
    STEPS,
    NEVER = -1
};

struct play {
    struct scene scene;
    char folder[64], path[96];
    int step, round, batch;
    /* of the child */
    sqlite3 *db;
    unsalt_t *consumer;
    int rounds, stored;
};

static void step(const struct play *play, int number) {
    if (number == play->step && play->rounds >= play->round)
        kill(getpid(), SIGKILL);
}

static void run(sqlite3 *db, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args), *message = NULL;
    va_end(args);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        scene_die("%s: %s", sql, message);
    sqlite3_free(sql);
}

static sqlite3 *open_database(const char *path) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        scene_die("%s: %s", path, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 10000);
    run(db, "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, last INTEGER, changes INTEGER)");
    run(db, "CREATE TABLE IF NOT EXISTS cursors (lane_set INTEGER, key BLOB PRIMARY KEY, value BLOB)");
    run(db, "CREATE TABLE IF NOT EXISTS owners (lane_set INTEGER PRIMARY KEY, owner INTEGER)");
    return db;
}

/* The one number that a query gives. */
static int64_t number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *get;
    if (sqlite3_prepare_v2(db, sql, -1, &get, NULL) != SQLITE_OK || sqlite3_step(get) != SQLITE_ROW)
        scene_die("%s: %s", sql, sqlite3_errmsg(db));
    int64_t value = sqlite3_column_int64(get, 0);
    sqlite3_finalize(get);
    return value;
}

/* ---- the child */

static int store(void *opaque, const unsalt_checkpoint_entry_t *entry) {
    struct play *play = opaque;
    sqlite3_stmt *put;
    if (!entry) {
        step(play, STORED_ALL);
        return 0;
    }
    if (sqlite3_prepare_v2(play->db,
                           "INSERT OR REPLACE INTO cursors SELECT ?1, ?2, ?3 FROM owners WHERE lane_set = ?1 AND owner "
                           "= ?4",
                           -1, &put, NULL) != SQLITE_OK)
        scene_die("store: %s", sqlite3_errmsg(play->db));
    sqlite3_bind_int(put, 1, entry->set);
    sqlite3_bind_blob(put, 2, entry->key, (int)entry->key_len, SQLITE_STATIC);
    sqlite3_bind_blob(put, 3, entry->value, (int)entry->value_len, SQLITE_STATIC);
    sqlite3_bind_int(put, 4, getpid());
    int rc = sqlite3_step(put);
    sqlite3_finalize(put);
    step(play, play->stored++ == 0 ? STORED_ONE : STORED_TWO);
    return rc == SQLITE_DONE && sqlite3_changes(play->db) == 1 ? 0 : -1;
}

static int load(void *opaque, unsalt_checkpoint_load_t *into, int32_t set) {
    struct play *play = opaque;
    sqlite3_stmt *get;
    run(play->db, "INSERT OR REPLACE INTO owners VALUES (%d, %d)", (int)set, (int)getpid());
    step(play, OWNED);
    if (sqlite3_prepare_v2(play->db, "SELECT key, value FROM cursors WHERE lane_set = ?", -1, &get, NULL) != SQLITE_OK)
        scene_die("load: %s", sqlite3_errmsg(play->db));
    sqlite3_bind_int(get, 1, set);
    while (sqlite3_step(get) == SQLITE_ROW)
        if (unsalt_checkpoint_restore(into, sqlite3_column_blob(get, 0), (size_t)sqlite3_column_bytes(get, 0),
                                      sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1)))
            scene_die("an entry is refused");
    sqlite3_finalize(get);
    return 0;
}

/* A change must be the next one of its account: else the transaction is wrong, and everybody hears of it. */
static void apply(const struct play *play, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof info};
    struct checker_record record;
    if (!reader_record(&play->scene, message, &record) || unsalt_message_info(play->consumer, message, &info))
        scene_die("a message without a record: %s", rd_kafka_message_errstr(message));
    run(play->db, "INSERT OR IGNORE INTO accounts VALUES ('%.*q', 0, 0)", (int)record.session_len, record.session);
    run(play->db, "UPDATE accounts SET last = %lld, changes = changes + 1 WHERE name = '%.*q' AND last = %lld - 1",
        (long long)record.seq, (int)record.session_len, record.session, (long long)record.seq);
    if (sqlite3_changes(play->db) != 1)
        scene_die("%.*s: %llu comes, which isn't the next one", (int)record.session_len, record.session,
                  (unsigned long long)record.seq);
    if (unsalt_ack(play->consumer, info.token))
        scene_die("a token is void");
}

/* Every fifth transaction is rolled back, and the application goes back with it. */
static void process(struct play *play, rd_kafka_message_t **messages, ssize_t n) {
    play->rounds++;
    play->stored = 0;
    run(play->db, "BEGIN IMMEDIATE");
    step(play, BEGUN);
    for (ssize_t i = 0; i < n; i++) {
        apply(play, messages[i]);
        rd_kafka_message_destroy(messages[i]);
        if (i < BATCH)
            step(play, APPLIED + (int)i);
    }
    if (unsalt_commit(play->consumer, 0))
        scene_die("a commit failed");
    step(play, UNCOMMITTED);
    bool kept = play->rounds % 5 != 0;
    run(play->db, kept ? "COMMIT" : "ROLLBACK");
    step(play, COMMITTED);
    if (!kept && unsalt_rewind(play->consumer, 20000))
        scene_die("the consumer can't go back");
    step(play, DESTROYED);
}

static void consume(void *arg) {
    struct play *play = arg;
    rd_kafka_message_t *messages[200];
    rd_kafka_conf_t *conf = scene_consumer_conf(&play->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&play->scene, 0);
    struct reader reader;
    play->db = open_database(play->path);
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "session.timeout.ms", "1500");
    scene_set(conf, "heartbeat.interval.ms", "300");
    scene_set(conf, "group.instance.id", "one");
    scene_unsalt_set(mine, "checkpoint", "callback");
    scene_unsalt_set(mine, "ack", "manual");
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    unsalt_conf_set_checkpoint_cb(mine, load, store, play);
    reader_open(&reader, &play->scene, conf, mine, NULL);
    play->consumer = reader.consumer;
    while (number(play->db, "SELECT total(changes) FROM accounts") < TOTAL) {
        ssize_t n = unsalt_consume_batch(reader.consumer, 100, messages, (size_t)play->batch);
        if (n > 0)
            process(play, messages, n);
    }
    if (unsalt_consume_batch(reader.consumer, 300, messages, 1))
        scene_die("something comes again");
    reader_close(&reader);
    sqlite3_close(play->db);
}

static void produce(void *arg) {
    struct play *play = arg;
    checker_log_t *log = checker_log_new();
    scene_create(&play->scene);
    sender_weave(&play->scene, SENDER_UNSALT, HOT, COLD, EACH, log);
    checker_log_free(log);
}

static void delete_topics(void *arg) {
    struct play *play = arg;
    scene_close(&play->scene);
}

/* ---- the test */

static int wait_for(pid_t pid, double seconds) {
    double deadline = scene_now() + seconds;
    struct timespec pause = {0, 5000000};
    int status = -1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (scene_now() > deadline)
            return -1;
        nanosleep(&pause, NULL);
    }
    return status;
}

static void play_open(struct play *play) {
    snprintf(play->folder, sizeof play->folder, "%s/unsalt-callback.XXXXXX", P_tmpdir);
    CHECK(mkdtemp(play->folder));
    snprintf(play->path, sizeof play->path, "%s/db", play->folder);
    scene_name(&play->scene, "dbsteps");
    child_run(produce, play);
}

static void play_close(struct play *play) {
    sqlite3 *db = open_database(play->path);
    CHECK_I64(number(db, "SELECT count(*) FROM accounts"), COLD + 1);
    CHECK_I64(number(db, "SELECT count(*) FROM accounts WHERE last <> changes"), 0);
    CHECK_I64(number(db, "SELECT count(*) FROM accounts WHERE changes <> 20 AND name <> 'hot'"), 0);
    CHECK_I64(number(db, "SELECT changes FROM accounts WHERE name = 'hot'"), HOT);
    sqlite3_close(db);
    unlink(play->path);
    CHECK(rmdir(play->folder) == 0);
    child_run(delete_topics, play);
}

/* The first kill is in the very first transaction, when nothing stands in the database yet. */
static void killed_at_every_step(const char *layout) {
    struct play play = {.scene = {.layout = layout, .partitions = 2, .lanes = 3}, .batch = BATCH};
    int kills = STEPS * (getenv("UNSALT_LONG") ? 5 : 1);
    play_open(&play);
    for (int i = 0; i < kills; i++) {
        play.step = (i + UNCOMMITTED) % STEPS;
        play.round = play.step == OWNED ? 0 : 1 + (i + i / STEPS) % 6;
        int status = wait_for(child_start(consume, &play), 30);
        CHECK_THAT(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                   "step %d was not reached: status %d", play.step, status);
    }
    play.step = NEVER;
    play.batch = 50;
    CHECK_I64(wait_for(child_start(consume, &play), 40), 0);
    play_close(&play);
}

Test(callback_steps, killed_at_every_step, .timeout = 90) {
    killed_at_every_step("topics");
}

Test(callback_steps, killed_at_every_step_in_one_topic, .timeout = 90) {
    killed_at_every_step("hash");
}

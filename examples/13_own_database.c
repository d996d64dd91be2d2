/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects in a database, effectively once (checkpoint=callback): the cursors of sessions live in SQLite beside the
 * effects, and one transaction of the database holds both. A crash at any step loses nothing and repeats nothing. Here
 * the effect is a balance: each record adds its payload, a number, to the account that is its session.
 *
 * Kafka doesn't fence a database: who has loaded the cursors of a lane set last is its owner, and nobody else stores.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

enum { BATCH = 200 };

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static bool run(sqlite3 *db, const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    return false;
}

/* ---- cursors */

static int store(void *opaque, const unsalt_checkpoint_entry_t *entry) {
    sqlite3 *db = opaque;
    sqlite3_stmt *put = NULL; /* if it can't be prepared, the step fails too */
    if (!entry)
        return 0; /* the transaction around unsalt_commit() makes all of it durable together */
    sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO cursors SELECT ?1, ?2, ?3 FROM owners WHERE lane_set = ?1 AND "
                           "owner = ?4", -1, &put, NULL);
    sqlite3_bind_int(put, 1, entry->set);
    sqlite3_bind_blob(put, 2, entry->key, (int)entry->key_len, SQLITE_STATIC);
    sqlite3_bind_blob(put, 3, entry->value, (int)entry->value_len, SQLITE_STATIC);
    sqlite3_bind_int(put, 4, getpid());
    int rc = sqlite3_step(put);
    sqlite3_finalize(put);
    return rc == SQLITE_DONE && sqlite3_changes(db) == 1 ? 0 : -1;
}

static int load(void *opaque, unsalt_checkpoint_load_t *into, int32_t set) {
    sqlite3 *db = opaque;
    sqlite3_stmt *get = NULL;
    char sql[80];
    int rc, err = 0;
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO owners VALUES (%d, %d)", (int)set, (int)getpid());
    if (!run(db, sql))
        return -1;
    sqlite3_prepare_v2(db, "SELECT key, value FROM cursors WHERE lane_set = ?", -1, &get, NULL);
    sqlite3_bind_int(get, 1, set);
    while ((rc = sqlite3_step(get)) == SQLITE_ROW && err != RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE)
        err = unsalt_checkpoint_restore(into, sqlite3_column_blob(get, 0), (size_t)sqlite3_column_bytes(get, 0),
                                        sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1));
    sqlite3_finalize(get);
    return rc == SQLITE_DONE && err != RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE ? 0 : -1;
}

/* ---- effects */

static bool add(sqlite3 *db, const unsalt_message_info_t *info, const rd_kafka_message_t *message) {
    char amount[32];
    snprintf(amount, sizeof amount, "%.*s", (int)message->len, (const char *)message->payload);
    char *sql = sqlite3_mprintf("INSERT INTO accounts VALUES ('%.*q', %lld, 1) ON CONFLICT (name) DO UPDATE SET "
                                "balance = balance + excluded.balance, changes = changes + 1",
                                (int)info->session_len, (const char *)info->session, atoll(amount));
    bool done = sql && run(db, sql);
    sqlite3_free(sql);
    return done;
}

static bool apply(sqlite3 *db, unsalt_t *consumer, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof info};
    if (message->err) /* of the cluster; there is no record */
        return true;
    if (unsalt_message_info(consumer, message, &info) || (info.session && !add(db, &info, message)))
        return false;
    return !unsalt_ack(consumer, info.token);
}

/* Effects and cursors of a batch in one transaction. Returns false if nothing of it is in the database. */
static bool process(sqlite3 *db, unsalt_t *consumer, rd_kafka_message_t **messages, ssize_t n) {
    bool done = run(db, "BEGIN IMMEDIATE");
    for (ssize_t i = 0; i < n; i++)
        done = done && apply(db, consumer, messages[i]);
    done = done && !unsalt_commit(consumer, 0) && run(db, "COMMIT");
    if (!done)
        run(db, "ROLLBACK");
    for (ssize_t i = 0; i < n; i++)
        rd_kafka_message_destroy(messages[i]);
    return done;
}

static sqlite3 *open_database(const char *path) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_busy_timeout(db, 10000) == SQLITE_OK &&
        run(db, "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER, changes INTEGER)") &&
        run(db, "CREATE TABLE IF NOT EXISTS cursors (lane_set INTEGER, key BLOB PRIMARY KEY, value BLOB)") &&
        run(db, "CREATE TABLE IF NOT EXISTS owners (lane_set INTEGER PRIMARY KEY, owner INTEGER)"))
        return db;
    fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}

static unsalt_t *open_consumer(char **argv, sqlite3 *db) {
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    unsalt_conf_t *unsalt_conf = unsalt_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argv[2], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "ack", "manual", errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "partitions", argv[4], errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "checkpoint", "callback", errstr, sizeof errstr);
    unsalt_conf_set_checkpoint_cb(unsalt_conf, load, store, db);
    unsalt_t *consumer = unsalt_new(conf, unsalt_conf, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return NULL;
    }
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer;
}

int main(int argc, char **argv) {
    rd_kafka_message_t *messages[BATCH];
    bool going = true;
    if (argc != 6) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC PARTITIONS DATABASE\n", argv[0]);
        return 2;
    }
    sqlite3 *db = open_database(argv[5]);
    unsalt_t *consumer = db ? open_consumer(argv, db) : NULL;
    if (!consumer)
        return 1;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop && going) {
        ssize_t n = unsalt_consume_batch(consumer, 200, messages, BATCH);
        if (n > 0 && !process(db, consumer, messages, n))
            going = !unsalt_rewind(consumer, 10000); /* the database has nothing of it: it comes again */
    }
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    sqlite3_close(db);
    return going ? 0 : 1;
}

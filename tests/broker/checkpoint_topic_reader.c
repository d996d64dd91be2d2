/* SPDX-License-Identifier: BSD-2-Clause */
/* Checkpoints that are read back: what is seen, what is waited for, when it is complete. */
#include <broker/fixture/checkpoints.h>
#include <stdlib.h>
#include <support/check.h>

Test(checkpoint_topic_reader, what_was_written_comes_back_in_order, .timeout = 60) {
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    struct us_checkpoint_progress progress;
    int i;
    checkpoints_open(&here, "cp-back");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    for (i = 0; i < 3; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        checkpoints_begin(writer);
        checkpoints_put(writer, 0, "a", value);
        checkpoints_put(writer, 2, "b", value);
        checkpoints_put(writer, 0, "c", i < 2 ? value : NULL);
        checkpoints_commit(writer);
    }
    us_checkpoint_writer_destroy(writer);
    checkpoints_reader(&loaded, &here, true);
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, 3, 20));
    CHECK_STR(checkpoints_text(&loaded, 0), "a=0 c=0 a=1 c=1 a=2 c=-");
    CHECK_STR(checkpoints_text(&loaded, 1), "");
    CHECK_STR(checkpoints_text(&loaded, 2), "b=0 b=1 b=2");
    us_checkpoint_reader_progress(loaded.reader, 0, &progress);
    CHECK(progress.wait == US_CHECKPOINT_COMPLETE && progress.remaining == 0 && !progress.err);
    CHECK_U64(progress.entries, 6);
    CHECK_U64(progress.bytes, 11);
    CHECK_U64(us_checkpoint_reader_loading(loaded.reader), 0);
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

/* The end of the log is an end of transactions: no entry stands in the last places. */
Test(checkpoint_topic_reader, what_was_aborted_is_not_seen, .timeout = 60) {
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    struct us_checkpoint_outcome outcome;
    checkpoints_open(&here, "cp-abort");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "aborted");
    CHECK_I64(us_checkpoint_writer_abandon(writer, 20000, &outcome), US_CHECKPOINT_DONE);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "committed");
    checkpoints_commit(writer);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "aborted too");
    checkpoints_put(writer, 1, "b", "aborted too");
    CHECK_I64(us_checkpoint_writer_abandon(writer, 20000, &outcome), US_CHECKPOINT_DONE);
    us_checkpoint_writer_destroy(writer);
    checkpoints_reader(&loaded, &here, true);
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, 3, 20));
    CHECK_STR(checkpoints_text(&loaded, 0), "a=committed");
    CHECK_STR(checkpoints_text(&loaded, 1), "");
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

/* A plain producer, so that its entries stand in the log before the transaction has an end. */
static rd_kafka_t *open_transaction(const struct checkpoints *here, const char *key) {
    rd_kafka_conf_t *conf = scene_conf();
    char errstr[256];
    scene_set(conf, "transactional.id", here->scene.topic);
    scene_set(conf, "transaction.timeout.ms", "60000");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    CHECK(rk && !rd_kafka_init_transactions(rk, 20000) && !rd_kafka_begin_transaction(rk));
    CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(here->topic), RD_KAFKA_V_PARTITION(0),
                             RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE("open", 4), RD_KAFKA_V_END));
    CHECK(!rd_kafka_flush(rk, 20000));
    return rk;
}

static void waits_for_transaction(bool commit) {
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    struct us_checkpoint_progress progress;
    checkpoints_open(&here, "cp-wait");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    checkpoints_commit(writer);
    rd_kafka_t *open = open_transaction(&here, "b");
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "2");
    checkpoints_commit(writer);
    us_checkpoint_writer_destroy(writer);

    checkpoints_reader(&loaded, &here, true);
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_until(&loaded, 0, US_CHECKPOINT_TRANSACTION, 20));
    CHECK(checkpoints_load(&loaded, 2, 20));
    us_checkpoint_reader_progress(loaded.reader, 0, &progress);
    CHECK(progress.wait == US_CHECKPOINT_TRANSACTION && progress.remaining > 0);
    CHECK_U64(us_checkpoint_reader_loading(loaded.reader), 1);
    CHECK_STR(checkpoints_text(&loaded, 0), "a=1");
    CHECK(commit ? !rd_kafka_commit_transaction(open, 20000) : !rd_kafka_abort_transaction(open, 20000));
    CHECK(checkpoints_load(&loaded, 3, 20));
    CHECK_STR(checkpoints_text(&loaded, 0), commit ? "a=1 b=open a=2" : "a=1 a=2");
    rd_kafka_destroy(open);
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

Test(checkpoint_topic_reader, an_open_transaction_is_waited_for_until_it_is_aborted, .timeout = 60) {
    waits_for_transaction(false);
}

Test(checkpoint_topic_reader, an_open_transaction_is_waited_for_until_it_is_committed, .timeout = 60) {
    waits_for_transaction(true);
}

/* The log begins above 0 and holds nothing: only the end of the partition tells. */
Test(checkpoint_topic_reader, a_log_that_was_emptied_is_complete, .timeout = 60) {
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    struct scene scene = {.layout = "hash", .partitions = 1, .lanes = 1};
    checkpoints_open(&here, "cp-empty");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "deleted");
    checkpoints_put(writer, 1, "b", "deleted");
    checkpoints_commit(writer);
    checkpoints_begin(writer);
    checkpoints_put(writer, 1, "b", "kept");
    checkpoints_commit(writer);
    us_checkpoint_writer_destroy(writer);
    snprintf(scene.topic, sizeof scene.topic, "%s", here.topic);
    scene_delete_below(&scene, 0, 0, RD_KAFKA_OFFSET_END);
    scene_delete_below(&scene, 0, 1, 2);
    checkpoints_reader(&loaded, &here, true);
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, 3, 20));
    CHECK_STR(checkpoints_text(&loaded, 0), "");
    CHECK_STR(checkpoints_text(&loaded, 1), "b=kept");
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

/* A partition that is cancelled gives nothing more, and begins from its beginning again; the others go on. */
Test(checkpoint_topic_reader, begins_anew_and_is_cancelled, .timeout = 60) {
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    struct us_checkpoint_progress progress;
    int32_t one = 1, wrong = CHECKPOINTS_PARTITIONS;
    char errstr[256];
    checkpoints_open(&here, "cp-cancel");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    checkpoints_put(writer, 1, "b", "1");
    checkpoints_commit(writer);
    checkpoints_reader(&loaded, &here, true);
    CHECK_I64(us_checkpoint_reader_begin(loaded.reader, &wrong, 1, errstr, sizeof errstr),
              RD_KAFKA_RESP_ERR__INVALID_ARG);
    checkpoints_begin_all(&loaded);
    us_checkpoint_reader_cancel(loaded.reader, 1);
    us_checkpoint_reader_cancel(loaded.reader, 1);
    CHECK(checkpoints_load(&loaded, 2, 20));
    CHECK_STR(checkpoints_text(&loaded, 1), "");
    us_checkpoint_reader_progress(loaded.reader, 1, &progress);
    CHECK(progress.wait == US_CHECKPOINT_IDLE);

    CHECK_I64(us_checkpoint_reader_begin(loaded.reader, &one, 1, errstr, sizeof errstr), 0);
    CHECK_I64(us_checkpoint_reader_begin(loaded.reader, &one, 1, errstr, sizeof errstr), 0);
    CHECK(checkpoints_load(&loaded, 3, 20));
    CHECK_STR(checkpoints_text(&loaded, 1), "b=1");
    /* What was written since is seen by one that begins now. */
    checkpoints_begin(writer);
    checkpoints_put(writer, 1, "b", "2");
    checkpoints_commit(writer);
    us_checkpoint_writer_destroy(writer);
    CHECK_I64(us_checkpoint_reader_begin(loaded.reader, &one, 1, errstr, sizeof errstr), 0);
    CHECK(checkpoints_load(&loaded, 4, 20));
    CHECK_STR(checkpoints_text(&loaded, 1), "b=1 b=1 b=2");
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

static void write_many(struct us_checkpoint_writer *writer, uint64_t count) {
    unsigned char value[40] = {0};
    struct us_checkpoint_record entry = {.value = value, .value_len = sizeof value};
    uint64_t i;
    for (i = 0; i < count; i++) {
        char key[24];
        entry.partition = (int32_t)(i % CHECKPOINTS_PARTITIONS);
        entry.key_len = (size_t)snprintf(key, sizeof key, "session-%012" PRIu64, i);
        entry.key = key;
        memcpy(value, &i, sizeof i);
        CHECK_I64(us_checkpoint_writer_put(writer, &entry), 0);
    }
}

Test(checkpoint_topic_reader, many_entries, .timeout = 120) {
    const char *wanted = getenv("UNSALT_CHECKPOINT_ENTRIES");
    uint64_t entries = wanted ? strtoull(wanted, NULL, 10) : 200000;
    struct checkpoints here;
    struct checkpoints_loaded loaded;
    double began;
    checkpoints_open(&here, "cp-many");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    began = scene_now();
    write_many(writer, entries);
    checkpoints_commit(writer);
    fprintf(stderr, "%" PRIu64 " entries of 60 bytes written in %.2f s\n", entries, scene_now() - began);
    us_checkpoint_writer_destroy(writer);
    checkpoints_reader(&loaded, &here, false);
    began = scene_now();
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, 3, 60));
    fprintf(stderr, "%zu entries read in %.2f s\n", loaded.count, scene_now() - began);
    CHECK_U64(loaded.count, entries);
    checkpoints_reader_close(&loaded);
    checkpoints_close(&here);
}

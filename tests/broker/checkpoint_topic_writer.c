/* SPDX-License-Identifier: BSD-2-Clause */
/* Checkpoints and offsets in one transaction: both or none, and none of a member that was replaced. */
#include <broker/fixture/checkpoints.h>
#include <pthread.h>
#include <support/check.h>

static const char *read_all(const struct checkpoints *here) {
    static char text[4096];
    struct checkpoints_loaded loaded;
    checkpoints_reader(&loaded, here, true);
    checkpoints_begin_all(&loaded);
    CHECK(checkpoints_load(&loaded, CHECKPOINTS_PARTITIONS, 20));
    snprintf(text, sizeof text, "%s", checkpoints_text(&loaded, 0));
    checkpoints_reader_close(&loaded);
    return text;
}

Test(checkpoint_topic_writer, offsets_and_entries_become_visible_together, .timeout = 60) {
    struct checkpoints here;
    struct us_checkpoint_outcome outcome;
    checkpoints_open(&here, "cp-both");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    rd_kafka_t *member = checkpoints_member(&here, NULL);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    CHECK_I64(us_checkpoint_writer_open(writer, 1000, &outcome), US_CHECKPOINT_FAILED); /* one is open */
    CHECK_I64(us_checkpoint_writer_finish(writer, checkpoints_offsets(&here, 7),
                                          rd_kafka_consumer_group_metadata(member), 20000, &outcome),
              US_CHECKPOINT_DONE);
    CHECK_I64(checkpoints_committed(&here), 7);
    /* Without entries, and without waiting. */
    checkpoints_begin(writer);
    enum us_checkpoint_result result = us_checkpoint_writer_finish(
        writer, checkpoints_offsets(&here, 8), rd_kafka_consumer_group_metadata(member), 0, &outcome);
    CHECK(result == US_CHECKPOINT_UNKNOWN || result == US_CHECKPOINT_DONE);
    if (result == US_CHECKPOINT_UNKNOWN)
        CHECK_I64(us_checkpoint_writer_resume(writer, 20000, &outcome), US_CHECKPOINT_DONE);
    CHECK_I64(us_checkpoint_writer_resume(writer, 0, &outcome), US_CHECKPOINT_FAILED); /* told once */
    CHECK_I64(checkpoints_committed(&here), 8);
    CHECK_STR(read_all(&here), "a=1");
    us_checkpoint_writer_destroy(writer);
    rd_kafka_destroy(member);
    checkpoints_close(&here);
}

/*
 * KIP-447: the member is in the group still, but of an earlier generation, or it is none any more. Its commit leaves
 * nothing, and its next one, as a member of the present generation, goes through.
 */
Test(checkpoint_topic_writer, a_member_of_an_old_generation_is_refused, .timeout = 90) {
    struct checkpoints here;
    struct us_checkpoint_outcome outcome;
    checkpoints_open(&here, "cp-zombie");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    rd_kafka_t *first = checkpoints_member(&here, NULL);
    rd_kafka_consumer_group_metadata_t *old = rd_kafka_consumer_group_metadata(first);
    rd_kafka_consumer_group_metadata_t *older = rd_kafka_consumer_group_metadata(first);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    CHECK_I64(us_checkpoint_writer_finish(writer, checkpoints_offsets(&here, 5),
                                          rd_kafka_consumer_group_metadata(first), 20000, &outcome),
              US_CHECKPOINT_DONE);
    rd_kafka_t *second = checkpoints_member(&here, first);

    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "zombie");
    CHECK_I64(us_checkpoint_writer_finish(writer, checkpoints_offsets(&here, 9), old, 20000, &outcome),
              US_CHECKPOINT_REFUSED);
    fprintf(stderr, "old generation: %s, %s\n", rd_kafka_err2name(outcome.err), outcome.text);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    CHECK(!outcome.maybe);
    CHECK_I64(checkpoints_committed(&here), 5);
    CHECK_STR(read_all(&here), "a=1");

    rd_kafka_consumer_close(first);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "zombie");
    CHECK_I64(us_checkpoint_writer_finish(writer, checkpoints_offsets(&here, 9), older, 20000, &outcome),
              US_CHECKPOINT_REFUSED);
    fprintf(stderr, "no member any more: %s, %s\n", rd_kafka_err2name(outcome.err), outcome.text);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    CHECK_I64(checkpoints_committed(&here), 5);
    CHECK_STR(read_all(&here), "a=1");
    us_checkpoint_writer_destroy(writer);
    rd_kafka_destroy(second);
    rd_kafka_destroy(first);
    checkpoints_close(&here);
}

/*
 * A successor with the same transactional.id fences the producer; the writer makes a new one next time. It may learn of
 * its fate by an entry, or only when it asks for the commit.
 */
Test(checkpoint_topic_writer, a_producer_that_was_fenced_is_made_anew, .timeout = 60) {
    struct checkpoints here;
    struct us_checkpoint_outcome outcome;
    checkpoints_open(&here, "cp-fenced");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    struct us_checkpoint_writer *other = checkpoints_writer(&here, here.scene.group);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "fenced");
    checkpoints_begin(other);
    checkpoints_put(other, 0, "a", "1");
    checkpoints_commit(other);
    enum us_checkpoint_result result = us_checkpoint_writer_finish(writer, NULL, NULL, 20000, &outcome);
    fprintf(stderr, "fenced producer: %d %s, %s\n", (int)result, rd_kafka_err2name(outcome.err), outcome.text);
    CHECK(result == US_CHECKPOINT_REFUSED || (result == US_CHECKPOINT_FAILED && outcome.maybe));
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR__FENCED);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "2");
    checkpoints_commit(writer);
    CHECK_STR(read_all(&here), "a=1 a=2");
    us_checkpoint_writer_destroy(writer);
    us_checkpoint_writer_destroy(other);
    checkpoints_close(&here);
}

/* An entry that can't be produced spoils its transaction, and only that. */
Test(checkpoint_topic_writer, an_entry_that_fails_fails_the_commit, .timeout = 60) {
    static char large[2000000];
    struct checkpoints here;
    struct us_checkpoint_outcome outcome;
    checkpoints_open(&here, "cp-large");
    checkpoints_create(&here);
    struct us_checkpoint_writer *writer = checkpoints_writer(&here, here.scene.group);
    struct us_checkpoint_record entry = {.partition = 0, .key = "k", .key_len = 1, .value = large,
                                        .value_len = sizeof large};
    CHECK_I64(us_checkpoint_writer_put(writer, &entry), RD_KAFKA_RESP_ERR__STATE);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "1");
    CHECK_I64(us_checkpoint_writer_put(writer, &entry), RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    CHECK_I64(us_checkpoint_writer_finish(writer, NULL, NULL, 20000, &outcome), US_CHECKPOINT_FAILED);
    CHECK_I64(outcome.err, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    checkpoints_begin(writer);
    entry.partition = 77;
    entry.value_len = 1;
    us_checkpoint_writer_put(writer, &entry); /* librdkafka may find that out later */
    CHECK_I64(us_checkpoint_writer_finish(writer, NULL, NULL, 20000, &outcome), US_CHECKPOINT_FAILED);
    fprintf(stderr, "no such partition: %s, %s\n", rd_kafka_err2name(outcome.err), outcome.text);
    checkpoints_begin(writer);
    checkpoints_put(writer, 0, "a", "2");
    checkpoints_commit(writer);
    CHECK_STR(read_all(&here), "a=2");
    us_checkpoint_writer_destroy(writer);
    checkpoints_close(&here);
}

/* ---- what the order of a new owner's questions stands on */

struct asking {
    const struct checkpoints *here;
    const char *isolation;
    int timeout_ms;
    pthread_t thread;
    rd_kafka_resp_err_t err;
    int64_t offset;
    double took;
};

static void *ask_committed(void *arg) {
    struct asking *asking = arg;
    rd_kafka_conf_t *conf = scene_consumer_conf(&asking->here->scene);
    char errstr[256];
    scene_set(conf, "isolation.level", asking->isolation);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *list = checkpoints_offsets(asking->here, 0);
    double began = scene_now();
    asking->err = rd_kafka_committed(rk, list, asking->timeout_ms);
    asking->took = scene_now() - began;
    asking->err = asking->err ? asking->err : list->elems[0].err;
    asking->offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    fprintf(stderr, "committed(%d ms) under %s: %s, %" PRId64 ", after %.2f s\n", asking->timeout_ms,
            asking->isolation, rd_kafka_err2name(asking->err), asking->offset, asking->took);
    return NULL;
}

/*
 * While a transaction has offsets pending, rd_kafka_committed() under read_committed tells none: it waits for the
 * end of the transaction, and its time may be over before. Under read_uncommitted it tells the old one. So whoever
 * asks under read_committed, and takes no failure for an answer, knows what no older member's commit will change.
 */
Test(checkpoint_topic_writer, committed_offsets_wait_for_a_transaction_with_pending_ones, .timeout = 60) {
    struct checkpoints here;
    char errstr[256];
    checkpoints_open(&here, "cp-stable");
    struct asking loose = {.here = &here, .isolation = "read_uncommitted", .timeout_ms = 10000};
    struct asking brief = {.here = &here, .isolation = "read_committed", .timeout_ms = 1500};
    struct asking patient = {.here = &here, .isolation = "read_committed", .timeout_ms = 20000};
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "transactional.id", here.scene.group);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *offsets = checkpoints_offsets(&here, 3);
    scene_commit(&here.scene, offsets);
    rd_kafka_t *member = checkpoints_member(&here, NULL);
    rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(member);
    offsets->elems[0].offset = 4;
    CHECK(!rd_kafka_init_transactions(producer, 20000) && !rd_kafka_begin_transaction(producer));
    CHECK(!rd_kafka_send_offsets_to_transaction(producer, offsets, metadata, 20000));

    ask_committed(&loose);
    CHECK_I64(loose.err, 0);
    CHECK_I64(loose.offset, 3);
    CHECK(!pthread_create(&patient.thread, NULL, ask_committed, &patient));
    ask_committed(&brief);
    CHECK(brief.err == RD_KAFKA_RESP_ERR__TIMED_OUT || brief.err == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT);
    CHECK(brief.offset < 0);
    CHECK(!rd_kafka_commit_transaction(producer, 20000));
    pthread_join(patient.thread, NULL);
    CHECK(patient.err == 0 || patient.err == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT);
    CHECK(patient.err ? patient.offset < 0 : patient.offset == 4);
    CHECK_I64(checkpoints_committed(&here), 4);
    rd_kafka_topic_partition_list_destroy(offsets);
    rd_kafka_consumer_group_metadata_destroy(metadata);
    rd_kafka_destroy(member);
    rd_kafka_destroy(producer);
    checkpoints_close(&here);
}

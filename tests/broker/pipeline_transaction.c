/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline and transactions: of the producer whose records it reads, open, aborted and committed ones; and of the
 * application, whose `deliver` produces into one that spans polls, so that each result is there once.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/stamper.h>
#include <broker/fixture/transformer.h>
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>
#include <support/prng.h>

enum { HOT = 900, COLD = 9, EACH = 40, TOTAL = HOT + COLD * EACH, MS = 20000 };

static struct scene scene;
static struct pipework work;
static checker_log_t *accepted;
static atomic_int events[UNSALT_EVENT__CNT];
static unsalt_gap_reason_t gap_reason;

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    if (event->type == UNSALT_EVENT_GAP)
        gap_reason = event->reason;
    atomic_fetch_add(&events[event->type], 1);
}

static void begin(struct scene what, const char *word) {
    scene = what;
    accepted = checker_log_new();
    pipework_init(&work);
    scene_open(&scene, word);
}

static void finish(void) {
    CHECK(pipework_clean(&work));
    pipework_free(&work);
    scene_close(&scene);
    checker_log_free(accepted);
}

/* settings: of the library, in turn with values, NULL behind the last. */
static unsalt_pipeline_t *join(const char *strategy, const char *const *settings) {
    char errstr[512];
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    rd_kafka_conf_t *rk_conf = scene_consumer_conf(&scene);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_set(rk_conf, "heartbeat.interval.ms", "200");
    scene_set(rk_conf, "session.timeout.ms", "40000");
    scene_set(rk_conf, "enable.auto.commit", "false");
    scene_set(rk_conf, "partition.assignment.strategy", strategy);
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    for (; *settings; settings += 2)
        scene_unsalt_set(conf, settings[0], settings[1]);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    unsalt_pipeline_t *p = unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof errstr);
    cr_assert(p, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(unsalt_pipeline_consumer(p), topics));
    rd_kafka_topic_partition_list_destroy(topics);
    return p;
}

static void leave(unsalt_pipeline_t *p) {
    CHECK(!unsalt_pipeline_close(p));
    pipework_stats(p);
    unsalt_pipeline_destroy(p);
}

/* ---- transactions of who produces what is read */

static void send_range(struct stamper *stamper, uint64_t first, uint64_t last) {
    stamper_range(stamper, "s", first, last, 0, 0);
}

/* Where "s" stands, and so does nothing of the open transaction: what is behind it in other partitions is read. */
static const char *elsewhere(void) {
    static char name[16];
    int32_t taken = rd_kafka_msg_partitioner_murmur2(NULL, "s", 1, scene.partitions, NULL, NULL), is;
    int i = 0;
    do {
        snprintf(name, sizeof name, "x%d", i++);
        is = rd_kafka_msg_partitioner_murmur2(NULL, name, strlen(name), scene.partitions, NULL, NULL);
    } while (is == taken);
    return name;
}

/*
 * Phase 1 begins when a record is read, long before its turn: never for one of a transaction that is open or aborted.
 * Numbers of an aborted one that are sent again are in order; those that are not, and what the lanes show above them,
 * are a proven gap.
 */
Test(pipeline_transaction, of_the_records_that_it_reads, .timeout = 200) {
    static const char *const settings[] = {"pipeline.workers", "4", NULL};
    struct stamper plain, stamper;
    begin((struct scene){.layout = "topics", .partitions = 2, .lanes = 2}, "pipetxn");
    stamper_open(&plain, &scene, NULL, NULL, accepted);
    stamper_open(&stamper, &scene, scene.group, NULL, accepted);
    unsalt_pipeline_t *p = join("range", settings);
    stamper_begin(&stamper);
    send_range(&stamper, 1, 10);
    stamper_commit(&stamper);
    stamper_begin(&stamper);
    send_range(&stamper, 11, 20);
    stamper_abort(&stamper);
    stamper_begin(&stamper);
    send_range(&stamper, 11, 20);
    stamper_commit(&stamper);
    stamper_begin(&stamper);
    send_range(&stamper, 21, 30);
    stamper_flush(&stamper);
    stamper_range(&plain, elsewhere(), 1, 20, 0, 0);
    stamper_flush(&plain);
    CHECK(pipework_until(&work, p, 40));
    for (int i = 0; i < 10; i++)
        pipework_poll(&work, p, 50);
    CHECK_U64(pipework_delivered(&work), 40);
    CHECK_U64(pipework_prepares(&work), 40);
    CHECK_U64(pipework_stats(p).entered, 40);
    stamper_commit(&stamper);
    CHECK(pipework_until(&work, p, 50));
    CHECK(pipework_in_order(&work, 1));
    CHECK_I64(events[UNSALT_EVENT_GAP], 0);
    stamper_begin(&stamper);
    send_range(&stamper, 31, 34);
    stamper_abort(&stamper);
    stamper_begin(&stamper);
    stamper.una = 35; /* what is below will not be sent again */
    send_range(&stamper, 35, 40);
    stamper_commit(&stamper);
    CHECK(pipework_until(&work, p, 56));
    CHECK_I64(events[UNSALT_EVENT_GAP], 1);
    CHECK_I64(gap_reason, UNSALT_GAP_PROVEN);
    CHECK_U64(pipework_prepares(&work), 56);
    CHECK_U64(work.delivered.records[50].seq, 35);
    CHECK(pipework_until_done(&work, p, 56));
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(p), 0));
    leave(p);
    stamper_close(&stamper);
    stamper_close(&plain);
    finish();
}

/* ---- the application's own */

static struct scene out = {.layout = "hash", .partitions = 1, .lanes = 1};
static rd_kafka_t *producer;
static unsigned produced; /* since the transaction was begun */

/* Phase 1 fails now and then, and never shows. */
static unsalt_pipeline_res_t prepare(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq % 17 == 0 && job->attempt == 1 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t forward(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (job->seq % 23 == 0 && job->attempt == 1)
        return UNSALT_PIPELINE_RETRY; /* before it has produced */
    CHECK_I64(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(out.topic), RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_VALUE(job->message->payload, job->message->len),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
              0);
    produced++;
    rd_kafka_poll(producer, 0);
    return UNSALT_PIPELINE_OK;
}

/* What an application with read_committed finds, and the checker's word on it. */
static void judge_output(struct checker_report *report) {
    checker_log_t *found = checker_log_new();
    rd_kafka_topic_partition_list_t *list = scene_partitions(&out);
    rd_kafka_conf_t *conf = scene_conf();
    char errstr[256];
    bool ended = false;
    scene_set(conf, "group.id", out.topic);
    scene_set(conf, "isolation.level", "read_committed");
    scene_set(conf, "enable.partition.eof", "true");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    cr_assert(rk, "%s", errstr);
    rd_kafka_poll_set_consumer(rk);
    list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(!rd_kafka_assign(rk, list));
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; !ended && now_ms() < until;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        struct checker_record record;
        ended = message && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (message && reader_record(&out, message, &record))
            checker_log_record(found, &record);
        if (message)
            rd_kafka_message_destroy(message);
    }
    CHECK(ended);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    checker_judge(accepted, found, report);
    checker_print(report, "output", stderr);
    checker_log_free(found);
}

static const char *const transacting[] = {"checkpoint", "topic", "checkpoint.timeout.ms", "60000",
                                          "pipeline.workers", "4", "pipeline.retry.backoff.ms", "1",
                                          "pipeline.records", "200", NULL};

/* Opens a transaction, and polls until so much was produced, or all of the rest was. */
static void fill_transaction(unsalt_pipeline_t *p, uint64_t least) {
    produced = 0;
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; produced < least && now_ms() < until;)
        pipework_poll(&work, p, 20);
    CHECK_THAT(produced >= least, "%u records were produced, not %" PRIu64, produced, least);
}

/* A transaction ends: committed, or aborted before or after it was sent. Returns what it has brought. */
static uint64_t end_transaction(unsalt_pipeline_t *p, struct prng *prng) {
    unsalt_t *u = unsalt_pipeline_consumer(p);
    uint64_t fate = prng_below(prng, 4);
    CHECK_I64(rd_kafka_flush(producer, MS), 0); /* an abort meets a transaction that its coordinator knows */
    if (fate > 0)
        CHECK_I64(transformer_code(unsalt_send_offsets_to_transaction(u, producer, MS)), 0);
    if (fate < 2) {
        CHECK_I64(transformer_code(rd_kafka_abort_transaction(producer, MS)), 0);
        CHECK_I64(unsalt_rewind(u, MS), 0);
        return 0;
    }
    CHECK_I64(transformer_code(rd_kafka_commit_transaction(producer, MS)), 0);
    CHECK_I64(unsalt_transaction_committed(u), 0);
    return produced;
}

/*
 * Half of the transactions are aborted, phase 1 is retried, members come and go in the middle of one: each result
 * stands in the output once, in the order of its session.
 */
Test(pipeline_transaction, of_the_application, .timeout = 250) {
    struct prng prng = prng_start(7);
    struct checker_report report;
    uint64_t brought = 0, aborted = 0;
    begin((struct scene){.layout = "topics", .partitions = 2, .lanes = 3}, "pipeonce");
    scene_open(&out, "pipeout");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    producer = transformer_producer(scene.group);
    work.prepare = prepare;
    work.deliver = forward;
    unsalt_pipeline_t *p = join("range", transacting);
    for (uint64_t until = now_ms() + 150000; brought < TOTAL && now_ms() < until;) {
        uint64_t rest = TOTAL - brought, least = prng_between(&prng, 1, 200);
        fill_transaction(p, least < rest ? least : rest);
        uint64_t came = end_transaction(p, &prng);
        brought += came;
        aborted += came == 0;
        if (brought < TOTAL && prng_below(&prng, 8) == 0) {
            leave(p);
            p = join("range", transacting);
        }
    }
    CHECK_U64(brought, TOTAL);
    CHECK(aborted > 0 && events[UNSALT_EVENT_GAP] == 0);
    leave(p);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, TOTAL);
    judge_output(&report);
    CHECK_THAT(checker_clean(&report) && report.delivered == TOTAL, "%s", report.fault);
    rd_kafka_destroy(producer);
    scene_close(&out);
    finish();
}

/* A delivery thread may have produced while its record isn't done: no transaction can have both. */
Test(pipeline_transaction, is_refused_with_delivery_threads, .timeout = 100) {
    static const char *const settings[] = {"checkpoint", "topic", "pipeline.delivery.threads", "2", NULL};
    begin((struct scene){.layout = "topics", .partitions = 1, .lanes = 2}, "piperefuse");
    producer = transformer_producer(scene.group);
    unsalt_pipeline_t *p = join("range", settings);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(unsalt_pipeline_consumer(p), producer, MS);
    CHECK(error && rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__STATE);
    CHECK_THAT(strstr(rd_kafka_error_string(error), "pipeline.delivery.threads=2 is not allowed"), "%s",
               rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(producer, MS)), 0);
    leave(p);
    rd_kafka_destroy(producer);
    finish();
}

/* ---- a part of a lane set goes in the middle of a transaction */

static atomic_bool flows;

static unsalt_pipeline_res_t ten_at_first(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq <= 10 || atomic_load(&flows) ? UNSALT_PIPELINE_OK : UNSALT_PIPELINE_RETRY;
}

/* A plain consumer of the same topics takes one of two lanes. */
static rd_kafka_t *stranger_joins(void) {
    char errstr[256], topic[96];
    rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
    scene_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "heartbeat.interval.ms", "200");
    rd_kafka_t *stranger = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    cr_assert(stranger, "%s", errstr);
    rd_kafka_poll_set_consumer(stranger);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(scene.lanes);
    for (int lane = 0; lane < scene.lanes; lane++)
        rd_kafka_topic_partition_list_add(topics, scene_topic(&scene, lane, topic, sizeof topic),
                                          RD_KAFKA_PARTITION_UA);
    CHECK(!rd_kafka_subscribe(stranger, topics));
    rd_kafka_topic_partition_list_destroy(topics);
    return stranger;
}

static uint64_t partitions_of(const unsalt_pipeline_t *p) {
    unsalt_stats_t stats;
    unsalt_stats(unsalt_pipeline_consumer(p), &stats, sizeof stats);
    return stats.partitions;
}

/*
 * What was released of the lane that goes is still delivered here, and comes to its next owner as well: the transaction
 * that has its output can't be committed.
 */
Test(pipeline_transaction, whose_records_are_somebody_elses_by_now, .timeout = 200) {
    static const char *const settings[] = {"colocation", "report", "revoke.timeout.ms", "100",
                                           "pipeline.deliver.retries", "1000000", "pipeline.retry.backoff.ms", "20",
                                           "pipeline.retry.backoff.max.ms", "20", NULL};
    struct stamper stamper;
    begin((struct scene){.layout = "topics", .partitions = 1, .lanes = 2}, "pipetorn");
    stamper_open(&stamper, &scene, NULL, NULL, accepted);
    producer = transformer_producer(scene.group);
    work.deliver = ten_at_first;
    unsalt_pipeline_t *p = join("cooperative-sticky", settings);
    unsalt_t *u = unsalt_pipeline_consumer(p);
    send_range(&stamper, 1, 40);
    stamper_flush(&stamper);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    PIPEWORK_UNTIL(&work, p, work.done == 10 && pipework_stats(p).entered == 40 &&
                                 pipework_stats(p).waiting_turn == 0);
    CHECK_I64(transformer_code(unsalt_send_offsets_to_transaction(u, producer, MS)), 0);
    CHECK_I64(transformer_code(rd_kafka_commit_transaction(producer, MS)), 0);
    CHECK_I64(unsalt_transaction_committed(u), 0);
    CHECK_I64(transformer_code(rd_kafka_begin_transaction(producer)), 0);
    rd_kafka_t *stranger = stranger_joins();
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; partitions_of(p) != 1 && now_ms() < until;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(stranger, 10);
        if (message)
            rd_kafka_message_destroy(message);
        pipework_poll(&work, p, 10);
    }
    CHECK_U64(partitions_of(p), 1);
    CHECK_U64(work.done, 10);
    atomic_store(&flows, true);
    CHECK(pipework_until_done(&work, p, 40));
    CHECK(pipework_in_order(&work, 1));
    rd_kafka_error_t *error = unsalt_send_offsets_to_transaction(u, producer, MS);
    CHECK_THAT(error, "the transaction could be committed, and its next owner brings half of it again");
    fprintf(stderr, "%s\n", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    CHECK_I64(transformer_code(rd_kafka_abort_transaction(producer, MS)), 0);
    CHECK_I64(unsalt_rewind(u, MS), 0);
    CHECK(!rd_kafka_consumer_close(stranger));
    rd_kafka_destroy(stranger);
    leave(p);
    rd_kafka_destroy(producer);
    stamper_close(&stamper);
    finish();
}

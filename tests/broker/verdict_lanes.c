/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No false gap, whatever makes one lane late: an open transaction, an aborted one, compaction, a log whose head is
 * gone, a busy partition that is never read to its end, an application that sits in its handler. Each is judged by what
 * had been acknowledged to the producer before a gap fell due.
 */
#include <broker/fixture/stamper.h>
#include <broker/fixture/verdicts.h>
#include <checker/log.h>
#include <pthread.h>
#include <stdatomic.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { LANES = 4 };
#define MS UINT64_C(1000000)

struct play {
    struct scene scene;
    checker_log_t *accepted, *delivered;
    struct stamper stamper;
    struct reader reader;
    struct verdicts verdicts;
};

/* In layout `hash`, one lane to a partition; the reader isn't open. */
static void play_open(struct play *play, const char *word, int lanes) {
    play->scene = (struct scene){.layout = "hash", .partitions = lanes, .lanes = lanes};
    play->accepted = checker_log_new();
    play->delivered = checker_log_new();
    scene_open(&play->scene, word);
    stamper_open(&play->stamper, &play->scene, NULL, NULL, play->accepted);
}

/* Takes the configuration; NULL: all defaults. */
static void play_read(struct play *play, int timeout_ms, rd_kafka_conf_t *conf) {
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(&play->scene, 0);
    char number[16];
    snprintf(number, sizeof number, "%d", timeout_ms);
    scene_unsalt_set(unsalt_conf, "gap.timeout.ms", number);
    reader_open_assigned(&play->reader, &play->scene, conf, unsalt_conf, play->delivered);
    verdicts_listen(&play->verdicts, &play->reader);
}

/* Closes the reader; everything that was accepted must have come in order, and no gap be false. */
static struct checker_report play_close(struct play *play) {
    struct checker_report report;
    stamper_close(&play->stamper);
    CHECK(reader_stats(&play->reader).conserved);
    CHECK_U64(reader_close(&play->reader), 0);
    checker_judge(play->accepted, play->delivered, &report);
    checker_print(&report, play->scene.topic, stderr);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    verdicts_free(&play->verdicts);
    checker_log_free(play->delivered);
    checker_log_free(play->accepted);
    scene_close(&play->scene);
    return report;
}

/* ---- transactions */

/* Lane 1 is written in a transaction that stays open for six times the timeout; its records are acknowledged. */
Test(verdict, an_open_transaction_is_no_loss, .timeout = 60) {
    struct play play;
    struct stamper within;
    play_open(&play, "open", LANES);
    stamper_open(&within, &play.scene, play.scene.topic, NULL, play.accepted);
    play_read(&play, 500, NULL);
    stamper_begin(&within);
    for (uint64_t seq = 1; seq <= 400; seq += LANES)
        stamper_send(&within, "hot", seq);
    stamper_flush(&within);
    stamper_range(&play.stamper, "hot", 1, 400, LANES, 1);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 400, 3), 0);
    for (double until = scene_now() + 20; reader_stats(&play.reader).questions == 0;) {
        CHECK_THAT(scene_now() < until, "its leader isn't asked, who would say what the lane has not shown");
        CHECK_U64(reader_poll(&play.reader, 1, 20), 0);
    }
    stamper_commit(&within);
    CHECK_U64(reader_take(&play.reader, 400, 20), 400);
    CHECK_U64(play.verdicts.count, 0);
    stamper_close(&within);
    CHECK_U64(play_close(&play).records, 400);
}

/* Sends the numbers of lane 1 up to `last`, from `first`, in a transaction. */
static void lane_1_in_transaction(struct stamper *within, uint64_t first, uint64_t last, bool commit) {
    stamper_begin(within);
    for (; first <= last; first += LANES)
        stamper_send(within, "hot", first);
    if (commit)
        stamper_commit(within);
    else
        stamper_abort(within);
}

/* Numbers of aborted transactions are sent again, marked, or gone; offsets have holes in all three cases. */
Test(verdict, aborted_transactions, .timeout = 120) {
    struct play play;
    struct stamper within;
    play_open(&play, "aborted", LANES);
    stamper_open(&within, &play.scene, play.scene.topic, NULL, play.accepted);
    play_read(&play, 3000, NULL); /* longer than two transactions take on a busy machine */
    /* sent again, while the other lanes wait for them */
    stamper_range(&play.stamper, "hot", 1, 100, LANES, 1);
    stamper_flush(&play.stamper);
    lane_1_in_transaction(&within, 1, 97, false);
    CHECK_U64(reader_take(&play.reader, 100, 0.2), 0);
    lane_1_in_transaction(&within, 1, 97, true);
    CHECK_U64(reader_take(&play.reader, 100, 30), 100);
    CHECK_U64(play.verdicts.count, 0);
    /* marked */
    stamper_range(&play.stamper, "hot", 101, 112, LANES, 1);
    lane_1_in_transaction(&within, 101, 109, false);
    for (uint64_t seq = 101; seq <= 109; seq += LANES)
        stamper_mark(&play.stamper, "hot", seq, seq);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 9, 20), 9);
    CHECK_U64(verdicts_for(&play.verdicts, UNSALT_GAP_MARKER), 3);
    CHECK_U64(play.verdicts.count, 3);
    /* gone */
    stamper_range(&play.stamper, "hot", 113, 124, LANES, 1);
    stamper_flush(&play.stamper);
    lane_1_in_transaction(&within, 113, 121, false);
    CHECK_U64(reader_take(&play.reader, 9, 40), 9);
    CHECK_U64(verdicts_for(&play.verdicts, UNSALT_GAP_TIMEOUT), 3);
    CHECK_U64(play.verdicts.count, 6);
    CHECK(reader_stats(&play.reader).offset_jumps > 0);
    stamper_close(&within);
    CHECK_U64(play_close(&play).holes, 6);
}

/* ---- logs with holes */

/* Sends the record `seq` under a key of its own, so that compaction takes the copies and leaves every number. */
static void send_keyed(rd_kafka_t *rk, const struct play *play, uint64_t seq) {
    static const char *const words[3] = {"sessionId", "globalSeq", "run"};
    struct checker_record record = {.session = "hot", .session_len = 3, .epoch = 1, .seq = seq};
    char payload[2000], key[32];
    rd_kafka_resp_err_t err;
    snprintf(key, sizeof key, "key-%" PRIu64, seq);
    checker_payload(payload, sizeof payload, words, &record);
    err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(play->scene.topic), RD_KAFKA_V_PARTITION((int32_t)(seq % LANES)),
                            RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE(payload, sizeof payload),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (err)
        scene_die("number %" PRIu64 " can't be sent: %s", seq, rd_kafka_err2str(err));
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct play *play = opaque;
    struct checker_record record = {.offset = message->offset};
    (void)rk;
    if (message->err || checker_parse(message->payload, message->len, &record) != 0)
        scene_die("a record was not accepted: %s", rd_kafka_err2str(message->err));
    record.at = scene_now_ns();
    record.partition = message->partition;
    checker_log_record(play->accepted, &record);
}

/* Reads a partition from its beginning, and says how many records it has and where it ends. */
static int64_t count_records(const struct scene *scene, int32_t partition, int64_t *end) {
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    double deadline = scene_now() + 10;
    char errstr[256];
    int64_t count = 0;
    scene_set(conf, "enable.partition.eof", "true");
    scene_set(conf, "enable.auto.commit", "false");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (!rk)
        scene_die("consumer: %s", errstr);
    rd_kafka_topic_partition_list_add(list, scene->topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    for (*end = -1; *end < 0 && scene_now() < deadline;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        if (!message)
            continue;
        count += !message->err;
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            *end = message->offset;
        rd_kafka_message_destroy(message);
    }
    rd_kafka_destroy(rk);
    return count;
}

/*
 * Two copies of each number; the cleaner leaves the last one of what isn't in the active segment. One number is missing
 * for good: the horizon comes to its due time over the holes too.
 */
Test(verdict, a_compacted_lane, .timeout = 90) {
    enum { NUMBERS = 400, MISSING = 202 };
    static const char *const compacted[] = {"cleanup.policy", "compact",   "segment.ms", "100",
                                            "min.cleanable.dirty.ratio", "0.01", "segment.bytes", "1048576", NULL};
    struct play play;
    char errstr[256];
    int64_t count, end;
    play.scene = (struct scene){.layout = "hash", .partitions = LANES, .lanes = LANES, .config = compacted};
    play.accepted = checker_log_new();
    play.delivered = checker_log_new();
    scene_open(&play.scene, "compacted");
    stamper_open(&play.stamper, &play.scene, NULL, NULL, play.accepted);
    rd_kafka_conf_t *conf = scene_conf();
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, &play);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    for (uint64_t seq = 1; seq <= NUMBERS; seq++) {
        for (int copy = 0; copy < 2 && seq != MISSING; copy++)
            send_keyed(rk, &play, seq);
        if (seq % (NUMBERS / 2) == NUMBERS / 4) { /* what comes next opens a new segment */
            CHECK_I64(rd_kafka_flush(rk, 20000), 0);
            sleep_ms(150);
        }
    }
    CHECK_I64(rd_kafka_flush(rk, 20000), 0);
    double deadline = scene_now() + 30;
    while ((count = count_records(&play.scene, MISSING % LANES, &end)) == end) {
        CHECK_THAT(scene_now() < deadline, "nothing was compacted in 30 s: %" PRId64 " records", count);
        sleep_ms(100);
    }
    fprintf(stderr, "compacted: %" PRId64 " records up to offset %" PRId64 "\n", count, end);
    play_read(&play, 100, NULL);
    CHECK_U64(reader_take(&play.reader, NUMBERS - 1, 20), NUMBERS - 1);
    CHECK_U64(play.verdicts.count, 1);
    CHECK_STR(unsalt_gap_reason_name(play.verdicts.list[0].reason), "timeout");
    CHECK_U64(play.verdicts.list[0].first, MISSING);
    CHECK(reader_stats(&play.reader).offset_jumps > 0);
    rd_kafka_destroy(rk);
    CHECK_U64(play_close(&play).holes, 1);
}

/* A copy of a log without what stood below `offset` of a partition. */
static checker_log_t *without_head(const checker_log_t *log, int32_t partition, int64_t offset) {
    checker_log_t *rest = checker_log_new();
    for (size_t i = 0; i < checker_log_size(log); i++) {
        const struct checker_entry *entry = checker_log_at(log, i);
        struct checker_record record = {.epoch = entry->epoch, .seq = entry->seq, .partition = entry->partition,
                                        .offset = entry->offset, .at = entry->at};
        record.session = checker_log_name(log, entry->session, &record.session_len);
        if (entry->partition != partition || entry->offset >= offset)
            checker_log_record(rest, &record);
    }
    return rest;
}

/*
 * The heads of the lanes were read, and are deleted behind the reader: nothing is missing. Then somebody reads what is
 * left from its beginning, one lane's beginning being higher than the others': what was deleted is missed there, once,
 * and nothing else.
 */
Test(verdict, a_lane_whose_head_was_deleted, .timeout = 60) {
    enum { FIRST = 2000, ALL = 4000, DELETED = 400 };
    struct play play;
    play_open(&play, "head", LANES);
    stamper_range(&play.stamper, "hot", 1, FIRST, 0, 0);
    stamper_flush(&play.stamper);
    reader_open(&play.reader, &play.scene, NULL, NULL, play.delivered);
    CHECK_U64(reader_take(&play.reader, FIRST, 20), FIRST);
    CHECK_U64(reader_close(&play.reader), 0);
    checker_log_run(play.delivered);
    scene_delete_below(&play.scene, 0, 1, DELETED);
    scene_delete_below(&play.scene, 0, 2, DELETED / 2);
    stamper_range(&play.stamper, "hot", FIRST + 1, ALL, 0, 0);
    stamper_flush(&play.stamper);
    reader_open(&play.reader, &play.scene, NULL, NULL, play.delivered);
    CHECK_U64(reader_take(&play.reader, ALL - FIRST, 20), ALL - FIRST);
    CHECK_U64(play.reader.events[UNSALT_EVENT_GAP], 0);
    CHECK_U64(play.reader.events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(reader_close(&play.reader), 0);

    checker_log_free(play.delivered);
    play.delivered = checker_log_new();
    checker_log_t *no_head = without_head(play.accepted, 1, DELETED), *left = without_head(no_head, 2, DELETED / 2);
    checker_log_free(no_head);
    checker_log_free(play.accepted);
    play.accepted = play.stamper.accepted = left;
    play_read(&play, 100, NULL);
    CHECK_U64(reader_take(&play.reader, ALL - DELETED - DELETED / 2, 20), ALL - DELETED - DELETED / 2);
    CHECK_U64(play.reader.events[UNSALT_EVENT_LATE], 0);
    CHECK_U64(play.reader.events[UNSALT_EVENT_START], 1); /* at 3: 1 and 2 are below its beginning */
    CHECK_U64(reader_stats(&play.reader).gap_numbers[UNSALT_GAP_TIMEOUT], DELETED + DELETED / 2 - 2);
    play_close(&play);
}

/* ---- a busy partition beside an idle one */

struct noise {
    struct stamper stamper;
    checker_log_t *accepted;
    atomic_ullong acknowledged, consumed;
    atomic_bool stop;
};

/* Between these two; the reader fetches ahead far less than the lower one. */
enum { LAG = 20000, LAG_LEAST = 5000 };

/* Keeps partition 0 ahead of its reader, whatever the speed of both. */
static void *make_noise(void *arg) {
    struct noise *noise = arg;
    uint64_t seq = 0;
    while (!noise->stop) {
        if (noise->stamper.acknowledged < noise->consumed + LAG && seq < noise->consumed + 2 * LAG)
            stamper_send(&noise->stamper, "noise", ++seq);
        rd_kafka_poll(noise->stamper.rk, seq % 64 ? 0 : 1);
        noise->acknowledged = noise->stamper.acknowledged;
    }
    stamper_flush(&noise->stamper);
    noise->acknowledged = noise->stamper.acknowledged;
    return NULL;
}

/* Reads for a time, or until that many verdicts are there, and leaves a part of the noise unread. */
static void read_noise(struct play *play, struct noise *noise, double seconds, size_t verdicts) {
    double deadline = scene_now() + seconds;
    while (scene_now() < deadline && (!verdicts || play->verdicts.count < verdicts)) {
        if (noise->acknowledged > noise->consumed + LAG_LEAST)
            noise->consumed += reader_poll(&play->reader, 500, 10);
        sleep_ms(2); /* some work */
    }
}

/*
 * Partition 0 is never read to its end; partition 1 shows nothing but what the test sends. What stands in the lag is
 * waited for, far beyond the timeout; what stands nowhere is given up all the same.
 */
Test(verdict, a_busy_partition_beside_an_idle_one, .timeout = 60) {
    struct noise noise = {0};
    struct play play;
    pthread_t thread;
    char errstr[256];
    play_open(&play, "busy", 2);
    noise.accepted = checker_log_new();
    stamper_open(&noise.stamper, &play.scene, NULL, NULL, noise.accepted);
    noise.stamper.lanes = 1;
    rd_kafka_conf_t *conf = scene_consumer_conf(&play.scene);
    scene_set(conf, "queued.min.messages", "500");
    scene_set(conf, "fetch.message.max.bytes", "50000");
    scene_set(conf, "enable.partition.eof", "true");
    /* Newer versions wait for a second before they fetch again, unless told; older ones don't know the property. */
    rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "5", errstr, sizeof errstr);
    play_read(&play, 100, conf);
    CHECK(pthread_create(&thread, NULL, make_noise, &noise) == 0);
    for (double deadline = scene_now() + 20; noise.acknowledged < LAG;) {
        CHECK(scene_now() < deadline);
        sleep_ms(5);
    }
    read_noise(&play, &noise, 0.3, 0); /* past the end that was there before */
    memset(play.reader.ends, 0, sizeof play.reader.ends);
    /* 1, 3, 5.. in partition 1, at once; 2, 4, 6.. behind the noise */
    stamper_range(&play.stamper, "hot", 1, 20, 0, 0);
    stamper_flush(&play.stamper);
    read_noise(&play, &noise, 1.5, 0);
    CHECK_U64(play.verdicts.count, 0);
    double began = scene_now();
    stamper_range(&play.stamper, "hot", 22, 40, 0, 0);
    stamper_flush(&play.stamper);
    read_noise(&play, &noise, 10, 1);
    fprintf(stderr, "busy: a number that stands nowhere was given up after %.2f s\n", scene_now() - began);
    CHECK_U64(play.verdicts.count, 1);
    CHECK_STR(unsalt_gap_reason_name(play.verdicts.list[0].reason), "timeout");
    CHECK_U64(play.verdicts.list[0].first, 21);
    CHECK_U64(play.reader.ends[0], 0);
    CHECK(play.reader.ends[1] > 0);
    noise.stop = true;
    CHECK(pthread_join(thread, NULL) == 0);
    uint64_t all = noise.acknowledged + play.stamper.acknowledged;
    reader_take(&play.reader, all - checker_log_records(play.delivered), 20);
    CHECK_U64(checker_log_records(play.delivered), all);
    for (size_t i = 0; i < checker_log_size(noise.accepted); i++) {
        const struct checker_entry *entry = checker_log_at(noise.accepted, i);
        struct checker_record record = {"noise", 5, entry->epoch, entry->seq, entry->partition, entry->offset,
                                        entry->at};
        checker_log_record(play.accepted, &record);
    }
    stamper_close(&noise.stamper);
    CHECK_U64(play_close(&play).holes, 1);
    checker_log_free(noise.accepted);
}

/* ---- an application that takes its time */

static void sit(rd_kafka_message_t *message, void *opaque) {
    struct play *play = opaque;
    struct checker_record record;
    if (!reader_record(&play->scene, message, &record))
        return;
    checker_log_record(play->delivered, &record);
    if (memcmp(record.session, "other", 5))
        return;
    stamper_send(&play->stamper, "hot", 2);
    stamper_flush(&play->stamper);
    sleep_ms(10000);
}

/*
 * Number 3 of "hot" is held when the handler of another record sits down. Number 2 is acknowledged at once; it stands
 * behind thousands of records that the application has not read when its handler returns, and the gap is long due.
 */
Test(verdict, an_application_that_sits_in_its_handler, .timeout = 60) {
    enum { NOISE = 20000, ALL = NOISE + 4 };
    struct play play;
    play_open(&play, "handler", 2);
    play.stamper.lanes = 1; /* all in partition 0, where number 2 belongs */
    stamper_range(&play.stamper, "noise", 1, NOISE, 0, 0);
    play.stamper.lanes = 2;
    stamper_send(&play.stamper, "hot", 1);
    stamper_send(&play.stamper, "hot", 3);
    stamper_send(&play.stamper, "other", 1);
    stamper_flush(&play.stamper);
    play_read(&play, 100, NULL);
    for (double deadline = scene_now() + 30; checker_log_records(play.delivered) < ALL && scene_now() < deadline;)
        CHECK(unsalt_consume_callback(play.reader.consumer, 100, sit, &play) >= 0);
    CHECK_U64(checker_log_records(play.delivered), ALL);
    CHECK_U64(play.verdicts.count, 0);
    CHECK_U64(play_close(&play).records, ALL);
}

/* ---- what evidence costs */

/* Gaps of many sessions fall due while records keep coming: how long after its due time is each given up? */
Test(verdict, the_wait_beyond_the_due_time, .timeout = 60) {
    enum { SESSIONS = 200, ROUNDS = 40, HOLE = 20, TIMEOUT_MS = 200 };
    struct play play;
    char session[16];
    play_open(&play, "overdue", LANES);
    play_read(&play, TIMEOUT_MS, NULL);
    for (uint64_t seq = 1; seq <= ROUNDS; seq++) {
        for (int i = 0; i < SESSIONS; i++) {
            snprintf(session, sizeof session, "s-%d", i);
            if ((seq + (uint64_t)i) % HOLE || seq == ROUNDS)
                stamper_send(&play.stamper, session, seq);
        }
        rd_kafka_poll(play.stamper.rk, 0);
        for (double until = scene_now() + 0.04; scene_now() < until;)
            reader_poll(&play.reader, 500, 5);
    }
    stamper_flush(&play.stamper);
    uint64_t all = play.stamper.acknowledged, there = checker_log_records(play.delivered);
    CHECK_U64(there + reader_take(&play.reader, all - there, 20), all);
    unsalt_stats_t stats = reader_stats(&play.reader);
    uint64_t p50 = verdicts_overdue(&play.verdicts, TIMEOUT_MS * MS, 0.5);
    uint64_t p99 = verdicts_overdue(&play.verdicts, TIMEOUT_MS * MS, 0.99);
    fprintf(stderr,
            "wait beyond the due time: %zu gaps, p50 %.1f ms, p99 %.1f ms (statistics: p50 <= %.1f ms, p99 <= %.1f ms; "
            "%" PRIu64 " questions)\n",
            verdicts_for(&play.verdicts, UNSALT_GAP_TIMEOUT), (double)p50 / 1e6, (double)p99 / 1e6,
            (double)unsalt_wait_quantile(stats.overdue_count, 0.5) / 1e6,
            (double)unsalt_wait_quantile(stats.overdue_count, 0.99) / 1e6, stats.questions);
    CHECK_U64(verdicts_for(&play.verdicts, UNSALT_GAP_TIMEOUT), play.verdicts.count);
    CHECK(play.verdicts.count >= SESSIONS * (ROUNDS / HOLE - 1));
    CHECK(p50 <= unsalt_wait_quantile(stats.overdue_count, 0.5));
    CHECK(p99 < 2000 * MS);
    play_close(&play);
}

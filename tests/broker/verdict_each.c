/* SPDX-License-Identifier: BSD-2-Clause */
/* Each verdict on a gap but `stalled` (verdict_cluster.c), with its evidence, on a real broker. */
#include <broker/fixture/stamper.h>
#include <broker/fixture/verdicts.h>
#include <support/check.h>

enum { LANES = 4, NEVER = -1 };
#define MS UINT64_C(1000000)

/* A session over four lanes, and a consumer that hears of its gaps. */
struct play {
    struct scene scene;
    checker_log_t *accepted, *delivered;
    struct stamper stamper;
    struct reader reader;
    struct verdicts verdicts;
};

/* With layout `topics`, where a number tells its partition. `settings`: names and values in turn, NULL at the end. */
static void play_open(struct play *play, const char *word, int timeout_ms, const char *const *settings) {
    char number[16];
    play->scene = (struct scene){.layout = "topics", .partitions = 2, .lanes = LANES};
    play->accepted = checker_log_new();
    play->delivered = checker_log_new();
    scene_open(&play->scene, word);
    stamper_open(&play->stamper, &play->scene, NULL, NULL, play->accepted);
    unsalt_conf_t *conf = scene_unsalt_conf(&play->scene, 0);
    snprintf(number, sizeof number, "%d", timeout_ms);
    scene_unsalt_set(conf, "gap.timeout.ms", number);
    for (; settings && *settings; settings += 2)
        scene_unsalt_set(conf, settings[0], settings[1]);
    reader_open_assigned(&play->reader, &play->scene, NULL, conf, play->delivered);
    verdicts_listen(&play->verdicts, &play->reader);
}

static void play_close(struct play *play) {
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
}

/* The verdict number `index` is this one, on the session "hot"; a single number's lane and partition are told. */
static void expect(const struct play *play, size_t index, unsalt_gap_reason_t reason, uint64_t first, uint64_t last) {
    char topic[128];
    CHECK_THAT(index < play->verdicts.count, "%zu verdicts came, not %zu", play->verdicts.count, index + 1);
    const struct verdict *verdict = &play->verdicts.list[index];
    CHECK_STR(unsalt_gap_reason_name(verdict->reason), unsalt_gap_reason_name(reason));
    CHECK_STR(verdict->session, "hot");
    CHECK_U64(verdict->first, first);
    CHECK_U64(verdict->last, last);
    if (first == last) {
        int lane = (int)(first % LANES);
        CHECK_I64(verdict->lane, lane);
        CHECK_STR(verdict->topic, scene_topic(&play->scene, lane, topic, sizeof topic));
        CHECK_I64(verdict->partition, rd_kafka_msg_partitioner_murmur2(NULL, "hot", 3, 2, NULL, NULL));
    }
}

static void expect_waited(const struct play *play, size_t index, uint64_t least_ms, uint64_t most_ms) {
    uint64_t waited = play->verdicts.list[index].waited_ns;
    CHECK_THAT(waited >= least_ms * MS && waited < most_ms * MS, "given up after %" PRIu64 " us", waited / 1000);
}

/* So many come, everything behind them is held then, and stays so. */
static void comes_and_holds(struct play *play, uint64_t records, uint64_t held) {
    CHECK_U64(reader_take(&play->reader, records, 20), records);
    for (double until = scene_now() + 20; reader_stats(&play->reader).state[UNSALT_STATE_HELD] < held;) {
        CHECK_THAT(scene_now() < until, "%" PRIu64 " are held, not %" PRIu64,
                   reader_stats(&play->reader).state[UNSALT_STATE_HELD], held);
        CHECK_U64(reader_poll(&play->reader, 1, 20), 0);
    }
    CHECK_U64(reader_take(&play->reader, 1, 0.5), 0);
    CHECK_U64(reader_stats(&play->reader).state[UNSALT_STATE_HELD], held);
}

/* ---- on the word of the producer */

Test(verdict, marker_of_a_producer_by_hand, .timeout = 60) {
    static const char *const settings[] = {"gap.proof", "off", NULL};
    struct play play;
    play_open(&play, "marker", NEVER, settings);
    stamper_range(&play.stamper, "hot", 1, 20, 0, 0);
    stamper_range(&play.stamper, "hot", 25, 40, 0, 0);
    stamper_flush(&play.stamper);
    comes_and_holds(&play, 20, 16);
    stamper_mark(&play.stamper, "hot", 21, 22);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 16, 0.3), 0); /* half of the gap is no use */
    CHECK_U64(play.verdicts.count, 0);
    stamper_mark(&play.stamper, "hot", 23, 24);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 16, 20), 16);
    CHECK_U64(play.verdicts.count, 1);
    expect(&play, 0, UNSALT_GAP_MARKER, 21, 24);
    CHECK_U64(reader_stats(&play.reader).gap_numbers[UNSALT_GAP_MARKER], 4);
    play_close(&play);
}

struct told {
    checker_log_t *accepted;
    const struct scene *scene;
    unsigned failed;
    rd_kafka_resp_err_t err;
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct told *told = opaque;
    struct checker_record record = {.offset = message->offset};
    (void)rk;
    told->failed += message->err != 0;
    told->err = message->err ? message->err : told->err;
    if (message->err)
        return;
    if (checker_parse(message->payload, message->len, &record) != 0)
        scene_die("a report with an unknown payload");
    record.at = scene_now_ns();
    record.partition = scene_place(told->scene, rd_kafka_topic_name(message->rkt), message->partition);
    checker_log_record(told->accepted, &record);
}

static void produce(unsalt_producer_t *producer, const struct scene *scene, uint64_t seq, size_t size) {
    static const char *const words[3] = {"who", "number", "run"};
    static char payload[100000];
    struct checker_record record = {.session = "hot", .session_len = 3, .epoch = 1, .seq = seq};
    checker_payload(payload, size, words, &record);
    CHECK_I64(unsalt_produce(producer, scene->topic, "hot", 3, payload, size, NULL), 0);
}

/* The broker refuses one record, so it is in no log, and the library's producer says so. */
Test(verdict, marker_of_our_producer, .timeout = 60) {
    enum { REFUSED = 14, LAST = 40 };
    static const char *const limits[] = {"max.message.bytes", "20000", NULL};
    struct scene scene = {.layout = "topics", .partitions = 2, .lanes = LANES, .config = limits};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct told told = {.accepted = accepted, .scene = &scene};
    struct checker_report report;
    struct verdicts verdicts;
    struct reader reader;
    char errstr[512];

    scene_open(&scene, "refused");
    rd_kafka_conf_t *conf = scene_conf();
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, &told);
    unsalt_producer_t *producer = unsalt_producer_new(conf, scene_unsalt_conf(&scene, 0), errstr, sizeof errstr);
    CHECK_THAT(producer, "%s", errstr);
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(unsalt_conf, "gap.timeout.ms", "-1");
    scene_unsalt_set(unsalt_conf, "gap.proof", "off");
    reader_open_assigned(&reader, &scene, NULL, unsalt_conf, delivered);
    verdicts_listen(&verdicts, &reader);
    for (uint64_t seq = 1; seq <= LAST; seq++) {
        produce(producer, &scene, seq, seq == REFUSED ? 50000 : 100);
        if (seq == REFUSED - 1 || seq == REFUSED) /* or others share its batch, and its fate */
            CHECK_I64(unsalt_producer_flush(producer, 30000), 0);
    }
    CHECK_I64(unsalt_producer_flush(producer, 30000), 0);
    CHECK_U64(told.failed, 1);
    CHECK_STR(rd_kafka_err2name(told.err), "MSG_SIZE_TOO_LARGE");
    CHECK_U64(reader_take(&reader, LAST - 1, 20), LAST - 1);
    CHECK_U64(verdicts.count, 1);
    CHECK_STR(unsalt_gap_reason_name(verdicts.list[0].reason), "marker");
    CHECK_U64(verdicts.list[0].first, REFUSED);
    CHECK_U64(verdicts.list[0].last, REFUSED);
    CHECK_I64(verdicts.list[0].lane, REFUSED % LANES);
    CHECK(verdicts.list[0].waited_ns < 20000 * MS);
    CHECK_U64(reader_stats(&reader).state[UNSALT_STATE_CONTROL], 1);
    unsalt_producer_destroy(producer);
    CHECK_U64(reader_close(&reader), 0);
    checker_judge(accepted, delivered, &report);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_U64(report.holes, 1);
    verdicts_free(&verdicts);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

/* ---- by proof */

/* Number 9 fails for good; 10..13 were stamped when that was known, and 13 stands on the lane of 9. */
Test(verdict, proven_by_una, .timeout = 60) {
    struct play play;
    play_open(&play, "proven", NEVER, NULL);
    stamper_range(&play.stamper, "hot", 1, 8, 0, 0);
    stamper_flush(&play.stamper);
    play.stamper.una = 10;
    stamper_range(&play.stamper, "hot", 10, 12, 0, 0);
    stamper_flush(&play.stamper);
    comes_and_holds(&play, 8, 3); /* the lane of 9 has shown nothing yet */
    CHECK_U64(play.verdicts.count, 0);
    stamper_send(&play.stamper, "hot", 13);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 4, 20), 4);
    CHECK_U64(play.verdicts.count, 1);
    expect(&play, 0, UNSALT_GAP_PROVEN, 9, 9);
    expect_waited(&play, 0, 0, 10000);
    CHECK_U64(reader_stats(&play.reader).questions, 0);
    CHECK_U64(reader_stats(&play.reader).proofs_off, 0);
    play_close(&play);
}

/* The same without `una`, on the trust that no record comes behind a higher one. */
Test(verdict, proven_by_trust, .timeout = 60) {
    static const char *const settings[] = {"gap.proof", "trust", NULL};
    struct play play;
    play_open(&play, "trust", NEVER, settings);
    stamper_range(&play.stamper, "hot", 1, 40, 0, 0);
    stamper_range(&play.stamper, "hot", 43, 60, 0, 0);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 58, 20), 58);
    CHECK_U64(play.verdicts.count, 1);
    expect(&play, 0, UNSALT_GAP_PROVEN, 41, 42);
    play_close(&play);
}

/* ---- by the clock */

Test(verdict, timeout_at_the_horizon, .timeout = 60) {
    struct play play;
    play_open(&play, "timeout", 500, NULL);
    stamper_range(&play.stamper, "hot", 1, 40, 10, 7);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 36, 20), 36);
    CHECK_U64(play.verdicts.count, 4);
    for (uint64_t i = 0; i < 4; i++) {
        expect(&play, i, UNSALT_GAP_TIMEOUT, 10 * i + 7, 10 * i + 7);
        expect_waited(&play, i, 500, 20000);
    }
    unsalt_stats_t stats = reader_stats(&play.reader);
    CHECK_U64(stats.gaps[UNSALT_GAP_TIMEOUT], 4);
    CHECK_THAT(stats.questions >= 2, "%" PRIu64 " questions to leaders", stats.questions); /* lanes 1 and 3 */
    CHECK_U64(stats.question_failures, 0);
    play_close(&play);
}

/* ---- without evidence */

Test(verdict, overflow_of_a_small_budget, .timeout = 60) {
    enum { BUDGET = 50 };
    static const char *const settings[] = {"gap.proof", "off", "budget.records", "50", NULL};
    struct play play;
    play_open(&play, "overflow", NEVER, settings);
    stamper_range(&play.stamper, "hot", 1, 20, 0, 0);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 20, 20), 20);
    stamper_range(&play.stamper, "hot", 22, 21 + BUDGET, 0, 0);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 1, 0.3), 0); /* the budget is full, and nothing is over it */
    CHECK_U64(play.verdicts.count, 0);
    stamper_range(&play.stamper, "hot", 22 + BUDGET, 30 + BUDGET, 0, 0);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, BUDGET + 9, 20), BUDGET + 9);
    CHECK_U64(play.verdicts.count, 1);
    expect(&play, 0, UNSALT_GAP_OVERFLOW, 21, 21);
    expect_waited(&play, 0, 100, 20000);
    CHECK_U64(play.reader.events[UNSALT_EVENT_BUDGET], 1);
    CHECK(reader_stats(&play.reader).budget_full[UNSALT_BUDGET_RECORDS] > 0);
    play_close(&play);
}

Test(verdict, flush_of_the_application, .timeout = 60) {
    struct play play;
    play_open(&play, "flush", NEVER, NULL);
    stamper_range(&play.stamper, "hot", 1, 40, 20, 5);
    stamper_flush(&play.stamper);
    comes_and_holds(&play, 4, 34);
    CHECK_I64(unsalt_flush_gaps(play.reader.consumer), 0);
    CHECK_U64(play.verdicts.count, 1); /* the event comes before the call returns */
    CHECK_U64(reader_take(&play.reader, 34, 20), 34);
    CHECK_U64(play.verdicts.count, 2);
    expect(&play, 0, UNSALT_GAP_FLUSH, 5, 5);
    expect(&play, 1, UNSALT_GAP_FLUSH, 25, 25);
    expect_waited(&play, 0, 300, 20000);
    play_close(&play);
}

/* ---- what isn't lost */

/* An earlier run has committed one lane at its beginning and the others behind number 40. */
Test(verdict, resumed_after_a_restart, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = LANES, .lanes = LANES};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct verdicts verdicts;
    struct stamper stamper;
    struct reader reader;

    scene_open(&scene, "resumed");
    stamper_open(&stamper, &scene, NULL, NULL, accepted);
    stamper.una = 0; /* all that is below is settled: what may be sent again has its time, and here there is none */
    stamper_range(&stamper, "hot", 1, 60, 0, 0);
    stamper_flush(&stamper);
    rd_kafka_topic_partition_list_t *list = scene_partitions(&scene);
    for (int i = 0; i < LANES; i++)
        list->elems[i].offset = list->elems[i].partition == 0 ? 5 : 10; /* numbers 24 and above; 41 and above */
    scene_commit(&scene, list);
    rd_kafka_topic_partition_list_destroy(list);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    reader_open(&reader, &scene, NULL, conf, delivered);
    verdicts_listen(&verdicts, &reader);
    CHECK_U64(reader_take(&reader, 25, 20), 25); /* 24, 28, 32, 36, 40, then 41..60 */
    CHECK_U64(reader.events[UNSALT_EVENT_START], 1);
    CHECK_U64(reader.events[UNSALT_EVENT_GAP], 0);
    CHECK_U64(verdicts.count, 4);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_STR(unsalt_gap_reason_name(verdicts.list[i].reason), "resumed");
        CHECK_U64(verdicts.list[i].first, 25 + 4 * i);
        CHECK_U64(verdicts.list[i].last, 27 + 4 * i);
    }
    CHECK_U64(reader_stats(&reader).gap_numbers[UNSALT_GAP_RESUMED], 12);
    stamper_close(&stamper);
    CHECK_U64(reader_close(&reader), 0);
    verdicts_free(&verdicts);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

/* What is missing when the producer starts again will not come; what is held of the old run is handed out first. */
Test(verdict, epoch_of_a_producer_that_started_again, .timeout = 60) {
    struct play play;
    play_open(&play, "epoch", NEVER, NULL);
    play.reader.runs = true;
    stamper_range(&play.stamper, "hot", 1, 30, 30, 15);
    stamper_flush(&play.stamper);
    comes_and_holds(&play, 14, 15);
    CHECK_U64(play.verdicts.count, 0);
    play.stamper.epoch = 2;
    stamper_range(&play.stamper, "hot", 1, 20, 0, 0);
    stamper_flush(&play.stamper);
    CHECK_U64(reader_take(&play.reader, 35, 20), 35);
    CHECK_U64(play.verdicts.count, 1);
    expect(&play, 0, UNSALT_GAP_EPOCH, 15, 15);
    CHECK_U64(play.verdicts.list[0].epoch, 1);
    expect_waited(&play, 0, 300, 20000);
    CHECK_U64(play.reader.events[UNSALT_EVENT_EPOCH], 1);
    CHECK_U64(play.reader.events[UNSALT_EVENT_STALE], 0);
    play_close(&play);
}

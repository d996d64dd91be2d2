/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three brokers: one is frozen for five seconds, another is stopped and started, at last one stays down. Four pairs of
 * a producer and a consumer go through the first two side by side, since all that takes is time.
 */
#include <broker/fixture/cluster.h>
#include <broker/fixture/stamper.h>
#include <broker/fixture/verdicts.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { BROKERS = 3, FROZEN_MS = 5000 };
#define MS UINT64_C(1000000)

/* One pair: a producer of one session, stamped by hand or by the library, and a consumer. */
struct pair {
    struct scene scene;
    checker_log_t *accepted, *delivered;
    struct stamper stamper;
    unsalt_producer_t *producer; /* NULL: the stamper */
    struct reader reader;
    struct verdicts verdicts;
    uint64_t sent, refused;
};

static void open_pair(struct pair *pair, const char *word, const struct scene *shape) {
    *pair = (struct pair){.scene = *shape};
    pair->accepted = checker_log_new();
    pair->delivered = checker_log_new();
    scene_open(&pair->scene, word);
}

/* A client doesn't wait long before it looks for a broker again. */
static rd_kafka_conf_t *eager(rd_kafka_conf_t *conf) {
    scene_set(conf, "reconnect.backoff.max.ms", "200");
    return conf;
}

static void open_reader(struct pair *pair, const char *timeout_ms) {
    unsalt_conf_t *conf = scene_unsalt_conf(&pair->scene, 0);
    scene_unsalt_set(conf, "gap.timeout.ms", timeout_ms);
    reader_open_assigned(&pair->reader, &pair->scene, eager(scene_consumer_conf(&pair->scene)), conf, pair->delivered);
    verdicts_listen(&pair->verdicts, &pair->reader);
}

/* The lanes' leaders are different brokers; so are their replicas, if there are any. Timeouts of 500 ms. */
static void open_stamped(struct pair *pair, const char *word, int replicas) {
    const struct scene shape = {.layout = "topics", .partitions = 1, .lanes = 3, .brokers = BROKERS,
                                .replicas = replicas};
    open_pair(pair, word, &shape);
    stamper_open(&pair->stamper, &pair->scene, NULL, eager(scene_conf()), pair->accepted);
    open_reader(pair, "500");
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct pair *pair = opaque;
    struct checker_record record = {.offset = message->offset};
    (void)rk;
    if (message->err) {
        pair->refused++;
        return;
    }
    if (checker_parse(message->payload, message->len, &record) != 0)
        scene_die("a report with an unknown payload");
    record.at = scene_now_ns();
    record.partition = scene_place(&pair->scene, rd_kafka_topic_name(message->rkt), message->partition);
    checker_log_record(pair->accepted, &record);
}

/* The library's producer, which gives a message up after a second and sends it again. Nothing falls due. */
static void open_proven(struct pair *pair, const char *word, const char *resend_max_ms) {
    const struct scene shape = {.layout = "hash", .partitions = 6, .lanes = 4, .brokers = BROKERS};
    rd_kafka_conf_t *conf = eager(scene_conf());
    char errstr[256];
    open_pair(pair, word, &shape);
    unsalt_conf_t *unsalt_conf = scene_unsalt_conf(&pair->scene, 0);
    scene_set(conf, "message.timeout.ms", "1000");
    scene_set(conf, "socket.timeout.ms", "1000");
    scene_set(conf, "linger.ms", "2");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, pair);
    scene_unsalt_set(unsalt_conf, "producer.resend.max.ms", resend_max_ms);
    pair->producer = unsalt_producer_new(conf, unsalt_conf, errstr, sizeof errstr);
    if (!pair->producer)
        scene_die("producer: %s", errstr);
    open_reader(pair, "-1");
}

static void send_one(struct pair *pair) {
    static const char *const words[3] = {"who", "number", "run"};
    struct checker_record record = {.session = "hot", .session_len = 3, .epoch = 1, .seq = pair->sent + 1};
    char payload[100];
    if (!pair->producer) {
        stamper_send(&pair->stamper, "hot", ++pair->sent);
        return;
    }
    checker_payload(payload, sizeof payload, words, &record);
    rd_kafka_resp_err_t err =
        unsalt_produce(pair->producer, pair->scene.topic, "hot", 3, payload, sizeof payload, NULL);
    if (err && err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        scene_die("number %" PRIu64 " can't be sent: %s", record.seq, rd_kafka_err2str(err));
    pair->sent += !err;
}

/* A few records more, and what has come. */
static void pump(struct pair *pair) {
    for (int i = 0; i < 2; i++)
        send_one(pair);
    if (pair->producer)
        unsalt_producer_poll(pair->producer, 0);
    else
        rd_kafka_poll(pair->stamper.rk, 0);
    reader_poll(&pair->reader, 500, 1);
}

struct trouble {
    const struct cluster *cluster;
    atomic_bool over;
};

static void *make_trouble(void *arg) {
    struct trouble *trouble = arg;
    sleep_ms(500);
    cluster_signal(trouble->cluster, 1, SIGSTOP);
    sleep_ms(FROZEN_MS);
    cluster_signal(trouble->cluster, 1, SIGCONT);
    sleep_ms(1000);
    cluster_stop(trouble->cluster, 2);
    cluster_start(trouble->cluster, 2);
    sleep_ms(500);
    trouble->over = true;
    return NULL;
}

/* Reads until everything that was acknowledged has come; what the broker has taken without a word may come too. */
static struct checker_report read_rest(struct pair *pair) {
    struct checker_report report;
    double deadline = scene_now() + 20;
    do {
        reader_take(&pair->reader, UINT64_MAX, 0.3);
        checker_judge(pair->accepted, pair->delivered, &report);
    } while (report.lost && scene_now() < deadline);
    return report;
}

/* Every lane shows a record that was stamped when the fate of all before was known, or some of it stays unproven. */
static void send_last_words(struct pair *pair) {
    double deadline = scene_now() + 30;
    uint64_t refused;
    do {
        CHECK_I64(unsalt_producer_flush(pair->producer, 60000), 0);
        refused = pair->refused;
        for (int i = 0; i < pair->scene.lanes; i++)
            send_one(pair);
        CHECK_I64(unsalt_producer_flush(pair->producer, 60000), 0);
        CHECK_THAT(scene_now() < deadline, "the brokers take nothing");
    } while (pair->refused > refused);
}

static struct checker_report finish(struct pair *pair) {
    if (pair->producer)
        send_last_words(pair);
    else
        stamper_flush(&pair->stamper);
    struct checker_report report = read_rest(pair);
    unsalt_stats_t stats = reader_stats(&pair->reader);
    CHECK(stats.conserved);
    checker_print(&report, pair->scene.topic, stderr);
    fprintf(stderr, "  sent %" PRIu64 ", refused %" PRIu64 "; timeout %zu, proven %zu, marker %zu; late %u, %" PRIu64
            " questions, %" PRIu64 " of them failed\n", pair->sent, pair->refused,
            verdicts_for(&pair->verdicts, UNSALT_GAP_TIMEOUT), verdicts_for(&pair->verdicts, UNSALT_GAP_PROVEN),
            verdicts_for(&pair->verdicts, UNSALT_GAP_MARKER), pair->reader.events[UNSALT_EVENT_LATE], stats.questions,
            stats.question_failures);
    CHECK_THAT(!report.false_gaps && !report.lost && !report.repeated, "%s", report.fault);
    return report;
}

static void close_pair(struct pair *pair) {
    CHECK_I64(reader_close(&pair->reader), 0);
    if (pair->producer)
        unsalt_producer_destroy(pair->producer);
    else
        stamper_close(&pair->stamper);
    verdicts_free(&pair->verdicts);
    checker_log_free(pair->delivered);
    checker_log_free(pair->accepted);
    scene_close(&pair->scene);
}

/* What is proven or marked never comes, and nothing is given up on the clock. */
static void expect_proofs_to_hold(const struct pair *pair, const struct checker_report *report) {
    CHECK_U64(verdicts_for(&pair->verdicts, UNSALT_GAP_TIMEOUT), 0);
    CHECK_U64(verdicts_for(&pair->verdicts, UNSALT_GAP_STALLED), 0);
    CHECK_U64(pair->reader.events[UNSALT_EVENT_LATE], 0);
    CHECK_U64(pair->reader.events[UNSALT_EVENT_PROOF_OFF], 0);
    CHECK_U64(report->out_of_order, 0);
}

static void frozen_and_restarted(const struct cluster *cluster) {
    struct pair pairs[4], *single = &pairs[0], *replicated = &pairs[1], *patient = &pairs[2], *hasty = &pairs[3];
    struct trouble trouble = {.cluster = cluster};
    struct checker_report report;
    unsalt_producer_stats_t stats;
    pthread_t thread;

    open_stamped(single, "single", 1);
    open_stamped(replicated, "replicated", BROKERS);
    open_proven(patient, "patient", "60000");
    open_proven(hasty, "hasty", "300");
    CHECK(pthread_create(&thread, NULL, make_trouble, &trouble) == 0);
    while (!trouble.over)
        for (int i = 0; i < 4; i++)
            pump(&pairs[i]);
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK_U64(finish(single).unknown, 0);
    CHECK(reader_stats(&single->reader).question_failures > 0); /* it was in doubt, and waited */
    CHECK_U64(finish(replicated).unknown, 0);
    report = finish(patient);
    expect_proofs_to_hold(patient, &report);
    unsalt_producer_stats(patient->producer, &stats, sizeof stats);
    CHECK_U64(stats.abandoned, 0);
    CHECK_THAT(stats.resent > 0, "the library's producer had nothing to send again");
    CHECK_U64(patient->verdicts.count, 0);
    report = finish(hasty);
    expect_proofs_to_hold(hasty, &report);
    unsalt_producer_stats(hasty->producer, &stats, sizeof stats);
    fprintf(stderr,
            "proof: %" PRIu64 " numbers abandoned, %" PRIu64 " uncertain, %zu gaps proven, %zu marked, 0 came\n",
            stats.abandoned, stats.uncertain, verdicts_for(&hasty->verdicts, UNSALT_GAP_PROVEN),
            verdicts_for(&hasty->verdicts, UNSALT_GAP_MARKER));
    CHECK(stats.abandoned > 0);
    CHECK(hasty->verdicts.count > 0);
    for (int i = 0; i < 4; i++)
        close_pair(&pairs[i]);
}

/* Lane 2 is led by broker 3, which is gone: its numbers are given up, and the session goes on with the other lanes. */
static void dead_leader(const struct cluster *cluster) {
    const struct scene shape = {.layout = "topics", .partitions = 1, .lanes = 3, .brokers = BROKERS};
    struct pair pair;
    char topic[128];
    open_pair(&pair, "dead", &shape);
    stamper_open(&pair.stamper, &pair.scene, NULL, NULL, pair.accepted);
    unsalt_conf_t *conf = scene_unsalt_conf(&pair.scene, 0);
    scene_unsalt_set(conf, "gap.timeout.ms", "300");
    scene_unsalt_set(conf, "gap.stall.max.ms", "2000");
    reader_open_assigned(&pair.reader, &pair.scene, NULL, conf, pair.delivered);
    verdicts_listen(&pair.verdicts, &pair.reader);
    stamper_range(&pair.stamper, "hot", 1, 30, 0, 0);
    stamper_flush(&pair.stamper);
    CHECK_U64(reader_take(&pair.reader, 30, 20), 30);
    cluster_signal(cluster, 3, SIGKILL);
    double began = scene_now();
    stamper_range(&pair.stamper, "hot", 31, 60, 3, 2);
    stamper_flush(&pair.stamper);
    CHECK_U64(reader_take(&pair.reader, 20, 20), 20);
    fprintf(stderr, "stalled: given up after %.1f s\n", scene_now() - began);
    CHECK_U64(verdicts_for(&pair.verdicts, UNSALT_GAP_STALLED), 10);
    for (uint64_t i = 0; i < pair.verdicts.count; i++) {
        const struct verdict *verdict = &pair.verdicts.list[i];
        CHECK_STR(unsalt_gap_reason_name(verdict->reason), "stalled");
        CHECK_STR(verdict->session, "hot");
        CHECK_U64(verdict->first, 32 + 3 * i);
        CHECK_U64(verdict->last, 32 + 3 * i);
        CHECK_I64(verdict->lane, 2);
        CHECK_STR(verdict->topic, scene_topic(&pair.scene, 2, topic, sizeof topic));
        CHECK_I64(verdict->partition, 0);
        CHECK_THAT(verdict->waited_ns >= 2000 * MS && verdict->waited_ns < 18000 * MS, "given up after %" PRIu64 " ms",
                   verdict->waited_ns / MS);
    }
    CHECK(pair.reader.events[UNSALT_EVENT_HORIZON_FAILED] > 0);
    /* From now on it is known to be dead. */
    began = scene_now();
    stamper_range(&pair.stamper, "hot", 61, 90, 3, 2);
    stamper_flush(&pair.stamper);
    CHECK_U64(reader_take(&pair.reader, 20, 20), 20);
    /* Ten gaps, each of which would cost 2 s if it had to be found out again. */
    CHECK_THAT(scene_now() - began < 19, "a lane that is known to be dead cost %.1f s", scene_now() - began);
    CHECK_U64(verdicts_for(&pair.verdicts, UNSALT_GAP_STALLED), 20);
    CHECK(reader_stats(&pair.reader).conserved);
    CHECK_I64(reader_close(&pair.reader), 0);
    stamper_close(&pair.stamper);
    verdicts_free(&pair.verdicts);
    checker_log_free(pair.delivered);
    checker_log_free(pair.accepted);
}

Test(verdict, brokers_that_freeze_stop_and_die, .timeout = 180) {
    struct cluster cluster;
    cluster_open(&cluster, BROKERS);
    frozen_and_restarted(&cluster);
    dead_leader(&cluster);
    cluster_close(&cluster);
}

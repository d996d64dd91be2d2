/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stamping producer on a broker that fails: every record is told of once, no number stands for two records, none
 * is missing without a word, and no `una` passes a number that comes later.
 */
#include <broker/fixture/rawlog.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <time.h>

enum { PARTS = 8, LANES = 4, THREADS = 8 };

static void pause_ms(int ms) {
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* ---- the broker */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (!value)
        scene_die("this test needs the broker itself: run it under tests/harness/with-kafka.sh");
    return value;
}

/* The broker may have been restarted since UNSALT_TEST_BROKER_PIDS was set. */
static pid_t broker_pid(void) {
    char command[512], line[32] = "";
    snprintf(command, sizeof command, "'%s' pids '%s'", variable("UNSALT_TEST_KAFKA_SH"),
             variable("UNSALT_TEST_KAFKA_DIR"));
    FILE *pipe = popen(command, "r");
    if (!pipe || !fgets(line, sizeof line, pipe) || atoi(line) <= 1)
        scene_die("no broker is running");
    pclose(pipe);
    return (pid_t)atoi(line);
}

static void broker(const char *what) {
    char command[512];
    snprintf(command, sizeof command, "'%s' %s '%s' 1", variable("UNSALT_TEST_KAFKA_SH"), what,
             variable("UNSALT_TEST_KAFKA_DIR"));
    if (system(command) != 0)
        scene_die("can't %s the broker", what);
}

static void freeze(void) {
    pid_t pid = broker_pid();
    kill(pid, SIGSTOP);
    pause_ms(3000);
    kill(pid, SIGCONT);
}

static void stop_and_start(void) {
    broker("stop");
    broker("start");
}

/* ---- a producer, and threads that use it */

struct load {
    const struct scene *scene;
    unsalt_producer_t *producer;
    struct rawlog rawlog;
    atomic_int content, full, failed;
    atomic_bool stop;
};

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct load *load = opaque;
    (void)rk;
    rawlog_told(&load->rawlog, message);
}

static unsalt_producer_t *producer_of(rd_kafka_conf_t *conf, unsalt_conf_t *unsalt) {
    char errstr[512];
    unsalt_producer_t *producer = unsalt_producer_new(conf, unsalt, errstr, sizeof errstr);
    if (!producer)
        scene_die("producer: %s", errstr);
    return producer;
}

static void load_open(struct load *load, const struct scene *scene, const char *resend_max_ms, const char *queue) {
    rd_kafka_conf_t *conf = scene_conf();
    unsalt_conf_t *unsalt = scene_unsalt_conf(scene, 0);
    memset(load, 0, sizeof *load);
    load->scene = scene;
    rawlog_open(&load->rawlog);
    rd_kafka_conf_set_opaque(conf, load);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    scene_set(conf, "message.timeout.ms", "1000");
    scene_set(conf, "socket.timeout.ms", "1000");
    scene_set(conf, "reconnect.backoff.max.ms", "200");
    scene_set(conf, "linger.ms", "2");
    scene_set(conf, "queue.buffering.max.messages", queue);
    scene_unsalt_set(unsalt, "producer.resend.max.ms", resend_max_ms);
    load->producer = producer_of(conf, unsalt);
}

/* One more record of a session; polls while there is no room. */
static void put(struct load *load, int session) {
    char id[8], payload[32];
    snprintf(id, sizeof id, "s%d", session);
    snprintf(payload, sizeof payload, "%d %d", session, atomic_fetch_add(&load->content, 1));
    rd_kafka_resp_err_t err;
    while ((err = unsalt_produce(load->producer, load->scene->topic, id, strlen(id), payload, strlen(payload), NULL)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        atomic_fetch_add(&load->full, 1);
        unsalt_producer_poll(load->producer, 5);
    }
    if (err)
        atomic_fetch_add(&load->failed, 1);
}

struct hand {
    struct load *load;
    int session; /* of its own; all share s0 */
};

static void *work(void *arg) {
    const struct hand *hand = arg;
    while (!hand->load->stop) {
        put(hand->load, 0);
        put(hand->load, hand->session);
        pause_ms(6);
    }
    return NULL;
}

static void *poll_all_the_time(void *arg) {
    struct load *load = arg;
    while (!load->stop)
        unsalt_producer_poll(load->producer, 20);
    return NULL;
}

/* The trouble must meet records in flight. */
static void wait_for_traffic(struct load *load) {
    unsalt_producer_stats_t stats = {.acked = 0};
    double deadline = scene_now() + 10;
    while (stats.acked < 300) {
        CHECK(scene_now() < deadline);
        pause_ms(10);
        unsalt_producer_stats(load->producer, &stats, sizeof stats);
    }
}

/* Eight threads send, while the broker has its trouble. */
static void run(struct load *load, void (*trouble)(void)) {
    pthread_t threads[THREADS], poller;
    struct hand hands[THREADS];
    for (int i = 0; i < THREADS; i++) {
        hands[i] = (struct hand){load, i + 1};
        CHECK(pthread_create(&threads[i], NULL, work, &hands[i]) == 0);
    }
    CHECK(pthread_create(&poller, NULL, poll_all_the_time, load) == 0);
    wait_for_traffic(load);
    trouble();
    pause_ms(300);
    load->stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(poller, NULL);
    rd_kafka_resp_err_t err = unsalt_producer_flush(load->producer, 20000);
    CHECK_THAT(!err, "flush: %s", rd_kafka_err2name(err));
}

/* ---- what a consumer makes of it */

static unsigned gaps;
static uint64_t gap_numbers;

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    if (event->type != UNSALT_EVENT_GAP)
        return;
    gaps++;
    gap_numbers += event->last - event->first + 1;
}

/* What was handed out of each session, and that it came in order. */
struct read {
    uint64_t released, others, epoch[RAWLOG_SESSIONS], seq[RAWLOG_SESSIONS];
    unsigned backwards, epochs;
};

static void note(struct read *read, unsalt_t *consumer, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof info};
    CHECK(!message->err && !unsalt_message_info(consumer, message, &info));
    if (info.state != UNSALT_STATE_RELEASED) {
        read->others++;
        return;
    }
    int session = atoi((const char *)info.session + 1);
    CHECK(session >= 0 && session < RAWLOG_SESSIONS);
    bool newer = info.epoch > read->epoch[session];
    read->backwards += !newer && (info.epoch < read->epoch[session] || info.seq <= read->seq[session]);
    read->epochs += newer;
    read->epoch[session] = info.epoch;
    read->seq[session] = info.seq;
    read->released++;
}

/* Reads until `wanted` records have come, and nothing more for half a second. */
static struct read read_all(const struct scene *scene, uint64_t wanted) {
    struct read read = {0};
    char errstr[512];
    unsalt_conf_t *conf = scene_unsalt_conf(scene, 0);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    gaps = 0;
    gap_numbers = 0;
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    unsalt_t *consumer = unsalt_new(scene_consumer_conf(scene), conf, errstr, sizeof errstr);
    if (!consumer)
        scene_die("consumer: %s", errstr);
    rd_kafka_topic_partition_list_add(topics, scene->topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(consumer, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    double deadline = scene_now() + 20, last = scene_now();
    while (scene_now() < deadline && (read.released < wanted || scene_now() < last + 0.5)) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 50);
        if (!message)
            continue;
        note(&read, consumer, message);
        last = scene_now();
        rd_kafka_message_destroy(message);
    }
    CHECK_I64(unsalt_consumer_close(consumer), 0);
    unsalt_destroy(consumer);
    return read;
}

/* ---- a broker in trouble */

static uint64_t numbers_in_the_logs(const struct rawlog *rawlog) {
    uint64_t count = 0;
    for (int session = 0; session < RAWLOG_SESSIONS; session++)
        for (uint64_t seq = 1; seq <= rawlog->highest[session]; seq++)
            count += rawlog->numbers[session][seq].copies > 0;
    return count;
}

/* The rules that hold whatever happens. Returns the producer's figures, and destroys it. */
static unsalt_producer_stats_t judge(struct load *load) {
    struct rawlog *l = &load->rawlog;
    unsalt_producer_stats_t stats;
    unsalt_producer_stats(load->producer, &stats, sizeof stats);
    unsalt_producer_destroy(load->producer);
    rawlog_read(l, load->scene);
    rawlog_judge(l);
    fprintf(stderr,
            "%u acknowledged of %u, %u abandoned (%u uncertain), resent %u times; in the logs %u records, %u resends, "
            "%u of them behind higher numbers, %u first copies; %u markers for %u numbers, %u abandoned without; "
            "queue full %d times\n",
            l->acked, (unsigned)stats.stamped, (unsigned)stats.abandoned, (unsigned)stats.uncertain,
            (unsigned)stats.resent, l->records, l->resends, l->behind, l->first_behind, l->markers, l->marked,
            l->unexplained, load->full);
    CHECK_U64(load->failed, 0);
    CHECK_U64(l->told_never + l->told_twice + l->unnumbered, 0);
    CHECK_U64(l->lost, 0);
    CHECK_U64(l->holes, 0);
    CHECK_U64(l->other_content, 0);
    CHECK_U64(l->other_partition, 0);
    CHECK_U64(l->marked_wrongly, 0);
    CHECK_U64(l->passed_by_una, 0);
    CHECK_U64(stats.stamped, stats.acked + stats.abandoned);
    CHECK_U64(stats.acked, l->acked);
    CHECK_U64(stats.waiting, 0);
    return stats;
}

/* What stands in the logs comes once and in order, whatever copies there are. */
static void expect_in_order(const struct load *load) {
    uint64_t wanted = numbers_in_the_logs(&load->rawlog);
    const struct read read = read_all(load->scene, wanted);
    CHECK_U64(read.released, wanted);
    CHECK_U64(read.backwards, 0);
    CHECK_U64(read.others, 0);
}

Test(producer, a_frozen_broker, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = LANES};
    static struct load load;
    scene_open(&scene, "frozen");
    load_open(&load, &scene, "60000", "100000");
    run(&load, freeze);
    const unsalt_producer_stats_t stats = judge(&load);
    CHECK_U64(stats.abandoned, 0);
    CHECK(load.rawlog.resends > 0);
    CHECK(load.rawlog.behind > 0);
    CHECK(load.rawlog.first_behind > 0);
    expect_in_order(&load);
    CHECK_U64(gaps, 0);
    rawlog_close(&load.rawlog);
    scene_close(&scene);
}

/* The same with little patience and little room: some records are abandoned. */
Test(producer, a_frozen_broker_and_little_patience, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = LANES};
    static struct load load;
    scene_open(&scene, "impatient");
    load_open(&load, &scene, "500", "3000");
    run(&load, freeze);
    const unsalt_producer_stats_t stats = judge(&load);
    CHECK(stats.abandoned > 0);
    CHECK(load.rawlog.marked > 0); /* all that are surely nowhere, unless their markers were given up, too */
    CHECK(load.full > 0);
    expect_in_order(&load);
    rawlog_close(&load.rawlog);
    scene_close(&scene);
}

Test(producer, a_broker_that_is_restarted, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = LANES};
    static struct load load;
    scene_open(&scene, "restarted");
    load_open(&load, &scene, "60000", "100000");
    run(&load, stop_and_start);
    const unsalt_producer_stats_t stats = judge(&load);
    CHECK_U64(stats.abandoned, 0);
    CHECK(load.rawlog.resends > 0);
    expect_in_order(&load);
    CHECK_U64(gaps, 0);
    rawlog_close(&load.rawlog);
    scene_close(&scene);
}

/* ---- without trouble */

static void put_many(unsalt_producer_t *producer, const char *topic, int count) {
    for (int i = 0; i < count; i++) {
        unsalt_record_t r = {.size = sizeof r, .topic = topic, .session = "s1", .session_len = 2, .payload = "x",
                             .len = 1};
        CHECK_I64(unsalt_produce_record(producer, &r), 0);
    }
}

static void finish(unsalt_producer_t *producer) {
    CHECK_I64(unsalt_producer_flush(producer, 20000), 0);
    unsalt_producer_destroy(producer);
}

/* Cold to hot and back while a session lives. */
static void change_lanes(const char *layout) {
    enum { EACH = 500 };
    static const uint16_t lanes[] = {1, 4, 1, 3};
    struct scene scene = {.layout = layout, .partitions = PARTS, .lanes = LANES};
    scene_open(&scene, "lanes");
    unsalt_producer_t *producer = producer_of(scene_conf(), scene_unsalt_conf(&scene, 0));
    for (int i = 0; i < 4; i++) {
        CHECK_I64(unsalt_producer_set_lanes(producer, scene.topic, lanes[i]), 0);
        put_many(producer, scene.topic, EACH);
    }
    finish(producer);
    const struct read read = read_all(&scene, 4 * EACH);
    CHECK_U64(read.released, 4 * EACH);
    CHECK_U64(read.backwards + read.others + gaps, 0);
    CHECK_U64(read.seq[1], 4 * EACH);
    scene_close(&scene);
}

Test(producer, other_lanes_while_a_session_lives, .timeout = 60) {
    change_lanes("hash");
}

Test(producer, other_lanes_on_lane_topics, .timeout = 60) {
    change_lanes("topics");
}

Test(producer, one_run_after_the_other, .timeout = 60) {
    enum { RUNS = 2, EACH = 500 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = LANES};
    scene_open(&scene, "runs");
    for (int i = 0; i < RUNS; i++) {
        unsalt_producer_t *producer = producer_of(scene_conf(), scene_unsalt_conf(&scene, 0));
        put_many(producer, scene.topic, EACH);
        finish(producer);
    }
    const struct read read = read_all(&scene, RUNS * EACH);
    CHECK_U64(read.released, RUNS * EACH);
    CHECK_U64(read.backwards + read.others + gaps, 0);
    CHECK_U64(read.epochs, RUNS);
    CHECK_U64(read.seq[1], EACH);
    scene_close(&scene);
}

Test(producer, a_topic_that_is_not_as_configured, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = PARTS, .lanes = 2};
    struct scene more = {.layout = "topics", .partitions = PARTS, .lanes = 3}, other = scene;
    scene_open(&scene, "check");
    unsalt_producer_t *producer = producer_of(scene_conf(), scene_unsalt_conf(&more, 0));
    CHECK_I64(unsalt_produce(producer, scene.topic, "s1", 2, "x", 1, NULL), RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
    unsalt_producer_destroy(producer);
    other.partitions = PARTS + 1;
    producer = producer_of(scene_conf(), scene_unsalt_conf(&other, 0));
    CHECK_I64(unsalt_produce(producer, scene.topic, "s1", 2, "x", 1, NULL), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    unsalt_producer_destroy(producer);
    producer = producer_of(scene_conf(), scene_unsalt_conf(&scene, 0));
    CHECK_I64(unsalt_produce(producer, scene.topic, "s1", 2, "x", 1, NULL), 0);
    finish(producer);
    scene_close(&scene);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that an attack on a live cluster has found, and that were mended: each test says what was seen. */
#include <broker/fixture/scene.h>
#include <stdlib.h>
#include <support/check.h>

enum { PARTS = 4, PAYLOAD_MAX = 10000 };

/* A consumer, and what it has handed out. One session only. */
struct watch {
    unsalt_t *consumer;
    unsigned events[UNSALT_EVENT__CNT], gaps[UNSALT_GAP__CNT];
    uint64_t gap_numbers[UNSALT_GAP__CNT];
    uint64_t states[UNSALT_STATE__CNT]; /* of the messages */
    uint64_t messages, unnamed;         /* unnamed: unsalt_message_info() doesn't know them */
    uint64_t backwards, jumps;          /* released ones not above, and not right above, the one before */
    uint64_t epoch, seq;                /* of the last one released */
    unsigned errors;
    uint64_t of[PARTS]; /* messages by partition */
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct watch *watch = opaque;
    if (watch->events[event->type]++ < 5)
        fprintf(stderr, "event: %s\n", event->text);
    if (event->type == UNSALT_EVENT_GAP || event->type == UNSALT_EVENT_RESUMED) {
        watch->gaps[event->reason]++;
        watch->gap_numbers[event->reason] += event->last - event->first + 1;
    }
}

/* Takes both configurations; NULL: the scene's. */
static void watch_open(struct watch *watch, const struct scene *scene, rd_kafka_conf_t *conf, unsalt_conf_t *unsalt) {
    char errstr[512];
    memset(watch, 0, sizeof *watch);
    conf = conf ? conf : scene_consumer_conf(scene);
    unsalt = unsalt ? unsalt : scene_unsalt_conf(scene, 0);
    unsalt_conf_set_event_cb(unsalt, on_event, watch);
    watch->consumer = unsalt_new(conf, unsalt, errstr, sizeof errstr);
    if (!watch->consumer)
        scene_die("consumer: %s", errstr);
}

static void watch_subscribe(struct watch *watch, const struct scene *scene) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene->topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(watch->consumer, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

static void note(struct watch *watch, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof info};
    if (message->err) {
        watch->errors++;
        return;
    }
    watch->messages++;
    watch->of[message->partition]++;
    if (unsalt_message_info(watch->consumer, message, &info)) {
        watch->unnamed++;
        return;
    }
    watch->states[info.state]++;
    if (info.state != UNSALT_STATE_RELEASED)
        return;
    bool same = info.epoch == watch->epoch;
    watch->backwards += info.epoch < watch->epoch || (same && info.seq <= watch->seq);
    watch->jumps += info.seq != (same ? watch->seq + 1 : 1);
    watch->epoch = info.epoch;
    watch->seq = info.seq;
}

/* Polls once. */
static void watch_poll(struct watch *watch) {
    rd_kafka_message_t *message = unsalt_consumer_poll(watch->consumer, 50);
    if (message) {
        note(watch, message);
        rd_kafka_message_destroy(message);
    }
}

/* Polls until that many messages have come in all, or for `seconds`. */
static uint64_t watch_take(struct watch *watch, uint64_t messages, double seconds) {
    double deadline = scene_now() + seconds;
    while (watch->messages < messages && scene_now() < deadline)
        watch_poll(watch);
    return watch->messages;
}

/* Nothing more comes for half a second. */
static void watch_quiet(struct watch *watch) {
    uint64_t before = watch->messages;
    CHECK_U64(watch_take(watch, before + 1, 0.5), before);
}

/* Forgets what came, as before a seek. */
static void watch_again(struct watch *watch) {
    unsalt_t *consumer = watch->consumer;
    memset(watch, 0, sizeof *watch);
    watch->consumer = consumer;
}

static unsalt_stats_t stats_of(const struct watch *watch) {
    unsalt_stats_t stats;
    unsalt_stats(watch->consumer, &stats, sizeof stats);
    return stats;
}

static void watch_close(struct watch *watch) {
    CHECK(stats_of(watch).conserved);
    CHECK_I64(unsalt_consumer_close(watch->consumer), 0);
    unsalt_destroy(watch->consumer);
}

/* All of 1..n came, released, in order, and nothing else. */
static void expect_all(const struct watch *watch, uint64_t n) {
    CHECK_U64(watch->messages, n);
    CHECK_U64(watch->states[UNSALT_STATE_RELEASED], n);
    CHECK_U64(watch->unnamed, 0);
    CHECK_U64(watch->backwards, 0);
    CHECK_U64(watch->jumps, 0);
    CHECK_U64(watch->events[UNSALT_EVENT_GAP], 0);
    CHECK_U64(watch->events[UNSALT_EVENT_LATE], 0);
    CHECK_U64(watch->events[UNSALT_EVENT_STALE], 0);
}

static rd_kafka_t *producer_open(void) {
    rd_kafka_conf_t *conf = scene_conf();
    char errstr[512];
    scene_set(conf, "enable.idempotence", "true");
    scene_set(conf, "linger.ms", "5");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!rk)
        scene_die("producer: %s", errstr);
    return rk;
}

/* Number n of the session goes to partition n mod 4, with its number in the payload only. `skip`: 0 = none. */
static void produce(rd_kafka_t *rk, const struct scene *scene, uint64_t first, uint64_t last, uint64_t skip,
                    size_t size) {
    static const char *const words[3] = {"sessionId", "globalSeq", "run"};
    char payload[PAYLOAD_MAX], key[32];
    for (uint64_t seq = first; seq <= last; seq++) {
        struct checker_record record = {.session = "hot", .session_len = 3, .epoch = 1, .seq = seq};
        if (seq == skip)
            continue;
        if (!checker_payload(payload, size, words, &record))
            scene_die("a payload of %zu bytes is too short", size);
        snprintf(key, sizeof key, "hot#%d", (int)(seq % PARTS));
        rd_kafka_resp_err_t err =
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scene->topic), RD_KAFKA_V_PARTITION((int32_t)(seq % PARTS)),
                              RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE(payload, size),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK), RD_KAFKA_V_END);
        if (err)
            scene_die("number %llu can't be sent: %s", (unsigned long long)seq, rd_kafka_err2str(err));
        rd_kafka_poll(rk, 0);
    }
    if (rd_kafka_flush(rk, 30000))
        scene_die("flush: the cluster doesn't answer");
}

/* All partitions at an offset. The caller's. */
static rd_kafka_topic_partition_list_t *all_at(const struct scene *scene, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = scene_partitions(scene);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = offset;
    return list;
}

static void assign_at(const struct watch *watch, const struct scene *scene, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = all_at(scene, offset);
    CHECK_I64(unsalt_assign(watch->consumer, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
}

/* One run of the stamping producer; `last` flags its last record as the session's last. */
static void run_of(const struct scene *scene, int epoch, uint64_t records, bool last) {
    unsalt_conf_t *conf = scene_unsalt_conf(scene, 0);
    char errstr[512], number[16], payload[32];
    snprintf(number, sizeof number, "%d", epoch);
    scene_unsalt_set(conf, "producer.epoch", number);
    unsalt_producer_t *producer = unsalt_producer_new(scene_conf(), conf, errstr, sizeof errstr);
    if (!producer)
        scene_die("producer: %s", errstr);
    for (uint64_t seq = 1; seq <= records; seq++) {
        int len = snprintf(payload, sizeof payload, "%d.%d", epoch, (int)seq);
        const unsalt_record_t record = {.size = sizeof record,
                                        .topic = scene->topic,
                                        .session = "hot",
                                        .session_len = 3,
                                        .payload = payload,
                                        .len = (size_t)len,
                                        .flags = last && seq == records ? UNSALT_F_LAST : 0};
        CHECK_I64(unsalt_produce_record(producer, &record), 0);
    }
    CHECK_I64(unsalt_producer_flush(producer, 30000), 0);
    unsalt_producer_destroy(producer);
}

static int assigned(const struct watch *watch) {
    rd_kafka_topic_partition_list_t *list = NULL;
    int n = 0;
    if (!rd_kafka_assignment(unsalt_handle(watch->consumer), &list)) {
        n = list->cnt;
        rd_kafka_topic_partition_list_destroy(list);
    }
    return n;
}

/* Polls until the consumer owns partitions, or none. */
static void wait_assigned(struct watch *watch, bool some) {
    double deadline = scene_now() + 20;
    while ((assigned(watch) > 0) != some) {
        CHECK_THAT(scene_now() < deadline, "%d partitions are assigned after 20 s", assigned(watch));
        watch_poll(watch);
    }
}

static void pause_all_but_first(const struct watch *watch, const struct scene *scene, bool paused) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTS);
    rd_kafka_topic_partition_list_add_range(list, scene->topic, 1, PARTS - 1);
    CHECK_I64(paused ? unsalt_pause(watch->consumer, list) : unsalt_resume(watch->consumer, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Reads partition 0 to its end, the others not at all or hardly, and then these. */
static void read_far_apart(struct watch *watch, const struct scene *scene) {
    pause_all_but_first(watch, scene, true);
    uint64_t before, received = stats_of(watch).received;
    double last = scene_now(), deadline = last + 20;
    while ((!received || scene_now() < last + 0.5) && scene_now() < deadline) {
        watch_poll(watch);
        before = received;
        received = stats_of(watch).received;
        last = received == before ? last : scene_now();
    }
    CHECK_THAT(received > 0, "partition 0 shows nothing");
    pause_all_but_first(watch, scene, false);
}

/*
 * Seen: more than four runs of a producer in a backlog. The partition that was read first showed the fifth run before
 * the others had shown the first; the runs in between were given up, and their records came as stale.
 */
static void restarts(const char *word, uint64_t each, bool far_apart) {
    enum { RUNS = 20 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    struct watch watch;

    scene_open(&scene, word);
    for (int run = 1; run <= RUNS; run++)
        run_of(&scene, run, each, false);
    watch_open(&watch, &scene, NULL, NULL);
    watch_subscribe(&watch, &scene);
    if (far_apart) {
        wait_assigned(&watch, true);
        read_far_apart(&watch, &scene);
    }
    watch_take(&watch, RUNS * each, 20);
    watch_quiet(&watch);
    expect_all(&watch, RUNS * each);
    CHECK_U64(watch.epoch, RUNS);
    CHECK_U64(watch.seq, each);
    CHECK_U64(stats_of(&watch).state[UNSALT_STATE_STALE], 0);
    watch_close(&watch);
    scene_close(&scene);
}

/* All runs of a partition stand in one batch (read.batch). */
Test(found, twenty_short_runs_in_a_backlog, .timeout = 60) {
    restarts("runs", 8, false);
}

Test(found, twenty_runs_of_which_one_partition_is_read_first, .timeout = 60) {
    restarts("apart", 100, true);
}

/*
 * Seen: a topic deleted and created anew under a consumer. librdkafka 2.0.2 delivers the new topic's records by its
 * main queue; they came without order and unknown to unsalt_message_info().
 */
Test(found, a_topic_created_anew_under_a_consumer, .timeout = 60) {
    enum { BEFORE = 100, AFTER = 5000 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    rd_kafka_t *rk = producer_open();
    struct watch watch;

    scene_open(&scene, "anew");
    produce(rk, &scene, 1, BEFORE, 0, 100);
    rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
    scene_set(conf, "topic.metadata.refresh.interval.ms", "500");
    watch_open(&watch, &scene, conf, NULL);
    watch_subscribe(&watch, &scene);
    watch_take(&watch, BEFORE, 20);
    expect_all(&watch, BEFORE);

    scene_close(&scene);
    wait_assigned(&watch, false);
    scene_create(&scene);
    wait_assigned(&watch, true);
    watch_again(&watch);
    rd_kafka_destroy(rk); /* it has ideas of its own about the old topic */
    rk = producer_open();
    produce(rk, &scene, 1, AFTER, 0, 100);
    watch_take(&watch, AFTER, 20);
    watch_quiet(&watch);
    expect_all(&watch, AFTER);
    watch_close(&watch);
    rd_kafka_destroy(rk);
    scene_close(&scene);
}

/*
 * Seen: an assignment beyond the end of the log, which librdkafka resets to its beginning. Narrow fetches keep the
 * partitions apart; what one of them still held was given up at once, because its end lay below the offset asked for.
 */
static void beyond_the_end(const char *word, bool far_apart) {
    enum { RECORDS = 400 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    rd_kafka_t *rk = producer_open();
    struct watch watch;

    scene_open(&scene, word);
    produce(rk, &scene, 1, RECORDS, 0, PAYLOAD_MAX);
    rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
    scene_set(conf, "fetch.message.max.bytes", "10000");
    unsalt_conf_t *unsalt = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(unsalt, "gap.timeout.ms", "0");
    watch_open(&watch, &scene, conf, unsalt);
    assign_at(&watch, &scene, 100000);
    if (far_apart)
        read_far_apart(&watch, &scene);
    watch_take(&watch, RECORDS, 20);
    watch_quiet(&watch);
    expect_all(&watch, RECORDS);
    CHECK_U64(watch.events[UNSALT_EVENT_RESUMED], 0);
    watch_close(&watch);
    rd_kafka_destroy(rk);
    scene_close(&scene);
}

Test(found, an_assignment_beyond_the_end, .timeout = 60) {
    beyond_the_end("beyond", false);
}

Test(found, an_assignment_beyond_the_end_of_which_one_partition_is_read_first, .timeout = 60) {
    beyond_the_end("above", true);
}

/*
 * Seen: a list that names a partition twice. The second revoke of it left a partition in the core that nobody reads:
 * one too many in the statistics, and no gap was given up any more.
 */
Test(found, a_partition_twice_in_a_list_of_seeks, .timeout = 60) {
    enum { RECORDS = 20, HOLE = 9, NEXT_HOLE = 30 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    rd_kafka_t *rk = producer_open();
    struct watch watch;

    scene_open(&scene, "twice");
    produce(rk, &scene, 1, RECORDS, HOLE, 100);
    unsalt_conf_t *unsalt = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(unsalt, "start", "first");
    watch_open(&watch, &scene, NULL, unsalt);
    assign_at(&watch, &scene, 0);
    CHECK_U64(watch_take(&watch, RECORDS - 1, 20), RECORDS - 1);

    watch_again(&watch);
    rd_kafka_topic_partition_list_t *list = all_at(&scene, 0);
    rd_kafka_topic_partition_list_add(list, scene.topic, 0)->offset = 0;
    CHECK_I64(unsalt_seek(watch.consumer, list, 5000), 0);
    rd_kafka_topic_partition_list_destroy(list);
    CHECK_U64(watch_take(&watch, RECORDS - 1, 20), RECORDS - 1);
    CHECK_U64(watch.states[UNSALT_STATE_RELEASED], RECORDS - 1);
    CHECK_U64(watch.backwards, 0);
    CHECK_U64(watch.gaps[UNSALT_GAP_TIMEOUT], 1);
    CHECK_U64(stats_of(&watch).partitions, PARTS);

    produce(rk, &scene, RECORDS + 1, RECORDS + 20, NEXT_HOLE, 100);
    CHECK_U64(watch_take(&watch, RECORDS + 18, 20), RECORDS + 18);
    CHECK_U64(watch.gaps[UNSALT_GAP_TIMEOUT], 2);
    CHECK_U64(watch.backwards, 0);
    watch_close(&watch);
    rd_kafka_destroy(rk);
    scene_close(&scene);
}

/* Deletes what stands below `offset` in a partition. */
static void delete_below(rd_kafka_t *rk, const struct scene *scene, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, scene->topic, partition)->offset = offset;
    rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteRecords(rk, &records, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    if (!event || rd_kafka_event_error(event))
        scene_die("records can't be deleted: %s", event ? rd_kafka_event_error_string(event) : "no answer");
    const rd_kafka_topic_partition_list_t *done =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    if (done->cnt != 1 || done->elems[0].err)
        scene_die("records can't be deleted: %s", rd_kafka_err2str(done->elems[0].err));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteRecords_destroy(records);
    rd_kafka_topic_partition_list_destroy(list);
}

/*
 * Seen: the log began above what was committed when the consumer came back. What had been deleted unread counted as
 * consumed before (RESUMED, which is no alarm), although nobody ever had it.
 */
Test(found, records_deleted_unread_are_an_alarm, .timeout = 60) {
    enum { RECORDS = 200, TAKEN = 102, LOST = 14 + 19 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    rd_kafka_t *rk = producer_open();
    struct watch watch;

    scene_open(&scene, "deleted");
    produce(rk, &scene, 1, RECORDS, 0, 100);
    watch_open(&watch, &scene, NULL, NULL);
    watch_subscribe(&watch, &scene);
    CHECK_U64(watch_take(&watch, TAKEN, 20), TAKEN);
    watch_close(&watch);

    /* 26 records each of these two are committed. */
    delete_below(rk, &scene, 1, 40);
    delete_below(rk, &scene, 2, 45);
    watch_open(&watch, &scene, NULL, NULL);
    watch_subscribe(&watch, &scene);
    watch_take(&watch, RECORDS - TAKEN - LOST, 20);
    watch_quiet(&watch);
    CHECK_U64(watch.messages, RECORDS - TAKEN - LOST);
    CHECK_U64(watch.states[UNSALT_STATE_RELEASED], RECORDS - TAKEN - LOST);
    CHECK_U64(watch.backwards, 0);
    CHECK_U64(watch.gap_numbers[UNSALT_GAP_TIMEOUT], LOST);
    CHECK_U64(watch.events[UNSALT_EVENT_RESUMED], 0);
    watch_close(&watch);
    rd_kafka_destroy(rk);
    scene_close(&scene);
}

/*
 * Seen: nothing was acknowledged, one partition was sought back. The session was remembered as read to its end, so what
 * was read again was late, and late=drop made it vanish: acknowledged by nobody, committed all the same.
 */
static void seek_back(const char *word, bool last, const char *ttl_ms) {
    enum { RECORDS = 8 };
    struct scene scene = {.layout = "hash", .partitions = PARTS, .lanes = PARTS};
    uint64_t first[PARTS];
    struct watch watch;

    scene_open(&scene, word);
    run_of(&scene, 1, RECORDS, last);
    unsalt_conf_t *unsalt = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(unsalt, "late", "drop");
    scene_unsalt_set(unsalt, "ack", "manual");
    scene_unsalt_set(unsalt, "session.ttl.ms", ttl_ms);
    scene_unsalt_set(unsalt, "revoke.timeout.ms", "0"); /* nobody will acknowledge */
    watch_open(&watch, &scene, NULL, unsalt);
    watch_subscribe(&watch, &scene);
    watch_take(&watch, RECORDS, 20);
    watch_quiet(&watch);
    expect_all(&watch, RECORDS);
    memcpy(first, watch.of, sizeof first);
    for (int32_t i = 0; i < PARTS; i++) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, scene.topic, i)->offset = 0;
        watch_again(&watch);
        CHECK_I64(unsalt_seek(watch.consumer, list, 5000), 0);
        rd_kafka_topic_partition_list_destroy(list);
        watch_take(&watch, first[i], 5);
        CHECK_THAT(watch.of[i] == first[i] && watch.states[UNSALT_STATE_RELEASED] == first[i],
                   "partition %d: %" PRIu64 " of %" PRIu64 " come again, %" PRIu64 " released", (int)i, watch.of[i],
                   first[i], watch.states[UNSALT_STATE_RELEASED]);
    }
    unsalt_stats_t stats = stats_of(&watch);
    CHECK_U64(stats.state[UNSALT_STATE_LATE], 0);
    CHECK_U64(stats.state[UNSALT_STATE_DUPLICATE], 0);
    CHECK_U64(stats.unacked, RECORDS);
    watch_close(&watch);
    CHECK_U64(watch.events[UNSALT_EVENT_OUTSTANDING], RECORDS);
    checker_log_t *log = checker_log_new();
    CHECK_U64(scene_log_committed(&scene, log).sum, 0);
    checker_log_free(log);
    scene_close(&scene);
}

Test(found, a_seek_back_into_a_session_that_has_ended, .timeout = 60) {
    seek_back("ended", true, "3600000");
}

Test(found, a_seek_back_into_a_session_that_has_expired, .timeout = 60) {
    seek_back("expired", false, "1");
}

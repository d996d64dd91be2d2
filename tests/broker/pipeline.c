/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline in a group: rebalances while work is under way, halted sessions across a restart, dead letters in their
 * topic, a topic without salt or numbers.
 */
#include <broker/fixture/sender.h>
#include <codec/murmur2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { SESSIONS = 12 };

static struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 2};
static struct pipework work; /* of all members: what they do together must be in order */
static checker_log_t *accepted;
static struct sender *sender;
static atomic_int events[UNSALT_EVENT__CNT];

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    atomic_fetch_add(&events[event->type], 1);
}

static unsalt_event_cb *listener = on_event;

static void begin(const char *word) {
    accepted = checker_log_new();
    pipework_init(&work);
    scene_open(&scene, word);
    sender = sender_open(&scene, SENDER_STAMPED, scene.lanes, accepted);
}

static void finish(void) {
    sender_close(sender);
    CHECK(pipework_clean(&work));
    pipework_free(&work);
    scene_close(&scene);
    checker_log_free(accepted);
}

/* settings: names and values in turn, NULL behind the last. */
static unsalt_pipeline_t *join(const char *const *settings, const unsalt_pipeline_callbacks_t *callbacks) {
    char errstr[512];
    unsalt_pipeline_callbacks_t mine = callbacks ? *callbacks : pipework_callbacks(&work);
    rd_kafka_conf_t *rk_conf = scene_consumer_conf(&scene);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_set(rk_conf, "session.timeout.ms", "40000"); /* who stands still for a while isn't thrown out */
    scene_set(rk_conf, "heartbeat.interval.ms", "200");
    scene_set(rk_conf, "auto.commit.interval.ms", "200");
    scene_set(rk_conf, "partition.assignment.strategy", "range");
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    scene_unsalt_set(conf, "pipeline.workers", "8");
    for (; settings && *settings; settings += 2)
        scene_unsalt_set(conf, settings[0], settings[1]);
    unsalt_conf_set_event_cb(conf, listener, NULL);
    unsalt_pipeline_t *p = unsalt_pipeline_new(rk_conf, conf, &mine, errstr, sizeof errstr);
    cr_assert(p, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(unsalt_pipeline_consumer(p), topics));
    rd_kafka_topic_partition_list_destroy(topics);
    return p;
}

static void leave(unsalt_pipeline_t *p) {
    unsalt_pipeline_stats_t stats;
    CHECK(!unsalt_pipeline_close(p));
    CHECK(!unsalt_pipeline_stats(p, &stats, sizeof stats));
    CHECK(stats.conserved);
    unsalt_pipeline_destroy(p);
}

static const char *name_of(int session) {
    static char name[16];
    snprintf(name, sizeof name, "s%d", session);
    return name;
}

static void send_range(uint64_t first, uint64_t last) {
    for (uint64_t seq = first; seq <= last; seq++)
        for (int s = 0; s < SESSIONS; s++)
            sender_send(sender, name_of(s), seq);
    sender_flush(sender);
}

static uint64_t partitions_of(const unsalt_pipeline_t *p) {
    unsalt_stats_t stats;
    unsalt_stats(unsalt_pipeline_consumer(p), &stats, sizeof stats);
    CHECK(stats.conserved);
    return stats.partitions;
}

static size_t distinct(void) {
    static bool seen[SESSIONS][4096];
    size_t count = 0;
    memset(seen, 0, sizeof seen);
    pthread_mutex_lock(&work.lock);
    for (size_t i = 0; i < work.delivered.count; i++) {
        bool *mine = &seen[atoi(work.delivered.records[i].session + 1)][work.delivered.records[i].seq];
        count += !*mine;
        *mine = true;
    }
    pthread_mutex_unlock(&work.lock);
    return count;
}

/* Polls all of them in turn until the condition holds. */
#define UNTIL(condition)                                                                                              \
    do {                                                                                                              \
        uint64_t until_ = now_ms() + PIPEWORK_PATIENCE_MS;                                                            \
        while (!(condition) && now_ms() < until_)                                                                     \
            poll_all();                                                                                               \
        cr_assert((condition), "%s:%d: not in time: %s", __FILE__, __LINE__, #condition);                             \
    } while (0)

static unsalt_pipeline_t *members[3];

static void poll_all(void) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i])
            pipework_poll(&work, members[i], 10);
}

static size_t prepared_sum(uint64_t seq) {
    size_t sum = 0;
    for (int s = 0; s < SESSIONS; s++)
        sum += pipework_prepared_times(&work, name_of(s), seq);
    return sum;
}

/* Phase 1 of every record from 2 to 10 has run so often, at all members together. */
static bool prepared_times(unsigned times) {
    bool all = true;
    for (int s = 0; s < SESSIONS; s++)
        for (uint64_t seq = 2; seq <= 10; seq++)
            all &= pipework_prepared_times(&work, name_of(s), seq) >= times;
    return all;
}

/*
 * Everything waits for number 1 and is prepared meanwhile. Then a second member comes: phase 1 runs again, for the same
 * (session, epoch, seq), wherever the sessions are now; phase 2 runs once.
 */
Test(pipeline, phase_1_runs_again_after_a_revoke, .timeout = 120) {
    begin("again");
    members[0] = join(NULL, NULL);
    send_range(2, 10);
    UNTIL(prepared_times(1));
    CHECK_U64(pipework_delivered(&work), 0);
    members[1] = join(NULL, NULL);
    UNTIL(partitions_of(members[0]) == 4 && partitions_of(members[1]) == 4);
    UNTIL(prepared_times(2)); /* more often, if the group came together in several steps */
    CHECK_U64(pipework_delivered(&work), 0);
    send_range(1, 1);
    UNTIL(pipework_delivered(&work) == 10 * SESSIONS);
    CHECK(pipework_in_order(&work, 1));
    CHECK_U64(prepared_sum(1), SESSIONS);
    leave(members[0]);
    leave(members[1]);
    finish();
}

/*
 * What one lane has committed ahead of the others doesn't come again to the next owner, which without `una` passes it
 * over when it is due: as RESUMED, since its partition was joined above it.
 */
#define RESUMES "gap.timeout.ms", "1000"

/* Members come and go while phase 1 and phase 2 are under way. */
static void come_and_go(const char *const *settings, int prepare_us, int deliver_us) {
    uint64_t sent = 0;
    begin("storm");
    work.prepare_us = prepare_us;
    work.deliver_us = deliver_us;
    members[0] = join(settings, NULL);
    for (int i = 1; i <= 6; i++, sent += 50) {
        send_range(sent + 1, sent + 50);
        UNTIL(distinct() >= (sent + 25) * SESSIONS);
        int j = i % 3; /* 1 comes, 2 comes, 0 goes, 1 goes, 0 comes, 2 goes */
        j = i == 5 ? 0 : i == 6 ? 2 : j;
        if (members[j]) {
            leave(members[j]);
            members[j] = NULL;
        } else {
            members[j] = join(settings, NULL);
        }
    }
    UNTIL(distinct() == sent * SESSIONS);
    CHECK(pipework_never_overtakes(&work));
    CHECK_I64(events[UNSALT_EVENT_GAP], 0);
    for (int j = 0; j < 3; j++)
        if (members[j])
            leave(members[j]);
    finish();
}

Test(pipeline, members_come_and_go, .timeout = 280) {
    static const char *const settings[] = {RESUMES, "pipeline.records", "200", NULL};
    come_and_go(settings, 3000, 0);
}

Test(pipeline, members_come_and_go_with_delivery_threads, .timeout = 280) {
    static const char *const settings[] = {RESUMES, "pipeline.delivery.threads", "4", "pipeline.records", "200", NULL};
    come_and_go(settings, 1000, 1000);
}

/* So short a limit that work under way is given up each time. */
Test(pipeline, members_come_and_go_with_an_impatient_revoke, .timeout = 280) {
    static const char *const settings[] = {RESUMES, "revoke.timeout.ms", "1", "pipeline.delivery.threads", "2",
                                           "pipeline.records", "100", NULL};
    come_and_go(settings, 20000, 2000);
}

/* ---- halted sessions */

static atomic_bool mended;

static unsalt_pipeline_res_t bad_five(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    bool bad = job->seq == 5 && job->session_len == 2 && memcmp(job->session, "s3", 2) == 0;
    return bad && !atomic_load(&mended) ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static size_t delivered_of(const char *session) {
    size_t n = 0;
    pthread_mutex_lock(&work.lock);
    for (size_t i = 0; i < work.delivered.count; i++)
        n += strcmp(work.delivered.records[i].session, session) == 0;
    pthread_mutex_unlock(&work.lock);
    return n;
}

/* A session stands, the others go on; it stands at the same record after a restart, and goes on from there. */
Test(pipeline, a_halted_session_across_a_restart, .timeout = 120) {
    static const char *const settings[] = {"pipeline.deliver.retries", "1", "pipeline.retry.backoff.ms", "1", NULL};
    begin("halt");
    work.deliver = bad_five;
    members[0] = join(settings, NULL);
    send_range(1, 40);
    UNTIL(pipework_delivered(&work) == 40 * (SESSIONS - 1) + 4 && events[UNSALT_EVENT_PIPELINE_HALTED] == 1);
    CHECK_U64(delivered_of("s3"), 4);
    leave(members[0]);
    members[0] = join(settings, NULL);
    UNTIL(events[UNSALT_EVENT_PIPELINE_HALTED] == 2);
    CHECK_U64(delivered_of("s3"), 4);
    atomic_store(&mended, true);
    bool resolved = false;
    for (int partition = 0; partition < scene.partitions; partition++) {
        char topic[96];
        for (int lane = 0; lane < scene.lanes; lane++)
            resolved |= !unsalt_pipeline_resolve(members[0], scene_topic(&scene, lane, topic, sizeof topic), partition,
                                                 "s3", 2, UNSALT_PIPELINE_TRY_AGAIN);
    }
    CHECK(resolved);
    UNTIL(delivered_of("s3") == 40);
    CHECK(pipework_never_overtakes(&work));
    leave(members[0]);
    finish();
}

/* ---- dead letters */

static unsalt_pipeline_res_t every_fourth(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    snprintf(job->errstr, job->errstr_size, "number %llu", (unsigned long long)job->seq);
    return job->seq % 4 == 0 ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

static unsigned number_of(const rd_kafka_headers_t *headers, const char *name) {
    const void *value;
    size_t size;
    char text[32];
    CHECK(!rd_kafka_header_get_last(headers, name, &value, &size));
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)value);
    return (unsigned)atoi(text);
}

/* Each session's dead letters stand in the partition that its id has, in order, none is missing. */
static void check_dead(const struct scene *dead, unsigned each) {
    char errstr[256];
    unsigned last[SESSIONS] = {0}, count = 0;
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, scene_consumer_conf(dead), errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *list = scene_partitions(dead);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(!rd_kafka_assign(rk, list));
    rd_kafka_topic_partition_list_destroy(list);
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; count < each * SESSIONS && now_ms() < until;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        rd_kafka_headers_t *headers;
        if (message && !message->err) {
            char session[16];
            CHECK(!rd_kafka_message_headers(message, &headers));
            snprintf(session, sizeof session, "%.*s", (int)message->key_len, (const char *)message->key);
            int s = atoi(session + 1);
            CHECK_I64(message->partition, us_murmur2_partition(message->key, message->key_len, dead->partitions));
            CHECK_U64(number_of(headers, UNSALT_DEAD_SEQ), last[s] + 4);
            CHECK(number_of(headers, UNSALT_DEAD_CURSOR) > last[s] + 4);
            last[s] += 4;
            count++;
        }
        if (message)
            rd_kafka_message_destroy(message);
    }
    CHECK_U64(count, each * SESSIONS);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

Test(pipeline, dead_letters_in_order, .timeout = 120) {
    struct scene dead = {.layout = "hash", .partitions = 3, .lanes = 1};
    const char *const settings[] = {"pipeline.prepare.failure", "dead-letter", "pipeline.dead.letter.topic",
                                    dead.topic, NULL};
    unsalt_pipeline_callbacks_t callbacks;
    begin("buried");
    scene_open(&dead, "dead");
    work.prepare = every_fourth;
    callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    members[0] = join(settings, &callbacks);
    send_range(1, 40);
    UNTIL(pipework_delivered(&work) == 30 * SESSIONS && events[UNSALT_EVENT_PIPELINE_BURIED] == 10 * SESSIONS);
    check_dead(&dead, 10);
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(members[0]), 0));
    leave(members[0]);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, 40 * SESSIONS);
    scene_close(&dead);
    finish();
}

static char not_buried[512]; /* of the newest event */

static void on_text(void *opaque, const unsalt_event_t *event) {
    on_event(opaque, event);
    if (event->type == UNSALT_EVENT_PIPELINE_NOT_BURIED)
        snprintf(not_buried, sizeof not_buried, "%s", event->text);
}

static unsalt_pipeline_callbacks_t without_a_callback(void) {
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    callbacks.dead_letter = NULL;
    return callbacks;
}

/*
 * The topic is deleted under a running pipeline: the session waits, the event says where the letter was to go and why
 * it didn't, nothing is lost, and a close ends it.
 */
Test(pipeline, a_dead_letter_whose_topic_has_gone, .timeout = 120) {
    struct scene dead = {.layout = "hash", .partitions = 1, .lanes = 1};
    const char *const settings[] = {"pipeline.prepare.failure", "dead-letter", "pipeline.dead.letter.topic", dead.topic,
                                    "pipeline.retry.backoff.ms", "10", "revoke.timeout.ms", "500", NULL};
    begin("unburied");
    scene_open(&dead, "dead");
    work.prepare = every_fourth;
    unsalt_pipeline_callbacks_t callbacks = without_a_callback();
    listener = on_text;
    members[0] = join(settings, &callbacks);
    scene_close(&dead);
    send_range(1, 8);
    UNTIL(pipework_delivered(&work) == 3 * SESSIONS && events[UNSALT_EVENT_PIPELINE_NOT_BURIED] >= 2);
    CHECK_THAT(strstr(not_buried, "its dead letter (prepare refused) could not be stored in topic ") &&
                   strstr(not_buried, dead.topic) && strstr(not_buried, "tried again: "), "%s", not_buried);
    leave(members[0]);
    CHECK_U64(pipework_delivered(&work), 3 * SESSIONS);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, 3 * SESSIONS);
    finish();
}

/* A topic that isn't there is said before anything is read; or it is made, if that is allowed. */
Test(pipeline, a_dead_letter_topic_that_is_not_there, .timeout = 120) {
    struct scene dead = {.layout = "hash", .partitions = 1, .lanes = 1};
    char errstr[512];
    begin("nowhere");
    scene_name(&dead, "made");
    const char *const settings[] = {"pipeline.prepare.failure", "dead-letter", "pipeline.dead.letter.topic", dead.topic,
                                    "pipeline.dead.letter.create", "true", NULL};
    unsalt_pipeline_callbacks_t callbacks = without_a_callback();
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    for (int i = 0; i < 4; i += 2)
        scene_unsalt_set(conf, settings[i], settings[i + 1]);
    unsalt_pipeline_t *p = unsalt_pipeline_new(scene_consumer_conf(&scene), conf, &callbacks, errstr, sizeof errstr);
    cr_assert(p, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_subscribe(unsalt_pipeline_consumer(p), topics), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rd_kafka_topic_partition_list_destroy(topics);
    leave(p);
    work.prepare = every_fourth;
    members[0] = join(settings, &callbacks);
    send_range(1, 8);
    UNTIL(pipework_delivered(&work) == 6 * SESSIONS && events[UNSALT_EVENT_PIPELINE_BURIED] == 2 * SESSIONS);
    CHECK_I64(events[UNSALT_EVENT_PIPELINE_NOT_BURIED], 0);
    leave(members[0]);
    scene_close(&dead);
    finish();
}

/* ---- a topic of somebody else's */

/* Neither salt nor numbers: phase 1 side by side, phase 2 in the order of each key. */
Test(pipeline, an_unsalted_topic, .timeout = 120) {
    static const char *const settings[] = {"lanes", "1", NULL};
    scene = (struct scene){.layout = "hash", .partitions = 3, .lanes = 1};
    begin("plain");
    work.prepare = pipework_meet;
    rd_kafka_conf_t *conf = scene_conf();
    char errstr[256];
    scene_set(conf, "partitioner", "murmur2");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    for (int i = 0; i < 900; i++) {
        const char *key = name_of(i % 9);
        CHECK(!rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scene.topic), RD_KAFKA_V_KEY(key, strlen(key)),
                                 RD_KAFKA_V_VALUE("plain", 5), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                 RD_KAFKA_V_END));
    }
    CHECK(!rd_kafka_flush(rk, PIPEWORK_PATIENCE_MS));
    rd_kafka_destroy(rk);
    members[0] = join(settings, NULL);
    UNTIL(pipework_delivered(&work) == 900);
    int64_t last[9];
    memset(last, -1, sizeof last);
    for (size_t i = 0; i < work.delivered.count; i++) {
        const struct pipework_record *record = &work.delivered.records[i];
        int s = atoi(record->session + 1);
        CHECK(record->offset > last[s]);
        last[s] = record->offset;
    }
    leave(members[0]);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, 900);
    finish();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline that loses partitions: a part of a lane set, by an incremental protocol; all of them, as it was thrown out
 * of its group. And one that keeps cursors, so that nothing it has committed comes again.
 */
#include <broker/fixture/sender.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>

enum { SESSIONS = 6 };

static struct scene scene;
static checker_log_t *accepted;
static struct sender *sender;

struct member {
    unsalt_pipeline_t *p; /* NULL: none */
    bool closed;          /* it is still there, and not to be polled */
    struct pipework work;
    atomic_int events[UNSALT_EVENT__CNT];
};
static struct member first, second;

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct member *member = opaque;
    atomic_fetch_add(&member->events[event->type], 1);
}

/* settings: of librdkafka and of the library, in turn with values, each list with NULL behind the last. */
static void join(struct member *member, const char *const *settings, const char *const *mine) {
    char errstr[512];
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&member->work);
    rd_kafka_conf_t *rk_conf = scene_consumer_conf(&scene);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_set(rk_conf, "heartbeat.interval.ms", "200");
    scene_set(rk_conf, "auto.commit.interval.ms", "100");
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    for (; *settings; settings += 2)
        scene_set(rk_conf, settings[0], settings[1]);
    for (; *mine; mine += 2)
        scene_unsalt_set(conf, mine[0], mine[1]);
    unsalt_conf_set_event_cb(conf, on_event, member);
    member->p = unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof errstr);
    cr_assert(member->p, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(unsalt_pipeline_consumer(member->p), topics));
    rd_kafka_topic_partition_list_destroy(topics);
}

static void leave(struct member *member) {
    unsalt_pipeline_stats_t stats;
    CHECK(!unsalt_pipeline_close(member->p));
    CHECK(!unsalt_pipeline_stats(member->p, &stats, sizeof stats));
    CHECK(stats.conserved);
    unsalt_pipeline_destroy(member->p);
    member->p = NULL;
}

static void begin(struct scene what, const char *word) {
    scene = what;
    accepted = checker_log_new();
    pipework_init(&first.work);
    pipework_init(&second.work);
    scene_open(&scene, word);
    sender = sender_open(&scene, SENDER_STAMPED, scene.lanes, accepted);
}

static void finish(void) {
    sender_close(sender);
    CHECK(pipework_clean(&first.work));
    CHECK(pipework_clean(&second.work));
    pipework_free(&first.work);
    pipework_free(&second.work);
    scene_close(&scene);
    checker_log_free(accepted);
}

static void send_range(uint64_t from, uint64_t to) {
    char name[16];
    for (uint64_t seq = from; seq <= to; seq++)
        for (int s = 0; s < SESSIONS; s++) {
            snprintf(name, sizeof name, "s%d", s);
            sender_send(sender, name, seq);
        }
    sender_flush(sender);
}

static unsalt_pipeline_stats_t stats_of(const struct member *member) {
    unsalt_pipeline_stats_t stats;
    CHECK(!unsalt_pipeline_stats(member->p, &stats, sizeof stats));
    CHECK(stats.conserved);
    return stats;
}

static uint64_t partitions_of(const struct member *member) {
    unsalt_stats_t stats;
    unsalt_stats(unsalt_pipeline_consumer(member->p), &stats, sizeof stats);
    CHECK(stats.conserved);
    return stats.partitions;
}

static rd_kafka_t *stranger; /* a member that is no pipeline; NULL: none */

static void poll_all(void) {
    if (first.p && !first.closed)
        pipework_poll(&first.work, first.p, 10);
    if (second.p)
        pipework_poll(&second.work, second.p, 10);
    if (stranger) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(stranger, 10);
        if (message)
            rd_kafka_message_destroy(message);
    }
}

#define UNTIL(condition)                                                                                              \
    do {                                                                                                              \
        uint64_t until_ = now_ms() + PIPEWORK_PATIENCE_MS;                                                            \
        while (!(condition) && now_ms() < until_)                                                                     \
            poll_all();                                                                                               \
        cr_assert((condition), "%s:%d: not in time: %s", __FILE__, __LINE__, #condition);                             \
    } while (0)

/* ---- a part of a lane set */

static atomic_bool flows;

static bool does_flow(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&flows);
}

static unsalt_pipeline_res_t ten_at_first(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (job->seq > 10)
        pipework_hold(w, job, does_flow);
    return UNSALT_PIPELINE_OK;
}

/* A plain consumer of the same topics, which commits nothing. */
static void stranger_joins(void) {
    char errstr[256], topic[96];
    rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
    scene_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "session.timeout.ms", "40000");
    scene_set(conf, "heartbeat.interval.ms", "200");
    stranger = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    cr_assert(stranger, "%s", errstr);
    rd_kafka_poll_set_consumer(stranger);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(scene.lanes);
    for (int lane = 0; lane < scene.lanes; lane++)
        rd_kafka_topic_partition_list_add(topics, scene_topic(&scene, lane, topic, sizeof topic),
                                          RD_KAFKA_PARTITION_UA);
    CHECK(!rd_kafka_subscribe(stranger, topics));
    rd_kafka_topic_partition_list_destroy(topics);
}

static int assigned_to_stranger(void) {
    rd_kafka_topic_partition_list_t *list = NULL;
    CHECK(!rd_kafka_assignment(stranger, &list));
    int count = list->cnt;
    rd_kafka_topic_partition_list_destroy(list);
    return count;
}

/*
 * Two lanes, a partition each, and one of them goes, in the middle of deliveries that take longer than a revoke waits.
 * What was released of it is delivered all the same, since its sessions' other numbers stay and would overtake it; no
 * commit of this member covers it.
 */
Test(pipeline_group, a_part_of_a_lane_set_goes, .timeout = 250) {
    static const char *const settings[] = {"partition.assignment.strategy", "cooperative-sticky",
                                           "session.timeout.ms", "40000", NULL};
    static const char *const mine[] = {"pipeline.workers", "4", "pipeline.delivery.threads", "6", /* SESSIONS */
                                       "revoke.timeout.ms", "100", "colocation", "report", NULL};
    begin((struct scene){.layout = "topics", .partitions = 1, .lanes = 2}, "orphans");
    first.work.deliver = ten_at_first;
    join(&first, settings, mine);
    send_range(1, 40);
    UNTIL(pipework_delivered(&first.work) == 10 * SESSIONS && first.work.done == 10 * SESSIONS &&
          stats_of(&first).entered == 40 * SESSIONS && stats_of(&first).waiting_turn == 0);
    CHECK_U64(partitions_of(&first), 2);
    stranger_joins();
    UNTIL(partitions_of(&first) == 1 && assigned_to_stranger() == 1);
    CHECK(first.events[UNSALT_EVENT_OUTSTANDING] > 0);
    CHECK_U64(pipework_delivered(&first.work), 10 * SESSIONS);
    atomic_store(&flows, true);
    UNTIL(pipework_delivered(&first.work) == 40 * SESSIONS);
    CHECK(pipework_in_order(&first.work, 1));
    CHECK(first.events[UNSALT_EVENT_COLOCATION] > 0);
    CHECK_I64(first.events[UNSALT_EVENT_GAP], 0);
    leave(&first);
    CHECK(!rd_kafka_consumer_close(stranger));
    rd_kafka_destroy(stranger);
    stranger = NULL;
    /* All of the lane that stayed, ten of each session in the other one. */
    CHECK_U64(scene_log_committed(&scene, accepted).sum, (20 + 5) * SESSIONS);
    finish();
}

/* ---- thrown out */

enum { EACH = 400, INTERVAL_MS = 3000, THREADS = 2 };

static _Atomic uint64_t closed_at; /* ms; 0: not yet known */
static atomic_uint late;           /* calls of deliver that began then or later */

static unsalt_pipeline_res_t note_late(struct pipework *w, const unsalt_pipeline_job_t *job) {
    uint64_t closed = atomic_load(&closed_at);
    atomic_fetch_add(&late, closed > 0 && now_ms() > closed);
    pipework_hold(w, job, does_flow);
    sleep_ms(10);
    return UNSALT_PIPELINE_OK;
}

/*
 * It doesn't poll, so the group gives its partitions to another member. From the end of max.poll.interval.ms on it
 * starts no delivery, but for one call of each thread that had looked at the clock before. When it polls again it comes
 * back.
 */
Test(pipeline_group, thrown_out_it_delivers_nothing, .timeout = 250) {
    static const char *const settings[] = {"partition.assignment.strategy", "range", "session.timeout.ms", "3000",
                                           "max.poll.interval.ms", "3000", NULL};
    static const char *const others[] = {"partition.assignment.strategy", "range", "session.timeout.ms", "40000",
                                         NULL};
    static const char *const mine[] = {"pipeline.workers", "4", "pipeline.delivery.threads", "2",
                                       "revoke.timeout.ms", "500", NULL};
    begin((struct scene){.layout = "topics", .partitions = 2, .lanes = 2}, "hangs");
    first.work.deliver = note_late;
    join(&first, settings, mine);
    send_range(1, EACH);
    UNTIL(stats_of(&first).entered >= EACH * SESSIONS && stats_of(&first).waiting_turn == 0 &&
          pipework_prepared(&first.work) >= EACH * SESSIONS);
    pipework_poll(&first.work, first.p, 0);
    atomic_store(&closed_at, now_ms() + INTERVAL_MS); /* at the latest */
    atomic_store(&flows, true);
    join(&second, others, mine);
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; now_ms() < until && partitions_of(&second) < 4;)
        pipework_poll(&second.work, second.p, 20);
    CHECK_U64(partitions_of(&second), 4);
    CHECK(pipework_until(&second.work, second.p, 100));
    while (now_ms() < atomic_load(&closed_at) + 500)
        pipework_poll(&second.work, second.p, 20);
    CHECK_THAT(pipework_delivered(&first.work) < EACH * SESSIONS - 100, "nothing is left that could come too late");
    CHECK_THAT(atomic_load(&late) <= THREADS, "%u calls began after max.poll.interval.ms", atomic_load(&late));
    size_t before = pipework_delivered(&first.work);
    pipework_poll(&first.work, first.p, 0); /* hears that it is nobody any more */
    CHECK(pipework_delivered(&first.work) <= before + THREADS);
    CHECK(pipework_in_order(&first.work, 1));
    atomic_store(&closed_at, 0);
    UNTIL(partitions_of(&first) == 2 && partitions_of(&second) == 2);
    leave(&first);
    UNTIL(partitions_of(&second) == 4);
    leave(&second);
    finish();
}

/* ---- cursors */

static bool flows_or_is_over(struct pipework *w, const unsalt_pipeline_job_t *job) {
    return does_flow(w, job) || !unsalt_pipeline_wanted(job);
}

static unsalt_pipeline_res_t odd_sessions_wait(struct pipework *w, const unsalt_pipeline_job_t *job) {
    bool odd = job->session_len == 2 && ((const char *)job->session)[1] % 2;
    if (odd && job->seq > 10)
        pipework_hold(w, job, flows_or_is_over);
    return UNSALT_PIPELINE_OK;
}

static size_t delivered_somewhere(void) {
    static bool seen[SESSIONS][64];
    struct member *members[] = {&first, &second};
    size_t count = 0;
    memset(seen, 0, sizeof seen);
    for (int m = 0; m < 2; m++) {
        struct pipework *work = &members[m]->work;
        pthread_mutex_lock(&work->lock);
        for (size_t i = 0; i < work->delivered.count; i++) {
            bool *mine = &seen[work->delivered.records[i].session[1] - '0'][work->delivered.records[i].seq];
            count += !*mine;
            *mine = true;
        }
        pthread_mutex_unlock(&work->lock);
    }
    return count;
}

/*
 * Half of the sessions get stuck at number 11, the others go on, far ahead of the committed offsets. With a checkpoint
 * a commit covers them as well: after a restart nothing of what it covered is delivered again.
 */
Test(pipeline_group, with_a_checkpoint_nothing_committed_comes_again, .timeout = 250) {
    static const char *const settings[] = {"partition.assignment.strategy", "range", "session.timeout.ms", "40000",
                                           "enable.auto.commit", "false", NULL};
    static const char *const mine[] = {"checkpoint", "topic", "checkpoint.timeout.ms", "60000", "pipeline.workers", "4",
                                       "pipeline.delivery.threads", "4", "revoke.timeout.ms", "100", NULL};
    const uint64_t done = 10 * (SESSIONS / 2) + 40 * (SESSIONS / 2), all = 40 * SESSIONS;
    begin((struct scene){.layout = "topics", .partitions = 2, .lanes = 2}, "cursors");
    first.work.deliver = odd_sessions_wait;
    join(&first, settings, mine);
    send_range(1, 40);
    UNTIL(pipework_delivered(&first.work) == done && first.work.done == done);
    CHECK(!unsalt_commit(unsalt_pipeline_consumer(first.p), 0));
    struct scene_committed committed = scene_log_committed(&scene, accepted);
    CHECK_THAT(committed.sum < done, "the offsets alone cover %" PRIu64 " of %" PRIu64, committed.sum, done);
    leave(&first); /* what a thread is in the middle of ends too late, and comes again */
    atomic_store(&flows, true);
    join(&second, settings, mine);
    UNTIL(delivered_somewhere() == all);
    CHECK(second.events[UNSALT_EVENT_CHECKPOINT_LOADED] > 0);
    leave(&second);
    for (size_t i = 0; i < second.work.delivered.count; i++) {
        const struct pipework_record *record = &second.work.delivered.records[i];
        CHECK_THAT((record->session[1] - '0') % 2 && record->seq > 10, "%s %" PRIu64 " comes again", record->session,
                   record->seq);
    }
    CHECK(pipework_in_order(&first.work, 1));
    finish();
}

/* ---- in the middle of everything */

static bool is_of(const unsalt_pipeline_job_t *job, char session) {
    return job->session_len == 2 && ((const char *)job->session)[1] == session;
}

static unsalt_pipeline_res_t first_hangs(struct pipework *w, const unsalt_pipeline_job_t *job) {
    if (is_of(job, '0') && job->seq == 5)
        pipework_hold(w, job, does_flow);
    return UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t retries_and_halts(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    if (is_of(job, '1') && job->seq == 7)
        return UNSALT_PIPELINE_RETRY;
    return is_of(job, '2') && job->seq == 9 ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

/*
 * One session's phase 1 hangs and doesn't look whether anybody waits, one is to be tried again in a minute, one is
 * halted. A member that comes gets its share all the same, the first one can close, and everything is delivered.
 */
Test(pipeline_group, a_revoke_in_the_middle_of_everything, .timeout = 250) {
    static const char *const settings[] = {"partition.assignment.strategy", "range", "session.timeout.ms", "40000",
                                           NULL};
    static const char *const mine[] = {"pipeline.workers", "3", "revoke.timeout.ms", "300", "gap.timeout.ms", "1000",
                                       "pipeline.retry.backoff.ms", "60000", "pipeline.retry.backoff.max.ms", "60000",
                                       NULL};
    enum { LAST = 20 };
    begin((struct scene){.layout = "topics", .partitions = 2, .lanes = 2}, "middle");
    first.work.prepare = first_hangs;
    first.work.deliver = retries_and_halts;
    join(&first, settings, mine);
    send_range(1, LAST);
    UNTIL(pipework_delivered(&first.work) == 4 + 6 + 8 + 3 * LAST && stats_of(&first).sessions_halted == 1 &&
          stats_of(&first).state[UNSALT_PIPELINE_IN_REDELIVERING] == 1 &&
          stats_of(&first).state[UNSALT_PIPELINE_IN_RUNNING] == 1);
    join(&second, settings, mine);
    UNTIL(partitions_of(&first) == 2 && partitions_of(&second) == 2);
    CHECK(!unsalt_pipeline_close(first.p));
    first.closed = true;
    CHECK_U64(stats_of(&first).sessions_halted, 0);
    UNTIL(partitions_of(&second) == 4 && delivered_somewhere() == LAST * SESSIONS);
    CHECK(pipework_in_order(&first.work, 1));
    atomic_store(&flows, true);
    leave(&first);
    leave(&second);
    finish();
}

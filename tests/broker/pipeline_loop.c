/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline in an application's own event loop: poll(2) on a descriptor with the library's deadline, every call of
 * unsalt_pipeline_poll() with timeout 0, `deliver` on the thread of the loop. Nothing else tells it when to look.
 */
#include <broker/fixture/sender.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <support/pipework.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SESSIONS = 5, EACH = 120, ALL = SESSIONS * EACH, SWEEP_MS = 1000 };

static struct scene scene = {.layout = "topics", .partitions = 3, .lanes = 3};
static struct pipework work;
static struct sender *sender;
static checker_log_t *accepted;
static pthread_t loop_thread;
static atomic_uint elsewhere; /* deliveries on another thread than the loop's */
static atomic_int halts;

struct loop {
    unsalt_pipeline_t *p;
    int fd;
    unsigned turns, wakes;
};

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    halts += event->type == UNSALT_EVENT_PIPELINE_HALTED;
}

static void open_loop(struct loop *loop, const char *word, const char *const *settings) {
    char errstr[512];
    uint64_t one = 1;
    accepted = checker_log_new();
    pipework_init(&work);
    scene_open(&scene, word);
    sender = sender_open(&scene, SENDER_STAMPED, scene.lanes, accepted);
    unsalt_pipeline_callbacks_t callbacks = pipework_callbacks(&work);
    rd_kafka_conf_t *rk_conf = scene_consumer_conf(&scene);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_set(rk_conf, "heartbeat.interval.ms", "500");
    scene_set(rk_conf, "session.timeout.ms", "40000");
    scene_set(rk_conf, "auto.commit.interval.ms", "200");
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    for (; settings && *settings; settings += 2)
        scene_unsalt_set(conf, settings[0], settings[1]);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    loop->p = unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof errstr);
    cr_assert(loop->p, "%s", errstr);
    unsalt_t *u = unsalt_pipeline_consumer(loop->p);
    loop->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(loop->fd >= 0);
    CHECK(!unsalt_io_event_enable(u, loop->fd, &one, sizeof one));
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, topics));
    rd_kafka_topic_partition_list_destroy(topics);
    loop_thread = pthread_self();
}

static void close_loop(struct loop *loop) {
    CHECK(!unsalt_pipeline_close(loop->p));
    pipework_stats(loop->p);
    unsalt_pipeline_destroy(loop->p);
    close(loop->fd);
    CHECK_U64(atomic_load(&elsewhere), 0);
    CHECK(pipework_clean(&work));
    pipework_free(&work);
    sender_close(sender);
    CHECK_U64(scene_log_committed(&scene, accepted).sum, ALL);
    scene_close(&scene);
    checker_log_free(accepted);
}

static bool is_readable(struct loop *loop, int ms) {
    struct pollfd fd = {.fd = loop->fd, .events = POLLIN};
    uint64_t count;
    if (poll(&fd, 1, ms) <= 0)
        return false;
    CHECK_I64(read(loop->fd, &count, sizeof count), sizeof count);
    return true;
}

static void turn(struct loop *loop) {
    int ms = unsalt_poll_deadline_ms(unsalt_pipeline_consumer(loop->p));
    CHECK_THAT(ms >= 0 && ms <= SWEEP_MS, "a deadline of %d ms", ms);
    loop->wakes += is_readable(loop, ms);
    loop->turns++;
    pipework_poll(&work, loop->p, 0);
}

/* Turns until the condition holds. */
#define TURN_UNTIL(loop, condition)                                                                                   \
    do {                                                                                                              \
        uint64_t until_ = now_ms() + PIPEWORK_PATIENCE_MS;                                                            \
        while (!(condition) && now_ms() < until_)                                                                     \
            turn(loop);                                                                                               \
        cr_assert((condition), "%s:%d: not in time: %s", __FILE__, __LINE__, #condition);                             \
    } while (0)

static void send_range(uint64_t first, uint64_t last) {
    char name[16];
    for (uint64_t seq = first; seq <= last; seq++)
        for (int s = 0; s < SESSIONS; s++) {
            snprintf(name, sizeof name, "s%d", s);
            sender_send(sender, name, seq);
        }
    sender_flush(sender);
}

static unsalt_pipeline_res_t deliver_once(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    atomic_fetch_add(&elsewhere, !pthread_equal(pthread_self(), loop_thread));
    return UNSALT_PIPELINE_OK;
}

/* Some are put off: no wake-up tells when their time has come, but the deadline. */
static unsalt_pipeline_res_t deliver_here(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    atomic_fetch_add(&elsewhere, !pthread_equal(pthread_self(), loop_thread));
    return job->seq % 13 == 0 && job->attempt < 3 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t retried(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq % 11 == 0 && job->attempt < 3 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

/*
 * Everything waits for number 1 at first, then comes, with retries in both phases; all of it is delivered by the loop,
 * in order, and committed. Then the loop rests: a deadline that is over at once, again and again, would be a spin.
 */
Test(pipeline_loop, everything_in_order, .timeout = 200) {
    static const char *const settings[] = {"pipeline.workers", "3", "pipeline.retry.backoff.ms", "5", NULL};
    struct loop loop = {0};
    open_loop(&loop, "loop", settings);
    work.prepare = retried;
    work.deliver = deliver_here;
    send_range(2, EACH);
    TURN_UNTIL(&loop, pipework_prepared(&work) == (EACH - 1) * SESSIONS);
    CHECK_U64(pipework_delivered(&work), 0);
    send_range(1, 1);
    TURN_UNTIL(&loop, work.done == ALL);
    CHECK_U64(pipework_delivered(&work), ALL);
    CHECK(pipework_in_order(&work, 1));
    CHECK(loop.wakes > 0);
    unsigned before = loop.turns;
    for (uint64_t until = now_ms() + 2000; now_ms() < until;)
        turn(&loop);
    CHECK_THAT(loop.turns - before < 400, "%u turns in two seconds of rest", loop.turns - before);
    close_loop(&loop);
}

static atomic_bool open_gate;

static bool is_open(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    (void)job;
    return atomic_load(&open_gate);
}

static unsalt_pipeline_res_t wait_for_gate(struct pipework *w, const unsalt_pipeline_job_t *job) {
    pipework_hold(w, job, is_open);
    return UNSALT_PIPELINE_OK;
}

/*
 * Phase 1 ends while the loop sleeps: the descriptor tells it, though no record comes and no deadline is over. The
 * deadlines are not looked at here.
 */
Test(pipeline_loop, results_of_phase_1_wake_it, .timeout = 200) {
    static const char *const settings[] = {"pipeline.workers", "2", NULL};
    struct loop loop = {0};
    open_loop(&loop, "woken", settings);
    work.prepare = wait_for_gate;
    work.deliver = deliver_once;
    send_range(1, EACH);
    TURN_UNTIL(&loop, pipework_stats(loop.p).entered == ALL && pipework_stats(loop.p).waiting_turn == 0);
    for (int i = 0; i < 10; i++) { /* whatever else was under way has arrived */
        is_readable(&loop, 50);
        pipework_poll(&work, loop.p, 0);
    }
    CHECK_U64(pipework_delivered(&work), 0);
    atomic_store(&open_gate, true);
    for (uint64_t until = now_ms() + PIPEWORK_PATIENCE_MS; pipework_delivered(&work) < ALL && now_ms() < until;) {
        if (is_readable(&loop, PIPEWORK_PATIENCE_MS))
            do {
                pipework_poll(&work, loop.p, 0);
            } while (unsalt_poll_deadline_ms(unsalt_pipeline_consumer(loop.p)) == 0);
    }
    CHECK_U64(pipework_delivered(&work), ALL);
    CHECK(pipework_in_order(&work, 1));
    TURN_UNTIL(&loop, work.done == ALL);
    close_loop(&loop);
}

/* A session stands; another thread resolves it, which wakes the loop. */
static atomic_bool mended;

static unsalt_pipeline_res_t bad_seven(struct pipework *w, const unsalt_pipeline_job_t *job) {
    (void)w;
    return job->seq == 7 && !atomic_load(&mended) ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

static void on_halted(void *opaque, const unsalt_pipeline_halt_t *halt) {
    CHECK(!unsalt_pipeline_resolve(opaque, halt->topic, halt->partition, halt->session, halt->session_len,
                                   UNSALT_PIPELINE_TRY_AGAIN));
}

static void *resolve_all(void *opaque) {
    CHECK_I64(unsalt_pipeline_halted(opaque, on_halted, opaque), SESSIONS);
    return NULL;
}

Test(pipeline_loop, sessions_that_another_thread_resolves, .timeout = 200) {
    struct loop loop = {0};
    pthread_t thread;
    open_loop(&loop, "resolved", NULL);
    work.deliver = bad_seven;
    send_range(1, EACH);
    TURN_UNTIL(&loop, atomic_load(&halts) == SESSIONS && pipework_stats(loop.p).entered == ALL);
    CHECK_U64(pipework_delivered(&work), 6 * SESSIONS);
    atomic_store(&mended, true);
    CHECK(!pthread_create(&thread, NULL, resolve_all, loop.p));
    TURN_UNTIL(&loop, work.done == ALL);
    CHECK(!pthread_join(thread, NULL));
    CHECK(pipework_in_order(&work, 1));
    close_loop(&loop);
}

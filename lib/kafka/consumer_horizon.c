/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking leaders for the ends of their logs, off the reading thread, through a handle with read_uncommitted: a horizon
 * needs the high watermark, not the last stable offset. All open questions go out together, one request per leader
 * (rd_kafka_offsets_for_times() with the protocol's logical time -1); if that fails as a whole, one by one, so that a
 * dead leader doesn't hide the others; a partition that failed is asked by itself until it answers. Where one fails,
 * the others of its leader are put off, so a turn is short whatever a dead leader has.
 */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <kafka/handle_end.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>

#define TOGETHER_MS 1000
#define SINGLE_MS 500
#define LEADERS_MS 500
#define SINGLE_FAILURES 2 /* single questions that may fail in one turn: others wait for their answers */
#define BACKOFF_FIRST (100 * US_MS)
#define BACKOFF_MAX (2000 * US_MS)
#define COMPLAIN_EVERY (10000 * US_MS)
#define CAPACITY_STEP 64

/* ---- the helper's handle */

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
    /* The application hears of broker errors from its own handle. */
    (void)rk;
    (void)err;
    (void)reason;
    (void)opaque;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char ignored[256];
    rd_kafka_conf_set(conf, name, value, ignored, sizeof(ignored));
}

/* Makes a quiet handle without a group out of the application's configuration. */
static void strip(struct unsalt *u, rd_kafka_conf_t *conf) {
    rd_kafka_mock_cluster_t *mock = rd_kafka_handle_mock_cluster(u->rk);
    set(conf, "isolation.level", "read_uncommitted");
    set(conf, "group.protocol", "classic");
    set(conf, "group.id", NULL);
    set(conf, "group.instance.id", NULL);
    /* The one must not be below the other, which has another default here than with the protocol `consumer`. */
    set(conf, "max.poll.interval.ms", "300000");
    set(conf, "session.timeout.ms", "45000");
    set(conf, "enable.auto.commit", "false");
    set(conf, "statistics.interval.ms", "0");
    set(conf, "test.mock.num.brokers", "0");
    if (mock) {
        set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock));
    }
    rd_kafka_conf_set_rebalance_cb(conf, NULL);
    rd_kafka_conf_set_offset_commit_cb(conf, NULL);
    rd_kafka_conf_set_stats_cb(conf, NULL);
    rd_kafka_conf_set_throttle_cb(conf, NULL);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, NULL);
}

static rd_kafka_t *make_handle(struct unsalt *u) {
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(u->asker.conf);
    strip(u, conf);
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
    if (!handle) {
        rd_kafka_conf_destroy(conf);
        us_log(u, 3, "no handle for horizons: %s", errstr);
    }
    return handle;
}

/* ---- the helper's thread */

/* Not by rd_kafka_query_watermark_offsets(): with a leader that is known and dead it waits past its time. */
static void ask_single(rd_kafka_t *handle, struct us_question *q) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *answer = rd_kafka_topic_partition_list_add(list, q->topic, q->partition);
    answer->offset = RD_KAFKA_OFFSET_END;
    q->err = rd_kafka_offsets_for_times(handle, list, SINGLE_MS);
    q->err = q->err ? q->err : answer->err;
    q->end = q->err || answer->offset < 0 ? -1 : answer->offset;
    rd_kafka_topic_partition_list_destroy(list);
}

static bool ask_together(rd_kafka_t *handle, struct us_question *questions, uint32_t n) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!questions[i].single) {
            rd_kafka_topic_partition_list_add(list, questions[i].topic, questions[i].partition)->offset =
                RD_KAFKA_OFFSET_END;
        }
    }
    bool done = list->cnt > 0 && !rd_kafka_offsets_for_times(handle, list, TOGETHER_MS);
    for (uint32_t i = 0; done && i < n; i++) {
        struct us_question *q = &questions[i];
        const rd_kafka_topic_partition_t *answer = rd_kafka_topic_partition_list_find(list, q->topic, q->partition);
        if (answer && !answer->err && answer->offset >= 0) {
            q->end = answer->offset;
        }
    }
    rd_kafka_topic_partition_list_destroy(list);
    return done;
}

/* Takes what was asked. False: the thread should end. */
static bool wait_for_questions(struct us_asker *asker, struct us_question *mine, uint32_t max, uint32_t *n) {
    pthread_mutex_lock(&asker->lock);
    while (!asker->stop && asker->asked_count == 0) {
        pthread_cond_wait(&asker->wake, &asker->lock);
    }
    *n = asker->asked_count < max ? asker->asked_count : max;
    memcpy(mine, asker->asked, *n * sizeof(*mine));
    asker->asked_count -= *n;
    memmove(asker->asked, asker->asked + *n, asker->asked_count * sizeof(*mine));
    bool go_on = !asker->stop;
    pthread_mutex_unlock(&asker->lock);
    return go_on;
}

/* There is room: whatever is under way fits into `answered`. */
static bool answer(struct unsalt *u, const struct us_question *questions, uint32_t n) {
    struct us_asker *asker = &u->asker;
    pthread_mutex_lock(&asker->lock);
    memcpy(asker->answered + asker->answered_count, questions, n * sizeof(*questions));
    asker->answered_count += n;
    bool go_on = !asker->stop;
    pthread_mutex_unlock(&asker->lock);
    us_signal(u);
    return go_on;
}

static int32_t leader_in(const struct rd_kafka_metadata *metadata, const struct us_question *q) {
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        for (int k = 0; strcmp(topic->topic, q->topic) == 0 && k < topic->partition_cnt; k++) {
            if (topic->partitions[k].id == q->partition) {
                return topic->partitions[k].leader;
            }
        }
    }
    return -1;
}

/* Asked of the application's handle, which knows the topics. */
static void find_leaders(struct unsalt *u, struct us_question *questions, uint32_t n) {
    const struct rd_kafka_metadata *metadata;
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        questions[i].leader = -1;
        open += questions[i].end < 0;
    }
    if (open < 2 || rd_kafka_metadata(u->rk, 0, NULL, &metadata, LEADERS_MS)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        questions[i].leader = leader_in(metadata, &questions[i]);
    }
    rd_kafka_metadata_destroy(metadata);
}

/* Whether a question must be put off, given the leaders of those that failed in this turn. */
static bool is_put_off(const struct us_question *q, const int32_t *failed, uint32_t failures) {
    for (uint32_t i = 0; i < failures; i++) {
        if (failed[i] >= 0 && failed[i] == q->leader) {
            return true;
        }
    }
    return failures == SINGLE_FAILURES;
}

/*
 * What is open one by one, and all answers. Those that are put off come again soon, without the ones that failed, whose
 * pauses grow: so neither does one bad partition hide the others of its leader.
 */
static void ask_singly(struct unsalt *u, struct us_question *questions, uint32_t n) {
    bool go_on = true;
    uint32_t told = 0, failures = 0;
    int32_t failed[SINGLE_FAILURES];
    find_leaders(u, questions, n);
    for (uint32_t i = 0; i < n && go_on; i++) {
        struct us_question *q = &questions[i];
        if (q->end >= 0 || !u->asker.handle) {
            continue;
        }
        if (is_put_off(q, failed, failures)) {
            q->passed = true;
            continue;
        }
        go_on = answer(u, questions + told, i - told); /* the others needn't wait for this one */
        told = i;
        ask_single(u->asker.handle, q);
        if (q->end < 0) {
            failed[failures++] = q->leader;
        }
    }
    answer(u, questions + told, n - told);
}

static void *asker_main(void *opaque) {
    struct unsalt *u = opaque;
    struct us_question mine[CAPACITY_STEP];
    uint32_t n;
    while (wait_for_questions(&u->asker, mine, CAPACITY_STEP, &n)) {
        if (!u->asker.handle) {
            u->asker.handle = make_handle(u);
        }
        for (uint32_t i = 0; i < n; i++) {
            mine[i].end = -1;
            mine[i].err = RD_KAFKA_RESP_ERR__TIMED_OUT;
        }
        if (u->asker.handle) {
            rd_kafka_poll(u->asker.handle, 0); /* token refreshes */
            ask_together(u->asker.handle, mine, n);
        }
        ask_singly(u, mine, n);
    }
    return NULL;
}

/* ---- life */

bool us_asker_init(struct us_asker *asker) {
    asker->capacity = 0;
    return pthread_mutex_init(&asker->lock, NULL) == 0 && pthread_cond_init(&asker->wake, NULL) == 0;
}

void us_asker_stop(struct unsalt *u) {
    struct us_asker *asker = &u->asker;
    if (asker->started) {
        pthread_mutex_lock(&asker->lock);
        asker->stop = true;
        pthread_cond_signal(&asker->wake);
        pthread_mutex_unlock(&asker->lock);
        pthread_join(asker->thread, NULL);
        asker->started = false;
    }
    us_handle_told(u, us_handle_end(asker->handle, US_HANDLE_END_MS), "asks for the ends of logs");
    asker->handle = NULL;
}

void us_asker_destroy(struct us_asker *asker) {
    if (asker->conf) {
        rd_kafka_conf_destroy(asker->conf);
    }
    us_free(&us_mem_default, asker->asked);
    us_free(&us_mem_default, asker->answered);
    pthread_cond_destroy(&asker->wake);
    pthread_mutex_destroy(&asker->lock);
}

/* ---- the polling thread's side */

/* Room for all that is under way, in each array. The lock is held. */
static bool grow(struct us_asker *asker, uint32_t wanted) {
    if (wanted <= asker->capacity) {
        return true;
    }
    struct us_question *asked = us_realloc_array(&us_mem_default, asker->asked, wanted, sizeof(*asked));
    if (!asked) {
        return false;
    }
    asker->asked = asked;
    struct us_question *answered = us_realloc_array(&us_mem_default, asker->answered, wanted, sizeof(*answered));
    if (!answered) {
        return false;
    }
    asker->answered = answered;
    asker->capacity = wanted;
    return true;
}

static bool start(struct unsalt *u) {
    struct us_asker *asker = &u->asker;
    if (!asker->started) {
        asker->started = pthread_create(&asker->thread, NULL, asker_main, u) == 0;
    }
    return asker->started;
}

/* The failure reaches the core after a pause that doubles, since the core asks again at once. */
static void ask_later(struct unsalt *u, struct us_partition *p, uint64_t now) {
    uint64_t pause = BACKOFF_FIRST << (p->question_failures < 5 ? p->question_failures : 5);
    p->answer_at = now + (pause < BACKOFF_MAX ? pause : BACKOFF_MAX);
    p->question_single = true;
    u->own.question_failures++;
}

static void failed(struct unsalt *u, struct us_partition *p, rd_kafka_resp_err_t err, uint64_t now) {
    ask_later(u, p, now);
    p->question_failures++;
    if (now >= p->complain_at) {
        char text[512];
        unsalt_event_t event;
        us_event_init(&event, UNSALT_EVENT_HORIZON_FAILED);
        snprintf(text, sizeof(text), "horizon_failed: %s [%d] gave no end of its log, %u times in a row: %s", p->topic,
                 (int)p->partition, p->question_failures, rd_kafka_err2str(err));
        event.topic = p->topic;
        event.partition = p->partition;
        event.count = p->question_failures;
        event.text = text;
        us_event_raise(u, &event);
        p->complain_at = now + COMPLAIN_EVERY;
    }
}

/* Asks for partitions; returns how many questions went out: all or none. */
static uint32_t ask(struct unsalt *u, const uint32_t *parts, uint32_t n) {
    struct us_asker *asker = &u->asker;
    uint32_t done = 0;
    if (!start(u)) {
        return 0;
    }
    pthread_mutex_lock(&asker->lock);
    if (grow(asker, asker->under_way + n)) {
        for (; done < n; done++) {
            const struct us_partition *p = us_partition_of(u, parts[done]);
            asker->asked[asker->asked_count++] = (struct us_question){
                .topic = p->topic, .partition = p->partition, .part = p->part, .generation = p->generation,
                .single = p->question_single};
        }
        asker->under_way += n;
        pthread_cond_signal(&asker->wake);
    }
    pthread_mutex_unlock(&asker->lock);
    return done;
}

/* Keeps those that are open here; one that could not be closed in the core for want of memory has no answer. */
static uint32_t open_ones(struct unsalt *u, uint32_t *parts, uint32_t n, uint64_t now) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (us_partition_of(u, parts[i])) {
            parts[kept++] = parts[i];
        } else {
            unsalt_core_answer(u->core, parts[i], unsalt_core_generation(u->core, parts[i]), -1, now);
        }
    }
    return kept;
}

void us_questions(struct unsalt *u, uint64_t now) {
    uint32_t parts[CAPACITY_STEP];
    uint32_t n;
    do {
        n = (uint32_t)unsalt_core_questions(u->core, now, parts, CAPACITY_STEP);
        n = open_ones(u, parts, n, now);
        uint32_t asked = n > 0 ? ask(u, parts, n) : 0;
        for (uint32_t i = asked; i < n; i++) {
            failed(u, us_partition_of(u, parts[i]), RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, now);
        }
    } while (n == CAPACITY_STEP);
}

/* Copies up to max answers. */
static uint32_t take_answers(struct us_asker *asker, struct us_question *answers, uint32_t max) {
    pthread_mutex_lock(&asker->lock);
    uint32_t n = asker->answered_count < max ? asker->answered_count : max;
    asker->answered_count -= n;
    asker->under_way -= n;
    memcpy(answers, asker->answered + asker->answered_count, n * sizeof(*answers));
    pthread_mutex_unlock(&asker->lock);
    return n;
}

void us_answers(struct unsalt *u, uint64_t now) {
    struct us_question answers[CAPACITY_STEP];
    uint32_t n = 0;
    do {
        n = u->asker.started ? take_answers(&u->asker, answers, CAPACITY_STEP) : 0;
        for (uint32_t i = 0; i < n; i++) {
            const struct us_question *q = &answers[i];
            struct us_partition *p = us_partition_of(u, q->part);
            if (!p || p->generation != q->generation) {
                continue;
            }
            if (q->passed) {
                ask_later(u, p, now);
                continue;
            }
            if (q->end < 0) {
                failed(u, p, q->err, now);
                continue;
            }
            p->question_failures = 0;
            p->question_single = false;
            unsalt_core_answer(u->core, q->part, q->generation, q->end, now);
        }
    } while (n == CAPACITY_STEP);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->answer_at <= now) {
            p->answer_at = UNSALT_NEVER;
            unsalt_core_answer(u->core, p->part, p->generation, -1, now);
        }
    }
}

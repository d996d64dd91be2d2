/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <support/alarm.h>
#include <support/mockcluster.h>
#include <time.h>

/* Ends the test. Not by Criterion, since programs without it use this file too. */
static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

#define NEED(condition, ...)                                                                                          \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fail(__VA_ARGS__);                                                                                        \
        }                                                                                                             \
    } while (0)

uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(int ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- the cluster */

void mock_rd_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    NEED(rd_kafka_conf_set(conf, name, value, errstr, sizeof(errstr)) == RD_KAFKA_CONF_OK, "%s=%s: %s", name,
               value, errstr);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    NEED(!message->err, "not delivered: %s", rd_kafka_err2str(message->err));
}

void mock_open(struct mock *mock, int brokers) {
    alarm_arm();
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "bootstrap.servers", "");
    mock_rd_set(conf, "linger.ms", "2");
    mock_rd_set(conf, "log_level", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    mock->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
    NEED(mock->producer, "no producer: %s", errstr);
    mock->cluster = rd_kafka_mock_cluster_new(mock->producer, brokers);
    NEED(mock->cluster, "no cluster");
    mock->bootstraps = rd_kafka_mock_cluster_bootstraps(mock->cluster);
    NEED(rd_kafka_brokers_add(mock->producer, mock->bootstraps) > 0, "no brokers");
}

void mock_topic(struct mock *mock, const char *topic, int partitions) {
    NEED(!rd_kafka_mock_topic_create(mock->cluster, topic, partitions, 1), "topic %s is not created", topic);
}

void mock_close(struct mock *mock) {
    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->producer);
}

void mock_write(struct mock *mock, const char *topic, int32_t partition, const char *key, const void *payload,
                size_t len, const char *header, const void *value, size_t size) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
    if (header) {
        rd_kafka_header_add(headers, header, -1, value, (ssize_t)size);
    }
    rd_kafka_resp_err_t err =
        rd_kafka_producev(mock->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_KEY(key, key ? strlen(key) : 0), RD_KAFKA_V_VALUE((void *)payload, len),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    NEED(!err, "not produced: %s", rd_kafka_err2str(err));
    rd_kafka_poll(mock->producer, 0);
}

void mock_send_header(struct mock *mock, const char *topic, int32_t partition, const char *session,
                      const unsalt_header_t *header) {
    unsigned char bytes[UNSALT_HEADER_SIZE];
    NEED(unsalt_header_write(header, bytes) == UNSALT_HEADER_OK, "a header that no reader would take");
    mock_write(mock, topic, partition, session, "payload", 7, UNSALT_HEADER_NAME, bytes, sizeof(bytes));
}

void mock_send(struct mock *mock, const char *topic, int32_t partition, const char *session, uint64_t seq,
               uint16_t lanes) {
    unsalt_header_t header = {.lane = (uint16_t)(seq % lanes), .lanes = lanes, .epoch = 1, .seq = seq, .since = 1,
                              .una = 1};
    mock_send_header(mock, topic, partition, session, &header);
}

void mock_flush(struct mock *mock) {
    rd_kafka_resp_err_t err = rd_kafka_flush(mock->producer, 10000);
    NEED(!err, "not flushed: %s", rd_kafka_err2str(err));
}

/* ---- recorders */

void heard_init(struct heard *heard) {
    memset(heard, 0, sizeof(*heard));
    pthread_mutex_init(&heard->lock, NULL);
}

uint64_t heard_count(struct heard *heard, unsalt_event_type_t type) {
    pthread_mutex_lock(&heard->lock);
    uint64_t count = heard->count[type];
    pthread_mutex_unlock(&heard->lock);
    return count;
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct heard *heard = opaque;
    pthread_mutex_lock(&heard->lock);
    heard->count[event->type]++;
    snprintf(heard->text[event->type], sizeof(heard->text[0]), "%s", event->text);
    heard->reason[event->type] = event->reason;
    heard->first[event->type] = event->first;
    heard->last[event->type] = event->last;
    heard->offset[event->type] = event->offset;
    pthread_mutex_unlock(&heard->lock);
}

static void on_log(void *opaque, int level, const char *fac, const char *line) {
    struct heard *heard = opaque;
    (void)level;
    (void)fac;
    (void)line;
    pthread_mutex_lock(&heard->lock);
    heard->lines++;
    pthread_mutex_unlock(&heard->lock);
}

/* ---- consumers */

rd_kafka_conf_t *mock_rd_conf(const struct mock *mock, const char *group) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "bootstrap.servers", mock->bootstraps);
    mock_rd_set(conf, "group.id", group);
    mock_rd_set(conf, "fetch.wait.max.ms", "10");
    mock_rd_set(conf, "fetch.error.backoff.ms", "50");
    mock_rd_set(conf, "enable.auto.commit", "false");
    mock_rd_set(conf, "session.timeout.ms", "6000");
    mock_rd_set(conf, "heartbeat.interval.ms", "500");
    mock_rd_set(conf, "log_level", "0");
    return conf;
}

unsalt_conf_t *mock_conf(const char *settings, struct heard *heard) {
    char copy[1024], errstr[256], *rest = NULL;
    unsalt_conf_t *conf = unsalt_conf_new();
    NEED(conf, "out of memory");
    snprintf(copy, sizeof(copy), "%s", settings);
    for (char *setting = strtok_r(copy, " ", &rest); setting; setting = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(setting, '=');
        NEED(value, "%s has no value", setting);
        *value++ = 0;
        NEED(unsalt_conf_set(conf, setting, value, errstr, sizeof(errstr)) == UNSALT_CONF_OK, "%s", errstr);
    }
    if (heard) {
        unsalt_conf_set_event_cb(conf, on_event, heard);
        unsalt_conf_set_log_cb(conf, on_log, heard);
    }
    return conf;
}

unsalt_t *mock_consumer_of(rd_kafka_conf_t *rd_conf, unsalt_conf_t *conf) {
    char errstr[256] = "";
    unsalt_t *u = unsalt_new(rd_conf, conf, errstr, sizeof(errstr));
    NEED(u, "no consumer: %s", errstr);
    return u;
}

unsalt_t *mock_consumer(const struct mock *mock, const char *group, const char *settings, struct heard *heard) {
    return mock_consumer_of(mock_rd_conf(mock, group), mock_conf(settings, heard));
}

rd_kafka_resp_err_t mock_assign(unsalt_t *u, const char *topic, int n, int64_t offset) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
    for (int i = 0; i < n; i++) {
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = offset;
    }
    rd_kafka_resp_err_t err = unsalt_assign(u, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

/* The clock of the library never goes back, so neither may the time that it tells the core. */
void mock_done(unsalt_t *u) {
    unsalt_stats_t stats;
    unsalt_consumer_close(u);
    NEED(!unsalt_stats(u, &stats, sizeof(stats)) && stats.clock_regressions == 0, "the clock went back %" PRIu64
         " times", stats.clock_regressions);
    unsalt_destroy(u);
}

int64_t mock_committed(const struct mock *mock, const char *group, const char *topic, int32_t partition) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, mock_rd_conf(mock, group), errstr, sizeof(errstr));
    NEED(rk, "no handle: %s", errstr);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition);
    rd_kafka_resp_err_t err = rd_kafka_committed(rk, list, 10000);
    NEED(!err, "no answer: %s", rd_kafka_err2str(err));
    int64_t offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return offset;
}

/* ---- takings */

void takings_free(struct takings *takings) {
    free(takings->got);
    memset(takings, 0, sizeof(*takings));
}

void take_message(const unsalt_t *u, struct takings *takings, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof(info)};
    if (takings->count == takings->capacity) {
        takings->capacity = takings->capacity ? 2 * takings->capacity : 256;
        takings->got = realloc(takings->got, takings->capacity * sizeof(*takings->got));
        NEED(takings->got, "out of memory");
    }
    struct got *got = &takings->got[takings->count++];
    memset(got, 0, sizeof(*got));
    got->offset = message->offset;
    got->partition = message->partition;
    got->err = message->err;
    if (message->err) {
        return;
    }
    NEED(unsalt_message_info(u, message, &info) == 0, "nothing is known of a message that was handed out");
    size_t len = info.session_len < sizeof(got->session) - 1 ? info.session_len : sizeof(got->session) - 1;
    if (info.session) {
        memcpy(got->session, info.session, len);
    }
    got->seq = info.seq;
    got->epoch = info.epoch;
    got->lane = info.lane;
    got->state = info.state;
    got->waited_ns = info.waited_ns;
    got->after_gap = info.after_gap;
    got->token = info.token;
}

bool take(unsalt_t *u, struct takings *takings, size_t want, int timeout_ms) {
    uint64_t until = now_ms() + (uint64_t)timeout_ms;
    while (takings->count < want && now_ms() < until) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 100);
        NEED(!unsalt_last_error(), "poll: %s", rd_kafka_err2str(unsalt_last_error()));
        if (message) {
            take_message(u, takings, message);
            rd_kafka_message_destroy(message);
        }
    }
    return takings->count >= want;
}

void take_nothing(unsalt_t *u, int ms) {
    uint64_t until = now_ms() + (uint64_t)ms;
    while (now_ms() < until) {
        rd_kafka_message_t *message = unsalt_consumer_poll(u, 20);
        NEED(!message, "a message came: %s [%d] offset %lld, %s", rd_kafka_topic_name(message->rkt),
                   (int)message->partition, (long long)message->offset, rd_kafka_err2str(message->err));
    }
}

/* The number that comes next of a session; kept by a linear search, since tests have few sessions. */
struct next {
    char session[64];
    uint64_t seq;
};

static struct next *next_of(struct next *sessions, size_t *n, const char *session, uint64_t first) {
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(sessions[i].session, session) == 0) {
            return &sessions[i];
        }
    }
    NEED(*n < 1024, "too many sessions");
    struct next *next = &sessions[(*n)++];
    snprintf(next->session, sizeof(next->session), "%s", session);
    next->seq = first;
    return next;
}

size_t check_order(const struct takings *takings, uint64_t first) {
    static struct next sessions[1024];
    size_t n = 0, released = 0;
    for (size_t i = 0; i < takings->count; i++) {
        const struct got *got = &takings->got[i];
        if (got->err || got->state != UNSALT_STATE_RELEASED) {
            continue;
        }
        struct next *next = next_of(sessions, &n, got->session, first);
        NEED(got->seq == next->seq, "message %zu: session %s has %" PRIu64 " where %" PRIu64 " is due", i,
                   got->session, got->seq, next->seq);
        next->seq++;
        released++;
    }
    return released;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * That the topic of checkpoints is there, or that of dead letters. Whether it is, is asked before and after it is made,
 * until every partition has a leader: a broker answers a creation before all of them know of it.
 */
#include <inttypes.h>
#include <kafka/checkpoint_topic.h>
#include <kafka/clock.h>
#include <kafka/handle_end.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ASK_MS 1000
#define PAUSE_MS 50

/* What is being asked for, and where the answer goes. */
struct quest {
    rd_kafka_t *rk;
    const struct us_checkpoint_topic *topic;
    uint64_t until; /* us_clock_ms() */
    char *errstr;
    size_t errstr_size;
};

static rd_kafka_resp_err_t say(const struct quest *q, rd_kafka_resp_err_t err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(q->errstr, q->errstr_size, format, args);
    va_end(args);
    return err;
}

static const char *use_of(const struct quest *q) {
    return q->topic->letters ? "dead letters" : "checkpoints";
}

/* 0: it is there, led, and right; UNKNOWN_TOPIC_OR_PART: it isn't there; __INVALID_ARG: wrong; else: ask again. */
static rd_kafka_resp_err_t judge(const struct quest *q, const struct rd_kafka_metadata_topic *found) {
    const char *name = q->topic->name, *use = use_of(q);
    if (found->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        return say(q, found->err, "topic %s for %s isn't there, and may not be created", name, use);
    }
    if (found->err && found->partition_cnt == 0) {
        return say(q, found->err, "topic %s for %s: %s", name, use, rd_kafka_err2str(found->err));
    }
    if (!q->topic->letters && found->partition_cnt != q->topic->partitions) {
        return say(q, RD_KAFKA_RESP_ERR__INVALID_ARG,
                   "topic %s for checkpoints has %d partitions and needs %" PRId32 ", one for each lane set", name,
                   found->partition_cnt, q->topic->partitions);
    }
    for (int i = 0; i < found->partition_cnt; i++) {
        if (found->partitions[i].leader < 0) {
            return say(q, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
                       "topic %s for %s: partition %d has no leader", name, use, (int)found->partitions[i].id);
        }
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t look(const struct quest *q) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(q->rk, q->topic->name, NULL);
    if (!rkt) {
        return say(q, RD_KAFKA_RESP_ERR__INVALID_ARG, "topic %s for %s: no such name", q->topic->name, use_of(q));
    }
    rd_kafka_resp_err_t err = rd_kafka_metadata(q->rk, 0, rkt, &metadata, us_clock_rest_ms(q->until, ASK_MS));
    if (err) {
        say(q, err, "topic %s for %s: %s", q->topic->name, use_of(q), rd_kafka_err2str(err));
    } else {
        err = metadata->topic_cnt == 1 ? judge(q, &metadata->topics[0]) : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_topic_destroy(rkt);
    return err;
}

static rd_kafka_NewTopic_t *describe(const struct quest *q) {
    rd_kafka_NewTopic_t *new_topic = rd_kafka_NewTopic_new(q->topic->name, q->topic->partitions, q->topic->replication,
                                                           q->errstr, q->errstr_size);
    char retention[32];
    if (!new_topic || q->topic->letters) {
        return new_topic; /* how long letters are kept is the operator's business */
    }
    snprintf(retention, sizeof(retention), "%" PRId64, q->topic->retention_ms);
    rd_kafka_NewTopic_set_config(new_topic, "cleanup.policy", "compact,delete");
    rd_kafka_NewTopic_set_config(new_topic, "retention.ms", retention);
    /* Of the broker's clock: a member whose clock is wrong must not see its entries go at once. */
    rd_kafka_NewTopic_set_config(new_topic, "message.timestamp.type", "LogAppendTime");
    rd_kafka_NewTopic_set_config(new_topic, "segment.ms", "3600000");
    rd_kafka_NewTopic_set_config(new_topic, "segment.bytes", "67108864");
    rd_kafka_NewTopic_set_config(new_topic, "min.cleanable.dirty.ratio", "0.3");
    return new_topic;
}

/* The answer to the creation; that another member was first is a success. */
static rd_kafka_resp_err_t made(const struct quest *q, rd_kafka_event_t *event) {
    size_t n = 0;
    rd_kafka_resp_err_t err = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    const char *why = event && err ? rd_kafka_event_error_string(event) : rd_kafka_err2str(err);
    const rd_kafka_topic_result_t **results =
        event && !err ? rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n) : NULL;
    if (n == 1) {
        err = rd_kafka_topic_result_error(results[0]);
        why = rd_kafka_topic_result_error_string(results[0]);
    }
    if (err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
        err = RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    return err ? say(q, err, "topic %s for %s can't be created: %s", q->topic->name, use_of(q),
                     why ? why : rd_kafka_err2str(err))
               : err;
}

static rd_kafka_resp_err_t make(const struct quest *q) {
    rd_kafka_NewTopic_t *new_topic = describe(q);
    if (!new_topic) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(q->rk);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(q->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    char ignored[128];
    int wait = us_clock_rest_ms(q->until, 60000);
    rd_kafka_AdminOptions_set_request_timeout(options, wait, ignored, sizeof(ignored));
    rd_kafka_CreateTopics(q->rk, &new_topic, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, wait + 100);
    rd_kafka_resp_err_t err = made(q, event);
    if (event) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(new_topic);
    return err;
}

/* What asking again may mend; the others are the broker's word. */
static bool is_passing(rd_kafka_resp_err_t err) {
    switch (err) {
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_CONTROLLER:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
        return true;
    default:
        return false;
    }
}

static rd_kafka_resp_err_t seek(const struct quest *q) {
    bool asked = false; /* the broker has said that it is made: not all of them may know it yet */
    for (;;) {
        rd_kafka_resp_err_t err = look(q);
        bool absent = err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        if (absent && q->topic->create && !asked) {
            err = make(q);
            asked = !err;
        }
        if (!err && !absent) {
            return asked || q->topic->letters
                         ? say(q, err, "%s", "")
                         : us_checkpoint_topic_policy(q->rk, q->topic->name, us_clock_rest_ms(q->until, 60000),
                                                      q->errstr, q->errstr_size);
        }
        if (err && !is_passing(err) && !(absent && asked)) {
            return err;
        }
        if (us_clock_ms() >= q->until) {
            return absent ? say(q, RD_KAFKA_RESP_ERR__TIMED_OUT, "topic %s for %s isn't known everywhere yet",
                                q->topic->name, use_of(q))
                          : RD_KAFKA_RESP_ERR__TIMED_OUT;
        }
        if (!absent || asked) {
            struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
            nanosleep(&pause, NULL);
        }
    }
}

rd_kafka_resp_err_t us_checkpoint_topic_ensure(const struct us_checkpoint_client *client,
                                               const struct us_checkpoint_topic *topic, int timeout_ms, char *errstr,
                                               size_t errstr_size) {
    struct quest q = {.rk = us_checkpoint_client_new(client, US_CHECKPOINT_ADMIN, errstr, errstr_size),
                      .topic = topic, .until = us_clock_ms() + (uint64_t)timeout_ms, .errstr = errstr,
                      .errstr_size = errstr_size};
    if (!q.rk) {
        return RD_KAFKA_RESP_ERR__FAIL;
    }
    rd_kafka_resp_err_t err = seek(&q);
    us_handle_end(q.rk, US_HANDLE_END_MS);
    return err;
}

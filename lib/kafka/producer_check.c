/* SPDX-License-Identifier: BSD-2-Clause */
/* Does the cluster have a topic, or all lane topics of it, with N partitions at least? */
#include <kafka/clock.h>
#include <kafka/producer.h>
#include <time.h>

/* A topic that was made a moment ago may not be known everywhere yet. */
#define PATIENCE_MS 1000
#define STEP_MS 100
#define LOG_ERROR 3 /* as syslog(3) */
#define LOG_WARNING 4

/* What the cluster says of a topic. */
struct found {
    rd_kafka_resp_err_t err;
    int partitions;
};

static struct found ask_once(struct unsalt_producer *p, rd_kafka_topic_t *topic, int timeout_ms) {
    const struct rd_kafka_metadata *metadata = NULL;
    struct found found = {.err = rd_kafka_metadata(p->rk, 0, topic, &metadata, timeout_ms)};
    if (found.err)
        return found;
    if (metadata->topic_cnt == 1) {
        found.err = metadata->topics[0].err;
        found.partitions = metadata->topics[0].partition_cnt;
    } else {
        found.err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    }
    rd_kafka_metadata_destroy(metadata);
    return found;
}

static bool may_change_soon(rd_kafka_resp_err_t err) {
    return err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

/* Asks until there is an answer that will stand, or the time is over. */
static struct found ask(struct unsalt_producer *p, const char *name, uint64_t deadline_ms) {
    const struct timespec step = {0, STEP_MS * 1000000};
    rd_kafka_topic_t *topic = rd_kafka_topic_new(p->rk, name, NULL);
    struct found found = {.err = RD_KAFKA_RESP_ERR__TIMED_OUT};
    if (!topic)
        return (struct found){.err = rd_kafka_last_error()};
    uint64_t patience_ms = us_clock_ms() + PATIENCE_MS;
    for (;;) {
        uint64_t now = us_clock_ms();
        found = ask_once(p, topic, (int)(deadline_ms > now ? deadline_ms - now : 1));
        now = us_clock_ms() + STEP_MS;
        if (!may_change_soon(found.err) || now >= patience_ms || now >= deadline_ms)
            break;
        nanosleep(&step, NULL);
    }
    rd_kafka_topic_destroy(topic);
    return found;
}

static rd_kafka_resp_err_t judge(struct unsalt_producer *p, const char *name, const struct found *found) {
    int wanted = (int)p->conf->partitions;
    if (may_change_soon(found->err)) {
        us_producer_log(p, LOG_ERROR, "topic %s doesn't exist (%s): %d partitions are wanted", name,
                        rd_kafka_err2name(found->err), wanted);
        return RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    }
    if (found->err) {
        us_producer_log(p, LOG_ERROR, "topic %s, of which %d partitions are wanted, can't be checked: %s", name, wanted,
                        rd_kafka_err2str(found->err));
        return found->err;
    }
    if (found->partitions > wanted) { /* N is pinned: a topic that has grown moves no session */
        us_producer_log(p, LOG_WARNING, "topic %s has %d partitions, configured are %d: only these are used", name,
                        found->partitions, wanted);
    }
    if (found->partitions < wanted) {
        us_producer_log(p, LOG_ERROR, "topic %s has %d partitions: %d are wanted (partitions)", name, found->partitions,
                        wanted);
        return RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t us_topic_check(void *opaque, const char *base) {
    struct unsalt_producer *p = opaque;
    uint64_t deadline_ms = us_clock_ms() + (uint64_t)p->conf->producer_check_ms;
    uint16_t count = p->conf->layout == US_LAYOUT_TOPICS ? p->lane_topics.topics.count : 1;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (uint16_t lane = 0; lane < count && !err; lane++) {
        char name[US_TOPIC_MAX + 1];
        const char *topic = us_record_lane_topic(p, base, lane, name);
        const struct found found = ask(p, topic, deadline_ms);
        err = judge(p, topic, &found);
    }
    return err;
}

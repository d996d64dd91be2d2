/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/consumer.h>
#include <stdlib.h>
#include <string.h>

static bool get(const rd_kafka_conf_t *conf, const char *name, char *value, size_t size) {
    value[0] = 0;
    return rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK;
}

static int64_t get_number(const rd_kafka_conf_t *conf, const char *name, int64_t otherwise) {
    char text[32];
    return get(conf, name, text, sizeof(text)) && text[0] ? strtoll(text, NULL, 10) : otherwise;
}

/* librdkafka gives pointers as text (%p): the only way to learn what callback is set. */
static void *get_pointer(const rd_kafka_conf_t *conf, const char *name) {
    char text[32];
    void *pointer = NULL;
    if (get(conf, name, text, sizeof(text)) && sscanf(text, "%p", &pointer) != 1) {
        pointer = NULL;
    }
    return pointer;
}

static void get_callbacks(const rd_kafka_conf_t *conf, struct us_before *before) {
    void *rebalance = get_pointer(conf, "rebalance_cb");
    void *commit = get_pointer(conf, "offset_commit_cb");
    void *log = get_pointer(conf, "log_cb");
    /* POSIX promises that a function pointer survives this; ISO C has no cast for it. */
    memcpy(&before->rebalance_cb, &rebalance, sizeof(rebalance));
    memcpy(&before->commit_cb, &commit, sizeof(commit));
    memcpy(&before->log_cb, &log, sizeof(log));
    before->opaque = get_pointer(conf, "opaque");
}

static void read_before(const rd_kafka_conf_t *conf, struct us_before *before) {
    char id[8];
    memset(before, 0, sizeof(*before));
    get(conf, "enable.partition.eof", before->eof, sizeof(before->eof));
    get(conf, "enable.auto.offset.store", before->store, sizeof(before->store));
    get(conf, "enable.auto.commit", before->commit, sizeof(before->commit));
    /* Known only if the application has set a property of topics: then the value counts as its own. */
    before->reset_set = get(conf, "auto.offset.reset", before->reset, sizeof(before->reset));
    before->eof_wanted = strcmp(before->eof, "true") == 0;
    before->commit_wanted = strcmp(before->commit, "true") == 0;
    before->fixed = get(conf, "group.instance.id", id, sizeof(id)) && id[0];
    before->commit_interval_ms = get_number(conf, "auto.commit.interval.ms", 5000);
    before->fetch_max = get_number(conf, "fetch.message.max.bytes", 1048576);
    before->max_poll_ms = get_number(conf, "max.poll.interval.ms", 300000);
    before->metadata_ms = get_number(conf, "topic.metadata.refresh.interval.ms", 300000);
    before->log_level = (int)get_number(conf, "log_level", 6);
    get_callbacks(conf, before);
}

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr, size_t size) {
    return rd_kafka_conf_set(conf, name, value, errstr, size) == RD_KAFKA_CONF_OK;
}

/* What is forced on auto.offset.reset; NULL: it stays as it is. */
static const char *forced_reset(enum us_reset reset, const struct us_before *before) {
    if (reset == US_RESET_AUTO) {
        return before->reset_set ? NULL : "earliest";
    }
    return reset == US_RESET_LATEST ? "latest" : "earliest";
}

bool us_conf_force(const struct unsalt *u, rd_kafka_conf_t *rk_conf, struct us_before *before, char *errstr,
                   size_t size) {
    char group[8];
    read_before(rk_conf, before);
    const char *forced = forced_reset((enum us_reset)u->conf->offset_reset, before);
    if (get_pointer(rk_conf, "consume_cb")) {
        snprintf(errstr, size, "consume_cb is set: it would take messages past unsalt; use unsalt_consume_callback()");
        return false;
    }
    get(rk_conf, "group.id", group, sizeof(group));
    if (!group[0]) {
        snprintf(errstr, size, "group.id is not set: it is needed for polling and for commits");
        return false;
    }
    if (!us_group_conf(u, rk_conf, before, errstr, size)) {
        return false;
    }
    rd_kafka_conf_set_rebalance_cb(rk_conf, us_rebalance_cb);
    rd_kafka_conf_set_offset_commit_cb(rk_conf, us_commit_cb);
    if (!set(rk_conf, "enable.partition.eof", "true", errstr, size) ||
        !set(rk_conf, "enable.auto.offset.store", "false", errstr, size) ||
        !set(rk_conf, "enable.auto.commit", "false", errstr, size) ||
        (forced && !set(rk_conf, "auto.offset.reset", forced, errstr, size))) {
        us_conf_restore(rk_conf, before);
        return false;
    }
    snprintf(before->reset_now, sizeof(before->reset_now), "%s", forced ? forced : before->reset);
    return true;
}

void us_conf_restore(rd_kafka_conf_t *rk_conf, const struct us_before *before) {
    char ignored[256];
    rd_kafka_conf_set_rebalance_cb(rk_conf, before->rebalance_cb);
    rd_kafka_conf_set_offset_commit_cb(rk_conf, before->commit_cb);
    us_group_conf_restore(rk_conf, before);
    set(rk_conf, "enable.partition.eof", before->eof, ignored, sizeof(ignored));
    set(rk_conf, "enable.auto.offset.store", before->store, ignored, sizeof(ignored));
    set(rk_conf, "enable.auto.commit", before->commit, ignored, sizeof(ignored));
    if (before->reset_set) {
        set(rk_conf, "auto.offset.reset", before->reset, ignored, sizeof(ignored));
    } else {
        /* There were no topic-level properties; a value put back would look like the application's at a retry. */
        rd_kafka_conf_set_default_topic_conf(rk_conf, NULL);
    }
}

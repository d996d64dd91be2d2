/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The assignor. Lane sets of several partitions stay together among any members only with `range`: the classic one, and
 * the server's of group.protocol=consumer. On Kafka 4.3.1, 4 lane topics of 7 partitions and 2 members: with
 * `roundrobin`, `cooperative-sticky` and the server's `uniform` (its default) lane sets are cut, with `range` never.
 * Where a set is one partition (lanes=1) every assignor will do; so it does in layout `hash`, where it takes all
 * partitions of the topic, which no assignor gives to one of several members: there, the choice is left alone.
 */
#include <kafka/consumer.h>
#include <string.h>

#define STRATEGY "partition.assignment.strategy"
#define STRATEGY_DEFAULT "range,roundrobin" /* of librdkafka, up to 2.16 at least */
#define REMOTE "group.remote.assignor"

static void get(const rd_kafka_conf_t *conf, const char *name, char *value, size_t size) {
    value[0] = 0;
    if (rd_kafka_conf_get(conf, name, value, &size) != RD_KAFKA_CONF_OK) {
        value[0] = 0; /* this version has no such property */
    }
}

/* Whether a set has several partitions, which only some assignors keep together. */
static bool matters(const struct unsalt *u) {
    return u->conf->layout != US_LAYOUT_HASH && u->lanes.topics.count > 1;
}

static bool is_new_protocol(const struct us_before *before) {
    return strcmp(before->protocol, "consumer") == 0;
}

/* What is used when the application didn't choose; NULL: its choice stands. */
static const char *choice(const struct us_before *before) {
    if (is_new_protocol(before)) {
        return before->assignor[0] ? NULL : "range";
    }
    return strcmp(before->assignor, STRATEGY_DEFAULT) == 0 ? "range" : NULL;
}

static bool is_listed(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ",")) {
        p += strspn(p, ", ");
        if (strncmp(p, word, len) == 0 && (p[len] == 0 || p[len] == ',' || p[len] == ' ')) {
            return true;
        }
    }
    return false;
}

/* Writes why the application's assignor won't do. A server may have assignors of its own: those may be right. */
static bool is_wrong(const struct us_before *before, const char *layout, char *text, size_t size) {
    const char *key = is_new_protocol(before) ? REMOTE : STRATEGY;
    if (choice(before) || strcmp(before->assignor, "range") == 0) {
        return false;
    }
    if (is_new_protocol(before) && strcmp(before->assignor, "uniform") != 0) {
        return false;
    }
    snprintf(text, size, "%s=%s can't keep the lanes of layout=%s together among the members of a group: allowed is "
                         "range, the default here", key, before->assignor, layout);
    return true;
}

bool us_group_conf(const struct unsalt *u, rd_kafka_conf_t *rk_conf, struct us_before *before, char *errstr,
                   size_t size) {
    char why[400];
    const char *layout = u->conf->layout == US_LAYOUT_BLOCK ? "block" : "topics";
    get(rk_conf, "group.protocol", before->protocol, sizeof(before->protocol));
    get(rk_conf, is_new_protocol(before) ? REMOTE : STRATEGY, before->assignor, sizeof(before->assignor));
    before->assignor_now = NULL;
    if (!matters(u)) {
        return true;
    }
    if (is_wrong(before, layout, why, sizeof(why)) && u->conf->colocation == US_COLOCATION_REFUSE) {
        snprintf(errstr, size, "%s; colocation=report runs on without the guarantee of order", why);
        return false;
    }
    before->assignor_now = choice(before);
    return !before->assignor_now ||
           rd_kafka_conf_set(rk_conf, is_new_protocol(before) ? REMOTE : STRATEGY, before->assignor_now, errstr,
                             size) == RD_KAFKA_CONF_OK;
}

void us_group_conf_restore(rd_kafka_conf_t *rk_conf, const struct us_before *before) {
    char ignored[256];
    if (before->assignor_now) {
        rd_kafka_conf_set(rk_conf, is_new_protocol(before) ? REMOTE : STRATEGY,
                          before->assignor[0] ? before->assignor : NULL, ignored, sizeof(ignored));
    }
}

/* The coordinator waits for a member's next join as long as max.poll.interval.ms, and then throws it out. */
static void warn_of_patience(const struct unsalt *u) {
    int64_t revoke = u->conf->revoke_timeout_ms, poll = u->before.max_poll_ms;
    if (revoke > poll / 2) {
        us_log(u, 4, "revoke.timeout.ms=%lld is more than half of max.poll.interval.ms=%lld: a member that waits so "
                     "long for acknowledgements may be thrown out of its group, and lose what it waits for",
               (long long)revoke, (long long)poll);
    }
}

void us_group_conf_warn(const struct unsalt *u) {
    char why[400];
    const struct us_before *before = &u->before;
    warn_of_patience(u);
    const char *layout = u->conf->layout == US_LAYOUT_BLOCK ? "block" : "topics";
    if (matters(u) && is_wrong(before, layout, why, sizeof(why))) {
        us_log(u, 4, "%s; goes on without the guarantee of order (colocation=report)", why);
    } else if (matters(u) && is_new_protocol(before) && !before->assignor_now && strcmp(before->assignor, "range")) {
        us_log(u, 4, "%s=%s is not known here: if it doesn't give partition i of each topic to the same member, the "
                     "assignment is refused", REMOTE, before->assignor);
    }
    if (is_new_protocol(before) && u->versions.protocol_early) {
        us_log(u, 4, "group.protocol=consumer is a preview in librdkafka %s: 2.12.0 is the first with the whole of it",
               rd_kafka_version_str());
    }
    if (!is_new_protocol(before) && u->versions.cooperative_loses &&
        is_listed(before->assignor, "cooperative-sticky")) {
        us_log(u, 4, "%s=%s: before librdkafka 2.10.0 (this is %s) a commit that a rebalance overtakes loses the "
                     "whole assignment, and what was not committed comes again", STRATEGY, before->assignor,
               rd_kafka_version_str());
    }
}

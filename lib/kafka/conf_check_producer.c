/* SPDX-License-Identifier: BSD-2-Clause */
/* The same for a producer. */
#include <kafka/conf.h>
#include <kafka/producer_lanes.h>
#include <stdio.h>
#include <string.h>
#include <unsalt/wire.h>

/* Kafka's limit on the name of a topic. */
#define TOPIC_MAX 249

static bool check_names(const struct unsalt_conf *conf, char *errstr, size_t size) {
    for (const char *name = conf->lane_topics; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t length = strcspn(name, ",");
        if (length == 0 || length > TOPIC_MAX) {
            snprintf(errstr, size, "lane.topics has a name of %zu bytes: 1 to %d are allowed", length, TOPIC_MAX);
            return false;
        }
    }
    return true;
}

bool us_conf_check_producer(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (!us_conf_check_layout(conf, errstr, size))
        return false;
    if (conf->partitions == 0) {
        snprintf(errstr, size, "a producer needs partitions (N of the topic): it is not set");
        return false;
    }
    if (conf->lanes == 0 && !conf->lane_topics) {
        snprintf(errstr, size, "a producer needs lanes (over how many a session is spread): it is not set");
        return false;
    }
    if (conf->lanes > US_PRODUCER_LANES_MAX || us_conf_names(conf->lane_topics) > US_PRODUCER_LANES_MAX) {
        snprintf(errstr, size, "a producer spreads a session over at most %d lanes", US_PRODUCER_LANES_MAX);
        return false;
    }
    if (!check_names(conf, errstr, size))
        return false;
    if (conf->seq_first == 0) {
        snprintf(errstr, size, "seq.first=0 is not allowed for a producer: 0 is no sequence in the header `%s`",
                 UNSALT_HEADER_NAME);
        return false;
    }
    return true;
}

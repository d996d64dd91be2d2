/* SPDX-License-Identifier: BSD-2-Clause */
/* What only the whole configuration can tell: which keys go together. */
#include <inttypes.h>
#include <kafka/conf.h>
#include <kafka/producer_lanes.h>
#include <stdio.h>
#include <unsalt/wire.h>

/* How many names the list has; 0 = it isn't set. */
static int64_t names_in(const char *list) {
    int64_t count = list != NULL;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

static bool check_layout(const struct unsalt_conf *conf, char *errstr, size_t size) {
    int64_t names = names_in(conf->lane_topics);
    if (conf->layout != US_LAYOUT_TOPICS) {
        if (names)
            snprintf(errstr, size, "lane.topics is for layout=topics, and layout is hash");
        return names == 0;
    }
    if (conf->partitions == 0) {
        snprintf(errstr, size, "layout=topics needs partitions (N of each lane topic): it is not set");
        return false;
    }
    if (conf->lanes == 0 && names == 0) {
        snprintf(errstr, size, "layout=topics needs lanes (how many lane topics) or lane.topics: neither is set");
        return false;
    }
    if (names && conf->lanes && conf->lanes != names) {
        snprintf(errstr, size, "lanes=%" PRId64 ", but lane.topics has %" PRId64 " names", conf->lanes, names);
        return false;
    }
    return true;
}

static bool check_gaps(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (conf->gap_timeout_ms != INT64_MAX && conf->gap_wait_max_ms < conf->gap_timeout_ms) {
        snprintf(errstr, size, "gap.wait.max.ms=%" PRId64 " is below gap.timeout.ms=%" PRId64 ": it would replace it",
                 conf->gap_wait_max_ms, conf->gap_timeout_ms);
        return false;
    }
    return true;
}

bool us_conf_check_consumer(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (!check_layout(conf, errstr, size) || !check_gaps(conf, errstr, size))
        return false;
    if (conf->late == UNSALT_LATE_DEAD_LETTER && !conf->dead_letter_cb) {
        snprintf(errstr, size, "late=dead-letter needs a callback: unsalt_conf_set_dead_letter_cb()");
        return false;
    }
    return true;
}

bool us_conf_check_producer(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (!check_layout(conf, errstr, size))
        return false;
    if (conf->partitions == 0) {
        snprintf(errstr, size, "a producer needs partitions (N of the topic): it is not set");
        return false;
    }
    if (conf->lanes == 0 && !conf->lane_topics) {
        snprintf(errstr, size, "a producer needs lanes (over how many a session is spread): it is not set");
        return false;
    }
    if (conf->lanes > US_PRODUCER_LANES_MAX || names_in(conf->lane_topics) > US_PRODUCER_LANES_MAX) {
        snprintf(errstr, size, "a producer spreads a session over at most %d lanes", US_PRODUCER_LANES_MAX);
        return false;
    }
    if (conf->seq_first == 0) {
        snprintf(errstr, size, "seq.first=0 is not allowed for a producer: 0 is no sequence in the header `%s`",
                 UNSALT_HEADER_NAME);
        return false;
    }
    return true;
}

static uint64_t to_ns(int64_t ms) {
    return ms == INT64_MAX ? UNSALT_NEVER : (uint64_t)ms * 1000000u;
}

void us_conf_core_params(const struct unsalt_conf *conf, unsalt_core_params_t *params) {
    params->seq_first = (uint64_t)conf->seq_first;
    params->start = (unsalt_start_t)conf->start;
    params->late = (unsalt_late_t)conf->late;
    params->lanes = (uint16_t)conf->lanes;
    params->gap_clock = (unsalt_gap_clock_t)conf->gap_clock;
    params->gap_timeout_ns = to_ns(conf->gap_timeout_ms);
    params->gap_stall_max_ns = to_ns(conf->gap_stall_max_ms);
    params->gap_wait_max_ns = to_ns(conf->gap_wait_max_ms);
    params->budget_records = (uint64_t)conf->budget_records;
    params->budget_bytes = (uint64_t)conf->budget_bytes;
    params->session_budget_records = (uint64_t)conf->session_budget_records;
    params->session_budget_bytes = (uint64_t)conf->session_budget_bytes;
    params->budget_policy = (unsalt_budget_policy_t)conf->budget_policy;
    params->block_max_ns = to_ns(conf->block_max_ms);
    params->release_max = (uint32_t)conf->release_max_records;
    params->session_ttl_ns = to_ns(conf->session_ttl_ms);
    params->sessions_max = (uint32_t)conf->sessions_max;
    params->remembered_max = (uint32_t)conf->sessions_remembered_max;
    params->skips_max = (uint32_t)conf->session_skips_max;
    params->session_id_max = (uint32_t)conf->session_id_max;
    params->restart_k = (uint32_t)conf->restart_k;
    params->restart_quiet_ns = to_ns(conf->restart_quiet_ms);
    if (conf->lane_topics)
        params->lanes = (uint16_t)names_in(conf->lane_topics);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What only the whole configuration can tell: which keys of a consumer go together. */
#include <inttypes.h>
#include <kafka/conf.h>
#include <stdio.h>
#include <string.h>

int64_t us_conf_names(const char *list) {
    int64_t count = list != NULL;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

static bool check_topics(const struct unsalt_conf *conf, int64_t names, char *errstr, size_t size) {
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

static bool check_block(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (conf->partitions == 0) {
        snprintf(errstr, size, "layout=block needs partitions (N of the topic): it is not set");
        return false;
    }
    if (conf->lanes == 0) {
        snprintf(errstr, size, "layout=block needs lanes (how many partitions make a block): it is not set");
        return false;
    }
    if (conf->partitions % conf->lanes != 0) {
        snprintf(errstr, size,
                 "partitions=%" PRId64 " is not allowed with layout=block and lanes=%" PRId64
                 ": it must be a multiple of lanes, such as %" PRId64,
                 conf->partitions, conf->lanes, (conf->partitions / conf->lanes + 1) * conf->lanes);
        return false;
    }
    return true;
}

bool us_conf_check_layout(const struct unsalt_conf *conf, char *errstr, size_t size) {
    int64_t names = us_conf_names(conf->lane_topics);
    if (conf->layout == US_LAYOUT_TOPICS)
        return check_topics(conf, names, errstr, size);
    if (names) {
        snprintf(errstr, size, "lane.topics=\"%.64s%s\" is only allowed with layout=topics, and layout is %s",
                 conf->lane_topics, strlen(conf->lane_topics) > 64 ? "..." : "",
                 conf->layout == US_LAYOUT_BLOCK ? "block" : "hash");
        return false;
    }
    return conf->layout == US_LAYOUT_HASH || check_block(conf, errstr, size);
}

static bool check_gaps(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (conf->gap_timeout_ms != INT64_MAX && conf->gap_wait_max_ms < conf->gap_timeout_ms) {
        snprintf(errstr, size, "gap.wait.max.ms=%" PRId64 " is below gap.timeout.ms=%" PRId64 ": it would replace it",
                 conf->gap_wait_max_ms, conf->gap_timeout_ms);
        return false;
    }
    return true;
}

static bool check_callbacks(const struct unsalt_conf *conf, char *errstr, size_t size) {
    const char *key = conf->late == UNSALT_LATE_DEAD_LETTER             ? "late"
                      : conf->malformed == UNSALT_MALFORMED_DEAD_LETTER ? "malformed"
                      : conf->budget_policy == UNSALT_BUDGET_DEAD_LETTER ? "budget.policy"
                                                                         : NULL;
    if (key && !conf->dead_letter_cb) {
        snprintf(errstr, size, "%s=dead-letter needs a callback: unsalt_conf_set_dead_letter_cb()", key);
        return false;
    }
    if (conf->seq_source == US_SEQ_CALLBACK && !conf->extract_cb) {
        snprintf(errstr, size, "seq.source=callback needs a callback: unsalt_conf_set_extract_cb()");
        return false;
    }
    return true;
}

static bool check_checkpoint(const struct unsalt_conf *conf, char *errstr, size_t size) {
    const char *name = conf->checkpoint == US_CHECKPOINTS_TOPIC ? "topic" : "callback";
    if (conf->checkpoint == US_CHECKPOINTS_NONE) {
        return true;
    }
    if (conf->partitions == 0) {
        snprintf(errstr, size, "checkpoint=%s needs partitions: it is not set", name);
        return false;
    }
    if (conf->colocation == US_COLOCATION_REPORT) {
        snprintf(errstr, size, "checkpoint=%s is not allowed with colocation=report, since several members would keep "
                               "cursors of the same session: use colocation=refuse", name);
        return false;
    }
    if (conf->checkpoint == US_CHECKPOINTS_CALLBACK && (!conf->checkpoint_load_cb || !conf->checkpoint_store_cb)) {
        snprintf(errstr, size, "checkpoint=callback needs two callbacks: unsalt_conf_set_checkpoint_cb()");
        return false;
    }
    return true;
}

static bool check_rehearsal(const struct unsalt_conf *conf, char *errstr, size_t size) {
    int64_t rehearsed = conf->rehearse_vanish + conf->rehearse_duplicate + conf->rehearse_late + conf->rehearse_budget;
    if (rehearsed > 1000000) {
        snprintf(errstr, size, "rehearse.vanish, .duplicate, .late and .budget are %" PRId64 " of a million together",
                 rehearsed);
        return false;
    }
    return true;
}

static bool check_source(const struct unsalt_conf *conf, char *errstr, size_t size) {
    if (conf->seq_source == US_SEQ_KEY && conf->seq_key == US_SEQ_KEY_NONE) {
        snprintf(errstr, size, "seq.source=key needs seq.key=binary or seq.key=decimal: it is none");
        return false;
    }
    return true;
}

bool us_conf_check_consumer(const struct unsalt_conf *conf, char *errstr, size_t size) {
    return us_conf_check_layout(conf, errstr, size) && check_gaps(conf, errstr, size) &&
           check_source(conf, errstr, size) && check_callbacks(conf, errstr, size) &&
           check_rehearsal(conf, errstr, size) && check_checkpoint(conf, errstr, size);
}

static uint64_t to_ns(int64_t ms) {
    return ms == INT64_MAX ? UNSALT_NEVER : (uint64_t)ms * 1000000u;
}

void us_conf_core_params(const struct unsalt_conf *conf, unsalt_core_params_t *params) {
    params->seq_first = (uint64_t)conf->seq_first;
    params->start = (unsalt_start_t)conf->start;
    params->late = (unsalt_late_t)conf->late;
    params->malformed = (unsalt_malformed_t)conf->malformed;
    params->lanes = (uint16_t)conf->lanes;
    params->gap_clock = (unsalt_gap_clock_t)conf->gap_clock;
    params->gap_proof = (unsalt_gap_proof_t)conf->gap_proof;
    params->question_min_ns = to_ns(conf->gap_question_min_ms);
    params->gap_timeout_ns = to_ns(conf->gap_timeout_ms);
    params->gap_stall_max_ns = to_ns(conf->gap_stall_max_ms);
    params->gap_wait_max_ns = to_ns(conf->gap_wait_max_ms);
    params->budget_records = (uint64_t)conf->budget_records;
    params->budget_bytes = (uint64_t)conf->budget_bytes;
    params->session_budget_records = (uint64_t)conf->session_budget_records;
    params->session_budget_bytes = (uint64_t)conf->session_budget_bytes;
    params->budget_window = (uint64_t)conf->budget_window;
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
    params->cursors = conf->checkpoint != US_CHECKPOINTS_NONE;
    if (conf->lane_topics)
        params->lanes = (uint16_t)us_conf_names(conf->lane_topics);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration as the library reads it: one field per key of conf_keys.def. */
#ifndef US_KAFKA_CONF_H
#define US_KAFKA_CONF_H
#ifndef UNSALT_ENABLE_CORE_API
#define UNSALT_ENABLE_CORE_API
#endif
#include <codec/salt.h>
#include <core/layout.h>
#include <stdbool.h>
#include <unsalt/conf.h>
#include <unsalt/core.h>

enum us_seq_source { US_SEQ_AUTO, US_SEQ_UNSALT, US_SEQ_HEADER, US_SEQ_JSON };
enum us_ack { US_ACK_AUTO, US_ACK_MANUAL };
enum us_colocation { US_COLOCATION_REFUSE, US_COLOCATION_REPORT };

/* Milliseconds stand in the configuration; *_ms fields hold INT64_MAX for "never" (-1 or "off"). */
struct unsalt_conf {
    /* where lanes live */
    int64_t layout;        /* enum us_layout */
    int64_t partitions;    /* N; 0 = not set */
    int64_t lanes;         /* S or the most there may be; 0 = unknown */
    char *lane_topics;     /* comma-separated names or NULL */
    int64_t colocation;    /* enum us_colocation */
    /* how records are read */
    int64_t seq_source;    /* enum us_seq_source */
    char *seq_header;      /* "seq" */
    char *seq_json;        /* "globalSeq" */
    char *session_json;    /* "sessionId"; "" = don't look */
    int64_t json_tokens_max;
    int64_t seq_first;     /* stored as uint64_t bits */
    char *salt_pattern;    /* "#<k>" */
    int64_t salt_trust;    /* 0, 1 */
    int64_t session_id_max;
    /* order */
    int64_t start;         /* unsalt_start_t */
    int64_t late;          /* unsalt_late_t */
    int64_t restart_k, restart_quiet_ms;
    int64_t gap_timeout_ms, gap_clock, gap_stall_max_ms, gap_wait_max_ms;
    int64_t release_max_records;
    int64_t session_ttl_ms, sessions_max, sessions_remembered_max, session_skips_max;
    /* budgets */
    int64_t budget_records, budget_bytes, session_budget_records, session_budget_bytes, budget_policy, block_max_ms;
    /* consumer */
    int64_t ack;           /* enum us_ack */
    int64_t revoke_timeout_ms;
    int64_t read_batch;    /* records read from one partition at a time */
    /* producer */
    int64_t producer_epoch; /* 0 = wall clock */
    int64_t producer_sessions_max;
    /* callbacks */
    unsalt_event_cb *event_cb;
    void *event_opaque;
    unsalt_log_cb *log_cb;
    void *log_opaque;
    unsalt_dead_letter_cb *dead_letter_cb;
    void *dead_letter_opaque;
};

/* What only the whole configuration can tell: combinations. Returns true, or false with errstr. Any thread. */
bool us_conf_check_consumer(const struct unsalt_conf *conf, char *errstr, size_t size);
bool us_conf_check_producer(const struct unsalt_conf *conf, char *errstr, size_t size);
/* Translates into core parameters (all fields but mem, hash_seed). */
void us_conf_core_params(const struct unsalt_conf *conf, unsalt_core_params_t *params);
/* The lane topics of the configuration; owns a copy of the names. Returns false when out of memory. */
struct us_conf_lanes {
    struct us_lane_topics topics;
    char *text;         /* owned: the names, terminated in place */
    const char **names; /* owned */
};
bool us_conf_lanes_init(struct us_conf_lanes *lanes, const struct unsalt_conf *conf);
void us_conf_lanes_destroy(struct us_conf_lanes *lanes);
#endif

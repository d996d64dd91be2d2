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
#include <unsalt/checkpoint.h>
#include <unsalt/conf.h>
#include <unsalt/core.h>
#include <unsalt/relay.h>

enum us_seq_source { US_SEQ_AUTO, US_SEQ_UNSALT, US_SEQ_HEADER, US_SEQ_JSON, US_SEQ_KEY, US_SEQ_CALLBACK };
enum us_seq_key { US_SEQ_KEY_NONE, US_SEQ_KEY_BINARY, US_SEQ_KEY_DECIMAL };
enum us_reset { US_RESET_AUTO, US_RESET_EARLIEST, US_RESET_LATEST };
enum us_ack { US_ACK_AUTO, US_ACK_MANUAL };
enum us_checkpoints { US_CHECKPOINTS_NONE, US_CHECKPOINTS_TOPIC, US_CHECKPOINTS_CALLBACK };
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
    int64_t seq_key;       /* enum us_seq_key */
    int64_t seq_key_digits;
    char *session_json;    /* "sessionId"; "" = don't look */
    char *session_header;  /* "" = don't look */
    int64_t offset_reset;  /* enum us_reset */
    int64_t malformed;     /* unsalt_malformed_t */
    int64_t json_tokens_max;
    int64_t seq_first;     /* stored as uint64_t bits */
    char *salt_pattern;    /* "#<k>" */
    int64_t salt_trust;    /* 0, 1 */
    int64_t session_id_max;
    /* order */
    int64_t start;         /* unsalt_start_t */
    int64_t late;          /* unsalt_late_t */
    int64_t restart_k, restart_quiet_ms;
    int64_t gap_timeout_ms, gap_clock, gap_proof, gap_question_min_ms, gap_stall_max_ms, gap_wait_max_ms;
    int64_t release_max_records;
    int64_t session_ttl_ms, sessions_max, sessions_remembered_max, session_skips_max;
    /* budgets */
    int64_t budget_records, budget_bytes, session_budget_records, session_budget_bytes, budget_window;
    int64_t budget_policy, block_max_ms; /* budget_policy: unsalt_budget_policy_t */
    /* consumer */
    int64_t ack;           /* enum us_ack */
    int64_t revoke_timeout_ms;
    int64_t read_batch;    /* records read from one partition at a time */
    /* checkpoints */
    int64_t checkpoint;    /* enum us_checkpoints */
    char *checkpoint_topic, *checkpoint_transactional_id; /* "": made of others */
    int64_t checkpoint_create; /* 0, 1 */
    int64_t checkpoint_replication, checkpoint_retention_ms, checkpoint_timeout_ms;
    /* pipeline */
    int64_t pipeline_workers, pipeline_delivery_threads, pipeline_records, pipeline_bytes;
    int64_t pipeline_prepare_timeout_ms, pipeline_deliver_timeout_ms;
    int64_t pipeline_prepare_retries, pipeline_deliver_retries, pipeline_backoff_ms, pipeline_backoff_max_ms;
    int64_t pipeline_prepare_failure, pipeline_deliver_failure; /* enum us_pipe_policy */
    int64_t pipeline_halted_records, pipeline_halted_bytes;
    char *pipeline_dead_letter_topic; /* "": none */
    int64_t pipeline_dead_letter_create;
    /* rehearsal: records per million */
    int64_t rehearse_seed; /* stored as uint64_t bits */
    int64_t rehearse_vanish, rehearse_duplicate, rehearse_late, rehearse_budget;
    /* producer */
    int64_t producer_epoch; /* 0 = wall clock */
    int64_t producer_sessions_max;
    int64_t producer_resend_max_ms, producer_check_ms;
    /* relay */
    char *relay_topic; /* "" = not set */
    int64_t relay_threads, relay_batch_records, relay_batch_bytes, relay_batch_ms;
    int64_t relay_retries, relay_retry_ms, relay_failure, relay_timeout_ms; /* relay_failure: enum us_pipe_policy */
    char *relay_dead_letter_topic; /* "" = none */
    /* callbacks */
    unsalt_event_cb *event_cb;
    void *event_opaque;
    unsalt_log_cb *log_cb;
    void *log_opaque;
    unsalt_dead_letter_cb *dead_letter_cb;
    void *dead_letter_opaque;
    unsalt_assignment_cb *assignment_cb;
    void *assignment_opaque;
    unsalt_checkpoint_load_cb *checkpoint_load_cb;
    unsalt_checkpoint_store_cb *checkpoint_store_cb;
    void *checkpoint_opaque;
    unsalt_extract_cb *extract_cb;
    void *extract_opaque;
    unsalt_relay_cb *relay_cb;
    void *relay_opaque;
    unsalt_relay_dead_letter_cb *relay_dead_letter_cb;
    void *relay_dead_letter_opaque;
};

/* What only the whole configuration can tell: combinations. Returns true, or false with errstr. Any thread. */
bool us_conf_check_consumer(const struct unsalt_conf *conf, char *errstr, size_t size);
bool us_conf_check_producer(const struct unsalt_conf *conf, char *errstr, size_t size);
/* What both need of the layout. */
bool us_conf_check_layout(const struct unsalt_conf *conf, char *errstr, size_t size);
/* How many names a list has; 0 = it isn't set. */
int64_t us_conf_names(const char *list);
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

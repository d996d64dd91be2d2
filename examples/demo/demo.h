/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the demo share: the scenario, the logs for the checker, and counters for the progress line. */
#ifndef DEMO_H
#define DEMO_H
#include "../../tests/checker/checker.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <unsalt/unsalt.h>

enum {
    DEMO_PARTITIONS = 8,
    DEMO_LANES = 4,
    DEMO_COLD = 50,        /* cold sessions */
    DEMO_SECONDS = 5,      /* how long is produced */
    DEMO_HOT_RATE = 6000,  /* records per second of the hot session */
    DEMO_COLD_RATE = 1600, /* of all cold sessions together */
    DEMO_PAYLOAD = 100,
    DEMO_COPY_EVERY = 500, /* every such record of the hot session is sent twice */
    DEMO_GAP_MS = 1000,
    DEMO_PATIENCE_S = 8,   /* for the readers, after the last record was produced */
};
/* Salted to #0..#3, it falls on four different partitions of eight. */
#define DEMO_HOT "till-1"
/* The record that never comes: it is stamped, and its sender dies before it is sent. */
#define DEMO_MISSING ((uint64_t)DEMO_HOT_RATE * DEMO_SECONDS / 2)
/* With FAULT=1 the delivery of this one is logged after that of the next. */
#define DEMO_FAULT ((uint64_t)DEMO_HOT_RATE * DEMO_SECONDS / 3)

/* One consumer as seen from outside. */
struct demo_reader {
    checker_log_t *log;
    atomic_ulong records;  /* handed out so far */
    atomic_ulong inverted; /* of these, of the hot session, no copies, and below an earlier one: for progress lines */
    uint64_t highest;
    bool seen[DEMO_HOT_RATE * DEMO_SECONDS + 1]; /* by number, of the hot session */
};

struct demo {
    char bootstrap[256];
    char topic[64];
    bool fault;
    checker_log_t *accepted;
    atomic_ulong accepted_records;  /* copies included */
    atomic_ulong accepted_distinct;
    atomic_bool produced;           /* everything was sent and answered */
    atomic_bool failed;             /* a part can't go on; it has said why */
    struct demo_reader raw, ordered;
    unsalt_stats_t stats;           /* of the ordered reader, at its end */
    unsigned gap_events;
    unsalt_event_t gap;             /* the last one; without its pointers */
};

/* Seconds since an arbitrary moment. */
double demo_now(void);
/* A client configuration for the cluster of the demo; ends the program if librdkafka refuses it. */
rd_kafka_conf_t *demo_conf(const struct demo *demo);
void demo_set(rd_kafka_conf_t *conf, const char *name, const char *value);
unsalt_conf_t *demo_unsalt_conf(const char *lanes);
/* The whole topic, from its beginning. The caller's. */
rd_kafka_topic_partition_list_t *demo_partitions(const struct demo *demo);
/* Says what went wrong and makes all threads end. */
void demo_fail(struct demo *demo, const char *what, const char *why);

/* Prints what happens to the hot session on its way. */
void demo_tell_traffic(void); /* traffic.c */

/* Threads; `arg` is the struct demo. */
void *demo_produce(void *arg);      /* traffic.c */
void *demo_read_raw(void *arg);     /* readers.c */
void *demo_read_ordered(void *arg); /* readers.c */

/* Prints what the checker found. Returns the exit status. */
int demo_report(struct demo *demo);
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topic that consumers are compared on, and configurations for it. One in a process. Records are stamped here, as a
 * gateway in another language would do it, so that filling a topic costs little.
 */
#ifndef BENCH_TOPIC_H
#define BENCH_TOPIC_H
#include <stdbool.h>
#include <unsalt/unsalt.h>

enum { TOPIC_PARTITIONS = 8, TOPIC_LANES = 4 };

_Noreturn void topic_fail(const char *why);

/* Which sessions there are. */
enum traffic {
    TRAFFIC_ONE_HOT,  /* a session over four lanes has half of the records, 1,000 on one lane the others */
    TRAFFIC_ALL_HOT,  /* 100 sessions or as `sessions` says, each over four lanes, in turns */
    TRAFFIC_RAW_KEYS, /* as all hot, but in one partition each, under their raw key */
    TRAFFIC_ONCE,     /* each record is all that there is of its session, on one lane */
};

/* Where a record has its number. */
enum form {
    FORM_HEADER, /* the header `unsalt` */
    FORM_PLAIN,  /* a header `seq` of decimal digits */
    FORM_JSON,   /* the payload is an object with sessionId and globalSeq; no headers */
    FORM_KEY,    /* 8 bytes at the end of the key; no headers */
};

struct topic_load {
    enum traffic traffic;
    enum form form;
    const char *codec; /* none, lz4, ...: of the batches */
    size_t payload;    /* bytes, 64 or more; words of a vocabulary that lz4 halves */
    unsigned seed;     /* of the words */
    long records;
    long sessions;     /* 1..100; 0: as the traffic says */
};

/* Creates a topic of that name, NULL: of a new one, and fills it. */
void topic_open(const char *name, const struct topic_load *load);
/* So many more records, of the same sessions, but with TRAFFIC_ONCE of new ones. */
void topic_more(const struct topic_load *load);
/* Uses a topic that was filled by another process. False: there is none of that name. */
bool topic_use(const char *name);
void topic_close(void); /* deletes it */
const char *topic_name(void);

rd_kafka_topic_partition_list_t *topic_partitions(void); /* from the beginning; the caller's */
rd_kafka_conf_t *topic_client_conf(void);
rd_kafka_conf_t *topic_consumer_conf(void);
unsalt_conf_t *topic_unsalt_conf(void);
#endif

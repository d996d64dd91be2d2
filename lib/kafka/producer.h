/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the producer share. */
#ifndef US_KAFKA_PRODUCER_H
#define US_KAFKA_PRODUCER_H
#include <kafka/conf.h>
#include <kafka/producer_again.h>
#include <kafka/producer_sessions.h>
#include <kafka/producer_topics.h>
#include <unsalt/producer.h>
#include <unsalt/wire.h>

/* Kafka's limit on the name of a topic. */
#define US_TOPIC_MAX 249

typedef void(us_dr_cb)(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                       void *message_opaque);
typedef void(us_dr_msg_cb)(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque);
typedef void(us_rk_log_cb)(const rd_kafka_t *rk, int level, const char *fac, const char *buf);

/* What the application wants, as it stood on its configuration. */
struct us_producer_wishes {
    us_dr_msg_cb *message_cb; /* or NULL */
    us_dr_cb *payload_cb;     /* the older kind: used if message_cb is NULL */
    bool only_errors;
    bool idempotence;         /* what enable.idempotence was, to put it back */
    bool transactional;       /* a transactional.id is set */
    us_rk_log_cb *log_cb;
    int log_level;
};

struct unsalt_producer {
    rd_kafka_t *rk;
    struct unsalt_producer *next_registered;
    struct unsalt_conf *conf; /* owned */
    struct us_conf_lanes lane_topics;
    struct us_senders senders;
    struct us_topics topics;
    struct us_agains agains;
    struct us_producer_wishes wishes;
    atomic_bool closing;
    atomic_uint_fast32_t purges; /* of the application's: what was produced before one is not sent again */
    atomic_uint_fast64_t open; /* records and markers whose fate isn't known, or is being reported */
    atomic_uint_fast64_t stamped, unstamped, acked, abandoned, uncertain, resent, markers, marked;
};

/* ---- producer_wishes.c: the application's configuration */

/*
 * Puts on the configuration what the producer needs: idempotence and its own delivery report callback. The wishes
 * are filled. Returns false with errstr: the configuration is as it was.
 */
bool us_wishes_install(rd_kafka_conf_t *conf, struct us_producer_wishes *wishes, char *errstr, size_t size);
/* Puts the application's own back. */
void us_wishes_restore(rd_kafka_conf_t *conf, const struct us_producer_wishes *wishes);
/* Writes a log line to the application's log callback, or where librdkafka writes its own. printf-like. */
void us_producer_log(const struct unsalt_producer *p, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- producer_record.c: what may be asked for */

/*
 * Reads a record of the application's, whatever size its struct has. Returns false if an argument is wrong: *record is
 * undefined then. What it points to is borrowed.
 */
bool us_record_read(const struct unsalt_producer *p, const unsalt_record_t *given, unsalt_record_t *record);
/* May this be the base topic of records? Layout topics: all names of its lane topics must fit. */
bool us_record_topic_fits(const struct unsalt_producer *p, const char *topic);
/* The topic of a lane of a base topic that fits: `base`, or `name`, which has US_TOPIC_MAX + 1 bytes. */
const char *us_record_lane_topic(const struct unsalt_producer *p, const char *base, uint16_t lane, char *name);

/* ---- producer_send.c */

/* What goes out. All borrowed, but for the headers. */
struct us_outgoing {
    const char *topic;
    int32_t partition;
    const void *key, *payload;
    size_t key_len, len;
    rd_kafka_headers_t *headers;   /* taken on success; else the caller's, with another header `unsalt`, maybe */
    int64_t timestamp;
    const unsalt_header_t *header; /* replaces one that is there; NULL: none is written, and headers may be NULL */
};
/* Hands it to librdkafka, which copies. Counts it as open until its delivery report is through. */
rd_kafka_resp_err_t us_enqueue(struct unsalt_producer *p, const struct us_outgoing *out, struct us_sent *sent);

/* ---- producer_registry.c: any thread */

/* From when the handle is there until it goes: no delivery report may be served before or after. */
void us_producers_add(struct unsalt_producer *p);
void us_producers_remove(struct unsalt_producer *p);
/* Whose handle it is; NULL: no stamping producer's. Valid for as long as that isn't destroyed. */
struct unsalt_producer *us_producers_find(const rd_kafka_t *rk);

/* ---- producer_report.c: what comes back */

/*
 * The delivery report callback on the configuration. A report without an opaque is of a record that the producer
 * didn't send: an entry of a checkpoint, which the library brings into a transaction through the handle. It has no
 * number to be settled and counts nowhere; the application's callback hears of it as of its own.
 */
us_dr_msg_cb us_report;
/* Has the application purged since the record was produced? Any thread. */
bool us_is_purged(const struct unsalt_producer *p, const struct us_sent *sent);
/*
 * A record that waited to be sent again is abandoned: the error is reported to the application. Takes `again`, which
 * isn't in a list.
 */
void us_report_waiting(struct unsalt_producer *p, struct us_again *again, rd_kafka_resp_err_t err);
#endif

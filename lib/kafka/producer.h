/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the producer share. */
#ifndef US_KAFKA_PRODUCER_H
#define US_KAFKA_PRODUCER_H
#include <kafka/conf.h>
#include <kafka/producer_sessions.h>
#include <unsalt/producer.h>

typedef void(us_dr_cb)(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                       void *message_opaque);
typedef void(us_dr_msg_cb)(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque);

/* What the application wants to be told of its records, as it stood on its configuration. */
struct us_dr_wishes {
    us_dr_msg_cb *message_cb; /* or NULL */
    us_dr_cb *payload_cb;     /* the older kind: used if message_cb is NULL */
    bool only_errors;
    bool idempotence;         /* what enable.idempotence was, to put it back */
};

struct unsalt_producer {
    rd_kafka_t *rk;
    struct unsalt_conf *conf; /* owned */
    struct us_conf_lanes lane_topics;
    struct us_senders senders;
    struct us_dr_wishes wishes;
    atomic_uint_fast64_t stamped, unstamped, acked, abandoned;
};

/*
 * Puts on the configuration what the producer needs: idempotence and its own delivery report callback. The wishes
 * are filled. Returns false with errstr: the configuration is as it was.
 */
bool us_dr_install(rd_kafka_conf_t *conf, struct us_dr_wishes *wishes, char *errstr, size_t size);
/* Puts the application's own back. */
void us_dr_restore(rd_kafka_conf_t *conf, const struct us_dr_wishes *wishes);
#endif

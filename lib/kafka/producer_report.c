/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delivery reports: ours settles the number, then the application's is called as if ours weren't there. librdkafka
 * has no getter for the callback that is set, but rd_kafka_conf_get() prints a pointer as text (2.0.2 and 2.16 do).
 */
#include <kafka/producer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque, const struct us_dr_wishes *wishes) {
    if (wishes->only_errors && !message->err)
        return;
    if (wishes->message_cb)
        wishes->message_cb(rk, message, opaque);
    else if (wishes->payload_cb)
        wishes->payload_cb(rk, message->payload, message->len, message->err, opaque, message->_private);
}

/*
 * The application's callback runs without our lock, since it may produce. A record that librdkafka gave up is
 * abandoned: resending it with its number, or a marker for it, belongs here.
 */
static void settle(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct us_sent *sent = message->_private;
    struct us_shard *shard = sent->shard;
    struct unsalt_producer *p = shard->owner->producer;
    void *message_opaque = sent->opaque;
    pthread_mutex_lock(&shard->lock);
    us_shard_resolve(shard, sent);
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add(message->err ? &p->abandoned : &p->acked, 1);
    /* librdkafka's own copy, which it made for this call: only the view is const. */
    ((rd_kafka_message_t *)message)->_private = message_opaque;
    report(rk, message, opaque, &p->wishes);
}

/* Reads a property of librdkafka's configuration as text; "" if it isn't set. */
static void get(const rd_kafka_conf_t *conf, const char *name, char *text, size_t size) {
    if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        text[0] = '\0';
}

static uintptr_t get_pointer(const rd_kafka_conf_t *conf, const char *name) {
    char text[64];
    get(conf, name, text, sizeof text);
    return (uintptr_t)strtoull(text, NULL, 16);
}

static bool get_bool(const rd_kafka_conf_t *conf, const char *name) {
    char text[64];
    get(conf, name, text, sizeof text);
    return strcmp(text, "true") == 0;
}

static bool set(rd_kafka_conf_t *conf, const char *name, bool value, char *errstr, size_t size) {
    return rd_kafka_conf_set(conf, name, value ? "true" : "false", errstr, size) == RD_KAFKA_CONF_OK;
}

bool us_dr_install(rd_kafka_conf_t *conf, struct us_dr_wishes *wishes, char *errstr, size_t size) {
    char events[64];
    get(conf, "enabled_events", events, sizeof events);
    if (atoi(events) & RD_KAFKA_EVENT_DR) {
        snprintf(errstr, size, "delivery reports as events are not supported: set a callback instead");
        return false;
    }
    wishes->message_cb = (us_dr_msg_cb *)get_pointer(conf, "dr_msg_cb");
    wishes->payload_cb = (us_dr_cb *)get_pointer(conf, "dr_cb");
    wishes->only_errors = get_bool(conf, "delivery.report.only.error");
    wishes->idempotence = get_bool(conf, "enable.idempotence");
    if (!set(conf, "enable.idempotence", true, errstr, size) ||
        !set(conf, "delivery.report.only.error", false, errstr, size)) {
        us_dr_restore(conf, wishes);
        return false;
    }
    rd_kafka_conf_set_dr_cb(conf, NULL);
    rd_kafka_conf_set_dr_msg_cb(conf, settle);
    return true;
}

void us_dr_restore(rd_kafka_conf_t *conf, const struct us_dr_wishes *wishes) {
    rd_kafka_conf_set_dr_msg_cb(conf, wishes->message_cb);
    rd_kafka_conf_set_dr_cb(conf, wishes->payload_cb);
    set(conf, "delivery.report.only.error", wishes->only_errors, NULL, 0);
    set(conf, "enable.idempotence", wishes->idempotence, NULL, 0);
}

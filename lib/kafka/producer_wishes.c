/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's configuration of a producer. librdkafka has no getter for a callback that is set, but
 * rd_kafka_conf_get() prints a pointer as text (2.0.2 and 2.16 do).
 */
#include <kafka/producer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* librdkafka's default of log_level. */
#define LOG_LEVEL 6

/* Reads a property of librdkafka's configuration as text; "" if it isn't set. */
static const char *get(const rd_kafka_conf_t *conf, const char *name, char *text, size_t size) {
    if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        text[0] = '\0';
    return text;
}

static uintptr_t get_pointer(const rd_kafka_conf_t *conf, const char *name) {
    char text[64];
    return (uintptr_t)strtoull(get(conf, name, text, sizeof text), NULL, 16);
}

static bool get_bool(const rd_kafka_conf_t *conf, const char *name) {
    char text[64];
    return strcmp(get(conf, name, text, sizeof text), "true") == 0;
}

static int get_level(const rd_kafka_conf_t *conf) {
    char text[64];
    return get(conf, "log_level", text, sizeof text)[0] ? atoi(text) : LOG_LEVEL;
}

/* Is it set? Its text may be longer than any buffer: the length that it would have is asked for. */
static bool has(const rd_kafka_conf_t *conf, const char *name) {
    size_t size = 0;
    return rd_kafka_conf_get(conf, name, NULL, &size) == RD_KAFKA_CONF_OK && size > 1;
}

static bool set(rd_kafka_conf_t *conf, const char *name, bool value, char *errstr, size_t size) {
    return rd_kafka_conf_set(conf, name, value ? "true" : "false", errstr, size) == RD_KAFKA_CONF_OK;
}

bool us_wishes_install(rd_kafka_conf_t *conf, struct us_producer_wishes *wishes, char *errstr, size_t size) {
    char events[64];
    if (atoi(get(conf, "enabled_events", events, sizeof events)) & RD_KAFKA_EVENT_DR) {
        snprintf(errstr, size, "delivery reports as events are not supported: set a callback instead");
        return false;
    }
    wishes->message_cb = (us_dr_msg_cb *)get_pointer(conf, "dr_msg_cb");
    wishes->payload_cb = (us_dr_cb *)get_pointer(conf, "dr_cb");
    wishes->only_errors = get_bool(conf, "delivery.report.only.error");
    wishes->idempotence = get_bool(conf, "enable.idempotence");
    wishes->transactional = has(conf, "transactional.id");
    wishes->log_cb = (us_rk_log_cb *)get_pointer(conf, "log_cb");
    wishes->log_level = get_level(conf);
    if (!set(conf, "enable.idempotence", true, errstr, size) ||
        !set(conf, "delivery.report.only.error", false, errstr, size)) {
        us_wishes_restore(conf, wishes);
        return false;
    }
    rd_kafka_conf_set_dr_cb(conf, NULL);
    rd_kafka_conf_set_dr_msg_cb(conf, us_report);
    return true;
}

void us_wishes_restore(rd_kafka_conf_t *conf, const struct us_producer_wishes *wishes) {
    rd_kafka_conf_set_dr_msg_cb(conf, wishes->message_cb);
    rd_kafka_conf_set_dr_cb(conf, wishes->payload_cb);
    set(conf, "delivery.report.only.error", wishes->only_errors, NULL, 0);
    set(conf, "enable.idempotence", wishes->idempotence, NULL, 0);
}

void us_producer_log(const struct unsalt_producer *p, int level, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (p->conf->log_cb)
        p->conf->log_cb(p->conf->log_opaque, level, "UNSALT", line);
    else if (level <= p->wishes.log_level && p->wishes.log_cb)
        p->wishes.log_cb(p->rk, level, "UNSALT", line);
    else if (level <= p->wishes.log_level)
        fprintf(stderr, "%%%d|UNSALT| %s\n", level, line);
}

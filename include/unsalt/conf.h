/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_CONF_H
#define UNSALT_CONF_H
/**
 * @file conf.h
 * @brief Configuration, librdkafka's way: string key and value. The keys stand in one table, from which the
 *        parser, the defaults and the documentation are made.
 */
#include <stdio.h>
#include <unsalt/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unsalt_conf unsalt_conf_t;

typedef enum {
    UNSALT_CONF_OK = 0,
    UNSALT_CONF_UNKNOWN = -1, /**< no such key */
    UNSALT_CONF_INVALID = -2  /**< the value is not allowed for this key */
} unsalt_conf_res_t;

/** @returns a configuration with all defaults, owned by the caller; NULL when out of memory. */
UNSALT_EXPORT unsalt_conf_t *unsalt_conf_new(void);
/** @returns a copy, owned by the caller; NULL when out of memory. */
UNSALT_EXPORT unsalt_conf_t *unsalt_conf_dup(const unsalt_conf_t *conf);
/** Destroys a configuration that was not taken by unsalt_new() or unsalt_producer_new(). NULL is allowed. */
UNSALT_EXPORT void unsalt_conf_destroy(unsalt_conf_t *conf);

/**
 * Sets a key. The value is copied; NULL = back to the default.
 * @param errstr on failure: names the key, the value and what is allowed (borrowed; may be NULL with size 0).
 * @returns UNSALT_CONF_OK; UNSALT_CONF_UNKNOWN or UNSALT_CONF_INVALID: nothing changed.
 */
UNSALT_EXPORT unsalt_conf_res_t unsalt_conf_set(unsalt_conf_t *conf, const char *name, const char *value,
                                                char *errstr, size_t errstr_size);
/**
 * Reads a key as text.
 * @param dest receives the value, truncated to *dest_size; may be NULL.
 * @param dest_size in: room; out: size needed, the final 0 included.
 * @returns UNSALT_CONF_OK or UNSALT_CONF_UNKNOWN.
 */
UNSALT_EXPORT unsalt_conf_res_t unsalt_conf_get(const unsalt_conf_t *conf, const char *name, char *dest,
                                                size_t *dest_size);

/** The application's event callback; see event.h. `opaque` is passed to it and is the caller's. */
UNSALT_EXPORT void unsalt_conf_set_event_cb(unsalt_conf_t *conf, unsalt_event_cb *cb, void *opaque);

/**
 * The application's log callback, in librdkafka's manner: level as in syslog(3), `fac` a short facility, `buf`
 * the line without newline. Default: librdkafka's own, or stderr when the application set none. Called on the
 * thread that is in the library, or on its helper thread.
 */
typedef void(unsalt_log_cb)(void *opaque, int level, const char *fac, const char *buf);
UNSALT_EXPORT void unsalt_conf_set_log_cb(unsalt_conf_t *conf, unsalt_log_cb *cb, void *opaque);

/**
 * The dead-letter callback, for late=dead-letter: it gets the message for the time of the call; the library
 * destroys it afterwards. `reason` is "late" or "stale". Called on the thread that is in the consumer; it
 * may call what an event callback may (event.h).
 */
struct rd_kafka_message_s;
typedef void(unsalt_dead_letter_cb)(void *opaque, const struct rd_kafka_message_s *message, const char *reason);
UNSALT_EXPORT void unsalt_conf_set_dead_letter_cb(unsalt_conf_t *conf, unsalt_dead_letter_cb *cb, void *opaque);

/** Writes the table of keys as Markdown: key, default, range, what it does. */
UNSALT_EXPORT void unsalt_conf_print_table(FILE *to);

#ifdef __cplusplus
}
#endif
#endif

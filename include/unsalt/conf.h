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

/** A configuration. Opaque. */
typedef struct unsalt_conf unsalt_conf_t;

/** Result of setting or reading a key. */
typedef enum {
    UNSALT_CONF_OK = 0,       /**< done */
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
/** Sets the log callback; `opaque` is passed to it and is the caller's. */
UNSALT_EXPORT void unsalt_conf_set_log_cb(unsalt_conf_t *conf, unsalt_log_cb *cb, void *opaque);

struct rd_kafka_message_s;
/**
 * The dead-letter callback, for late=dead-letter, malformed=dead-letter and budget.policy=dead-letter: it gets the
 * message for the time of the call; the library destroys it afterwards. `reason` is "late", "stale", "malformed" or
 * "budget". Called on the thread that is in the consumer; it may call what an event callback may (event.h). Not of a
 * relay: unsalt_conf_set_relay_dead_letter_cb().
 */
typedef void(unsalt_dead_letter_cb)(void *opaque, const struct rd_kafka_message_s *message, const char *reason);
/** Sets the dead-letter callback; `opaque` is passed to it and is the caller's. */
UNSALT_EXPORT void unsalt_conf_set_dead_letter_cb(unsalt_conf_t *conf, unsalt_dead_letter_cb *cb, void *opaque);

struct rd_kafka_topic_partition_list_s;
/** What becomes of partitions of a group; see unsalt_conf_set_assignment_cb(). */
typedef enum unsalt_assignment {
    UNSALT_ASSIGNED = 0, /**< they are assigned, and known is where reading begins: `offset` (RD_KAFKA_OFFSET_INVALID if
                              the cluster didn't tell in time). Nothing of them was handed out yet */
    UNSALT_REVOKING = 1, /**< they are to go; once for each revoke, at its start. What the application holds of them can
                              still be acknowledged and committed; nothing more of them comes (but for records that are
                              ready behind ones of a lane set of which only a part goes). With ack=manual they go when
                              all was acknowledged, or revoke.timeout.ms is over. With ack=auto everything that was
                              handed out counts as processed by now: the application came back for more */
    UNSALT_REVOKED = 2,  /**< they are gone, after an UNSALT_REVOKING; acknowledgements return __STATE, nothing is
                              committed for them any more. The frontier was committed, unless the application had set
                              enable.auto.commit=false */
    UNSALT_LOST = 3      /**< they are gone, and others may have been reading them since an unknown time: the member was
                              thrown out of the group. Instead of UNSALT_REVOKING and UNSALT_REVOKED, or of the latter
                              alone. What wasn't committed is delivered again, to whoever owns them now */
} unsalt_assignment_t;

/**
 * The assignment callback. `partitions` is borrowed and must not be changed. Called on the thread that is in poll,
 * batch, callback, commit or close, when the group gives or takes partitions; never for unsalt_assign(). It may call,
 * on that thread, unsalt_commit() and unsalt_message_info() (of messages that the last call handed out), and what an
 * event callback may: unsalt_ack(), unsalt_stats(), unsalt_wakeup(). All others, poll above all, return their error
 * (__CONFLICT). unsalt_commit() with async=0 keeps the group waiting as long as the coordinator doesn't answer.
 *
 * unsalt_send_offsets_to_transaction() and unsalt_transaction_committed() are allowed, too: at UNSALT_REVOKING an
 * application whose transaction spans polls acknowledges what is done, sends, commits the transaction, says so and
 * begins the next one; the new owners go on behind it. Without that, what is in the transaction must be aborted. At
 * UNSALT_LOST it is too late.
 */
typedef void(unsalt_assignment_cb)(void *opaque, unsalt_assignment_t what,
                                   const struct rd_kafka_topic_partition_list_s *partitions);
/**
 * Sets the assignment callback; `opaque` is passed to it and is the caller's. The rebalance callback of the
 * rd_kafka_conf_t, if any, goes on being called as well.
 */
UNSALT_EXPORT void unsalt_conf_set_assignment_cb(unsalt_conf_t *conf, unsalt_assignment_cb *cb, void *opaque);

/** What an extract callback tells of a record. All fields but `size` are set to "unknown" before the call. */
typedef struct unsalt_extract {
    size_t size;         /**< sizeof(unsalt_extract_t) of the library */
    const void *session; /**< session id, 1..session.id.max bytes. It must stay valid until the callback is called
                              again; one that points into the message's key or payload is quicker. NULL: the session
                              comes from `session.header`, `session.json` or the key */
    size_t session_len;  /**< in bytes */
    uint64_t seq;        /**< 0..UINT64_MAX - 1 */
    uint64_t epoch;      /**< run of the producer; 0: it doesn't number its runs */
    uint16_t lane;       /**< with `lanes`: seq mod lanes */
    uint16_t lanes;      /**< S of the session when this record was sent; 0: unknown */
    uint16_t flags;      /**< UNSALT_F_FIRST, UNSALT_F_LAST, no others */
    const char *fault;   /**< for UNSALT_EXTRACT_MALFORMED: what is wrong, static storage; may be NULL */
} unsalt_extract_t;

/** What an extract callback returns. */
typedef enum unsalt_extract_res {
    UNSALT_EXTRACT_NONE = 0,     /**< no sequence: the record passes through */
    UNSALT_EXTRACT_FOUND = 1,    /**< `seq` is set. Fields out of their range, and any other result: as MALFORMED */
    UNSALT_EXTRACT_MALFORMED = 2 /**< there should be one: event MALFORMED, then as `malformed` says */
} unsalt_extract_res_t;

/**
 * The extract callback, for seq.source=callback (and `auto`, as the last): reads session and sequence from a record.
 * The message is borrowed and must not be changed. Called on the thread that is in the consumer, for a record when it
 * is read (again if it has to wait for room before it is taken), and by unsalt_message_info(): it must answer the same.
 * It may call no function of that handle. `opaque` is the caller's.
 */
typedef unsalt_extract_res_t(unsalt_extract_cb)(void *opaque, const struct rd_kafka_message_s *message,
                                                unsalt_extract_t *found);
/** Sets the extract callback. */
UNSALT_EXPORT void unsalt_conf_set_extract_cb(unsalt_conf_t *conf, unsalt_extract_cb *cb, void *opaque);

/** Writes the table of keys as Markdown: key, default, range, what it does. */
UNSALT_EXPORT void unsalt_conf_print_table(FILE *to);

#ifdef __cplusplus
}
#endif
#endif

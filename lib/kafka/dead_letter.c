/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <kafka/dead_letter.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unsalt/pipeline.h>
#include <unsalt/wire.h>

static void add(rd_kafka_headers_t *to, const char *name, const void *value, size_t size) {
    rd_kafka_header_add(to, name, -1, value, (ssize_t)size);
}

static void add_text(rd_kafka_headers_t *to, const char *name, const char *text) {
    add(to, name, text, strlen(text));
}

static void add_number(rd_kafka_headers_t *to, const char *name, uint64_t number) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    add_text(to, name, text);
}

/* The library's: `unsalt` has another name there, and what an earlier dead letter says is said anew. */
static bool is_ours(const char *name) {
    return strcmp(name, UNSALT_HEADER_NAME) == 0 || strncmp(name, "unsalt.dead.", 12) == 0;
}

static void add_own(rd_kafka_headers_t *to, const rd_kafka_message_t *message) {
    rd_kafka_headers_t *own;
    const char *name;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(message, &own)) {
        return;
    }
    for (size_t i = 0; rd_kafka_header_get_all(own, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        if (!is_ours(name)) {
            add(to, name, value, size);
        }
    }
}

static void add_header(rd_kafka_headers_t *to, const rd_kafka_message_t *message) {
    rd_kafka_headers_t *own;
    const void *value;
    size_t size;
    if (!rd_kafka_message_headers(message, &own) &&
        !rd_kafka_header_get_last(own, UNSALT_HEADER_NAME, &value, &size)) {
        add(to, UNSALT_DEAD_HEADER, value, size);
    }
}

rd_kafka_headers_t *us_dead_letter_headers(const struct us_dead_letter *letter) {
    const rd_kafka_message_t *message = letter->message;
    rd_kafka_headers_t *to = rd_kafka_headers_new(24);
    add_own(to, message);
    add_text(to, UNSALT_DEAD_VERSION, "1");
    add_text(to, UNSALT_DEAD_REASON, letter->reason);
    add_text(to, UNSALT_DEAD_PHASE, letter->phase);
    add_text(to, UNSALT_DEAD_ERROR, letter->error);
    add_number(to, UNSALT_DEAD_ATTEMPTS, letter->attempts);
    if (letter->state) {
        add_text(to, UNSALT_DEAD_STATE, letter->state);
    }
    if (letter->session) {
        add(to, UNSALT_DEAD_SESSION, letter->session, letter->session_len);
    }
    if (letter->seq != UNSALT_NO_SEQ) {
        add_number(to, UNSALT_DEAD_SEQ, letter->seq);
        add_number(to, UNSALT_DEAD_EPOCH, letter->epoch);
    }
    if (letter->cursor != UNSALT_NO_SEQ) {
        add_number(to, UNSALT_DEAD_CURSOR, letter->cursor);
    }
    add_text(to, UNSALT_DEAD_TOPIC, rd_kafka_topic_name(message->rkt));
    add_number(to, UNSALT_DEAD_PARTITION, (uint64_t)message->partition);
    add_number(to, UNSALT_DEAD_OFFSET, (uint64_t)message->offset);
    if (message->key) {
        add(to, UNSALT_DEAD_KEY, message->key, message->key_len);
    }
    add_header(to, message);
    add_text(to, UNSALT_DEAD_GROUP, letter->group);
    return to;
}

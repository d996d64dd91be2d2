/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <codec/key_trailer.h>
#include <kafka/extract_record.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What librdkafka keeps beside payload and key of a message: the message, its queue entry, its share of the fetch. */
#define MESSAGE_OVERHEAD 400 /* measured by tests/broker/budget_pinned.c */

const char us_extract_nomem[] = "out of memory";

/* JSON gives sequences, and sessions to records without a key. */
static bool needs_json(const struct unsalt_conf *conf) {
    return conf->seq_source == US_SEQ_AUTO || conf->seq_source == US_SEQ_JSON || conf->session_json[0];
}

/* What is allocated; on failure the caller destroys. */
static bool allocate(struct us_extractor *x) {
    const struct unsalt_conf *conf = x->conf;
    struct us_conf_lanes lanes;
    if (!us_conf_lanes_init(&lanes, conf))
        return false;
    x->lanes = conf->lanes || conf->lane_topics ? lanes.topics.count : 0;
    us_conf_lanes_destroy(&lanes);
    if (needs_json(conf))
        x->json = us_json_new(&us_mem_default, conf->seq_json, conf->session_json, (uint32_t)conf->json_tokens_max);
    if (conf->session_header[0])
        x->named = us_alloc(&us_mem_default, (size_t)conf->session_id_max);
    return (x->json || !needs_json(conf)) && (x->named || !conf->session_header[0]);
}

bool us_extractor_init(struct us_extractor *x, const struct unsalt_conf *conf, char *errstr, size_t size) {
    memset(x, 0, sizeof *x);
    x->conf = conf;
    if (!us_salt_pattern_parse(conf->salt_pattern, &x->pattern)) {
        snprintf(errstr, size, "salt.pattern=\"%s\" is not a text followed by <k>", conf->salt_pattern);
        return false;
    }
    if (allocate(x))
        return true;
    us_extractor_destroy(x);
    snprintf(errstr, size, "out of memory");
    return false;
}

void us_extractor_destroy(struct us_extractor *x) {
    us_json_destroy(x->json);
    us_free(&us_mem_default, x->named);
    memset(x, 0, sizeof *x);
}

uint32_t us_pinned_bytes(const rd_kafka_message_t *message) {
    size_t bytes = message->len + message->key_len + MESSAGE_OVERHEAD;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* Sets every field but `part`, one by one: of a structure to be copied compilers make a string instruction. */
static void begin(const rd_kafka_message_t *message, unsalt_core_in_t *in) {
    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    in->msg = (void *)message;
    in->session = NULL;
    in->session_len = 0;
    in->seq = in->since = in->una = UNSALT_NO_SEQ;
    in->epoch = 0;
    in->offset = message->offset;
    /* The broker's time says when a copy was stored, not when the record was made. */
    in->timestamp = type == RD_KAFKA_TIMESTAMP_CREATE_TIME ? timestamp : -1;
    in->bytes = us_pinned_bytes(message);
    in->lane = in->lanes = in->flags = 0;
    in->kind = UNSALT_KIND_UNSEQUENCED;
}

/* Whether a payload begins as an object does: a plain topic is not searched for one in vain. */
static bool begins_object(const char *payload, size_t size) {
    size_t at = 0;
    while (at < size && (payload[at] == ' ' || (payload[at] >= '\t' && payload[at] <= '\r')))
        at++;
    return at < size && payload[at] == '{';
}

/*
 * With source `auto` a payload that isn't JSON, or lacks the field, is a plain record; but one that couldn't be
 * looked through might have had a sequence, and is told.
 */
static enum us_place read_payload(struct us_record *r) {
    const rd_kafka_message_t *message = r->message;
    bool expected = r->x->conf->seq_source == US_SEQ_JSON;
    enum us_json_fault fault = US_JSON_SYNTAX;
    if (!expected && r->x->conf->seq_source != US_SEQ_AUTO)
        return US_NOWHERE;
    if (message->payload && begins_object(message->payload, message->len))
        fault = us_json_read(r->x->json, message->payload, message->len, &r->found);
    if (fault == US_JSON_OK && r->found.has_seq) {
        r->in->seq = r->found.seq;
        return US_IN_PAYLOAD;
    }
    if (fault == US_JSON_OK)
        fault = r->found.seq_fault;
    if (fault == US_JSON_NOMEM)
        return US_UNREAD;
    r->fault = message->payload ? us_json_fault_text(fault) : "a record without a payload has no JSON field";
    return !expected && (fault == US_JSON_SYNTAX || fault == US_JSON_MISSING) ? US_NOWHERE : US_FAULTY;
}

/* With source `auto` a key that can't have a trailer is a plain one. A record without a key says nothing at all. */
static enum us_place read_key(struct us_record *r) {
    const struct unsalt_conf *conf = r->x->conf;
    unsigned digits = conf->seq_key == US_SEQ_KEY_DECIMAL ? (unsigned)conf->seq_key_digits : 0;
    bool expected = conf->seq_source == US_SEQ_KEY;
    if ((!expected && conf->seq_source != US_SEQ_AUTO) || conf->seq_key == US_SEQ_KEY_NONE || !r->message->key)
        return US_NOWHERE;
    switch (us_key_trailer_read(digits, r->message->key, r->message->key_len, &r->in->seq, &r->key_len)) {
    case US_TRAILER_FOUND:
        return US_IN_KEY;
    case US_TRAILER_NONE:
        r->fault = "the key doesn't end with a sequence as seq.key says";
        return expected ? US_FAULTY : US_NOWHERE;
    case US_TRAILER_RESERVED:
        break;
    }
    r->fault = "the sequence at the end of the key is above 2^64 - 2";
    return US_FAULTY;
}

/* Tries the sources in their order. */
static enum us_place find_sequence(struct us_record *r) {
    const struct unsalt_conf *conf = r->x->conf;
    int64_t source = conf->seq_source;
    enum us_place place = US_NOWHERE;
    if (source == US_SEQ_AUTO || source == US_SEQ_UNSALT || source == US_SEQ_HEADER)
        place = us_record_headers(r);
    if (place == US_NOWHERE)
        place = read_payload(r);
    if (place == US_NOWHERE)
        place = read_key(r);
    if (place == US_NOWHERE && conf->extract_cb && (source == US_SEQ_AUTO || source == US_SEQ_CALLBACK))
        place = us_record_callback(r);
    return place;
}

/* Makes the record one without a sequence again; text: why it is malformed, NULL: it isn't. */
static const char *unsequenced(unsalt_core_in_t *in, const char *text) {
    in->kind = text ? UNSALT_KIND_MALFORMED : UNSALT_KIND_UNSEQUENCED;
    in->session = NULL;
    in->session_len = 0;
    in->seq = in->since = in->una = UNSALT_NO_SEQ;
    in->epoch = 0;
    in->lane = in->lanes = in->flags = 0;
    return text;
}

/* A record whose session can't be used. A marker is never for the application, whatever its session. */
static const char *refused(unsalt_core_in_t *in, const char *text) {
    bool marker = in->flags & UNSALT_F_MARKER;
    unsequenced(in, text);
    if (marker)
        in->kind = UNSALT_KIND_CONTROL;
    return text;
}

const char *us_extract(struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in,
                       bool *session_borrowed) {
    struct us_record r;
    memset(&r, 0, offsetof(struct us_record, found));
    r.x = x;
    r.message = message;
    r.in = in;
    r.key_len = message->key_len;
    if (x->json) /* nothing else looks at it */
        r.found = (struct us_json_found){.session_fault = US_JSON_MISSING};
    *session_borrowed = false;
    begin(message, in);
    enum us_place place = find_sequence(&r);
    if (place == US_UNREAD)
        return unsequenced(in, us_extract_nomem);
    if (place == US_NOWHERE || place == US_FAULTY)
        return unsequenced(in, place == US_FAULTY ? r.fault : NULL);
    if (in->flags & UNSALT_F_HEARTBEAT) {
        in->kind = UNSALT_KIND_CONTROL;
        return NULL;
    }
    const char *text = us_record_session(&r, place);
    if (!text && in->session_len == 0)
        text = "the session id is empty";
    if (!text && in->session_len > (uint32_t)x->conf->session_id_max)
        text = "the session id is longer than session.id.max";
    if (text)
        return refused(in, text);
    if (in->lanes == 0)
        us_record_lanes(&r);
    *session_borrowed = r.borrowed;
    in->kind = in->flags & UNSALT_F_MARKER ? UNSALT_KIND_CONTROL : UNSALT_KIND_SEQUENCED;
    return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <codec/header.h>
#include <codec/plain.h>
#include <kafka/extract.h>
#include <stdio.h>
#include <string.h>

/* What librdkafka keeps beside payload and key of a message: the message, its queue entry, its share of the fetch. */
#define MESSAGE_OVERHEAD 512

/* Where a record's sequence was found. */
enum place {
    NOWHERE,
    IN_UNSALT_HEADER,
    IN_PLAIN_HEADER,
    IN_PAYLOAD,
    UNREAD, /* out of memory */
    FAULTY  /* there is a sign of one, but unusable: the text says why */
};

const char us_extract_nomem[] = "out of memory";

bool us_extractor_init(struct us_extractor *x, const struct unsalt_conf *conf, char *errstr, size_t size) {
    struct us_conf_lanes lanes;
    memset(x, 0, sizeof *x);
    x->conf = conf;
    if (!us_salt_pattern_parse(conf->salt_pattern, &x->pattern)) {
        snprintf(errstr, size, "salt.pattern=\"%s\" is not a text followed by <k>", conf->salt_pattern);
        return false;
    }
    if (!us_conf_lanes_init(&lanes, conf)) {
        snprintf(errstr, size, "out of memory");
        return false;
    }
    x->lanes = conf->lanes || conf->lane_topics ? lanes.topics.count : 0;
    us_conf_lanes_destroy(&lanes);
    if (conf->seq_source == US_SEQ_UNSALT)
        return true;
    x->json = us_json_new(&us_mem_default, conf->seq_json, conf->session_json, (uint32_t)conf->json_tokens_max);
    if (!x->json)
        snprintf(errstr, size, "out of memory");
    return x->json != NULL;
}

void us_extractor_destroy(struct us_extractor *x) {
    us_json_destroy(x->json);
    memset(x, 0, sizeof *x);
}

uint32_t us_pinned_bytes(const rd_kafka_message_t *message) {
    size_t bytes = message->len + message->key_len + MESSAGE_OVERHEAD;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static void begin(const rd_kafka_message_t *message, unsalt_core_in_t *in) {
    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    uint32_t part = in->part;
    *in = (unsalt_core_in_t){
        .msg = (void *)message,
        .part = part,
        .seq = UNSALT_NO_SEQ,
        .since = UNSALT_NO_SEQ,
        .una = UNSALT_NO_SEQ,
        .offset = message->offset,
        /* The broker's time says when a copy was stored, not when the record was made. */
        .timestamp = type == RD_KAFKA_TIMESTAMP_CREATE_TIME ? timestamp : -1,
        .bytes = us_pinned_bytes(message),
        .kind = UNSALT_KIND_UNSEQUENCED,
    };
}

static enum place read_unsalt_header(rd_kafka_headers_t *headers, unsalt_core_in_t *in, const char **text) {
    const void *bytes;
    size_t size;
    unsalt_header_t header;
    if (rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &bytes, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return NOWHERE;
    unsalt_header_fault_t fault = unsalt_header_read(bytes, bytes ? size : 0, &header);
    if (fault != UNSALT_HEADER_OK) {
        *text = unsalt_header_fault_text(fault);
        return FAULTY;
    }
    in->lane = header.lane;
    in->lanes = header.lanes;
    in->flags = header.flags;
    in->epoch = header.epoch;
    if (header.flags & UNSALT_F_HEARTBEAT)
        return IN_UNSALT_HEADER;
    in->seq = header.seq;
    in->since = header.since;
    in->una = header.una;
    return IN_UNSALT_HEADER;
}

static enum place read_plain_header(const struct us_extractor *x, rd_kafka_headers_t *headers, unsalt_core_in_t *in,
                                    const char **text) {
    const void *bytes;
    size_t size;
    if (rd_kafka_header_get_last(headers, x->conf->seq_header, &bytes, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return NOWHERE;
    if (bytes && us_plain_read(bytes, size, &in->seq))
        return IN_PLAIN_HEADER;
    *text = "the sequence header is neither 8 bytes nor a decimal number up to 2^64 - 2";
    return FAULTY;
}

/*
 * Detached, to be freed at once: librdkafka builds the list again from the record's bytes if the application asks for
 * it, a record that is held pins less, and the allocator gets back what it gave a moment ago, which is cheap.
 */
static rd_kafka_resp_err_t get_headers(const struct us_extractor *x, const rd_kafka_message_t *message,
                                       rd_kafka_headers_t **headers) {
    if (x->keep_headers)
        return rd_kafka_message_headers(message, headers);
    return rd_kafka_message_detach_headers((rd_kafka_message_t *)message, headers);
}

static enum place read_headers(const struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in,
                               const char **text) {
    rd_kafka_headers_t *headers;
    int64_t source = x->conf->seq_source;
    enum place place = NOWHERE;
    rd_kafka_resp_err_t err;
    if (source == US_SEQ_JSON)
        return NOWHERE;
    err = get_headers(x, message, &headers);
    if (err == RD_KAFKA_RESP_ERR__NOENT)
        return NOWHERE;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        *text = "the record's headers can't be parsed";
        return FAULTY;
    }
    if (source != US_SEQ_HEADER)
        place = read_unsalt_header(headers, in, text);
    if (place == NOWHERE && source != US_SEQ_UNSALT)
        place = read_plain_header(x, headers, in, text);
    if (!x->keep_headers)
        rd_kafka_headers_destroy(headers);
    return place;
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
static enum place read_payload(const struct us_extractor *x, const rd_kafka_message_t *message,
                               struct us_json_found *found, unsalt_core_in_t *in, const char **text) {
    bool expected = x->conf->seq_source == US_SEQ_JSON;
    enum us_json_fault fault = US_JSON_SYNTAX;
    if (!expected && x->conf->seq_source != US_SEQ_AUTO)
        return NOWHERE;
    if (message->payload && begins_object(message->payload, message->len))
        fault = us_json_read(x->json, message->payload, message->len, found);
    if (fault == US_JSON_OK && found->has_seq) {
        in->seq = found->seq;
        return IN_PAYLOAD;
    }
    if (fault == US_JSON_OK)
        fault = found->seq_fault;
    if (fault == US_JSON_NOMEM)
        return UNREAD;
    *text = message->payload ? us_json_fault_text(fault) : "a record without a payload has no JSON field";
    return !expected && (fault == US_JSON_SYNTAX || fault == US_JSON_MISSING) ? NOWHERE : FAULTY;
}

static struct us_salted_key split_key(const struct us_extractor *x, const rd_kafka_message_t *message, bool has_header,
                                      bool trust, const unsalt_core_in_t *in) {
    struct us_salt_evidence evidence = {
        .trust = trust,
        .has_header = has_header,
        .lane = in->lane,
        .lanes = has_header ? in->lanes : x->lanes,
        .seq = in->seq,
    };
    return us_salt_split(&x->pattern, message->key, message->key_len, &evidence);
}

/*
 * The lane of a record without an `unsalt` header whose session was found. One salted session doesn't say that all
 * are: a raw key may be that of an unsalted session, which stands in one partition whatever S is.
 */
static void lane_by_salt(const struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in) {
    bool salted = x->lanes == 1;
    if (x->lanes == 0 || x->conf->layout != US_LAYOUT_HASH)
        return;
    if (!salted && message->key) {
        struct us_salted_key key = split_key(x, message, false, false, in);
        salted = key.salt >= 0 && key.session_len == in->session_len &&
                 memcmp(message->key, in->session, in->session_len) == 0;
    }
    in->since = 0;
    if (salted) {
        in->lanes = x->lanes;
        in->lane = (uint16_t)(in->seq % x->lanes);
    }
}

/* Fills the session from the record key. Returns NULL or what is wrong with it. */
static const char *session_of_key(const struct us_extractor *x, const rd_kafka_message_t *message, bool has_header,
                                  unsalt_core_in_t *in) {
    if (!message->key)
        return "a record with a sequence, but without a key";
    in->session = message->key;
    in->session_len = message->key_len < UINT32_MAX ? (uint32_t)message->key_len : UINT32_MAX;
    if (x->conf->layout == US_LAYOUT_HASH || x->conf->salt_trust)
        in->session_len = (uint32_t)split_key(x, message, has_header, x->conf->salt_trust, in).session_len;
    return NULL;
}

static void session_of_json(const rd_kafka_message_t *message, const struct us_json_found *found,
                            unsalt_core_in_t *in, bool *session_borrowed) {
    uintptr_t at = (uintptr_t)found->session, payload = (uintptr_t)message->payload;
    in->session = found->session;
    in->session_len = found->session_len < UINT32_MAX ? (uint32_t)found->session_len : UINT32_MAX;
    *session_borrowed = at < payload || at - payload >= message->len;
}

/* Fills the session. Returns NULL or what is wrong. */
static const char *find_session(const struct us_extractor *x, const rd_kafka_message_t *message, enum place place,
                                struct us_json_found *found, unsalt_core_in_t *in, bool *session_borrowed) {
    bool looked = place == IN_PAYLOAD;
    if (!looked && !message->key && x->json && message->payload) {
        enum us_json_fault fault = us_json_read(x->json, message->payload, message->len, found);
        if (fault == US_JSON_NOMEM)
            return us_extract_nomem;
        looked = fault == US_JSON_OK;
    }
    if (looked && !found->has_session && found->session_fault == US_JSON_NOMEM)
        return us_extract_nomem;
    if (looked && found->has_session)
        session_of_json(message, found, in, session_borrowed);
    else if (looked && found->session_fault != US_JSON_MISSING && found->session_fault != US_JSON_OK)
        return us_json_fault_text(found->session_fault);
    else
        return session_of_key(x, message, place == IN_UNSALT_HEADER, in);
    return NULL;
}

/* Makes the record one without a sequence again. */
static const char *unsequenced(unsalt_core_in_t *in, const char *text) {
    in->kind = UNSALT_KIND_UNSEQUENCED;
    in->session = NULL;
    in->session_len = 0;
    in->seq = in->since = in->una = UNSALT_NO_SEQ;
    in->epoch = 0;
    in->lane = in->lanes = in->flags = 0;
    return text;
}

const char *us_extract(struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in,
                       bool *session_borrowed) {
    const char *text = NULL;
    struct us_json_found found = {.session_fault = US_JSON_MISSING};
    *session_borrowed = false;
    begin(message, in);
    enum place place = read_headers(x, message, in, &text);
    if (place == NOWHERE)
        place = read_payload(x, message, &found, in, &text);
    if (place == UNREAD)
        return unsequenced(in, us_extract_nomem);
    if (place == NOWHERE || place == FAULTY)
        return unsequenced(in, place == FAULTY ? text : NULL);
    if (in->flags & UNSALT_F_HEARTBEAT) {
        in->kind = UNSALT_KIND_CONTROL;
        return NULL;
    }
    text = find_session(x, message, place, &found, in, session_borrowed);
    if (!text && in->session_len == 0)
        text = "the session id is empty";
    if (!text && in->session_len > (uint32_t)x->conf->session_id_max)
        text = "the session id is longer than session.id.max";
    if (text)
        return unsequenced(in, text);
    if (place != IN_UNSALT_HEADER)
        lane_by_salt(x, message, in);
    in->kind = in->flags & UNSALT_F_MARKER ? UNSALT_KIND_CONTROL : UNSALT_KIND_SEQUENCED;
    return NULL;
}

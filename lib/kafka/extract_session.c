/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/extract_record.h>
#include <string.h>

/* In the other layouts keys are the session id, unless the configuration says that they are salted. */
static bool keys_may_be_salted(const struct us_extractor *x) {
    return x->conf->layout == US_LAYOUT_HASH || x->conf->salt_trust;
}

static struct us_salted_key split_key(const struct us_record *r, bool trust) {
    const unsalt_core_in_t *in = r->in;
    struct us_salt_evidence evidence = {
        .trust = trust,
        .has_header = in->lanes > 0, /* lane and lanes are the record's own word */
        .lane = in->lane,
        .lanes = in->lanes ? in->lanes : r->x->lanes,
        .seq = in->seq,
    };
    return us_salt_split(&r->x->pattern, r->message->key, r->key_len, &evidence);
}

static uint32_t length(size_t len) {
    return len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;
}

/* Fills the session from the record key. Returns NULL or what is wrong with it. */
static const char *session_of_key(struct us_record *r) {
    if (!r->message->key)
        return "a record with a sequence, but without a key";
    bool trust = r->x->conf->salt_trust;
    r->in->session = r->message->key;
    r->in->session_len = length(r->key_len);
    if (keys_may_be_salted(r->x)) {
        struct us_salted_key key = split_key(r, trust);
        r->in->session_len = length(key.session_len);
        r->was_split = !trust;
        r->split = key;
    }
    return NULL;
}

/* A faulty session field is told, and one that is missing leaves it to the key. */
static const char *session_of_json(struct us_record *r) {
    const struct us_json_found *found = &r->found;
    uintptr_t at = (uintptr_t)found->session, payload = (uintptr_t)r->message->payload;
    if (!found->has_session && found->session_fault == US_JSON_NOMEM)
        return us_extract_nomem;
    if (!found->has_session && found->session_fault != US_JSON_MISSING && found->session_fault != US_JSON_OK)
        return us_json_fault_text(found->session_fault);
    if (!found->has_session)
        return session_of_key(r);
    r->in->session = found->session;
    r->in->session_len = length(found->session_len);
    r->borrowed = at < payload || at - payload >= r->message->len;
    return NULL;
}

/* The session that is neither told by the callback nor named by a header. */
static const char *session_of_record(struct us_record *r, enum us_place place) {
    const rd_kafka_message_t *message = r->message;
    bool looked = place == US_IN_PAYLOAD;
    if (!looked && !message->key && r->x->json && message->payload) {
        enum us_json_fault fault = us_json_read(r->x->json, message->payload, message->len, &r->found);
        if (fault == US_JSON_NOMEM)
            return us_extract_nomem;
        looked = fault == US_JSON_OK;
    }
    return looked ? session_of_json(r) : session_of_key(r);
}

const char *us_record_session(struct us_record *r, enum us_place place) {
    if (r->told) {
        r->in->session = r->told;
        r->in->session_len = r->told_len;
        return NULL;
    }
    if (r->x->named && !r->headers_read && us_record_headers(r) == US_FAULTY)
        return r->fault;
    if (r->named_fault)
        return r->named_fault;
    if (r->named_len == 0)
        return session_of_record(r, place);
    r->in->session = r->x->named;
    r->in->session_len = r->named_len;
    r->borrowed = true;
    return NULL;
}

/*
 * One salted session doesn't say that all are: a raw key may be that of an unsalted session, which stands in one
 * partition whatever S is.
 */
void us_record_lanes(const struct us_record *r) {
    unsalt_core_in_t *in = r->in;
    uint16_t lanes = r->x->lanes;
    bool salted = lanes == 1;
    if (lanes == 0 || r->x->conf->layout == US_LAYOUT_TOPICS)
        return;
    in->since = 0;
    if (!salted && r->was_split) { /* by the same evidence: nothing has told its lanes since */
        if (r->split.salt >= 0) {
            in->lanes = lanes;
            in->lane = (uint16_t)r->split.salt; /* seq mod lanes, see us_salt_split() */
        }
        return;
    }
    if (!salted && r->message->key && r->x->conf->layout == US_LAYOUT_HASH) {
        struct us_salted_key key = split_key(r, false);
        salted = key.salt >= 0 && key.session_len == in->session_len &&
                 memcmp(r->message->key, in->session, in->session_len) == 0;
    }
    if (salted) {
        in->lanes = lanes;
        in->lane = (uint16_t)(in->seq % lanes);
    }
}

uint32_t us_extract_base_key(const struct us_extractor *x, const rd_kafka_message_t *message) {
    struct us_salt_evidence evidence = {.trust = x->conf->salt_trust, .seq = UNSALT_NO_SEQ};
    if (!evidence.trust)
        return length(message->key_len);
    return length(us_salt_split(&x->pattern, message->key, message->key_len, &evidence).session_len);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a message to session and sequence: headers, keys and payloads of any bytes under any combination of the
 * settings that matter. Messages are made here: the calls of librdkafka that look into them are replaced in this
 * program, so it must not be linked to anything that reads real ones.
 */
#include <codec/murmur2.h>
#include <fuzz/fuzz.h>
#include <kafka/extract.h>
#include <unsalt/wire.h>

struct fake {
    rd_kafka_message_t message; /* first: what the library sees */
    rd_kafka_headers_t *headers;
    rd_kafka_resp_err_t headers_err;
    rd_kafka_timestamp_type_t time_type;
};

rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *message, rd_kafka_headers_t **headers) {
    const struct fake *fake = (const struct fake *)message;
    if (fake->headers_err)
        return fake->headers_err;
    *headers = fake->headers;
    return fake->headers ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__NOENT;
}

rd_kafka_resp_err_t rd_kafka_message_detach_headers(rd_kafka_message_t *message, rd_kafka_headers_t **headers) {
    rd_kafka_resp_err_t err = rd_kafka_message_headers(message, headers);
    if (!err)
        *headers = rd_kafka_headers_copy(*headers);
    return err;
}

int64_t rd_kafka_message_timestamp(const rd_kafka_message_t *message, rd_kafka_timestamp_type_t *type) {
    *type = ((const struct fake *)message)->time_type;
    return message->offset;
}

struct bytes {
    const uint8_t *at;
    size_t left;
};

static unsigned byte(struct bytes *b) {
    if (!b->left)
        return 0;
    b->left--;
    return *b->at++;
}

/* A length and so many bytes, as a block of their own. NULL: none. Owned by the caller. */
static void *block(struct bytes *b, size_t *len) {
    unsigned wanted = byte(b);
    *len = 0;
    if (wanted == 255)
        return NULL;
    *len = wanted == 254 ? b->left : wanted < b->left ? wanted : b->left;
    char *copy = malloc(*len ? *len : 1);
    FUZZ_CHECK(copy, "out of memory");
    memcpy(copy, b->at, *len);
    b->at += *len;
    b->left -= *len;
    return copy;
}

static void set(unsalt_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    FUZZ_CHECK(unsalt_conf_set(conf, name, value, errstr, sizeof errstr) == UNSALT_CONF_OK, "%s", errstr);
}

static unsalt_conf_t *settings(struct bytes *b) {
    static const char *const sources[] = {"auto", "unsalt", "header", "json"}, *const lanes[] = {"0", "1", "2", "7"},
                             *const patterns[] = {"#<k>", "#salt_<k>", "_SALT_<k>"}, *const ids[] = {"256", "1", "9"};
    unsalt_conf_t *conf = unsalt_conf_new();
    FUZZ_CHECK(conf, "out of memory");
    unsigned how = byte(b), more = byte(b);
    set(conf, "seq.source", sources[how % 4]);
    set(conf, "lanes", lanes[how / 4 % 4]);
    set(conf, "layout", how / 16 % 2 ? "topics" : "hash");
    set(conf, "salt.trust", how / 32 % 2 ? "true" : "false");
    set(conf, "session.json", how / 64 % 2 ? "" : "sessionId");
    set(conf, "salt.pattern", patterns[more % 3]);
    set(conf, "session.id.max", ids[more / 4 % 3]);
    return conf;
}

/* Up to three headers, the names that count among them. */
static void headers(struct bytes *b, struct fake *fake) {
    static const char *const names[] = {"unsalt", "seq", "other"};
    unsigned n = byte(b) % 4;
    fake->headers = n ? rd_kafka_headers_new(n) : NULL;
    for (unsigned i = 0; i < n; i++) {
        size_t len;
        const char *name = names[byte(b) % 3];
        void *value = block(b, &len);
        rd_kafka_header_add(fake->headers, name, -1, value, (ssize_t)len);
        free(value);
    }
}

static bool within(const void *at, size_t len, const void *block, size_t size) {
    uintptr_t a = (uintptr_t)at, from = (uintptr_t)block;
    return block && a >= from && len <= size && a - from <= size - len;
}

static void check(const struct us_extractor *x, const struct fake *fake, const unsalt_core_in_t *in, bool borrowed,
                  const char *text) {
    const rd_kafka_message_t *m = &fake->message;
    bool control = in->kind == UNSALT_KIND_CONTROL, heartbeat = control && in->flags & UNSALT_F_HEARTBEAT;
    FUZZ_CHECK(in->kind <= UNSALT_KIND_MALFORMED && in->msg == m && in->part == 3 && in->offset == m->offset, "record");
    FUZZ_CHECK(!text || in->kind == UNSALT_KIND_MALFORMED || control, "a fault, and sequenced: %s", text);
    FUZZ_CHECK(text || in->kind != UNSALT_KIND_MALFORMED, "malformed without a fault");
    FUZZ_CHECK(!in->lanes || in->lane < in->lanes, "lane %u of %u", in->lane, in->lanes);
    if (text || in->kind == UNSALT_KIND_UNSEQUENCED) {
        FUZZ_CHECK(!in->session && !in->session_len && in->seq == UNSALT_NO_SEQ && !in->lanes && !in->flags,
                   "left over");
        return;
    }
    if (heartbeat)
        return;
    FUZZ_CHECK(in->seq != UNSALT_NO_SEQ && (control ? in->flags & UNSALT_F_MARKER : 1), "number or marker");
    FUZZ_CHECK(in->session_len >= 1 && in->session_len <= (uint64_t)x->conf->session_id_max, "id of %u bytes",
               in->session_len);
    bool in_message = within(in->session, in->session_len, m->key, m->key_len) ||
                      within(in->session, in->session_len, m->payload, m->len);
    FUZZ_CHECK(in_message != borrowed, "the id is borrowed: %d, in the message: %d", borrowed, in_message);
}

FUZZ(extract) {
    struct bytes b = {data, size};
    struct us_extractor x;
    char errstr[256];
    bool borrowed, again;
    unsalt_conf_t *conf = settings(&b);
    struct fake fake = {.message = {.offset = 5}};
    unsalt_core_in_t in = {.part = 3}, second = {.part = 3};
    FUZZ_CHECK(us_extractor_init(&x, conf, errstr, sizeof errstr), "%s", errstr);
    unsigned how = byte(&b);
    x.keep_headers = how & 1;
    fake.headers_err = how >= 240 ? RD_KAFKA_RESP_ERR__BAD_MSG : RD_KAFKA_RESP_ERR_NO_ERROR;
    fake.time_type = (rd_kafka_timestamp_type_t)(how / 2 % 3);
    headers(&b, &fake);
    fake.message.key = block(&b, &fake.message.key_len);
    fake.message.payload = block(&b, &fake.message.len);
    const char *text = us_extract(&x, &fake.message, &in, &borrowed);
    check(&x, &fake, &in, borrowed, text);
    const char *same = us_extract(&x, &fake.message, &second, &again);
    FUZZ_CHECK(same == text && again == borrowed && in.seq == second.seq && in.session_len == second.session_len &&
                   in.kind == second.kind && in.lane == second.lane && in.lanes == second.lanes,
               "not the same twice");
    FUZZ_CHECK(us_murmur2(in.session, in.session_len) == us_murmur2(second.session, second.session_len), "id");
    free(fake.message.key);
    free(fake.message.payload);
    if (fake.headers)
        rd_kafka_headers_destroy(fake.headers);
    us_extractor_destroy(&x);
    unsalt_conf_destroy(conf);
    return 0;
}

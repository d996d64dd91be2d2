/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it costs to read session and sequence out of a message, by source, and of JSON by where the field stands. Those
 * of headers need a real message, whose header list librdkafka parses: the benchmark `consumer` has them. Here the two
 * functions of librdkafka that are asked for a message's headers and time answer that there are none.
 */
#include "report.h"
#include <kafka/extract.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/wire.h>

enum { ROUNDS = 9, TURNS = 200000 };

rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *message, rd_kafka_headers_t **headers) {
    (void)message;
    *headers = NULL;
    return RD_KAFKA_RESP_ERR__NOENT;
}

rd_kafka_resp_err_t rd_kafka_message_detach_headers(rd_kafka_message_t *message, rd_kafka_headers_t **headers) {
    return rd_kafka_message_headers(message, headers);
}

int64_t rd_kafka_message_timestamp(const rd_kafka_message_t *message, rd_kafka_timestamp_type_t *type) {
    (void)message;
    *type = RD_KAFKA_TIMESTAMP_CREATE_TIME;
    return 1;
}

static void fail(const char *what) {
    fprintf(stderr, "bench: sources: %s\n", what);
    exit(1);
}

static unsalt_extract_res_t found(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *out) {
    (void)opaque;
    out->session = message->key;
    out->session_len = 10;
    out->seq = 17;
    return UNSALT_EXTRACT_FOUND;
}

struct source {
    const char *name, *settings; /* key=value, separated by blanks */
    const char *key, *payload;
    size_t key_len;
};

#define DATA "\"type\":\"paid\",\"data\":{\"total\":1999,\"items\":[{\"sku\":\"a-1\",\"n\":2},{\"sku\":\"b-7\"}]}}"
static const char flat[] = "{\"sessionId\":\"order-4711\",\"globalSeq\":17," DATA;
static const char nested[] = "{\"meta\":{\"session\":\"order-4711\",\"seq\":17}," DATA;
static const char escaped[] = "{\"session\\u0049d\":\"order\\u002d4711\",\"global\\u0053eq\":17," DATA;

static const struct source sources[] = {
    {"json_top_level", "seq.source=json", "k", flat, 1},
    {"json_nested", "seq.source=json seq.json=/meta/seq session.json=/meta/session", "k", nested, 1},
    {"json_escaped_names", "seq.source=json", "k", escaped, 1},
    {"key_binary", "seq.source=key seq.key=binary", "order-4711\0\0\0\0\0\0\0\021", "x", 18},
    {"key_decimal", "seq.source=key seq.key=decimal", "order-471100000000000000000017", "x", 30},
    {"callback", "seq.source=callback", "order-4711", "x", 10},
};

static unsalt_conf_t *configure(const char *settings) {
    char text[256], errstr[256], *rest = text;
    unsalt_conf_t *conf = unsalt_conf_new();
    unsalt_conf_set_extract_cb(conf, found, NULL);
    snprintf(text, sizeof text, "%s", settings);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        if (unsalt_conf_set(conf, word, value, errstr, sizeof errstr))
            fail(errstr);
    }
    return conf;
}

static double measure(struct us_extractor *x, const rd_kafka_message_t *message) {
    unsalt_core_in_t in = {0};
    bool borrowed;
    double began = bench_cpu();
    for (int i = 0; i < TURNS; i++)
        if (us_extract(x, message, &in, &borrowed) || in.seq != 17 || in.session_len != 10)
            fail("a record was not read");
    return (bench_cpu() - began) / TURNS * 1e9;
}

int main(void) {
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        const struct source *source = &sources[s];
        unsalt_conf_t *conf = configure(source->settings);
        rd_kafka_message_t message = {.key = (void *)source->key, .key_len = source->key_len,
                                      .payload = (void *)source->payload, .len = strlen(source->payload)};
        struct us_extractor x;
        char errstr[256], name[64];
        double rounds[ROUNDS];
        if (!us_extractor_init(&x, conf, errstr, sizeof errstr))
            fail(errstr);
        for (int i = 0; i < ROUNDS; i++)
            rounds[i] = measure(&x, &message);
        snprintf(name, sizeof name, "sources %s", source->name);
        bench_spread(name, "time_per_record", "ns", rounds, NULL, NULL, ROUNDS);
        us_extractor_destroy(&x);
        unsalt_conf_destroy(conf);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "topic.h"
#include "report.h"
#include <codec/murmur2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 100, COLD = 1000, ID_MAX = 32, KEY_MAX = 48, PAYLOAD_MAX = 1 << 16, TEXT = 1 << 22, UNRESOLVED = 1000 };

static char name[64];
static long failures;
static int sessions_made = -1; /* for which traffic */

/* A session, and where its lanes live. */
struct session {
    char id[ID_MAX];
    int32_t partition[TOPIC_LANES];
    uint64_t seq;
    uint16_t lanes;
};

void topic_fail(const char *why) {
    fprintf(stderr, "bench: %s\n", why);
    exit(1);
}

rd_kafka_conf_t *topic_client_conf(void) {
    const char *bootstrap = getenv("UNSALT_TEST_BOOTSTRAP");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char errstr[256];
    if (!bootstrap || !*bootstrap)
        topic_fail("UNSALT_TEST_BOOTSTRAP is not set: use `make bench`");
    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, errstr, sizeof errstr))
        topic_fail(errstr);
    return conf;
}

rd_kafka_conf_t *topic_consumer_conf(void) {
    rd_kafka_conf_t *conf = topic_client_conf();
    rd_kafka_conf_set(conf, "group.id", name, NULL, 0);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", NULL, 0);
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", NULL, 0);
    /* A full queue makes librdkafka wait up to a second before it fetches again: no time of ours. */
    rd_kafka_conf_set(conf, "queued.min.messages", "1000000", NULL, 0);
    rd_kafka_conf_set(conf, "queued.max.messages.kbytes", "1048576", NULL, 0);
    return conf;
}

unsalt_conf_t *topic_unsalt_conf(void) {
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[256] = "out of memory";
    if (!conf || unsalt_conf_set(conf, "partitions", "8", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "lanes", "4", errstr, sizeof errstr))
        topic_fail(errstr);
    return conf;
}

rd_kafka_topic_partition_list_t *topic_partitions(void) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(TOPIC_PARTITIONS);
    for (int i = 0; i < TOPIC_PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, name, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    return list;
}

const char *topic_name(void) {
    return name;
}

/* ---- the topic itself */

static void wait_for(rd_kafka_queue_t *queue, const char *what) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    if (!event || rd_kafka_event_error(event))
        topic_fail(event ? rd_kafka_event_error_string(event) : what);
    rd_kafka_event_destroy(event);
}

static void create(rd_kafka_t *rk) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, TOPIC_PARTITIONS, 1, NULL, 0);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    wait_for(queue, "the topic can't be created");
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
}

bool topic_use(const char *wanted) {
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, topic_client_conf(), NULL, 0);
    const rd_kafka_metadata_t *metadata;
    bool found = false;
    if (rd_kafka_metadata(rk, 1, NULL, &metadata, 20000))
        topic_fail("the cluster says nothing");
    for (int i = 0; i < metadata->topic_cnt; i++)
        found |= strcmp(metadata->topics[i].topic, wanted) == 0;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_destroy(rk);
    if (found)
        snprintf(name, sizeof name, "%s", wanted);
    return found;
}

void topic_close(void) {
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, topic_client_conf(), NULL, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, queue);
    wait_for(queue, "the topic can't be deleted");
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

/* ---- sessions */

/* Hot ones are given names whose lanes are in partitions of their own. */
static bool place(struct session *session) {
    for (uint16_t k = 0; k < session->lanes; k++) {
        char key[KEY_MAX];
        int n = session->lanes > 1 ? snprintf(key, sizeof key, "%s#%u", session->id, k)
                                   : snprintf(key, sizeof key, "%s", session->id);
        session->partition[k] = us_murmur2_partition(key, (size_t)n, TOPIC_PARTITIONS);
        for (uint16_t other = 0; other < k; other++)
            if (session->partition[other] == session->partition[k])
                return false;
    }
    return true;
}

static struct session *sessions_of(enum traffic traffic, long *hot) {
    static struct session sessions[HOT + COLD];
    *hot = traffic == TRAFFIC_ONE_HOT ? 1 : HOT;
    if (sessions_made == (int)traffic)
        return sessions;
    unsigned word = 0;
    for (long i = 0; i < HOT + COLD; i++) {
        sessions[i] = (struct session){.lanes = i < *hot && traffic != TRAFFIC_RAW_KEYS ? TOPIC_LANES : 1};
        do {
            snprintf(sessions[i].id, ID_MAX, "order-%u", word++);
        } while (!place(&sessions[i]));
    }
    sessions_made = (int)traffic;
    return sessions;
}

/* Whose turn it is. */
static struct session *turn(enum traffic traffic, long wanted, long i) {
    static struct session once;
    static long number;
    long hot;
    if (traffic == TRAFFIC_ONCE) {
        once = (struct session){.lanes = 1};
        snprintf(once.id, ID_MAX, "session-%ld", number++);
        place(&once);
        return &once;
    }
    struct session *sessions = sessions_of(traffic, &hot);
    if (traffic != TRAFFIC_ONE_HOT)
        return &sessions[i % (wanted ? wanted : hot)];
    return i % 2 ? &sessions[0] : &sessions[1 + i / 2 % COLD];
}

/* ---- records */

/* Text of 512 words in random order. */
static const char *words(unsigned seed, long i, size_t size) {
    static char text[TEXT + PAYLOAD_MAX];
    if (!text[0]) {
        uint32_t random = seed * 2654435761u + 1;
        for (size_t at = 0; at < sizeof text;) {
            random = random * 1664525u + 1013904223u;
            uint32_t word = (random >> 16) % 512 * 2246822519u + 374761393u;
            for (uint32_t k = 0; k < 4 + word % 5 && at < sizeof text; k++)
                text[at++] = (char)('a' + (word >> (4 * k)) % 16);
            if (at < sizeof text)
                text[at++] = ' ';
        }
    }
    return text + (uint64_t)i * (size + 17) % TEXT;
}

struct record {
    char key[KEY_MAX], payload[PAYLOAD_MAX];
    size_t key_len;
    rd_kafka_headers_t *headers; /* NULL: none */
    int32_t partition;
};

static void stamp(struct record *record, const struct session *session, uint64_t seq, enum form form) {
    uint16_t lane = (uint16_t)(seq % session->lanes);
    unsigned char bytes[UNSALT_HEADER_SIZE];
    char digits[24];
    int n = session->lanes > 1 ? snprintf(record->key, KEY_MAX, "%s#%u", session->id, lane)
                               : snprintf(record->key, KEY_MAX, "%s", session->id);
    unsalt_header_t header = {.lane = lane, .lanes = session->lanes, .epoch = 1, .seq = seq, .since = 1,
                              .una = seq > UNRESOLVED ? seq - UNRESOLVED : 1};
    record->key_len = (size_t)n;
    record->partition = session->partition[lane];
    record->headers = form == FORM_HEADER || form == FORM_PLAIN ? rd_kafka_headers_new(1) : NULL;
    if (form == FORM_HEADER) {
        unsalt_header_write(&header, bytes);
        rd_kafka_header_add(record->headers, UNSALT_HEADER_NAME, -1, bytes, sizeof bytes);
    } else if (form == FORM_PLAIN) {
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)seq);
        rd_kafka_header_add(record->headers, "seq", -1, digits, -1);
    } else if (form == FORM_KEY) {
        record->key_len += unsalt_key_trailer_write(seq, 0, record->key + n, sizeof record->key - (size_t)n);
    }
}

static void fill_payload(struct record *record, const struct topic_load *load, const struct session *session,
                         uint64_t seq, long i) {
    size_t at = 0;
    if (load->form == FORM_JSON)
        at = (size_t)snprintf(record->payload, PAYLOAD_MAX, "{\"sessionId\":\"%s\",\"globalSeq\":%llu,\"data\":\"",
                              session->id, (unsigned long long)seq);
    memcpy(record->payload + at, words(load->seed, i, load->payload), load->payload - at);
    if (load->form == FORM_JSON)
        memcpy(record->payload + load->payload - 2, "\"}", 2);
}

static void send_one(rd_kafka_t *rk, rd_kafka_topic_t *topic, struct record *record, size_t payload) {
    rd_kafka_resp_err_t err;
    for (;;) {
        rd_kafka_headers_t *headers = record->headers;
        err = rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(record->partition),
                                RD_KAFKA_V_KEY(record->key, record->key_len),
                                RD_KAFKA_V_VALUE(record->payload, payload),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            break;
        rd_kafka_poll(rk, 5);
    }
    if (err)
        topic_fail(rd_kafka_err2str(err));
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    (void)opaque;
    failures += message->err != 0;
}

static rd_kafka_t *open_producer(const char *codec) {
    rd_kafka_conf_t *conf = topic_client_conf();
    char errstr[512];
    rd_kafka_conf_set(conf, "linger.ms", "20", NULL, 0);
    rd_kafka_conf_set(conf, "enable.idempotence", "true", NULL, 0);
    rd_kafka_conf_set(conf, "queue.buffering.max.messages", "200000", NULL, 0);
    rd_kafka_conf_set(conf, "compression.codec", codec, NULL, 0);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!rk)
        topic_fail(errstr);
    return rk;
}

void topic_more(const struct topic_load *load) {
    static struct record record;
    rd_kafka_t *rk = open_producer(load->codec);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    if (load->payload < 64 || load->payload > PAYLOAD_MAX)
        topic_fail("a payload is 64 to 65536 bytes long here");
    for (long i = 0; i < load->records; i++) {
        struct session *session = turn(load->traffic, load->sessions, i);
        uint64_t seq = ++session->seq;
        stamp(&record, session, seq, load->form);
        fill_payload(&record, load, session, seq, i);
        send_one(rk, topic, &record, load->payload);
        if (i % 1000 == 0)
            rd_kafka_poll(rk, 0);
    }
    if (rd_kafka_flush(rk, 120000) || failures)
        topic_fail("the topic can't be filled");
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

void topic_open(const char *wanted, const struct topic_load *load) {
    double began = bench_wall();
    sessions_made = -1;
    if (wanted)
        snprintf(name, sizeof name, "%s", wanted);
    else
        snprintf(name, sizeof name, "bench-%d-%ld-%ld", (int)load->traffic, (long)time(NULL), (long)getpid());
    rd_kafka_t *rk = open_producer("none");
    create(rk);
    rd_kafka_destroy(rk);
    topic_more(load);
    fprintf(stderr, "bench: %ld records in %d partitions after %.1f s\n", load->records, TOPIC_PARTITIONS,
            bench_wall() - began);
}

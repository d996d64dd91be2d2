/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traffic of the demo. The cold sessions go through unsalt's producer. The hot one is stamped by hand, as a gateway
 * in another language would do it, so that its lanes can be held up: each of them is sent from a queue of its own that
 * is emptied at its own pace.
 */
#include "demo.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOT_RECORDS = DEMO_HOT_RATE * DEMO_SECONDS, COLD_RECORDS = DEMO_COLD_RATE * DEMO_SECONDS };

/* How long, in seconds, a lane gathers records before it sends them. */
static const double pace[DEMO_LANES] = {0.001, 0.02, 0.06, 0.15};
/* Lane 1 sends nothing in this time, counted from the start. */
static const double stuck_from = 1.5, stuck_until = 1.8;

void demo_tell_traffic(void) {
    double longest = 0;
    for (int k = 0; k < DEMO_LANES; k++)
        longest = pace[k] > longest ? pace[k] : longest;
    printf("demo: on purpose, lanes of %s are held up by up to %.0f ms, lane 1 once by %.0f ms;\n"
           "      every %dth record of it comes twice; number %llu is never sent\n",
           DEMO_HOT, longest * 1e3, (stuck_until - stuck_from) * 1e3, DEMO_COPY_EVERY,
           (unsigned long long)DEMO_MISSING);
}

struct lane {
    uint64_t unsent; /* lowest number that is stamped and not sent */
    double due;      /* when the queue is emptied next */
};

struct traffic {
    struct demo *demo;
    rd_kafka_t *rk;            /* sends the hot session */
    unsalt_producer_t *cold;
    double began;
    uint64_t stamped;          /* highest number of the hot session so far */
    uint64_t unresolved;       /* its lowest number that is not answered */
    uint64_t cold_sent;
    struct lane lanes[DEMO_LANES];
    unsigned char headers[HOT_RECORDS + 1][UNSALT_HEADER_SIZE];
    bool answered[HOT_RECORDS + 2];
};

static const char *const words[3] = {"session", "number", "run"};

/* A delivery report is the cluster's word that it has the record: that, and nothing else, is logged as accepted. */
static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct traffic *traffic = opaque;
    struct demo *demo = traffic->demo;
    struct checker_record record = {.partition = message->partition, .offset = message->offset};
    bool copy = false;
    (void)rk;
    if (message->err || checker_parse(message->payload, message->len, &record) != 0) {
        demo_fail(demo, "a record was not accepted", rd_kafka_message_errstr(message));
        return;
    }
    if (record.session_len == strlen(DEMO_HOT) && memcmp(record.session, DEMO_HOT, record.session_len) == 0) {
        copy = traffic->answered[record.seq];
        traffic->answered[record.seq] = true;
        while (traffic->answered[traffic->unresolved])
            traffic->unresolved++;
    }
    checker_log_record(demo->accepted, &record);
    atomic_fetch_add(&demo->accepted_records, 1);
    if (!copy)
        atomic_fetch_add(&demo->accepted_distinct, 1);
}

static void stamp(struct traffic *traffic, uint64_t seq) {
    unsalt_header_t header = {
        .flags = seq == 1 ? UNSALT_F_FIRST : 0,
        .lane = (uint16_t)(seq % DEMO_LANES),
        .lanes = DEMO_LANES,
        .epoch = 1,
        .seq = seq,
        .since = 1,
        .una = traffic->unresolved,
    };
    if (unsalt_header_write(&header, traffic->headers[seq]) != UNSALT_HEADER_OK)
        demo_fail(traffic->demo, "header", "refused by unsalt_header_write()");
    traffic->stamped = seq;
}

static void send_hot(struct traffic *traffic, uint64_t seq) {
    struct checker_record record = {.session = DEMO_HOT, .session_len = strlen(DEMO_HOT), .epoch = 1, .seq = seq};
    char payload[DEMO_PAYLOAD], key[32];
    int key_len = snprintf(key, sizeof key, "%s#%d", DEMO_HOT, (int)(seq % DEMO_LANES));
    int32_t partition = rd_kafka_msg_partitioner_murmur2(NULL, key, (size_t)key_len, DEMO_PARTITIONS, NULL, NULL);
    rd_kafka_resp_err_t err;
    checker_payload(payload, sizeof payload, words, &record);
    do {
        err = rd_kafka_producev(traffic->rk, RD_KAFKA_V_TOPIC(traffic->demo->topic), RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_KEY(key, (size_t)key_len), RD_KAFKA_V_VALUE(payload, sizeof payload),
                                RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, traffic->headers[seq], UNSALT_HEADER_SIZE),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(traffic->rk, 10);
    } while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    if (err)
        demo_fail(traffic->demo, "the hot session can't be sent", rd_kafka_err2str(err));
}

static void empty_lane(struct traffic *traffic, struct lane *lane) {
    for (; lane->unsent <= traffic->stamped; lane->unsent += DEMO_LANES) {
        if (lane->unsent == DEMO_MISSING)
            continue;
        send_hot(traffic, lane->unsent);
        if (lane->unsent % DEMO_COPY_EVERY == 0)
            send_hot(traffic, lane->unsent);
    }
}

static void send_cold(struct traffic *traffic) {
    uint64_t n = traffic->cold_sent++;
    char name[32], payload[DEMO_PAYLOAD];
    struct checker_record record = {.session = name, .epoch = 1, .seq = n / DEMO_COLD + 1};
    rd_kafka_resp_err_t err;
    record.session_len = (size_t)snprintf(name, sizeof name, "till-%d", 100 + (int)(n % DEMO_COLD));
    checker_payload(payload, sizeof payload, words, &record);
    err = unsalt_produce(traffic->cold, traffic->demo->topic, name, record.session_len, payload, sizeof payload, NULL);
    if (err)
        demo_fail(traffic->demo, "a cold session can't be sent", rd_kafka_err2str(err));
}

/* One step: whatever has become due since the last one. */
static void step(struct traffic *traffic) {
    double at = demo_now() - traffic->began;
    double share = at < DEMO_SECONDS ? at / DEMO_SECONDS : 1;
    int k;
    while (traffic->stamped < (uint64_t)(share * HOT_RECORDS))
        stamp(traffic, traffic->stamped + 1);
    for (k = 0; k < DEMO_LANES; k++) {
        struct lane *lane = &traffic->lanes[k];
        if (k == 1 && at > stuck_from && at < stuck_until)
            continue;
        if (at < lane->due && share < 1)
            continue;
        empty_lane(traffic, lane);
        lane->due = at + pace[k];
    }
    while (traffic->cold_sent < (uint64_t)(share * COLD_RECORDS))
        send_cold(traffic);
    rd_kafka_poll(traffic->rk, 0);
    unsalt_producer_poll(traffic->cold, 0);
}

static bool start(struct traffic *traffic) {
    char errstr[512];
    rd_kafka_conf_t *conf = demo_conf(traffic->demo), *cold_conf;
    unsalt_conf_t *lanes = demo_unsalt_conf("1");
    int k;
    demo_set(conf, "enable.idempotence", "true");
    demo_set(conf, "linger.ms", "2");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, traffic);
    cold_conf = rd_kafka_conf_dup(conf);
    traffic->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!traffic->rk)
        rd_kafka_conf_destroy(conf);
    else
        traffic->cold = unsalt_producer_new(cold_conf, lanes, errstr, sizeof errstr);
    if (!traffic->cold) {
        rd_kafka_conf_destroy(cold_conf);
        unsalt_conf_destroy(lanes);
        demo_fail(traffic->demo, "producer", errstr);
        return false;
    }
    for (k = 0; k < DEMO_LANES; k++)
        traffic->lanes[k].unsent = k ? (uint64_t)k : DEMO_LANES;
    traffic->unresolved = 1;
    return true;
}

/* The first record of every session, before the clock starts: connecting is no part of the story. */
static void warm_up(struct traffic *traffic) {
    int i;
    for (i = 1; i <= DEMO_LANES; i++) {
        stamp(traffic, (uint64_t)i);
        empty_lane(traffic, &traffic->lanes[i % DEMO_LANES]);
    }
    for (i = 0; i < DEMO_COLD; i++)
        send_cold(traffic);
    rd_kafka_flush(traffic->rk, 10000);
    unsalt_producer_flush(traffic->cold, 10000);
    traffic->began = demo_now();
}

void *demo_produce(void *arg) {
    struct demo *demo = arg;
    struct traffic *traffic = calloc(1, sizeof *traffic);
    struct timespec tick = {0, 1000000};
    if (!traffic) {
        demo_fail(demo, "producer", "out of memory");
        return NULL;
    }
    traffic->demo = demo;
    if (start(traffic)) {
        warm_up(traffic);
        while (!demo->failed && (traffic->stamped < HOT_RECORDS || traffic->cold_sent < COLD_RECORDS)) {
            step(traffic);
            nanosleep(&tick, NULL);
        }
        step(traffic);
        if (rd_kafka_flush(traffic->rk, 10000) || unsalt_producer_flush(traffic->cold, 10000))
            demo_fail(demo, "producer", "not all records were answered in time");
        demo->produced = true;
    }
    unsalt_producer_destroy(traffic->cold);
    if (traffic->rk)
        rd_kafka_destroy(traffic->rk);
    free(traffic);
    return NULL;
}

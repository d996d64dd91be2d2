/* SPDX-License-Identifier: BSD-2-Clause */
/* The two consumers of the demo. They differ in the calls that this library replaces, and in nothing else. */
#include "demo.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A record that was handed out before is a copy and no inversion, as the checker counts, too. */
static void count_inversion(struct demo_reader *reader, uint64_t seq) {
    if (seq >= sizeof reader->seen || reader->seen[seq])
        return;
    reader->seen[seq] = true;
    if (seq < reader->highest)
        atomic_fetch_add(&reader->inverted, 1);
    else
        reader->highest = seq;
}

/* Writes down what was handed out, by what its payload says. */
static void log_record(struct demo_reader *reader, const struct checker_record *record) {
    checker_log_record(reader->log, record);
    if (record->session_len == strlen(DEMO_HOT) && memcmp(record->session, DEMO_HOT, record->session_len) == 0)
        count_inversion(reader, record->seq);
    atomic_fetch_add(&reader->records, 1);
}

static bool name_of(struct demo *demo, const rd_kafka_message_t *message, struct checker_record *record) {
    record->partition = message->partition;
    record->offset = message->offset;
    if (!message->err && checker_parse(message->payload, message->len, record) == 0)
        return true;
    if (message->err)
        fprintf(stderr, "demo: %s\n", rd_kafka_message_errstr(message));
    else
        demo_fail(demo, "a message can't be read", "unknown payload");
    return false;
}

/* The end of the work: all was produced, and `seen` of `target` have come or the patience is over. */
static bool finished(struct demo *demo, double *since, uint64_t seen, uint64_t target) {
    if (demo->failed)
        return true;
    if (!demo->produced)
        return false;
    if (*since == 0)
        *since = demo_now();
    return seen >= target || demo_now() - *since > DEMO_PATIENCE_S;
}

static rd_kafka_conf_t *consumer_conf(const struct demo *demo, const char *group) {
    rd_kafka_conf_t *conf = demo_conf(demo);
    char name[128];
    snprintf(name, sizeof name, "%s-%s", demo->topic, group);
    demo_set(conf, "group.id", name);
    demo_set(conf, "auto.offset.reset", "earliest");
    demo_set(conf, "enable.auto.commit", "false");
    demo_set(conf, "fetch.wait.max.ms", "10");
    return conf;
}

void *demo_read_raw(void *arg) {
    struct demo *demo = arg;
    char errstr[512];
    rd_kafka_conf_t *conf = consumer_conf(demo, "raw");
    rd_kafka_topic_partition_list_t *partitions = demo_partitions(demo);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    double since = 0;
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        demo_fail(demo, "raw consumer", errstr);
        return NULL;
    }
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_assign(rk, partitions);
    while (!finished(demo, &since, demo->raw.records, demo->accepted_records)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 50);
        struct checker_record record;
        if (!message)
            continue;
        if (name_of(demo, message, &record))
            log_record(&demo->raw, &record);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(partitions);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return NULL;
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    struct demo *demo = opaque;
    if (event->type == UNSALT_EVENT_GAP) {
        demo->gap_events++;
        demo->gap = *event;
        printf("  gap: session %.*s, %" PRIu64 "..%" PRIu64 " given up after %.0f ms, verdict %s\n",
               (int)event->session_len, (const char *)event->session, event->first, event->last,
               (double)event->waited_ns / 1e6, unsalt_gap_reason_name(event->reason));
    } else if (event->severity <= 4) {
        printf("  event: %s: %s\n", unsalt_event_name(event->type), event->text);
    }
}

/* With FAULT=1 one record is kept back here, behind the library's back, until the next one was written down. */
static void log_ordered(struct demo *demo, const struct checker_record *record) {
    static struct checker_record kept;
    bool hot = record->session_len == strlen(DEMO_HOT) && memcmp(record->session, DEMO_HOT, record->session_len) == 0;
    if (demo->fault && hot && record->seq == DEMO_FAULT) {
        kept = *record;
        kept.session = DEMO_HOT; /* the message goes before the record is written down */
        return;
    }
    log_record(&demo->ordered, record);
    if (kept.session && hot) {
        log_record(&demo->ordered, &kept);
        kept.session = NULL;
    }
}

static bool all_seen(struct demo *demo, const unsalt_t *consumer, double *since) {
    if (finished(demo, since, demo->ordered.records, demo->accepted_distinct)) {
        unsalt_stats(consumer, &demo->stats, sizeof demo->stats);
        return finished(demo, since, demo->stats.received, demo->accepted_records);
    }
    return false;
}

void *demo_read_ordered(void *arg) {
    struct demo *demo = arg;
    char errstr[512];
    rd_kafka_conf_t *conf = consumer_conf(demo, "ordered");
    unsalt_conf_t *unsalt_conf = demo_unsalt_conf("4");
    rd_kafka_topic_partition_list_t *partitions = demo_partitions(demo);
    unsalt_t *consumer;
    double since = 0;
    unsalt_conf_set_event_cb(unsalt_conf, on_event, demo);
    consumer = unsalt_new(conf, unsalt_conf, errstr, sizeof errstr);
    if (!consumer) {
        rd_kafka_conf_destroy(conf);
        unsalt_conf_destroy(unsalt_conf);
        demo_fail(demo, "ordered consumer", errstr);
        return NULL;
    }
    if (unsalt_assign(consumer, partitions))
        demo_fail(demo, "ordered consumer", "the partitions can't be assigned");
    while (!all_seen(demo, consumer, &since)) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 50);
        struct checker_record record;
        if (!message)
            continue;
        if (name_of(demo, message, &record))
            log_ordered(demo, &record);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(partitions);
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    return NULL;
}

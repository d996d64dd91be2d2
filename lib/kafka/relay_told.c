/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a relay tells of a record: each time that it is read, that it is malformed; once, that it has no result since it
 * failed for good: then its batch is committed, so that what is told is so.
 */
#include <inttypes.h>
#include <kafka/consumer.h>
#include <kafka/relay.h>
#include <stdio.h>
#include <string.h>

static void begin(const struct us_relay_item *item, unsalt_event_type_t type, unsalt_event_t *event) {
    const rd_kafka_message_t *message = item->message;
    us_event_init(event, type);
    event->topic = rd_kafka_topic_name(message->rkt);
    event->partition = message->partition;
    event->offset = message->offset;
}

static void raise_event(struct unsalt_relay *r, unsalt_event_t *event, const char *text) {
    event->text = text;
    us_relay_log(r, event->severity, "%s", text);
    if (r->input->event_cb)
        r->input->event_cb(r->input->event_opaque, event);
}

void us_relay_tell_malformed(struct unsalt_relay *r, const struct us_relay_item *item) {
    char text[400];
    unsalt_event_t event;
    begin(item, UNSALT_EVENT_MALFORMED, &event);
    event.first = event.last = UNSALT_NO_SEQ;
    event.count = 1;
    snprintf(text, sizeof text, "malformed: %s [%d] offset %" PRId64 ": %s", event.topic, (int)event.partition,
             event.offset, item->fault);
    raise_event(r, &event, text);
}

/* As a pipeline names it: phase, reason, calls, error. */
static void tell_failed(struct unsalt_relay *r, const struct us_relay_item *item) {
    bool buried = r->input->relay_failure == US_PIPE_DEAD_LETTER;
    char record[1024], text[1400];
    unsalt_event_t event;
    begin(item, buried ? UNSALT_EVENT_PIPELINE_BURIED : UNSALT_EVENT_PIPELINE_SKIPPED, &event);
    event.session = item->in.session;
    event.session_len = item->in.session_len;
    if (item->in.session) {
        event.epoch = item->in.epoch;
        event.first = event.last = item->in.seq;
    }
    event.count = item->attempts;
    us_event_text(&event, record, sizeof record);
    snprintf(text, sizeof text, "%s: %s failed for good (%s, %u calls), %s: %s", record,
             unsalt_pipeline_phase_name(UNSALT_PIPELINE_PREPARE),
             unsalt_pipeline_reason_name(UNSALT_PIPELINE_BY_EXHAUSTED), item->attempts,
             buried ? "stored as a dead letter" : "skipped", us_relay_error(item));
    raise_event(r, &event, text);
}

void us_relay_tell_failed(struct unsalt_relay *r, const struct us_relay_batch *batch) {
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->items[i].res == UNSALT_RELAY_FAILED)
            tell_failed(r, &batch->items[i]);
}

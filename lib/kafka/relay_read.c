/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/clock.h>
#include <kafka/relay.h>
#include <limits.h>
#include <string.h>

#define LOG_ERROR 3 /* as syslog(3) */

/* ---- what is malformed */

/* A number that the header can't carry, or that is below the first one, was never meant for this place. */
static void judge(struct unsalt_relay *r, struct us_relay_item *item) {
    bool numbered = item->in.kind == UNSALT_KIND_SEQUENCED || (item->in.flags & UNSALT_F_MARKER);
    if (!item->fault && numbered && item->in.session && item->in.seq < (uint64_t)r->input->seq_first) {
        item->in.kind = UNSALT_KIND_MALFORMED;
        item->fault = "the sequence is below seq.first";
    }
    if (!item->fault)
        return;
    item->in.session = NULL;
    item->in.session_len = 0;
    atomic_fetch_add(&r->counters.malformed, 1);
    us_relay_tell_malformed(r, item);
}

/* ---- one record */

static rd_kafka_error_t *no_memory(void) {
    return rd_kafka_error_new(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "Out of memory for a record");
}

/* Room for one more. To be made before the consumer is asked: what it gives, it is past, and that must be noted. */
static bool make_room(struct us_relay_batch *batch) {
    struct us_relay_item *items =
        us_array_room(&us_mem_default, batch->items, &batch->capacity, batch->count, 64, sizeof *items);
    batch->items = items ? items : batch->items;
    return items != NULL;
}

/* Takes the message in any case; there is room. Returns false when out of memory. */
static bool add(struct unsalt_relay *r, rd_kafka_message_t *message) {
    struct us_relay_batch *batch = r->read;
    struct us_relay_item *item = &batch->items[batch->count++]; /* it is read again now, whatever comes */
    bool borrowed = false;
    *item = (struct us_relay_item){.message = message};
    item->fault = us_extract(&r->extractor, message, &item->in, &borrowed);
    if (item->fault == us_extract_nomem)
        return false;
    if (borrowed && !item->fault) {
        item->session = us_alloc(&us_mem_default, item->in.session_len);
        if (!item->session)
            return false;
        memcpy(item->session, item->in.session, item->in.session_len);
        item->in.session = item->session;
    }
    judge(r, item);
    batch->bytes += item->in.bytes;
    atomic_fetch_add(&r->counters.received, 1);
    return true;
}

/* NULL: it can be passed over. */
static rd_kafka_error_t *consumer_error(struct unsalt_relay *r, const rd_kafka_message_t *message) {
    char text[256];
    switch (message->err) {
    case RD_KAFKA_RESP_ERR__FATAL:
        rd_kafka_fatal_error(r->consumer, text, sizeof text);
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__FATAL, "The consumer can't go on: %s", text);
    case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
        us_relay_log(r, LOG_ERROR, "a batch took longer than max.poll.interval.ms: its partitions go to others");
        return NULL;
    default:
        return rd_kafka_error_new(message->err, "%s", rd_kafka_message_errstr(message));
    }
}

/* Takes the message. */
static rd_kafka_error_t *take(struct unsalt_relay *r, rd_kafka_message_t *message) {
    rd_kafka_error_t *error;
    if (!message->err) {
        if (add(r, message))
            return NULL;
        us_relay_abandon(r);
        return no_memory();
    }
    error = consumer_error(r, message);
    rd_kafka_message_destroy(message);
    return error;
}

/* ---- a batch */

bool us_relay_is_full(struct unsalt_relay *r) {
    struct us_relay_batch *batch = r->read;
    return batch->count > 0 &&
           (batch->count >= (uint64_t)r->input->relay_batch_records ||
            batch->bytes >= (uint64_t)r->input->relay_batch_bytes || !make_room(batch));
}

rd_kafka_error_t *us_relay_read(struct unsalt_relay *r, int timeout_ms) {
    if (!make_room(r->read))
        return no_memory();
    rd_kafka_message_t *message = rd_kafka_consumer_poll(r->consumer, timeout_ms);
    bool begins = r->read->count == 0; /* a revoke that was served has emptied it */
    rd_kafka_error_t *error = message ? take(r, message) : NULL;
    if (us_relay_is_behind(r))
        us_relay_abandon(r); /* whatever has come of partitions that stay stands above what must be read again */
    else if (begins)
        r->read->until = us_clock_ms() + (uint64_t)r->input->relay_batch_ms;
    return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delivery reports: ours decides what becomes of the record and settles its number; then the application's is called
 * as if ours weren't there, once per record.
 */
#include <kafka/clock.h>
#include <kafka/producer.h>
#include <kafka/producer_fate.h>
#include <string.h>

static void tell(const struct unsalt_producer *p, rd_kafka_message_t *message, void *message_opaque) {
    const struct us_producer_wishes *wishes = &p->wishes;
    void *opaque = rd_kafka_opaque(p->rk);
    message->_private = message_opaque;
    if (wishes->only_errors && !message->err)
        return;
    if (wishes->message_cb)
        wishes->message_cb(p->rk, message, opaque);
    else if (wishes->payload_cb)
        wishes->payload_cb(p->rk, message->payload, message->len, message->err, opaque, message_opaque);
}

bool us_is_purged(const struct unsalt_producer *p, const struct us_sent *sent) {
    return sent->purges != (uint32_t)atomic_load(&p->purges);
}

static struct us_attempt attempt_of(const struct unsalt_producer *p, const struct us_sent *sent,
                                    const rd_kafka_message_t *message, rd_kafka_msg_status_t status) {
    return (struct us_attempt){
        .err = message->err,
        .status = status,
        .unproven = !message->err && message->offset == RD_KAFKA_OFFSET_INVALID,
        .maybe = sent->maybe,
        .numbered = sent->sender || sent->marker,
        .ended = atomic_load(&p->closing) || rd_kafka_fatal_error(p->rk, NULL, 0),
        .purged = us_is_purged(p, sent),
        .transactional = p->wishes.transactional,
        .waited_ms = sent->failed_at_ms ? us_clock_ms() - sent->failed_at_ms : 0,
        .limit_ms = (uint64_t)p->conf->producer_resend_max_ms,
    };
}

/* The number is settled, and the record goes back to its pool, or becomes the carrier of its marker. */
static void settle(struct us_sent *sent, struct us_again *marker) {
    struct us_shard *shard = sent->shard;
    pthread_mutex_lock(&shard->lock);
    uint64_t una = us_shard_settle(shard, sent);
    if (marker)
        us_again_to_marker(marker, una);
    else
        us_shard_release(shard, sent);
    pthread_mutex_unlock(&shard->lock);
}

/*
 * The record's fate is final. The application's callback runs without our lock, since it may produce. Takes `marker`,
 * which isn't NULL if there is one to be sent.
 */
static void finish(struct unsalt_producer *p, struct us_sent *sent, struct us_again *marker,
                   rd_kafka_message_t *message, bool maybe) {
    void *message_opaque = sent->opaque;
    settle(sent, marker);
    atomic_fetch_add(message->err ? &p->abandoned : &p->acked, 1);
    if (message->err && maybe)
        atomic_fetch_add(&p->uncertain, 1);
    tell(p, message, message_opaque);
    if (marker)
        us_again_keep(p, marker); /* open as the record was */
    else
        atomic_fetch_sub(&p->open, 1);
}

static void note_failure(struct us_sent *sent, const struct us_attempt *attempt) {
    sent->maybe = us_fate_maybe(attempt);
    if (!sent->failed_at_ms)
        sent->failed_at_ms = us_clock_ms();
}

static void count_marker(struct unsalt_producer *p, const rd_kafka_message_t *message) {
    unsalt_header_t header;
    if (!us_sent_header(message, &header))
        return;
    atomic_fetch_add(&p->markers, 1);
    atomic_fetch_add(&p->marked, header.seq - header.since + 1);
}

/* A marker came back; no application is told. */
static void finish_marker(struct unsalt_producer *p, struct us_sent *sent, const rd_kafka_message_t *message) {
    struct us_shard *shard = sent->shard;
    if (!message->err)
        count_marker(p, message);
    pthread_mutex_lock(&shard->lock);
    us_shard_release(shard, sent);
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_sub(&p->open, 1);
}

/* An entry of a checkpoint: librdkafka's own word on it is final. */
static void pass_on(rd_kafka_t *rk, const rd_kafka_message_t *message) {
    const struct unsalt_producer *p = us_producers_find(rk);
    if (p)
        tell(p, (rd_kafka_message_t *)message, NULL);
}

void us_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct us_sent *sent = message->_private;
    (void)opaque;
    if (!sent) {
        pass_on(rk, message);
        return;
    }
    if (!atomic_load_explicit(&sent->out, memory_order_acquire))
        return; /* never so: producing through the handle isn't allowed */
    struct unsalt_producer *p = sent->shard->owner->producer;
    /* librdkafka's own copy, which it made for this call: only the view is const. */
    rd_kafka_message_t *own = (rd_kafka_message_t *)message;
    const struct us_attempt attempt = attempt_of(p, sent, message, rd_kafka_message_status(message));
    enum us_fate fate = us_fate(&attempt);
    struct us_again *again = NULL;
    if (fate == US_FATE_RESEND || (fate == US_FATE_MARK && !sent->marker))
        again = us_again_make(message, sent);
    if (again && fate == US_FATE_RESEND) {
        note_failure(sent, &attempt);
        us_again_take_headers(again, own);
        us_again_keep(p, again);
    } else if (sent->marker) {
        finish_marker(p, sent, message);
    } else {
        if (fate == US_FATE_RESEND && !own->err) /* no memory to send it again: it may be in no log */
            own->err = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
        finish(p, sent, again, own, us_fate_maybe(&attempt) || fate == US_FATE_RESEND);
    }
}

/*
 * A message like those that librdkafka makes for delivery reports. Functions such as rd_kafka_message_status() look
 * at what stands behind it there: room with zeros, which mean not persisted and no more.
 */
union made_message {
    rd_kafka_message_t message;
    char room[2048];
};

void us_report_waiting(struct unsalt_producer *p, struct us_again *again, rd_kafka_resp_err_t err) {
    struct us_sent *sent = again->sent;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(p->rk, again->topic, NULL);
    rd_kafka_headers_t *headers = again->headers;
    union made_message made;
    memset(&made, 0, sizeof made);
    made.message = (rd_kafka_message_t){
        .err = err,
        .rkt = topic,
        .partition = again->partition,
        .payload = again->payload,
        .len = again->len,
        .key = again->key,
        .key_len = again->key_len,
        .offset = RD_KAFKA_OFFSET_INVALID,
    };
    const struct us_attempt attempt = attempt_of(p, sent, &made.message, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    bool mark = us_fate(&attempt) == US_FATE_MARK;
    again->headers = NULL;
    again->err = err;
    if (headers)
        rd_kafka_message_set_headers(&made.message, headers);
    finish(p, sent, mark ? again : NULL, &made.message, us_fate_maybe(&attempt));
    if (!mark) /* else others have it by now */
        us_again_free(again);
    /* The application may have taken the headers, as it may those of any message. */
    if (!rd_kafka_message_detach_headers(&made.message, &headers))
        rd_kafka_headers_destroy(headers);
    rd_kafka_topic_destroy(topic);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stamp and enqueue, as one step per session: under the lock of its shard, so that a lane's numbers ascend. */
#include <kafka/producer.h>
#include <string.h>

/* The buffers that follow from Kafka's limit on the name of a topic, and from that of session.id.max. */
#define NAME_MAX_BYTES (US_TOPIC_MAX + 1 + 4096)
#define KEY_MAX (4096 + 40)

static bool put_header(rd_kafka_headers_t *headers, const unsalt_header_t *header) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    if (unsalt_header_write(header, bytes) != UNSALT_HEADER_OK)
        return false;
    rd_kafka_header_remove(headers, UNSALT_HEADER_NAME);
    return rd_kafka_header_add(headers, UNSALT_HEADER_NAME, -1, bytes, sizeof bytes) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t us_enqueue(struct unsalt_producer *p, const struct us_outgoing *out, struct us_sent *sent) {
    if (out->header && !put_header(out->headers, out->header))
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    atomic_store_explicit(&sent->out, true, memory_order_release);
    return rd_kafka_producev(p->rk, RD_KAFKA_V_TOPIC(out->topic), RD_KAFKA_V_PARTITION(out->partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(out->key, out->key_len),
                             RD_KAFKA_V_VALUE((void *)out->payload, out->len), RD_KAFKA_V_HEADERS(out->headers),
                             RD_KAFKA_V_TIMESTAMP(out->timestamp), RD_KAFKA_V_OPAQUE(sent), RD_KAFKA_V_END);
}

static rd_kafka_resp_err_t enqueue_stamped(struct unsalt_producer *p, const unsalt_record_t *r,
                                           const struct us_stamp *stamp, rd_kafka_headers_t *headers,
                                           struct us_sent *sent) {
    char salted[KEY_MAX], name[US_TOPIC_MAX + 1];
    const unsalt_header_t header = {
        .flags = (uint8_t)(r->flags | (stamp->seq == p->senders.seq_first ? UNSALT_F_FIRST : 0)),
        .lane = stamp->lane,
        .lanes = stamp->lanes,
        .epoch = stamp->epoch,
        .seq = stamp->seq,
        .since = stamp->since,
        .una = stamp->una,
    };
    struct us_outgoing out = {
        .topic = us_record_lane_topic(p, r->topic, stamp->lane, name),
        .partition = stamp->partition,
        .key = r->session,
        .key_len = r->session_len,
        .payload = r->payload,
        .len = r->len,
        .headers = headers,
        .timestamp = r->timestamp,
        .header = &header,
    };
    if (p->conf->layout == US_LAYOUT_HASH && stamp->lanes > 1) {
        out.key_len = us_salt_join(&p->senders.map.pattern, r->session, r->session_len, stamp->lane, salted,
                                   sizeof salted);
        out.key = salted;
    }
    return us_enqueue(p, &out, sent);
}

/* The shard is locked. Takes the headers on success. */
static rd_kafka_resp_err_t stamp_and_enqueue(struct unsalt_producer *p, const unsalt_record_t *r,
                                             struct us_shard *shard, const struct us_sender_name *name,
                                             rd_kafka_headers_t *headers) {
    struct us_stamp stamp;
    bool full;
    struct us_sent *sent = us_shard_begin(shard, name, r->lanes, &stamp, &full);
    if (!sent)
        return full ? RD_KAFKA_RESP_ERR__QUEUE_FULL : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    sent->opaque = r->opaque;
    sent->purges = (uint32_t)atomic_load(&p->purges);
    atomic_fetch_add(&p->open, 1);
    rd_kafka_resp_err_t err = enqueue_stamped(p, r, &stamp, headers, sent);
    if (err) {
        atomic_fetch_sub(&p->open, 1);
        us_shard_release(shard, sent);
        return err;
    }
    us_shard_commit(shard, sent, &stamp, r->flags & UNSALT_F_LAST);
    atomic_fetch_add(&p->stamped, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t send_stamped(struct unsalt_producer *p, const unsalt_record_t *r) {
    char bytes[NAME_MAX_BYTES];
    struct us_sender_name name = {.bytes = bytes, .id_at = strlen(r->topic) + 1};
    rd_kafka_headers_t *headers = r->headers ? rd_kafka_headers_copy(r->headers) : rd_kafka_headers_new(1);
    name.size = name.id_at + r->session_len;
    memcpy(bytes, r->topic, name.id_at);
    memcpy(bytes + name.id_at, r->session, r->session_len);
    struct us_shard *shard = us_senders_shard(&p->senders, &name);
    pthread_mutex_lock(&shard->lock);
    rd_kafka_resp_err_t err = stamp_and_enqueue(p, r, shard, &name, headers);
    pthread_mutex_unlock(&shard->lock);
    if (err)
        rd_kafka_headers_destroy(headers);
    return err;
}

static struct us_sent *begin_plain(struct us_shard *shard) {
    bool full;
    pthread_mutex_lock(&shard->lock);
    struct us_sent *sent = us_shard_begin(shard, NULL, 0, NULL, &full);
    pthread_mutex_unlock(&shard->lock);
    return sent;
}

static rd_kafka_resp_err_t send_plain(struct unsalt_producer *p, const unsalt_record_t *r) {
    char name[US_TOPIC_MAX + 1];
    struct us_shard *shard = p->senders.shards;
    const struct us_outgoing out = {
        .topic = us_record_lane_topic(p, r->topic, 0, name),
        .partition = RD_KAFKA_PARTITION_UA,
        .payload = r->payload,
        .len = r->len,
        .headers = r->headers ? rd_kafka_headers_copy(r->headers) : NULL,
        .timestamp = r->timestamp,
    };
    struct us_sent *sent = begin_plain(shard);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    if (sent) {
        sent->opaque = r->opaque;
        sent->purges = (uint32_t)atomic_load(&p->purges);
        atomic_fetch_add(&p->open, 1);
        err = us_enqueue(p, &out, sent);
    }
    if (!err) {
        atomic_fetch_add(&p->unstamped, 1);
        return err;
    }
    if (out.headers)
        rd_kafka_headers_destroy(out.headers);
    if (sent) {
        atomic_fetch_sub(&p->open, 1);
        pthread_mutex_lock(&shard->lock);
        us_shard_release(shard, sent);
        pthread_mutex_unlock(&shard->lock);
    }
    return err;
}

/* May a record be sent now? Fills its number of lanes. */
static rd_kafka_resp_err_t admit(struct unsalt_producer *p, unsalt_record_t *r) {
    uint16_t lanes = p->senders.map.lanes;
    if (atomic_load(&p->closing))
        return RD_KAFKA_RESP_ERR__DESTROY;
    rd_kafka_resp_err_t err = us_again_send(p, NULL);
    if (!err)
        err = us_topics_use(&p->topics, r->topic, p->conf->producer_check_ms ? us_topic_check : NULL, p, &lanes);
    if (!r->lanes)
        r->lanes = lanes;
    return err;
}

rd_kafka_resp_err_t unsalt_produce_record(unsalt_producer_t *p, const unsalt_record_t *record) {
    unsalt_record_t r;
    if (!us_record_read(p, record, &r))
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    rd_kafka_resp_err_t err = admit(p, &r);
    if (err)
        return err;
    return r.session ? send_stamped(p, &r) : send_plain(p, &r);
}

rd_kafka_resp_err_t unsalt_produce(unsalt_producer_t *p, const char *topic, const void *session, size_t session_len,
                                   const void *payload, size_t len, void *opaque) {
    const unsalt_record_t record = {
        .size = sizeof record,
        .topic = topic,
        .session = session,
        .session_len = session_len,
        .payload = payload,
        .len = len,
        .opaque = opaque,
    };
    return unsalt_produce_record(p, &record);
}

rd_kafka_resp_err_t unsalt_producer_set_lanes(unsalt_producer_t *p, const char *topic, uint16_t lanes) {
    if (!us_record_topic_fits(p, topic) || lanes == 0 || lanes > p->senders.map.lanes)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    return us_topics_set_lanes(&p->topics, topic, lanes) ? RD_KAFKA_RESP_ERR_NO_ERROR
                                                         : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stamp and enqueue, as one step per session: under the lock of its shard, so that a lane's numbers ascend. */
#include <kafka/producer.h>
#include <string.h>
#include <unsalt/wire.h>

/* Kafka's limit on a topic name, and the buffers that follow from it and from session.id.max. */
#define TOPIC_MAX 249
#define NAME_MAX_BYTES (TOPIC_MAX + 1 + 4096)
#define KEY_MAX (4096 + 40)

/* One call of the application. */
struct request {
    const char *topic;
    const void *session, *payload;
    size_t session_len, len;
    uint8_t flags;
    void *opaque;
};

/* The topic of a lane; NULL if it isn't a topic of this producer, or its name would be too long. */
static const char *lane_topic(const struct unsalt_producer *p, const char *base, uint16_t lane, char *name) {
    const struct us_lane_topics *topics = &p->lane_topics.topics;
    if (p->conf->layout == US_LAYOUT_HASH)
        return base;
    if (topics->names && strcmp(topics->names[0], base) != 0)
        return NULL;
    return us_lane_topic(topics, base, lane, name, TOPIC_MAX + 1) ? name : NULL;
}

static rd_kafka_resp_err_t enqueue_plain(struct unsalt_producer *p, const struct request *r, const char *topic,
                                         struct us_sent *sent) {
    return rd_kafka_producev(p->rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(RD_KAFKA_PARTITION_UA),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)r->payload, r->len),
                             RD_KAFKA_V_OPAQUE(sent), RD_KAFKA_V_END);
}

static rd_kafka_resp_err_t enqueue_stamped(struct unsalt_producer *p, const struct request *r,
                                           const struct us_stamp *stamp, struct us_sent *sent) {
    uint8_t header[UNSALT_HEADER_SIZE];
    char salted[KEY_MAX], name[TOPIC_MAX + 1];
    const void *key = r->session;
    size_t key_len = r->session_len;
    const char *topic = lane_topic(p, r->topic, stamp->lane, name);
    unsalt_header_t fields = {
        .flags = (uint8_t)(r->flags | (stamp->seq == p->senders.seq_first ? UNSALT_F_FIRST : 0)),
        .lane = stamp->lane,
        .lanes = stamp->lanes,
        .epoch = stamp->epoch,
        .seq = stamp->seq,
        .since = stamp->since,
        .una = stamp->una,
    };
    if (!topic || unsalt_header_write(&fields, header) != UNSALT_HEADER_OK)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (p->conf->layout == US_LAYOUT_HASH && stamp->lanes > 1) {
        key_len = us_salt_join(&p->senders.map.pattern, key, key_len, stamp->lane, salted, sizeof salted);
        key = salted;
    }
    return rd_kafka_producev(p->rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(stamp->partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_len),
                             RD_KAFKA_V_VALUE((void *)r->payload, r->len),
                             RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, header, sizeof header), RD_KAFKA_V_OPAQUE(sent),
                             RD_KAFKA_V_END);
}

static rd_kafka_resp_err_t send_stamped(struct unsalt_producer *p, const struct request *r, struct us_shard *shard,
                                        const struct us_sender_name *name) {
    struct us_stamp stamp;
    bool full;
    struct us_sent *sent = us_shard_begin(shard, name, &stamp, &full);
    if (!sent)
        return full ? RD_KAFKA_RESP_ERR__QUEUE_FULL : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    sent->opaque = r->opaque;
    rd_kafka_resp_err_t err = enqueue_stamped(p, r, &stamp, sent);
    if (err) {
        us_shard_cancel(shard, sent);
        return err;
    }
    us_shard_commit(shard, sent, r->flags & UNSALT_F_LAST);
    atomic_fetch_add(&p->stamped, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t send_plain(struct unsalt_producer *p, const struct request *r, struct us_shard *shard) {
    char name[TOPIC_MAX + 1];
    bool full;
    const char *topic = lane_topic(p, r->topic, 0, name);
    struct us_sent *sent = topic ? us_shard_begin(shard, NULL, NULL, &full) : NULL;
    if (!sent)
        return topic ? RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE : RD_KAFKA_RESP_ERR__INVALID_ARG;
    sent->opaque = r->opaque;
    rd_kafka_resp_err_t err = enqueue_plain(p, r, topic, sent);
    if (err) {
        us_shard_cancel(shard, sent);
        return err;
    }
    atomic_fetch_add(&p->unstamped, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool valid(const struct unsalt_producer *p, const struct request *r) {
    size_t topic_len = r->topic ? strnlen(r->topic, TOPIC_MAX + 1) : 0;
    if (topic_len == 0 || topic_len > TOPIC_MAX || (r->flags & ~UNSALT_F_LAST) || (!r->payload && r->len))
        return false;
    if (!r->session)
        return r->session_len == 0 && r->flags == 0;
    return r->session_len > 0 && r->session_len <= (size_t)p->conf->session_id_max;
}

rd_kafka_resp_err_t unsalt_produce_flags(unsalt_producer_t *p, const char *topic, const void *session,
                                         size_t session_len, const void *payload, size_t len, uint8_t flags,
                                         void *opaque) {
    const struct request r = {topic, session, payload, session_len, len, flags, opaque};
    char bytes[NAME_MAX_BYTES];
    struct us_shard *shard = p->senders.shards;
    struct us_sender_name name = {.bytes = bytes};
    rd_kafka_resp_err_t err;
    if (!valid(p, &r))
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (session) {
        name.id_at = strlen(topic) + 1;
        name.size = name.id_at + session_len;
        memcpy(bytes, topic, name.id_at);
        memcpy(bytes + name.id_at, session, session_len);
        shard = us_senders_shard(&p->senders, &name);
    }
    pthread_mutex_lock(&shard->lock);
    err = session ? send_stamped(p, &r, shard, &name) : send_plain(p, &r, shard);
    pthread_mutex_unlock(&shard->lock);
    return err;
}

rd_kafka_resp_err_t unsalt_produce(unsalt_producer_t *p, const char *topic, const void *session, size_t session_len,
                                   const void *payload, size_t len, void *opaque) {
    return unsalt_produce_flags(p, topic, session, session_len, payload, len, 0, opaque);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/relay.h>
#include <string.h>

#define POLL_MS 20
/* The longest session id and the longest salt. */
#define KEY_MAX (4096 + 40)
#define TOPIC_MAX 249

/* Not empty, or a compacted topic would take it for a tombstone. */
static const char marker_payload[] = "gap";

/* What goes out, and where. All borrowed but the headers. */
struct outgoing {
    uint16_t lane;
    int32_t partition;
    const void *key, *payload;
    size_t key_len, len;
    rd_kafka_headers_t *headers; /* owned; NULL: none */
    int64_t timestamp;
};

/* ---- where */

static int32_t partition_of(struct unsalt_relay *r, const void *id, size_t len, uint16_t lanes, uint16_t lane) {
    uint16_t wanted = us_lane_map_entries(&r->map, lanes);
    struct us_lane_table table = {.entries = r->probed, .wanted = wanted};
    if (wanted)
        table.found = us_lane_map_probe(&r->map, id, len, wanted, r->probed);
    return us_lane_map_partition(&r->map, us_lane_map_hash(id, len), &table, lanes, lane);
}

/* ---- with a number */

/* Whether the number has no result, and a marker is all that goes out for it. */
static bool is_gap(const struct us_relay_item *item) {
    return item->in.kind == UNSALT_KIND_SEQUENCED && item->res != UNSALT_RELAY_DONE;
}

/* Those of the message, or what the callback wanted instead, with our header. */
static rd_kafka_headers_t *headers_of(struct us_relay_item *item, const unsalt_header_t *header) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    rd_kafka_headers_t *theirs = NULL, *mine = item->out.headers;
    item->out.headers = NULL;
    if (!mine && !is_gap(item) && !rd_kafka_message_headers(item->message, &theirs))
        mine = rd_kafka_headers_copy(theirs);
    mine = mine ? mine : rd_kafka_headers_new(1);
    rd_kafka_header_remove(mine, UNSALT_HEADER_NAME);
    if (header && unsalt_header_write(header, bytes) == UNSALT_HEADER_OK)
        rd_kafka_header_add(mine, UNSALT_HEADER_NAME, -1, bytes, sizeof bytes);
    return mine;
}

/* salted: room for KEY_MAX bytes. */
static void fill_numbered(struct unsalt_relay *r, struct us_relay_item *item, const unsalt_header_t *header,
                          char *salted, struct outgoing *out) {
    const unsalt_core_in_t *in = &item->in;
    out->lane = header->lane;
    out->partition = partition_of(r, in->session, in->session_len, header->lanes, header->lane);
    out->key = in->session;
    out->key_len = in->session_len;
    if (r->map.layout == US_LAYOUT_HASH && header->lanes > 1) {
        out->key_len = us_salt_join(&r->map.pattern, in->session, in->session_len, header->lane, salted, KEY_MAX);
        out->key = salted;
    }
    out->headers = headers_of(item, header);
}

/* ---- without */

/* In the order of their key, as it stood: records of one key stay in one partition, and so do those without one. */
static void fill_plain(struct unsalt_relay *r, struct us_relay_item *item, struct outgoing *out) {
    const rd_kafka_message_t *message = item->message;
    out->key = message->key;
    out->key_len = message->key_len;
    out->partition = message->key ? partition_of(r, message->key, message->key_len, 1, 0)
                                  : message->partition % r->map.partitions;
    out->headers = headers_of(item, NULL);
}

/* ---- out */

static rd_kafka_resp_err_t enqueue(struct unsalt_relay *r, struct outgoing *out, uint64_t until) {
    char name[TOPIC_MAX + 1];
    const char *topic = r->result->relay_topic;
    rd_kafka_resp_err_t err;
    if (r->map.layout == US_LAYOUT_TOPICS) {
        if (!us_lane_topic(&r->result_lanes.topics, topic, out->lane, name, sizeof name))
            return RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
        topic = name;
    }
    do {
        err = rd_kafka_producev(r->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(out->partition),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(out->key, out->key_len),
                                RD_KAFKA_V_VALUE((void *)out->payload, out->len), RD_KAFKA_V_HEADERS(out->headers),
                                RD_KAFKA_V_TIMESTAMP(out->timestamp), RD_KAFKA_V_END);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(r->producer, us_clock_rest_ms(until, POLL_MS));
    } while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL && us_clock_ms() < until);
    if (!err)
        out->headers = NULL;
    return err;
}

/* The time at which the record was made tells runs of a producer apart: it stays. */
static int64_t timestamp_of(const rd_kafka_message_t *message) {
    int64_t timestamp = rd_kafka_message_timestamp(message, NULL);
    return timestamp > 0 ? timestamp : 0;
}

static struct outgoing begin(const struct us_relay_item *item) {
    return (struct outgoing){
        .payload = item->out.payload, .len = item->out.len, .timestamp = timestamp_of(item->message)};
}

static rd_kafka_resp_err_t write_numbered(struct unsalt_relay *r, struct us_relay_item *item, uint64_t until) {
    char salted[KEY_MAX];
    unsalt_header_t header;
    bool passed_on = item->in.kind == UNSALT_KIND_CONTROL, gap = is_gap(item);
    struct outgoing out = begin(item);
    bool keeps = us_relay_header(&item->in, r->map.lanes, gap, &header);
    if (gap) {
        out.payload = marker_payload;
        out.len = sizeof marker_payload - 1;
    } else if (passed_on) {
        out.payload = item->message->payload;
        out.len = item->message->len;
    }
    fill_numbered(r, item, &header, salted, &out);
    rd_kafka_resp_err_t err = enqueue(r, &out, until);
    if (out.headers)
        rd_kafka_headers_destroy(out.headers);
    r->sums.markers += gap || passed_on;
    r->sums.dropped += gap;
    r->sums.relayed += !gap && !passed_on;
    r->sums.relaned += !gap && !passed_on && !keeps;
    return err;
}

static rd_kafka_resp_err_t write_plain(struct unsalt_relay *r, struct us_relay_item *item, uint64_t until) {
    struct outgoing out = begin(item);
    if (item->res != UNSALT_RELAY_DONE) {
        r->sums.dropped++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    fill_plain(r, item, &out);
    rd_kafka_resp_err_t err = enqueue(r, &out, until);
    if (out.headers)
        rd_kafka_headers_destroy(out.headers);
    r->sums.relayed++;
    r->sums.unsequenced++;
    return err;
}

static rd_kafka_resp_err_t write_item(struct unsalt_relay *r, struct us_relay_item *item, uint64_t until) {
    bool failed = item->res == UNSALT_RELAY_FAILED && r->input->relay_failure == US_PIPE_DEAD_LETTER;
    bool unread = item->in.kind == UNSALT_KIND_MALFORMED && r->input->malformed == UNSALT_MALFORMED_DEAD_LETTER;
    rd_kafka_resp_err_t err = failed || unread ? us_relay_bury(r, item, until) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (err || unread) {
        r->sums.dropped += unread;
        return err;
    }
    if (item->in.kind == UNSALT_KIND_CONTROL && !item->in.session) { /* a heartbeat, or a marker of nobody */
        r->sums.heartbeats++;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    bool numbered = item->in.kind == UNSALT_KIND_SEQUENCED || item->in.kind == UNSALT_KIND_CONTROL;
    return numbered ? write_numbered(r, item, until) : write_plain(r, item, until);
}

rd_kafka_resp_err_t us_relay_write(struct unsalt_relay *r, uint64_t until) {
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    r->sums = (struct us_relay_sums){0};
    for (uint32_t i = 0; i < r->committed->count && !err; i++)
        err = write_item(r, &r->committed->items[i], until);
    return err;
}

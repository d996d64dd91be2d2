/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/header.h>
#include <codec/plain.h>
#include <codec/record_gap.h>
#include <kafka/extract_record.h>
#include <string.h>

static bool get(rd_kafka_headers_t *headers, const char *name, const void **bytes, size_t *size) {
    if (rd_kafka_header_get_last(headers, name, bytes, size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    if (!*bytes)
        *size = 0;
    return true;
}

static enum us_place take_unsalt(struct us_record *r, const void *bytes, size_t size) {
    unsalt_header_t header;
    unsalt_core_in_t *in = r->in;
    unsalt_header_fault_t fault = unsalt_header_read(bytes, size, &header);
    if (fault != UNSALT_HEADER_OK) {
        r->fault = unsalt_header_fault_text(fault);
        return US_FAULTY;
    }
    in->lane = header.lane;
    in->lanes = header.lanes;
    in->flags = header.flags;
    in->epoch = header.epoch;
    if (header.flags & UNSALT_F_HEARTBEAT)
        return US_IN_HEADER;
    in->seq = header.seq;
    in->since = header.since;
    in->una = header.una;
    return US_IN_HEADER;
}

static enum us_place take_plain(struct us_record *r, const void *bytes, size_t size) {
    if (bytes && us_plain_read(bytes, size, &r->in->seq))
        return US_IN_HEADER;
    r->fault = "the sequence header is neither 8 bytes nor a decimal number up to 2^64 - 2";
    return US_FAULTY;
}

static enum us_place read_unsalt(struct us_record *r, rd_kafka_headers_t *headers) {
    const void *bytes;
    size_t size;
    return get(headers, UNSALT_HEADER_NAME, &bytes, &size) ? take_unsalt(r, bytes, size) : US_NOWHERE;
}

static enum us_place read_plain(struct us_record *r, rd_kafka_headers_t *headers) {
    const void *bytes;
    size_t size;
    return get(headers, r->x->conf->seq_header, &bytes, &size) ? take_plain(r, bytes, size) : US_NOWHERE;
}

/*
 * librdkafka hands out messages whose key and payload lie in the batch that was fetched (rd_kafka_op_new_fetch_msg()),
 * so between the payload of one and the key of the next stand the headers of the first. Read there, they cost neither
 * an allocation nor a copy, which is more than half of what a record costs otherwise. Only what lies between two live
 * messages is looked at, it is short, and it has to be the end of one record and the beginning of the next in every
 * byte (record_gap.h); where it isn't, librdkafka is asked: at the end of a batch, for records with more headers,
 * without key or payload, of an old format, or if a version of librdkafka keeps its messages elsewhere.
 */
static bool in_place(const struct us_record *r, const char *name, const void **bytes, size_t *size) {
    const rd_kafka_message_t *message = r->message, *next = r->x->next;
    if (!next || next->err || !message->payload || !next->key)
        return false;
    uintptr_t begin = (uintptr_t)message->payload + message->len, end = (uintptr_t)next->key;
    return end > begin && end - begin <= US_RECORD_GAP_MAX &&
           us_record_gap_header((const char *)message->payload + message->len, end - begin, next->key_len, name,
                                strlen(name), bytes, size);
}

/* US_NOWHERE: not to be found so. */
static enum us_place read_in_place(struct us_record *r) {
    int64_t source = r->x->conf->seq_source;
    const void *bytes;
    size_t size;
    if (r->x->named)
        return US_NOWHERE;
    if ((source == US_SEQ_AUTO || source == US_SEQ_UNSALT) && in_place(r, UNSALT_HEADER_NAME, &bytes, &size))
        return take_unsalt(r, bytes, size);
    if ((source == US_SEQ_AUTO || source == US_SEQ_HEADER) && in_place(r, r->x->conf->seq_header, &bytes, &size))
        return take_plain(r, bytes, size);
    return US_NOWHERE;
}

/* Copied, since the headers go before the session is used. */
static void read_session(struct us_record *r, rd_kafka_headers_t *headers) {
    const void *bytes;
    size_t size;
    if (!r->x->named || !get(headers, r->x->conf->session_header, &bytes, &size))
        return;
    if (size == 0) {
        r->named_fault = "the session header is empty";
    } else if (size > (size_t)r->x->conf->session_id_max) {
        r->named_fault = "the session header is longer than session.id.max";
    } else {
        memcpy(r->x->named, bytes, size);
        r->named_len = (uint32_t)size;
    }
}

/*
 * Detached, to be freed at once: librdkafka builds the list again from the record's bytes if the application asks for
 * it, a record that is held pins less, and the allocator gets back what it gave a moment ago, which is cheap.
 */
static rd_kafka_resp_err_t get_headers(const struct us_record *r, rd_kafka_headers_t **headers) {
    if (r->x->keep_headers)
        return rd_kafka_message_headers(r->message, headers);
    return rd_kafka_message_detach_headers((rd_kafka_message_t *)r->message, headers);
}

enum us_place us_record_headers(struct us_record *r) {
    rd_kafka_headers_t *headers;
    int64_t source = r->x->conf->seq_source;
    enum us_place place = read_in_place(r);
    r->headers_read = true;
    if (place != US_NOWHERE)
        return place;
    rd_kafka_resp_err_t err = get_headers(r, &headers);
    if (err == RD_KAFKA_RESP_ERR__NOENT)
        return US_NOWHERE;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        r->fault = "the record's headers can't be parsed";
        return US_FAULTY;
    }
    if (source == US_SEQ_AUTO || source == US_SEQ_UNSALT)
        place = read_unsalt(r, headers);
    if (place == US_NOWHERE && (source == US_SEQ_AUTO || source == US_SEQ_HEADER))
        place = read_plain(r, headers);
    read_session(r, headers);
    if (!r->x->keep_headers)
        rd_kafka_headers_destroy(headers);
    return place;
}

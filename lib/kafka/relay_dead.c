/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dead letters of a relay: to the callback, at least once, or to a topic. There they are part of the transaction, so
 * that a reader of committed records sees each once, together with the marker that takes the place of its number.
 */
#include <kafka/clock.h>
#include <kafka/dead_letter.h>
#include <kafka/dead_letter_topic.h>
#include <kafka/relay.h>

#define LOG_ERROR 3 /* as syslog(3) */
#define LOG_WARNING 4
#define POLL_MS 20

rd_kafka_resp_err_t us_relay_letters_ready(struct unsalt_relay *r) {
    bool wanted = r->input->relay_failure == US_PIPE_DEAD_LETTER || r->input->malformed == UNSALT_MALFORMED_DEAD_LETTER;
    char text[800];
    if (!wanted || r->input->relay_dead_letter_cb || r->letters_ready)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    const struct us_dead_letter_topic topic = {
        .conf = r->writes,
        .key = "relay.dead.letter.topic",
        .name = r->input->relay_dead_letter_topic,
    };
    rd_kafka_resp_err_t err = us_dead_letter_topic(&topic, &r->letters_ready, text, sizeof text);
    if (text[0])
        us_relay_log(r, err ? LOG_ERROR : LOG_WARNING, "%s", text);
    return err;
}

/* A relay is phase 1 of two, on machines of its own. What the session has released by now it doesn't know. */
static unsalt_pipeline_failure_t failure_of(const struct us_relay_item *item) {
    return (unsalt_pipeline_failure_t){
        .size = sizeof(unsalt_pipeline_failure_t),
        .phase = UNSALT_PIPELINE_PREPARE,
        .reason = item->res == UNSALT_RELAY_FAILED ? UNSALT_PIPELINE_BY_EXHAUSTED : UNSALT_PIPELINE_BY_MALFORMED,
        .attempts = item->attempts,
        .error = us_relay_error(item),
        .cursor = UNSALT_NO_SEQ,
    };
}

static rd_kafka_resp_err_t call(const struct unsalt_relay *r, const struct us_relay_item *item) {
    const unsalt_relay_info_t info = us_relay_info(item);
    const unsalt_pipeline_failure_t failure = failure_of(item);
    int res = (int)r->input->relay_dead_letter_cb(r->input->relay_dead_letter_opaque, item->message, &info, &failure);
    return res == UNSALT_PIPELINE_OK ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__APPLICATION;
}

static rd_kafka_headers_t *headers_of(const struct unsalt_relay *r, const struct us_relay_item *item) {
    const unsalt_relay_info_t info = us_relay_info(item);
    const unsalt_pipeline_failure_t failure = failure_of(item);
    char group[256] = "";
    size_t size = sizeof group;
    rd_kafka_conf_get(rd_kafka_conf(r->consumer), "group.id", group, &size);
    const struct us_dead_letter letter = {
        .message = item->message,
        .reason = unsalt_pipeline_reason_name(failure.reason),
        .phase = unsalt_pipeline_phase_name(failure.phase),
        .error = failure.error,
        .group = group,
        .attempts = failure.attempts,
        .session = info.session,
        .session_len = info.session_len,
        .seq = info.seq,
        .epoch = info.epoch,
        .cursor = failure.cursor,
    };
    return us_dead_letter_headers(&letter);
}

static rd_kafka_resp_err_t send_to_topic(struct unsalt_relay *r, const struct us_relay_item *item, uint64_t until) {
    const rd_kafka_message_t *message = item->message;
    const void *key = item->in.session ? item->in.session : message->key;
    size_t key_len = item->in.session ? item->in.session_len : message->key_len;
    rd_kafka_headers_t *headers = headers_of(r, item);
    int64_t timestamp = rd_kafka_message_timestamp(message, NULL);
    rd_kafka_resp_err_t err;
    do {
        err = rd_kafka_producev(
            r->producer, RD_KAFKA_V_TOPIC(r->input->relay_dead_letter_topic), RD_KAFKA_V_KEY(key, key_len),
            RD_KAFKA_V_VALUE(message->payload, message->len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_TIMESTAMP(timestamp > 0 ? timestamp : 0), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(r->producer, us_clock_rest_ms(until, POLL_MS));
    } while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL && us_clock_ms() < until);
    if (err)
        rd_kafka_headers_destroy(headers);
    return err;
}

rd_kafka_resp_err_t us_relay_bury(struct unsalt_relay *r, const struct us_relay_item *item, uint64_t until) {
    return r->input->relay_dead_letter_cb ? call(r, item) : send_to_topic(r, item, until);
}

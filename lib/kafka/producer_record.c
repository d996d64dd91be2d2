/* SPDX-License-Identifier: BSD-2-Clause */
/* What an application may ask a producer to send. */
#include <kafka/producer.h>
#include <string.h>

/* ".lane-" and the digits of the largest number of a lane. */
#define LANE_SUFFIX_MAX 11

/* A caller that was compiled with a later header may use only what this version knows. */
static bool copy(const unsalt_record_t *given, unsalt_record_t *record) {
    const char *bytes = (const char *)given;
    if (!given || given->size <= offsetof(unsalt_record_t, topic))
        return false;
    for (size_t i = sizeof *record; i < given->size; i++)
        if (bytes[i])
            return false;
    memset(record, 0, sizeof *record);
    memcpy(record, given, given->size < sizeof *record ? given->size : sizeof *record);
    return true;
}

static bool has_our_header(const rd_kafka_headers_t *headers) {
    const void *value;
    size_t size;
    return headers && !rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size);
}

bool us_record_topic_fits(const struct unsalt_producer *p, const char *topic) {
    const struct us_lane_topics *topics = &p->lane_topics.topics;
    char name[US_TOPIC_MAX + 1];
    size_t length = topic ? strnlen(topic, US_TOPIC_MAX + 1) : 0;
    if (length == 0 || length > US_TOPIC_MAX)
        return false;
    if (p->conf->layout != US_LAYOUT_TOPICS)
        return true;
    if (topics->names)
        return strcmp(topics->names[0], topic) == 0;
    return length + LANE_SUFFIX_MAX <= US_TOPIC_MAX ||
           us_lane_topic(topics, topic, topics->count - 1, name, sizeof name) > 0;
}

const char *us_record_lane_topic(const struct unsalt_producer *p, const char *base, uint16_t lane, char *name) {
    if (p->conf->layout != US_LAYOUT_TOPICS)
        return base;
    us_lane_topic(&p->lane_topics.topics, base, lane, name, US_TOPIC_MAX + 1);
    return name;
}

bool us_record_read(const struct unsalt_producer *p, const unsalt_record_t *given, unsalt_record_t *record) {
    if (!copy(given, record) || !us_record_topic_fits(p, record->topic))
        return false;
    if ((record->flags & ~UNSALT_F_LAST) || (!record->payload && record->len) || record->timestamp < 0 ||
        record->lanes > p->senders.map.lanes || has_our_header(record->headers))
        return false;
    if (!record->session)
        return record->session_len == 0 && record->flags == 0;
    return record->session_len > 0 && record->session_len <= (size_t)p->conf->session_id_max;
}

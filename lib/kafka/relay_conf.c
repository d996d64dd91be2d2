/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <kafka/chance.h>
#include <kafka/clock.h>
#include <kafka/conf_table.h>
#include <kafka/relay.h>
#include <stdio.h>
#include <string.h>

/* librdkafka's default, which gives the same partition of all lane topics to one member. */
#define DEFAULT_ASSIGNORS "range,roundrobin"

static const char *get(const rd_kafka_conf_t *conf, const char *name, char *text, size_t size) {
    if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        text[0] = '\0';
    return text;
}

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr, size_t size) {
    return rd_kafka_conf_set(conf, name, value, errstr, size) == RD_KAFKA_CONF_OK;
}

/* Whether a value isn't the default: what was set to its default does no harm anywhere. */
static bool is_set(const struct unsalt_conf *conf, const struct us_key *key) {
    const void *field = (const char *)conf + key->offset;
    int64_t number = 0;
    if (us_key_is_text(key)) {
        const char *text = *(char *const *)field;
        return strcmp(text ? text : "", key->fallback) != 0;
    }
    return us_key_read(key, key->fallback, &number) && number != *(const int64_t *)field;
}

/* Keys of one of the two configurations do nothing on the other: foreign is their scope. */
static bool check_place(const struct unsalt_conf *conf, char foreign, const char *here, const char *there, char *errstr,
                        size_t size) {
    for (size_t i = 0; i < us_keys_count; i++) {
        if (us_keys[i].scope == foreign && is_set(conf, &us_keys[i])) {
            snprintf(errstr, size, "%s is set on the relay's %s, where it does nothing: it belongs to its %s",
                     us_keys[i].name, here, there);
            return false;
        }
    }
    return true;
}

static bool check_places(const struct unsalt_conf *input, const struct unsalt_conf *result, char *errstr, size_t size) {
    static const char in[] = "input (second configuration)", out[] = "result (fourth configuration)";
    const char *call = result->relay_cb               ? "unsalt_conf_set_relay_cb()"
                       : result->relay_dead_letter_cb ? "unsalt_conf_set_relay_dead_letter_cb()"
                                                      : NULL;
    if (call)
        snprintf(errstr, size, "%s was called on the relay's %s, where it does nothing: it belongs to its %s", call,
                 out, in);
    return !call && check_place(input, 'T', in, out, errstr, size) && check_place(result, 'R', out, in, errstr, size);
}

/* Whatever asks for dead letters needs a place for them. */
static bool check_letters(const struct unsalt_conf *input, char *errstr, size_t size) {
    const char *key = input->relay_failure == US_PIPE_DEAD_LETTER           ? "relay.failure"
                      : input->malformed == UNSALT_MALFORMED_DEAD_LETTER ? "malformed"
                                                                         : NULL;
    if (!key || input->relay_dead_letter_cb || input->relay_dead_letter_topic[0])
        return true;
    snprintf(errstr, size, "%s=dead-letter needs relay.dead.letter.topic, or unsalt_conf_set_relay_dead_letter_cb()",
             key);
    return false;
}

/* The result is written as by a producer; the input is read as by a consumer, but for what becomes of dead letters. */
bool us_relay_check(const struct unsalt_conf *input, const struct unsalt_conf *result, char *errstr, size_t size) {
    struct unsalt_conf reads = *input;
    reads.malformed = UNSALT_MALFORMED_DELIVER;
    if (!check_places(input, result, errstr, size))
        return false;
    if (!us_conf_check_consumer(&reads, errstr, size) || !us_conf_check_producer(result, errstr, size))
        return false;
    if (!result->relay_topic[0]) {
        snprintf(errstr, size, "relay.topic (the topic that results go to) is not set");
        return false;
    }
    if (result->lane_topics && strncmp(result->lane_topics, result->relay_topic, strlen(result->relay_topic)) != 0) {
        snprintf(errstr, size, "relay.topic=\"%s\" is not the first of lane.topics", result->relay_topic);
        return false;
    }
    if ((uint64_t)input->seq_first == 0) {
        snprintf(errstr, size, "seq.first=0 is not allowed for a relay: 0 is no sequence in the header `%s`",
                 UNSALT_HEADER_NAME);
        return false;
    }
    return check_letters(input, errstr, size);
}

bool us_relay_reads(rd_kafka_conf_t *reads, char *errstr, size_t size) {
    char text[128];
    if (!get(reads, "group.id", text, sizeof text)[0]) {
        snprintf(errstr, size, "group.id is not set: relays share their work as members of a group");
        return false;
    }
    if (strcmp(get(reads, "isolation.level", text, sizeof text), "read_committed") != 0) {
        snprintf(errstr, size,
                 "isolation.level=%s is not allowed for a relay: a member must wait for the transactions of those "
                 "before it (read_committed)", text);
        return false;
    }
    if (strcmp(get(reads, "partition.assignment.strategy", text, sizeof text), DEFAULT_ASSIGNORS) == 0 &&
        strcmp(get(reads, "group.protocol", text, sizeof text), "consumer") != 0 &&
        !set(reads, "partition.assignment.strategy", "roundrobin", errstr, size))
        return false;
    return set(reads, "enable.auto.commit", "false", errstr, size) &&
           set(reads, "enable.auto.offset.store", "false", errstr, size) &&
           set(reads, "enable.partition.eof", "false", errstr, size) &&
           set(reads, "auto.offset.reset", "earliest", errstr, size);
}

/* The group's id, and what no other process has. */
static bool draw_id(rd_kafka_conf_t *writes, const rd_kafka_conf_t *reads, char *errstr, size_t size) {
    char group[200], id[256];
    uint64_t drawn[2] = {us_chance(), us_chance()};
    snprintf(id, sizeof id, "%.200s.relay.%016" PRIx64 "%016" PRIx64, get(reads, "group.id", group, sizeof group),
             drawn[0], drawn[1]);
    return set(writes, "transactional.id", id, errstr, size);
}

bool us_relay_writes(rd_kafka_conf_t *writes, const rd_kafka_conf_t *reads, const struct unsalt_conf *input,
                     char *errstr, size_t size) {
    char text[64];
    size_t length = 0;
    bool has_id = rd_kafka_conf_get(writes, "transactional.id", NULL, &length) == RD_KAFKA_CONF_OK && length > 1;
    /* A letter is larger than its record; that its topic isn't there is told before the transaction's time is over. */
    bool letters = *input->relay_dead_letter_topic && !input->relay_dead_letter_cb;
    snprintf(text, sizeof text, "%" PRId64, input->relay_timeout_ms < 10000 ? input->relay_timeout_ms / 2 : 5000);
    if (letters && (!set(writes, "message.max.bytes", "1000000000", errstr, size) ||
                    !set(writes, "topic.metadata.propagation.max.ms", text, errstr, size))) {
        return false;
    }
    snprintf(text, sizeof text, "%" PRId64, input->relay_timeout_ms);
    /* Results name their partition; dead letters go where their key belongs, as those of a pipeline do. */
    return (has_id || draw_id(writes, reads, errstr, size)) && set(writes, "partitioner", "murmur2", errstr, size) &&
           set(writes, "transaction.timeout.ms", text, errstr, size);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a chaos run does to the cluster and asks of it, by plain librdkafka calls:
 *
 *   topics create            the lane topics on three brokers, acks=all needs two of them
 *   topics grow LANE N       a lane topic gets N partitions
 *   topics coordinator       prints the id of the group's coordinator
 *   topics lag               prints how many offsets the group has still to commit
 *   topics records           prints `R lane partition offset session run number` for every record, M for a marker
 *   topics offsets           prints `lane/partition offset milliseconds` for every commit that the cluster accepted
 */
#include "journal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, BROKERS = 3, READ_MS = 60000, IDLE_MS = 15000, GROW_MS = 90000 };

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof errstr);
    if (!rk)
        chaos_die("%s", errstr);
    return rk;
}

static rd_kafka_event_t *answer(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    if (!event || rd_kafka_event_error(event))
        chaos_die("admin call: %s", event ? rd_kafka_event_error_string(event) : "no answer");
    return event;
}

static void create(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
    rd_kafka_NewTopic_t *topics[CHAOS_LANES];
    const rd_kafka_topic_result_t **results;
    char name[64], errstr[256];
    size_t n;
    for (int lane = 0; lane < CHAOS_LANES; lane++) {
        topics[lane] = rd_kafka_NewTopic_new(chaos_topic(lane, name, sizeof name), CHAOS_PARTITIONS, BROKERS, errstr,
                                             sizeof errstr);
        if (!topics[lane])
            chaos_die("%s", errstr);
        rd_kafka_NewTopic_set_config(topics[lane], "min.insync.replicas", "2");
    }
    rd_kafka_CreateTopics(rk, topics, CHAOS_LANES, NULL, queue);
    rd_kafka_event_t *event = answer(queue);
    results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    for (size_t i = 0; i < n; i++)
        if (rd_kafka_topic_result_error(results[i]))
            chaos_die("%s: %s", rd_kafka_topic_result_name(results[i]), rd_kafka_topic_result_error_string(results[i]));
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy_array(topics, CHAOS_LANES);
}

/* One try. False: what the topic has now isn't known. */
static int grow_once(rd_kafka_t *rk, rd_kafka_queue_t *queue, rd_kafka_NewPartitions_t *more) {
    rd_kafka_CreatePartitions(rk, &more, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    rd_kafka_resp_err_t err = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    const char *text = event ? rd_kafka_event_error_string(event) : NULL;
    if (!err) {
        size_t n;
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &n);
        err = n == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
        text = n == 1 ? rd_kafka_topic_result_error_string(results[0]) : NULL;
    }
    /* It has as many: by a try of which nothing was heard, or it was made to grow further meanwhile. */
    int done = !err || err == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS;
    if (!done)
        fprintf(stderr, "topics: grow: %s\n", text ? text : rd_kafka_err2str(err));
    if (event)
        rd_kafka_event_destroy(event);
    return done;
}

/* Brokers are killed meanwhile; a lane topic with fewer partitions than others would have to be refused for ever. */
static void grow(rd_kafka_t *rk, rd_kafka_queue_t *queue, int lane, size_t partitions) {
    char name[64], errstr[256];
    uint64_t until = chaos_clock() + UINT64_C(1000) * GROW_MS;
    rd_kafka_NewPartitions_t *more =
        rd_kafka_NewPartitions_new(chaos_topic(lane, name, sizeof name), partitions, errstr, sizeof errstr);
    if (!more)
        chaos_die("%s", errstr);
    while (!grow_once(rk, queue, more)) {
        if (chaos_clock() > until)
            chaos_die("%s can't be made to grow", name);
        chaos_sleep(300000);
    }
    rd_kafka_NewPartitions_destroy(more);
}

static void coordinator(rd_kafka_t *rk, rd_kafka_queue_t *queue) {
    const char *group = CHAOS_GROUP;
    size_t n;
    rd_kafka_DescribeConsumerGroups(rk, &group, 1, NULL, queue);
    rd_kafka_event_t *event = answer(queue);
    const rd_kafka_ConsumerGroupDescription_t **groups =
        rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(event), &n);
    const rd_kafka_Node_t *node = n == 1 ? rd_kafka_ConsumerGroupDescription_coordinator(groups[0]) : NULL;
    if (!node)
        chaos_die("the group has no coordinator");
    printf("%d\n", rd_kafka_Node_id(node));
    rd_kafka_event_destroy(event);
}

/* All partitions that the topics have now; `first` adds the partitions of one more topic. */
static rd_kafka_topic_partition_list_t *partitions(rd_kafka_t *rk, const char *only) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(64);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 1, NULL, &metadata, WAIT_MS);
    if (err)
        chaos_die("metadata: %s", rd_kafka_err2str(err));
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        if ((only ? strcmp(topic->topic, only) != 0 : chaos_lane(topic->topic) < 0) || topic->partition_cnt == 0)
            continue;
        rd_kafka_topic_partition_list_add_range(list, topic->topic, 0, topic->partition_cnt - 1);
    }
    rd_kafka_metadata_destroy(metadata);
    return list;
}

static int64_t end_of(rd_kafka_t *rk, const rd_kafka_topic_partition_t *one, int64_t *low) {
    int64_t first = 0, end = 0;
    rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(rk, one->topic, one->partition, &first, &end, WAIT_MS);
    if (err)
        chaos_die("end of %s [%d]: %s", one->topic, (int)one->partition, rd_kafka_err2str(err));
    *low = first;
    return end;
}

/* Partitions that nobody committed count from the start of their log. */
static void lag(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *list = partitions(rk, NULL);
    int64_t sum = 0;
    rd_kafka_resp_err_t err = rd_kafka_committed(rk, list, WAIT_MS);
    if (err)
        chaos_die("committed: %s", rd_kafka_err2str(err));
    for (int i = 0; i < list->cnt; i++) {
        int64_t low, end = end_of(rk, &list->elems[i], &low);
        int64_t committed = list->elems[i].offset >= 0 ? list->elems[i].offset : low;
        sum += end > committed ? end - committed : 0;
    }
    printf("%" PRId64 "\n", sum);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Calls `print` for all that stands in the partitions now. */
static void read_all(rd_kafka_t *rk, const char *only, void (*print)(const rd_kafka_message_t *)) {
    rd_kafka_topic_partition_list_t *list = partitions(rk, only);
    int64_t ends[256], low;
    int left = 0;
    uint64_t until = chaos_clock() + UINT64_C(1000) * READ_MS * 10;
    for (int i = 0; i < list->cnt && i < 256; i++) {
        ends[i] = end_of(rk, &list->elems[i], &low);
        list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
        left += ends[i] > low;
        ends[i] = ends[i] > low ? ends[i] : -1;
    }
    rd_kafka_assign(rk, list);
    while (left > 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, IDLE_MS);
        if (!message || chaos_clock() > until)
            chaos_die("%d partitions can't be read to their ends", left);
        rd_kafka_topic_partition_t *one = NULL;
        if (message->rkt)
            one = rd_kafka_topic_partition_list_find(list, rd_kafka_topic_name(message->rkt), message->partition);
        int64_t *end = one ? &ends[one - list->elems] : NULL;
        int over = end && *end >= 0 && message->offset >= *end - (message->err ? 0 : 1);
        if (message->err && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
            fprintf(stderr, "topics: %s\n", rd_kafka_message_errstr(message));
        else if (!message->err)
            print(message);
        if (over) {
            *end = -1;
            left--;
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void print_record(const rd_kafka_message_t *message) {
    struct chaos_name name;
    rd_kafka_headers_t *headers;
    const void *header;
    size_t size;
    int marker = !rd_kafka_message_headers(message, &headers) &&
                 !rd_kafka_header_get_last(headers, "unsalt", &header, &size) && size >= 2 &&
                 (((const unsigned char *)header)[1] & 0x14) != 0;
    if (marker || chaos_parse(message->payload, message->len, &name) != 0)
        printf("M %d %d %" PRId64 "\n", chaos_lane(rd_kafka_topic_name(message->rkt)), (int)message->partition,
               message->offset);
    else
        printf("R %d %d %" PRId64 " %s %" PRIu64 " %" PRIu64 "\n", chaos_lane(rd_kafka_topic_name(message->rkt)),
               (int)message->partition, message->offset, name.session, name.run, name.number);
}

/* A big-endian number of the offsets topic, whose format Kafka's message definitions describe. */
static int64_t number(const unsigned char *bytes, size_t len) {
    uint64_t value = bytes[0] & 0x80 && len < 8 ? UINT64_MAX : 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

/* The place behind the metadata of an OffsetCommitValue: a string until version 3, a compact one since version 4. */
static size_t behind_metadata(const unsigned char *value, size_t len, int version) {
    size_t at = 14, size = 0;
    if (version == 3)
        return 16 + (size_t)number(value + at, 2);
    for (unsigned shift = 0; at < len && shift < 28; shift += 7) {
        size |= (size_t)(value[at] & 0x7f) << shift;
        if (!(value[at++] & 0x80))
            break;
    }
    return at + (size ? size - 1 : 0);
}

static void print_offset(const rd_kafka_message_t *message) {
    const unsigned char *key = message->key, *value = message->payload;
    char topic[128];
    size_t at = 4 + sizeof CHAOS_GROUP - 1, len, behind;
    int version;
    /* OffsetCommitKey: a type, 0 or 1, then group, topic, partition. */
    if (message->key_len < at + 2 || number(key, 2) > 1 || number(key + 2, 2) != sizeof CHAOS_GROUP - 1 ||
        memcmp(key + 4, CHAOS_GROUP, sizeof CHAOS_GROUP - 1) != 0 || !value)
        return;
    len = (size_t)number(key + at, 2);
    if (len >= sizeof topic || message->key_len < at + 2 + len + 4)
        return;
    memcpy(topic, key + at + 2, len);
    topic[len] = '\0';
    /* OffsetCommitValue: version, offset, leader's epoch, metadata, time. */
    version = message->len >= 16 ? (int)number(value, 2) : -1;
    if (version != 3 && version != 4)
        chaos_die("a committed offset of format %d can't be read", version);
    behind = behind_metadata(value, message->len, version);
    if (message->len < behind + 8)
        chaos_die("a committed offset is too short");
    printf("%d/%d %" PRId64 " %" PRId64 "\n", chaos_lane(topic), (int)number(key + at + 2 + len, 4),
           number(value + 2, 8), number(value + behind, 8));
}

static rd_kafka_t *reader(void) {
    rd_kafka_conf_t *conf = chaos_conf();
    chaos_set(conf, "group.id", CHAOS_GROUP);
    chaos_set(conf, "enable.auto.commit", "false");
    chaos_set(conf, "enable.partition.eof", "true");
    chaos_set(conf, "isolation.level", "read_committed");
    return client(RD_KAFKA_CONSUMER, conf);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int reads = strcmp(what, "records") == 0 || strcmp(what, "offsets") == 0 || strcmp(what, "lag") == 0;
    rd_kafka_t *rk = reads ? reader() : client(RD_KAFKA_PRODUCER, chaos_conf());
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    if (strcmp(what, "create") == 0)
        create(rk, queue);
    else if (strcmp(what, "grow") == 0 && argc == 4)
        grow(rk, queue, atoi(argv[2]), (size_t)atoi(argv[3]));
    else if (strcmp(what, "coordinator") == 0)
        coordinator(rk, queue);
    else if (strcmp(what, "lag") == 0)
        lag(rk);
    else if (strcmp(what, "records") == 0)
        read_all(rk, NULL, print_record);
    else if (strcmp(what, "offsets") == 0)
        read_all(rk, "__consumer_offsets", print_offset);
    else
        chaos_die("topics create|grow LANE N|coordinator|lag|records|offsets");
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return 0;
}

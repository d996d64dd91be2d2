/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which dead letters 17_reinject.c has met. After a crash of who wrote them letters may stand there twice, and the
 * second one may come when the tool was started again: so it begins by looking at all that its group has read.
 */
#ifndef SEEN_H
#define SEEN_H
#include <librdkafka/rdkafka.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_ASK_MS = 30000, SEEN_POLL_MS = 200 };

struct seen {
    void *tree;       /* of texts: where a record came from, and which letter told of it first */
    bool by_group;    /* letters that two groups wrote of one record are two; else the second is a copy */
};

/* A header as text; "" if there is none. */
static const char *seen_header(rd_kafka_headers_t *headers, const char *name, char *text, size_t size) {
    const void *value;
    size_t len;
    text[0] = '\0';
    if (headers && !rd_kafka_header_get_last(headers, name, &value, &len) && value)
        snprintf(text, size, "%.*s", (int)len, (const char *)value);
    return text;
}

static int seen_compare(const void *a, const void *b) {
    return strcmp(a, b); /* up to the first letter's place, which stands behind the final 0 */
}

/* Notes it. One that comes twice to us is no copy. */
static bool seen_is_copy(struct seen *seen, const rd_kafka_message_t *letter) {
    char topic[256], partition[16], offset[24], group[256], from[580], place[48];
    rd_kafka_headers_t *headers = NULL;
    rd_kafka_message_headers(letter, &headers);
    seen_header(headers, "unsalt.dead.topic", topic, sizeof topic);
    seen_header(headers, "unsalt.dead.partition", partition, sizeof partition);
    seen_header(headers, "unsalt.dead.offset", offset, sizeof offset);
    seen_header(headers, seen->by_group ? "unsalt.dead.group" : "", group, sizeof group);
    size_t len = (size_t)snprintf(from, sizeof from, "%s %s %s %s", topic, partition, offset, group);
    snprintf(place, sizeof place, "%d %lld", (int)letter->partition, (long long)letter->offset);
    char **found = tfind(from, &seen->tree, seen_compare), *entry;
    if (found)
        return strcmp(*found + len + 1, place) != 0;
    entry = malloc(len + sizeof place + 1);
    if (entry && memcpy(entry, from, len + 1) && strcpy(entry + len + 1, place))
        tsearch(entry, &seen->tree, seen_compare);
    return false;
}

/* Adds every partition of the topic to the list. Not NO_ERROR: there is no such topic, or nobody says. */
static rd_kafka_resp_err_t seen_partitions(rd_kafka_t *rk, const char *name, rd_kafka_topic_partition_list_t *list) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    rd_kafka_resp_err_t err =
        topic ? rd_kafka_metadata(rk, 0, topic, &metadata, SEEN_ASK_MS) : RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
    if (!err) {
        err = metadata->topics[0].err;
        for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
            rd_kafka_topic_partition_list_add(list, name, metadata->topics[0].partitions[i].id);
        rd_kafka_metadata_destroy(metadata);
    }
    if (topic)
        rd_kafka_topic_destroy(topic);
    if (err)
        fprintf(stderr, "%s: %s\n", name, rd_kafka_err2str(err));
    return err;
}

/* Every partition of which the group has read something, with the offset that it goes on from; NULL: unknown. */
static rd_kafka_topic_partition_list_t *seen_committed(rd_kafka_t *rk, const char *name) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    rd_kafka_resp_err_t err = seen_partitions(rk, name, list);
    err = err ? err : rd_kafka_committed(rk, list, SEEN_ASK_MS); /* a transaction that was cut off is waited for */
    for (int i = list->cnt - 1; i >= 0; i--) {
        err = err ? err : list->elems[i].err;
        if (list->elems[i].offset <= 0)
            rd_kafka_topic_partition_list_del_by_idx(list, i);
    }
    if (!err)
        return list;
    fprintf(stderr, "%s: how far it was read can't be told\n", name);
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

/* Notes a letter below the offset. Returns false when the partition has none left. */
static bool seen_note(struct seen *seen, const rd_kafka_message_t *letter, int64_t below) {
    if (letter->err)
        return letter->err != RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (letter->offset < below)
        seen_is_copy(seen, letter);
    return letter->offset + 1 < below;
}

/* Reads each partition from its beginning up to that offset, which becomes 0 then. */
static void seen_read(struct seen *seen, rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *from = rd_kafka_topic_partition_list_copy(list);
    for (int i = 0; i < from->cnt; i++)
        from->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, from);
    rd_kafka_topic_partition_list_destroy(from);
    for (int left = list->cnt; left > 0;) {
        rd_kafka_message_t *letter = rd_kafka_consumer_poll(rk, SEEN_POLL_MS);
        const char *name = letter && letter->rkt ? rd_kafka_topic_name(letter->rkt) : NULL;
        rd_kafka_topic_partition_t *one =
            name ? rd_kafka_topic_partition_list_find(list, name, letter->partition) : NULL;
        if (one && one->offset > 0 && !seen_note(seen, letter, one->offset)) {
            one->offset = 0;
            left--;
        }
        if (letter)
            rd_kafka_message_destroy(letter);
    }
}

/* Notes all that the group has read of the topic of letters. False, and it is said why: a topic isn't there, .. */
static bool seen_before(struct seen *seen, const char *bootstrap, const char *group, const char *letters,
                        const char *topic) {
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", group, errstr, sizeof errstr); /* asked, not joined */
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", errstr, sizeof errstr);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (!rk)
        return false;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    bool known = !seen_partitions(rk, topic, list);
    rd_kafka_topic_partition_list_destroy(list);
    list = known ? seen_committed(rk, letters) : NULL;
    known = list != NULL;
    if (known) {
        seen_read(seen, rk, list);
        rd_kafka_topic_partition_list_destroy(list);
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return known;
}
#endif

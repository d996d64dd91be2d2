/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster.h"
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cluster {
    struct demo *demo;
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *mock; /* NULL on a real cluster */
};

/* Waits for the result of an admin call; says what failed. */
static bool answered(rd_kafka_queue_t *queue, const char *what) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 15000);
    const rd_kafka_topic_result_t **topics = NULL;
    size_t n = 0;
    const char *error = !event ? "no answer" : rd_kafka_event_error(event) ? rd_kafka_event_error_string(event) : NULL;
    if (!error && rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
        topics = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    else if (!error && rd_kafka_event_type(event) == RD_KAFKA_EVENT_DELETETOPICS_RESULT)
        topics = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &n);
    if (n && rd_kafka_topic_result_error(topics[0]))
        error = rd_kafka_topic_result_error_string(topics[0]);
    if (error)
        fprintf(stderr, "demo: %s: %s\n", what, error);
    if (event)
        rd_kafka_event_destroy(event);
    return !error;
}

static bool create_topic(struct cluster *cluster) {
    char errstr[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->rk);
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(cluster->demo->topic, DEMO_PARTITIONS, -1, errstr, sizeof errstr);
    bool ok;
    if (!topic) {
        fprintf(stderr, "demo: %s\n", errstr);
        rd_kafka_queue_destroy(queue);
        return false;
    }
    rd_kafka_CreateTopics(cluster->rk, &topic, 1, NULL, queue);
    ok = answered(queue, "the topic can't be created");
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    return ok;
}

static void delete_topic(struct cluster *cluster) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(cluster->demo->topic);
    rd_kafka_DeleteTopics(cluster->rk, &topic, 1, NULL, queue);
    answered(queue, "the topic can't be deleted");
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
}

static bool start_mock(struct cluster *cluster) {
    struct demo *demo = cluster->demo;
    cluster->mock = rd_kafka_mock_cluster_new(cluster->rk, 3);
    if (!cluster->mock) {
        fprintf(stderr, "demo: the mock cluster doesn't start\n");
        return false;
    }
    snprintf(demo->bootstrap, sizeof demo->bootstrap, "%s", rd_kafka_mock_cluster_bootstraps(cluster->mock));
    return !rd_kafka_mock_topic_create(cluster->mock, demo->topic, DEMO_PARTITIONS, 1);
}

struct cluster *cluster_open(struct demo *demo, const char *bootstrap) {
    struct cluster *cluster = calloc(1, sizeof *cluster);
    char errstr[256];
    rd_kafka_conf_t *conf;
    bool ok;
    if (!cluster)
        return NULL;
    cluster->demo = demo;
    snprintf(demo->bootstrap, sizeof demo->bootstrap, "%s", bootstrap);
    snprintf(demo->topic, sizeof demo->topic, "unsalt-demo-%ld-%ld", (long)time(NULL), (long)getpid());
    conf = demo_conf(demo);
    cluster->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!cluster->rk) {
        fprintf(stderr, "demo: %s\n", errstr);
        rd_kafka_conf_destroy(conf);
        free(cluster);
        return NULL;
    }
    ok = *bootstrap ? create_topic(cluster) : start_mock(cluster);
    if (!ok) {
        demo->topic[0] = '\0';
        cluster_close(cluster);
        return NULL;
    }
    printf("demo: librdkafka %s, %s, topic %s with %d partitions\n", rd_kafka_version_str(),
           *bootstrap ? demo->bootstrap : "its mock cluster of 3 brokers", demo->topic, DEMO_PARTITIONS);
    return cluster;
}

void cluster_close(struct cluster *cluster) {
    if (!cluster->mock && cluster->demo->topic[0])
        delete_topic(cluster);
    if (cluster->mock)
        rd_kafka_mock_cluster_destroy(cluster->mock);
    rd_kafka_destroy(cluster->rk);
    free(cluster);
}

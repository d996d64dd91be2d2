/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One hot session over four lanes and fifty cold ones, read by rd_kafka_consumer_poll() and by unsalt_consumer_poll()
 * side by side.
 *
 *   demo                       on librdkafka's mock cluster, in this process
 *   BOOTSTRAP=host:port demo   on a real cluster; creates a topic and deletes it
 *   FAULT=1 demo               logs one delivery out of order: the checker must notice, and the demo must fail
 */
#include "cluster.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double demo_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void demo_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    if (rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "demo: %s\n", errstr);
        exit(2);
    }
}

rd_kafka_conf_t *demo_conf(const struct demo *demo) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (demo->bootstrap[0])
        demo_set(conf, "bootstrap.servers", demo->bootstrap);
    demo_set(conf, "log_level", "3"); /* the demo prints the events itself */
    return conf;
}

unsalt_conf_t *demo_unsalt_conf(const char *lanes) {
    unsalt_conf_t *conf = unsalt_conf_new();
    char number[16], errstr[256] = "out of memory";
    snprintf(number, sizeof number, "%d", DEMO_PARTITIONS);
    if (!conf || unsalt_conf_set(conf, "layout", "hash", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "partitions", number, errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "lanes", lanes, errstr, sizeof errstr)) {
        fprintf(stderr, "demo: %s\n", errstr);
        exit(2);
    }
    snprintf(number, sizeof number, "%d", DEMO_GAP_MS);
    unsalt_conf_set(conf, "gap.timeout.ms", number, NULL, 0);
    return conf;
}

rd_kafka_topic_partition_list_t *demo_partitions(const struct demo *demo) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(DEMO_PARTITIONS);
    int32_t i;
    for (i = 0; i < DEMO_PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, demo->topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    return list;
}

void demo_fail(struct demo *demo, const char *what, const char *why) {
    if (!atomic_exchange(&demo->failed, true))
        fprintf(stderr, "demo: %s: %s\n", what, why);
}

static void progress(const struct demo *demo, double since) {
    printf("  %4.1f s  accepted %6lu | raw: read %6lu, inversions %5lu | unsalt: delivered %6lu, inversions %lu\n",
           demo_now() - since, demo->accepted_records, demo->raw.records, demo->raw.inverted, demo->ordered.records,
           demo->ordered.inverted);
    fflush(stdout);
}

struct part {
    pthread_t thread;
    struct demo *demo;
    void *(*work)(void *);
    atomic_bool over;
};

static void *run_part(void *arg) {
    struct part *part = arg;
    part->work(part->demo);
    part->over = true;
    return NULL;
}

static void run(struct demo *demo) {
    struct part parts[] = {{.work = demo_read_raw}, {.work = demo_read_ordered}, {.work = demo_produce}};
    struct timespec tick = {0, 50000000};
    double began = demo_now(), next = 0.5;
    int i, started, over = 0;
    for (started = 0; started < 3; started++) {
        parts[started].demo = demo;
        if (pthread_create(&parts[started].thread, NULL, run_part, &parts[started])) {
            demo_fail(demo, "thread", "can't be started");
            break;
        }
    }
    while (over < started) {
        nanosleep(&tick, NULL);
        if (demo_now() - began > next) {
            progress(demo, began);
            next += 0.5;
        }
        for (over = i = 0; i < started; i++)
            over += parts[i].over;
    }
    for (i = 0; i < started; i++)
        pthread_join(parts[i].thread, NULL);
    progress(demo, began);
}

int main(void) {
    static struct demo demo;
    const char *bootstrap = getenv("BOOTSTRAP"), *fault = getenv("FAULT");
    struct cluster *cluster;
    int status = 1;
    alarm(60);
    setvbuf(stdout, NULL, _IOLBF, 0);
    demo.fault = fault && *fault && strcmp(fault, "0") != 0;
    demo.accepted = checker_log_new();
    demo.raw.log = checker_log_new();
    demo.ordered.log = checker_log_new();
    cluster = cluster_open(&demo, bootstrap ? bootstrap : "");
    if (cluster) {
        printf("demo: session %s over %d lanes at %d records/s, %d cold sessions, %d s\n", DEMO_HOT, DEMO_LANES,
               DEMO_HOT_RATE, DEMO_COLD, DEMO_SECONDS);
        demo_tell_traffic();
        run(&demo);
        status = demo.failed ? 1 : demo_report(&demo);
        cluster_close(cluster);
    }
    checker_log_free(demo.ordered.log);
    checker_log_free(demo.raw.log);
    checker_log_free(demo.accepted);
    return status;
}

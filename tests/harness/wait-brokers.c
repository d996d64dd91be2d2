/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait-brokers BOOTSTRAP COUNT SECONDS: waits until the metadata lists COUNT brokers and each of them answers, and
 * until coordinators of groups do: the topic of their offsets is made and loaded when the first one is asked for.
 * Exit 0 when they do, 1 when the time is over.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void silent(const rd_kafka_t *rk, int level, const char *fac, const char *buf) {
    (void)rk;
    (void)level;
    (void)fac;
    (void)buf;
}

static int brokers_listed(const char *bootstrap) {
    char err[256];
    const struct rd_kafka_metadata *md;
    int count = 0;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, silent);
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof err);
    rd_kafka_conf_set(conf, "reconnect.backoff.ms", "20", err, sizeof err);
    rd_kafka_conf_set(conf, "reconnect.backoff.max.ms", "100", err, sizeof err);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof err);
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        return -1;
    }
    if (rd_kafka_metadata(rk, 0, NULL, &md, 2000) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        count = md->broker_cnt;
        rd_kafka_metadata_destroy(md);
    }
    rd_kafka_destroy(rk);
    return count;
}

/* Every address of the list must answer by itself, so each is asked alone. */
static int all_answer(char *bootstrap, int want) {
    for (char *p = bootstrap; *p;) {
        char one[128];
        size_t n = 0;
        while (*p && *p != ',' && n + 1 < sizeof one)
            one[n++] = *p++;
        one[n] = '\0';
        while (*p == ',')
            p++;
        if (brokers_listed(one) != want)
            return 0;
    }
    return 1;
}

/* Their names end in digits in a row, so by Java's hash of a text they meet every partition of the topic of offsets. */
enum { GROUPS = 8 };

/* Does the coordinator of a group that nobody uses tell its offsets? */
static int group_answers(const char *bootstrap, int number) {
    char err[256], group[32];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    snprintf(group, sizeof group, "wait-brokers-%d", number);
    rd_kafka_conf_set_log_cb(conf, silent);
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof err);
    rd_kafka_conf_set(conf, "group.id", group, err, sizeof err);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof err);
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        return 0;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "wait-brokers", 0);
    rd_kafka_resp_err_t answer = rd_kafka_committed(rk, list, 2000);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return answer == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int groups_answer(const char *bootstrap) {
    int number = 0;
    while (number < GROUPS && group_answers(bootstrap, number))
        number++;
    return number == GROUPS;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP COUNT SECONDS\n", argv[0]);
        return 2;
    }
    time_t end = time(NULL) + atoi(argv[3]);
    struct timespec pause = {0, 50 * 1000 * 1000};
    while (!all_answer(argv[1], atoi(argv[2])) || !groups_answer(argv[1])) {
        if (time(NULL) > end)
            return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that asks how many partitions there are can't be made at first: that is told, and tried again. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <support/check.h>
#include <support/mockcluster.h>

static _Thread_local bool no_threads; /* this thread can make none; librdkafka makes its own on others */
static _Thread_local int refused;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (no_threads) {
        refused++;
        return EAGAIN;
    }
    return real(thread, attr, main, arg);
}

Test(group_thread, records_come_when_it_can_be_made, .timeout = 60) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 2);
    for (uint64_t seq = 1; seq <= 10; seq++) {
        mock_send(&mock, "t", (int32_t)(seq % 2), "a", seq, 2);
    }
    mock_flush(&mock);
    heard_init(&heard);
    unsalt_t *u = mock_consumer(&mock, "g", "", &heard);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(u, list));
    rd_kafka_topic_partition_list_destroy(list);
    no_threads = true;
    for (uint64_t until = now_ms() + 30000; now_ms() < until && !heard_count(&heard, UNSALT_EVENT_COLOCATION);) {
        take_nothing(u, 50);
    }
    no_threads = false;
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COLOCATION), 1);
    CHECK_THAT(strstr(heard.text[UNSALT_EVENT_COLOCATION], rd_kafka_err2str(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE)),
               "%s", heard.text[UNSALT_EVENT_COLOCATION]);
    CHECK(refused > 1);
    CHECK(take(u, &takings, 10, 20000));
    CHECK_U64(check_order(&takings, 1), 10);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

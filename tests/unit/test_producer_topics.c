/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/producer_topics.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <support/check.h>
#include <support/failmem.h>
#include <time.h>

struct cluster {
    atomic_int asked;
    rd_kafka_resp_err_t answer;
    int takes_ms;
};

static rd_kafka_resp_err_t ask(void *opaque, const char *topic) {
    struct cluster *cluster = opaque;
    const struct timespec pause = {0, cluster->takes_ms * 1000000L};
    (void)topic;
    cluster->asked++;
    if (cluster->takes_ms)
        nanosleep(&pause, NULL);
    return cluster->answer;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

TEST(producer_topics, a_good_answer_is_kept) {
    struct cluster cluster = {.answer = RD_KAFKA_RESP_ERR_NO_ERROR};
    struct us_topics topics;
    uint16_t lanes = 3;
    us_topics_init(&topics, &us_mem_default, 10);
    for (int i = 0; i < 5; i++) {
        CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), 0);
        CHECK_I64(us_topics_use(&topics, "b", ask, &cluster, &lanes), 0);
    }
    CHECK_I64(cluster.asked, 2);
    CHECK_U64(lanes, 3);
    us_topics_destroy(&topics);
}

TEST(producer_topics, a_bad_answer_stands_for_a_second) {
    struct cluster cluster = {.answer = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC};
    struct us_topics topics;
    uint16_t lanes;
    double end = now() + 1.5;
    us_topics_init(&topics, &us_mem_default, 10);
    while (now() < end && cluster.asked < 2)
        CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
    CHECK_I64(cluster.asked, 2);
    CHECK(now() > end - 0.6);
    cluster.answer = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (end = now() + 1.5; cluster.asked < 3 && now() < end;)
        us_topics_use(&topics, "a", ask, &cluster, &lanes);
    CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), 0);
    CHECK_I64(cluster.asked, 3);
    us_topics_destroy(&topics);
}

TEST(producer_topics, lanes) {
    struct cluster cluster = {.answer = RD_KAFKA_RESP_ERR_NO_ERROR};
    struct us_topics topics;
    uint16_t lanes = 9;
    us_topics_init(&topics, &us_mem_default, 10);
    CHECK(us_topics_set_lanes(&topics, "a", 4));
    CHECK_I64(us_topics_use(&topics, "b", NULL, NULL, &lanes), 0);
    CHECK_U64(lanes, 9);
    CHECK_I64(us_topics_use(&topics, "a", NULL, NULL, &lanes), 0);
    CHECK_U64(lanes, 4);
    CHECK(us_topics_set_lanes(&topics, "a", 1));
    CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), 0);
    CHECK_U64(lanes, 1);
    CHECK_I64(cluster.asked, 1); /* that its lanes are set doesn't mean that it was asked for */
    us_topics_destroy(&topics);
}

TEST(producer_topics, bounded) {
    struct cluster cluster = {.answer = RD_KAFKA_RESP_ERR_NO_ERROR};
    struct us_topics topics;
    uint16_t lanes;
    us_topics_init(&topics, &us_mem_default, 4);
    CHECK(us_topics_set_lanes(&topics, "set", 2));
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        CHECK_I64(us_topics_use(&topics, name, ask, &cluster, &lanes), 0);
    }
    CHECK_I64(us_topics_use(&topics, "t98", ask, &cluster, &lanes), 0);
    CHECK_I64(cluster.asked, 100);
    CHECK_I64(us_topics_use(&topics, "t1", ask, &cluster, &lanes), 0);
    CHECK_I64(cluster.asked, 101);
    CHECK_I64(us_topics_use(&topics, "set", NULL, NULL, &lanes), 0);
    CHECK_U64(lanes, 2); /* what was set isn't forgotten */
    CHECK(us_topics_set_lanes(&topics, "u", 2) && us_topics_set_lanes(&topics, "v", 2));
    CHECK(us_topics_set_lanes(&topics, "w", 2));
    CHECK(!us_topics_set_lanes(&topics, "x", 2));
    CHECK_I64(us_topics_use(&topics, "x", ask, &cluster, &lanes), RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
    us_topics_destroy(&topics);
}

TEST(producer_topics, out_of_memory) {
    struct cluster cluster = {.answer = RD_KAFKA_RESP_ERR_NO_ERROR};
    struct failmem fail;
    struct us_topics topics;
    uint16_t lanes;
    failmem_init(&fail);
    us_topics_init(&topics, &fail.mem, 10);
    failmem_arm(&fail, 1, false);
    CHECK(!us_topics_set_lanes(&topics, "a", 2));
    failmem_arm(&fail, 1, false);
    CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
    CHECK_I64(cluster.asked, 0);
    CHECK_I64(us_topics_use(&topics, "a", ask, &cluster, &lanes), 0);
    us_topics_destroy(&topics);
    CHECK(failmem_is_balanced(&fail));
}

struct user {
    struct us_topics *topics;
    struct cluster *cluster;
    rd_kafka_resp_err_t err;
};

static void *use(void *arg) {
    struct user *user = arg;
    uint16_t lanes;
    user->err = us_topics_use(user->topics, "a", ask, user->cluster, &lanes);
    return NULL;
}

/* Of several threads one asks, the others wait for its answer. */
TEST(producer_topics, one_thread_asks) {
    enum { THREADS = 8 };
    for (int bad = 0; bad < 2; bad++) {
        struct cluster cluster = {.answer = bad ? RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION : 0, .takes_ms = 50};
        struct us_topics topics;
        struct user users[THREADS];
        pthread_t threads[THREADS];
        us_topics_init(&topics, &us_mem_default, 10);
        for (int i = 0; i < THREADS; i++) {
            users[i] = (struct user){&topics, &cluster, RD_KAFKA_RESP_ERR__FAIL};
            CHECK(pthread_create(&threads[i], NULL, use, &users[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            CHECK_I64(users[i].err, cluster.answer);
        }
        CHECK_I64(cluster.asked, 1);
        us_topics_destroy(&topics);
    }
}

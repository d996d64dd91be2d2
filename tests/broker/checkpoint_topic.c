/* SPDX-License-Identifier: BSD-2-Clause */
/* That the topic of checkpoints is there, as it should be. */
#include <broker/fixture/checkpoints.h>
#include <pthread.h>
#include <support/check.h>

struct maker {
    const struct checkpoints *here;
    pthread_t thread;
    rd_kafka_resp_err_t err;
    char errstr[256];
};

static void *make(void *arg) {
    struct maker *maker = arg;
    struct us_checkpoint_topic topic = {maker->here->topic, CHECKPOINTS_PARTITIONS, true, -1, 123456789, false};
    maker->err = us_checkpoint_topic_ensure(&maker->here->client, &topic, 20000, maker->errstr, sizeof maker->errstr);
    return NULL;
}

/* A setting of the topic, in static storage. */
static const char *setting(const struct checkpoints *here, const char *name) {
    static char value[64];
    char errstr[256];
    rd_kafka_t *rk = us_checkpoint_client_new(&here->client, US_CHECKPOINT_ADMIN, errstr, sizeof errstr);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, here->topic);
    const rd_kafka_ConfigResource_t **found;
    const rd_kafka_ConfigEntry_t **entries;
    rd_kafka_event_t *event;
    size_t n, i;
    rd_kafka_DescribeConfigs(rk, &resource, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, 20000);
    CHECK(event && !rd_kafka_event_error(event));
    found = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
    CHECK_U64(n, 1);
    entries = rd_kafka_ConfigResource_configs(found[0], &n);
    value[0] = 0;
    for (i = 0; i < n; i++)
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0)
            snprintf(value, sizeof value, "%s", rd_kafka_ConfigEntry_value(entries[i]));
    rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return value;
}

Test(checkpoint_topic, several_may_make_it_at_once, .timeout = 60) {
    enum { MAKERS = 3 };
    struct checkpoints here;
    struct maker makers[MAKERS];
    int i;
    checkpoints_open(&here, "cp-make");
    for (i = 0; i < MAKERS; i++) {
        makers[i].here = &here;
        CHECK(!pthread_create(&makers[i].thread, NULL, make, &makers[i]));
    }
    for (i = 0; i < MAKERS; i++) {
        pthread_join(makers[i].thread, NULL);
        CHECK_THAT(!makers[i].err, "%s", makers[i].errstr);
    }
    make(&makers[0]);
    CHECK_THAT(!makers[0].err, "%s", makers[0].errstr);
    CHECK_STR(setting(&here, "cleanup.policy"), "compact,delete");
    CHECK_STR(setting(&here, "retention.ms"), "123456789");
    checkpoints_close(&here);
}

Test(checkpoint_topic, another_number_of_partitions_is_an_error_that_says_both, .timeout = 60) {
    struct checkpoints here;
    char errstr[256];
    checkpoints_open(&here, "cp-wrong");
    checkpoints_create(&here);
    struct us_checkpoint_topic topic = {here.topic, 17, true, 1, 1000, false};
    CHECK_I64(us_checkpoint_topic_ensure(&here.client, &topic, 20000, errstr, sizeof errstr),
              RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_THAT(strstr(errstr, "has 3 partitions and needs 17"), "%s", errstr);
    checkpoints_close(&here);
}

Test(checkpoint_topic, one_that_is_missing_is_not_made_without_leave, .timeout = 60) {
    struct checkpoints here;
    char errstr[256];
    checkpoints_open(&here, "cp-none");
    scene_set(here.conf, "allow.auto.create.topics", "true");
    struct us_checkpoint_topic topic = {here.topic, CHECKPOINTS_PARTITIONS, false, 1, 1000, false};
    int i;
    for (i = 0; i < 2; i++) {
        CHECK_I64(us_checkpoint_topic_ensure(&here.client, &topic, 20000, errstr, sizeof errstr),
                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        CHECK_THAT(strstr(errstr, here.topic), "%s", errstr);
    }
    checkpoints_close(&here);
}

Test(checkpoint_topic, what_the_broker_refuses_is_said, .timeout = 60) {
    struct checkpoints here;
    char errstr[256];
    checkpoints_open(&here, "cp-refused");
    struct us_checkpoint_topic topic = {here.topic, CHECKPOINTS_PARTITIONS, true, 99, 1000, false};
    CHECK_I64(us_checkpoint_topic_ensure(&here.client, &topic, 20000, errstr, sizeof errstr),
              RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR);
    CHECK_THAT(strstr(errstr, here.topic), "%s", errstr);
    checkpoints_close(&here);
}

Test(checkpoint_topic, a_cluster_that_is_away_takes_its_time_and_no_more, .timeout = 60) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct us_checkpoint_client client = {conf, "127.0.0.1:1"};
    struct us_checkpoint_topic topic = {"nowhere", 1, true, 1, 1000, false};
    char errstr[256];
    double began = scene_now();
    rd_kafka_resp_err_t err = us_checkpoint_topic_ensure(&client, &topic, 1000, errstr, sizeof errstr);
    CHECK_I64(err, RD_KAFKA_RESP_ERR__TIMED_OUT);
    CHECK_THAT(scene_now() - began < 10, "it took %.1f s", scene_now() - began);
    rd_kafka_conf_destroy(conf);
}

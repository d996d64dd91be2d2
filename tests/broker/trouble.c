/* SPDX-License-Identifier: BSD-2-Clause */
/* Topics that don't exist, a broker that isn't there yet, and a second thread. */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>

Test(trouble, a_missing_topic_is_an_error_and_no_hang, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 4, .lanes = 4, .topic = "never-created", .group = "g-none"};
    checker_log_t *delivered = checker_log_new();
    rd_kafka_conf_t *conf = scene_consumer_conf(&scene);
    struct reader reader;
    double deadline = scene_now() + 20;
    scene_set(conf, "topic.metadata.propagation.max.ms", "500");
    reader_open(&reader, &scene, conf, NULL, delivered);
    while (!reader.errors && scene_now() < deadline)
        reader_take(&reader, 1, 0.5);
    CHECK_U64(reader.last_error, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    CHECK_U64(reader_close(&reader), 0);
    checker_log_free(delivered);
}

static bool kafka(const char *what) {
    const char *script = getenv("UNSALT_TEST_KAFKA_SH"), *dir = getenv("UNSALT_TEST_KAFKA_DIR");
    char command[512];
    if (!script || !dir)
        scene_die("this test stops the broker: run it under tests/harness/with-kafka.sh");
    snprintf(command, sizeof command, "'%s' %s '%s' 1", script, what, dir);
    return system(command) == 0;
}

Test(trouble, a_broker_that_comes_up_later, .timeout = 90) {
    struct scene scene = {.layout = "hash", .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct sender *sender;
    struct reader reader;
    uint64_t n;

    scene_open(&scene, "later");
    sender = sender_open(&scene, SENDER_UNSALT, 4, accepted);
    for (n = 1; n <= 1000; n++)
        sender_send(sender, "hot", n);
    sender_close(sender);
    CHECK(kafka("stop"));
    reader_open(&reader, &scene, NULL, NULL, delivered);
    CHECK_U64(reader_take(&reader, 1, 2), 0);
    CHECK(kafka("start"));
    CHECK_U64(reader_take(&reader, 1000, 40), 1000);
    CHECK_U64(reader_close(&reader), 0);
    checker_judge(accepted, delivered, &report);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}

struct elsewhere {
    unsalt_t *consumer;
    atomic_bool stop;
};

static void *poll_elsewhere(void *arg) {
    struct elsewhere *elsewhere = arg;
    while (!elsewhere->stop) {
        rd_kafka_message_t *message = unsalt_consumer_poll(elsewhere->consumer, 5000);
        if (message)
            rd_kafka_message_destroy(message);
    }
    return NULL;
}

Test(trouble, a_second_thread_gets_an_error, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 4, .lanes = 4};
    checker_log_t *delivered = checker_log_new();
    struct elsewhere elsewhere = {.stop = false};
    struct reader reader;
    rd_kafka_message_t *message;
    pthread_t thread;
    double deadline;
    int refused = 0;

    scene_open(&scene, "second");
    reader_open(&reader, &scene, NULL, NULL, delivered);
    reader_wait_assigned(&reader);
    elsewhere.consumer = reader.consumer;
    CHECK(pthread_create(&thread, NULL, poll_elsewhere, &elsewhere) == 0);
    /* The other thread may not be inside yet: ask until it is. */
    for (deadline = scene_now() + 5; !refused && scene_now() < deadline;)
        refused = unsalt_consume_batch(reader.consumer, 0, &message, 1) == -1;
    CHECK(refused);
    CHECK_U64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    CHECK(unsalt_consumer_poll(reader.consumer, 0) == NULL);
    CHECK_U64(unsalt_last_error(), RD_KAFKA_RESP_ERR__CONFLICT);
    elsewhere.stop = true;
    unsalt_wakeup(reader.consumer);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_U64(reader_take(&reader, 1, 0.2), 0);
    CHECK_U64(reader_close(&reader), 0);
    checker_log_free(delivered);
    scene_close(&scene);
}

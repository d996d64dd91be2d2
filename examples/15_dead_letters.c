/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of records that fail: tried again, then written to a file of dead letters, in the order of their
 * session; the session goes on behind them. Records whose payload begins with "bad" fail for good, those with "shaky"
 * fail once. With the key pipeline.dead.letter.topic, and without the callback, they would go to a topic.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static bool begins(const rd_kafka_message_t *message, const char *word) {
    return message->len >= strlen(word) && memcmp(message->payload, word, strlen(word)) == 0;
}

static unsalt_pipeline_res_t deliver(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    (void)opaque;
    (void)result;
    if (begins(job->message, "bad")) {
        snprintf(job->errstr, job->errstr_size, "nothing can be done with this");
        return UNSALT_PIPELINE_FAIL; /* trying again makes no sense */
    }
    if (begins(job->message, "shaky") && job->attempt == 1)
        return UNSALT_PIPELINE_RETRY;
    printf("%.*s %.*s\n", (int)job->session_len, (const char *)job->session, (int)job->message->len,
           (const char *)job->message->payload);
    return UNSALT_PIPELINE_OK;
}

/* Where deliver() would have been called. The record is done when this returns OK. */
static unsalt_pipeline_res_t bury(void *opaque, const unsalt_pipeline_job_t *job,
                                  const unsalt_pipeline_failure_t *failure) {
    FILE *file = opaque;
    int n = fprintf(file, "%s after %u: %s: %.*s %" PRIu64 " %.*s\n", unsalt_pipeline_reason_name(failure->reason),
                    (unsigned)failure->attempts, failure->error, (int)job->session_len, (const char *)job->session,
                    job->seq, (int)job->message->len, (const char *)job->message->payload);
    return n < 0 || fflush(file) ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static void set(unsalt_conf_t *conf, const char *key, const char *value) {
    char errstr[512];
    if (unsalt_conf_set(conf, key, value, errstr, sizeof errstr))
        fprintf(stderr, "%s\n", errstr);
}

int main(int argc, char **argv) {
    unsalt_pipeline_callbacks_t callbacks = {.size = sizeof callbacks, .deliver = deliver, .dead_letter = bury};
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    if (argc != 5) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC FILE\n", argv[0]);
        return 2;
    }
    FILE *file = fopen(argv[4], "a");
    if (!file) {
        perror(argv[4]);
        return 1;
    }
    callbacks.opaque = file;
    rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(rk_conf, "group.id", argv[2], errstr, sizeof errstr);
    set(conf, "pipeline.delivery.threads", "4"); /* sessions side by side */
    set(conf, "pipeline.deliver.failure", "dead-letter");
    unsalt_pipeline_t *pipeline = unsalt_pipeline_new(rk_conf, conf, &callbacks, errstr, sizeof errstr);
    if (!pipeline) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(unsalt_pipeline_consumer(pipeline), topics);
    rd_kafka_topic_partition_list_destroy(topics);

    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop)
        unsalt_pipeline_poll(pipeline, 200);
    unsalt_pipeline_close(pipeline);
    unsalt_pipeline_destroy(pipeline);
    fclose(file);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two phases: heavy work on 100 threads as soon as a record arrives, its effect in the order of the session, so that
 * one hot key is not as slow as one thread. Here the work takes 1 ms (a look-up at a service, say), and its result is a
 * line that is printed. `prepare` may run again for the same record: (session, epoch, seq) tells.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

static volatile sig_atomic_t stop, mended;

static void on_signal(int number) {
    if (number == SIGHUP)
        mended = 1;
    else
        stop = 1;
}

/* Any thread, any order. What is left in *result comes to deliver(). */
static unsalt_pipeline_res_t prepare(void *opaque, const unsalt_pipeline_job_t *job, void **result) {
    char *line = malloc(job->session_len + job->message->len + 32);
    (void)opaque;
    usleep(1000);
    if (!line)
        return UNSALT_PIPELINE_RETRY; /* after a while */
    int n = sprintf(line, "%.*s", (int)job->session_len, job->session ? (const char *)job->session : "");
    if (job->seq != UNSALT_NO_SEQ) /* a topic without numbers gains as well: then it is the order of the key */
        n += sprintf(line + n, " %" PRIu64, job->seq);
    sprintf(line + n, " %.*s\n", (int)job->message->len, (const char *)job->message->payload);
    *result = line;
    return UNSALT_PIPELINE_OK;
}

/* In the order of each session; here on the thread that polls. The record is acknowledged when it returns OK. */
static unsalt_pipeline_res_t deliver(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    (void)opaque;
    (void)job;
    return fputs(result, stdout) < 0 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

/* The end of every result, also of one whose record went to another member. */
static void discard(void *opaque, void *result) {
    (void)opaque;
    free(result);
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    (void)opaque;
    if (event->type == UNSALT_EVENT_PIPELINE_HALTED) /* until unsalt_pipeline_resolve(); the others go on */
        fprintf(stderr, "%s\n", event->text);
}

/* kill -HUP: says which sessions stand, since when and why, and lets each go on. */
static void on_halted(void *opaque, const unsalt_pipeline_halt_t *halt) {
    unsalt_pipeline_t *pipeline = opaque;
    fprintf(stderr, "%.*s stands since %" PRId64 " ms at %s [%d] offset %" PRId64 ", with %" PRIu64 " records: %s\n",
            (int)halt->session_len, halt->session ? (const char *)halt->session : "", halt->age_ms, halt->topic,
            (int)halt->partition, halt->offset, halt->records, halt->error);
    unsalt_pipeline_resolve(pipeline, halt->topic, halt->partition, halt->session, halt->session_len,
                            UNSALT_PIPELINE_TRY_AGAIN);
}

int main(int argc, char **argv) {
    unsalt_pipeline_callbacks_t callbacks = {.size = sizeof callbacks, .prepare = prepare, .deliver = deliver,
                                             .discard = discard};
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
    }
    rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(rk_conf, "group.id", argv[2], errstr, sizeof errstr);
    unsalt_conf_set(conf, "pipeline.workers", "100", errstr, sizeof errstr);
    unsalt_conf_set_event_cb(conf, on_event, NULL);
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
    signal(SIGHUP, on_signal);
    while (!stop) {
        unsalt_pipeline_poll(pipeline, 200);
        if (mended)
            unsalt_pipeline_halted(pipeline, on_halted, pipeline);
        mended = 0;
    }
    unsalt_pipeline_close(pipeline); /* what is under way is finished, what wasn't begun comes again */
    unsalt_pipeline_destroy(pipeline);
    return 0;
}

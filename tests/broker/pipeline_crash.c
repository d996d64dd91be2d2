/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member with a pipeline is killed while both phases are under way, several times: fixture/crash.h says what must
 * hold.
 */
#include <broker/fixture/child.h>
#include <broker/fixture/crash.h>
#include <broker/fixture/reader.h>
#include <support/check.h>
#include <time.h>

static int fd = -1; /* in the child: what it delivers goes there */

static void nap(long us) {
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static unsalt_pipeline_res_t prepare(void *opaque, const unsalt_pipeline_job_t *job, void **result) {
    (void)opaque;
    (void)result;
    nap((long)(job->seq % 5) * 200);
    return job->seq % 50 == 0 && job->attempt == 1 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static unsalt_pipeline_res_t deliver(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    const struct crash *crash = opaque;
    struct checker_record record;
    (void)result;
    if (!reader_record(&crash->scene, job->message, &record))
        return UNSALT_PIPELINE_FAIL;
    child_write(fd, &record, 1);
    return UNSALT_PIPELINE_OK;
}

/* How a run stands that does nothing any more. */
static void tell(const unsalt_pipeline_t *p) {
    static char text[2][16384];
    unsalt_pipeline_stats_t stats;
    unsalt_stats_t consumer;
    unsalt_pipeline_stats(p, &stats, sizeof stats);
    unsalt_stats(unsalt_pipeline_consumer(p), &consumer, sizeof consumer);
    unsalt_pipeline_stats_json(&stats, sizeof stats, text[0], sizeof text[0]);
    unsalt_stats_json(&consumer, sizeof consumer, text[1], sizeof text[1]);
    fprintf(stderr, "nothing was done for 30 s: %s\n%s\n", text[0], text[1]);
}

/*
 * A gap is due some time: the first numbers of a session were sent before any of them was acknowledged, so that those
 * which were committed before a restart are no proof; without a timeout it would wait for them for ever.
 */
static void consume(struct crash *crash, int to) {
    unsalt_pipeline_callbacks_t callbacks = {.size = sizeof callbacks, .prepare = prepare, .deliver = deliver,
                                             .opaque = crash};
    rd_kafka_conf_t *conf = scene_consumer_conf(&crash->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&crash->scene, 0);
    char errstr[256];
    scene_set(conf, "session.timeout.ms", "6000");
    scene_set(conf, "heartbeat.interval.ms", "300");
    scene_set(conf, "auto.commit.interval.ms", "50");
    scene_unsalt_set(mine, "pipeline.delivery.threads", crash->opaque);
    scene_unsalt_set(mine, "pipeline.records", "2000");
    scene_unsalt_set(mine, "pipeline.retry.backoff.ms", "5");
    fd = to;
    unsalt_pipeline_t *p = unsalt_pipeline_new(conf, mine, &callbacks, errstr, sizeof errstr);
    if (!p)
        scene_die("%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, crash->scene.topic, RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(unsalt_pipeline_consumer(p), topics);
    rd_kafka_topic_partition_list_destroy(topics);
    for (unsigned idle = 0;;) {
        int n = unsalt_pipeline_poll(p, 1000);
        if (n < 0)
            scene_die("poll: %s", rd_kafka_err2str(unsalt_last_error()));
        idle = n > 0 ? 0 : idle + 1;
        if (idle == 30)
            tell(p);
    }
}

static void kill_repeatedly(const char *layout, const char *threads) {
    struct crash crash = {.scene = {.layout = layout, .partitions = 4, .lanes = 4}, .form = SENDER_UNSALT, .hot = 12000,
                          .cold = 40, .each = 100, .kills = 4, .seed = (uint64_t)threads[0], .opaque = threads,
                          .consume = consume};
    crash_repeatedly(&crash, "pipecrash");
}

Test(pipeline_crash, killed_while_it_delivers_itself, .timeout = 250) {
    kill_repeatedly("hash", "0");
}

Test(pipeline_crash, killed_with_delivery_threads, .timeout = 250) {
    kill_repeatedly("topics", "4");
}

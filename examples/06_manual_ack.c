/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ack=manual: a worker thread handles the records and acknowledges them later, by their tokens. A record is committed
 * when it and everything below it in its partition are acknowledged, whatever the order in which that happens.
 * One worker keeps every session in order; with more of them, give each session always to the same one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

/* What the worker gets: it destroys the message, and the token outlives it. */
struct job {
    rd_kafka_message_t *message;
    unsalt_token_t token;
};

static unsalt_t *consumer;
static int jobs[2]; /* a pipe is a bounded queue: if the worker is slow, the reader waits */
static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static void *work(void *unused) {
    struct job job;
    while (read(jobs[0], &job, sizeof job) == sizeof job) {
        printf("%.*s\n", (int)job.message->len, (const char *)job.message->payload);
        rd_kafka_message_destroy(job.message);
        /* __STATE: the partition went to another member meanwhile, which will read the record again. */
        if (unsalt_ack(consumer, job.token) == RD_KAFKA_RESP_ERR__STATE)
            fprintf(stderr, "acknowledged too late\n");
    }
    return unused;
}

static void read_all(void) {
    while (!stop) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, 200);
        unsalt_message_info_t info = {.size = sizeof info};
        if (!message)
            continue;
        struct job job = {.message = message};
        if (unsalt_message_info(consumer, message, &info) == 0) {
            job.token = info.token;
            if (write(jobs[1], &job, sizeof job) == sizeof job)
                continue;
        }
        fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
        rd_kafka_message_destroy(message);
    }
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    pthread_t worker;
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
    }
    rd_kafka_conf_set(rk_conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(rk_conf, "group.id", argv[2], errstr, sizeof errstr);
    unsalt_conf_set(conf, "ack", "manual", errstr, sizeof errstr);
    consumer = unsalt_new(rk_conf, conf, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);

    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (pipe(jobs) || pthread_create(&worker, NULL, work, NULL))
        return 1;
    read_all();
    close(jobs[1]);                  /* the worker finishes what is in the queue */
    unsalt_consumer_close(consumer); /* waits up to revoke.timeout.ms for its acknowledgements */
    pthread_join(worker, NULL);      /* every message must be destroyed before the consumer is */
    unsalt_destroy(consumer);
    close(jobs[0]);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event loop of the application's own, with poll(2): the consumer is one of its sources. It needs two things: a
 * wake-up when there may be something to do, and how long the loop may sleep at most. A second source is the
 * standard input: each line asks for the statistics, which are written to stderr for Prometheus.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

static int wake[2]; /* a pipe; librdkafka's threads and the signal handler write to it */
static volatile sig_atomic_t stop;

static void on_signal(int number) {
    int before = errno;
    ssize_t written = write(wake[1], "", 1);
    (void)number;
    (void)written;
    stop = 1;
    errno = before;
}

/* Takes all there is without waiting: a wake-up comes once for many records. */
static void take_all(unsalt_t *consumer) {
    rd_kafka_message_t *message;
    while ((message = unsalt_consumer_poll(consumer, 0))) {
        fprintf(message->err ? stderr : stdout, "%.*s\n", (int)message->len, (const char *)message->payload);
        rd_kafka_message_destroy(message);
    }
}

static void show_statistics(const unsalt_t *consumer) {
    static char text[32768];
    unsalt_stats_t stats;
    unsalt_stats(consumer, &stats, sizeof stats);
    unsalt_stats_prometheus(&stats, sizeof stats, "client=\"event-loop\"", text, sizeof text);
    fputs(text, stderr);
}

static void loop(unsalt_t *consumer) {
    struct pollfd fds[2] = {{.fd = wake[0], .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    char bytes[256];
    while (!stop) {
        /* A gap that falls due, a commit, staying in the group: what no record announces, the deadline covers. */
        if (poll(fds, 2, unsalt_poll_deadline_ms(consumer)) < 0)
            continue; /* a signal */
        while (read(wake[0], bytes, sizeof bytes) > 0) /* before the records are taken, or a wake-up could be lost */
            continue;
        take_all(consumer);
        if (fds[1].revents && read(STDIN_FILENO, bytes, sizeof bytes) > 0)
            show_statistics(consumer);
        else if (fds[1].revents)
            fds[1].fd = -1; /* the end of the input */
    }
}

int main(int argc, char **argv) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char errstr[512];
    unsalt_t *consumer;
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC\n", argv[0]);
        return 2;
    }
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argv[2], errstr, sizeof errstr);
    consumer = unsalt_new(conf, NULL, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return 1;
    }
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);

    if (pipe(wake) || fcntl(wake[0], F_SETFL, O_NONBLOCK) || fcntl(wake[1], F_SETFL, O_NONBLOCK))
        return 1;
    unsalt_io_event_enable(consumer, wake[1], "", 1);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    loop(consumer);
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    close(wake[0]); /* not before: until then, a wake-up may be written */
    close(wake[1]);
    return 0;
}

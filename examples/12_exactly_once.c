/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consume, transform, produce, exactly once: the outputs, the offsets and the cursors of sessions go into one
 * transaction (checkpoint=topic). Whoever reads the output with isolation.level=read_committed sees the result of each
 * record once, in the order of its session, whatever crashes when. Two members with layout=topics share the work.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unsalt/unsalt.h>

enum { BATCH = 500, TIMEOUT_MS = 30000 };

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* The work: one output for each input, under the same key. Returns false if it wasn't enqueued. */
static bool transform(rd_kafka_t *producer, const char *topic, const rd_kafka_message_t *input) {
    char output[256];
    int len = snprintf(output, sizeof output, "seen: %.*s", (int)input->len, (const char *)input->payload);
    len = len < (int)sizeof output ? len : (int)sizeof output - 1;
    rd_kafka_resp_err_t err = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(input->key, input->key_len),
        RD_KAFKA_V_VALUE(output, (size_t)len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    return !err;
}

enum outcome { DONE, AGAIN, ABORT, END };

/* What the answer of a call asks for. Prints and destroys an error. */
static enum outcome outcome(rd_kafka_error_t *error, const char *what) {
    if (!error)
        return DONE;
    enum outcome is = rd_kafka_error_txn_requires_abort(error) ? ABORT
                      : rd_kafka_error_is_retriable(error)     ? AGAIN
                                                               : END;
    fprintf(stderr, "%s: %s\n", what, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return is;
}

static enum outcome commit(unsalt_t *consumer, rd_kafka_t *producer) {
    enum outcome is;
    while ((is = outcome(unsalt_send_offsets_to_transaction(consumer, producer, TIMEOUT_MS), "offsets")) == AGAIN) {
    }
    while (is == DONE && (is = outcome(rd_kafka_commit_transaction(producer, TIMEOUT_MS), "commit")) == AGAIN)
        is = DONE;
    return is;
}

/* One transaction. Returns false if the program should end: it starts again at the last commit. */
static bool process(unsalt_t *consumer, rd_kafka_t *producer, const char *topic, rd_kafka_message_t **messages,
                    ssize_t n) {
    enum outcome is = outcome(rd_kafka_begin_transaction(producer), "begin");
    for (ssize_t i = 0; i < n; i++) {
        if (is == DONE && !messages[i]->err && !transform(producer, topic, messages[i]))
            is = ABORT;
        rd_kafka_message_destroy(messages[i]);
    }
    if (is == DONE)
        is = commit(consumer, producer);
    if (is == DONE)
        return !unsalt_transaction_committed(consumer);
    if (is != ABORT)
        return false;
    while ((is = outcome(rd_kafka_abort_transaction(producer, TIMEOUT_MS), "abort")) == AGAIN) {
    }
    return is == DONE && !unsalt_rewind(consumer, TIMEOUT_MS); /* everything since the last commit comes again */
}

static rd_kafka_t *open_producer(const char *bootstrap, const char *id) {
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "transactional.id", id, errstr, sizeof errstr); /* one of its own for each member */
    rd_kafka_conf_set(conf, "transaction.timeout.ms", "10000", errstr, sizeof errstr);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!producer) {
        fprintf(stderr, "%s\n", errstr);
    } else if (outcome(rd_kafka_init_transactions(producer, TIMEOUT_MS), "init") != DONE) {
        rd_kafka_destroy(producer);
        producer = NULL;
    }
    return producer;
}

static unsalt_t *open_consumer(char **argv) {
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    unsalt_conf_t *unsalt_conf = unsalt_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "group.id", argv[2], errstr, sizeof errstr);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", errstr, sizeof errstr); /* transactions commit */
    unsalt_conf_set(unsalt_conf, "layout", "topics", errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "partitions", argv[5], errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "lanes", argv[6], errstr, sizeof errstr);
    unsalt_conf_set(unsalt_conf, "checkpoint", "topic", errstr, sizeof errstr);
    unsalt_t *consumer = unsalt_new(conf, unsalt_conf, errstr, sizeof errstr);
    if (!consumer) {
        fprintf(stderr, "%s\n", errstr);
        return NULL;
    }
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = unsalt_subscribe(consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (err)
        fprintf(stderr, "subscribe: %s\n", rd_kafka_err2str(err));
    return consumer;
}

int main(int argc, char **argv) {
    rd_kafka_message_t *messages[BATCH];
    bool going = true;
    if (argc != 8) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC OUTPUT PARTITIONS LANES TRANSACTIONAL-ID\n", argv[0]);
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    rd_kafka_t *producer = open_producer(argv[1], argv[7]);
    unsalt_t *consumer = producer ? open_consumer(argv) : NULL;
    if (!consumer)
        return 1;
    while (!stop && going) {
        ssize_t n = unsalt_consume_batch(consumer, 200, messages, BATCH);
        if (n > 0)
            going = process(consumer, producer, argv[4], messages, n);
    }
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
    rd_kafka_destroy(producer);
    return going ? 0 : 1;
}

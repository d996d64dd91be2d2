/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles of librdkafka beside the application's, out of its configuration. What is left out is named by prefixes, so
 * what a later version adds for groups or fetching stays out as well.
 */
#include <kafka/checkpoint_topic.h>

static const char *const left_out[] = {
    "group.",         "partition.assignment", "session.timeout", "heartbeat.",  "max.poll.",   "enable.auto.",
    "auto.",          "enable.partition.eof", "fetch.",          "queued.",     "isolation.",  "offset.",
    "offset_",        "rebalance_cb",         "consume_cb",      "consume.",    "check.crcs",  "dr_",
    "error_cb",       "throttle_cb",          "stats_cb",        "statistics.", "log_cb",      "log.queue",
    "background_",    "enabled_events",       "max.partition.",  "message.max", "receive.message.",
    "default_topic_", "test.mock.num.",       "client.rack",     "transaction", "enable.idempotence",
    "delivery.",      "enable.metrics.push",  "coordinator.",    "share.",      "topic.blacklist",
    "interceptors",   "plugin."};

static void drop_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
    (void)rk;
    (void)err;
    (void)reason;
    (void)opaque;
}

void us_checkpoint_client_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char ignored[256];
    rd_kafka_conf_set(conf, name, value, ignored, sizeof(ignored));
}

rd_kafka_conf_t *us_checkpoint_client_conf(const struct us_checkpoint_client *client) {
    rd_kafka_conf_t *conf =
        rd_kafka_conf_dup_filter(client->conf, sizeof(left_out) / sizeof(*left_out), (const char **)left_out);
    if (client->bootstrap) {
        us_checkpoint_client_set(conf, "bootstrap.servers", client->bootstrap);
    }
    us_checkpoint_client_set(conf, "allow.auto.create.topics", "false");
    us_checkpoint_client_set(conf, "enable.metrics.push", "false");
    rd_kafka_conf_set_events(conf, 0);
    rd_kafka_conf_set_error_cb(conf, drop_error);
    rd_kafka_conf_set_log_cb(conf, NULL);
    return conf;
}

/* The three limits of an answer must suit each other: librdkafka refuses a handle otherwise. */
static void set_reader(rd_kafka_conf_t *conf) {
    us_checkpoint_client_set(conf, "isolation.level", "read_committed");
    us_checkpoint_client_set(conf, "enable.partition.eof", "true");
    us_checkpoint_client_set(conf, "enable.auto.commit", "false");
    us_checkpoint_client_set(conf, "enable.auto.offset.store", "false");
    us_checkpoint_client_set(conf, "auto.offset.reset", "earliest");
    us_checkpoint_client_set(conf, "message.max.bytes", "1000000");
    us_checkpoint_client_set(conf, "fetch.message.max.bytes", "8388608");
    us_checkpoint_client_set(conf, "fetch.max.bytes", "33554432");
    us_checkpoint_client_set(conf, "receive.message.max.bytes", "67108864");
    us_checkpoint_client_set(conf, "fetch.wait.max.ms", "25");
    us_checkpoint_client_set(conf, "fetch.error.backoff.ms", "100");
    /* A full queue makes librdkafka pause for up to a second before 2.2.0, so it is a large one. */
    us_checkpoint_client_set(conf, "queued.min.messages", "500000");
    us_checkpoint_client_set(conf, "queued.max.messages.kbytes", "65536");
    us_checkpoint_client_set(conf, "fetch.queue.backoff.ms", "20");
}

rd_kafka_t *us_checkpoint_client_new(const struct us_checkpoint_client *client, enum us_checkpoint_role role,
                                     char *errstr, size_t errstr_size) {
    rd_kafka_conf_t *conf = us_checkpoint_client_conf(client);
    if (role == US_CHECKPOINT_READER) {
        set_reader(conf);
    } else if (role == US_CHECKPOINT_ENDS) {
        us_checkpoint_client_set(conf, "isolation.level", "read_uncommitted");
    }
    rd_kafka_type_t type = role == US_CHECKPOINT_ADMIN ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER;
    rd_kafka_t *handle = rd_kafka_new(type, conf, errstr, errstr_size);
    if (!handle) {
        rd_kafka_conf_destroy(conf);
    }
    return handle;
}

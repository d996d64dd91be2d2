/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/member.h>
#include <string.h>

bool us_member_incremental(rd_kafka_t *rk) {
    const char *protocol = rd_kafka_rebalance_protocol(rk);
    return protocol && strcmp(protocol, "COOPERATIVE") == 0;
}

/* Not a member with an instance id, which would leave its group by it, nor one of the new protocol. */
static bool may_unsubscribe(rd_kafka_t *rk) {
    const rd_kafka_conf_t *conf = rd_kafka_conf(rk);
    char protocol[32] = "";
    size_t length = 0, size = sizeof protocol;
    bool fixed = rd_kafka_conf_get(conf, "group.instance.id", NULL, &length) == RD_KAFKA_CONF_OK && length > 1;
    bool has_protocol = rd_kafka_conf_get(conf, "group.protocol", protocol, &size) == RD_KAFKA_CONF_OK;
    return !fixed && !(has_protocol && strcmp(protocol, "consumer") == 0);
}

/* Serves what is there now, and not what is fetched meanwhile: that may go on for as long as there are records. */
static void serve(rd_kafka_t *rk) {
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    size_t left = queue ? rd_kafka_queue_length(queue) : 0;
    rd_kafka_message_t *message;
    do {
        message = rd_kafka_consumer_poll(rk, 0);
        if (message)
            rd_kafka_message_destroy(message);
    } while (message && left-- > 0);
    if (queue)
        rd_kafka_queue_destroy(queue);
}

/* An assignment is answered, then its revoke; then perhaps one more is asked for what was put off until then. */
#define STEPS 3

/*
 * librdkafka, up to 2.16 at least, ends a group that is closed in the middle of a rebalance without waiting for the
 * application's answer, and destroys what its thread still has to do; if that is the answer, whoever gave it waits for
 * ever (librdkafka#4884, #4041). So nothing may be unanswered when the close begins. Who answers a revoke would join
 * anew, though, and the close would wait until the group has come together: so the subscription ends first. Where it
 * can't, the close doesn't wait for the group.
 */
void us_member_answer_all(rd_kafka_t *rk, bool subscribed) {
    bool leaves = subscribed && may_unsubscribe(rk);
    for (int i = 0; i < STEPS; i++) {
        if (leaves)
            rd_kafka_unsubscribe(rk);
        serve(rk);
    }
}

static rd_kafka_resp_err_t leave(rd_kafka_t *rk, rd_kafka_topic_partition_list_t **topics) {
    rd_kafka_topic_partition_list_t *subscribed = NULL;
    rd_kafka_resp_err_t err = rd_kafka_subscription(rk, &subscribed);
    err = err ? err : rd_kafka_unsubscribe(rk);
    if (!err)
        *topics = subscribed;
    else if (subscribed)
        rd_kafka_topic_partition_list_destroy(subscribed);
    return err;
}

rd_kafka_resp_err_t us_member_join_anew(rd_kafka_t *rk, rd_kafka_topic_partition_list_t **topics) {
    rd_kafka_resp_err_t err = *topics ? RD_KAFKA_RESP_ERR_NO_ERROR : leave(rk, topics);
    if (!err && (*topics)->cnt > 0)
        err = rd_kafka_subscribe(rk, *topics);
    if (!err) {
        rd_kafka_topic_partition_list_destroy(*topics);
        *topics = NULL;
    }
    return err;
}

/* As rd_kafka_consumer_group_metadata_write() of 2.0.2 to 2.16 at least: generation, group and member behind it. */
static const char form[] = "CGMDv2:";

static bool names_member(const char *bytes, size_t size) {
    int32_t generation;
    size_t at = sizeof form - 1;
    if (size < at || memcmp(bytes, form, at) != 0)
        return true;
    if (size < at + sizeof generation)
        return false;
    memcpy(&generation, bytes + at, sizeof generation);
    at += sizeof generation;
    const char *group_end = memchr(bytes + at, '\0', size - at);
    size_t member = group_end ? (size_t)(group_end - bytes) + 1 : size;
    return generation >= 0 && member < size && bytes[member] != '\0';
}

bool us_member_is_of_generation(const rd_kafka_consumer_group_metadata_t *metadata) {
    void *bytes = NULL;
    size_t size = 0;
    rd_kafka_error_t *error = rd_kafka_consumer_group_metadata_write(metadata, &bytes, &size);
    bool is = !error && names_member(bytes, size);
    rd_kafka_error_destroy(error);
    rd_kafka_mem_free(NULL, bytes);
    return is;
}

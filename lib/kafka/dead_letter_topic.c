/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/checkpoint_topic.h>
#include <kafka/dead_letter_topic.h>
#include <stdio.h>

#define READY_MS 10000

/* What asking later may mend. */
static bool is_silence(rd_kafka_resp_err_t err) {
    return err == RD_KAFKA_RESP_ERR__TIMED_OUT || err == RD_KAFKA_RESP_ERR__TRANSPORT ||
           err == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT || err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
}

rd_kafka_resp_err_t us_dead_letter_topic(const struct us_dead_letter_topic *topic, bool *known, char *text,
                                         size_t size) {
    char errstr[512] = "";
    const struct us_checkpoint_client client = {.conf = topic->conf};
    const struct us_checkpoint_topic wanted = {
        .name = topic->name,
        .partitions = -1,
        .create = topic->create,
        .replication = -1,
        .letters = true,
    };
    rd_kafka_resp_err_t err = us_checkpoint_topic_ensure(&client, &wanted, READY_MS, errstr, sizeof errstr);
    bool absent = err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    *known = !err;
    text[0] = '\0';
    if (is_silence(err)) {
        snprintf(text, size, "%s=%s: whether it is there isn't known (%s): dead letters may have to wait", topic->key,
                 topic->name, errstr);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (err)
        snprintf(text, size, "%s=%s: %s%s%s%s", topic->key, topic->name, errstr,
                 absent ? ": make it, with any number of partitions" : "",
                 absent && topic->create_key ? ", or allow it by " : "",
                 absent && topic->create_key ? topic->create_key : "");
    return err;
}
